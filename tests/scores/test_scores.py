"""Held-out scores, families and the guard against noise, against plain loops."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from oracles import all_dags
from pmdc import GBNC
from pmdc.baselines import BinaryRelevance
from pmdc.candidates.families import Family
from pmdc.datasets import load, make_network
from pmdc.learners import Logistic, NaiveBayes
from pmdc.learners.tasks import local_task
from pmdc.learners.validation import deal, standard_error
from pmdc.network.fit import fit_node
from pmdc.scores.evaluators import CrossValidation, LeaveOneOutEvaluator, OutOfBagEvaluator, make_evaluator
from pmdc.scores.families import MAX_CELLS
from pmdc.scores.folds import read_folds
from pmdc.scores.shrinkage import KAPPAS, HeldOutRows, shrink
from problems import fitter_of, numbers, training_rows


def table(n=200, K=3, seed=0, **kwargs):
    kwargs = {"n_states": 3, "n_continuous": 3, "n_discrete": 2, "n_discrete_states": 3} | kwargs
    return make_network(n, n_class_variables=K, random_state=seed, **kwargs)


def codes_and_sizes(data):
    columns = [frame[c].cat for frame in (data.Y, data.X.select_dtypes("category")) for c in frame]
    codes = np.column_stack([c.codes for c in columns]).astype(np.int64)
    return codes, tuple(len(c.categories) for c in columns)


TREE = DecisionTreeClassifier(max_depth=3, random_state=0)


def evaluate(evaluator, fitter, child, family):
    """What an evaluator answers for a family with its own learner."""
    return evaluator(fitter, fitter.learner_of(child, family), child, family, fitter.start(child, family))[0]


def rows_of(data):
    codes, sizes = codes_and_sizes(data)
    return training_rows(data.X.select_dtypes("number").to_numpy(), codes, sizes, data.Y.shape[1])


# Shrinkage ----------------------------------------------------------------------------------------------------


def by_the_formula(p, W, q):
    """Kappa of the greatest log-likelihood, and the log-probabilities under it, one row after the other."""
    answers = {}
    for kappa in KAPPAS:
        answers[kappa] = [math.log((w * a + kappa * b) / (w + kappa)) for a, w, b in zip(p, W, q, strict=True)]
    best = max(answers, key=lambda kappa: sum(answers[kappa]))
    return answers[best], best


def test_shrinkage_follows_the_formula():
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 100.0):
        p, q, W = rng.uniform(size=50), rng.uniform(size=50), scale * rng.uniform(size=50)
        p[:3], W[3:5] = 0.0, 0.0
        with np.errstate(divide="ignore"):
            value, kappa = shrink(HeldOutRows(np.log(p), W), np.log(q), np.ones(50))
        expected, best = by_the_formula(p, W, q)
        assert kappa == best
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_the_network_shrinks_as_its_score_did():
    """P(y | pi, x) of the fitted network is the formula with the models of the whole chain."""
    data = table(300, K=3, n_discrete=1, n_states=2)
    codes, _ = codes_and_sizes(data)
    X = data.X.select_dtypes("number").to_numpy()
    model = GBNC(GaussianNB(), criterion="cv", conditioning="partition", max_parents=2, max_discrete_parents=1)
    model.fit(data.X, data.Y)
    X = X - X.mean(axis=0)
    seen = 0
    for node in model._network.nodes:
        family, answer = None, np.full((300, node.n_states), 1 / node.n_states)
        chain = [node.family]
        while chain[-1] in node.fewer:
            chain.append(node.fewer[chain[-1]])
        for family in reversed(chain):
            level = node.levels[family]
            part = level.configurations.find(codes)[:, 0]
            W = np.where(part >= 0, level.weights[part], 0.0)[:, None]
            own = np.exp(level.models.log_proba(X, part))
            assert level.kappa in KAPPAS
            answer = (W * own + level.kappa * answer) / (W + level.kappa)
            seen += bool(family.partition)
        np.testing.assert_allclose(np.exp(node.log_proba(X, codes)), answer, rtol=1e-9)
    assert seen, "the example has no parents to shrink towards fewer"


# Criteria -----------------------------------------------------------------------------------------------------


def test_cv_is_an_explicit_loop():
    data = table(240, K=2, n_discrete=0, n_states=2, seed=3)
    codes, sizes = codes_and_sizes(data)
    X = data.X.to_numpy()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    folds = read_folds(4, rows_of(data)).pairs

    def held_out(child, parents, q):
        p, W = np.zeros(len(X)), np.zeros(len(X))
        for train, test in folds:
            for configuration in itertools.product(*(range(sizes[v]) for v in parents)):
                fit, ask = (
                    rows[(codes[rows][:, list(parents)] == configuration).all(axis=1)] for rows in (train, test)
                )
                if not len(ask) or not len(fit):
                    continue
                states = codes[fit, child]
                W[ask] = len(fit)
                if len(set(states)) == 1:
                    p[ask] = codes[ask, child] == states[0]
                    continue
                local = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(Z[fit], states)
                p[ask] = local.predict_proba(Z[ask])[np.arange(len(ask)), codes[ask, child]]
        return np.exp(by_the_formula(p, W, q)[0])

    model = GBNC(Logistic(C=2.0), criterion="cv", cv=4, conditioning="partition", guard=0)
    scores = model.fit(data.X, data.Y).scores_
    for child, other in ((0, 1), (1, 0)):
        root = held_out(child, (), np.full(len(X), 0.5))
        deep = held_out(child, (other,), root)
        # Log-likelihoods of penalised models are exact to about the square root of their tolerance.
        assert scores[f"y{child}"][frozenset()] == pytest.approx(np.log(root).sum(), rel=1e-5)
        assert scores[f"y{child}"][frozenset({f"y{other}"})] == pytest.approx(np.log(deep).sum(), rel=1e-5)


@pytest.mark.parametrize("estimator", [NaiveBayes(), TREE])
def test_inputs_in_folds_are_those_of_a_loop(estimator):
    """A family with inputs and a dividing parent in cross-validation: models of the training part alone."""
    data = table(150, K=3, seed=1)
    codes, sizes = codes_and_sizes(data)
    fitter = fitter_of(estimator, rows_of(data))
    learner, folds = fitter.learners[0], read_folds(3, rows_of(data))
    family = Family((1,), (2, 4))
    rows = evaluate(CrossValidation(folds), fitter, 0, family)
    assert len(folds.pairs) == 3
    for seen, held in folds.pairs:
        task = local_task(0, family, codes[seen], sizes)
        part = task.partition.configurations.find(codes[held])[:, 0]
        answer = learner.on(seen).fit(task).log_proba(learner.X[held], part, codes[np.ix_(held, [2, 4])])
        np.testing.assert_allclose(rows.log_proba[held], answer[np.arange(len(held)), codes[held, 0]], rtol=1e-6)
        counts = [(codes[seen, 1] == v).sum() for v in codes[held, 1]]
        np.testing.assert_array_equal(rows.weight[held], counts)


def test_out_of_bag_is_what_the_forest_says():
    data = table(200, K=2, n_discrete=0, seed=2)
    codes, sizes = codes_and_sizes(data)
    X = data.X.to_numpy()
    forest = RandomForestClassifier(40, random_state=3)
    rows = evaluate(OutOfBagEvaluator(), fitter_of(forest, rows_of(data)), 0, Family((1,)))
    for state in range(sizes[1]):
        part = codes[:, 1] == state
        fitted = RandomForestClassifier(40, random_state=3, oob_score=True).fit(X[part], codes[part, 0])
        proba = fitted.oob_decision_function_[np.arange(part.sum()), np.searchsorted(fitted.classes_, codes[part, 0])]
        positive = proba > 0.2
        np.testing.assert_allclose(np.exp(rows.log_proba[part])[positive], proba[positive], rtol=0.1)
    assert np.isfinite(rows.log_proba).mean() > 0.95
    with_zeros = GBNC(forest, criterion="cv", max_parents=1).fit(data.X, data.Y)
    assert np.isfinite(with_zeros.structure_.score)


def test_rows_that_all_trees_have_seen_say_nothing():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(200, 2)), rng.integers(0, 2, size=(200, 1))
    forest = RandomForestClassifier(3, random_state=0)
    rows = evaluate(OutOfBagEvaluator(), fitter_of(forest, training_rows(X, codes, (2,), 1)), 0, Family(()))
    unseen = np.isinf(rows.log_proba)
    assert 0 < unseen.sum() < 100
    np.testing.assert_array_equal(rows.weight, np.where(unseen, 0.0, 199.0))


def test_a_forest_is_not_fooled_by_the_rows_it_has_seen():
    """On its own rows a forest is nearly perfect whatever the parents; out of the bag noise is noise."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 3)), rng.integers(0, 2, size=(300, 3))
    forest = RandomForestClassifier(30, random_state=0)
    seen, unseen = (GBNC(forest, criterion=c, max_parents=1).fit(X, Y).structure_.score for c in ("cll", "auto"))
    assert seen > -0.3 * 3 * 300
    assert unseen < -0.6 * 3 * 300


