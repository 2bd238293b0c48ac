"""Exact inference in a product of factors over class variables, for a batch of rows at once.

A `JunctionTree` is compiled once from the scopes of the factors and knows what it will cost; it is then run on their
log tables, which have one entry for each row. The semiring is a parameter of the elimination: summing gives marginals
and the probability of evidence, maximising the most probable outcomes, and first summing then maximising the most
probable states of some class variables together. `kernels.py` has the loops.

In a Bayesian network the factors are the conditional tables, one for each class variable, and their scopes are the
families (`factors.family_scopes`). But the tree knows neither nodes nor parents: a factor may be the distribution of
several class variables given others, and there may be more or fewer factors than class variables.

The tree has one clique for each class variable: the variable that is eliminated there and its separator. Its message
goes to the clique of the separator's member that is eliminated next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc.inference.batches import run_chunks
from pmdc.inference.elimination import eliminate, interaction_graph
from pmdc.inference.evidence import NO_EVIDENCE, ImpossibleEvidenceError
from pmdc.inference.factors import Scopes, check_scopes, check_tables, outcome_log_prob

if TYPE_CHECKING:
    from pmdc.inference.kernels import Plan, Projection

Marks = npt.NDArray[np.bool_]

MEMORY_BUDGET = 2**30
"""Bytes that inference may use besides its input and output, unless told otherwise."""

_BLOCK_BYTES = 2**21

_BLOCK_ROWS = 32, 128
"""Rows are worked on in blocks of about this size, near the cache of a core, and within these numbers of rows: inner
loops run over the rows of a block."""

_CHUNK_BYTES = 2**23
"""A thread takes as many blocks at once as have tables of about this size."""

_MOST_VARIANTS = 100
"""Trees for groups of class variables that are kept for the next time they are asked for."""

_WORK_FOR_THREADS = 2**22
"""Cells of all rows from which on threads are worth starting: some 20 ms of work."""

TOTAL_TOLERANCE = 1e-5
"""How far from one the probability of a row may add up: enough for tables that once were float32."""

TIE_TOLERANCE = 1e-12
"""Log probabilities that differ by no more than rounding, relative to their size, are equal."""


class NetworkTooWideError(ValueError):
    """Exact inference in this network needs more memory for a single row than the budget allows."""


@dataclass(frozen=True)
class Clique:
    """The clique in which one class variable is eliminated, and its place in the tree."""

    scope: tuple[int, ...]
    """The eliminated class variable, then its separator, in elimination order."""
    parent: int | None
    children: tuple[int, ...]
    factors: tuple[int, ...]
    """The factors that are multiplied in here."""

    @property
    def separator(self) -> tuple[int, ...]:
        return self.scope[1:]


class JunctionTree:
    """A junction tree over class variables, compiled once and run on batches of log tables.

    The distribution of a row is the product of its factors. Except in `weighted_marginals`, it must be normalised:
    the probabilities of all outcomes add up to one. No entry of a log table may be above zero.

    Parameters
    ----------
    sizes : sequence of int
        The number of states of each class variable.
    scopes : sequence of tuples of int
        The class variables of each factor: the axes of its table, after that of the rows. Every class variable must be
        in at least one scope.
    together : sequence of tuples of int
        Groups of class variables that are to meet in a clique, so that their joint distribution can be asked for.
    last : sequence of int
        Class variables that are eliminated after all others (`marginal_mode`).
    memory_budget : int
        Bytes that may be used besides input and output. Rows are worked on in blocks that fit into it.

    Attributes
    ----------
    order : tuple of int
        The elimination order: the cheapest of min-fill, min-weight and, up to ten class variables, all orders.
    cliques : tuple of Clique
        The clique of each class variable.
    width : int
        The size of the largest clique, less one.
    cells : int
        The cells of all cliques: what a row costs in time, up to a factor.
    bytes_per_row : int
        The memory that one row takes, besides input and output.

    Raises
    ------
    ValueError
        If a scope is not valid, or a class variable is in none of them.
    NetworkTooWideError
        If one row alone does not fit into the memory budget.

    Examples
    --------
    >>> import numpy as np
    >>> tree = JunctionTree(sizes=[2, 2], scopes=[(0,), (0, 1)])  # tables of P(Y0) and P(Y1 | Y0)
    >>> tree.width
    1
    >>> tables = [np.log([[0.4, 0.6]]), np.log([[[0.5, 0.5], [0.25, 0.75]]])]
    >>> tree.marginals(tables)[1]
    array([[0.35, 0.65]])
    >>> tree.marginals(tables, evidence=np.array([[-1, 0]]))[0].round(4)  # the second is in its first state
    array([[0.5714, 0.4286]])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        scopes: Scopes,
        *,
        together: Iterable[Sequence[int]] = (),
        last: Sequence[int] = (),
        memory_budget: int = MEMORY_BUDGET,
    ):
        self.sizes = tuple(int(size) for size in sizes)
        self.scopes = tuple(tuple(int(v) for v in scope) for scope in scopes)
        self.last = frozenset(last)
        self.memory_budget = int(memory_budget)
        check_scopes(self.sizes, self.scopes)
        together = [tuple(group) for group in together]
        graph = interaction_graph(len(self.sizes), (*self.scopes, *together))
        eliminated = eliminate(self.sizes, graph, self.last)
        self.order = tuple(eliminated)
        self._position = {variable: i for i, variable in enumerate(self.order)}
        self.cliques = self._assemble(eliminated)
        self.width = max(len(clique.scope) for clique in self.cliques) - 1
        self.cells = sum(self._cells(clique.scope) for clique in self.cliques)
        # Tables, messages, distributions and beliefs; and, twice, the answer: at most all tables, marginals or a group.
        answer = max([self._table_cells, sum(self.sizes), *(self._cells(group) for group in together)])
        self.bytes_per_row = 8 * (self._table_cells + self._lines + self._belief_lines + 2 * answer)
        self._refuse_too_wide()

    def _assemble(self, eliminated: dict[int, tuple[int, ...]]) -> tuple[Clique, ...]:
        # A separator is handed to the clique of its first member: all the others are still there.
        parent = {variable: scope[1] for variable, scope in eliminated.items() if len(scope) > 1}
        children: dict[int, list[int]] = {variable: [] for variable in eliminated}
        for variable, above in parent.items():
            children[above].append(variable)
        factors: dict[int, list[int]] = {variable: [] for variable in eliminated}
        for i, scope in enumerate(self.scopes):
            factors[min(scope, key=self._position.__getitem__)].append(i)
        return tuple(
            Clique(eliminated[v], parent.get(v), tuple(children[v]), tuple(factors[v])) for v in sorted(eliminated)
        )

    def _cells(self, scope: Iterable[int]) -> int:
        return prod(self.sizes[variable] for variable in scope)

    @cached_property
    def _table_place(self) -> list[int]:
        """The first line of each table, and the number of lines of all of them."""
        return [0, *accumulate(self._cells(scope) for scope in self.scopes)]

    @property
    def _table_cells(self) -> int:
        return self._table_place[-1]

    @cached_property
    def _evidence_factors(self) -> dict[int, int]:
        """The factor in which evidence on each class variable is entered.

        A factor whose scope ends with the variable, such as its conditional table, or else the first with it.
        """
        numbered = list(enumerate(self.scopes))[::-1]
        first = {variable: i for i, scope in numbered for variable in scope}
        return first | {scope[-1]: i for i, scope in numbered}

    @cached_property
    def _belief_lines(self) -> int:
        return sum(self._cells(clique.separator) for clique in self.cliques)

    @cached_property
    def _lines(self) -> int:
        """Lines for messages and for the distributions given separators."""
        return self._belief_lines + self.cells

    def _refuse_too_wide(self) -> None:
        if self.bytes_per_row > self.memory_budget:
            raise NetworkTooWideError(
                f"Exact inference in this network of {len(self.sizes)} class variables has width {self.width} (a table "
                f"over {self.width + 1} class variables) and needs {self.bytes_per_row:,} bytes for each row; "
                f"memory_budget is {self.memory_budget:,} bytes. Learn a sparser network by lowering max_parents, "
                "merge rare states of class variables that have many, or raise memory_budget."
            )

    def __repr__(self) -> str:
        cost = f"width={self.width}, bytes_per_row={self.bytes_per_row}"
        return f"JunctionTree({len(self.sizes)} class variables, {cost})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_plan", "_variants")}

    def variant(self, together: Sequence[int] = (), last: Sequence[int] = ()) -> JunctionTree:
        """A tree of the same factors in which these meet in a clique, or are eliminated last; compiled once."""
        variants = self.__dict__.setdefault("_variants", {})
        key = frozenset(together), frozenset(last)
        if key not in variants:
            try:
                variants[key] = JunctionTree(
                    self.sizes, self.scopes, together=[together], last=last, memory_budget=self.memory_budget
                )
            except NetworkTooWideError as error:
                raise NetworkTooWideError(
                    f"{len(together or last)} class variables are too many to be asked for together: {error} Or ask "
                    "for fewer of them."
                ) from None
            if len(variants) > _MOST_VARIANTS:
                variants.pop(next(iter(variants)))
        return variants[key]

    def holds(self, variables: Sequence[int]) -> bool:
        """Whether some clique has all these class variables, so that `joint` can answer for them."""
        return any(set(variables) <= set(clique.scope) for clique in self.cliques)

    # Questions ---------------------------------------------------------------------------------------------

    def marginals(self, tables: Sequence[Floats], evidence: Codes | None = None) -> list[Floats]:
        """The distribution of each class variable, in each row.

        Parameters
        ----------
        tables : sequence of arrays of shape (n_rows, *sizes of the scope)
            The log table of each factor.
        evidence : array of shape (n_rows, K), optional
            Codes of the states that are known; -1 is unknown.

        Returns
        -------
        list of K arrays of shape (n_rows, size)

        Raises
        ------
        ValueError
            If the probabilities of some row do not add up to one.
        ImpossibleEvidenceError
            If the evidence of some row has probability zero.
        """
        return self.joint(tables, [(variable,) for variable in range(len(self.sizes))], evidence)

    def factor_marginals(self, tables: Sequence[Floats], evidence: Codes | None = None) -> list[Floats]:
        """The joint distribution of the class variables of each factor, in the shape of `tables`."""
        return self.joint(tables, self.scopes, evidence)

    def joint(
        self, tables: Sequence[Floats], targets: Sequence[Sequence[int]], evidence: Codes | None = None
    ) -> list[Floats]:
        """Joint distributions of groups of class variables, each of which some clique holds."""
        out, log_total = self._sum_product(tables, targets, evidence)
        self._check_totals(log_total, evidence)
        return self._split(out, targets)

    def weighted_marginals(
        self, tables: Sequence[Floats], evidence: Codes | None = None
    ) -> tuple[Floats, list[Floats]]:
        """For tables that need not add up to one: the log of the total of each row, and the marginals."""
        targets = [(variable,) for variable in range(len(self.sizes))]
        out, log_total = self._sum_product(tables, targets, evidence)
        self._check_possible(log_total, evidence)
        return log_total, self._split(out, targets)

    def _split(self, out: Floats, targets: Sequence[Sequence[int]]) -> list[Floats]:
        answers, first = [], 0
        for target in targets:
            table = out[:, first : first + self._cells(target)].copy()
            first += table.shape[1]
            table /= table.sum(axis=1, keepdims=True)
            answers.append(table.reshape(-1, *(self.sizes[v] for v in target)))
        return answers

    def log_evidence(self, tables: Sequence[Floats], evidence: Codes | None = None) -> Floats:
        """The log probability of the evidence in each row; -inf where it is impossible."""
        return self._sum_product(tables, [], evidence)[1]

    def mode(self, tables: Sequence[Floats], evidence: Codes | None = None) -> tuple[Codes, Floats]:
        """The most probable outcome of each row, and its log probability (together with the evidence).

        Of outcomes that are equally probable, up to rounding, one is taken as follows: from the class variable that is
        eliminated last to the first, each takes the first of its states that is best together with those already
        chosen. That probabilities add up to one is not checked here: maximising does not see the total.
        """
        codes, log_best = self._max_product(tables, evidence)
        self._check_possible(log_best, evidence)
        return codes, outcome_log_prob(self.scopes, tables, codes)

    def top(self, tables: Sequence[Floats], k: int, evidence: Codes | None = None) -> tuple[Codes, Floats]:
        """The k most probable outcomes of each row, shape (n_rows, k, K), and their log probabilities.

        The first one is the mode. Outcomes with the same log probability come in the order of class variables and
        their states; which ones are left out, where not all of them fit, follows the elimination order.
        """
        n_rows = check_tables(self.sizes, self.scopes, tables)
        modes, _ = self.mode(tables, evidence)
        codes = np.empty((n_rows, k, len(self.sizes)), dtype=np.int64)

        def few(rows: slice, lines: Floats, lost: Marks) -> None:
            self._kernels.top(self._plan, lines, codes[rows], np.empty(len(lost)))

        self._run(tables, evidence, few, logs=True, n_lines=self._belief_lines)
        rows = np.repeat(np.arange(n_rows), k)
        flat = codes.reshape(n_rows * k, len(self.sizes))
        log_prob = outcome_log_prob(self.scopes, tables, flat, rows).reshape(n_rows, k)
        if evidence is not None:  # where there are fewer possible outcomes than k
            contradicted = (evidence[:, None] != NO_EVIDENCE) & (evidence[:, None] != codes)
            log_prob[contradicted.any(axis=2)] = -np.inf
        return _sorted(codes, log_prob, modes)

    def sample(
        self, tables: Sequence[Floats], n: int, random: np.random.RandomState, evidence: Codes | None = None
    ) -> Codes:
        """Outcomes drawn from the distribution given the evidence, shape (n_rows, n, K)."""
        n_rows = check_tables(self.sizes, self.scopes, tables)
        uniform = random.random_sample((n_rows, n, len(self.sizes)))
        codes = np.empty(uniform.shape, dtype=np.int64)
        log_total = np.empty(n_rows)

        def draw(rows: slice | Codes, lines: Floats, logs: bool, lost: Marks) -> None:
            total, drawn = np.empty(len(lost)), np.empty_like(codes[rows])
            self._kernels.samples(self._plan, lines, logs, uniform[rows], drawn, total, lost)
            codes[rows], log_total[rows] = drawn, total[: len(drawn)]

        self._run_sums(tables, evidence, draw, self._lines)
        self._check_totals(log_total, evidence)
        return codes

    def marginal_mode(self, tables: Sequence[Floats], evidence: Codes | None = None) -> tuple[Codes, Floats]:
        """The most probable states of the class variables in `last` together, all others summed out (marginal MAP).

        Returns
        -------
        codes : array of shape (n_rows, K)
            Only the columns in `last` have a meaning. Ties are broken as in `mode`.
        log_prob : array of shape (n_rows,)
            Their log probability, together with the evidence.
        """
        codes, log_best = self._max_product(tables, evidence)
        self._check_possible(log_best, evidence)
        return codes, log_best

    # Sums ---------------------------------------------------------------------------------------------------

    def _sum_product(
        self, tables: Sequence[Floats], targets: Sequence[Sequence[int]], evidence: Codes | None
    ) -> tuple[Floats, Floats]:
        """Unscaled sums for the targets, side by side, and the log probability of the evidence."""
        n_rows = check_tables(self.sizes, self.scopes, tables)
        projection, n_lines = self._projection(targets)
        out = np.empty((n_rows, sum(self._cells(target) for target in targets)))
        log_total = np.empty(n_rows)

        def sums(rows: slice | Codes, lines: Floats, logs: bool, lost: Marks) -> None:
            total, part = np.empty(len(lost)), out[rows]  # a part of it for a slice, a copy for single rows
            self._kernels.beliefs(self._plan, projection, lines, logs, part, total, lost)
            log_total[rows] = total[: len(part)]
            if not isinstance(rows, slice):
                out[rows] = part

        self._run_sums(tables, evidence, sums, n_lines if targets else self._lines)
        return out, log_total

    def _run_sums(
        self, tables: Sequence[Floats], evidence: Codes | None, run: Callable[..., None], n_lines: int
    ) -> None:
        """Run on probabilities, and again on their logarithms for the rows in which that was not enough."""

        def chunk(rows: slice, lines: Floats, lost: Marks) -> None:
            run(rows, lines, False, lost)
            again = rows.start + np.flatnonzero(lost[: rows.stop - rows.start])
            if len(again):
                run(again, lines, True, self._load(tables, evidence, again, lines, logs=True))

        self._run(tables, evidence, chunk, logs=False, n_lines=n_lines)

    def _check_totals(self, log_total: Floats, evidence: Codes | None) -> None:
        """The probability of the evidence must not be zero, and without evidence it must be one."""
        if evidence is not None:
            self._check_possible(log_total, evidence)
        wrong = np.abs(log_total) > TOTAL_TOLERANCE
        if evidence is not None:
            wrong &= (evidence == NO_EVIDENCE).all(axis=1) | (log_total > 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            with np.errstate(over="ignore"):
                total = np.exp(log_total[row])
            raise ValueError(
                f"The probabilities of row {row} add up to {total:.6g} instead of 1: normalise the tables, conditional "
                "ones for each configuration of the parents."
            )

    def _check_possible(self, log_prob: Floats, evidence: Codes | None) -> None:
        impossible = np.isneginf(log_prob)
        if impossible.any():
            row = int(np.argmax(impossible))
            if evidence is None or (evidence[row] == NO_EVIDENCE).all():
                raise ValueError(f"In row {row} every outcome has probability zero.")
            raise ImpossibleEvidenceError(row)

    # Maxima -------------------------------------------------------------------------------------------------

    def _max_product(self, tables: Sequence[Floats], evidence: Codes | None) -> tuple[Codes, Floats]:
        """The best states of the maximised class variables (0 of the others), and the log of what they are worth."""
        n_rows = check_tables(self.sizes, self.scopes, tables)
        codes = np.zeros((n_rows, len(self.sizes)), dtype=np.int64)
        log_best = np.empty(n_rows)
        maximise = np.array([not self.last or variable in self.last for variable in self.order])

        def chunk(rows: slice, lines: Floats, lost: Marks) -> None:
            total = np.empty(len(lost))
            self._kernels.mode(self._plan, lines, maximise, TIE_TOLERANCE, codes[rows], total)
            log_best[rows] = total[: rows.stop - rows.start]

        self._run(tables, evidence, chunk, logs=True, n_lines=self._belief_lines)
        return codes, log_best

    # Plans --------------------------------------------------------------------------------------------------

    @property
    def _kernels(self) -> ModuleType:
        from pmdc.inference import kernels

        return kernels

    @cached_property
    def _plan(self) -> Plan:
        """The tree in arrays, for the compiled loops."""
        n_axes = self.width + 1
        cliques = [self.cliques[variable] for variable in self.order]
        scope, sizes = np.zeros((len(cliques), n_axes), dtype=np.int64), np.ones((len(cliques), n_axes), dtype=np.int64)
        message = np.cumsum([0, *(self._cells(clique.separator) for clique in cliques)])
        conditional = message[-1] + np.cumsum([0, *(self._cells(clique.scope) for clique in cliques)])
        start, place, is_table, strides = [0], [], [], []
        for c, clique in enumerate(cliques):
            scope[c, : len(clique.scope)] = clique.scope
            sizes[c, : len(clique.scope)] = [self.sizes[v] for v in clique.scope]
            for i in clique.factors:
                place.append(self._table_place[i])
                strides.append(self._strides(self.scopes[i], clique.scope))
            for child in clique.children:
                place.append(message[self._position[child]])
                strides.append(self._strides(self.cliques[child].separator, clique.scope))
            is_table += [True] * len(clique.factors) + [False] * len(clique.children)
            start.append(len(place))
        return self._kernels.Plan(
            scope=scope,
            sizes=sizes,
            width=np.array([len(clique.separator) for clique in cliques]),
            cells=np.diff(message),
            n_table_lines=self._table_cells,
            factor_start=np.array(start),
            factor_place=np.array(place),
            factor_is_table=np.array(is_table),
            factor_strides=np.array(strides),
            message=message[:-1],
            conditional=conditional[:-1],
        )

    def _projection(self, targets: Sequence[Sequence[int]]) -> tuple[Projection, int]:
        """What to sum on the way from the root, and the number of lines that all of it takes."""
        cliques = [self.cliques[variable] for variable in self.order]
        belief = self._lines + np.cumsum([0, *(self._cells(clique.separator) for clique in cliques)])
        end = int(belief[-1])
        at_home: dict[int, list[tuple[int, Sequence[int]]]] = {}
        for target in targets:
            home = self._home(target)
            at_home.setdefault(home, []).append((end, target))
            end += self._cells(target)
        start, place, strides = [0], [], []
        for clique in cliques:
            for child in clique.children:
                place.append(int(belief[self._position[child]]))
                strides.append(self._strides(self.cliques[child].separator, clique.scope))
            for first, target in at_home.get(clique.scope[0], []):
                place.append(first)
                strides.append(self._strides(target, clique.scope))
            start.append(len(place))
        projection = self._kernels.Projection(
            start=np.array(start),
            place=np.array(place, dtype=np.int64),
            strides=np.array(strides, dtype=np.int64).reshape(len(place), self.width + 1),
            belief=belief[:-1],
            target=int(belief[-1]),
        )
        return projection, end

    def _home(self, target: Sequence[int]) -> int:
        """The smallest clique that has all class variables of the target; of equals, the first one eliminated."""
        homes = [v for v in self.order if set(target) <= set(self.cliques[v].scope)]
        if not homes:
            raise ValueError(f"No clique has all of {tuple(target)}: give them in together.")
        return min(homes, key=lambda v: self._cells(self.cliques[v].scope))

    def _strides(self, axes: Sequence[int], scope: Sequence[int]) -> list[int]:
        """How far apart, in an array with these axes, neighbouring states of each class variable of a clique are."""
        strides, step = dict.fromkeys(scope, 0), 1
        for variable in reversed(axes):
            strides[variable] = step
            step *= self.sizes[variable]
        return [*strides.values(), *[0] * (self.width + 1 - len(scope))]

    # Rows ---------------------------------------------------------------------------------------------------

    def _run(
        self,
        tables: Sequence[Floats],
        evidence: Codes | None,
        work_on: Callable[[slice, Floats, Marks], None],
        logs: bool,
        n_lines: int,
    ) -> None:
        """Work on all rows, in chunks of blocks, by as many threads as there are cores and as the budget allows.

        A row is never mixed with another, so its bits do not depend on chunks or threads.
        """
        n_rows = len(tables[0])
        block, n_blocks, n_threads = self._schedule(n_rows, n_lines)
        step = block * n_blocks
        chunks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

        def chunk(rows: slice, lines: Floats) -> None:
            work_on(rows, lines, self._load(tables, evidence, rows, lines, logs))

        run_chunks(chunk, chunks, (n_blocks * self._table_cells + n_lines, block), n_threads)

    def _schedule(self, n_rows: int, n_lines: int) -> tuple[int, int, int]:
        """Rows of a block, blocks of a chunk, and threads."""
        from numba import config

        n_threads = min(config.NUMBA_NUM_THREADS, max(1, self.memory_budget // (_BLOCK_ROWS[0] * self.bytes_per_row)))
        if n_rows * (self.cells + self._table_cells) < _WORK_FOR_THREADS:
            n_threads = 1
        affordable = self.memory_budget // (n_threads * self.bytes_per_row)
        share = -(-n_rows // n_threads)
        block = max(_BLOCK_BYTES // (8 * (n_lines + self._table_cells)), _BLOCK_ROWS[0])
        block = max(1, min(block, _BLOCK_ROWS[1], affordable, share))
        n_blocks = min(_CHUNK_BYTES // (8 * self._table_cells * block), affordable // block, -(-share // block))
        return block, max(1, n_blocks), n_threads

    def _load(
        self, tables: Sequence[Floats], evidence: Codes | None, rows: slice | Codes, lines: Floats, logs: bool
    ) -> Marks:
        """Read the tables of these rows into blocks; marks the rows with a probability too small for a number."""
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        width = lines.shape[1]
        lost = np.zeros(-(-n_rows // width) * width, dtype=bool)
        for i, table in enumerate(tables):
            flat = np.ascontiguousarray(table[rows], dtype=np.float64).reshape(n_rows, -1)
            place = self._table_place[i]
            if self._kernels.load(flat, place, self._table_cells, TOTAL_TOLERANCE, logs, lines, lost):
                raise ValueError(f"tables[{i}] holds NaN or a probability above one: give log probabilities.")
        if evidence is not None:
            self._enter_evidence(evidence[rows], lines, -np.inf if logs else 0.0)
        return lost

    def _enter_evidence(self, evidence: Codes, lines: Floats, zero: float) -> None:
        """Set what contradicts the evidence to zero, in one factor of each class variable that is known somewhere."""
        for variable in np.flatnonzero((evidence != NO_EVIDENCE).any(axis=0)).tolist():
            factor = self._evidence_factors[variable]
            scope = self.scopes[factor]
            stride = self._cells(scope[scope.index(variable) + 1 :])
            states = np.arange(self._cells(scope)) // stride % self.sizes[variable]
            known = np.ascontiguousarray(evidence[:, variable])
            self._kernels.observe(known, states, self._table_place[factor], self._table_cells, zero, lines)


def _sorted(codes: Codes, log_prob: Floats, modes: Codes) -> tuple[Codes, Floats]:
    """Outcomes by descending log probability, then by their codes, the mode first."""
    n_rows, k, n_variables = codes.shape
    is_mode = (codes == modes[:, None]).all(axis=2)
    crowded = ~is_mode.any(axis=1)  # more outcomes than fit are as probable as the mode
    codes[crowded, -1], log_prob[crowded, -1], is_mode[crowded, -1] = modes[crowded], log_prob[crowded, 0], True
    flat = codes.reshape(-1, n_variables)
    rows = np.repeat(np.arange(n_rows), k)
    order = np.lexsort((*flat.T[::-1], -log_prob.ravel(), ~is_mode.ravel(), rows))
    codes, log_prob = flat[order].reshape(codes.shape), log_prob.ravel()[order].reshape(n_rows, k)
    return codes, log_prob
