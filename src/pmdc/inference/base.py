"""Base class of the conditional joint distributions P(Y | x) of a batch of rows.

Internal methods (`joint`, those ending in `_codes`, ...) use codes and indices of class variables; the methods for
users take and return names and states.
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

from pmdc._support.arrays import Array, Codes, Floats, Marks
from pmdc._support.checks import check_count
from pmdc.inference.evidence import NO_EVIDENCE, Evidence, ImpossibleEvidenceError, read_given, variable_number
from pmdc.table.columns import MISSING, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmdc.decisions.decide import Decision, LossLike
    from pmdc.inference.outcomes import OutcomeDistribution

_MAX_CELLS = 2**27
"""Largest number of probabilities in a list of all outcomes of all rows (1 GiB)."""


class ClassTable(Protocol):
    """The class variables: names, states and codes."""

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
    """The states, in the kind of container that was given to `fit`."""
    log_prob: Floats
    """Log probability of the outcome, shape (n_rows,)."""


class Top(NamedTuple):
    """The most probable outcomes of each row, in descending order of probability."""

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
    """Codes of the known states of each row, shape (n_rows, K); -1 is unknown."""

    parents: tuple[tuple[int, ...], ...] = ()
    """The parents of each class variable, as indices of class variables; empty if there is no graph."""

    def __init__(self, class_table: ClassTable, n_rows: int):
        self.class_table = class_table
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    def __repr__(self) -> str:
        names = self.class_table.names
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"{type(self).__name__}(P({shown} | x), {len(self)} rows)"

    # Abstract methods -----------------------------------------------------------------------------------------

    @abstractmethod
    def log_prob_codes(self, codes: Codes) -> Floats:
        """Return the log probability of one outcome for each row, codes of shape (n_rows, K); -1 is summed out."""

    @abstractmethod
    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Return codes of `n` drawn outcomes for each row, shape (n_rows, n, K)."""

    @abstractmethod
    def enumerate(self) -> OutcomeDistribution:
        """Return the same distribution as a list of all outcomes."""

    # Methods with a default based on a list of all outcomes -----------------------------------------------------

    def marginals(self) -> list[Floats]:
        """Return the distribution of each class variable.

        Returns
        -------
        list of K arrays of shape (n_rows, n_states)
            Probabilities of the states of the class variable, in their order.
        """
        return self.enumerate().marginals()

    def entropy(self) -> Floats:
        """Return the exact entropy of the joint distribution of each row, in nats, shape (n_rows,)."""
        return self.enumerate().entropy()

    def joint(self, variables: Sequence[int]) -> Floats:
        """Return the joint distribution of some class variables, shape (n_rows, *sizes)."""
        return self.enumerate().joint(variables)

    def mode_codes(self) -> tuple[Codes, Floats]:
        """Return codes of the most probable outcomes, shape (n_rows, K), and their log probabilities."""
        return self.enumerate().mode_codes()

    def top_codes(self, k: int) -> tuple[Codes, Floats]:
        """Return codes of the k most probable outcomes, shape (n_rows, k, K), and their log probabilities."""
        return self.enumerate().top_codes(k)

    def group_mode_codes(self, variables: Sequence[int]) -> tuple[Codes, Floats]:
        """Return the most probable joint states of some class variables, (n_rows, len(variables)), and their logs."""
        table = self.joint(variables)
        flat = table.reshape(len(table), prod(table.shape[1:]))
        best = flat.argmax(axis=1)
        codes = np.column_stack(np.unravel_index(best, table.shape[1:]))
        with np.errstate(divide="ignore"):
            return codes, np.log(flat[np.arange(len(flat)), best])

    def tilted(self, weights: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        """Return log E[prod_k w_k(Y_k)] of each row for positive weights of states, and the reweighted marginals.

        `weights` has for each class variable an array of shape (n_states,), the same for all rows, or (n_rows,
        n_states).
        """
        return self.enumerate().tilted(weights)

    def given_codes(self, evidence: Codes) -> BaseDistribution:
        """Return the distribution given known states, codes of shape (n_rows, K); -1 is unknown."""
        return self.enumerate().given_codes(evidence)

    def restricted(self, possible: Sequence[Marks | None]) -> BaseDistribution:
        """Return the distribution given that states are among the possible ones.

        `possible` has for each class variable an array of shape (n_rows, n_states), or None if all states are possible.
        """
        return self.enumerate().restricted(possible)

    def may_be(self, evidence: Codes, possible: Sequence[Marks | None]) -> Marks:
        """Return in which rows known states, with all states among the possible ones, have a positive probability."""
        if all(own is None for own in possible):
            return ~np.isneginf(self.log_prob_codes(evidence))
        every = self.enumerate()
        agree = ~np.isneginf(every.log_p) & ~contradicts(evidence, every.outcomes)
        for states, own in zip(every.outcomes.T, possible, strict=True):
            if own is not None:
                agree &= own[:, states]
        return np.asarray(agree.any(axis=1))

    def rows(self, rows: slice | Codes) -> BaseDistribution:
        """Return the distribution of some of the rows."""
        return self.enumerate().rows(rows)

    def log_prob_at(self, rows: Codes, codes: Codes) -> Floats:
        """Return log probabilities of outcomes, each in its own row; rows may occur several times."""
        return self.rows(rows).log_prob_codes(codes)

    # Methods for users ----------------------------------------------------------------------------------------

    def marginal(self, variables: str | Sequence[str]) -> Floats:
        """Return the joint distribution of some class variables, with the others summed out.

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
        """Return the most probable outcome of each row and its log probability, as a named tuple `Mode`.

        Ties are resolved in a fixed order (see `JunctionTree.mode`).
        """
        codes, log_prob = self.mode_codes()
        return Mode(self.class_table.decode(codes), log_prob)

    def top(self, k: int) -> Top:
        """Return the k most probable outcomes of each row and their log probabilities, as a named tuple `Top`.

        Parameters
        ----------
        k : int
            At most the number of outcomes.
        """
        check_count("k", k, 1)
        if k > self.n_outcomes:
            raise ValueError(f"k={k}, but there are {self.n_outcomes} outcomes: k must not be greater.")
        codes, log_prob = self.top_codes(k)
        return Top(self.states_of(codes), log_prob)

    def log_prob(self, Y: Any) -> Floats:
        """Return the log probability of one outcome for each row.

        Parameters
        ----------
        Y : DataFrame or array with one outcome for each row
            Class variables with a missing value (None, NaN) or a set of possible states are summed out. A state that
            the model does not know has probability zero, with a warning.

        Returns
        -------
        array of shape (n_rows,)
        """
        codes = self.class_table.encode(Y, unknown="mark", missing="mark")
        if len(codes) != len(self):
            raise ValueError(f"Y has {len(codes)} rows, but the distribution has {len(self)}: give one row for each.")
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
            Pass an integer for reproducible draws.

        Returns
        -------
        array of shape (n_rows, n, K)
            States, in their common type; objects if the class variables have different types of states.
        """
        check_count("n", n, 0)
        return self.states_of(self.sample_codes(n, check_random_state(random_state)))

    def given(self, evidence: Any) -> BaseDistribution:
        """Return the distribution given evidence: known states of some class variables.

        Parameters
        ----------
        evidence : mapping, DataFrame or array
            A mapping from names of class variables to a state, or to one state for each row; a DataFrame with some of
            the class variables; or an array with all of them. Missing values (None, NaN) are unknown. A set or
            frozenset of states, in place of a state, stands for one of them.

        Returns
        -------
        distribution of all class variables
            Known states have probability one, states outside a set probability zero. Earlier evidence is kept.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> joint = GBNC(experts=None, max_parents=1).fit(data.X, data.Y).predict_joint(data.X)
        >>> name = joint.class_table.names[0]
        >>> state = joint.class_table.states[0][1]
        >>> posterior = joint.given({name: state})
        >>> posterior.marginal(name)[0]
        array([0., 1., 0.])
        >>> bool(joint.given({name: {"a", "b"}}).marginal(name)[0, 2] == 0)
        True
        """
        return self.given_evidence(read_given(self.class_table, evidence, len(self)))

    def given_evidence(self, evidence: Evidence) -> BaseDistribution:
        """Return the distribution given what is known about the class variables."""
        part = self if evidence.possible is None else self.restricted(evidence.possible)
        return part.given_codes(evidence.codes)

    def mutual_information(self, one: str | Sequence[str], other: str | Sequence[str]) -> Floats:
        """Return the mutual information of two class variables, or sets of them, in each row, in nats.

        Parameters
        ----------
        one, other : name or list of names
            Without a class variable in common.

        Returns
        -------
        array of shape (n_rows,)
            Zero if they are independent.
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
        """Return the prediction of least expected loss for each row, and this loss; see `pmdc.decisions.decide`."""
        from pmdc.decisions.decide import decide

        return decide(self, loss, random_state)

    def value_of_information(self, loss: LossLike = "hamming", random_state: Any = 0) -> Floats:
        """Return by how much the expected loss decreases, on average, if the state of a class variable becomes known.

        For class variable k it is ``R - Σ_s P(Y_k = s | x) R_s``, where R is the expected loss of the best prediction
        now, and R_s that of the best prediction given that Y_k has state s. The known state is predicted, so its own
        mistakes are part of the decrease. Evidence (`given`) is used.

        Parameters
        ----------
        loss : str, loss object or callable, default="hamming"
            As in `decide`, but not a loss of the whole batch ("f1_macro", "f1_micro").
        random_state : int, RandomState instance or None, default=0
            Used by losses whose expectation is estimated from draws.

        Returns
        -------
        array of shape (n_rows, K)
            Zero for class variables that are already known. It is exact and not negative if decisions are proved to be
            optimal (`Decision.proved`), otherwise approximate, with a warning. It can also be negative for costs or a
            function by which the right state of a class variable is not the best prediction: `decide` predicts known
            states all the same.

        Examples
        --------
        >>> import numpy as np
        >>> from pmdc.inference import JointDistribution
        >>> from pmdc.table import ClassTable
        >>> Y = ClassTable.fit(np.array([["no", "low"], ["yes", "high"]]))
        >>> tables = [np.log([[0.4, 0.6]]), np.log([[[0.9, 0.1], [0.2, 0.8]]])]
        >>> joint = JointDistribution(Y, [(), (0,)], tables)
        >>> joint.value_of_information().round(2)
        array([[0.36, 0.36]])
        >>> joint.given({"y0": "no"}).value_of_information("subset").round(2)
        array([[0. , 0.1]])
        """
        from pmdc.decisions.information import value_of_information

        return value_of_information(self, loss, random_state)

    def plot(
        self, row: int = 0, ax: Axes | None = None, *, loss: LossLike = "hamming", title: str | None = None
    ) -> Axes:
        """Draw the network of one row: each class variable with the probabilities of its states.

        Parameters
        ----------
        row : int, default=0
        ax : matplotlib Axes, optional
            The axes to draw in; by default a new figure of fitting size.
        loss : str, loss object or callable, default="hamming"
            The prediction for this loss is marked, as in `decide`.
        title : str, optional

        Returns
        -------
        matplotlib Axes
            A panel for each class variable; with a graph, parents are above children. Predicted states have a triangle
            and a coloured bar, known states (`given`) a square in a grey panel. If there are more than eight states,
            the least probable ones are combined. Gids, which are kept in SVG files: "node:<name>",
            "state:<name>:<state>", "bar:<name>:<state>", "mark:<name>:<state>", "edge:<parent>:<child>".

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> joint = GBNC(experts=None, max_parents=1).fit(data.X, data.Y).predict_joint(data.X)
        >>> ax = joint.plot(7, loss="subset", title="Row 7")
        """
        from pmdc.report.canvas import pyplot_figure
        from pmdc.report.individual import draw_individual

        self._check_row(row)
        return draw_individual(self, int(row), ax, loss, title, pyplot_figure)

    def _repr_html_(self) -> str:
        from pmdc.report.html import distribution_html

        return distribution_html(self)

    # Helpers --------------------------------------------------------------------------------------------------

    def _check_row(self, row: int) -> None:
        check_count("row", row, 0)
        if row >= len(self):
            raise ValueError(f"row={row}, but there are {len(self)} rows, numbered from 0.")

    @cached_property
    def n_outcomes(self) -> int:
        """The number of outcomes."""
        return prod(self.class_table.sizes)

    def every_outcome(self) -> Codes:
        """Return all outcomes, in the order of class variables and their states; ValueError if they are too many."""
        if self.n_outcomes * len(self) > _MAX_CELLS:
            raise ValueError(
                f"A list of all {self.n_outcomes:.3g} outcomes of {len(self)} rows is too long (more than {_MAX_CELLS} "
                "numbers): use fewer rows at a time, or top(k)."
            )
        return all_outcomes(self.class_table.sizes)

    def states_of(self, codes: Codes) -> Array:
        """Return the states of codes; the last axis is the class variables."""
        states = self.class_table.states
        kinds = {known.dtype.kind for known in states}
        dtype = np.result_type(*(known.dtype for known in states)) if len(kinds) == 1 else np.dtype(object)
        answer = np.empty(codes.shape, dtype=dtype)
        for k, known in enumerate(states):
            answer[..., k] = known[codes[..., k]]
        return answer

    def _numbers(self, argument: str, names: str | Sequence[str]) -> list[int]:
        """Return the indices of class variables given by name."""
        listed = list(names) if isinstance(names, (list, tuple, set, frozenset, np.ndarray)) else [names]
        numbers = [variable_number(self.class_table, argument, name) for name in listed]
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"{argument}={names!r} must name at least one class variable, and none twice.")
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
    """Draw from the distributions along the last axis, by inversion; a state of probability zero is never drawn."""
    cumulative = np.cumsum(probabilities, axis=-1)
    uniform = random.random_sample(probabilities.shape[:-1]) * cumulative[..., -1]
    return (cumulative <= uniform[..., None]).sum(axis=-1)


def merge_evidence(known: Codes | None, new: Codes) -> Codes:
    """Combine old and new evidence; raise ImpossibleEvidenceError if they contradict each other."""
    if known is None:
        return new
    clash = (known != NO_EVIDENCE) & (new != NO_EVIDENCE) & (known != new)
    if clash.any():
        row = int(np.argmax(clash.any(axis=1)))
        raise ImpossibleEvidenceError(row, "contradicts earlier evidence")
    return np.where(new == NO_EVIDENCE, known, new)


def contradicts(evidence: Codes, outcomes: Codes) -> npt.NDArray[np.bool_]:
    """Return which outcomes contradict the evidence of each row, shape (n_rows, n_outcomes)."""
    wrong = np.zeros((len(evidence), len(outcomes)), dtype=bool)
    for known, states in zip(evidence.T, outcomes.T, strict=True):
        wrong |= (known[:, None] != NO_EVIDENCE) & (known[:, None] != states)
    return wrong


def all_outcomes(sizes: Sequence[int]) -> Codes:
    """Return all outcomes, in the order of class variables and their states."""
    return np.array(np.unravel_index(np.arange(prod(sizes)), tuple(sizes)), dtype=np.int64).T.reshape(-1, len(sizes))
