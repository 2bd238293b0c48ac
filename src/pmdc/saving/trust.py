"""Types that `skops.io` may make although it does not know them itself.

Each is a Python class whose constructor keeps what it is given and does nothing else. So a file that was made with
malice gains nothing by naming one of them. Compiled types are left out: those of scikit-learn's trees and neighbours
take numbers as places in memory, and with other numbers they read anywhere.
"""

from __future__ import annotations

from typing import Any

from pmdc.learners.registry import ENGINES
from pmdc.table.features import FeatureTable

_OWN: dict[Any, None] = dict.fromkeys(
    [
        FeatureTable,
        *(
            one
            for engine in ENGINES
            if engine.estimators
            for one in (*engine.estimators, engine.models, *engine.saved, *engine.functions)
        ),
    ]
)
"""What is inside of a scikit-learn estimator, such as a pipeline, that has a learner of ours as a part.

skops writes where these are: when one moves, its old place must go on having it, for the files that are there.
"""

_SCIKIT_LEARN = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.CompoundKernel",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.DotProduct",
    "sklearn.gaussian_process.kernels.ExpSineSquared",
    "sklearn.gaussian_process.kernels.Exponentiation",
    "sklearn.gaussian_process.kernels.Matern",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.gaussian_process.kernels.RationalQuadratic",
    "sklearn.gaussian_process.kernels.Sum",
    "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
)

_OLD_PLACES = (
    "pmdc.learners.logistic.Logistic",
    "pmdc.learners.logistic.LogisticModels",
    "pmdc.learners.naive_bayes.NaiveBayes",
    "pmdc.learners.naive_bayes.NaiveBayesModels",
    "pmdc.table.FeatureTable",
)
"""Where some of our own were when files were written that are still read."""

KNOWN_TYPES: tuple[str, ...] = (
    *(f"{one.__module__}.{one.__name__}" for one in _OWN),
    *_OLD_PLACES,
    *_SCIKIT_LEARN,
)
