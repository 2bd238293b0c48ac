"""Stage 2: fit the experts out of fold, and choose which each class variable uses.

The same folds serve all experts and class variables. A row's features come from models that have not seen it:

1. *Forests* are fitted on all folds, for all class variables together.
2. *Pilots.* Logistic regression and boosting cost more. They are fitted on about a third of the rows first; a class
   variable continues with them only if there they improve the geometric mean with its best forest.
3. *Choice.* For each class variable, experts that add less than `MIN_GAIN` to the leave-one-out log-likelihood of the
   conditional logit on all are dropped, one by one.
4. *Test time.* New rows are answered by the mean of the models without each fold, or by one model of all rows.

Until the deadline: one expert of each class variable is always fitted; then other forests; then the pilots and further
folds of one class variable after the other. An expert that was not fitted on all folds is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.deadline import NEVER, Deadline, Pace
from pmdc._support.progress import part_of, tell_phase
from pmdc.experts.features import Expert, ExpertFeatures, ExpertScore, columns_of, log_features
from pmdc.experts.jobs import Candidate, ExpertData, Job, expert_folds, fit_member
from pmdc.experts.members import BoostingMember, Member, join_members
from pmdc.experts.recipes import BoostingRecipe, ForestRecipe, Recipe
from pmdc.learners.conditional_logit import ConditionalLogitLearner
from pmdc.learners.inputs import Affine, Indicators
from pmdc.learners.tasks import root_task
from pmdc.table.rows import TrainingRows

SMOOTHING = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0)
"""The values of m that are tried."""

PILOT_SHARE = 0.3
"""The share of the rows on which expensive experts are tried first."""

FEW_FOLDS = 3
"""The number of folds of large tables."""

MIN_GAIN = 1.0
"""Held-out log-likelihood, in nats, that an expert must add to the others."""

Parallel = Callable[..., list[Any]]


class FittedExperts(NamedTuple):
    """The result of stage 2.

    Attributes
    ----------
    rows : list of arrays of shape (n, n_experts * n_states)
        The out-of-fold features of the training rows for each class variable; no columns if it has no experts.
    features : ExpertFeatures
        Computes the features of new rows.
    scores : list of lists of ExpertScore
    for_parents : list of lists of Recipe
        For each class variable, the recipes that may be fitted again with its parents.
    refit : bool
    """

    rows: list[Floats]
    features: ExpertFeatures
    scores: list[list[ExpertScore]]
    for_parents: list[list[Recipe]]
    refit: bool


def fit_experts(fits: ExpertFits, refit: bool) -> FittedExperts:
    """Fit the experts of all class variables; `refit` as in `ExpertPlan`."""
    candidates = fits.candidates()
    chosen = [fits.choose(k, candidates) for k in range(len(fits.data.sizes))]
    return fits.collect(chosen, candidates, refit)


class _Chosen(NamedTuple):
    """The experts of one class variable: candidates, their smoothing and features, and the scores of all."""

    candidates: list[Candidate]
    smoothing: list[float]
    features: list[Floats]
    scores: list[ExpertScore]


@dataclass
class ExpertFits:
    """Fits experts out of fold.

    Attributes
    ----------
    data : ExpertData
    rows : TrainingRows
    prepare : Indicators
        The features as the experts see them: discrete ones as indicators, and all standardised. Classifiers that the
        user gave see the numbers of the table.
    recipes : for each class variable, its candidates; none for a class variable without experts
    n_folds : int
    seed : int
    parallel : function that runs ``work(chunk, *rest)`` for many chunks
    salt : tuple of int
        Further numbers that random states depend on.
    deadline : Deadline
        No fit begins that would end after it, except those that a model needs.
    """

    data: ExpertData
    rows: TrainingRows
    prepare: Indicators
    recipes: Sequence[Sequence[Recipe]]
    n_folds: int
    seed: int
    parallel: Parallel
    salt: tuple[int, ...] = ()
    deadline: Deadline = NEVER

    @classmethod
    def of(
        cls,
        rows: TrainingRows,
        recipes: Sequence[Sequence[Recipe]],
        n_folds: int,
        seed: int,
        parallel: Parallel,
        fold: Codes | None = None,
    ) -> ExpertFits:
        """Prepare the rows; `fold` is the fold of each row if the user gave folds."""
        raw = np.ascontiguousarray(Indicators(rows.feature_sizes)(rows.features))
        # Forests read single precision, in which large numbers with small differences would be equal.
        prepare = Indicators(rows.feature_sizes, Affine.standard(raw, rows.weights))
        X = np.ascontiguousarray(prepare(rows.features))
        weights = rows.weights if rows.weighted else None
        fold = expert_folds(rows, n_folds) if fold is None else fold
        nan = None if rows.features.missing is None else Indicators(rows.feature_sizes, nan=True)(rows.features)
        data = ExpertData(X, raw, rows.classes, rows.class_sizes, weights, fold, rows.known, nan, rows.cell_weights)
        return cls(data, rows, prepare, recipes, n_folds, seed, parallel)

    def beside(self, columns: Floats, salt: tuple[int, ...]) -> ExpertFits:
        """Return the same with more inputs."""
        return replace(self, data=self.data.beside(columns), salt=salt)

    def copies(self, rows: TrainingRows, index: Codes) -> ExpertFits:
        """Return the same for copies of the rows, completed in several ways; copy i is of row ``index[i]``."""
        old = self.data
        X, raw, fold = old.X[index], old.raw[index], old.fold[index]
        weights = rows.weights if rows.weighted else None
        nan = None if old.nan is None else old.nan[index]
        data = ExpertData(X, raw, rows.classes, rows.class_sizes, weights, fold, rows.known, nan, rows.cell_weights)
        return replace(self, data=data, rows=rows)

    def knowing(self, child: int, parents: Sequence[int]) -> ExpertFits:
        """Return the same with a class variable known only where its parents are."""
        if self.data.known is None:
            return self
        known = self.data.known.copy()
        known[:, child] &= known[:, list(parents)].all(axis=1)
        return replace(self, data=replace(self.data, known=known))

    def known(self, k: int) -> Marks:
        """Return the rows in which a class variable is known."""
        return self.data.rows((k,))

    @property
    def pilots(self) -> range:
        """The folds on which expensive experts are tried first."""
        return range(max(1, round(PILOT_SHARE * self.n_folds)))

    def candidate(self, recipe: Recipe, targets: tuple[int, ...]) -> Candidate:
        return Candidate(recipe, targets, {}, self._empty(targets))

    def candidates(self) -> list[Candidate]:
        """Return the experts that were fitted on all folds."""
        groups, pace = self._groups(), Pace(self.deadline)
        sure = self._fit_sure([self.candidate(*group) for group in groups if not group[0].needs_pilot])
        pace.start(len(sure))
        pace.stop(len(sure))
        tried = [self.candidate(*group) for group in groups if group[0].needs_pilot]
        return [*sure, *self._fit_promising(tried, sure, pace)]

    def _fit_sure(self, sure: Sequence[Candidate]) -> list[Candidate]:
        """Fit experts without a pilot on all folds, as many as the time allows; one of each class variable always."""
        tell_phase("fitting experts")
        by_class = [[c for c in sure if k in c.targets] for k in range(len(self.recipes))]
        first = [_cheapest(own) for own in by_class if own]
        needed, others = [c for c in sure if c in first], [c for c in sure if c not in first]
        with part_of(0, len(needed), len(sure)):
            fitted = replace(self, deadline=NEVER).run(needed, range(self.n_folds))
        with part_of(len(needed), len(others), len(sure)):
            fitted += self.run(others, range(self.n_folds))
        kept = [c for c in sure if c in fitted]
        if len(kept) < len(sure):
            names = dict.fromkeys(c.recipe.name for c in sure if c not in kept)
            self.deadline.cut(f"experts ({', '.join(names)})")
        return kept

    def _fit_promising(self, tried: Sequence[Candidate], sure: Sequence[Candidate], pace: Pace) -> list[Candidate]:
        """Try experts on the pilot folds, and fit the promising ones on the others.

        With a deadline, one kind and class variable after the other: what is fitted in time can be used.
        """
        lots: dict[Any, list[Candidate]] = {}
        for candidate in tried:
            key = (type(candidate.recipe), candidate.targets) if self.deadline.exists else None
            lots.setdefault(key, []).append(candidate)
        kept: list[Candidate] = []
        cut: Counter[str] = Counter()
        done = 0
        for lot in lots.values():
            all_tried = False
            if pace.may_start():
                with part_of(done, len(lot), len(tried)):
                    fitted, all_tried = self._fit_lot(lot, sure)
                kept += fitted
                pace.stop()
            cut.update(c.recipe.name for c in lot if not all_tried)
            done += len(lot)
        if cut:
            counts = ", ".join(f"{name} for {count}" for name, count in cut.items())
            self.deadline.cut(f"experts ({counts} of {len(self.recipes)} class variables)")
        return [c for c in tried if c in kept]

    def _fit_lot(self, tried: Sequence[Candidate], sure: Sequence[Candidate]) -> tuple[list[Candidate], bool]:
        """Return the experts that are promising after their pilots, fitted on all folds, and whether all were tried."""
        tell_phase("trying further experts")
        piloted = self.run(tried, self.pilots)
        promising = self._promising(piloted, sure)
        tell_phase("fitting further experts")
        fitted = self.run(promising, range(len(self.pilots), self.n_folds))
        return fitted, len(piloted) == len(tried) and len(fitted) == len(promising)

    def _groups(self) -> list[tuple[Recipe, tuple[int, ...]]]:
        """Return each recipe with the class variables that it is fitted for, together or one by one."""
        found: dict[Recipe, list[int]] = {}
        for k, own in enumerate(self.recipes):
            for recipe in own:
                found.setdefault(recipe, []).append(k)
        out: list[tuple[Recipe, tuple[int, ...]]] = []
        for recipe, targets in found.items():
            together = recipe.together and self.data.cell_weights is None
            out += [(recipe, tuple(targets))] if together else [(recipe, (k,)) for k in targets]
        return out

    def _empty(self, targets: Sequence[int]) -> Floats:
        return np.full((len(self.data.X), sum(self.data.sizes[k] for k in targets)), np.nan)

    def run(self, candidates: Sequence[Candidate], folds: Sequence[int]) -> list[Candidate]:
        """Fit candidates without each of some folds, and predict the rows of these folds.

        One after the other until the deadline; return those that were fitted without all of these folds.
        """
        jobs = [(c, Job(c.recipe, c.targets, fold, self._seed(c, fold))) for c in candidates for fold in folds]
        results = self.parallel(fit_member, [job for _, job in jobs], self.data, deadline=self.deadline)
        for (candidate, job), member in zip(jobs, results, strict=False):
            held = self.data.fold == job.fold
            candidate.members[job.fold] = member
            candidate.proba[held] = member.proba(self.data.inputs(job.recipe)[held])
        fitted = [candidate for candidate in candidates if all(fold in candidate.members for fold in folds)]
        for candidate in fitted:
            self.stop_early(candidate)
        return fitted

    def _seed(self, candidate: Candidate, fold: int) -> int:
        """Return a seed that depends on the job only."""
        key = (*candidate.targets, len(candidate.targets), fold + 1, *self.salt)
        name = sum(ord(letter) * 31**i for i, letter in enumerate(candidate.recipe.name)) % 2**31
        return int(np.random.SeedSequence(self.seed, spawn_key=(name, *key)).generate_state(1)[0] % 2**31)

    def _promising(self, tried: Sequence[Candidate], sure: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that improve on the best forest in their pilot; of boosting, the better setting."""
        kept: dict[tuple[int, str], tuple[float, Candidate]] = {}
        for candidate in tried:
            k = candidate.targets[0]
            if self._diverged(candidate):
                continue
            done = np.isfinite(candidate.proba[:, 0]) & self.known(k)
            own = self._log_proba(candidate, k, done)
            others = [self._log_proba(c, k, done) for c in sure if k in c.targets]
            score = self._log_likelihood(own, k, done)
            if others:
                best = max(others, key=lambda other: self._log_likelihood(other, k, done))
                if self._log_likelihood(own + best, k, done) <= self._log_likelihood(best, k, done):
                    continue
            kind = type(candidate.recipe).__name__
            if (k, kind) not in kept or score > kept[k, kind][0]:
                kept[k, kind] = score, candidate
        return [candidate for _, candidate in kept.values()]

    def _diverged(self, candidate: Candidate) -> bool:
        """Return whether boosting predicts its own training rows worse than their most frequent state does."""
        if candidate.n_iterations is None:
            return False
        for f, member in candidate.members.items():
            if isinstance(member, BoostingMember):
                kept = (self.data.fold != f) & self.known(candidate.targets[0])
                y = self.data.codes[kept, candidate.targets[0]]
                right = member.first(candidate.n_iterations).proba(self.data.X[kept]).argmax(axis=1) == y
                if right.mean() < np.bincount(y).max() / len(y) - 1e-9:
                    return True
        return False

    def _log_proba(self, candidate: Candidate, k: int, done: Any) -> Floats:
        begin, end = columns_of(self.data.sizes, candidate.targets)[k]
        return log_features(candidate.proba[done, begin:end], 100.0)

    def _log_likelihood(self, scores: Floats, k: int, done: Any) -> float:
        """Return the log-likelihood of scores with the best of a few temperatures."""
        y, w = self.data.codes[done, k], self.rows.weights_of(k)[done]
        values = []
        for weight in (0.3, 0.5, 0.7, 1.0, 1.4, 2.0):
            S = weight * scores
            S = S - S.max(axis=1, keepdims=True)
            values.append(float(w @ (S[np.arange(len(y)), y] - np.log(np.exp(S).sum(axis=1)))))
        return max(values)

    def stop_early(self, candidate: Candidate) -> None:
        """Keep the iterations of boosting with the best held-out log-likelihood over all folds fitted so far."""
        if not isinstance(candidate.recipe, BoostingRecipe):
            return
        k, fold = candidate.targets[0], self.data.fold
        members = {f: m for f, m in candidate.members.items() if isinstance(m, BoostingMember)}
        if not members:
            return
        paths = []
        for f, member in members.items():
            held = (fold == f) & self.known(k)
            paths.append(member.path(self.data.X[held], self.data.codes[held, k], self.rows.weights_of(k)[held]))
        candidate.n_iterations = int(np.argmax(np.sum(paths, axis=0))) + 1
        for f, member in members.items():
            held = fold == f
            candidate.proba[held] = member.first(candidate.n_iterations).proba(self.data.X[held])

    # Choice --------------------------------------------------------------------------------------------------

    def choose(self, k: int, candidates: Sequence[Candidate]) -> _Chosen:
        """Choose the experts of a class variable: all, without those that gain too little, one by one."""
        own = [c for c in candidates if k in c.targets]
        smoothed = [self.smooth(c, k) for c in own]
        alone = [self._held_out(k, [z]) for _, z in smoothed]
        picked = list(range(len(own)))
        best = self._total(k, self._held_out(k, [z for _, z in smoothed])) if own else 0.0
        while len(picked) > 1 and not self.deadline.passed():
            without = {i: self._held_out(k, [smoothed[j][1] for j in picked if j != i]) for i in picked}
            top = max(without, key=lambda i: self._total(k, without[i]))
            if self._total(k, without[top]) < best - MIN_GAIN:
                break
            picked.remove(top)
            best = max(best, self._total(k, without[top]))
        n = float(self.rows.weights_of(k)[self.known(k)].sum())
        scores = [
            ExpertScore(c.recipe.name, -self._total(k, held) / n, i in picked)
            for i, (c, held) in enumerate(zip(own, alone, strict=True))
        ]
        names = {score.name for score in scores}
        scores += [ExpertScore(r.name, float("nan"), False) for r in self.recipes[k] if r.name not in names]
        return _Chosen(
            [own[i] for i in picked], [smoothed[i][0] for i in picked], [smoothed[i][1] for i in picked], scores
        )

    def smooth(self, candidate: Candidate, k: int) -> tuple[float, Floats]:
        """Return the best m and the features."""
        begin, end = columns_of(self.data.sizes, candidate.targets)[k]
        proba = candidate.proba[:, begin:end]
        tried = [(m, log_features(proba, m)) for m in SMOOTHING]
        known = self.known(k)
        return max(tried, key=lambda pair: self._log_likelihood(pair[1][known], k, known))

    def _held_out(self, k: int, features: Sequence[Floats]) -> Floats:
        """Return the leave-one-out log-probabilities of the conditional logit on these features, of known states."""
        known = self.known(k)
        learner = ConditionalLogitLearner(np.hstack(features)[known], self.rows.weights_of(k)[known], C=1.0)
        return learner.leave_one_out(root_task(k, self.data.codes[known, k], self.data.sizes[k]))

    def _total(self, k: int, held_out: Floats) -> float:
        return float(self.rows.weights_of(k)[self.known(k)] @ held_out)

    # Result --------------------------------------------------------------------------------------------------

    def collect(self, chosen: Sequence[_Chosen], candidates: Sequence[Candidate], refit: bool) -> FittedExperts:
        used = [c for c in candidates if any(c in own.candidates for own in chosen)]
        used_members = self._refit(used) if refit else [self._of_folds(c) for c in used]
        experts, order = [], [[0] * len(own.candidates) for own in chosen]
        for number, (candidate, members) in enumerate(zip(used, used_members, strict=True)):
            columns = columns_of(self.data.sizes, candidate.targets)
            targets, smoothing = [], []
            for k, own in enumerate(chosen):
                for place, other in enumerate(own.candidates):
                    if other is candidate:
                        targets.append(k)
                        smoothing.append(own.smoothing[place])
                        order[k][place] = number
            experts.append(
                Expert(
                    candidate.recipe.name,
                    tuple(targets),
                    tuple(columns[k] for k in targets),
                    tuple(smoothing),
                    members,
                    candidate.recipe.raw,
                    candidate.recipe.nan,
                )
            )
        rows = [np.hstack([np.empty((len(self.data.X), 0)), *own.features]) for own in chosen]
        features = ExpertFeatures(self.prepare, tuple(experts), tuple(map(tuple, order)))
        for_parents = [self._for_parents(k, candidates) for k in range(len(chosen))]
        return FittedExperts(rows, features, [own.scores for own in chosen], for_parents, refit)

    def _for_parents(self, k: int, candidates: Sequence[Candidate]) -> list[Recipe]:
        """Return the recipes of a class variable to be tried with its parents: all but forests.

        Of several settings of boosting, the one that was chosen for x alone, or the last. On large tables, with few
        folds, logistic regression only if it was chosen for x alone.
        """
        own = [recipe for recipe in self.recipes[k] if not recipe.together]
        fitted = [c.recipe for c in candidates if c.targets == (k,)]
        boosting = [recipe for recipe in (*own, *fitted) if isinstance(recipe, BoostingRecipe)]
        others = [recipe for recipe in own if not isinstance(recipe, BoostingRecipe)]
        if self.n_folds <= FEW_FOLDS:
            others = [recipe for recipe in others if recipe in fitted]
        return [*others, *boosting[-1:]]

    def members(self, candidate: Candidate, refit: bool) -> tuple[Member, ...]:
        """Return the models that answer new rows."""
        return self._refit([candidate])[0] if refit else self._of_folds(candidate)

    def _of_folds(self, candidate: Candidate) -> tuple[Member, ...]:
        members = [candidate.members[f] for f in sorted(candidate.members)]
        n = candidate.n_iterations
        return join_members([m.first(n) if n and isinstance(m, BoostingMember) else m for m in members])

    def _refit(self, used: Sequence[Candidate]) -> list[tuple[Member, ...]]:
        """Fit experts on all rows; those for which there is no time keep the models of the folds."""
        tell_phase("fitting experts on all rows")
        jobs = []
        for c in used:
            recipe = c.recipe
            if isinstance(recipe, BoostingRecipe) and c.n_iterations is not None:
                recipe = replace(recipe, n_iterations=c.n_iterations)
            jobs.append(Job(recipe, c.targets, -1, self._seed(c, -1)))
        found = [(member,) for member in self.parallel(fit_member, jobs, self.data, deadline=self.deadline)]
        if len(found) < len(used):
            self.deadline.cut(f"fits on all rows of {len(used) - len(found)} of {len(used)} experts")
        return [*found, *(self._of_folds(candidate) for candidate in used[len(found) :])]


def _cheapest(candidates: Sequence[Candidate]) -> Candidate:
    """Return the forest with the largest leaves, or the first classifier that the user gave."""
    return max(candidates, key=lambda c: c.recipe.min_leaf if isinstance(c.recipe, ForestRecipe) else 0)
