"""Learning from rows whose states are partly missing: structural EM (Appendix D of the paper) and available rows.

Structural EM (Friedman 1998) alternates two steps.

- *E-step.* The rows are completed in all ways that their missing class variables allow, weighted by their probability
  given the features and the known states of the row, by the network so far (`pmdc.e_step`).
- *M-step.* A network is learned from the completed rows. The copies of a row are held out together and count as one
  row. Most M-steps fit the local models of the same graph again, until the log-likelihood of the known states, sum over
  the rows of log P(known states | x), settles; then scores, graph and local models are learned anew. When this returns
  the same graph, the rounds end.

The first network is learned from available rows: each family is fitted on the rows in which its class variable and its
parents are known. It also chooses C. With local models that maximise the (penalised) likelihood and a criterion on the
training rows, no step lowers the (penalised) log-likelihood. Others can lower it (shrinkage, absent states, penalties,
completions that are left out); a step with the same graph that does is taken back, and the local models have settled.

Beyond the paper: experts are fitted once, each on the rows in which its class variable is known, and their features are
out of fold in both steps; a row's own known states would otherwise make the experts look too reliable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from pmdc._support.arrays import Codes
from pmdc._support.progress import tell_phase
from pmdc._support.warn import warn_user
from pmdc.blocks import Blocks
from pmdc.configure import Learned, configure, read_cv
from pmdc.e_step import Completions, complete
from pmdc.inference.distribution import JointDistribution
from pmdc.learn import LearnedNetwork, Stage2, fit_again, learn_given_experts, run_stage2
from pmdc.scores.folds import read_folds
from pmdc.settings import Settings
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    from pmdc._support.deadline import Deadline
    from pmdc.classifier import GBNC

MISSING_LABELS = ("em", "available", "drop", "error")
"""What `GBNC` can do about missing states."""

MAX_ROUNDS = 10
"""The largest number of structure searches."""

MAX_STEPS = 20
"""The largest number of steps between two of them that fit the local models of the same graph again."""

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
        The number of structure searches on completed rows.
    converged : bool
        Whether the last search returned the graph of the one before without a higher log-likelihood. With held-out
        criteria, graphs of nearly equal scores may alternate; the rounds end when a graph returns.
    log_likelihood : list of float
        Sum over the rows of log P(known states | x), with out-of-fold expert features: of the first network, learned
        from available rows, then after each M-step. It rises, except when the graph changes.
    n_completions : int
        Completed rows of the last round.
    pruned : float
        The largest share of a row's probability that improbable completions had in the last round.
    n_drawn : int
        Rows with so many ways to complete them that draws were used instead (`pmdc.e_step.MAX_COMPLETIONS`); all rows
        if an estimator accepts no weights.
    """

    n_rounds: int
    converged: bool
    log_likelihood: list[float]
    n_completions: int
    pruned: float
    n_drawn: int = 0


def usable_rows(rows: TrainingRows, missing_labels: str, use_unlabelled: bool) -> TrainingRows:
    """Return the rows that are learned from; with no missing state left, `known` is None."""
    if rows.known is None:
        return rows
    usable = rows.known.all(axis=1) if missing_labels == "drop" else rows.informative | use_unlabelled
    if not usable.any():
        remedy = "choose missing_labels='em'" if rows.informative.any() else "give some states"
        raise ValueError(f"y has no row that missing_labels={missing_labels!r} can learn from: {remedy}.")
    rows = rows.take(np.flatnonzero(usable))
    assert rows.known is not None
    return replace(rows, known=None, possible=None) if rows.known.all() else rows


def learn_incomplete(model: GBNC, rows: TrainingRows, deadline: Deadline) -> tuple[Learned, EMResult | None]:
    """Learn the network of a classifier from rows with missing states, by EM or from available rows."""
    if model.blocks is not None and not isinstance(model.blocks, str):
        raise ValueError(
            f"blocks={model.blocks!r} cannot be combined with missing states in y: fill them with impute(X, y) of a "
            "model without blocks, or choose missing_labels='drop'."
        )
    if model.blocks is not None:
        warn_user("blocks='auto' is not tried, because y has missing states: each class variable is a node of its own.")
    blocks = Blocks.alone(rows.class_sizes)
    cv = read_cv(model.cv)
    settings = replace(configure(model, rows, blocks, cv), deadline=deadline)
    _check_required(rows, settings)
    if model.criterion == "loo" and model.missing_labels == "em":
        raise ValueError(
            "criterion='loo' cannot be combined with missing states in y: rows are completed in several ways. Choose "
            "criterion='cv' or missing_labels='available'."
        )
    stage2 = run_stage2(rows, settings)
    if model.missing_labels == "available":
        return (blocks, settings, learn_given_experts(rows, settings, blocks, stage2)), None
    folds = read_folds(cv, rows, whole_rows=True)  # the same folds in every round
    fixed = [(rows.origin[folds.rows[seen]], rows.origin[folds.rows[held]]) for seen, held in folds.pairs]
    weighable = all(one is None or has_fit_parameter(one, "sample_weight") for one in settings.estimators)
    em = _StructuralEM(rows, replace(settings, cv=fixed), model, blocks, stage2, None if weighable else 1)
    learned, result = em.run()
    return (blocks, settings, learned), result


def _check_required(rows: TrainingRows, settings: Settings) -> None:
    """Raise an error if required parents and their child are never known together."""
    for rule in settings.rules:
        parents = [p for p in rule.required if p < rows.n_classes]
        if parents and not (rows.classes[:, [rule.child, *parents]] >= 0).all(axis=1).any():
            names = [settings.names[p] for p in parents]
            raise ValueError(
                f"required_edges makes {names} parents of {settings.names[rule.child]!r}, but in no row of y are the "
                "states of all of them known: omit an edge, or give the states of some rows."
            )


