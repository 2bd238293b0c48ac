"""GBNC: the classifier. Its parameters and attributes; what it learns comes from `pmdc.learn.learn_network`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import SGDClassifier

from pmdc._support.checks import check_choice, check_count
from pmdc.candidates.family_search import CONDITIONING
from pmdc.candidates.pruning import PRUNING
from pmdc.candidates.rules import ParentRules, parent_rules
from pmdc.decisions.decide import LossLike
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.inference import JointDistribution
from pmdc.inference.junction_tree import MEMORY_BUDGET
from pmdc.learn import LearnedNetwork, learn_network
from pmdc.network.summary import named_conditioning, named_graph, named_scores
from pmdc.scores import criteria
from pmdc.scores.families import Plan, plan
from pmdc.search import METHODS, Structure
from pmdc.search.structure import check_callback, check_gap, check_time_limit
from pmdc.settings import Settings
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    import networkx


class GBNC(MultiDimensionalClassifier):
    """Generalised Bayesian network classifier: P(Y1..YK | x) as a Bayesian network of local classifiers.

    The structure is a DAG over the class variables in which discrete features may be parents too. Each class variable
    has probabilistic classifiers of the continuous features: one for each configuration of the parents that partition
    the rows, and the other parents are inputs. The DAG of greatest score is found exactly among all DAGs within the
    limits given here.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`, default=None
        The local model; None is ``pmdc.learners.Logistic(C="auto")``. It, `pmdc.learners.NaiveBayes` and scikit-learn's
        `LogisticRegression` (with an L2 penalty; solved to its optimum, whatever its solver and tolerance) and
        `GaussianNB` are fitted for all configurations together; any other is cloned for each.
    loss : str, loss object or callable, default="hamming"
        The loss that `predict` minimises when it is not told otherwise: "hamming", "subset" or any other that
        `pmdc.decisions.decide` knows.
    criterion : {"auto", "cv", "loo", "bic", "bic-full", "aic", "cll"} or callable, default="auto"
        What the score of a class variable's parents is. *Held out*: the log-probability of each row's state by models
        that were fitted without its fold ("cv"; out-of-bag for forests with bootstrap, unless `cv` gives the folds) or
        without the row ("loo"; naive Bayes alone has it, in closed form); "auto" is "loo" for naive Bayes and "cv" for
        any other. *On the training rows*: the log-likelihood minus a penalty.
        "bic" is the paper's, 1/2 ln N x (states - 1) x (product of the parents' numbers of states), N the sum of the
        weights; "aic" has 1 in place of 1/2 ln N; "bic-full" counts every parameter of the local models; "cll" has
        none; a function of a `pmdc.scores.criteria.Size` returns any other.
    conditioning : {"auto", "partition", "input"}, default="auto"
        How parents enter. "partition": they partition the rows, with models of its own for each configuration (the
        paper). "input": they are inputs of one model, as in chains. "auto": the better of both for each parent, and
        each discrete feature may be left out, by a search with a budget (`pmdc.candidates`). Unless it is
        "partition", binary relevance and the chain in the order of the columns, if it is not too wide, are scored too.
    guard : float, default=2.0
        With a held-out criterion, parents must gain more than this many standard errors of what they gain, and the
        best of several changes of the discrete features as many more as luck may have brought (and never less than half
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
        Most discrete features that partition the rows; inputs do not count.
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
        have the attributes ``conditioning``, "partition" or "input", and ``strength``, the score lost without the edge:
        the score of the class variable's parents minus that of all but this one, or, where that was not scored, the
        same for the largest subset of the parents for which it was; 0 if nothing is lost. Required edges have none.
    structure_ : pmdc.search.Structure
        Parents, score, bound, gap, status, seconds.
    scores_ : dict
        The score table: class variable -> {frozenset of parents: score}, the best of the families that were scored
        and accepted by the guard; of those not accepted, if none was.
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
    'optimal over the 52 of 100 families that guard=2 leaves'
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
        rows = other._read_training(X, y, None)
        rules = other._rules()
        if self.conditioning == "partition":
            return plan(rules, rows.sizes, len(rows))
        return Plan(sum(rule.classes_alone().count() for rule in rules), None)

    def _learn(self, rows: TrainingRows) -> None:
        settings = self._settings()
        self._publish(learn_network(rows, settings))
        settings.log(f"structure: {self.structure_}")

    def _names(self) -> list[str]:
        """The names of all nodes: class variables, then discrete features."""
        return [*self.class_table_.names, *self.feature_table_.discrete_names]

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

    def _settings(self) -> Settings:
        own = ("rules", "names")
        given = {name: getattr(self, name) for name in Settings.__dataclass_fields__ if name not in own}
        return Settings(rules=self._rules(), names=self._names(), **given)

    def _publish(self, learned: LearnedNetwork) -> None:
        """Set the fitted attributes: what was learned, by name."""
        names, n_classes = self._names(), len(learned.families)
        self._network = learned.network
        self._junction_tree = learned.junction_tree
        self.scores_ = named_scores(learned.tables, learned.accepted, names)
        self.conditioning_ = named_conditioning(learned.families, names)
        self.graph_ = named_graph(learned.families, learned.arc_strengths, names)
        if learned.C is not None:
            self.C_ = {
                names[child]: learned.C[child][bool(family.classes(n_classes))]
                for child, family in enumerate(learned.families)
            }
        structure, limits = learned.structure, " and ".join(learned.limits)
        self.structure_ = replace(
            structure,
            parents={name: frozenset(parents) for name, parents in self.conditioning_.items()},
            status=f"{structure.status} over {limits}" if limits else structure.status,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        criteria.penalty_of(self.criterion)
        check_choice("conditioning", self.conditioning, CONDITIONING)
        if isinstance(self.guard, bool) or not isinstance(self.guard, Real) or not 0 <= self.guard < np.inf:
            raise ValueError(f"guard={self.guard!r} must be a number of at least 0; 0 switches the guard off.")
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
