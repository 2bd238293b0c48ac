"""Importance by permutation: by how much a loss increases if a feature, or the states of a parent, are shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.checks import check_choice, check_count
from pmdc._support.warn import warn_user
from pmdc.decisions.decide import LossLike
from pmdc.explain.columns import FeatureColumns, check_model
from pmdc.explain.increases import Importance
from pmdc.explain.measures import Measure, measure_of
from pmdc.explain.trials import Trial
from pmdc.network.words import arcs, n_rows_of
from pmdc.table.columns import MISSING, UNKNOWN
from pmdc.table.rows import read_weights


def importance(
    model: Any,
    X: Any,
    Y: Any,
    loss: LossLike = "log",
    *,
    given_parents: bool = False,
    sample_weight: Any = None,
    n_repeats: int = 5,
    max_rows: int | None = 1000,
    random_state: Any = 0,
) -> Importance:
    """Measure how much predictions depend on each feature, and each class variable on its parents, by permutation.

    One column of X at a time is shuffled among the rows, and all predictions are made anew. The importance of the
    feature is the mean increase of the loss. For each arc of the graph, the states of the parent are shuffled as the
    child sees them, and the importance is the mean increase of the loss of the child given its parents and x.

    Parameters
    ----------
    model : fitted classifier
        A `GBNC` or any other classifier of pmdc. Those without a Bayesian network (chains, powersets) have no arcs.
    X, Y : tables as for `fit`
        Best of rows that were not used in `fit`: on training rows, features look more important than they are. States
        may be missing (see Notes).
    loss : str, loss object or callable, default="log"
        - "log": -log P(y_k | x) of each class variable, and -log P(y | x) of all together, in nats. Probabilities of a
          single state below 1e-12 count as 1e-12.
        - "hamming": whether the most probable state of a class variable is wrong; overall the share of wrong ones.
        - `CostLoss`: the cost of each class variable, and their sum.
        - "subset" or any other loss of single rows that `decide` takes: overall only.
    given_parents : bool, default=False
        What the loss of a single class variable is about. False: its marginal distribution P(y_k | x), which is what
        predictions are made of. True: P(y_k | parents, x) with the true states of the parents, which is what its local
        model answers; a feature that acts through the parents alone has no importance then.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in all means; rows of weight zero are ignored.
    n_repeats : int, default=5
        How often each column is shuffled.
    max_rows : int or None, default=1000
        Of more rows, a random sample of this size is used; None uses all.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Importance
        `overall`, `by_variable` and `arcs`, each with ``importances``, ``importances_mean`` and ``importances_std`` as
        in scikit-learn, and a ``standard_error`` over the rows; `top(n)` and `sentences()`.

    See Also
    --------
    value_of_features : How much a missing feature is worth, without any outcomes.
    pmdc.report.feature_graph : The graph of a model with the features that matter.

    Notes
    -----
    Each loss uses the rows in which all that it needs is known: the state of the class variable, with
    ``given_parents=True`` and for arcs also those of all its parents; overall, for "log" and "hamming" at least one
    state (the others are summed out, or not counted), for other losses all of them. A state that the model does not
    know counts as missing, with a warning. ``n_rows`` has the number of rows of each loss. Features are shuffled among
    all rows with a known state. Features that carry the same information share their importance. Work is done in
    parallel within ``joblib.parallel_config(n_jobs=...)``, with the same result.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.explain import importance
    >>> data = make_network(600, n_class_variables=3, random_state=0)
    >>> model = GBNC(experts=None).fit(data.X[:400], data.Y[:400])
    >>> found = importance(model, data.X[400:], data.Y[400:])
    >>> found
    Importance(loss='log', 6 features, 3 class variables, ... arcs, 200 rows)
    >>> found.overall.importances_mean.shape, found.by_variable.importances_mean.shape
    ((6,), (6, 3))
    """
    check_model(model)
    check_choice("given_parents", given_parents, (True, False))
    check_count("n_repeats", n_repeats, 1)
    if max_rows is not None:
        check_count("max_rows", max_rows, 2)
    features = model._read(X)
    truth = _read_truth(model, Y, len(features))
    weights = read_weights(sample_weight, len(features))
    usable = (truth >= 0) & (weights > 0)[:, None]
    measure = measure_of(loss, model.class_table_, usable, weights)
    random = check_random_state(random_state)
    known = np.flatnonzero(usable.any(axis=1))
    rows = known
    if max_rows is not None and len(known) > max_rows:
        rows = np.sort(random.choice(known, max_rows, replace=False))
    _check_enough(loss, measure, truth[rows] >= 0)
    seed = int(random.randint(np.iinfo(np.int32).max + 1))
    columns = FeatureColumns.of(model.feature_table_, features.rows(rows))
    trial = Trial(model, columns, truth[rows], weights[rows], measure, given_parents, n_repeats, seed)
    if given_parents and trial.parents is None:
        raise TypeError(
            f"given_parents=True: the class variables of {type(model).__name__} have no conditional tables. Use a GBNC "
            "or BinaryRelevance, or given_parents=False."
        )
    found = trial.run()
    return Importance(
        loss=loss,
        given_parents=given_parents,
        class_names=list(model.class_names_),
        feature_names=list(columns.table.names),
        arc_names=trial.arc_names,
        arc_strengths=_strengths(model, trial.arc_names),
        **found._asdict(),
        n_rows=len(rows),
        n_known=len(known),
        measure=measure,
    )


def _read_truth(model: Any, Y: Any, n_rows: int) -> Codes:
    """Return codes of the true states, negative where they are missing or, with a warning, not known to the model."""
    truth: Codes = model._read_truth(Y, n_rows, "mark")
    strange = (truth == UNKNOWN).sum(axis=0)
    names = [f"{name!r} ({n} rows)" for name, n in zip(model.class_names_, strange.tolist(), strict=True) if n]
    if names:
        warn_user(f"Y has states that the model does not know, in {', '.join(names)}. They count as missing.")
    return np.where(truth == UNKNOWN, MISSING, truth)


def _check_enough(loss: LossLike, measure: Measure, known: Marks) -> None:
    n_rows = int(np.count_nonzero(measure.usable(known)))
    if n_rows < 2:
        alone = measure.usable(np.array([[True, False]]))[0]  # whether one known state of a row is enough
        what, remedy = (
            ("a known state", "give rows with states that were seen in fit")
            if alone
            else ("known states only", "give complete rows, or use loss='log' or 'hamming'")
        )
        raise ValueError(f"Y has {n_rows} row(s) with {what}, and loss={loss!r} needs at least 2 to shuffle: {remedy}.")


def _strengths(model: Any, arc_names: Sequence[tuple[str, str]]) -> Floats:
    """Return the arc strengths in nats a row; NaN where they are not known."""
    if not arc_names:
        return np.empty(0)
    n_rows = n_rows_of(model)
    known = {(a.parent, a.child): a.strength for k in model.class_names_ for a in arcs(model.to_networkx(), k, n_rows)}
    return np.array([known.get(name) for name in arc_names], dtype=float)
