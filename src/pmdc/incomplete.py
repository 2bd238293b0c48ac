"""Learning from rows whose states are partly missing: structural EM (Appendix D of the paper).

Each round has two steps.

- *E-step.* The rows are completed in all ways that their missing class variables allow. The weight of a completion is
  its probability given the features and the known states of the row, by the network of the round before.
- *M-step.* A network is learned from the completed rows: scores, structure and local models. The copies of a row are
  held out together and count as one row.

The rounds end when the graph stays and the log-likelihood of the known states, sum over the rows of
log P(known states | x), has settled. With local models that maximise the (penalised) likelihood and a criterion on the
training rows, the objective never falls; with held-out criteria it nearly always rises.

Beyond the paper: experts are fitted once, each on the rows in which its class variable is known, and their features are
out of fold in both steps; a row's own known states would otherwise make the experts look too reliable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from pmdc._support.arrays import Codes, Floats, log_sum_exp
from pmdc._support.deadline import Deadline
from pmdc._support.progress import tell_phase
from pmdc.blocks import Blocks
from pmdc.configure import Learned, configure, read_cv
from pmdc.inference.distribution import JointDistribution
from pmdc.learn import LearnedNetwork, Stage2, learn_given_experts, run_stage2
from pmdc.scores.folds import read_folds
from pmdc.settings import Settings
from pmdc.table.classes import ClassTable
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    from pmdc.classifier import GBNC

MISSING_LABELS = ("em", "drop", "error")
"""What `GBNC` can do about missing states."""

MIN_PROBABILITY = 1e-3
"""Completions that are less probable given their row are left out; the others then share their probability."""

MAX_COMPLETIONS = 64
"""A row with more completions gets `N_DRAWS` draws from their distribution instead of all of them."""

N_DRAWS = 20
"""Draws for rows with many completions, and imputations for estimators that accept no weights."""

MAX_ROUNDS = 20
"""The largest number of rounds."""

TOLERANCE = 1e-3
"""Change of the log-likelihood of a row, on average, at which it has settled (nats)."""


CHUNK_CELLS = 2**22
"""Cells of conditional tables held in memory at once in the E-step (32 MiB)."""


@dataclass(frozen=True)
class EMResult:
    """How structural EM went.

    Attributes
    ----------
    n_rounds : int
    converged : bool
        Whether the graph and the log-likelihood settled before the largest number of rounds or the end of the time.
    log_likelihood : list of float
        Sum over the rows of log P(known states | x), after each round, with out-of-fold expert features.
    n_completions : int
        Completed rows of the last round.
    pruned : float
        The largest share of a row's probability that improbable completions had in the last round.
    """

    n_rounds: int
    converged: bool
    log_likelihood: list[float]
    n_completions: int
    pruned: float


def usable_rows(rows: TrainingRows, missing_labels: str, use_unlabelled: bool) -> TrainingRows:
    """Return the rows that are learned from; with no missing state left, `known` is None."""
    if rows.known is None:
        return rows
    usable = rows.known.all(axis=1) if missing_labels == "drop" else rows.known.any(axis=1) | use_unlabelled
    if not usable.any():
        remedy = "choose missing_labels='em'" if rows.known.any() else "give some states"
        raise ValueError(f"y has no row that missing_labels={missing_labels!r} can learn from: {remedy}.")
    rows = rows.take(np.flatnonzero(usable))
    assert rows.known is not None
    return replace(rows, known=None) if rows.known.all() else rows


def learn_incomplete(model: GBNC, rows: TrainingRows, deadline: Deadline) -> tuple[Learned, EMResult]:
    """Learn the network of a classifier from rows with missing states."""
    if model.blocks is not None and not isinstance(model.blocks, str):
        raise ValueError(
            f"blocks={model.blocks!r} cannot be combined with missing states in y: fill them with impute(X, y) of a "
            "model without blocks, or choose missing_labels='drop'."
        )
    assert rows.known is not None
    blocks = Blocks.alone(rows.class_sizes)
    cv = read_cv(model.cv)
    settings = replace(configure(model, rows, blocks, cv), deadline=deadline)
    folds = read_folds(cv, rows, whole_rows=True)  # the same folds in every round
    fixed = [(rows.origin[folds.rows[seen]], rows.origin[folds.rows[held]]) for seen, held in folds.pairs]
    em = _StructuralEM(
        rows,
        replace(settings, cv=fixed),
        model.class_table_,
        blocks,
        run_stage2(rows, settings),
        any(one is not None and not has_fit_parameter(one, "sample_weight") for one in settings.estimators),
    )
    learned, result = em.run()
    return (blocks, settings, learned), result


@dataclass(frozen=True)
class _StructuralEM:
    """The rounds of structural EM over rows with missing states.

    Attributes
    ----------
    rows : TrainingRows
        As in the table: negative codes where a state is missing.
    settings : Settings
        Its `cv` holds the same rows out in every round.
    class_table : ClassTable
    blocks : Blocks
    stage2 : Stage2 or None
    draws_only : bool
        Whether rows are completed by draws, because an estimator accepts no weights.
    """

    rows: TrainingRows
    settings: Settings
    class_table: ClassTable
    blocks: Blocks
    stage2: Stage2 | None
    draws_only: bool

    def run(self) -> tuple[LearnedNetwork, EMResult]:
        done = self.complete(None)
        path: list[float] = []
        parents, converged = None, False
        while not converged and len(path) < MAX_ROUNDS and not (path and self.settings.deadline.passed()):
            tell_phase(f"round {len(path) + 1} of structural EM")
            learned = self.learn(done, with_parents=False)
            done = self.complete(learned)
            path.append(float(self.rows.weights @ done.log_prob))
            close = len(path) > 1 and abs(path[-1] - path[-2]) <= TOLERANCE * self.rows.weights.sum()
            converged = close and parents == learned.structure.parents
            parents = learned.structure.parents
            self.settings.log(f"round {len(path)} of structural EM: log-likelihood {path[-1]:.6g}")
        if not converged:
            self.settings.deadline.cut("rounds of structural EM")
        result = EMResult(len(path), converged, path, len(done.rows), done.pruned)
        return self.learn(done, with_parents=True), result

    def learn(self, done: Completions, with_parents: bool) -> LearnedNetwork:
        """Learn a network from completed rows (the M-step)."""
        copies = replace(
            self.rows.take(done.rows),
            classes=done.codes,
            weights=self.rows.weights[done.rows] * done.weights,
            weighted=not self.draws_only,
        )
        stage2 = None if self.stage2 is None else self.stage2.copies(copies, done.rows)
        return learn_given_experts(copies, self.settings, self.blocks, stage2, with_parents)

    def complete(self, learned: LearnedNetwork | None) -> Completions:
        """Complete the rows by a network, or, before there is one, as if class variables were independent given x."""
        pieces = []
        cells = sum(self.class_table.sizes) if learned is None else learned.network.cells_per_row
        step = max(1, CHUNK_CELLS // cells)
        for start in range(0, len(self.rows), step):
            part = np.arange(start, min(start + step, len(self.rows)))
            found = complete(self.joint(learned, part), self.rows.classes[part], self.draws_only)
            pieces.append(found._replace(rows=found.rows + start))
        return Completions(
            np.concatenate([piece.rows for piece in pieces]),
            np.concatenate([piece.codes for piece in pieces]),
            np.concatenate([piece.weights for piece in pieces]),
            np.concatenate([piece.log_prob for piece in pieces]),
            max(piece.pruned for piece in pieces),
        )

    def joint(self, learned: LearnedNetwork | None, part: Codes) -> JointDistribution:
        """Return the distribution of some rows, by experts that have not seen them."""
        expert = None if self.stage2 is None else [own[part] for own in self.stage2.experts.rows]
        if learned is None:
            tables = [self.alone(k, part, expert) for k in range(self.rows.n_classes)]
            return JointDistribution(self.class_table, [()] * self.rows.n_classes, tables)
        features = self.rows.features.rows(part)
        tables = learned.network.tables(features, learned.network.inputs(features, expert))
        return JointDistribution(self.class_table, learned.network.class_parents, tables, learned.junction_tree)

    def alone(self, k: int, part: Codes, expert: Sequence[Floats] | None) -> Floats:
        """Return log-probabilities of a class variable alone: the geometric mean of its experts, or frequencies."""
        size = self.rows.class_sizes[k]
        if expert is not None and expert[k].shape[1]:
            scores = expert[k].reshape(len(part), -1, size).mean(axis=1)
        else:
            codes = self.rows.classes[:, k]
            counts = np.bincount(codes[codes >= 0], self.rows.weights[codes >= 0], size) + 1.0 / size
            scores = np.tile(np.log(counts), (len(part), 1))
        return np.asarray(scores - log_sum_exp(scores), dtype=float)


class Completions(NamedTuple):
    """Rows completed in several ways.

    Attributes
    ----------
    rows : array of shape (m,)
        The row that each is a completion of, ascending.
    codes : array of shape (m, K)
    weights : array of shape (m,)
        Posterior probabilities: those of a row sum to 1.
    log_prob : array of shape (n,)
        log P(known states | x) of each row.
    pruned : float
        The largest share of a row's probability that was left out.
    """

    rows: Codes
    codes: Codes
    weights: Floats
    log_prob: Floats
    pruned: float


def complete(joint: JointDistribution, codes: Codes, draws_only: bool = False) -> Completions:
    """Complete rows (the E-step): exactly, or by draws where there are more than `MAX_COMPLETIONS` ways.

    Parameters
    ----------
    joint : JointDistribution
        Of the same rows.
    codes : array of shape (n, K)
        Negative where a state is missing.
    draws_only : bool
        Whether every row gets `N_DRAWS` draws of equal weight.
    """
    sizes = joint.class_table.sizes
    log_prob, pruned = np.zeros(len(codes)), 0.0
    pieces: list[tuple[Codes, Codes, Floats]] = []
    patterns, pattern = np.unique(codes < 0, axis=0, return_inverse=True)
    for number, missing in enumerate(patterns):
        rows = np.flatnonzero(pattern.ravel() == number)
        free = np.flatnonzero(missing)
        if draws_only or math.prod(sizes[k] for k in free) > MAX_COMPLETIONS:
            piece, log_prob[rows] = _draw(joint, codes, rows)
        else:
            piece, log_prob[rows], left_out = _enumerate(joint, codes, rows, free)
            pruned = max(pruned, left_out)
        pieces.append(piece)
    index, completed, weights = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    order = np.argsort(index, kind="stable")
    return Completions(index[order], completed[order], weights[order], log_prob, pruned)


def _enumerate(
    joint: JointDistribution, codes: Codes, rows: Codes, free: Codes
) -> tuple[tuple[Codes, Codes, Floats], Floats, float]:
    """Complete rows with the same missing class variables in all ways."""
    ways = np.array(list(np.ndindex(*(joint.class_table.sizes[k] for k in free))), dtype=np.int64)
    index = np.repeat(rows, len(ways))
    completed = codes[index]
    completed[:, free] = np.tile(ways, (len(rows), 1))
    log_p = joint.log_prob_at(index, completed).reshape(len(rows), len(ways))
    total = log_sum_exp(log_p)
    impossible = np.isneginf(total)  # without back-off, the known states may have probability zero: any way is as good
    posterior = np.where(impossible, 1.0 / len(ways), np.exp(log_p - np.where(impossible, 0.0, total)))
    kept = (posterior >= MIN_PROBABILITY) | (posterior == posterior.max(axis=1, keepdims=True))
    mass = np.where(kept, posterior, 0.0).sum(axis=1, keepdims=True)
    chosen = kept.ravel()
    weights = (posterior / mass).ravel()[chosen]
    return (index[chosen], completed[chosen], weights), total[:, 0], float(max(0.0, 1.0 - mass.min()))


def _draw(joint: JointDistribution, codes: Codes, rows: Codes) -> tuple[tuple[Codes, Codes, Floats], Floats]:
    """Complete rows by draws."""
    given = joint.rows(rows).given_codes(np.maximum(codes[rows], -1))
    draws = given.sample_codes(N_DRAWS, np.random.RandomState(0))
    index = np.repeat(rows, N_DRAWS)
    completed = np.asarray(draws).reshape(len(index), codes.shape[1])
    return (index, completed, np.full(len(index), 1.0 / N_DRAWS)), given.log_evidence