def test_loo_needs_a_closed_form():
    data = table(60)
    for estimator in (LogisticRegression(), GaussianNB(priors=[0.5, 0.5]), DecisionTreeClassifier(), Logistic()):
        named = f"(?s)criterion='loo'.*estimator={type(estimator).__name__}.*NaiveBayes.* no priors.*criterion='cv'"
        with pytest.raises(ValueError, match=named):
            GBNC(estimator, experts=None, criterion="loo").fit(data.X, data.Y)
    with pytest.raises(ValueError, match="'bic-full' counts the parameters"):
        GBNC(DecisionTreeClassifier(), criterion="bic-full").fit(data.X, data.Y)


def test_full_bic_counts_every_parameter():
    data = table(200, K=2, n_discrete=0, n_states=3, n_continuous=4)
    for estimator, count in ((Logistic(), 2 * 5), (GaussianNB(), 2 + 3 * 8)):
        own = {
            criterion: GBNC(estimator, experts=None, criterion=criterion, conditioning="partition", prune=None).fit(
                data.X, data.Y
            )
            for criterion in ("cll", "bic-full")
        }
        for parents, models in ((frozenset(), 1), (frozenset({"y1"}), 3)):
            difference = own["cll"].scores_["y0"][parents] - own["bic-full"].scores_["y0"][parents]
            assert difference == pytest.approx(0.5 * math.log(200) * count * models)


# Folds --------------------------------------------------------------------------------------------------------


def small(n=60, K=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, :1] + rng.normal(size=(n, K)) > 0).astype(int)


def purged(n=60):
    """Five folds of neighbouring rows; what is near a test row is not trained on."""
    tests = np.array_split(np.arange(n), 5)
    return [(np.array([i for i in range(n) if i < test[0] - 3 or i > test[-1] + 3]), test) for test in tests]


@pytest.mark.parametrize("estimator", [NaiveBayes(), TREE])
def test_models_of_a_fold_are_fitted_on_its_training_rows_alone(estimator):
    X, codes = small()
    table = training_rows(X, codes, (2, 2), 2)
    fitter, folds = fitter_of(estimator, table), purged()
    learner = fitter.learners[0]
    masks = [tuple(np.isin(np.arange(60), part) for part in fold) for fold in folds]

    class Splitter:
        def split(self, X, y, groups=None):
            return iter(folds)

    family = Family((1,))
    for cv in (folds, masks, Splitter()):
        rows = evaluate(CrossValidation(read_folds(cv, table)), fitter, 0, family)
        for train, test in folds:
            task = local_task(0, family, codes[train], (2, 2))
            part = task.partition.configurations.find(codes[test])[:, 0]
            answer = learner.on(train).fit(task).log_proba(learner.X[test], part)
            np.testing.assert_array_equal(rows.log_proba[test], answer[np.arange(len(test)), codes[test, 0]])
            np.testing.assert_array_equal(rows.weight[test], [(codes[train, 1] == v).sum() for v in codes[test, 1]])


