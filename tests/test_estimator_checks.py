"""scikit-learn's own checks of its conventions, on every public estimator.

We skip none. scikit-learn itself skips two kinds: those of array-API input, which need SCIPY_ARRAY_API=1 and an
estimator that claims to support it, and those of `decision_function`, which our classifiers do not have, because
what they know are probabilities.

One check wants `predict` to be the argmax of `predict_proba`. The powerset, chains and ensembles of chains are checked
with ``loss="hamming"``, for which that holds: their defaults, the most probable outcome, greedy predictions and the
vote of these, are other decisions by design and would agree by chance only.
"""

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.learners import Logistic


@parametrize_with_checks(
    [
        GBNC(),
        GBNC(GaussianNB(), backoff="none"),
        BinaryRelevance(),
        ClassifierChain(loss="hamming"),
        ClassPowerset(loss="hamming"),
        ChainEnsemble(GaussianNB(), n_chains=3, loss="hamming"),
        Logistic(),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
