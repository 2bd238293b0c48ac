"""What `importance` returns: increases of losses with their errors, and the same in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.decisions.decide import LossLike
from pmdc.explain.measures import Measure

_LEVEL = 0.05


@dataclass(frozen=True)
class Increases:
    """How much a loss increases if something is shuffled among the rows.

    Attributes
    ----------
    importances : array of shape (..., n_repeats)
        The mean increase over rows in each repeat.
    standard_error : array of shape (...)
        The standard error over rows of the mean over rows and repeats.
    n_rows : array of shape (...)
        The number of rows.
    """

    importances: Floats
    standard_error: Floats
    n_rows: Codes

    @classmethod
    def stack(cls, parts: Sequence[Increases], n_repeats: int = 0) -> Increases:
        """Return several of the same shape as one; none of them as an empty one with this number of repeats."""
        if not parts:
            return cls(np.zeros((0, n_repeats)), np.zeros(0), np.zeros(0, dtype=np.int64))
        return cls(*(np.stack([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def at(self, index: int) -> Increases:
        """Return one of several."""
        return Increases(self.importances[index], self.standard_error[index], self.n_rows[index])

    @property
    def importances_mean(self) -> Floats:
        """The mean over the repeats."""
        return np.asarray(self.importances.mean(axis=-1))

    @property
    def importances_std(self) -> Floats:
        """The standard deviation over the repeats."""
        return np.asarray(self.importances.std(axis=-1))

    def clear(self) -> Marks:
        """Return which increases are more than chance.

        These are one-sided t-tests with a false discovery rate of 0.05 over all of them (Benjamini and Hochberg).
        """
        from scipy import stats

        mean, error = self.importances_mean, self.standard_error
        if not mean.size:
            return np.zeros(mean.shape, dtype=bool)
        t = np.divide(mean, error, out=np.zeros_like(mean), where=error > 0)  # not where the error is NaN
        p = stats.t.sf(t, np.maximum(self.n_rows - 1, 1)).ravel()
        return np.asarray(stats.false_discovery_control(p) <= _LEVEL).reshape(mean.shape)


@dataclass(frozen=True, repr=False)
class Importance:
    """How much predictions depend on each feature, and class variables on their parents; returned by `importance`.

    Attributes
    ----------
    loss : str, loss object or callable
    given_parents : bool
        Whether `by_variable` is given the true states of the parents.
    class_names, feature_names : list of str
        The class variables, and the columns of X.
    arc_names : list of pairs of str
        Parent and child.
    arc_strengths : array of shape (n_arcs,)
        The score in training that is lost if the model is learned without the arc, in nats a row; NaN if not known.
    overall : Increases, of shape (n_features,)
        If a feature is shuffled: the increase of the loss of all class variables together.
    by_variable : Increases, of shape (n_features, K)
        If a feature is shuffled: the increase of the loss of each class variable. Empty, of shape (n_features, 0), if
        the loss has no value for single class variables.
    arcs : Increases, of shape (n_arcs,)
        If the states of a parent are shuffled: the increase of the loss of the child given its parents and x.
    n_rows : int
        The number of rows that were used.
    n_known : int
        The number of rows that could have been used.
    measure : Measure
        How the loss is measured; `sentences` uses its words.
    """

    loss: LossLike
    given_parents: bool
    class_names: list[str]
    feature_names: list[str]
    arc_names: list[tuple[str, str]]
    arc_strengths: Floats
    overall: Increases
    by_variable: Increases
    arcs: Increases
    n_rows: int
    n_known: int
    measure: Measure

    def top(self, n_features: int) -> dict[str, dict[str, float]]:
        """Return the most important features of each class variable with their increase, in descending order.

        Only features whose increase is more than chance are listed (`Increases.clear`, over all features and class
        variables).
        """
        if not self.by_variable.importances.shape[1]:
            raise ValueError(
                f"loss={self.loss!r} has no value for single class variables, so the features of each cannot be "
                "ranked: use loss='log', 'hamming' or a CostLoss, or read `overall`."
            )
        increase, clear = self.by_variable.importances_mean, self.by_variable.clear()
        found = {}
        for k, name in enumerate(self.class_names):
            order = np.argsort(-increase[:, k], kind="stable").tolist()
            listed = [j for j in order if clear[j, k]][:n_features]
            found[name] = {self.feature_names[j]: float(increase[j, k]) for j in listed}
        return found

    def sentences(self) -> list[str]:
        """Return in words what the parent is worth to the child, a sentence for each arc, the greatest first.

        It compares with the state of the parent in another row. The arc strength is what is lost without the arc; it is
        smaller if a model learned without the parent makes up for some of it.
        """
        mean, clear = self.arcs.importances_mean, self.arcs.clear()
        order = np.lexsort((np.arange(len(mean)), -np.nan_to_num(mean), ~clear))
        return [self._sentence(arc, float(mean[arc]), bool(clear[arc])) for arc in order.tolist()]

    def _sentence(self, arc: int, mean: float, clear: bool) -> str:
        parent, child = self.arc_names[arc]
        n_rows, error = int(self.arcs.n_rows[arc]), float(self.arcs.standard_error[arc])
        what, unit = self.measure.words(child)
        if not math.isfinite(error):
            return f"Whether {child} needs {parent} cannot be said: both are known in {n_rows} row(s) only."
        if not clear:
            return (
                f"Whether {child} needs {parent} cannot be told from chance: with another row's {parent}, {what} "
                f"changes by {mean:+.3f} ± {error:.3f}{unit} ({n_rows} rows)."
            )
        aside = ""
        if self._in_nats:
            strength = float(self.arc_strengths[arc])
            lost = f"; arc strength {strength:.3f}" if math.isfinite(strength) else ""
            aside = f" (makes the true state {math.exp(mean):.2f} times as likely{lost})"
        size = f"{mean:.3f} ± {error:.3f}{unit}"
        return f"Knowing the row's own {parent}, not another row's, lowers {what} by {size}{aside}."

    @property
    def _in_nats(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "log"

    def __repr__(self) -> str:
        counts = f"{len(self.feature_names)} features, {len(self.class_names)} class variables"
        return f"Importance(loss={self.loss!r}, {counts}, {len(self.arc_names)} arcs, {self.n_rows} rows)"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        rows = f"{self.n_rows} rows" if self.n_rows == self.n_known else f"{self.n_rows} of {self.n_known} rows"
        unit = " (nats a row)" if self._in_nats else ""
        yield f"Increase of the loss {self.loss!r}{unit} if a feature is shuffled among {rows}:"
        mean, error, clear = self.overall.importances_mean, self.overall.standard_error, self.overall.clear()
        order = [j for j in np.argsort(-mean, kind="stable").tolist() if clear[j]]
        width = max((len(self.feature_names[j]) for j in order), default=0)
        for j in order:
            yield f"  {self.feature_names[j]:{width}} {mean[j]:.4f} ± {error[j]:.4f}"
        others = len(mean) - len(order)
        if others:
            yield f"  {others} {'other ' if order else ''}feature{'s' * (others > 1)}: no more than chance"
        yield from self.sentences()
