"""What a learner is to know beside the estimator and the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Options:
    """Options of a learner.

    Attributes
    ----------
    weighted : bool
        Whether weights were given at all.
    random_state : int, RandomState or None
        Where the random states of clones come from; with None those that an estimator was given stay.
    backoff : {"parents", "none", "paper"}
        See `GBNC`.
    has_discrete : bool
        Whether the table has discrete features, which makes a difference to ``backoff="paper"``.
    """

    weighted: bool = False
    random_state: Any = None
    backoff: str = "parents"
    has_discrete: bool = True

    @property
    def smooth(self) -> bool:
        """Whether states seen in a part may not get probability zero."""
        return self.backoff == "parents"

    @property
    def paper(self) -> bool:
        """Whether parts of equal rows with different states are answered as in the paper's code."""
        return self.backoff == "paper" and self.has_discrete

    @property
    def min_max(self) -> bool:
        """Whether inputs are scaled to [0, 1] over the training rows, as in the paper's code."""
        return self.backoff == "paper"
