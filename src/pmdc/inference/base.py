"""What every conditional joint distribution P(Y | x) of a batch of rows has in common.

A distribution answers in two languages. Inside the library it speaks codes (`mode_codes`, `log_prob_codes`,
`sample_codes`); the methods for users (`mode`, `log_prob`, `sample`) translate from and to states.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from pmdc.columns import Array, Codes, Floats

__all__ = ["Array", "BaseDistribution", "ClassTable", "Codes", "Floats", "Mode", "draw"]


class ClassTable(Protocol):
    """The class variables: their names and states, codes and back."""

    @property
    def names(self) -> list[str]: ...
    @property
    def states(self) -> list[Array]: ...
    @property
    def sizes(self) -> tuple[int, ...]: ...
    def encode(self, Y: Any, unknown: Literal["mark"] = ...) -> Codes: ...
    def decode(self, codes: Codes) -> Any: ...


class Mode(NamedTuple):
    """The most probable outcome of each row."""

    outcome: Any
    """The states, in the kind of container that the class variables came in."""
    log_prob: Floats
    """Log probability of the outcome, shape (n_rows,)."""


class BaseDistribution(ABC):
    """The conditional joint distribution of the class variables in each row of a batch.

    Parameters
    ----------
    class_table : object with names, states, sizes, encode and decode
        The class variables.
    n_rows : int
        The number of rows.
    """

    def __init__(self, class_table: ClassTable, n_rows: int):
        self.class_table = class_table
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    def __repr__(self) -> str:
        names = self.class_table.names
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"{type(self).__name__}(P({shown} | x), {len(self)} rows)"

    @abstractmethod
    def marginals(self) -> list[Floats]:
        """The distribution of each class variable.

        Returns
        -------
        list of K arrays of shape (n_rows, n_states)
            Probabilities of the states, in the order of the states of the class variable.
        """

    @abstractmethod
    def entropy(self) -> Floats:
        """The entropy of the joint distribution, exact, in nats.

        Returns
        -------
        array of shape (n_rows,)
        """

    @abstractmethod
    def mode_codes(self) -> tuple[Codes, Floats]:
        """Codes of the most probable outcomes, shape (n_rows, K), and their log probabilities."""

    @abstractmethod
    def log_prob_codes(self, codes: Codes) -> Floats:
        """Log probability of one outcome for each row, given as codes of shape (n_rows, K)."""

    @abstractmethod
    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Codes of `n` outcomes for each row, shape (n_rows, n, K)."""

    def mode(self) -> Mode:
        """The most probable outcome of each row and its probability.

        Returns
        -------
        Mode
            A named tuple: `outcome`, in the kind of container that the class variables came in, and
            `log_prob`, an array of shape (n_rows,).
        """
        codes, log_prob = self.mode_codes()
        return Mode(self.class_table.decode(codes), log_prob)

    def log_prob(self, Y: Any) -> Floats:
        """The log probability of the given outcomes.

        Parameters
        ----------
        Y : DataFrame or array with one outcome for each row
            A state that is unknown to the model has probability zero, with a warning.

        Returns
        -------
        array of shape (n_rows,)
        """
        codes = self.class_table.encode(Y, unknown="mark")
        if len(codes) != len(self):
            raise ValueError(f"Y has {len(codes)} rows, but the distribution has {len(self)}: give one for each.")
        unknown = codes < 0
        self._warn_unknown(Y, unknown)
        log_prob = self.log_prob_codes(np.where(unknown, 0, codes))
        return np.where(unknown.any(axis=1), -np.inf, log_prob)

    def sample(self, n: int, random_state: int | np.random.RandomState | None = None) -> Array:
        """Draw outcomes from the joint distribution of each row.

        Parameters
        ----------
        n : int
            The number of draws for each row.
        random_state : int, RandomState instance or None
            Give an integer for the same draws every time.

        Returns
        -------
        array of shape (n_rows, n, K)
            States. The array has the common type of the states, or holds objects if class variables differ
            in the kind of their states.
        """
        if n < 0:
            raise ValueError(f"n={n}: the number of draws must not be negative.")
        codes = self.sample_codes(n, check_random_state(random_state))
        states = self.class_table.states
        kinds = {known.dtype.kind for known in states}
        dtype = np.result_type(*(known.dtype for known in states)) if len(kinds) == 1 else np.dtype(object)
        drawn = np.empty(codes.shape, dtype=dtype)
        for k, known in enumerate(states):
            drawn[..., k] = known[codes[..., k]]
        return drawn

    def _warn_unknown(self, Y: Any, unknown: npt.NDArray[np.bool_]) -> None:
        for k in np.flatnonzero(unknown.any(axis=0)):
            name = self.class_table.names[k]
            if hasattr(Y, "columns") and name in Y.columns:
                values = np.asarray(Y[name], dtype=object)
            else:
                values = np.asarray(Y, dtype=object).reshape(len(unknown), -1)[:, k]
            states = list(dict.fromkeys(values[unknown[:, k]].tolist()))
            shown = ", ".join(repr(state) for state in states[:5]) + (", ..." if len(states) > 5 else "")
            warnings.warn(
                f"Y, class variable {name!r}: {unknown[:, k].sum()} row(s) hold a state unknown to the model "
                f"({shown}); their probability is zero. Declare all states by a categorical dtype in fit.",
                UserWarning,
                stacklevel=3,
            )


def draw(probabilities: Floats, random: np.random.RandomState) -> Codes:
    """Draw from the distributions along the last axis, by inversion.

    A uniform number is below one, so times the total it is below the total: a state of probability zero,
    at which the cumulative probability does not grow, is never drawn.
    """
    cumulative = np.cumsum(probabilities, axis=-1)
    uniform = random.random_sample(probabilities.shape[:-1]) * cumulative[..., -1]
    return (cumulative <= uniform[..., None]).sum(axis=-1)
