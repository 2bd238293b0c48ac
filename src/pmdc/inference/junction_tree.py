"""Exact inference in a product of factors over class variables, for a batch of rows at once.

A `JunctionTree` is built once from the scopes of the factors, which determine its cost, and then run on their log
tables, which have one entry for each row. The semiring is a parameter: sums give marginals and the probability of the
evidence, maxima the most probable outcomes, and sums followed by maxima the most probable states of some class
variables (marginal MAP). The loops are in `kernels.py`.

In a Bayesian network the factors are the conditional tables, one for each class variable (`factors.family_scopes`).
Other factors are allowed too: a factor may be the distribution of several class variables given others, and there may
be more or fewer factors than class variables.

The tree has one clique for each class variable: the variable that is eliminated there, and its separator. Its message
goes to the clique of the separator's variable that is eliminated next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.inference.batches import run_chunks
from pmdc.inference.elimination import eliminate, interaction_graph
from pmdc.inference.evidence import NO_EVIDENCE, ImpossibleEvidenceError
from pmdc.inference.factors import Scopes, check_scopes, check_tables, outcome_log_prob

if TYPE_CHECKING:
    from pmdc.inference.kernels import Index

MEMORY_BUDGET = 2**30
"""Default limit in bytes for the memory that inference uses besides its input and output."""

_BLOCK_BYTES, _BLOCK_ROWS = 2**21, (32, 512)
"""Rows are processed in blocks of this size, about that of a core's cache, and within these numbers of rows."""

_MAX_VARIANTS = 100
"""Number of trees for groups of class variables that are kept for later calls."""

_MAX_KEPT_TARGETS, _MAX_KEPT_BYTES = 8, 2**20
"""Number and size of the target indices that are kept for later calls."""

_WORK_FOR_THREADS = 2**22
"""Cells of all rows above which threads are started: about 20 ms of work."""

TOTAL_TOLERANCE = 1e-5
"""Tolerance for the log of a row's total probability: enough for tables computed in float32."""

TIE_TOLERANCE = 1e-12
"""Relative difference of two log probabilities up to which they are a tie."""


class NetworkTooWideError(ValueError):
    """Raised if exact inference needs more memory for a single row than the budget allows.

    Attributes
    ----------
    bytes_per_row : int
    largest_clique : int
        The number of cells of the largest clique.
    """

    def __init__(self, message: str, bytes_per_row: int = 0, largest_clique: int = 0):
        super().__init__(message)
        self.bytes_per_row, self.largest_clique = bytes_per_row, largest_clique


@dataclass(frozen=True)
class Clique:
    """The clique in which a class variable is eliminated, with its neighbours in the tree."""

    scope: tuple[int, ...]
    """The eliminated class variable, then its separator, in elimination order."""
    parent: int | None
    children: tuple[int, ...]
    factors: tuple[int, ...]
    """The factors that are multiplied in this clique."""

    @property
    def separator(self) -> tuple[int, ...]:
        return self.scope[1:]


