"""Bayes-optimal decisions: the prediction of least expected loss (Section 4 of the paper).

The model is not trained for a loss: all decisions use the same joint distribution. `losses.py` has the losses that
decompose over class variables or blocks of them, `f_measure.py` the F-measures, `jaccard.py` the Jaccard index, and
`outcome_search.py` the losses that need a search over outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from pmdc._support.arrays import Floats
from pmdc._support.checks import check_choice
from pmdc.decisions.f_measure import FMeasure
from pmdc.decisions.jaccard import JaccardLoss
from pmdc.decisions.losses import BalancedLoss, BlockLoss, Choice, CostLoss, HammingLoss, Loss, SubsetLoss
from pmdc.decisions.outcome_search import CustomLoss, SubExactLoss
from pmdc.inference.base import BaseDistribution

LossLike = str | Loss | Callable[..., Any]

LOSSES: dict[str, Callable[[], Loss]] = {
    "hamming": HammingLoss,
    "subset": SubsetLoss,
    "sub-exact": SubExactLoss,
    "balanced": BalancedLoss,
    "f1_samples": lambda: FMeasure("samples"),
    "f1_macro": lambda: FMeasure("macro"),
    "f1_micro": lambda: FMeasure("micro"),
    "jaccard": JaccardLoss,
}
"""Losses by name."""

__all__ = [
    "LOSSES",
    "BlockLoss",
    "CostLoss",
    "CustomLoss",
    "Decision",
    "FMeasure",
    "JaccardLoss",
    "Loss",
    "LossLike",
    "choose",
    "decide",
    "resolve",
]


class Decision(NamedTuple):
    """The prediction of least expected loss for each row."""

    outcome: Any
    """The states, in the kind of container that was given to `fit`."""
    expected_loss: Floats
    """The expected loss of the prediction, shape (n_rows,); the same for all rows if the loss is one of the whole
    batch."""
    standard_error: Floats
    """The standard error of the expected loss if it is estimated from draws; zero if it is exact."""
    proved: npt.NDArray[np.bool_]
    """Whether it is proved that no outcome has a lower expected loss."""


def resolve(loss: LossLike, extra: tuple[str, ...] = ()) -> Loss:
    """Return the loss object for a name or a function; ValueError for an unknown name."""
    if isinstance(loss, Loss):
        return loss
    if callable(loss) and not isinstance(loss, type):
        return CustomLoss(loss)
    check_choice("loss", loss, (*LOSSES, *extra), ", or give a loss object or a function (y_true, y_pred)")
    return LOSSES[str(loss)]()


def choose(distribution: BaseDistribution, loss: LossLike, random_state: Any = 0) -> Choice:
    """Return the same as `decide`, in codes."""
    resolved = resolve(loss)
    resolved.check(distribution.class_table)
    return resolved.choose(distribution, check_random_state(random_state))


def decide(distribution: BaseDistribution, loss: LossLike, random_state: Any = 0) -> Decision:
    """Return the Bayes-optimal prediction for each row.

    Parameters
    ----------
    distribution : JointDistribution or OutcomeDistribution
        The distribution of the class variables in each row.
    loss : str, loss object or callable
        The loss whose expectation is minimised.

        - "hamming": the share of wrong class variables; "subset": whether any class variable is wrong. `BlockLoss` is
          in between: blocks of class variables, each wrong if any member is wrong.
        - "balanced": the mean of the wrong class variables, each weighted by the inverse frequency of its true state in
          the training rows, so that rare states count as much as frequent ones. The distribution must come from a
          fitted classifier.
        - `CostLoss`: costs for each class variable, given by weights, cost matrices or distances of ordered states.
        - "sub-exact": whether more than one class variable is wrong.
        - "f1_samples", "f1_macro", "f1_micro" or `FMeasure`: one minus an F-measure, for binary class variables.
        - "jaccard" or `JaccardLoss`: one minus the Jaccard index of each row, for binary class variables.
        - a function ``loss(y_true, y_pred)`` of two outcomes, see `CustomLoss`.
    random_state : int, RandomState instance or None
        Used by losses whose expectation is estimated from draws.

    Returns
    -------
    Decision
        A named tuple: `outcome`, `expected_loss`, `standard_error` and `proved`.

    Examples
    --------
    >>> import numpy as np
    >>> from pmdc.decisions import decide
    >>> from pmdc.inference import JointDistribution
    >>> from pmdc.table import ClassTable
    >>> Y = ClassTable.fit(np.array([["no", "low"], ["yes", "high"]]))
    >>> tables = [np.log([[0.4, 0.6]]), np.log([[[0.9, 0.1], [0.45, 0.55]]])]
    >>> distribution = JointDistribution(Y, [(), (0,)], tables)
    >>> decide(distribution, "subset").outcome
    array([['no', 'high']], dtype='<U4')
    >>> decision = decide(distribution, "hamming")
    >>> decision.outcome
    array([['yes', 'high']], dtype='<U4')
    >>> decision.expected_loss
    array([0.385])
    """
    choice = choose(distribution, loss, random_state)
    return Decision(distribution.class_table.decode(choice.codes), *choice[1:])
