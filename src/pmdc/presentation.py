"""Pictures, importance and the explorer as methods of classifiers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from pmdc._support.extras import require

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

    from pmdc.explain import Importance
    from pmdc.explore.notebook import Exploration


class PresentationMixin(ABC):
    """What a fitted classifier shows of itself."""

    @abstractmethod
    def _own_graph(self) -> networkx.DiGraph:
        """Return the graph of the model; raise ValueError if it has none."""

    def to_networkx(self) -> networkx.DiGraph:
        """Return the graph of the fitted model, for `pmdc.report.draw_graph`; ValueError if it has no graph."""
        check_is_fitted(self)
        return self._own_graph()

    def feature_importance(self, X: Any, Y: Any, **options: Any) -> Importance:
        """Measure how much each class variable depends on each feature, given its parents.

        This is `pmdc.explain.importance` with ``loss="log", given_parents=True``: the values of one feature at a time
        are shuffled among the rows, and the importance of the feature for a class variable is the mean increase of
        -log P(y_k | its parents, x).

        Parameters
        ----------
        X, Y : tables as for `fit`
            Rows with known outcomes. Rows that were used in `fit` make features look more important than they are.
        **options
            The other parameters of `pmdc.explain.importance`: ``n_repeats``, ``max_rows``, ``random_state``, ....

        Returns
        -------
        Importance
            ``by_variable`` with ``importances_mean`` and ``standard_error``; ``top(n)`` lists the features whose
            importance is more than chance.
        """
        from pmdc.explain import importance

        return importance(self, X, Y, "log", given_parents=True, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        title: str | None = None,
        max_arcs: int | None = 40,
        features: int = 0,
        X: Any = None,
        Y: Any = None,
    ) -> Axes:
        """Draw the graph of the model, which is the same for all rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure of suitable size.
        title : str, optional
        max_arcs : int, default=40
            The largest number of arcs; of more, the strongest are drawn and the others counted. None draws all.
        features : int, default=0
            Draw the features that matter most for each class variable as well, at most this many, continuous and
            discrete ones (see `feature_importance`). This needs X and Y, because a model contains no rows.
        X, Y : tables as for `fit`
            Rows with known outcomes for `features`, best those that were not used in `fit`.

        Returns
        -------
        matplotlib Axes
            See `pmdc.report.draw_graph`. ``predict_joint(X).plot(row)`` draws the network of one row, with its
            probabilities.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> ax = GBNC(experts=None, max_parents=1).fit(data.X, data.Y).plot(title="The graph")
        >>> ax.figure.savefig("graph.svg")  # doctest: +SKIP
        """
        from pmdc.report import draw_graph, feature_graph

        asked = features != 0 or X is not None or Y is not None
        graph = feature_graph(self, X, Y, features) if asked else self.to_networkx()
        return draw_graph(graph, ax, title=title, max_arcs=max_arcs)

    def explore(self, X: Any, Y: Any = None, *, live: bool = True, n_saved: int = 10, height: int = 800) -> Exploration:
        """Explore the model in the browser: pick a row, fix what is known, watch the rest change, ask why.

        In a notebook the result is shown as a page. ``pmdc explore`` does the same from the command line.

        Parameters
        ----------
        X : table like the one given to `fit`
            Rows to look at. They are also the background of explanations.
        Y : table like the one given to `fit`, optional
            Their true outcomes, best of rows that were not used in `fit`. Missing cells are not known. Prediction sets
            are calibrated on complete rows.
        live : bool, default=True
            Start a server on this computer, which answers every question. Without it, or where a notebook cannot reach
            it, the page is a saved one, with the answers about the first rows.
        n_saved : int, default=10
            How many rows the saved page holds.
        height : int, default=800
            The height of the page in a notebook, in pixels.

        Returns
        -------
        Exploration
            With the attribute ``url`` and the methods ``save(path)``, which writes the saved page, and ``stop()``.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> model = GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])
        >>> model.explore(data.X[200:], data.Y[200:], live=False)
        Exploration(GBNC, saved page)
        """
        check_is_fitted(self)
        for module in ("fastapi", "uvicorn"):
            require(module)
        from pmdc.explore.notebook import Exploration

        return Exploration(self, X, Y, live, n_saved, height)

    def _html_repr(self) -> str:
        """Return what notebooks show: scikit-learn's diagram and, once fitted, the graph."""
        from pmdc.report.html import model_html

        return str(estimator_html_repr(self)) + model_html(self)
