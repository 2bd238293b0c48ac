"""Multinomial logistic regression, fitted for all configurations together."""

from pmdc.learners.logistic.logistic import Logistic, LogisticLearner, LogisticModels

__all__ = ["Logistic", "LogisticLearner", "LogisticModels"]