@pytest.mark.parametrize("estimator", [None, NaiveBayes(), TREE])
def test_a_fold_without_training_rows_knows_nothing(estimator):
    X, codes = small()
    folds = [
        ([], np.arange(10)),
        *((np.setdiff1d(np.arange(60), t), t) for t in (np.arange(10, 35), np.arange(35, 60))),
    ]
    table = training_rows(X, codes, (2, 2), 2)
    fitter = fitter_of(estimator or Logistic(), table)
    rows = evaluate(CrossValidation(read_folds(folds, table)), fitter, 0, Family((1,)))
    assert (rows.weight[:10] == 0).all()
    assert (rows.log_proba[:10] == -np.inf).all()
    assert (rows.weight[10:] > 0).all()
    assert np.isfinite(
        GBNC(estimator, experts=None, criterion="cv", cv=folds, max_parents=1).fit(X, codes).structure_.score
    )


def test_a_number_deals_the_rows_evenly():
    X, codes = small(63)
    folds = read_folds(4, training_rows(X, codes, (2, 2), 2))
    assert sorted(np.bincount(folds.fold)) == [15, 16, 16, 16]
    for number, (train, test) in enumerate(folds.pairs):
        np.testing.assert_array_equal(folds.fold[test], number)
        np.testing.assert_array_equal(np.sort(np.append(train, test)), np.arange(63))
    assert len(read_folds(5, training_rows(X[:3], codes[:3], (2, 2), 2)).pairs) == 3
    [(seen, held)] = read_folds(5, training_rows(X[:1], codes[:1], (2, 2), 2)).pairs
    assert (len(seen), len(held)) == (0, 1)


def test_held_out_rows_do_not_confirm_noise():
    """Folds balanced in the outcomes would: then an arc between independent class variables gains on average."""
    gains = []
    for seed in range(60):
        Y = np.random.default_rng(seed).integers(0, 2, size=(100, 2))
        model = GBNC(Logistic(), criterion="cv", max_parents=1, guard=0, backoff="none").fit(np.zeros((100, 1)), Y)
        gains += [
            model.scores_[one].get(frozenset({other}), -np.inf) - model.scores_[one][frozenset()]
            for one, other in (("y0", "y1"), ("y1", "y0"))
        ]
    assert np.mean(gains) < -0.3


def dealt_weights(X, codes, weights, n_folds=5):
    """The weight of each row in each fold."""
    found, answer = deal(X, codes, weights, n_folds), np.zeros((len(X), n_folds))
    answer[found.rows, found.fold] = found.share * weights[found.rows]
    return answer


@pytest.mark.parametrize("K", [1, 3, 8])
@pytest.mark.parametrize("columns", ["numbers", "few values", "none"])
def test_rows_are_dealt_by_their_contents(columns, K):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [1e-9, 1.0, 1e9]
    X = {"numbers": X, "few values": np.sign(X), "none": X[:, :0]}[columns]
    codes, times = rng.integers(0, 2, size=(80, K)), rng.integers(1, 12, 80)
    rows = np.repeat(np.arange(80), times)
    shuffled = rng.permutation(rows)
    _, kind = np.unique(np.hstack([X, codes]), axis=0, return_inverse=True)
    kind = kind.ravel()
    expected = np.zeros((kind.max() + 1, 5))
    np.add.at(expected, kind, dealt_weights(X, codes, times.astype(float)))
    for some in (rows, shuffled):
        found = np.zeros_like(expected)
        np.add.at(found, kind[some], dealt_weights(X[some], codes[some], np.ones(len(some))))
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert np.ptp(expected.sum(axis=0)) <= 1


def test_fractions_of_a_row_are_dealt_as_one():
    rng = np.random.default_rng(0)
    X, codes, weights = rng.normal(size=(50, 2)), rng.integers(0, 2, (50, 2)), rng.uniform(0.01, 1.49, 50)
    np.testing.assert_array_equal(dealt_weights(X, codes, weights) > 0, dealt_weights(X, codes, np.ones(50)) > 0)
    np.testing.assert_allclose(dealt_weights(X, codes, weights).sum(axis=1), weights)


@pytest.mark.parametrize("estimator", [None, Logistic(), NaiveBayes(), TREE])
def test_repeated_rows_weights_and_the_order_of_rows_make_no_difference(estimator):
    data = table(90, K=3, n_states=2, n_discrete=1, seed=3)
    times = np.random.default_rng(1).integers(1, 4, 90)
    rows = np.repeat(np.arange(90), times)
    shuffled = np.random.default_rng(2).permutation(rows)
    one = GBNC(estimator, experts=None, criterion="cv", max_parents=2).fit(data.X, data.Y, times)
    for some in (rows, shuffled):
        other = GBNC(estimator, experts=None, criterion="cv", max_parents=2).fit(data.X.iloc[some], data.Y.iloc[some])
        assert other.structure_.parents == one.structure_.parents
        assert other.conditioning_ == one.conditioning_
        for name, scores in one.scores_.items():
            assert other.scores_[name] == pytest.approx(scores, rel=1e-6)
        for p, q in zip(one.predict_proba(data.X), other.predict_proba(data.X), strict=True):
            np.testing.assert_allclose(p, q, atol=1e-5)


def test_folds_are_a_number_for_each_row_only_if_they_train_on_all_others():
    X, codes = small()
    table = training_rows(X, codes, (2, 2), 2)
    assert read_folds(purged(), table).fold is None
    np.testing.assert_array_equal(read_folds(KFold(5), table).fold, np.repeat(np.arange(5), 12))


@pytest.mark.parametrize("cv", [5, KFold(5), [(range(30), range(30, 60)), (range(30, 60), range(30))]])
def test_copies_of_a_row_are_held_out_together(cv):
    X, codes = small()
    origin = np.sort(np.random.default_rng(0).choice(60, size=150))
    origin = np.concatenate([origin, np.setdiff1d(np.arange(60), origin)])  # each at least once
    weights = 1.0 / np.bincount(origin)[origin]
    folds = read_folds(cv, training_rows(X[origin], codes[origin], (2, 2), 2, weights=weights, origin=origin))
    source = origin[folds.rows]
    for train, test in folds.pairs:
        assert not set(source[train]) & set(source[test])
        assert len(train) + len(test) == len(origin)
    np.testing.assert_allclose(np.bincount(source, weights[folds.rows] * folds.share), 1.0)


