"""Naive Bayes, fitted for all configurations together."""

from pmdc.learners.naive_bayes.naive_bayes import NaiveBayes, NaiveBayesLearner, NaiveBayesModels, accepts

__all__ = ["NaiveBayes", "NaiveBayesLearner", "NaiveBayesModels", "accepts"]
