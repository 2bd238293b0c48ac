"""Local models P(Y | pi, x), one for each configuration pi of a parent set, and the engines that fit them.

`registry.py` chooses the engine of an estimator, `protocols.py` defines learners and their capabilities, `tasks.py`
what they fit. `logistic/` and `naive_bayes/` fit all configurations together; `clones.py` clones any scikit-learn
classifier for each. `validation.py` deals rows into folds and chooses C.
"""

from pmdc.learners.logistic import Logistic
from pmdc.learners.naive_bayes import NaiveBayes
from pmdc.learners.registry import default_estimator, make_learner
from pmdc.learners.tasks import LocalTask

__all__ = ["LocalTask", "Logistic", "NaiveBayes", "default_estimator", "make_learner"]
