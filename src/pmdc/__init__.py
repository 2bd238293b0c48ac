"""pmdc: probabilistic multi-dimensional classification.

Learns the conditional joint distribution P(Y1..YK | x) of several class variables from a table with numbers and
categories, and answers questions about it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pmdc import baselines as baselines
    from pmdc import datasets as datasets
    from pmdc import evaluation as evaluation
    from pmdc import explain as explain
    from pmdc import inference as inference
    from pmdc import learners as learners
    from pmdc import metrics as metrics
    from pmdc import model_selection as model_selection
    from pmdc import report as report
    from pmdc import saving as saving
    from pmdc import search as search
    from pmdc.baselines import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
    from pmdc.classifier import GBNC
    from pmdc.saving import load, save

__version__ = "0.1.0"

__all__ = [
    "GBNC",
    "BinaryRelevance",
    "ChainEnsemble",
    "ClassPowerset",
    "ClassifierChain",
    "__version__",
    "load",
    "save",
]

# Imported lazily, so that the command line starts fast.
_MODULES = (
    "baselines",
    "datasets",
    "evaluation",
    "explain",
    "inference",
    "learners",
    "metrics",
    "model_selection",
    "report",
    "saving",
    "search",
)
_HOMES = {
    "GBNC": "pmdc.classifier",
    "BinaryRelevance": "pmdc.baselines",
    "ChainEnsemble": "pmdc.baselines",
    "ClassPowerset": "pmdc.baselines",
    "ClassifierChain": "pmdc.baselines",
    "load": "pmdc.saving",
    "save": "pmdc.saving",
}


if not TYPE_CHECKING:  # for type checkers, __getattr__ would make every name valid

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"pmdc.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'pmdc' has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