def test_a_row_of_weight_three_brings_its_copies_into_each_of_its_folds():
    X, codes = small(30)
    origin, share = np.repeat(np.arange(30), 2), np.tile([0.25, 0.75], 30)
    rows = training_rows(X[origin], codes[origin], (2, 2), 2, weights=3 * share, origin=origin)
    folds = read_folds(5, rows)
    weight = rows.weights[folds.rows] * folds.share
    pieces = pd.DataFrame({"origin": folds.origin, "copy": folds.rows % 2, "weight": weight})
    by_copy = pieces.pivot(index="origin", columns="copy", values="weight").to_numpy()
    np.testing.assert_allclose(by_copy[:, 1], 3 * by_copy[:, 0])
    np.testing.assert_allclose(by_copy.sum(axis=1), by_copy.sum(axis=1).round(), atol=1e-9)
    assert by_copy.sum() == pytest.approx(90)
    assert not set(folds.origin[folds.pairs[0][0]]) & set(folds.origin[folds.pairs[0][1]])
    assert len(by_copy) > 60, "most rows are in several folds"


def test_given_folds_come_before_the_bag():
    X, Y = small()
    forest = RandomForestClassifier(3, random_state=0)
    rows = training_rows(X, Y, (2, 2), 2)
    learners = fitter_of(forest, rows).learners
    for criterion in ("auto", "cv"):
        assert isinstance(make_evaluator(criterion, learners, rows, 5), OutOfBagEvaluator)
        assert isinstance(make_evaluator(criterion, learners, rows, np.int64(5)), OutOfBagEvaluator)
        assert isinstance(make_evaluator(criterion, learners, rows, KFold(5)), CrossValidation)
        assert isinstance(make_evaluator(criterion, learners, rows, purged()), CrossValidation)


def test_rows_with_copies_are_held_out_by_folds():
    X, Y = small()
    twice = np.repeat(np.arange(30), 2)
    rows = training_rows(X, Y, (2, 2), 2, origin=twice)
    for estimator in (NaiveBayes(), RandomForestClassifier(3), None):
        assert isinstance(make_evaluator("auto", fitter_of(estimator, rows).learners, rows, 5), CrossValidation)
    with pytest.raises(ValueError, match="criterion='loo' .* choose criterion='cv'"):
        make_evaluator("loo", fitter_of(NaiveBayes(), rows).learners, rows, 5)


@pytest.mark.parametrize("estimator", [None, TREE])
def test_a_generator_of_folds_is_read_once(estimator):
    X, Y = small()
    by = {"listed": list(KFold(5).split(X)), "split": KFold(5), "generated": KFold(5).split(X)}
    models = {name: GBNC(estimator, experts=None, criterion="cv", cv=cv, max_parents=1) for name, cv in by.items()}
    assert models["generated"].plan(X, Y).parent_sets == 4, "it does not look at the folds"
    scores = {name: model.fit(X, Y).scores_ for name, model in models.items()}
    assert scores["listed"] == scores["split"] == scores["generated"]
    assert models["generated"].cv is by["generated"]
    with pytest.raises(ValueError, match="cv has no folds"):
        models["generated"].fit(X, Y)


def test_random_folds_are_drawn_once_in_a_fit():
    class Counting(KFold):
        drawn = 0

        def split(self, *arguments):
            self.drawn += 1
            return super().split(*arguments)

    X, Y = small()
    cv = Counting(3, shuffle=True)
    GBNC(experts=None, criterion="cv", cv=cv, max_parents=1).fit(X, Y)
    assert cv.drawn == 1


def test_splitters_that_cannot_split_are_named():
    X, Y = small()
    remedy = "number of folds, a pmdc.model_selection.MultiStratifiedKFold or a list of .train, test. rows"
    for cv, told in ((StratifiedKFold(5), "Supported target types are"), (GroupKFold(5), "The 'groups' parameter")):
        with pytest.raises(ValueError, match=f"(?s)cv={type(cv).__name__}.*{told}.*{remedy}"):
            GBNC(NaiveBayes(), criterion="cv", cv=cv).fit(X, Y)
    with pytest.raises(ValueError, match=r"cv=TimeSeriesSplit\(.* never holds row 0 out"):
        GBNC(NaiveBayes(), criterion="cv", cv=TimeSeriesSplit(3)).fit(X, Y)
    assert GBNC(NaiveBayes(), criterion="cv", cv=StratifiedKFold(5)).fit(X, Y[:, 0]).scores_


