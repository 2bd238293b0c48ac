"""Inference: every question about the conditional joint distribution P(Y | x) of a batch of rows."""

from pmdc.inference.distribution import JointDistribution
from pmdc.inference.factors import family_scopes
from pmdc.inference.junction_tree import JunctionTree
from pmdc.inference.outcomes import OutcomeDistribution

__all__ = ["JointDistribution", "JunctionTree", "OutcomeDistribution", "family_scopes"]
