"""Local models P(Y | pi, x), one for each configuration pi of a parent set, and the engines that fit them.

`registry.py` chooses the engine of an estimator, `protocols.py` says what a learner does and may do, `tasks.py` what is
fitted. `logistic/` and `naive_bayes/` fit all configurations together, `clones.py` clones any scikit-learn classifier
for each.
"""

from pmdc.learners.logistic import Logistic
from pmdc.learners.naive_bayes import NaiveBayes
from pmdc.learners.registry import default_estimator, make_learner
from pmdc.learners.tasks import LocalTask

__all__ = ["LocalTask", "Logistic", "NaiveBayes", "default_estimator", "make_learner"]
