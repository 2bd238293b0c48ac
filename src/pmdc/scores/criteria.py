"""Criteria: what the score of a family is.

Every criterion is a sum over class variables, so the structure search is exact for all of them. There are two kinds.

*On the training rows*: the paper's regularised conditional log-likelihood (Eq. 23)

    S(Y, D) = C(Y, D) - pen(D, N).

C(Y, D) is never above 0, and the penalty is known before any model is fitted: pruning by the Lemma needs no more.

*Held out*: the log-probability of each row's state by models fitted without this row (``"loo"``) or without its fold
(``"cv"``), summed over the rows. There is no penalty (see `held_out`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.checks import check_choice


class Size(NamedTuple):
    """The quantities that a penalty may depend on.

    Attributes
    ----------
    n_states : int
        The number of states of the class variable.
    parent_states : sequence of int
        The numbers of states of the parents that partition the rows.
    input_states : sequence of int
        The numbers of states of the parents that are inputs.
    n_rows : float
        The sum of the weights of the rows in which the class variable is known; of its states with `cell_weight`.
    n_parameters : int or None
        The free parameters of one local model; None if they are not known before it is fitted.
    """

    n_states: int
    parent_states: Sequence[int]
    input_states: Sequence[int]
    n_rows: float
    n_parameters: int | None

    @property
    def n_models(self) -> int:
        """The number of configurations of the partition, observed or not."""
        return math.prod(self.parent_states)

    @property
    def n_probabilities(self) -> int:
        """The paper's count, (states - 1) x configurations, times 1 + the sum of (states - 1) over the inputs."""
        return (self.n_states - 1) * self.n_models * (1 + sum(q - 1 for q in self.input_states))


Penalty = Callable[[Size], float]


def no_penalty(size: Size) -> float:
    """``"cll"``: the conditional log-likelihood alone."""
    return 0.0


def aic_penalty(size: Size) -> float:
    """``"aic"``: 1 for each probability that the paper counts."""
    return float(size.n_probabilities)


def bic_penalty(size: Size) -> float:
    """``"bic"``: the paper's penalty, 1/2 ln N for each probability; coefficients of features are not counted.

    N is the sum of the weights (`Size.n_rows`). The penalty is at least 0.
    """
    return _half_log(size.n_rows) * size.n_probabilities


def full_bic_penalty(size: Size) -> float:
    """``"bic-full"``: 1/2 ln N for every parameter of the local models, including the coefficients of features."""
    if size.n_parameters is None:
        raise ValueError(
            "criterion='bic-full' counts the parameters of the local models, which are known only for logistic "
            "regression and naive Bayes: choose criterion='cv' for this estimator."
        )
    return _half_log(size.n_rows) * size.n_parameters * size.n_models


def _half_log(n_rows: float) -> float:
    return 0.5 * max(math.log(n_rows), 0.0)


_PENALTIES: dict[str, Penalty] = {
    "cll": no_penalty,
    "aic": aic_penalty,
    "bic": bic_penalty,
    "bic-full": full_bic_penalty,
}

HELD_OUT = ("auto", "loo", "cv")


def is_held_out(criterion: str | Penalty) -> bool:
    """Return whether a criterion uses held-out rows."""
    return isinstance(criterion, str) and criterion in HELD_OUT


def penalty_of(criterion: str | Penalty) -> Penalty:
    """Return the penalty of this name, or the given function; held-out criteria have none."""
    if callable(criterion):
        return criterion
    function = ", or give a function of a pmdc.scores.criteria.Size that returns the penalty"
    check_choice("criterion", criterion, (*HELD_OUT, *_PENALTIES), function)
    return _PENALTIES.get(criterion, no_penalty)


def ask_penalty(criterion: str | Penalty, size: Size, owner: str, estimator: Any) -> float:
    """Return the penalty of a criterion; check the result of a user's function.

    Parameters
    ----------
    criterion : str or function
    size : Size
    owner : str
        The class variable and its parents, for messages.
    estimator : scikit-learn classifier or None
        The local model, for messages.
    """
    try:
        value: Any = penalty_of(criterion)(size)
    except TypeError as error:
        if size.n_parameters is None:
            remedy = (
                f"size.n_parameters is None for estimator={estimator!r}: use size.n_probabilities instead, or choose "
                "criterion='cv'."
            )
        else:
            remedy = "It must be a function of a pmdc.scores.criteria.Size that returns the penalty."
        raise TypeError(f"criterion={criterion!r} failed for {owner} ({error}). {remedy}") from error
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Real) or np.isnan(float(value)) or np.isneginf(float(value)):
        raise ValueError(
            f"criterion={criterion!r} returned {value!r} for {owner}: it must return the penalty, a number."
        )
    return float(value)
