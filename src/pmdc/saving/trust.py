"""Types that `skops.io` may build although they are not on its own list.

Each is a Python class whose constructor only stores its arguments, so a malicious file gains nothing by naming one.
Compiled types are left out: scikit-learn's trees and neighbours use numbers as memory offsets without checks.
"""

from __future__ import annotations

from typing import Any

from pmdc.learners.registry import ENGINES
from pmdc.table.features import FeatureTable
from pmdc.table.gaps import Filling

_OWN: dict[Any, None] = dict.fromkeys(
    [
        FeatureTable,
        Filling,
        *(
            one
            for engine in ENGINES
            if engine.estimators
            for one in (*engine.estimators, engine.models, *engine.saved, *engine.functions)
        ),
    ]
)
"""Types inside a scikit-learn estimator, such as a pipeline, that contains one of our learners.

skops writes their import paths: when one moves, its old path must stay importable, for existing files.
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
"""Import paths of our types in files of earlier versions."""

KNOWN_TYPES: tuple[str, ...] = (
    *(f"{one.__module__}.{one.__name__}" for one in _OWN),
    *_OLD_PLACES,
    *_SCIKIT_LEARN,
)
