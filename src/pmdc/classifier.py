"""GBNC: the classifier that puts the phases together.

    read the table -> candidate parent sets -> local models and their scores (P1) -> best DAG (P2)
    -> the winners fitted again, with back-off -> conditional tables -> joint distribution -> decision

Each step is a module; here they are put together.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import SGDClassifier

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_choice, check_count
from pmdc._support.parallel import workers
from pmdc._support.progress import tell_phase
from pmdc.candidates.edges import parent_rules
from pmdc.candidates.families import Family, ParentSet
from pmdc.candidates.family_search import (
    WAYS,
    FamilySearch,
    FamilyTable,
    backoff_chains,
    classes_alone,
    inherited_strengths,
    offered_families,
    ranked_features,
    settle_families,
)
from pmdc.candidates.parent_sets import restrict, score_parent_sets
from pmdc.candidates.pruning import PRUNING, ScoreTable
from pmdc.candidates.rules import ParentRules, predicted_models
from pmdc.decisions.decide import LossLike
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.inference import JointDistribution, JunctionTree, family_scopes
from pmdc.inference.junction_tree import MEMORY_BUDGET, NetworkTooWideError
from pmdc.learners import make_learner
from pmdc.learners.protocols import Adjustable, LocalLearner
from pmdc.network.network import Network, Node, fit_node
from pmdc.network.summary import losses_without, named_graph, named_scores, named_ways
from pmdc.scores import criteria
from pmdc.scores.held_out import Evaluator, make_evaluator
from pmdc.scores.regularisation import choose_strengths
from pmdc.scores.scoring import HeldOutScores, Parallel, Rowwise, Scores, TrainingScores
from pmdc.search import METHODS, Structure, find_structure
from pmdc.search.structure import check_callback, check_gap, check_time_limit
from pmdc.table.features import Features

if TYPE_CHECKING:
    import networkx

_WIDEST = 2**16
"""The most numbers in the table of one row for a family that has more inputs than `max_parents`."""

_MANY_MODELS = 1_000_000
"""Above this many local models a fit without `max_candidates` warns before it starts."""

_REMEDIES = {
    "time limit": "Raise time_limit",
    "memory limit": "Raise memory_budget",
    "interrupted": "Let it go on",
}
"""What helps where the search of the structure stopped before its end."""


class Plan(NamedTuple):
    """How much work a fit is."""

    parent_sets: int
    local_models: int | None


class GBNC(MultiDimensionalClassifier):
    """Generalised Bayesian network classifier: P(Y1..YK | x) as a Bayesian network of local classifiers.

    The structure is a DAG over the class variables in which discrete features may be parents too. Each class variable
    has probabilistic classifiers of the continuous features: one for each configuration of the parents that divide the
    rows, and the other parents are inputs. The DAG of greatest score is found exactly among all DAGs within the limits
    given here.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`, default=None
        The local model; None is ``pmdc.learners.Logistic(C="auto")``. It, `pmdc.learners.NaiveBayes` and scikit-learn's
        `LogisticRegression` (with an L2 penalty; solved to its optimum, whatever its solver and tolerance) and
        `GaussianNB` are fitted for all configurations together; any other is cloned for each.
    loss : str, loss object or callable, default="hamming"
        The loss that `predict` minimises when it is not told otherwise: "hamming", "subset" or any other that
        `pmdc.decisions.decide` knows.
    criterion : {"auto", "loo", "cv", "bic", "bic-full", "aic", "cll"} or callable, default="auto"
        What the score of a class variable's parents is. *Held out*: the log-probability of each row's state by models
        that were fitted without the row ("loo"; in closed form, for logistic regression approximately) or without its
        fold ("cv"; out-of-bag for forests with bootstrap, unless `cv` gives the folds); "auto" is "loo" for logistic
        regression and naive Bayes and "cv" for any other. *On the training rows*: the log-likelihood minus a penalty.
        "bic" is the paper's, 1/2 ln N x (states - 1) x (product of the parents' numbers of states), N the sum of the
        weights; "aic" has 1 in place of 1/2 ln N; "bic-full" counts every parameter of the local models; "cll" has
        none; a function of a `pmdc.scores.criteria.Size` returns any other.
    conditioning : {"auto", "partition", "input"}, default="auto"
        How parents enter. "partition": they divide the rows, with models of its own for each configuration (the paper).
        "input": they are inputs of one model, as in chains. "auto": the better of both for each parent, and each
        discrete feature may be left out, by a search with a budget (`pmdc.candidates`). Unless it is
        "partition", binary relevance and the chain in the order of the columns, if it is not too wide, are scored too.
    guard : float, default=2.0
        With a held-out criterion, parents must gain more than this many standard errors of what they gain, and the
        best of several ways of the discrete features as many more as luck may have brought (and never less than half
        the square of this number, in nats); otherwise the class variable does without them. 0: whatever scores best.
    cv : int, splitter or list of (train, test) rows, default=5
        The folds of ``criterion="cv"``, in which every row must be held out once. A number takes folds that are alike
        in all class variables (`pmdc.model_selection.MultiStratifiedKFold`, shuffled), and forests with bootstrap are
        asked out of the bag instead. A splitter and a list are always followed: models are fitted on the training rows
        that they give. A list has the rows as `fit` gets them; a splitter is shown those of positive weight, as the
        codes of their class variables.
    prune : {"lemma", "definition", None}, default="lemma"
        Which parent sets need no score, with criteria on the training rows. "lemma" keeps the optimum; "definition" is
        the paper's refinement, which can lose it (and is "lemma" unless ``conditioning="partition"``); None scores all.
    max_parents : int, default=3
        Most class variables in a parent set. Where parents may be inputs, the best sets of as many grow by further
        ones as inputs, as does the chain, unless it is 0.
    max_discrete_parents : int, default=3
        Most discrete features that divide the rows; inputs do not count.
    max_candidates : int, default=None
        Most parent sets to consider, over all class variables; None is no limit. Where there are more, each
        class variable keeps those possible parents that score best alone, as many as its equal share of the limit
        allows (to rank them, each is scored once); a warning says so, and `structure_.status` says over what the search
        was exact.
    discrete_features : "from_dtype", None or list of names, indices or booleans, default="from_dtype"
        Which columns of X are discrete. "from_dtype": categories, strings and booleans.
    search : {"auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree"}, default="auto"
        How the best DAG is found, or a good one (`pmdc.search.find_structure`).
    time_limit : float, default=None
        Seconds for this search; None is no limit. Where it is reached, the best DAG so far is taken, a warning says so,
        and `structure_` has the bound and the gap. So it is when this search is ended by Ctrl-C.
    gap : float, default=0.0
        The search may end as soon as the score is proved to be within this share of the greatest one.
    callback : callable, default=None
        Called during the search with the best `pmdc.search.Structure` over the class variables so far; it ends the
        search by returning True.
    required_edges, forbidden_edges : list of (parent, child) pairs of names, default=None
        Edges that the structure must or must not have. Columns of arrays are called x0, x1, ... and y0, y1, ...
    backoff : {"parents", "none", "paper"}, default="parents"
        What is answered for states and configurations that have few rows, or none. "parents": they are shrunk towards
        the model with fewer parents, as strongly as serves held-out rows best (with criteria on the training rows,
        only absent states are), so that nothing has probability zero. "none": zero for absent states, the uniform
        distribution for absent configurations. "paper": all that the authors' program does, see `as_in_paper`.
    memory_budget : int, default=2**30
        Bytes that the search of the structure may use, those for held-out rows that families are compared by (beyond
        it they are computed again), and those of inference besides its input and output. A structure for
        which a single row needs more is refused by `fit`, with the numbers.
    n_jobs : int, default=None
        Parallel workers for the local models, as in joblib. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Where the random states of the local models come from. None keeps those that the estimator was given.
    verbose : int, default=0
        1 reports the phases, what is done and the time left on the standard error stream.

    Attributes
    ----------
    classes_ : list of arrays, or one array for 1-D y
        The states of each class variable.
    graph_ : networkx.DiGraph
        The class variables and the chosen discrete features (node attribute ``kind``: "class" or "discrete"). Edges
        have the attributes ``way``, "partition" or "input", and ``strength``, what is lost without the edge: the score
        of the class variable's parents minus the greatest score of all of them but this one, or of fewer, in any way
        that was scored; 0 if that is no less. (Where all but this one have no score yet, they get one for this.)
    structure_ : pmdc.search.Structure
        Parents, score, bound, gap, status, seconds.
    scores_ : dict
        The score table: class variable -> {frozenset of parents: score}, the best of the ways that were tried and that
        `guard` has not refused; of those refused, if it has refused all.
    conditioning_ : dict
        Class variable -> {parent: "partition" or "input"}.
    C_ : dict
        Class variable -> C, where the estimator is ``Logistic(C="auto")``.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where all columns of X have string names.

    Notes
    -----
    A value of a discrete feature that has no rows in `fit` says nothing: where the feature divides the rows, such rows
    are answered by the models without that parent (with ``backoff="none"`` or "paper" by the uniform distribution);
    where it is an input, they count as the average of the values seen. A warning says so.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> data = make_network(500, random_state=0)
    >>> train, test = slice(0, 400), slice(400, 500)
    >>> model = GBNC(max_parents=2).fit(data.X[train], data.Y[train])
    >>> model.structure_.status
    'optimal over the 54 of 100 families that guard=2 leaves'
    >>> model.predict(data.X[test]).shape
    (100, 4)
    >>> [proba.shape for proba in model.predict_proba(data.X[test])]
    [(100, 3), (100, 3), (100, 3), (100, 3)]
    >>> bool(model.predict_joint(data.X[test]).log_prob(data.Y[test]).mean() > -4)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: LossLike = "hamming",
        criterion: str | criteria.Penalty = "auto",
        conditioning: str = "auto",
        guard: float = 2.0,
        cv: Any = 5,
        prune: str | None = "lemma",
        max_parents: int = 3,
        max_discrete_parents: int = 3,
        max_candidates: int | None = None,
        discrete_features: Any = "from_dtype",
        search: str = "auto",
        time_limit: float | None = None,
        gap: float = 0.0,
        callback: Callable[[Structure], Any] | None = None,
        required_edges: Iterable[tuple[str, str]] | None = None,
        forbidden_edges: Iterable[tuple[str, str]] | None = None,
        backoff: str = "parents",
        memory_budget: int = MEMORY_BUDGET,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.loss = loss
        self.criterion = criterion
        self.conditioning = conditioning
        self.guard = guard
        self.cv = cv
        self.prune = prune
        self.max_parents = max_parents
        self.max_discrete_parents = max_discrete_parents
        self.max_candidates = max_candidates
        self.discrete_features = discrete_features
        self.search = search
        self.time_limit = time_limit
        self.gap = gap
        self.callback = callback
        self.required_edges = required_edges
        self.forbidden_edges = forbidden_edges
        self.backoff = backoff
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def as_in_paper(cls, estimator: Any = None, **parameters: Any) -> GBNC:
        """A GBNC with the settings of the paper's experiments.

        BIC, up to three class variables and three discrete features as parents, logistic regression by stochastic
        gradient descent (or `GaussianNB()`, given as `estimator`), and ``backoff="paper"``: continuous features
        are scaled to [0, 1] over the training rows; a configuration without rows is answered by the uniform
        distribution; a part with one state gives it probability 1; in tables with discrete features, a part whose rows
        have equal continuous features but different states is answered by the uniform distribution and adds nothing to
        the score; probabilities in scores are kept above the machine precision.

        Parameters
        ----------
        estimator : scikit-learn classifier, default=None
            None is ``SGDClassifier(loss="log_loss")``.
        **parameters
            Any parameter of `GBNC`, in place of the paper's.
        """
        settings: dict[str, Any] = {
            "criterion": "bic",
            "conditioning": "partition",
            "max_parents": 3,
            "max_discrete_parents": 3,
            "backoff": "paper",
        }
        return cls(SGDClassifier(loss="log_loss") if estimator is None else estimator, **(settings | parameters))

    # Learning ------------------------------------------------------------------------------------------------

    def plan(self, X: Any, y: Any) -> Plan:
        """What `fit` would have to do, counted beforehand; nothing is fitted, and the classifier stays as it is.

        Parameters
        ----------
        X, y : tables as for `fit`

        Returns
        -------
        Plan
            A named tuple: `parent_sets`, within the limits and before pruning, and `local_models`, an upper bound on
            the models that they need (None where the sets are too many to be listed for it). Unless
            ``conditioning="partition"``, the sets are those of class variables alone, and None are the models, since
            how parents enter is found on the way.
        """
        other = copy(self)
        _, codes, _, _ = other._read_training(X, y, None)
        rules = other._rules()
        if self.conditioning == "partition":
            return other._plan(rules, len(codes))
        return Plan(sum(classes_alone(rule).count() for rule in rules), None)

    def _plan(self, rules: Sequence[ParentRules], n_rows: int) -> Plan:
        n_sets = sum(rule.count() for rule in rules)
        listed = n_sets <= _MANY_MODELS
        return Plan(n_sets, predicted_models(rules, self._sizes(), n_rows) if listed else None)

    def _sizes(self) -> tuple[int, ...]:
        """The numbers of states of all nodes: class variables, then discrete features."""
        return (*self.class_table_.sizes, *(len(states) for states in self.feature_table_.states))

    def _rules(self) -> list[ParentRules]:
        table = self.feature_table_
        return parent_rules(
            self.class_table_.names,
            table.discrete_names,
            [table.names[i] for i in table.continuous],
            self.max_parents,
            self.max_discrete_parents,
            self.required_edges,
            self.forbidden_edges,
            inputs=self.conditioning != "partition",
        )

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> GBNC:
        features, codes, weights, kept = self._read_training(X, y, sample_weight)
        self._learn(features, codes, weights, sample_weight is not None, kept)  # folds may be given for all rows
        return self

    def _learn(
        self,
        features: Features,
        codes: Codes,
        sample_weight: Floats,
        weighted: bool,
        kept: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        classes, table = self.class_table_, self.feature_table_
        n_classes = len(classes.names)
        rules = self._rules()
        learner = make_learner(
            self.estimator,
            features.numbers(),
            sample_weight,
            weighted=weighted,
            random_state=self.random_state,
            backoff=self.backoff,
            has_discrete=bool(table.discrete),
        )
        codes = np.asfortranarray(np.hstack([codes, features.discrete]))  # columns are what is read
        names = [*classes.names, *table.discrete_names]
        work = Rowwise(learner, codes, self._sizes(), n_classes)
        evaluator = self._make_evaluator(work, kept)
        with workers(self.n_jobs, self._say if self.verbose else None) as parallel:
            make_scores = partial(self._make_scores, rules, names, evaluator, parallel)
            work = self._with_strengths(work, rules, evaluator, make_scores, parallel)
            scores = make_scores(work)
            tables, limits = self._score(rules, scores, partial(make_scores, work))
            self._check_scores(tables)
            offered = offered_families(tables, scores)
            structure, chosen = self._find_structure(offered)
            tasks = [
                (child, backoff_chains(partial(scores.fewer, child), family, n_classes))
                for child, family in enumerate(chosen)
            ]
            strengths = [inherited_strengths(chains, partial(scores.strength, child)) for child, chains in tasks]
            tell_phase("fitting the local models")
            nodes = parallel(_fit_node, list(zip(tasks, strengths, strict=True)), work, self.backoff == "parents")
            tell_phase("weighing the edges")
            losses = losses_without(scores, chosen)
        self._network = Network(nodes, learner.prepare, work.sizes)
        self.scores_ = named_scores(tables, offered, names)
        if work.strengths is not None:
            self.C_ = {
                names[child]: work.strengths[child][bool(family.classes(n_classes))]
                for child, family in enumerate(chosen)
            }
        self.conditioning_ = named_ways(chosen, names)
        parents = {name: frozenset(ways) for name, ways in self.conditioning_.items()}
        limits += self._limits(sum(map(len, tables)), sum(map(len, offered)))
        status = " ".join([structure.status, "over", " and ".join(limits)]) if limits else structure.status
        self.structure_ = replace(structure, parents=parents, status=status)
        self.graph_ = named_graph(self.conditioning_, classes.names, losses)
        self._say(f"structure: {self.structure_}")

    def _make_evaluator(self, work: Rowwise, kept: npt.NDArray[np.bool_] | None) -> Evaluator | None:
        """What asks models about rows that they have not seen, where needed; folds are read here, and only once."""
        held_out = criteria.is_held_out(self.criterion)
        if not held_out and not _has_strength_to_choose(work.learner):
            return None
        classes = work.codes[:, : work.n_classes]
        return make_evaluator(str(self.criterion) if held_out else "loo", work.learner, classes, self.cv, kept)

    def _with_strengths(
        self,
        work: Rowwise,
        rules: Sequence[ParentRules],
        evaluator: Evaluator | None,
        make_scores: Callable[[Rowwise], Scores],
        parallel: Parallel,
    ) -> Rowwise:
        """C for the models of each class variable, where it is to be chosen."""
        if evaluator is None or not _has_strength_to_choose(work.learner):
            return work
        work = choose_strengths(
            work,
            rules,
            self.conditioning,
            evaluator,
            make_scores,
            parallel,
            shrunk=self.backoff == "parents",
        )
        told = ", ".join(f"{a:g}" if a == b else f"{a:g} ({b:g})" for a, b in work.strengths or ())
        self._say(f"strength C of each class variable (with class variables as parents): {told}")
        return work

    def _make_scores(
        self,
        rules: Sequence[ParentRules],
        names: Sequence[str],
        evaluator: Evaluator | None,
        parallel: Parallel,
        work: Rowwise,
    ) -> Scores:
        n_classes = len(rules)
        if evaluator is None or not criteria.is_held_out(self.criterion):
            return TrainingScores(work, parallel, self._penalty(work, names))
        every = self.conditioning == "partition"
        return HeldOutScores(
            work,
            parallel,
            evaluator,
            self.guard,
            (lambda family: family.parents) if every else (lambda family: family.classes(n_classes)),
            [rule.required for rule in rules],
            self.memory_budget,
            shrunk=self.backoff == "parents",
        )

    def _penalty(self, work: Rowwise, names: Sequence[str]) -> Callable[[int, Family], float]:
        n_rows = float(work.learner.sample_weight.sum())

        def penalty(child: int, family: Family) -> float:
            inputs = [work.sizes[p] for p in family.inputs]
            size = criteria.Size(
                work.sizes[child],
                [work.sizes[p] for p in family.partition],
                inputs,
                n_rows,
                work.learner.n_parameters(work.sizes[child], inputs),
            )
            whose = f"{names[child]!r} with parents {[names[p] for p in family.parents]}"
            return criteria.ask_penalty(self.criterion, size, whose, self.estimator)

        return penalty

    def _check_scores(self, tables: Sequence[FamilyTable]) -> None:
        """Refuse a penalty that leaves a class variable nothing."""
        for name, table in zip(self.class_table_.names, tables, strict=True):
            if callable(self.criterion) and not any(score > -np.inf for score in table.values()):
                raise ValueError(
                    f"criterion={self.criterion!r} refused every parent set of the class variable {name!r}: its "
                    "penalty is inf for each. Let it answer a finite number for some, such as the empty one."
                )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        criteria.penalty_of(self.criterion)
        check_choice("conditioning", self.conditioning, WAYS)
        errors = self.guard
        if isinstance(errors, bool) or not isinstance(errors, Real) or not 0 <= errors < np.inf:
            raise ValueError(f"guard={errors!r} must be a number of at least 0; 0 switches the guard off.")
        if isinstance(self.cv, Real):
            check_count("cv", self.cv, 2)
        elif isinstance(self.cv, (str, bytes, type)) or not (
            hasattr(self.cv, "split") or isinstance(self.cv, Iterable)
        ):
            raise ValueError(f"cv={self.cv!r} must be a number of folds, a splitter or a list of (train, test) rows.")
        check_choice("prune", self.prune, PRUNING)
        check_choice("search", self.search, METHODS)
        check_time_limit(self.time_limit)
        check_gap(self.gap)
        check_callback(self.callback)
        check_choice("backoff", self.backoff, ("parents", "none", "paper"))
        check_count("max_parents", self.max_parents, 0)
        check_count("max_discrete_parents", self.max_discrete_parents, 0)
        check_count("memory_budget", self.memory_budget, 1)
        if self.max_candidates is not None:
            check_count("max_candidates", self.max_candidates, 1)

    def _score(
        self, rules: list[ParentRules], scores: Scores, fresh: Callable[[], Scores]
    ) -> tuple[list[FamilyTable], list[str]]:
        """Phase P1: the score table, and what limits it."""
        n_rows = len(scores.work.codes)
        if self.conditioning == "partition":
            return self._score_partitions(rules, scores, n_rows)
        alone = [classes_alone(rule) for rule in rules]
        # The guard is not to be passed by what is only asked for here, before the features are settled.
        kept, _, limits = self._restrict(
            alone, n_rows, lambda tasks: fresh()([(child, Family((), parents)) for child, parents in tasks])
        )
        cut = [
            replace(rule, optional=(*few.optional, *(v for v in rule.optional if v >= rule.n_classes)))
            for rule, few in zip(rules, kept, strict=True)
        ]

        def skip(child: int, family: Family, bound: float) -> bool:
            """The Lemma: C(Y, D) <= 0, so no family is better than a subset that loses less than its penalty."""
            if not isinstance(scores, TrainingScores) or self.prune is None:
                return False
            return bound >= -scores.penalty(child, family)

        FamilySearch(
            cut,
            rules,
            scores,
            self.conditioning == "auto",
            ranked_features(scores.work, rules),
            self._affordable,
            skip,
            self._say,
        ).run()
        # What others were compared with is a candidate too, whoever asked for its score.
        tables = [
            {f: value for f, value in scores.known[rule.child].items() if rule.required <= set(f.parents)}
            for rule in rules
        ]
        return tables, limits

    def _score_partitions(
        self, rules: list[ParentRules], scores: Scores, n_rows: int
    ) -> tuple[list[FamilyTable], list[str]]:
        """All parents divide the rows: the paper's way."""
        largest = max(rule.max_size() for rule in rules)

        def score(tasks: Sequence[tuple[int, ParentSet]]) -> list[float]:
            return scores([(child, Family(p)) for child, p in tasks], bool(tasks) and len(tasks[0][1]) == largest)

        def penalty(child: int, parents: ParentSet) -> float:
            return scores.penalty(child, Family(parents)) if isinstance(scores, TrainingScores) else 0.0

        rules, known, limits = self._restrict(rules, n_rows, score)
        prune = self.prune if isinstance(scores, TrainingScores) else None
        if prune == "definition":
            limits.append("the parent sets that prune='definition' leaves")
        tables = score_parent_sets(rules, penalty, score, prune, known, self._say)
        return [{Family(p): value for p, value in table.items()} for table in tables], limits

    def _affordable(self, child: int, family: Family) -> bool:
        sizes = self._sizes()
        classes = family.classes(len(self.class_table_.names))
        return len(classes) <= self.max_parents or math.prod(sizes[p] for p in (child, *classes)) <= _WIDEST

    def _restrict(
        self, rules: list[ParentRules], n_rows: int, score: Callable[..., list[float]]
    ) -> tuple[list[ParentRules], list[ScoreTable] | None, list[str]]:
        """Say what is to be done before it is done; cut the candidates where `max_candidates` asks for it."""
        n_sets = sum(rule.count() for rule in rules)
        if self.max_candidates is not None and n_sets > self.max_candidates:
            rules, known = restrict(rules, self.max_candidates, score)
            kept = sum(rule.count() for rule in rules)
            over = f"the {kept} of {n_sets} parent sets that max_candidates={self.max_candidates} leaves"
            warnings.warn(
                f"There are {n_sets} parent sets within max_parents={self.max_parents} and "
                f"max_discrete_parents={self.max_discrete_parents}, more than max_candidates={self.max_candidates}. "
                f"Each class variable keeps the possible parents that score best alone: {kept} sets are left, and "
                "the structure is the best over these.",
                UserWarning,
                stacklevel=6,
            )
            return rules, known, [over]
        models = self._plan(rules, n_rows).local_models
        told = "very many" if models is None else f"up to {models}"
        self._say(f"{n_sets} parent sets with {told} local models")
        if self.max_candidates is None and (models is None or models > _MANY_MODELS):
            warnings.warn(
                f"{n_sets} parent sets with {told} local models are to be fitted, which may take long. Lower "
                "max_parents or max_discrete_parents, or set max_candidates, if that is not what you want.",
                UserWarning,
                stacklevel=6,
            )
        return rules, None, []

    def _find_structure(self, tables: Sequence[FamilyTable]) -> tuple[Structure, list[Family]]:
        """Phase P2, over the class variables alone, and the whole family of each class variable.

        The network is compiled before the winners are fitted: one that is too wide for exact inference is refused here.
        Where families with more inputs than `max_parents` are to blame, the search goes on without them.
        """
        structure, chosen = self._best_structure(tables)
        try:
            self._junction_tree = self._compile(chosen)
        except NetworkTooWideError as error:
            n_classes = len(self.class_table_.names)
            narrow = [
                {f: score for f, score in table.items() if len(f.classes(n_classes)) <= self.max_parents}
                for table in tables
            ]
            if narrow == list(tables):
                raise
            warnings.warn(
                f"{error} So no class variable gets more than max_parents={self.max_parents} others as inputs.",
                UserWarning,
                stacklevel=6,
            )
            structure, chosen = self._best_structure(narrow)
            self._junction_tree = self._compile(chosen)
        return structure, chosen

    def _compile(self, chosen: Sequence[Family]) -> JunctionTree:
        sizes = self.class_table_.sizes
        scopes = family_scopes([f.classes(len(sizes)) for f in chosen])
        return JunctionTree(sizes, scopes, memory_budget=self.memory_budget)

    def _best_structure(self, tables: Sequence[FamilyTable]) -> tuple[Structure, list[Family]]:
        tell_phase("searching the best graph")
        names = self.class_table_.names
        settled = [settle_families(table, len(names)) for table in tables]
        structure = find_structure(
            {
                name: {frozenset(names[p] for p in parents): score for parents, (score, _) in settled[child].items()}
                for child, name in enumerate(names)
            },
            self.search,
            time_limit=self.time_limit,
            gap=self.gap,
            callback=self.callback,
            memory_budget=self.memory_budget,
            verbose=self.verbose,
        )
        if structure.status in _REMEDIES:
            warnings.warn(
                f"The search of the structure stopped ({structure.status}) before the best DAG was proved: its score "
                f"{structure.score:.6g} may be up to {structure.bound - structure.score:.3g} below the greatest. "
                f"{_REMEDIES[structure.status]}, or lower max_parents or max_candidates.",
                UserWarning,
                stacklevel=6,
            )
        chosen = []
        for child, name in enumerate(names):
            class_parents = tuple(sorted(names.index(p) for p in structure.parents[name]))
            chosen.append(settled[child][class_parents][1])
        return structure, chosen

    def _limits(self, scored: int, offered: int) -> list[str]:
        """Over which of the families that were scored the structure is the best."""
        if self.guard and offered < scored:
            return [f"the {offered} of {scored} families that guard={self.guard:g} leaves"]
        return [] if self.conditioning == "partition" else [f"the {scored} families scored"]

    def _say(self, message: str) -> None:
        if self.verbose:
            sys.stderr.write(f"[GBNC] {message}\n")

    def _own_graph(self) -> networkx.DiGraph:
        return self.graph_

    # Predicting ----------------------------------------------------------------------------------------------

    def _distribution(self, features: Features) -> JointDistribution:
        return JointDistribution(
            self.class_table_, self._network.class_parents, self._network.tables(features), self._junction_tree
        )

    def _cells_per_row(self) -> int:
        return self._network.cells_per_row

    def _unseen_answer(self) -> str:
        if self.backoff == "parents":
            divides = "models without that parent answer for them"
        else:
            divides = f"with backoff={self.backoff!r} the uniform distribution answers for them"
        ways = {
            way
            for parents in self.conditioning_.values()
            for name, way in parents.items()
            if name not in self.class_table_.names
        }
        if "input" not in ways:
            return divides[0].upper() + divides[1:] + "."
        return (
            f"Where it is an input, it counts as the average of the values seen; where it divides the rows, {divides}."
        )

    def _used_discrete(self) -> list[int]:
        n_classes = len(self.class_table_.names)
        return sorted({p - n_classes for node in self._network.nodes for p in node.parents if p >= n_classes})


def _has_strength_to_choose(learner: LocalLearner) -> bool:
    return isinstance(learner, Adjustable) and learner.auto


def _fit_node(
    task: tuple[tuple[int, Sequence[Sequence[Family]]], dict[Family, float | None]], work: Rowwise, backoff: bool
) -> Node:
    """A task for the workers."""
    (child, chains), strengths = task
    learner = partial(work.learner_of, child)
    return fit_node(learner, child, work.codes, work.sizes, chains, strengths.get, backoff)