class JunctionTree:
    """A junction tree over class variables, built once and run on batches of log tables.

    The distribution of a row is the product of its factors. It must be normalised, except in `weighted_marginals`. No
    entry of a log table may be above zero.

    Parameters
    ----------
    sizes : sequence of int
        The number of states of each class variable.
    scopes : sequence of tuples of int
        The class variables of each factor: the axes of its table, after the axis of the rows. Each class variable must
        be in at least one scope.
    together : sequence of tuples of int
        Groups of class variables that must share a clique, so that `joint` can compute their distribution.
    last : sequence of int
        Class variables to eliminate after all others (`marginal_mode`).
    order : sequence of int, optional
        An elimination order to use, unless one is found that is as cheap and whose largest clique is no larger. With
        `together` or `last`, whose class variables it has to move to the end, any cheaper one is used.
    memory_budget : int
        Limit in bytes for the memory besides input and output. Rows are processed in blocks that fit into it.

    Attributes
    ----------
    order : tuple of int
        The elimination order: the cheapest of min-fill, min-weight and, for up to ten class variables, all orders; or
        the one that was given, see above.
    cliques : tuple of Clique
        The clique of each class variable.
    width : int
        The number of class variables in the largest clique, minus one.
    cells : int
        The number of cells in all cliques; the time for a row is proportional to it.
    largest_clique : int
        The number of cells in the largest clique.
    bytes_per_row : int
        An upper bound on the memory for each row besides input and output. It includes the index arrays of the tree,
        which are shared by all rows.

    Raises
    ------
    ValueError
        If a scope or the order is not valid, or a class variable is in no scope.
    NetworkTooWideError
        If a single row does not fit into the memory budget.

    Examples
    --------
    >>> import numpy as np
    >>> tree = JunctionTree(sizes=[2, 2], scopes=[(0,), (0, 1)])  # tables of P(Y0) and P(Y1 | Y0)
    >>> tree.width
    1
    >>> tables = [np.log([[0.4, 0.6]]), np.log([[[0.5, 0.5], [0.25, 0.75]]])]
    >>> tree.marginals(tables)[1]
    array([[0.35, 0.65]])
    >>> tree.marginals(tables, evidence=np.array([[-1, 0]]))[0].round(4)  # Y1 is known to be 0
    array([[0.5714, 0.4286]])
    """

    normalised: bool = True
    """Whether an error is raised for tables that do not add up to one."""

    def __init__(
        self,
        sizes: Sequence[int],
        scopes: Scopes,
        *,
        together: Iterable[Sequence[int]] = (),
        last: Sequence[int] = (),
        order: Sequence[int] | None = None,
        memory_budget: int = MEMORY_BUDGET,
    ):
        self.sizes = tuple(int(size) for size in sizes)
        self.scopes = tuple(tuple(int(v) for v in scope) for scope in scopes)
        self.last = frozenset(last)
        self.memory_budget = int(memory_budget)
        check_scopes(self.sizes, self.scopes)
        if order is not None:
            order = [int(v) for v in order]
            if sorted(order) != list(range(len(self.sizes))):
                raise ValueError(f"order={order!r} must contain each of the {len(self.sizes)} class variables once.")
        together = [tuple(group) for group in together]
        graph = interaction_graph(len(self.sizes), (*self.scopes, *together))
        eliminated = eliminate(self.sizes, graph, self.last, order, no_larger=not (together or last))
        self.order = tuple(eliminated)
        self._position = {variable: i for i, variable in enumerate(self.order)}
        self.cliques = self._assemble(eliminated)
        self.width = max(len(clique.scope) for clique in self.cliques) - 1
        self.cells = sum(self._cells(clique.scope) for clique in self.cliques)
        self.largest_clique = max(self._cells(clique.scope) for clique in self.cliques)
        self._eliminated = [self.cliques[variable] for variable in self.order]
        self._table_place = [0, *accumulate(self._cells(scope) for scope in self.scopes)]
        message_place = [0, *accumulate(self._cells(clique.separator) for clique in self._eliminated)]
        self._message_place = dict(zip(self.order, message_place, strict=False))
        self._n_messages, self._table_cells = message_place[-1], self._table_place[-1]
        self._n_lines = self._n_messages + self._table_cells + 1
        answer = max([self._table_cells, sum(self.sizes), *(self._cells(group) for group in together)])
        index = sum(
            self._cells(clique.separator) * (len(clique.factors) + len(clique.children)) for clique in self.cliques
        )
        # Messages, tables, conditionals, beliefs, temporary arrays, and the indices of the factors and of the targets.
        temporary = self._table_cells + max(self.sizes) + 4
        self.bytes_per_row = 8 * (self._n_lines + self.cells + self._n_messages + answer + temporary + 2 * index)
        self._refuse_too_wide()

    def _assemble(self, eliminated: dict[int, tuple[int, ...]]) -> tuple[Clique, ...]:
        # The message goes to the clique of the separator's first variable, which contains the whole separator.
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
    def _evidence_factors(self) -> dict[int, int]:
        """The factor in which evidence on each class variable is entered.

        The first factor whose scope ends with the variable, as its conditional table does, or else the first with it.
        """
        numbered = list(enumerate(self.scopes))[::-1]
        first = {variable: i for i, scope in numbered for variable in scope}
        return first | {scope[-1]: i for i, scope in numbered}

    def _refuse_too_wide(self) -> None:
        if self.bytes_per_row > self.memory_budget:
            raise NetworkTooWideError(
                f"Exact inference in this network of {len(self.sizes)} class variables has width {self.width} (a table "
                f"over {self.width + 1} class variables) and needs {self.bytes_per_row:,} bytes for each row; "
                f"memory_budget is {self.memory_budget:,} bytes. Learn a sparser network with max_clique_cells "
                "or a lower max_parents, merge rare states of class variables that have many, or raise memory_budget.",
                self.bytes_per_row,
                self.largest_clique,
            )

    def __repr__(self) -> str:
        cost = f"width={self.width}, bytes_per_row={self.bytes_per_row}"
        return f"JunctionTree({len(self.sizes)} class variables, {cost})"

    def __getstate__(self) -> dict[str, Any]:
        rebuilt = "_index", "_known_targets", "_variants"
        return {name: value for name, value in self.__dict__.items() if name not in rebuilt}

    def variant(self, together: Sequence[int] = (), last: Sequence[int] = ()) -> JunctionTree:
        """Return a tree of the same factors with other values of `together` and `last`; trees are cached."""
        variants = self.__dict__.setdefault("_variants", {})
        key = frozenset(together), frozenset(last)
        if key not in variants:
            try:
                variants[key] = JunctionTree(
                    self.sizes,
                    self.scopes,
                    together=[together],
                    last=last,
                    order=self.order,
                    memory_budget=self.memory_budget,
                )
            except NetworkTooWideError as error:
                raise NetworkTooWideError(
                    f"The joint distribution of {len(together or last)} class variables is too large. {error} Or "
                    "choose fewer class variables."
                ) from None
            if len(variants) > _MAX_VARIANTS:
                variants.pop(next(iter(variants)))
        return variants[key] if self.normalised else variants[key].unnormalised()

    def unnormalised(self) -> JunctionTree:
        """Return the same tree for tables that need not add up to one; every answer is normalised all the same."""
        other = copy(self)
        other.normalised = False
        return other

    def holds(self, variables: Sequence[int]) -> bool:
        """Return whether a clique contains all these class variables, so that `joint` can be used."""
        return any(set(variables) <= set(clique.scope) for clique in self.cliques)

    # Questions ---------------------------------------------------------------------------------------------

    def marginals(self, tables: Sequence[Floats], evidence: Codes | None = None) -> list[Floats]:
        """Return the distribution of each class variable in each row.

        Parameters
        ----------
        tables : sequence of arrays of shape (n_rows, *sizes of the scope)
            The log table of each factor.
        evidence : array of shape (n_rows, K), optional
            Codes of the known states; -1 is unknown.

        Returns
        -------
        list of K arrays of shape (n_rows, size)

        Raises
        ------
        ValueError
            If the probabilities of a row do not add up to one.
        ImpossibleEvidenceError
            If the evidence of a row has probability zero.
        """
        return self.joint(tables, [(variable,) for variable in range(len(self.sizes))], evidence)

    def factor_marginals(self, tables: Sequence[Floats], evidence: Codes | None = None) -> list[Floats]:
        """Return the joint distribution of the class variables of each factor, in the shapes of `tables`."""
        return self.joint(tables, self.scopes, evidence)

    def joint(
        self, tables: Sequence[Floats], targets: Sequence[Sequence[int]], evidence: Codes | None = None
    ) -> list[Floats]:
        """Return the joint distribution of each target, a group of class variables that share a clique."""
        answers, log_total = self._sum_product(tables, targets, evidence)
        self._check_totals(log_total, evidence)
        return self._normalise(answers, targets)

    def weighted_marginals(
        self, tables: Sequence[Floats], evidence: Codes | None = None
    ) -> tuple[Floats, list[Floats]]:
        """Return the log of the total of each row and the marginals, for tables that need not add up to one."""
        targets = [(variable,) for variable in range(len(self.sizes))]
        answers, log_total = self._sum_product(tables, targets, evidence)
        self._check_possible(log_total, evidence)
        return log_total, self._normalise(answers, targets)

    def log_evidence(self, tables: Sequence[Floats], evidence: Codes | None = None) -> Floats:
        """Return the log probability of the evidence in each row; -inf where it is impossible."""
        return self._sum_out(tables, evidence, lambda *_: None)

    def mode(self, tables: Sequence[Floats], evidence: Codes | None = None) -> tuple[Codes, Floats]:
        """Return the most probable outcome of each row and its log probability (together with the evidence).

        Ties, up to rounding, are broken as follows: from the class variable eliminated last to the first, each takes
        the first of its states that is best given the states already chosen. Whether probabilities add up to one is
        not checked, because the maximum does not depend on the total.
        """
        codes = self._max_product(tables, 1, evidence)[0][:, 0]
        return codes, outcome_log_prob(self.scopes, tables, codes)

    def top(self, tables: Sequence[Floats], k: int, evidence: Codes | None = None) -> tuple[Codes, Floats]:
        """Return the k most probable outcomes of each row, shape (n_rows, k, K), and their log probabilities.

        The first one is the mode. Outcomes with the same log probability are sorted by their codes; which of them are
        left out, if not all fit, depends on the elimination order.
        """
        codes, _ = self._max_product(tables, k, evidence)
        rows = np.repeat(np.arange(len(codes)), k)
        log_prob = outcome_log_prob(self.scopes, tables, codes.reshape(-1, len(self.sizes)), rows).reshape(-1, k)
        if evidence is not None:  # there may be fewer than k possible outcomes
            contradicted = (evidence[:, None] != NO_EVIDENCE) & (evidence[:, None] != codes)
            log_prob[contradicted.any(axis=2)] = -np.inf
        return _sorted(codes, log_prob)

    def sample(
        self, tables: Sequence[Floats], n: int, random: np.random.RandomState, evidence: Codes | None = None
    ) -> Codes:
        """Draw outcomes from the distribution given the evidence, shape (n_rows, n, K)."""
        uniform = random.random_sample((len(tables[0]), n, len(self.sizes)))
        codes = np.empty(uniform.shape, dtype=np.int64)

        def draw(rows: slice | Codes, conditional: Floats, _: Floats) -> None:
            drawn = np.zeros_like(codes[rows])
            self._kernels.draw(self._index.cliques, *self._strides, conditional, uniform[rows], drawn)
            codes[rows] = drawn

        self._check_totals(self._sum_out(tables, evidence, draw), evidence)
        return codes

    def marginal_mode(self, tables: Sequence[Floats], evidence: Codes | None = None) -> tuple[Codes, Floats]:
        """Return the most probable states of the class variables in `last`, the others summed out (marginal MAP).

        Returns
        -------
        codes : array of shape (n_rows, K)
            Only the columns in `last` are meaningful. Ties are broken as in `mode`.
        log_prob : array of shape (n_rows,)
            Their log probability, together with the evidence.
        """
        codes, log_best = self._max_product(tables, 1, evidence)
        return codes[:, 0], log_best

    # Sums ---------------------------------------------------------------------------------------------------

    def _sum_product(
        self, tables: Sequence[Floats], targets: Sequence[Sequence[int]], evidence: Codes | None
    ) -> tuple[list[Floats], Floats]:
        """Return the distribution of each target, shape (n_rows, cells), and the log probability of the evidence.

        The distributions are zero where the evidence is impossible.
        """
        index, n_beliefs = self._targets(targets)
        answers = [np.empty((len(tables[0]), self._cells(target))) for target in targets]

        def read(rows: slice | Codes, conditional: Floats, belief: Floats) -> None:
            belief[:] = 0.0
            self._kernels.distribute(*index, conditional, belief)
            first = self._n_messages
            for answer in answers:
                end = first + answer.shape[1]
                answer[rows] = belief[first:end].T
                first = end

        log_total = self._sum_out(tables, evidence, read, n_beliefs)
        return answers, log_total

    def _normalise(self, answers: Sequence[Floats], targets: Sequence[Sequence[int]]) -> list[Floats]:
        for answer in answers:
            answer /= answer.sum(axis=1, keepdims=True)
        shapes = [tuple(self.sizes[v] for v in target) for target in targets]
        return [answer.reshape(len(answer), *shape) for answer, shape in zip(answers, shapes, strict=True)]

    def _sum_out(
        self,
        tables: Sequence[Floats],
        evidence: Codes | None,
        read: Callable[[slice | Codes, Floats, Floats], None],
        n_beliefs: int = 0,
    ) -> Floats:
        """Sum out all class variables and return the log of the total of each row.

        `read(rows, conditional, belief)` is called for each block, and again for the rows in which a product of
        probabilities underflowed, after these were computed with logarithms.
        """
        n_rows = check_tables(self.sizes, self.scopes, tables)
        log_total = np.zeros(n_rows)

        def block(rows: slice, buffer: Floats) -> None:
            lines, conditional, belief = self._split(buffer, rows.stop - rows.start, self.cells, n_beliefs)
            lost = self._load(tables, evidence, rows, lines, logs=False)
            self._kernels.collect(*self._index, lines, conditional, log_total[rows], lost)
            read(rows, conditional, belief)
            if lost.any():
                again = rows.start + np.flatnonzero(lost)
                lines, conditional, belief = self._split(buffer, len(again), self.cells, n_beliefs)
                self._load(tables, evidence, again, lines, logs=True)
                total = np.zeros(len(again))
                self._kernels.collect_log(*self._index, len(self.sizes), lines, conditional, total)
                log_total[again] = total
                read(again, conditional, belief)

        self._run(block, n_rows, self._n_lines + self.cells + n_beliefs)
        return log_total

    def _check_totals(self, log_total: Floats, evidence: Codes | None) -> None:
        """Raise ValueError if the evidence is impossible, or if the probabilities of a row do not add up to one."""
        if evidence is not None or not self.normalised:
            self._check_possible(log_total, evidence)
        if not self.normalised:
            return
        wrong = np.abs(log_total) > TOTAL_TOLERANCE
        if evidence is not None:
            wrong &= (evidence == NO_EVIDENCE).all(axis=1) | (log_total > 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            with np.errstate(over="ignore"):
                total = np.exp(log_total[row])
            raise ValueError(
                f"tables: the probabilities of row {row} add up to {total:.6g} instead of 1. Normalise each table; a "
                "conditional table for each configuration of the parents."
            )

    def _check_possible(self, log_prob: Floats, evidence: Codes | None) -> None:
        impossible = np.isneginf(log_prob)
        if impossible.any():
            row = int(np.argmax(impossible))
            if evidence is None or (evidence[row] == NO_EVIDENCE).all():
                raise ValueError(f"tables: in row {row} every outcome has probability zero.")
            raise ImpossibleEvidenceError(row)

    # Maxima -------------------------------------------------------------------------------------------------

    def _max_product(self, tables: Sequence[Floats], k: int, evidence: Codes | None) -> tuple[Codes, Floats]:
        """Find the k best outcomes, shape (n_rows, k, K), and the log of the maximum.

        With `last`, only these class variables are maximised; the codes of the others are 0.
        """
        n_rows = check_tables(self.sizes, self.scopes, tables)
        n_summed = len(self.sizes) - len(self.last) if self.last else 0
        codes, log_best = np.zeros((n_rows, k, len(self.sizes)), dtype=np.int64), np.zeros(n_rows)

        def block(rows: slice, buffer: Floats) -> None:
            lines, conditional = self._split(buffer, rows.stop - rows.start, 0)
            self._load(tables, evidence, rows, lines, logs=True)
            self._kernels.collect_log(*self._index, n_summed, lines, conditional, log_best[rows])
            self._kernels.search(
                *self._index, *self._strides, n_summed, lines, TIE_TOLERANCE, log_best[rows], codes[rows]
            )

        self._run(block, n_rows, self._n_lines)
        self._check_possible(log_best, evidence)
        return codes, log_best

    # Arrays for the kernels ---------------------------------------------------------------------------------

    @property
    def _kernels(self) -> ModuleType:
        from pmdc.inference import kernels

        return kernels

    @cached_property
    def _index(self) -> Index:
        """The lines of the factors of each clique: its tables and the messages of its children."""
        tables = [self._n_messages + place for place in self._table_place]
        operands = [
            [(tables[i], self.scopes[i]) for i in clique.factors] + self._child_separators(clique)
            for clique in self._eliminated
        ]
        return self._line_index(operands)

    def _targets(self, targets: Sequence[Sequence[int]]) -> tuple[Index, int]:
        """Return the index of the targets for `distribute` and the number of lines of `belief`."""
        key = tuple(tuple(target) for target in targets)
        known = self.__dict__.setdefault("_known_targets", {})
        found = known.get(key)
        if found is None:
            operands, n_lines = [self._child_separators(clique) for clique in self._eliminated], self._n_messages
            for target in key:
                operands[self._position[self._home(target)]].append((n_lines, target))
                n_lines += self._cells(target)
            found = self._line_index(operands), n_lines
            if found[0].at.nbytes <= _MAX_KEPT_BYTES:
                if len(known) >= _MAX_KEPT_TARGETS:
                    known.clear()
                known[key] = found
        return found

    def _child_separators(self, clique: Clique) -> list[tuple[int, Sequence[int]]]:
        return [(self._message_place[child], self.cliques[child].separator) for child in clique.children]

    def _line_index(self, operands: Sequence[Sequence[tuple[int, Sequence[int]]]]) -> Index:
        """Return the lines of the operands of each clique, given as first line and scope."""
        cells = [self._cells(clique.separator) for clique in self._eliminated]
        at = np.empty(sum(n * len(here) for n, here in zip(cells, operands, strict=True)), dtype=np.int64)
        cliques: list[tuple[int, ...]] = []
        step: list[int] = []
        n_at = n_cells = 0
        for clique, n, here in zip(self._eliminated, cells, operands, strict=True):
            variable, *separator = clique.scope
            cliques.append((self.sizes[variable], n, len(here), len(step), n_at, n_cells))
            lines = at[n_at : n_at + n * len(here)].reshape(n, len(here))
            for column, (first, scope) in enumerate(here):
                strides, grid = self._strides_of(scope), np.array(first)
                for v in separator:
                    grid = np.add.outer(grid, strides.get(v, 0) * np.arange(self.sizes[v]))
                lines[:, column] = grid.ravel()
                step.append(strides.get(variable, 0))
            n_at += lines.size
            n_cells += n * self.sizes[variable]
        return self._kernels.Index(np.array(cliques), at, np.array(step, dtype=np.int64))

    @cached_property
    def _strides(self) -> tuple[Codes, Codes]:
        """The scope of each clique and the strides of its separator's configurations, padded; shape (K, width + 1)."""
        scope, stride = np.zeros((2, len(self.order), self.width + 1), dtype=np.int64)
        for c, clique in enumerate(self._eliminated):
            scope[c, : len(clique.scope)] = clique.scope
            stride[c, 1 : len(clique.scope)] = list(self._strides_of(clique.separator).values())[::-1]
        return scope, stride

    def _home(self, target: Sequence[int]) -> int:
        """Return the smallest clique with all class variables of the target; of equals, the first one eliminated."""
        homes = [v for v in self.order if set(target) <= set(self.cliques[v].scope)]
        if not homes:
            raise ValueError(f"No clique has all of the class variables {tuple(target)}: add them to together.")
        return min(homes, key=lambda v: self._cells(self.cliques[v].scope))

    def _strides_of(self, scope: Sequence[int]) -> dict[int, int]:
        """Return the number of cells from each class variable's state to the next in a table with this scope."""
        strides, step = {}, 1
        for variable in reversed(scope):
            strides[variable] = step
            step *= self.sizes[variable]
        return strides

    # Rows ---------------------------------------------------------------------------------------------------

    def _run(self, work: Callable[[slice, Floats], None], n_rows: int, n_lines: int) -> None:
        """Work on all rows in blocks, in threads if there are many rows.

        Rows are independent, so neither the blocks nor the threads change a result.
        """
        block, n_threads = self._schedule(n_rows, n_lines)
        blocks = [slice(start, min(start + block, n_rows)) for start in range(0, n_rows, block)]
        run_chunks(work, blocks, n_lines * block, n_threads)

    def _schedule(self, n_rows: int, n_lines: int) -> tuple[int, int]:
        """Return the number of rows in a block and the number of threads."""
        from numba import config

        n_threads = min(config.NUMBA_NUM_THREADS, max(1, self.memory_budget // (_BLOCK_ROWS[0] * self.bytes_per_row)))
        if n_rows * (self.cells + self._table_cells) < _WORK_FOR_THREADS:
            n_threads = 1
        affordable = self.memory_budget // (n_threads * self.bytes_per_row)
        block = min(max(_BLOCK_BYTES // (8 * n_lines), _BLOCK_ROWS[0]), _BLOCK_ROWS[1])
        return max(1, min(block, affordable, -(-n_rows // n_threads))), n_threads

    def _split(self, buffer: Floats, n_rows: int, *n_lines: int) -> list[Floats]:
        """Split a buffer into messages and tables, and matrices with these numbers of lines."""
        parts, first = [], 0
        for n in (self._n_lines, *n_lines):
            parts.append(buffer[first : first + n * n_rows].reshape(n, n_rows))
            first += n * n_rows
        return parts

    def _load(
        self, tables: Sequence[Floats], evidence: Codes | None, rows: slice | Codes, lines: Floats, logs: bool
    ) -> Marks:
        """Read the tables of these rows; return in which rows a probability underflows."""
        loaded = lines[self._n_messages :]
        lines[-1] = 0.0
        for i, table in enumerate(tables):
            first, end = self._table_place[i : i + 2]
            loaded[first:end] = table[rows].reshape(-1, end - first).T
        if not loaded.max() <= TOTAL_TOLERANCE:
            for i, table in enumerate(tables):
                if not table[rows].max() <= TOTAL_TOLERANCE:
                    raise ValueError(f"tables[{i}] holds NaN or a probability above one: give log probabilities.")
        lost = np.zeros(lines.shape[1], dtype=bool)
        log_tiny = np.log(self._kernels.TINY)
        if not logs and loaded.min() < log_tiny:
            lost = ((loaded < log_tiny) & (loaded > -np.inf)).any(axis=0)
        if evidence is not None:
            self._enter_evidence(evidence[rows], loaded)
        if not logs:
            with np.errstate(under="ignore"):
                np.exp(loaded, out=loaded)
        return lost

    def _enter_evidence(self, evidence: Codes, loaded: Floats) -> None:
        """Set what contradicts the evidence to probability zero, in one factor of each known class variable."""
        for variable in np.flatnonzero((evidence != NO_EVIDENCE).any(axis=0)).tolist():
            factor = self._evidence_factors[variable]
            stride = self._strides_of(self.scopes[factor])[variable]
            first, end = self._table_place[factor : factor + 2]
            states = np.arange(end - first) // stride % self.sizes[variable]
            known = evidence[:, variable]
            np.copyto(loaded[first:end], -np.inf, where=(states[:, None] != known) & (known != NO_EVIDENCE))


def _sorted(codes: Codes, log_prob: Floats) -> tuple[Codes, Floats]:
    """Sort outcomes by descending log probability, then by their codes; the first (the mode) stays first."""
    n_rows, k, n_variables = codes.shape
    flat = codes.reshape(-1, n_variables)
    rows, later = np.divmod(np.arange(n_rows * k), k)
    order = np.lexsort((*flat.T[::-1], -log_prob.ravel(), later > 0, rows))
    return flat[order].reshape(codes.shape), log_prob.ravel()[order].reshape(n_rows, k)
