"""Baselines: binary relevance, classifier chains and ensembles of them, class powerset.

All accept multi-class class variables and mixed tables. Discrete features, and earlier class variables of a chain, are
one-hot encoded. They have the same methods as `GBNC`, and give states without rows a positive probability, too.
"""

from pmdc.baselines.binary_relevance import BinaryRelevance
from pmdc.baselines.chain_ensemble import ChainEnsemble
from pmdc.baselines.class_powerset import ClassPowerset
from pmdc.baselines.classifier_chain import ClassifierChain

__all__ = ["BinaryRelevance", "ChainEnsemble", "ClassPowerset", "ClassifierChain"]
