"""Options of a learner besides the estimator and the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Options:
    """Options of a learner.

    Attributes
    ----------
    weighted : bool
        Whether the user gave weights.
    random_state : int, RandomState or None
        Seed of the random states of clones; None keeps those of the estimator.
    backoff : {"parents", "none", "paper"}
        See `GBNC`.
    has_discrete : bool
        Whether the table has discrete features, which matters for ``backoff="paper"``.
    """

    weighted: bool = False
    random_state: Any = None
    backoff: str = "parents"
    has_discrete: bool = True

    @property
    def smooth(self) -> bool:
        """Whether states seen in a part never get probability zero."""
        return self.backoff == "parents"

    @property
    def paper(self) -> bool:
        """Whether parts of equal rows with different states get the uniform distribution, as in the paper's code."""
        return self.backoff == "paper" and self.has_discrete

    @property
    def min_max(self) -> bool:
        """Whether inputs are scaled to [0, 1] over the training rows, as in the paper's code."""
        return self.backoff == "paper"
