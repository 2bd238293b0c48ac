"""What the score of a parent set means: the log-likelihood of its local models minus a penalty.

Every criterion is a sum over (class variable, parent set) — the paper's regularised conditional log-likelihood (Eq. 23)

    S(Y, D) = C(Y, D) - pen(D, N),

so the exact search stays exact whichever is chosen. C(Y, D) never exceeds 0, and the penalty is known before
any model is fitted: these two facts are all that pruning by the Lemma needs (see `candidates`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pmdc.checks import check_choice

Penalty = Callable[[int, Sequence[int], float], float]
"""(number of states, numbers of states of the parents, sum of the weights of the rows) -> penalty."""


def no_penalty(n_states: int, parent_states: Sequence[int], n_rows: float) -> float:
    """``"cll"``: the conditional log-likelihood alone."""
    return 0.0


def bic_penalty(n_states: int, parent_states: Sequence[int], n_rows: float) -> float:
    """``"bic"``: the paper's penalty, 1/2 ln N x (states - 1) x (configurations, observed or not).

    It counts one free probability for each state but one and each configuration, not the weights of the
    features. N is the sum of the weights; below 1 the penalty would turn into a reward, so it stops at 0.
    """
    return 0.5 * max(math.log(n_rows), 0.0) * (n_states - 1) * math.prod(parent_states)


_CRITERIA: dict[str, Penalty] = {"bic": bic_penalty, "cll": no_penalty}


def resolve(criterion: str | Penalty) -> Penalty:
    """The penalty behind a name, or the given function itself."""
    if callable(criterion):
        return criterion
    otherwise = ", or give a function (n_states, parent_states, n_rows) that returns the penalty"
    check_choice("criterion", criterion, _CRITERIA, otherwise)
    return _CRITERIA[criterion]