def test_rows_of_weight_zero_leave_the_given_folds():
    X, Y = small()
    weights = np.ones(60)
    weights[[0, 1, 7, 30, *range(48, 60)]] = 0  # all of the last fold, too
    kept = np.flatnonzero(weights)
    place = {row: i for i, row in enumerate(kept)}
    folds = purged()
    fewer = [tuple([place[row] for row in part if row in place] for part in fold) for fold in folds[:4]]
    for estimator in (None, TREE):
        whole = GBNC(estimator, experts=None, criterion="cv", cv=folds, max_parents=1).fit(X, Y, weights)
        part = GBNC(estimator, experts=None, criterion="cv", cv=fewer, max_parents=1).fit(
            X[kept], Y[kept], np.ones(len(kept))
        )
        assert whole.scores_ == part.scores_
        halves = [
            GBNC(estimator, experts=None, criterion="cv", cv=KFold(3)).fit(*some).scores_
            for some in ((X, Y, weights), (X[kept], Y[kept], np.ones(len(kept))))
        ]
        assert halves[0] == halves[1], "splitters see the rows that are kept"
    assert GBNC(TREE, criterion="cv", cv=folds).fit(X, Y, 2.0).scores_, "one weight for all rows"
    with pytest.raises(ValueError, match="cv never holds row 36 out"):
        GBNC(TREE, criterion="cv", cv=folds[:3]).fit(X, Y, weights)


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ([(range(30), range(30, 61)), (range(30, 60), range(30))], "cv, fold 0 has row 60, .* 0 to 59"),
        ([(range(30), range(30, 60)), (range(-30, 0), range(30))], "cv, fold 1 has row -30, .* 0 to 59"),
        ([(range(30), range(30, 60)), (range(40), range(30))], "cv, fold 1 has row 0 both"),
        ([(range(30), range(30, 60)), (range(31, 60), range(31))], "cv holds row 30 out 2 times"),
        ([(range(30), range(30, 60)), (range(30, 60), [*range(30), 5])], "cv holds row 5 out 2 times"),
        ([(range(30), range(30, 60)), (range(30, 60), range(29))], "cv never holds row 29 out"),
        ([(range(30), [30.0, 31.0])], "cv, fold 0 has rows of type float64 and shape"),
        ([(range(30), [True, False])], "cv, fold 0 has rows of type bool and shape .* or 60 booleans"),
        ([range(30), range(30, 60)], r"cv, fold 0 is range\(0, 30\): it must be a pair"),
        ([3], "cv, fold 0 is 3: it must be a pair"),
        ([], "cv has no folds"),
    ],
)
def test_folds_that_make_no_sense_are_named(folds, message):
    X, Y = small()
    with pytest.raises(ValueError, match=message):
        GBNC(NaiveBayes(), criterion="cv", cv=folds).fit(X, Y)


def test_an_estimator_that_fails_in_a_fold_is_named():
    X, Y = small(80)
    with pytest.raises(
        ValueError, match=r"estimator=KNeighborsClassifier\(n_neighbors=70\) failed in fold 0 of cv.* 64 of the 80 rows"
    ):
        GBNC(KNeighborsClassifier(70), criterion="cv").fit(X, Y)
    assert GBNC(KNeighborsClassifier(20), criterion="cv", max_parents=0).fit(X, Y).scores_


# Families -----------------------------------------------------------------------------------------------------


def all_features(data):
    return frozenset(data.X.select_dtypes("category"))


def test_binary_relevance_is_among_the_families():
    """Its score on the training rows is the log-likelihood of the baseline."""
    data = table(200, K=3)
    model = GBNC(Logistic(C=1.0), criterion="cll", conditioning="input", max_parents=1).fit(data.X, data.Y)
    relevance = BinaryRelevance(Logistic(C=1.0)).fit(data.X, data.Y)
    codes, _ = codes_and_sizes(data)
    features = all_features(data)
    for child, proba in enumerate(relevance.predict_proba(data.X)):
        expected = np.log(proba[np.arange(200), codes[:, child]]).sum()
        assert model.scores_[f"y{child}"][features] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("criterion", ["cv", "loo", "bic", "aic", "cll"])
@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_network_scores_as_well_as_binary_relevance(criterion, seed):
    data = table(150, K=4, seed=seed)
    estimator = NaiveBayes() if criterion == "loo" else Logistic(C=1.0)
    model = GBNC(estimator, experts=None, criterion=criterion, max_parents=2, prune=None, guard=0)
    check_against_relevance(model, data)


def check_against_relevance(model, data):
    model.fit(data.X, data.Y)
    relevance = sum(model.scores_[name][all_features(data)] for name in data.Y)
    assert model.structure_.score >= relevance - 1e-9 * abs(relevance)


@pytest.mark.parametrize("name", ["edm", "flare1", "flags", "emotions"])
def test_real_tables_score_as_well_as_binary_relevance(name, data_dir):
    data = load(name, data_dir)
    check_against_relevance(GBNC(NaiveBayes(), max_parents=1, guard=0), data)


def test_where_all_ways_can_be_tried_no_network_of_any_ways_scores_better():
    data = table(120, K=3, n_discrete=0, n_states=2, seed=5)
    codes, sizes = codes_and_sizes(data)
    X = data.X.to_numpy()
    learner = fitter_of(Logistic(C=1.0), training_rows(X, codes, sizes, 3)).learners[0]
    score = {}
    for child in range(3):
        for parents in itertools.chain.from_iterable(itertools.combinations({0, 1, 2} - {child}, r) for r in range(3)):
            for some in itertools.chain.from_iterable(itertools.combinations(parents, r) for r in range(3)):
                family = Family(some, tuple(v for v in parents if v not in some))
                task = local_task(child, family, codes, sizes)
                probabilities = (sizes[child] - 1) * math.prod(sizes[v] for v in some)
                probabilities *= 1 + sum(sizes[v] - 1 for v in family.inputs)
                value = learner.log_likelihood(task) - 0.5 * math.log(120) * probabilities
                key = child, frozenset(parents)
                score[key] = max(value, score.get(key, -np.inf))
    best = max(sum(score[k, frozenset(ps)] for k, ps in enumerate(dag)) for dag in all_dags((0, 1, 2)))
    model = GBNC(Logistic(C=1.0), criterion="bic", max_parents=2).fit(data.X, data.Y)
    assert model.structure_.score == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("estimator", [LogisticRegression(C=5.0), NaiveBayes(), TREE])
def test_tables_of_a_network_with_inputs(estimator):
    """What the network answers for each configuration is what one model with indicators answers."""
    data = table(200, K=3)
    edges = [("y0", "y2"), ("y1", "y2"), ("d0", "y2")]
    model = GBNC(
        estimator, conditioning="input", criterion="cll", required_edges=edges, max_parents=2, max_discrete_parents=1
    )
    model.fit(data.X, data.Y)
    assert (
        model.conditioning_["y2"]["y0"] == model.conditioning_["y2"]["y1"] == model.conditioning_["y2"]["d0"] == "input"
    )
    codes, sizes = codes_and_sizes(data)
    distribution = model.predict_joint(data.X)
    parents = distribution.parents[2]
    node = model._network.nodes[2]
    X = model._network.prepares[2](numbers(data.X.select_dtypes("number").to_numpy()))
    log_table = distribution.log_tables[2]
    for configuration in itertools.product(*(range(sizes[p]) for p in parents)):
        asked = codes.copy()
        asked[:, list(parents)] = configuration
        np.testing.assert_allclose(log_table[(slice(None), *configuration)], node.log_proba(X, asked), rtol=1e-9)
    if isinstance(estimator, LogisticRegression):
        inputs = [data.X.select_dtypes("number").to_numpy()]
        inputs += [pd.get_dummies(codes[:, p]).to_numpy(float) for p in node.family.inputs]
        Z = np.hstack(inputs)
        peer = LogisticRegression(C=5.0, tol=1e-10, max_iter=10_000).fit(Z, codes[:, 2])
        np.testing.assert_allclose(np.exp(node.log_proba(X, codes)), peer.predict_proba(Z), atol=1e-5)


