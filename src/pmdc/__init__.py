"""pmdc: probabilistic multi-dimensional classification.

Learns the conditional joint distribution P(Y1..YK | x) of several class variables from a table with numbers and
categories, and answers questions about it.
"""

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
