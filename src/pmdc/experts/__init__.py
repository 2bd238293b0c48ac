"""Stage 2: strong classifiers of x, fitted out of fold; their log-probabilities are inputs of local models."""

from pmdc.experts.features import ExpertScore
from pmdc.experts.plan import ExpertPlan

__all__ = ["ExpertPlan", "ExpertScore"]