def test_mixed_ways_give_tables_in_the_order_of_the_parents():
    rng = np.random.default_rng(0)
    sizes = (2, 3, 2, 4)
    codes = rng.integers(0, sizes, size=(400, 4))
    X = rng.normal(size=(400, 2))
    fitter = fitter_of(GaussianNB(), training_rows(X, codes, sizes, 4))
    family = Family((1, 3), (2,))
    chain = [family, Family((1,), (2,)), Family((), (2,))]
    node = fit_node((0, [chain], dict.fromkeys(chain, 3.0)), fitter, backoff=True)
    X = fitter.learners[0].prepare(numbers(X[:5]))
    answer = node.table(X, codes[:5], (1, 2, 3)).reshape(5, 3, 2, 4, 2)
    for a, b, c in itertools.product(range(3), range(2), range(4)):
        asked = np.tile([0, a, b, c], (5, 1))
        np.testing.assert_allclose(answer[:, a, b, c], node.log_proba(X, asked), rtol=1e-12)
    np.testing.assert_allclose(np.exp(answer).sum(axis=-1), 1.0)


# The guard ----------------------------------------------------------------------------------------------------


def test_the_standard_error_is_that_of_a_sum():
    rng = np.random.default_rng(0)
    sums = [rng.normal(size=400).sum() for _ in range(2000)]
    own = rng.normal(size=400)
    rows = np.arange(400)
    assert standard_error(own, np.ones(400), rows) == pytest.approx(np.std(sums), rel=0.1)
    weights = rng.integers(1, 4, size=400)
    repeated = standard_error(np.repeat(own, weights), np.ones(weights.sum()), np.arange(weights.sum()))
    assert standard_error(own, weights, rows) == pytest.approx(repeated)


def test_the_standard_error_counts_the_rows_of_the_table():
    rng = np.random.default_rng(0)
    copies, shares = rng.normal(size=(100, 3)), rng.random((100, 3))
    shares /= shares.sum(axis=1, keepdims=True)
    expected = standard_error((shares * copies).sum(axis=1), np.ones(100), np.arange(100))
    flat = copies.ravel(), shares.ravel()
    assert standard_error(*flat, np.repeat(np.arange(100), 3)) == pytest.approx(expected)


def test_weights_that_are_not_counts_are_not_repetitions():
    rng = np.random.default_rng(0)
    weights = rng.lognormal(0, 0.6, size=2000)
    sums = [weights @ rng.normal(size=2000) for _ in range(2000)]
    own = standard_error(rng.normal(size=2000), weights, np.arange(2000))
    assert own == pytest.approx(np.std(sums), rel=0.1)


def test_survey_weights_give_no_false_arcs():
    found = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(200, 2)), rng.integers(0, 2, size=(200, 3))
        found += len(GBNC(experts=None).fit(X, Y, rng.lognormal(0, 0.6, size=200)).graph_.edges)
    assert found == 0


def test_noise_gets_no_edges_unless_the_guard_is_off():
    found = {0.0: 0, 1.0: 0}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(60, 2)), rng.integers(0, 2, size=(60, 5))
        for guard in found:
            model = GBNC(NaiveBayes(), max_parents=2, guard=guard).fit(X, Y)
            found[guard] += model.graph_.number_of_edges()
    assert found[1.0] < found[0.0] / 2


def test_the_guard_costs_no_more_than_the_standard_error_allows():
    data = table(150, K=4)
    scores = [
        GBNC(NaiveBayes(), max_parents=2, guard=guard).fit(data.X, data.Y).structure_.score for guard in (0.0, 1.0, 1e6)
    ]
    assert scores[0] >= scores[1] >= scores[2]
    assert not GBNC(NaiveBayes(), guard=1e6).fit(data.X, data.Y).structure_.parents["y0"] & set(data.Y)


def noise(n=150, K=6, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n)})
    for j in range(n_features):
        X[f"d{j}"] = pd.Categorical(rng.choice(list("abc"), size=n))
    return X, rng.integers(0, 2, size=(n, K))


