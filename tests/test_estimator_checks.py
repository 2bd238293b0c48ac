"""scikit-learn's own checks of its conventions, on every public estimator.

One is not expected to pass: the forests of the default `GBNC` draw rows and thresholds at random, so a row of weight 2
is not two rows; scikit-learn makes the same exception for its own forests. We skip none. scikit-learn itself skips two
kinds: those of array-API input, which need SCIPY_ARRAY_API=1 and an estimator that claims to support it, and those of
`decision_function`, which our classifiers do not have, because what they know are probabilities.

One check wants `predict` to be the argmax of `predict_proba`. The powerset, chains and ensembles of chains are checked
with ``loss="hamming"``, for which that holds: their defaults, the most probable outcome, greedy predictions and the
vote of these, are other decisions by design and would agree by chance only.
"""

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.learners import Logistic


def expected_to_fail(estimator):
    """The checks that a model with forests need not pass."""
    if not isinstance(estimator, GBNC) or estimator.experts is None or estimator.estimator is not None:
        return {}
    return {"check_sample_weight_equivalence_on_dense_data": "forests draw rows and thresholds at random"}


@parametrize_with_checks(
    [
        GBNC(),
        GBNC(experts=None),
        GBNC(GaussianNB(), backoff="none"),
        BinaryRelevance(),
        ClassifierChain(loss="hamming"),
        ClassPowerset(loss="hamming"),
        ChainEnsemble(GaussianNB(), n_chains=3, loss="hamming"),
        Logistic(),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
