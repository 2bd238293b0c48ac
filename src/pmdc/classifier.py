"""`GBNC`: parameters, checks and attributes of the classifier; `pmdc.learn` learns the network."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.utils.validation import check_is_fitted

from pmdc._support.checks import check_choice, check_count
from pmdc._support.deadline import Deadline
from pmdc._support.progress import noting
from pmdc._support.warn import warn_user
from pmdc.blocks import Blocks
from pmdc.bounds import check_bounds
from pmdc.candidates.family_search import CONDITIONING
from pmdc.candidates.pruning import PRUNING
from pmdc.configure import configure, learn_blocks, plan_for
from pmdc.decisions.decide import LossLike
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.incomplete import MISSING_LABELS, learn_incomplete, usable_rows
from pmdc.inference import JointDistribution
from pmdc.inference.junction_tree import MEMORY_BUDGET
from pmdc.learn import LearnedNetwork
from pmdc.network.summary import conditioning_of, named_graph, named_scores
from pmdc.network.words import headline
from pmdc.scores import criteria
from pmdc.scores.families import Plan, plan
from pmdc.search import METHODS, Structure
from pmdc.search.structure import check_callback, check_gap, check_time_limit
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    import networkx


class GBNC(MultiDimensionalClassifier):
    """Generalised Bayesian network classifier: a joint distribution of several class variables given features.

    `GBNC` learns a directed acyclic graph (DAG) over the class variables, and one probabilistic classifier for each of
    them given its parents in the graph and the features. Together they define P(Y1, ..., YK | x), from which
    predictions for any loss, probabilities, samples and what-if answers are computed exactly. Discrete features may be
    parents as well; continuous features enter every local model. The graph has the greatest score of all DAGs over the
    candidate parent sets.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`, or dict, default=None
        The local model. None is a conditional logit on the expert features or, without experts,
        ``pmdc.learners.Logistic(C="auto")``. Fast engines exist for `Logistic`, `pmdc.learners.NaiveBayes`, and
        scikit-learn's `LogisticRegression` (L2 penalty; solved to its optimum for any `solver` and `tol`) and
        `GaussianNB`. Any other classifier is cloned for each model. A dict gives class variables, by name, their own.
    experts : "auto", None, list of scikit-learn classifiers, or dict, default="auto"
        Strong classifiers of x alone. Each class variable has its own, fitted out of fold; the local models, in which
        the parents enter, are on their log-probabilities.

        - "auto": forests, logistic regression and gradient boosting, of which each class variable keeps those that
          improve held-out rows; none for a class variable with an `estimator` of its own.
        - None: local models on the features themselves, as in the paper. Discrete features may then be parents.
        - A list: these classifiers, which need `predict_proba`; they get numbers, discrete features as indicators.
        - A dict: one of these for each class variable, by name; "auto" for those that it does not name.
    expert_models : {"auto", "folds", "refit"}, default="auto"
        What answers new rows: the mean of an expert's models without each fold ("folds"), or one more model fitted on
        all rows ("refit"). "auto" is "folds" below 3,000 rows and "refit" above.
    loss : str, loss object or callable, default="hamming"
        The loss that `predict` minimises: "hamming", "subset" or any other that `pmdc.decisions.decide` accepts.
    criterion : {"auto", "cv", "loo", "bic", "bic-full", "aic", "cll"} or callable, default="auto"
        The score of a class variable's parents.

        - Held-out criteria are the log-probability of each row under local models that have not seen it: "cv" by
          cross-validation (out-of-bag for forests with bootstrap, unless `cv` gives folds), "loo" by leave-one-out
          (for naive Bayes exactly; on experts by one Newton step, which is too optimistic for class variables of many
          states). "auto" is "loo" for naive Bayes and "cv" for all others.
        - Penalised criteria are the log-likelihood of the training rows minus a penalty. "bic" is the paper's,
          1/2 ln N x (states - 1) x (product of the parents' numbers of states), with N the sum of the weights of the
          rows in which the class variable is known. "aic" has 1 instead of 1/2 ln N, "bic-full" counts all parameters
          of the local models, "cll" has no penalty. A function of a `pmdc.scores.criteria.Size` may return any other
          penalty.
    conditioning : {"auto", "partition", "input"}, default="auto"
        How parents enter the local models. "partition": one model for each configuration of the parents (the paper's
        way). "input": one model with the parents as inputs, as in a classifier chain. "auto": whichever is better for
        each parent; discrete features may also be left out. "auto" and "input" use a heuristic search for candidates
        (`pmdc.candidates.family_search`). Those of "auto" include all that "input" scores and, as far as they are
        affordable, those of "partition": parent sets of increasing size, as long as the number of sets times that of
        rows is at most two million.
    blocks : None, "auto" or list of lists of names, default=None
        Class variables that form one node of the network, whose states are their observed combinations. "auto" tries
        one block of all class variables, if they have at most 1,024 combinations, and blocks of the pairs with the
        strongest arcs, at most three (none with missing states in y); each costs another fit, with forests as the
        experts of the block, and is kept if held-out rows gain more than the guard. Blocks that are kept are learned
        once more with all experts.
    guard : float, default=2.0
        The significance that arcs need with held-out criteria, in standard errors for the graph as a whole: if no class
        variable had any effect on another, a graph would have an arc with about the probability that a normal variable
        exceeds this number in absolute value, 5 % with 2. Single arcs are tested at a correspondingly higher level
        (`pmdc.scores.guard`). 0 switches the guard off.
    missing_labels : {"em", "available", "drop", "error"}, default="em"
        What is done about missing states in y. "em" learns from all rows with a known state by structural EM: rows are
        completed in all ways, weighted by their probability given the features and the known states, and the network
        is learned again until it settles (`pmdc.incomplete`). "available" fits each family on the rows in which its
        class variable and its parents are known. "drop" leaves out rows with a missing state, "error" refuses them.
        Without missing states all are the same.
    use_unlabelled : bool, default=False
        Whether "em" also uses rows without any known state. True is an error with the other choices.
    cv : int, splitter or list of (train, test) rows, default=5
        The folds of cross-validation. A number deals the rows at random, by their contents: the order of the rows does
        not matter, and a row of weight 3 is dealt as three equal rows (in one fold with experts, which deal folds of
        their own, and with EM). A list contains positions in the table given to `fit`; a splitter is called with the
        rows of positive weight. In both, every row must be held out exactly once, a row is in one fold whatever its
        weight, and the experts use these folds too.
    prune : {"lemma", "definition", None}, default="lemma"
        Which parent sets are not scored, with penalised criteria. "lemma" preserves the optimum. "definition" is the
        paper's refinement, which may lose it (only with ``conditioning="partition"``; otherwise the same as "lemma").
        None scores all.
    max_parents : int or None, default=None
        Maximal number of class variables in a parent set, however they enter. None is three; unless
        ``conditioning="partition"``, the best sets of three may then be extended by further class variables as inputs,
        as long as the conditional table of the class variable has at most 1,024 cells for each row.
    max_discrete_parents : int, default=3
        Maximal number of discrete features that partition the rows; inputs do not count.
    max_candidates : int, default=None
        Maximal number of parent sets over all class variables. If there are more, each class variable keeps the
        possible parents that score best alone, as many as its equal share allows, and a warning is given.
    discrete_features : "from_dtype", None or list of names, indices or booleans, default="from_dtype"
        The discrete columns of X. "from_dtype": categorical, string and boolean columns.
    search : {"auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree"}, default="auto"
        The algorithm of the structure search (`pmdc.search.find_structure`).
    max_treewidth : int, default=None
        Greatest treewidth of the graph: inference needs no table over more than ``max_treewidth + 1`` class variables.
        Each class variable of a block counts. With a bound, `search` must be "auto", "hill-climb" or "tree", and
        parent sets that exceed it are not scored.
    max_clique_cells : int, default=None
        Greatest number of cells of such a table, the product of the numbers of states; for a block, of its members.
        What a row costs in time and memory depends on it. Without it, the graph is searched again with a bound that
        fits, and a warning is given, if the best one needs more than `memory_budget`.
    time_budget : float, default=None
        Seconds of wall-clock time for the whole fit. What would end too late is not begun: further experts, further
        parent sets, experts given the parents. One expert of each class variable and the best graph over the parent
        sets scored so far are always fitted, however small the budget. If anything was left out, one warning says what,
        and `structure_.status` says if parent sets were; the result then depends on the speed of the machine. Otherwise
        the result is the same as without a budget. The first fit after an installation also compiles kernels, for some
        seconds.
    time_limit : float, default=None
        Seconds for the structure search alone, within `time_budget`. When it is reached, or after Ctrl-C, the best DAG
        so far is used with a warning; `structure_` has the bound and the gap.
    gap : float, default=0.0
        The structure search may stop when the score is proved to be within this relative gap of the optimum.
    callback : callable, default=None
        Called during the structure search with the best `pmdc.search.Structure` so far; return True to stop.
    required_edges, forbidden_edges : list of (parent, child) pairs of names, default=None
        Edges that the graph must or must not have. Columns of arrays are named x0, x1, ... and y0, y1, ...
    tiers : list of lists of names, default=None
        A partial order of the class variables: each tier comes before the next, and no edge leads from a later tier to
        an earlier one. Class variables in no tier are free.
    backoff : {"parents", "none", "paper"}, default="parents"
        The treatment of configurations and states with few rows or none. "parents": probabilities are shrunk towards
        the model with fewer parents, with a weight chosen by held-out rows (with penalised criteria, only for states
        without rows), so that no probability is zero. "none": probability zero for states without rows, the uniform
        distribution for configurations without rows. "paper": as the authors' program, see `as_in_paper`.
    memory_budget : int, default=2**30
        Bytes for the structure search, for the cache of held-out rows, and for inference besides its input and output.
        If inference in the best graph needs more for a single row, the best graph with smaller cliques is used, see
        `max_clique_cells`; `fit` raises an error only if the required edges alone need more.
    n_jobs : int, default=None
        Number of parallel workers, as in joblib. It does not change the result.
    random_state : int, RandomState or None, default=None
        Seed of the random states of the local models, and of the structure search with a bound. None keeps those of the
        estimator.
    verbose : int, default=0
        1 reports progress on standard error.

    Attributes
    ----------
    classes_ : list of arrays, or one array for 1-D y
        The states of each class variable.
    experts_ : dict
        Class variable -> list of `pmdc.experts.ExpertScore`: the name of each expert that was tried, its held-out
        log-loss alone (NaN if it was dropped after a third of the rows), and whether it is used.
    blocks_ : list of lists of str
        The blocks of several class variables. In `scores_`, `C_` and `experts_` the name of a block is that of its
        members, joined by " + ".
    graph_ : networkx.DiGraph
        The class variables and the chosen discrete features (node attribute ``kind``: "class" or "discrete"). Edges
        have the attributes ``conditioning`` ("partition", "input", or "block" within a block) and ``strength``, the
        arc strength: the score lost without the edge, compared with the best accepted family of which all parents are
        among the others. Required edges have no strength. ``determined`` is False if the direction is not: the best
        graph with the reversed edge scores as well, up to `guard` standard errors. With ``missing_labels="available"``
        or `cell_weight`, ``n_rows`` of class variables and edges is the number of rows (the sum of their weights) that
        count in the score and in the strength, where it is not that of all rows.
    structure_ : pmdc.search.Structure
        Parents, score, bound, gap, status and seconds. With a bound on cliques, the status names it, and
        `elimination_order` is the order that inference uses.
    scores_ : dict
        Class variable -> {frozenset of parents: score}, the best accepted family of each parent set, or the best of
        all if none was accepted.
    conditioning_ : dict
        Class variable -> {parent: "partition", "input" or "block"}.
    C_ : dict
        Class variable -> chosen C, if the estimator is ``Logistic(C="auto")``.
    frequencies_ : pmdc.table.frequencies.Frequencies
        How often each state of each class variable occurs in the training rows, and the most frequent outcome.
    n_rows_used_ : int
        The number of rows learned from: those of positive weight, without those that `missing_labels` and
        `use_unlabelled` leave out.
    em_ : pmdc.incomplete.EMResult
        Rounds, log-likelihoods and convergence of structural EM, if the rows learned from had missing states. The
        scores are then those of the completed rows.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if all columns of X have string names.

    Notes
    -----
    A value of a discrete feature without rows in `fit` carries no information, and a warning is given. If the feature
    partitions the rows, the models without this parent are used (the uniform distribution with ``backoff="none"`` or
    "paper"); if it is an input, it is treated as the average of the values seen.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> data = make_network(500, random_state=0)
    >>> train, test = slice(0, 400), slice(400, 500)
    >>> model = GBNC().fit(data.X[train], data.Y[train])
    >>> model.structure_.status.startswith("optimal")
    True
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
        experts: Any = "auto",
        expert_models: str = "auto",
        loss: LossLike = "hamming",
        criterion: str | criteria.Penalty = "auto",
        conditioning: str = "auto",
        blocks: Any = None,
        guard: float = 2.0,
        missing_labels: str = "em",
        use_unlabelled: bool = False,
        cv: Any = 5,
        prune: str | None = "lemma",
        max_parents: int | None = None,
        max_discrete_parents: int = 3,
        max_candidates: int | None = None,
        discrete_features: Any = "from_dtype",
        search: str = "auto",
        max_treewidth: int | None = None,
        max_clique_cells: int | None = None,
        time_budget: float | None = None,
        time_limit: float | None = None,
        gap: float = 0.0,
        callback: Callable[[Structure], Any] | None = None,
        required_edges: Iterable[tuple[str, str]] | None = None,
        forbidden_edges: Iterable[tuple[str, str]] | None = None,
        tiers: Sequence[Collection[str]] | None = None,
        backoff: str = "parents",
        memory_budget: int = MEMORY_BUDGET,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.experts = experts
        self.expert_models = expert_models
        self.loss = loss
        self.criterion = criterion
        self.conditioning = conditioning
        self.blocks = blocks
        self.guard = guard
        self.missing_labels = missing_labels
        self.use_unlabelled = use_unlabelled
        self.cv = cv
        self.prune = prune
        self.max_parents = max_parents
        self.max_discrete_parents = max_discrete_parents
        self.max_candidates = max_candidates
        self.discrete_features = discrete_features
        self.search = search
        self.max_treewidth = max_treewidth
        self.max_clique_cells = max_clique_cells
        self.time_budget = time_budget
        self.time_limit = time_limit
        self.gap = gap
        self.callback = callback
        self.required_edges = required_edges
        self.forbidden_edges = forbidden_edges
        self.tiers = tiers
        self.backoff = backoff
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def as_in_paper(cls, estimator: Any = None, **parameters: Any) -> GBNC:
        """Make a GBNC with the settings of the paper's experiments.

        These are BIC, at most three class variables and three discrete features as parents, logistic regression by
        stochastic gradient descent (or `GaussianNB()`, given as `estimator`), and ``backoff="paper"``: continuous
        features are scaled to [0, 1]; a configuration without rows has the uniform distribution; a part with one state
        gives it probability 1; in tables with discrete features, a part whose rows have equal continuous features but
        different states has the uniform distribution and adds nothing to the score; probabilities in scores are at
        least the machine precision.

        Parameters
        ----------
        estimator : scikit-learn classifier, default=None
            None is ``SGDClassifier(loss="log_loss")``.
        **parameters
            Other parameters of `GBNC`, which override the paper's.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, cell_weight: Any = None) -> GBNC:
        """Learn the conditional joint distribution of the class variables.

        Parameters
        ----------
        X, sample_weight : as in `BinaryRelevance.fit`
        y : DataFrame, 2-D array, list of rows, or 1-D array for a single class variable
            The states of the class variables, as in `BinaryRelevance.fit`. A cell may be missing (NaN, None, NA), see
            `missing_labels`, or a set or frozenset of states, one of which is the true one (a weak label): "em"
            completes the row with these states only, the other choices treat it as missing. (scikit-learn's own
            splitting, ``cv=5``, fails on such cells: use `pmdc.model_selection.MultiStratifiedKFold`, or KFold.)
        cell_weight : array-like of shape (n, K), optional
            The weight of each cell of y in learning its class variable, times that of its row: how much doubtful or
            expensive states count. A state of weight zero is treated as missing. As the state of a parent, and in
            completing other cells of the row, a state counts in full.

        Returns
        -------
        self

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> gappy = data.Y.astype(object)
        >>> gappy.iloc[:90, 0] = None
        >>> gappy.at[90, "y1"] = {"a", "b"}
        >>> model = GBNC(experts=None, max_parents=1).fit(data.X, gappy)
        >>> model.em_.converged
        True
        """
        return self._fit(X, y, sample_weight, cell_weight)

    def plan(self, X: Any, y: Any) -> Plan:
        """Estimate the work of `fit` without fitting anything or changing the classifier.

        Parameters
        ----------
        X, y : tables as for `fit`

        Returns
        -------
        Plan
            A named tuple: `parent_sets` within the limits, before pruning (with a bound on cliques, some of these may
            exceed it); `local_models`, an upper bound on the models that they need (None if there are too many sets to
            list); and `experts`, the folds and candidates of the default experts with what is left out because of the
            size of the table (None without experts). Unless ``conditioning="partition"``, parent sets contain class
            variables only and `local_models` is None. With missing states, EM scores parent sets two or three times.
        """
        other = copy(self)
        rows = other._usable(other._read_training(X, y, None))
        cv = 5 if isinstance(self.cv, Iterator) else self.cv  # a generator can be read only once, by fit
        settings = configure(other, rows, Blocks.alone(rows.class_sizes), cv)
        experts = plan_for(other, rows, settings)
        if self.conditioning == "partition":
            return plan(settings.rules, rows.sizes, len(rows))._replace(experts=experts)
        return Plan(sum(rule.classes_alone().count() for rule in settings.rules), None, experts)

    def _learn(self, rows: TrainingRows, started: float) -> None:
        deadline = Deadline.after(check_time_limit(self.time_budget, "time_budget"), started)
        with noting(deadline.note):
            self.__dict__.pop("em_", None)
            if rows.known is None:
                blocks, settings, learned = learn_blocks(self, rows, deadline)
            else:
                (blocks, settings, learned), em = learn_incomplete(self, rows, deadline)
                if em is not None:
                    self.em_ = em
        self._publish(blocks, settings.names, learned)
        if learned.narrowed:
            warn_user(learned.narrowed)
        if deadline.cuts:
            warn_user(
                f"time_budget={deadline.budget:g} seconds were not enough for everything. Left out or cut short: "
                f"{'; '.join(deadline.cuts)}. The model is the best found in that time. For more, raise time_budget "
                "(pmdc fit: --time-limit)."
            )
        settings.log(f"structure: {self.structure_}")

    def _usable(self, rows: TrainingRows) -> TrainingRows:
        return usable_rows(rows, self.missing_labels, self.use_unlabelled)

    def _learns_from_gaps(self) -> bool:
        return self.missing_labels != "error"

    def _publish(self, blocks: Blocks, names: Sequence[str], learned: LearnedNetwork) -> None:
        """Set the fitted attributes, by name; `names` are those of blocks, then of discrete features."""
        class_names, n_blocks = self.class_table_.names, len(learned.families)
        self._network = learned.network
        self._blocks = blocks
        self._junction_tree = learned.junction_tree
        self.blocks_ = [[class_names[k] for k in block] for block in blocks.members if len(block) > 1]
        self.scores_ = named_scores(learned.tables, learned.accepted, names)
        self.graph_ = blocks.named_graph(
            named_graph(learned.families, learned.arc_strengths, learned.either_way, learned.counted, names),
            class_names,
            names[:n_blocks],
        )
        self.conditioning_ = conditioning_of(self.graph_, class_names)
        self.experts_ = dict(zip(names, learned.experts, strict=False))
        if learned.C is not None:
            self.C_ = {
                names[child]: C[bool(family.classes(n_blocks))]
                for child, (family, C) in enumerate(zip(learned.families, learned.C, strict=True))
                if C is not None
            }
        structure, limits, order = learned.structure, " and ".join(learned.limits), None
        status = structure.status
        if learned.bounds:
            status += f" within {learned.bounds}"
            order = tuple(class_names[k] for k in learned.junction_tree.order)
        status += f" over {limits}" if limits else ""
        experts = learned.network.experts
        extended = 0 if experts is None else sum(given is not None for given in experts.given_parents)
        if extended:
            status += f"; then experts given the parents for {extended} class variable{'s' * (extended > 1)}"
        parents = {name: frozenset(own) for name, own in self.conditioning_.items()}
        self.structure_ = replace(structure, parents=parents, status=status, elimination_order=order)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        criteria.penalty_of(self.criterion)
        self._check_experts()
        if isinstance(self.blocks, str):
            check_choice("blocks", self.blocks, ("auto", None), ", or give lists of class variables")
            if not criteria.is_held_out(self.criterion):
                raise ValueError(
                    f"blocks='auto' needs a held-out criterion, not criterion={self.criterion!r}: choose "
                    "criterion='auto', or give the blocks."
                )
        check_choice("conditioning", self.conditioning, CONDITIONING)
        if isinstance(self.guard, bool) or not isinstance(self.guard, Real) or not 0 <= self.guard < np.inf:
            raise ValueError(f"guard={self.guard!r} must be a number of at least 0; 0 switches the guard off.")
        if isinstance(self.cv, Real):
            check_count("cv", self.cv, 2)
        elif isinstance(self.cv, (str, bytes, type)) or not (
            hasattr(self.cv, "split") or isinstance(self.cv, Iterable)
        ):
            raise ValueError(f"cv={self.cv!r} must be a number of folds, a splitter or a list of (train, test) rows.")
        check_choice("missing_labels", self.missing_labels, MISSING_LABELS)
        check_choice("use_unlabelled", self.use_unlabelled, (True, False))
        if self.use_unlabelled and self.missing_labels != "em":
            raise ValueError(
                f"use_unlabelled=True has no effect with missing_labels={self.missing_labels!r}, which learns nothing "
                "from rows without known states: set use_unlabelled=False or missing_labels='em'."
            )
        check_choice("prune", self.prune, PRUNING)
        check_choice("search", self.search, METHODS)
        check_bounds(self.max_treewidth, self.max_clique_cells, self.search, self.blocks)
        check_time_limit(self.time_budget, "time_budget")
        check_time_limit(self.time_limit)
        check_gap(self.gap)
        check_callback(self.callback)
        check_choice("backoff", self.backoff, ("parents", "none", "paper"))
        if self.max_parents is not None:
            check_count("max_parents", self.max_parents, 0)
        check_count("max_discrete_parents", self.max_discrete_parents, 0)
        check_count("memory_budget", self.memory_budget, 1)
        if self.max_candidates is not None:
            check_count("max_candidates", self.max_candidates, 1)

    def _check_experts(self) -> None:
        check_choice("expert_models", self.expert_models, ("auto", "folds", "refit"))
        values = list(self.experts.values()) if isinstance(self.experts, Mapping) else [self.experts]
        for value in values:
            if value is None or (isinstance(value, str) and value == "auto"):
                continue
            if isinstance(value, str) or not isinstance(value, Sequence) or not value:
                raise ValueError(
                    f"experts={value!r} must be 'auto', None, a list of scikit-learn classifiers, or a dict of these "
                    "by class variable."
                )

    def _own_graph(self) -> networkx.DiGraph:
        return self.graph_

    def summary(self) -> str:
        """Return in words which class variables depend on which, and whether the graph is proved to be the best.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> print(GBNC(experts=None).fit(data.X, data.Y).summary())
        y... The graph is the best over those of ... candidate parent sets that pass the guard (proved).
        """
        check_is_fitted(self, "graph_")
        return headline(self)

    # Predicting ----------------------------------------------------------------------------------------------

    def _distribution(self, features: Features) -> JointDistribution:
        parents = self._network.class_parents
        tables = self._blocks.split(self._network.tables(features), parents)
        return JointDistribution(self.class_table_, self._blocks.class_parents(parents), tables, self._junction_tree)

    def _cells_per_row(self) -> int:
        sizes = self.class_table_.sizes
        parents = self._blocks.class_parents(self._network.class_parents)
        return sum(math.prod(sizes[p] for p in (k, *own)) for k, own in enumerate(parents))

    def _unseen_answer(self) -> str:
        if self.backoff == "parents":
            partition = "the models without that parent are used"
        else:
            partition = f"the uniform distribution is used (backoff={self.backoff!r})"
        used = {
            how
            for parents in self.conditioning_.values()
            for name, how in parents.items()
            if name not in self.class_table_.names
        }
        if not used and self._network.experts is not None:
            return super()._unseen_answer()
        if "input" not in used:
            return f"For these rows {partition}."
        return (
            f"As an input it is treated as the average of the values seen; where it partitions the rows, {partition}."
        )

    def _used_discrete(self) -> list[int]:
        if self._network.experts is not None:
            return super()._used_discrete()
        n_nodes = len(self._network.nodes)
        return sorted({p - n_nodes for node in self._network.nodes for p in node.parents if p >= n_nodes})
