"""What every conditional joint distribution P(Y | x) of a batch of rows has in common.

A distribution answers in two languages. Inside the library it speaks codes and numbers of class variables (methods that
end in `_codes`, `joint`); the methods for users translate from and to names and states.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from pmdc._support.arrays import Array, Codes, Floats
from pmdc._support.checks import check_count
from pmdc.inference.evidence import NO_EVIDENCE, ImpossibleEvidenceError, read_evidence, variable_number
from pmdc.table.columns import MISSING, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmdc.decisions.decide import Decision, LossLike
    from pmdc.inference.outcomes import OutcomeDistribution

__all__ = ["Array", "BaseDistribution", "ClassTable", "Codes", "Floats", "Mode", "Top", "draw"]

MOST_CELLS = 2**27
"""Numbers that a list of all outcomes of all rows may have (1 GiB)."""


class ClassTable(Protocol):
    """The class variables: their names and states, codes and back."""

    @property
    def names(self) -> list[str]: ...
    @property
    def states(self) -> list[Array]: ...
    @property
    def sizes(self) -> tuple[int, ...]: ...
    def encode(self, Y: Any, unknown: Literal["mark"] = ..., missing: Literal["mark"] = ...) -> Codes: ...
    def decode(self, codes: Codes) -> Any: ...


class Mode(NamedTuple):
    """The most probable outcome of each row."""

    outcome: Any
    """The states, in the kind of container that the class variables came in."""
    log_prob: Floats
    """Log probability of the outcome, shape (n_rows,)."""


class Top(NamedTuple):
    """The most probable outcomes of each row, the most probable first."""

    outcomes: Array
    """The states, shape (n_rows, k, K)."""
    log_prob: Floats
    """Log probabilities of the outcomes, shape (n_rows, k)."""


class BaseDistribution(ABC):
    """The conditional joint distribution of the class variables in each row of a batch.

    Parameters
    ----------
    class_table : object with names, states, sizes, encode and decode
        The class variables.
    n_rows : int
        The number of rows.
    """

    evidence: Codes | None = None
    """Codes of what is known of each row, shape (n_rows, K); -1 is unknown."""

    parents: tuple[tuple[int, ...], ...] = ()
    """The parents of each class variable, as indices of class variables; empty where no graph says them."""

    def __init__(self, class_table: ClassTable, n_rows: int):
        self.class_table = class_table
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    def __repr__(self) -> str:
        names = self.class_table.names
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"{type(self).__name__}(P({shown} | x), {len(self)} rows)"

    # What a distribution must know --------------------------------------------------------------------------

    @abstractmethod
    def log_prob_codes(self, codes: Codes) -> Floats:
        """Log probability of one outcome for each row, codes of shape (n_rows, K); -1 is summed over."""

    @abstractmethod
    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Codes of `n` outcomes for each row, shape (n_rows, n, K)."""

    @abstractmethod
    def enumerate(self) -> OutcomeDistribution:
        """The same distribution as a list of all outcomes."""

    # What follows from a list of all outcomes, unless there is a better way ----------------------------------

    def marginals(self) -> list[Floats]:
        """The distribution of each class variable.

        Returns
        -------
        list of K arrays of shape (n_rows, n_states)
            Probabilities of the states, in the order of the states of the class variable.
        """
        return self.enumerate().marginals()

    def entropy(self) -> Floats:
        """The entropy of the joint distribution, exact, in nats.

        Returns
        -------
        array of shape (n_rows,)
        """
        return self.enumerate().entropy()

    def joint(self, variables: Sequence[int]) -> Floats:
        """The joint distribution of some class variables, shape (n_rows, *sizes)."""
        return self.enumerate().joint(variables)

    def mode_codes(self) -> tuple[Codes, Floats]:
        """Codes of the most probable outcomes, shape (n_rows, K), and their log probabilities."""
        return self.enumerate().mode_codes()

    def top_codes(self, k: int) -> tuple[Codes, Floats]:
        """Codes of the k most probable outcomes, shape (n_rows, k, K), and their log probabilities."""
        return self.enumerate().top_codes(k)

    def group_mode_codes(self, variables: Sequence[int]) -> tuple[Codes, Floats]:
        """The most probable states of some class variables together, shape (n_rows, len(variables)), and their logs."""
        table = self.joint(variables)
        flat = table.reshape(len(table), prod(table.shape[1:]))
        best = flat.argmax(axis=1)
        codes = np.column_stack(np.unravel_index(best, table.shape[1:]))
        with np.errstate(divide="ignore"):
            return codes, np.log(flat[np.arange(len(flat)), best])

    def tilted(self, weights: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        """log E[prod_k w_k(Y_k)] of each row, for a positive weight of each state, and the marginals so reweighted."""
        return self.enumerate().tilted(weights)

    def given_codes(self, evidence: Codes) -> BaseDistribution:
        """The distribution given the known states, codes of shape (n_rows, K); -1 is unknown."""
        return self.enumerate().given_codes(evidence)

    def rows(self, rows: slice | Codes) -> BaseDistribution:
        """The distribution of some of the rows."""
        return self.enumerate().rows(rows)

    def log_prob_at(self, rows: Codes, codes: Codes) -> Floats:
        """Log probabilities of outcomes, each in a row of its own choice; rows may come many times."""
        return self.rows(rows).log_prob_codes(codes)

    # What users ask -----------------------------------------------------------------------------------------

    def marginal(self, variables: str | Sequence[str]) -> Floats:
        """The joint distribution of some class variables, the others summed out.

        Parameters
        ----------
        variables : name or list of names

        Returns
        -------
        array of shape (n_rows, states of the first, states of the second, ...)
            Probabilities.
        """
        return self.joint(self._numbers("variables", variables))

    def mode(self) -> Mode:
        """The most probable outcome of each row and its probability.

        Of outcomes that are equally probable the same one is taken every time (`JunctionTree.mode` says which).

        Returns
        -------
        Mode
            A named tuple: `outcome`, in the kind of container that the class variables came in, and
            `log_prob`, an array of shape (n_rows,).
        """
        codes, log_prob = self.mode_codes()
        return Mode(self.class_table.decode(codes), log_prob)

    def top(self, k: int) -> Top:
        """The k most probable outcomes of each row and their probabilities.

        Parameters
        ----------
        k : int
            At most as many as there are outcomes.

        Returns
        -------
        Top
            A named tuple: `outcomes`, states of shape (n_rows, k, K), and `log_prob`, shape (n_rows, k), in
            descending order.
        """
        check_count("k", k, 1)
        if k > prod(self.class_table.sizes):
            raise ValueError(
                f"k={k}, but there are {prod(self.class_table.sizes)} outcomes: ask for as many at the most."
            )
        codes, log_prob = self.top_codes(k)
        return Top(self.states_of(codes), log_prob)

    def log_prob(self, Y: Any) -> Floats:
        """The log probability of the given outcomes.

        Parameters
        ----------
        Y : DataFrame or array with one outcome for each row
            A missing value (None, NaN) means that the class variable is not known: the probability is then that of the
            others together. A state that is unknown to the model has probability zero, with a warning.

        Returns
        -------
        array of shape (n_rows,)
        """
        codes = self.class_table.encode(Y, unknown="mark", missing="mark")
        if len(codes) != len(self):
            raise ValueError(f"Y has {len(codes)} rows, but the distribution has {len(self)}: give one for each.")
        unknown = codes == UNKNOWN
        self._warn_unknown(Y, unknown)
        log_prob = self.log_prob_codes(np.where(unknown, 0, np.where(codes == MISSING, NO_EVIDENCE, codes)))
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
        check_count("n", n, 0)
        return self.states_of(self.sample_codes(n, check_random_state(random_state)))

    def given(self, evidence: Any) -> BaseDistribution:
        """The distribution of the class variables when some of them are known.

        Parameters
        ----------
        evidence : mapping, DataFrame or array
            From the name of a class variable to its state, or to one state for each row; a DataFrame with some of the
            class variables; or an array with all of them. Missing values (None, NaN) are unknown.

        Returns
        -------
        distribution of all class variables
            The known ones have their state with probability one. What was known before stays known.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> joint = GBNC(max_parents=1).fit(data.X, data.Y).predict_joint(data.X)
        >>> name = joint.class_table.names[0]
        >>> state = joint.class_table.states[0][1]
        >>> posterior = joint.given({name: state})
        >>> posterior.marginal(name)[0]
        array([0., 1., 0.])
        """
        codes = read_evidence(self.class_table, evidence, len(self))
        return self.given_codes(codes)

    def mutual_information(self, one: str | Sequence[str], other: str | Sequence[str]) -> Floats:
        """How much one class variable (or group) says about another in each row, in nats.

        Parameters
        ----------
        one, other : name or list of names
            Without a class variable in common.

        Returns
        -------
        array of shape (n_rows,)
            Zero where they are independent.
        """
        first, second = self._numbers("one", one), self._numbers("other", other)
        if set(first) & set(second):
            raise ValueError(f"one={one!r} and other={other!r} must have no class variable in common.")
        sizes = self.class_table.sizes
        shape = len(self), prod(sizes[v] for v in first), prod(sizes[v] for v in second)
        joint = self.joint([*first, *second]).reshape(shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_apart = np.log(joint.sum(axis=2, keepdims=True)) + np.log(joint.sum(axis=1, keepdims=True))
            terms = np.where(joint > 0, joint * (np.log(joint) - log_apart), 0.0)
        return np.maximum(terms.sum(axis=(1, 2)), 0.0)

    def decide(self, loss: LossLike = "hamming", random_state: Any = 0) -> Decision:
        """The prediction of least expected loss for each row, and that loss.

        Parameters
        ----------
        loss : str, loss object or callable
            As in `pmdc.decisions.decide`.
        random_state : int, RandomState instance or None
            For losses whose expectation is estimated from draws.

        Returns
        -------
        Decision
            A named tuple: `outcome`, `expected_loss`, `standard_error` and `proved`.
        """
        from pmdc.decisions.decide import decide

        return decide(self, loss, random_state)

    def plot(
        self, row: int = 0, ax: Axes | None = None, *, loss: LossLike = "hamming", title: str | None = None
    ) -> Axes:
        """Draw the network of one row: each class variable with the probabilities of its states.

        Parameters
        ----------
        row : int, default=0
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure that is just large enough.
        loss : str, loss object or callable, default="hamming"
            The loss whose prediction is marked, as in `decide`.
        title : str, optional

        Returns
        -------
        matplotlib Axes
            A panel for each class variable, parents above children where there is a graph. Predicted states have a
            triangle and a bar of their own colour; known ones (`given`) a square, in a grey panel. Of more than eight
            states, the least probable are put together, and their number is told. Gids, which SVG files keep:
            "node:<name>", "state:<name>:<state>", "bar:<name>:<state>", "mark:<name>:<state>",
            "edge:<parent>:<child>".

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> joint = GBNC(max_parents=1).fit(data.X, data.Y).predict_joint(data.X)
        >>> ax = joint.plot(7, loss="subset", title="Row 7")
        """
        from pmdc.report.canvas import pyplot_figure
        from pmdc.report.individual import draw_individual

        self._check_row(row)
        return draw_individual(self, int(row), ax, loss, title, pyplot_figure)

    def _repr_html_(self) -> str:
        from pmdc.report.html import distribution_html

        return distribution_html(self)

    # Within -------------------------------------------------------------------------------------------------

    def _check_row(self, row: int) -> None:
        check_count("row", row, 0)
        if row >= len(self):
            raise ValueError(f"row={row}, but there are {len(self)} rows, counted from 0.")

    @cached_property
    def n_outcomes(self) -> int:
        """How many outcomes there are."""
        return prod(self.class_table.sizes)

    def every_outcome(self) -> Codes:
        """All outcomes, in the order of class variables and their states; refused where a list of them is too long."""
        if self.n_outcomes * len(self) > MOST_CELLS:
            raise ValueError(
                f"A list of all {self.n_outcomes:.3g} outcomes of {len(self)} rows is too long (more than {MOST_CELLS} "
                "numbers): ask for fewer rows at a time, or for top(k)."
            )
        return all_outcomes(self.class_table.sizes)

    def states_of(self, codes: Codes) -> Array:
        """States behind codes whose last axis is the class variables."""
        states = self.class_table.states
        kinds = {known.dtype.kind for known in states}
        dtype = np.result_type(*(known.dtype for known in states)) if len(kinds) == 1 else np.dtype(object)
        answer = np.empty(codes.shape, dtype=dtype)
        for k, known in enumerate(states):
            answer[..., k] = known[codes[..., k]]
        return answer

    def _numbers(self, argument: str, names: str | Sequence[str]) -> list[int]:
        """The numbers of class variables called by name."""
        listed = list(names) if isinstance(names, (list, tuple, set, frozenset, np.ndarray)) else [names]
        numbers = [variable_number(self.class_table, argument, name) for name in listed]
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"{argument}={names!r}: name at least one class variable, and each once.")
        return numbers

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


def merge_evidence(known: Codes | None, new: Codes) -> Codes:
    """Both together; a contradiction is refused as impossible."""
    if known is None:
        return new
    clash = (known != NO_EVIDENCE) & (new != NO_EVIDENCE) & (known != new)
    if clash.any():
        row = int(np.argmax(clash.any(axis=1)))
        raise ImpossibleEvidenceError(row, "contradicts what was known before")
    return np.where(new == NO_EVIDENCE, known, new)


def contradicts(evidence: Codes, outcomes: Codes) -> npt.NDArray[np.bool_]:
    """Which outcomes contradict what is known in which row, shape (n_rows, n_outcomes)."""
    wrong = np.zeros((len(evidence), len(outcomes)), dtype=bool)
    for known, states in zip(evidence.T, outcomes.T, strict=True):
        wrong |= (known[:, None] != NO_EVIDENCE) & (known[:, None] != states)
    return wrong


def all_outcomes(sizes: Sequence[int]) -> Codes:
    """All outcomes, in the order of class variables and their states."""
    return np.array(np.unravel_index(np.arange(prod(sizes)), tuple(sizes)), dtype=np.int64).T.reshape(-1, len(sizes))
