"""The answer of `explain_row` and `explain_difference`: contributions to log-odds, as a table, text or picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pmdc._support.extras import require

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Contribution(NamedTuple):
    """What a feature, an expert or another class variable adds to the log-odds.

    Attributes
    ----------
    kind : {"feature", "expert", "class variable"}
    name : str
    value : object
        The value of the feature or the known state; None if it is missing or not known. A pair of these if two rows are
        compared.
    contribution : float
        In nats.
    standard_error : float
        0 where the contribution is exact.
    """

    kind: str
    name: str
    value: Any
    contribution: float
    standard_error: float


@dataclass(frozen=True)
class Explanation:
    """The log-odds of a state of a class variable as a sum of contributions.

    Attributes
    ----------
    variable : str
    state : object
    base : float
        The base rate: the log-odds of the average row, or of the first of two rows.
    log_odds : float
        The log-odds in the row; ``base`` plus all contributions.
    contributions : list of Contribution
        The largest first.
    through : dict of str to list of Contribution
        For each other class variable, what its contribution consists of: its known state, and the features that change
        its probabilities.
    reference : str
        What the row is compared with: the average row, or the first of two rows.
    """

    variable: str
    state: Any
    base: float
    log_odds: float
    contributions: Sequence[Contribution]
    through: Mapping[str, Sequence[Contribution]]
    reference: str

    @property
    def prob(self) -> float:
        """The probability of the state in the row."""
        return probability(self.log_odds)

    def to_frame(self) -> pd.DataFrame:
        """Return the contributions as a pandas DataFrame."""
        return require("pandas").DataFrame(self.contributions, columns=list(Contribution._fields))

    def plot(self, ax: Axes | None = None, *, max_bars: int = 12, title: str | None = None) -> Axes:
        """Draw a waterfall: from the base rate to the log-odds, a bar for each contribution.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw in; by default a new figure of fitting size.
        max_bars : int, default=12
            The largest contributions have bars of their own, the others one bar together.
        title : str, optional

        Returns
        -------
        matplotlib Axes
        """
        from pmdc.report.waterfall import draw_waterfall

        return draw_waterfall(self, ax, max_bars, title)

    def __str__(self) -> str:
        head = f"{self.variable} = {self.state}: log-odds {self.log_odds:.3f} (probability {self.prob:.3f})"
        rows = [(self.reference, f"{self.base:+.3f}")]
        for part in self.contributions:
            error = f" ± {part.standard_error:.3f}" if part.standard_error >= 0.0005 else ""
            rows.append((label(part), f"{part.contribution:+.3f}{error}"))
        width = max(len(name) for name, _ in rows)
        return "\n".join([head, *(f"  {name:<{width}}  {value}" for name, value in rows)])


def probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def label(part: Contribution) -> str:
    """Return the name of a contribution with its value."""
    if part.kind not in ("feature", "class variable"):
        return part.name
    empty = "missing" if part.kind == "feature" else "not known"

    def shown(value: Any) -> str:
        if value is None:
            return empty
        if isinstance(value, np.datetime64):
            return str(np.datetime_as_string(value, unit="s")).removesuffix("T00:00:00").replace("T", " ")
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    if not isinstance(part.value, tuple):
        return f"{part.name} ({empty})" if part.value is None else f"{part.name} = {shown(part.value)}"
    before, after = map(shown, part.value)
    return f"{part.name}: {before}" if before == after else f"{part.name}: {before} → {after}"
