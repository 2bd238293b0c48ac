"""scikit-learn's own checks of its conventions, on every public estimator. None is skipped."""

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.learners import Logistic


@parametrize_with_checks(
    [
        GBNC(),
        GBNC(GaussianNB(), backoff="none"),
        BinaryRelevance(),
        ClassifierChain(),
        ClassPowerset(),
        Logistic(),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