class _Step(NamedTuple):
    """A network, the rows completed by it, and their log-likelihood."""

    learned: LearnedNetwork
    done: Completions
    log_likelihood: float


@dataclass
class _StructuralEM:
    """The rounds of structural EM over rows with missing states.

    Attributes
    ----------
    rows : TrainingRows
        As in the table: negative codes where a state is missing.
    settings : Settings
        Its `cv` holds the same rows out in every round.
    model : GBNC
    blocks : Blocks
    stage2 : Stage2 or None
    n_draws : int or None
        1 if an estimator accepts no weights: each row is completed by a draw, the same random numbers in each step.
        (Several copies of all rows would mislead estimators that count them, such as nearest neighbours.)
    path : list of float
        The log-likelihoods so far.
    """

    rows: TrainingRows
    settings: Settings
    model: GBNC
    blocks: Blocks
    stage2: Stage2 | None
    n_draws: int | None
    path: list[float] = field(default_factory=list)

    def run(self) -> tuple[LearnedNetwork, EMResult]:
        tell_phase("learning from available rows")
        first = learn_given_experts(self.rows, self.settings, self.blocks, self.stage2, with_parents=False)
        now = self.expect(first)
        self.path.append(now.log_likelihood)
        now = self.settle(now)
        deadline = self.settings.deadline
        graphs, converged = [first.families], False
        while len(graphs) <= MAX_ROUNDS and not deadline.passed():
            tell_phase(f"round {len(graphs)} of structural EM")
            new = self.expect(self.learn(now.done, first))
            graphs.append(new.learned.families)
            same = graphs[-1] == graphs[-2]
            if same and new.log_likelihood < now.log_likelihood:  # new scores, but the local models of before
                new = now._replace(learned=new.learned._replace(network=now.learned.network))
            converged = same and new.log_likelihood - now.log_likelihood <= self.tolerance
            self.path.append(new.log_likelihood)
            now = new if converged else self.settle(new)
            self.settings.log(f"round {len(graphs) - 1} of structural EM: log-likelihood {now.log_likelihood:.6g}")
            if converged or (not same and graphs[-1] in graphs[:-2]):  # a graph of before returns
                break
        else:
            if deadline.passed():
                deadline.cut("rounds of structural EM")
        if not converged and not deadline.passed():
            warn_user(
                f"structural EM did not settle; structure searches: {len(graphs) - 1} (em_.log_likelihood has the path "
                "of the log-likelihood). If the local models are random or overfit, missing_labels='available' may be "
                "better (pmdc fit: --missing-labels available)."
            )
        n_rounds, learned, done = len(graphs) - 1, now.learned, now.done
        if self.stage2 is not None and not deadline.passed():
            learned = self.learn(done, first, with_parents=True)
        return learned, EMResult(n_rounds, converged, self.path, len(done.rows), done.pruned, done.n_drawn)

    @property
    def tolerance(self) -> float:
        return TOLERANCE * float(self.rows.weights.sum())

    def settle(self, now: _Step) -> _Step:
        """Repeat the E-step and the fit of the local models while the log-likelihood rises."""
        for _ in range(MAX_STEPS):
            if self.settings.deadline.passed():
                break
            copies, stage2 = self.copies(now.done)
            new = self.expect(fit_again(now.learned, copies, self.settings, stage2))
            gain = new.log_likelihood - now.log_likelihood
            if gain > 0:
                now = new
                self.path.append(now.log_likelihood)
            if gain <= self.tolerance:
                break
        return now

    def expect(self, learned: LearnedNetwork) -> _Step:
        """Take the E-step."""
        done = self.complete(learned)
        return _Step(learned, done, float(self.rows.weights @ done.log_prob))

    def learn(self, done: Completions, first: LearnedNetwork, with_parents: bool = False) -> LearnedNetwork:
        """Learn graph and local models from completed rows, with the C of the first network."""
        copies, stage2 = self.copies(done)
        return learn_given_experts(copies, self.settings, self.blocks, stage2, with_parents, before=first)

    def copies(self, done: Completions) -> tuple[TrainingRows, Stage2 | None]:
        """Return the completed rows, and the experts for them."""
        rows = replace(
            self.rows.take(done.rows),
            classes=done.codes,
            weights=self.rows.weights[done.rows] * done.weights,
            weighted=self.n_draws is None,
            possible=None,
        )
        return rows, None if self.stage2 is None else self.stage2.copies(rows, done.rows)

    def complete(self, learned: LearnedNetwork) -> Completions:
        """Complete the rows by a network."""
        step = max(1, CHUNK_CELLS // learned.network.cells_per_row)
        parts = [np.arange(i, min(i + step, len(self.rows))) for i in range(0, len(self.rows), step)]
        return Completions.join(
            [complete(self.joint(learned, part), self.rows.classes[part], self.n_draws) for part in parts]
        )

    def joint(self, learned: LearnedNetwork, part: Codes) -> JointDistribution:
        """Return the distribution of some rows, by experts that have not seen them."""
        expert: Sequence[np.ndarray] | None = None
        if self.stage2 is not None:
            expert = [own[part] for own in self.stage2.experts.rows]
        features = self.rows.features.rows(part)
        network = learned.network
        tables = network.tables(features, network.inputs(features, expert))
        joint = JointDistribution(self.model.class_table_, network.class_parents, tables, learned.junction_tree)
        if self.rows.possible is None:
            return joint
        return joint.restricted([None if own is None else own[part] for own in self.rows.possible])
