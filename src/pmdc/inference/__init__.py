"""Inference: every question about the conditional joint distribution P(Y | x) of a batch of rows."""

from pmdc.inference.decisions import BlockLoss, CostLoss, CustomLoss, Decision, FMeasure, decide
from pmdc.inference.distribution import JointDistribution
from pmdc.inference.junction_tree import JunctionTree
from pmdc.inference.outcomes import OutcomeDistribution

__all__ = [
    "BlockLoss",
    "CostLoss",
    "CustomLoss",
    "Decision",
    "FMeasure",
    "JointDistribution",
    "JunctionTree",
    "OutcomeDistribution",
    "decide",
]