@pytest.mark.parametrize("settings", [{}, {"conditioning": "partition"}, {"criterion": "cv"}])
def test_noise_is_no_parent_of_what_is_known_already(settings):
    """All rows gain the same little by one more shrinkage towards sure models: no error, and no gain either."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(300, 1)), rng.integers(0, 2, size=(300, 3))
    Y = pd.DataFrame({"copy": noise[:, 0], "a": noise[:, 0], "noise1": noise[:, 1], "noise2": noise[:, 2]})
    edges = GBNC(NaiveBayes(), **settings).fit(X, Y).graph_.edges
    assert {frozenset(edge) for edge in edges} == {frozenset({"copy", "a"})}
    flat = pd.DataFrame({"flat": pd.Categorical(["a"] * 300, categories=["a", "b"]), "noise1": noise[:, 1]})
    assert not GBNC(NaiveBayes(), **settings).fit(X, flat).graph_.edges
    assert not GBNC(NaiveBayes(), **settings).fit(X[:2], [[0, 1, 0], [1, 0, 1]]).graph_.edges


@pytest.mark.parametrize("K", [5, 7])
def test_refused_features_come_in_with_no_set_of_class_variables(K):
    X, Y = noise(n=300, K=K, n_features=4, seed=1)
    Y[:, 1:4] = np.where(np.random.default_rng(1).random((300, 3)) < 0.8, Y[:, :1], Y[:, 1:4])
    model = GBNC(NaiveBayes(), max_parents=3).fit(X, Y)
    assert model.graph_.edges
    assert not {"d0", "d1", "d2", "d3"} & {parent for parent, _ in model.graph_.edges}


def test_what_max_candidates_asks_first_does_not_pass_the_guard():
    data = table(300, K=7, n_continuous=2)
    with pytest.warns(UserWarning, match="max_candidates=60"):
        few = GBNC(NaiveBayes(), max_parents=2, max_candidates=60).fit(data.X, data.Y)
    features = set(data.X.select_dtypes("category"))
    for child, parents in few.structure_.parents.items():
        apart = few.scores_[child]
        alone = max(score for others, score in apart.items() if others <= features)
        assert not parents - features or apart[parents] > alone + 2.0


def test_max_parents_limits_parents_however_they_enter():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(800, 4))
    Y[:, 0] = rng.random(800) < 1 / (1 + np.exp(3.0 - 2.0 * Y[:, 1:].sum(axis=1)))
    edges = [(f"y{j}", f"y{k}") for j in range(4) for k in range(1, 4) if j != k]
    X = rng.normal(size=(800, 1))
    for conditioning in ("input", "auto"):
        for limit, expected in ((1, 1), (2, 2), (None, 3)):
            settings = {"conditioning": conditioning, "forbidden_edges": edges, "max_parents": limit}
            model = GBNC(experts=None, **settings).fit(X, Y)
            assert len(model.structure_.parents["y0"]) == expected, settings


def test_the_lemma_holds_for_penalties_that_fall():
    data = table(300, K=6, n_states=2, n_discrete=0)

    def pen(size):
        parents = len(size.parent_states) + len(size.input_states)
        return 1e6 if parents == 1 else 0.5 * math.log(size.n_rows) * size.n_probabilities

    lemma, whole = (
        GBNC(NaiveBayes(), criterion=pen, prune=prune, max_parents=2).fit(data.X, data.Y).structure_.score
        for prune in ("lemma", None)
    )
    assert lemma == pytest.approx(whole)


@pytest.mark.parametrize("conditioning", ["auto", "input", "partition"])
@pytest.mark.parametrize("limit", [None, 30])
def test_no_parent_of_any_kind_passes_a_high_guard(conditioning, limit):
    X, Y = noise()
    settings = {"conditioning": conditioning, "max_candidates": limit, "max_parents": 1, "max_discrete_parents": 1}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There are .* parent sets")
        model = GBNC(NaiveBayes(), guard=20, **settings).fit(X, Y)
    assert not model.graph_.edges
    assert "accepted by guard=20" in model.structure_.status
    edges = [("y4", "y1"), ("d0", "y1")]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There are .* parent sets")
        model = GBNC(NaiveBayes(), guard=20, required_edges=edges, **settings).fit(X, Y)
    assert set(model.graph_.edges) == set(edges)


@pytest.mark.parametrize("seed", [31, 58, 3])
def test_no_dag_over_what_was_scored_is_better_without_the_guard(seed):
    kwargs = {"n_states": 2, "n_continuous": 2, "n_discrete": 3, "n_discrete_states": 3}
    data = make_network(60, n_class_variables=4, random_state=seed, **kwargs)
    model = GBNC(NaiveBayes(), max_parents=2, guard=0).fit(data.X, data.Y)
    names = set(data.Y)
    best = {}
    for child, table in model.scores_.items():
        for parents, score in table.items():
            key = child, frozenset(parents & names)
            best[key] = max(score, best.get(key, -np.inf))
    order = tuple(data.Y)
    top = max(
        sum(best.get((child, members), -np.inf) for child, members in zip(order, dag, strict=True))
        for dag in all_dags(order)
    )
    assert model.structure_.score == pytest.approx(top, rel=1e-12)
    guarded = GBNC(NaiveBayes(), max_parents=2).fit(data.X, data.Y)
    total = sum(guarded.scores_[child][parents] for child, parents in guarded.structure_.parents.items())
    assert guarded.structure_.score == pytest.approx(total, rel=1e-12)


def test_zero_parents_are_none():
    X, Y = noise(n_features=0)
    Y[:, 1:] = Y[:, :1]
    assert not GBNC(NaiveBayes(), max_parents=0, guard=0).fit(X, Y).graph_.edges
    chained = GBNC(NaiveBayes(), max_parents=1, guard=0, conditioning="input").fit(X, Y)
    assert chained.graph_.edges


def test_zero_parents_and_a_required_edge_are_this_edge():
    rng = np.random.default_rng(0)
    Y = np.repeat(rng.integers(0, 2, size=(300, 1)), 4, axis=1)
    Y = np.where(rng.random((300, 4)) < 0.9, Y, 1 - Y)
    for conditioning in ("auto", "input"):
        settings = {"conditioning": conditioning, "max_parents": 0, "guard": 0, "required_edges": [("y0", "y3")]}
        model = GBNC(NaiveBayes(), **settings).fit(rng.normal(size=(300, 1)), Y)
        assert set(model.graph_.edges) == {("y0", "y3")}


def test_required_edges_beyond_max_parents_survive_a_network_that_is_too_wide(monkeypatch):
    rng = np.random.default_rng(0)
    Y = np.repeat(rng.integers(0, 8, size=(1000, 1)), 7, axis=1)
    Y = np.where(rng.random(Y.shape) < 0.5, Y, rng.integers(0, 8, size=Y.shape))
    edges = [(f"y{k}", "y6") for k in range(3)]
    monkeypatch.setattr("pmdc.scores.families.MAX_CELLS", 2**40)
    monkeypatch.setattr("pmdc.candidates.rules.DEFAULT_MAX_PARENTS", 1)
    model = GBNC(NaiveBayes(), conditioning="input", required_edges=edges, memory_budget=2**20)
    with pytest.warns(UserWarning, match="memory_budget"):
        model.fit(rng.normal(size=(1000, 1)), Y)
    assert model.structure_.parents["y6"] == {"y0", "y1", "y2"}


def test_families_beyond_three_parents_have_small_tables():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(1500, 13))
    Y[:, 12] = rng.random(1500) < 1 / (1 + np.exp(-2 * (Y[:, :12] - 0.5).sum(axis=1)))
    forbidden = [(f"y{j}", f"y{k}") for j in range(13) for k in range(12) if j != k]
    model = GBNC(Logistic(), conditioning="input", guard=0, forbidden_edges=forbidden)
    model.fit(rng.normal(size=(1500, 1)), Y)
    assert 2 ** (1 + len(model.structure_.parents["y12"])) == MAX_CELLS
    assert max(len(parents) for parents in model.scores_["y12"]) == 9


def test_required_inputs_do_not_count():
    X, Y = noise()
    edges = [("y0", "y5"), ("y1", "y5"), ("d0", "y5")]
    limits = {"max_parents": 1, "max_discrete_parents": 0}
    model = GBNC(NaiveBayes(), conditioning="input", required_edges=edges, **limits).fit(X, Y)
    assert {"y0", "y1", "d0"} <= set(model.conditioning_["y5"])
    with pytest.raises(ValueError, match="more than max_discrete_parents=0"):
        GBNC(NaiveBayes(), conditioning="partition", required_edges=[("d0", "y5")], **limits).fit(X, Y)


@pytest.mark.parametrize("estimator", [None, LogisticRegression(), TREE])
def test_an_unseen_value_of_an_input_is_no_evidence(estimator):
    rng = np.random.default_rng(0)
    d = rng.choice(["a", "b"], p=[0.95, 0.05], size=1000)
    y = (rng.random(1000) < np.where(d == "a", 0.05, 0.95)).astype(int)
    X = pd.DataFrame({"x": rng.normal(size=1000), "d": d})
    model = GBNC(estimator, experts=None, conditioning="input").fit(X, y)
    with pytest.warns(UserWarning, match="input.* average of the values seen"):
        answer = model.predict_proba(X[:50].assign(d="zz"))[:, 1]
    assert (answer < 0.2).all()


def test_forbidden_features_have_no_say_in_C():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 1))
    y = (x[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(int)
    X = pd.DataFrame({"x": x[:, 0]})
    folds = list(KFold(5).split(X))
    plain = GBNC(experts=None, cv=folds).fit(X, y).C_
    for j in range(40):
        X[f"d{j}"] = pd.Categorical(rng.choice(["a", "b"], size=120))
    forbidden = [(f"d{j}", "y0") for j in range(40)]
    assert plain == GBNC(experts=None, cv=folds, forbidden_edges=forbidden).fit(X, y).C_


def test_without_backoff_scores_are_not_shrunk():
    data = table(200, K=3, n_states=2)
    models = [GBNC(NaiveBayes(), backoff=b, max_parents=1).fit(data.X, data.Y) for b in ("parents", "none")]
    assert models[0].scores_ != models[1].scores_
    assert all(level.kappa is None for node in models[1]._network.nodes for level in node.levels.values())
    assert all(level.kappa is not None for node in models[0]._network.nodes for level in node.levels.values())


@pytest.mark.parametrize("value", [-1, np.inf, "two", None, True])
def test_the_guard_must_be_a_number(value):
    data = table(30)
    with pytest.raises(ValueError, match="guard=.* must be a number of at least 0"):
        GBNC(NaiveBayes(), guard=value).fit(data.X, data.Y)


# C of logistic regression ------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["auto", "cv"])
def test_a_feature_that_is_left_out_has_no_say_in_C(criterion):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 3)), columns=list("abc"))
    y = (X.to_numpy() @ rng.normal(size=(3, 3)) + rng.gumbel(size=(500, 3))).argmax(axis=1)
    more = X.assign(code=pd.Categorical(rng.integers(0, 100, 500).astype(str)))
    model = GBNC(experts=None, criterion=criterion).fit(X, y)
    other = GBNC(experts=None, criterion=criterion).fit(more, y)
    assert other.conditioning_ == {"y0": {}}
    assert other.C_ == model.C_
    np.testing.assert_allclose(other.predict_proba(more), model.predict_proba(X), atol=1e-6)


def test_C_fits_the_task():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    sharp = (X @ rng.normal(size=20) > 0).astype(int)
    noise = rng.integers(0, 2, size=300)
    model = GBNC(experts=None, max_parents=0).fit(X, np.column_stack([sharp, noise]))
    assert model.C_["y0"] >= 1.0
    assert model.C_["y1"] <= 0.01
    assert model.C_["y1"] == Logistic(C="auto").fit(X, noise).C_


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("criterion", ["auto", "cv"])
def test_held_out_scores_are_the_same_bits_for_any_number_of_workers(n_jobs, criterion):
    data = table(120, K=3)
    models = [
        GBNC(experts=None, criterion=criterion, n_jobs=jobs, max_parents=2).fit(data.X, data.Y)
        for jobs in (None, n_jobs)
    ]
    assert models[0].scores_ == models[1].scores_
    for p, q in zip(*(model.predict_proba(data.X) for model in models), strict=True):
        np.testing.assert_array_equal(p, q)


def test_rows_beyond_the_memory_budget_are_computed_again():
    data = table(150, K=4)
    models = [GBNC(NaiveBayes(), max_parents=2, memory_budget=budget).fit(data.X, data.Y) for budget in (2**30, 3000)]
    assert models[0].scores_ == models[1].scores_
    assert models[0].structure_.parents == models[1].structure_.parents


def test_leave_one_out_of_a_family_is_that_of_its_learner():
    data = table(100, K=2)
    codes, sizes = codes_and_sizes(data)
    X = data.X.select_dtypes("number").to_numpy()
    fitter = fitter_of(NaiveBayes(), training_rows(X, codes, sizes, 2))
    family = Family((2,), (1,))
    rows = evaluate(LeaveOneOutEvaluator(), fitter, 0, family)
    np.testing.assert_array_equal(rows.log_proba, fitter.learners[0].leave_one_out(local_task(0, family, codes, sizes)))
    np.testing.assert_array_equal(rows.weight, [(codes[:, 2] == v).sum() - 1 for v in codes[:, 2]])
