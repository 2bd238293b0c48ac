"""Decisions: the prediction of least expected loss for any loss, and prediction sets."""

from pmdc.decisions.decide import BlockLoss, CostLoss, CustomLoss, Decision, FMeasure, JaccardLoss, decide

__all__ = ["BlockLoss", "CostLoss", "CustomLoss", "Decision", "FMeasure", "JaccardLoss", "decide"]
