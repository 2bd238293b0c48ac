"""Why a model predicts what it predicts.

`explain_row` divides the log-odds of a state among the features and the other class variables; `explain_difference`
does so for two rows, or for two sets of known states.
"""

from pmdc.explain.explain import explain_difference, explain_row
from pmdc.explain.explanation import Contribution, Explanation

__all__ = ["Contribution", "Explanation", "explain_difference", "explain_row"]
