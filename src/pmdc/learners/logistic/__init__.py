"""Multinomial logistic regression, fitted for all configurations together."""

from pmdc.learners.logistic.logistic import Logistic, LogisticLearner, LogisticModels, accepts

__all__ = ["Logistic", "LogisticLearner", "LogisticModels", "accepts"]
