"""Phase P1: the scores of many families at once, in parallel, with what each of them costs or gains.

`TrainingScores` are log-likelihoods of the training rows minus a penalty, `HeldOutScores` are those of rows that the
models have not seen. Both remember what they have scored, and start the models of a family from those of a smaller
one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.progress import part_of
from pmdc.candidates.families import Family, ParentSet, best_coarser
from pmdc.learners.protocols import Adjustable, LocalLearner
from pmdc.learners.starts import WarmStarts
from pmdc.learners.tasks import local_task
from pmdc.scores.held_out import Evaluator, Rows, counted

Task = tuple[int, Family]
Parallel = Callable[..., list[Any]]

_MOST_IN_CHUNK, _CHUNKS = 16, 16
"""Families in one parallel task, enough to outweigh sending it, and tasks that a call has at least, if it can."""

_BATCH = 2**27
"""Bytes of answers that may wait to be read (128 MiB)."""


@dataclass(frozen=True)
class Rowwise:
    """Everything that the workers need.

    Attributes
    ----------
    learner : LocalLearner
    codes : array of shape (n, n_nodes)
    sizes : sequence of int
        The number of states of each node.
    n_classes : int
        The first nodes are the class variables.
    strengths : tuple of pairs of float, or None
        The strength C of the local models of each class variable without and with class variables as parents, where it
        was chosen for them.
    """

    learner: LocalLearner
    codes: Codes
    sizes: tuple[int, ...]
    n_classes: int
    strengths: tuple[tuple[float, float], ...] | None = None

    def learner_of(self, child: int, family: Family) -> Any:
        if self.strengths is None:
            return self.learner
        strength = self.strengths[child][bool(family.classes(self.n_classes))]
        return cast(Adjustable, self.learner).with_strength(strength)


class Scores(ABC):
    """Scores of families; the greater, the better.

    Parameters
    ----------
    work : Rowwise
    parallel : function that runs ``work(chunk, *rest)`` for many chunks (`pmdc._support.parallel.workers`)

    Attributes
    ----------
    known : list of dict
        For each class variable, family -> score.
    """

    def __init__(self, work: Rowwise, parallel: Parallel):
        self.work = work
        self.parallel = parallel
        self.known: list[dict[Family, float]] = [{} for _ in range(work.n_classes)]
        self._starts = WarmStarts()

    def __call__(self, tasks: Sequence[Task], last: bool = False) -> list[float]:
        """The scores of some families; `last` says that no larger ones follow, so that nothing is kept for them."""
        self._before(tasks)
        new = list(dict.fromkeys(task for task in tasks if task[1] not in self.known[task[0]]))
        done = 0
        for batch in self._batches(new):
            with part_of(done, len(batch), len(new)):
                found = self._evaluate(batch, wanted=not last)
            done += len(batch)
            values = []
            for (child, family), answer in zip(batch, found, strict=True):
                self.known[child][family] = value = self._read(child, family, answer, last)
                values.append(value)
            if not last:
                self._starts.keep(batch, values, [answer[-1] for answer in found])
        return [self.known[child][family] for child, family in tasks]

    def _batches(self, tasks: Sequence[Task]) -> list[Sequence[Task]]:
        return [tasks] if tasks else []

    def _evaluate(self, tasks: Sequence[Task], wanted: bool) -> list[tuple[Any, Any]]:
        with_starts = [(*task, self._starts.find(*task), wanted) for task in tasks]
        size = min(_MOST_IN_CHUNK, max(1, len(tasks) // _CHUNKS))
        chunks = [with_starts[i : i + size] for i in range(0, len(tasks), size)]
        return list(chain.from_iterable(self.parallel(self._worker(), chunks, *self._arguments())))

    @abstractmethod
    def _worker(self) -> Callable[..., Any]: ...

    @abstractmethod
    def _arguments(self) -> tuple[Any, ...]: ...

    def _before(self, tasks: Sequence[Task]) -> None:
        """Score what must be known before these families can be read."""
        return

    @abstractmethod
    def _read(self, child: int, family: Family, answer: Any, last: bool) -> float:
        """The score of a family from what a worker has answered."""

    def offered(self, child: int, family: Family) -> bool:
        """Whether a family is to be a candidate of the search."""
        return True

    def exceeds(self, child: int, family: Family, other: Family, among: int) -> bool:
        """Whether a family, the best of some, scores better than another by enough to be believed."""
        return self.known[child][family] > self.known[child][other]

    def settle(self, child: int, family: Family, tried: Sequence[Family]) -> None:
        """Let a family stand for its class variables: what was tried beside it and scores better is not believed."""
        return

    def fewer(self, child: int, family: Family) -> Family:
        """The family with a parent less that a family falls back on: of those scored, the one with the best score."""
        return best_coarser(self.known[child], family)

    def strength(self, child: int, family: Family) -> float | None:
        """How strongly the models of a family are to be shrunk towards those with a parent less, if it was chosen."""
        return None


class TrainingScores(Scores):
    """S(Y, D) = C(Y, D) - pen(D): Eq. 23.

    Parameters
    ----------
    penalty : function (child, family) -> pen(D)
    """

    def __init__(self, work: Rowwise, parallel: Parallel, penalty: Callable[[int, Family], float]):
        super().__init__(work, parallel)
        self.penalty = penalty

    def _worker(self) -> Callable[..., Any]:
        return _log_likelihoods

    def _arguments(self) -> tuple[Any, ...]:
        return (self.work,)

    def _read(self, child: int, family: Family, answer: Any, last: bool) -> float:
        return float(answer[0]) - self.penalty(child, family)


def _log_likelihoods(tasks: Sequence[Any], work: Rowwise) -> list[tuple[float, Any]]:
    """Phase P1 (Eq. 17) for some families: C(Y, D) of Eq. 20, the log-likelihoods of all parts summed.

    With them comes what larger sets may start from, where it is wanted.
    """
    answers = []
    for child, family, start, wanted in tasks:
        task = local_task(child, family, work.codes, work.sizes)
        value, own = work.learner_of(child, family).log_likelihood_from(task, start)
        answers.append((value, own if wanted else None))
    return answers


class HeldOutScores(Scores):
    """Log-likelihoods of rows that the models have not seen, after shrinkage; and their standard errors.

    *The guard against noise.* A family is offered to the search only if it scores better than every family with one
    parent less, or the best that stands for it, by more than `guard` standard errors of the difference; where sets with
    one parent less were not scored, than those that stand for any fewer. With d_i the difference in row i, the standard
    error of its sum over n rows is sqrt(n) times the standard deviation of d_i.
    The best of m that are tried for the same place is better by luck by about sqrt(2 ln m) standard errors (the
    greatest of m normal errors); it has to gain these too (`exceeds`).
    Where all rows gain the same the standard error is 0, however little that is: of models that are sure already, or of
    two rows. So z standard errors are also z^2 / 2 nats at least, which is where a likelihood ratio of one parameter
    has them.
    With ``guard=0`` families that are no better than a smaller one are left out, which no best network misses.

    Parameters
    ----------
    evaluator : Evaluator
    guard : float
    key : function family -> parent set
        What "a parent less" refers to: the class variables, or all parents.
    required : sequence of sets of int
        For each class variable the parents that it must have, which are not asked what they gain.
    memory_budget : int
        Bytes for the rows of families that larger ones are compared with; beyond it they are computed again.
    shrunk : bool
        Whether models are shrunk towards those with a parent less. Without it, absent configurations are answered by
        the uniform distribution, and no probability in a score is less than the machine precision.
    """

    def __init__(
        self,
        work: Rowwise,
        parallel: Parallel,
        evaluator: Evaluator,
        guard: float,
        key: Callable[[Family], ParentSet],
        required: Sequence[frozenset[int]],
        memory_budget: int,
        shrunk: bool = True,
    ):
        super().__init__(work, parallel)
        self.evaluator = evaluator
        self.shrunk = shrunk
        self.guard = guard
        self.key = key
        self.required = required
        self.memory_budget = memory_budget
        self._strengths: dict[Task, float] = {}
        self._fewer: dict[Task, Family] = {}
        self._rows: dict[Task, Floats] = {}
        self._bytes = 0
        self._refused: set[Task] = set()
        self._standing: dict[tuple[int, ParentSet], Family] = {}
        """The best family that a set of parents, or a subset of it, has to offer."""

    def _worker(self) -> Callable[..., Any]:
        return _held_out

    def _arguments(self) -> tuple[Any, ...]:
        return self.work, self.evaluator

    def _batches(self, tasks: Sequence[Task]) -> list[Sequence[Task]]:
        # Small sets first: larger ones are compared with them.
        ordered = sorted(tasks, key=lambda task: (len(self.key(task[1])), len(task[1].partition)))
        batches: list[Sequence[Task]] = []
        most = max(1, _BATCH // (16 * len(self.work.codes)))
        current: list[Task] = []
        for task in ordered:
            if current and (len(current) >= most or _rank(task, self.key) != _rank(current[-1], self.key)):
                batches.append(current)
                current = []
            current.append(task)
        return [*batches, current] if current else batches

    def _before(self, tasks: Sequence[Task]) -> None:
        missing: list[Task] = []
        for child, family in tasks if self.shrunk else ():
            while family.partition and not any(f in self.known[child] for f in family.coarser()):
                # What must be a parent goes last.
                gone = max(family.partition, key=lambda v: (v not in self.required[child], v))
                family = family.without(gone)
                missing.append((child, family))
        planned = set(tasks)
        missing = [task for task in dict.fromkeys(missing) if task not in planned]
        if missing:
            self(missing)

    def _read(self, child: int, family: Family, answer: Any, last: bool) -> float:
        value, strength = self._after_shrinkage(child, family, answer[0])
        if strength is not None:
            self._strengths[child, family] = strength
        score = float(np.dot(self.work.learner.sample_weight, value))
        self._stand(child, family, score, value)
        if not last:
            self._keep((child, family), value)
        return score

    def _after_shrinkage(self, child: int, family: Family, rows: Rows) -> tuple[Floats, float | None]:
        """The held-out log-probabilities that count, and the strength of the shrinkage that made them."""
        if family.partition and self.shrunk:
            fewer = self.rows(child, self.fewer(child, family))
        else:
            fewer = uniform_rows(self.work, child)
        return counted(rows, fewer, self.work.learner.sample_weight, self.shrunk)

    def fewer(self, child: int, family: Family) -> Family:
        """The best when it was first asked for: scores, strengths and the network to come are all shrunk towards it."""
        return self._fewer.setdefault((child, family), super().fewer(child, family))

    def rows(self, child: int, family: Family) -> Floats:
        """The held-out log-probabilities of a family that was scored."""
        if (child, family) not in self._rows:
            start = self._starts.find(child, family)
            [(answer, _)] = _held_out([(child, family, start, False)], self.work, self.evaluator)
            value, _ = self._after_shrinkage(child, family, answer)
            self._keep((child, family), value)
            return value
        return self._rows[child, family]

    def _keep(self, task: Task, value: Floats) -> None:
        while self._rows and self._bytes + value.nbytes > self.memory_budget:
            oldest = next(iter(self._rows))
            self._bytes -= self._rows.pop(oldest).nbytes
        self._rows[task] = value
        self._bytes += value.nbytes

    def _stand(self, child: int, family: Family, score: float, value: Floats) -> None:
        parents = self.key(family)
        subsets = [tuple(v for v in parents if v != gone) for gone in parents if gone not in self.required[child]]
        smaller = [self._standing[child, s] for s in subsets if (child, s) in self._standing]
        if len(smaller) < len(subsets):  # a chain, or a family of another kind: all that stand for fewer parents
            smaller += self._below(child, frozenset(parents))
        if not all(self._exceeds(child, score, value, other) for other in dict.fromkeys(smaller)):
            self._refused.add((child, family))
        known = self.known[child]
        own = self._standing.get((child, parents))
        standing = [*([own] if own is not None else []), *smaller]
        best = max(standing, key=known.__getitem__, default=None)
        if (child, family) not in self._refused and (best is None or score > known[best]):
            self._standing[child, parents] = family
        elif best is not None:
            self._standing[child, parents] = best

    def _below(self, child: int, parents: frozenset[int]) -> list[Family]:
        least = self.required[child] & parents
        return [
            family for (k, few), family in self._standing.items() if k == child and least <= frozenset(few) < parents
        ]

    def settle(self, child: int, family: Family, tried: Sequence[Family]) -> None:
        known = self.known[child]
        self._refused.update((child, other) for other in tried if known[other] > known[family])
        self._standing[child, self.key(family)] = family

    def exceeds(self, child: int, family: Family, other: Family, among: int) -> bool:
        if not super().exceeds(child, family, other, among):
            return False
        return self._exceeds(child, self.known[child][family], self.rows(child, family), other, among)

    def _exceeds(self, child: int, score: float, value: Floats, other: Family, among: int = 1) -> bool:
        gain = score - self.known[child][other]
        if gain <= 0 or not self.guard:
            return gain > 0
        errors = self.guard + math.sqrt(2 * math.log(among))
        if gain <= errors**2 / 2:
            return False
        return gain > errors * standard_error(value - self.rows(child, other), self.work.learner.sample_weight)

    def offered(self, child: int, family: Family) -> bool:
        return (child, family) not in self._refused

    def strength(self, child: int, family: Family) -> float | None:
        return self._strengths.get((child, family))


def _rank(task: Task, key: Callable[[Family], ParentSet]) -> tuple[int, int]:
    return len(key(task[1])), len(task[1].partition)


def uniform_rows(work: Rowwise, child: int) -> Floats:
    """The log-probabilities of the uniform distribution."""
    return np.full(len(work.codes), -np.log(work.sizes[child]))


def standard_error(differences: Floats, weights: Floats) -> float:
    """The standard error of the weighted sum of independent differences; a row of weight 3 counts as three rows."""
    n = weights.sum()
    if n <= 1.0:
        return np.inf
    mean = np.dot(weights, differences) / n
    return math.sqrt(n * np.dot(weights, (differences - mean) ** 2) / (n - 1.0))


def _held_out(tasks: Sequence[Any], work: Rowwise, evaluator: Evaluator) -> list[tuple[Rows, Any]]:
    answers = []
    for child, family, start, wanted in tasks:
        rows = evaluator(work.learner_of(child, family), child, family, work.codes, work.sizes, start)
        answers.append((Rows(rows.log_proba, rows.weight), rows.start if wanted else None))
    return answers
