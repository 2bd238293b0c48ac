"""What people used before: binary relevance, classifier chains and their ensembles, the class powerset.

All take multi-class class variables and mixed tables: discrete features, and the class variables that come
earlier in a chain, enter as indicator inputs. They answer the same questions as `GBNC`, with the same care for
states without rows.
"""

from pmdc.baselines.binary_relevance import BinaryRelevance
from pmdc.baselines.chain_ensemble import ChainEnsemble
from pmdc.baselines.class_powerset import ClassPowerset
from pmdc.baselines.classifier_chain import ClassifierChain

__all__ = ["BinaryRelevance", "ChainEnsemble", "ClassPowerset", "ClassifierChain"]
