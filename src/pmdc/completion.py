"""Questions about the states of a table: what the missing ones are, and which known ones look wrong.

Beyond the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from pmdc._support.arrays import Array, Codes, Floats, Marks
from pmdc._support.checks import check_choice, check_count
from pmdc._support.progress import phases_of
from pmdc.inference.base import BaseDistribution
from pmdc.inference.evidence import NO_EVIDENCE, Evidence, ImpossibleEvidenceError
from pmdc.table.columns import MISSING, as_plain_objects
from pmdc.table.rows import take_possible
from pmdc.table.weak_labels import take_sets


class SuspiciousCells(NamedTuple):
    """Known states by how improbable they are, the most improbable first.

    Attributes
    ----------
    rows : array of shape (n_cells,)
        Positions in the table.
    names : array of shape (n_cells,)
        Class variables.
    states, expected : arrays of shape (n_cells,)
        The state in the table, and the most probable one.
    prob : array of shape (n_cells,)
        The probability of the state in the table, given the features and the other known states of the row.
    """

    rows: Codes
    names: Array
    states: Array
    expected: Array
    prob: Floats


class CompletionMixin:
    """Methods for tables with missing or doubtful states."""

    def impute(self: Any, X: Any, y: Any, kind: str = "mode", *, n_draws: int = 5, random_state: Any = 0) -> Any:
        """Fill in the missing states of a table.

        Parameters
        ----------
        X : table like the one given to `fit`
        y : table like the one given to `fit`
            With missing states (NaN, None, NA) in any number of cells; a cell may also be a set of possible states.
        kind : {"mode", "proba", "sample"}, default="mode"
            "mode": the most probable completion of each row as a whole, given its features and its known states.
            "proba": the probabilities of the states of each cell, which are 0 and 1 where the state is known. "sample":
            several tables, each completed by a draw from the distribution of its missing states (multiple imputation).
        n_draws : int, default=5
            The number of tables for ``kind="sample"``.
        random_state : int, RandomState instance or None, default=0
            Of the draws.

        Returns
        -------
        Y, list of K arrays of shape (n, n_states), or list of `n_draws` tables
            Tables are of the kind of container that `fit` was given. For 1-D y, "proba" is one array.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> model = GBNC(experts=None, max_parents=1).fit(data.X, data.Y)
        >>> gaps = data.Y.copy().astype(object)
        >>> gaps.iloc[0, 1] = None
        >>> bool(model.impute(data.X, gaps).notna().all(axis=None))
        True
        """
        check_choice("kind", kind, ("mode", "proba", "sample"))
        check_count("n_draws", n_draws, 1)
        features = self._read(X)
        self._require_states(y)
        codes, possible = self.class_table_.encode_weak(y)
        _check_lengths(len(features), len(codes))
        parts = self._posteriors(features, codes, possible)
        if kind == "mode":
            return self.class_table_.decode(np.concatenate([part.mode_codes()[0] for part in parts]), like=y)
        if kind == "sample":
            random = check_random_state(random_state)
            draws = np.concatenate([part.sample_codes(n_draws, random) for part in parts])
            return [self.class_table_.decode(draws[:, draw], like=y) for draw in range(n_draws)]
        proba = [np.concatenate(own) for own in zip(*(part.marginals() for part in parts), strict=True)]
        return proba[0] if self.class_table_.one_dimensional else proba

    def _posteriors(
        self: Any, features: Any, codes: Codes, possible: Sequence[Marks | None] | None
    ) -> Iterator[BaseDistribution]:
        """Yield the distributions given the known and the possible states."""
        try:
            yield from self._chunk_distributions(features, Evidence(np.maximum(codes, NO_EVIDENCE), possible))
        except ImpossibleEvidenceError as error:
            table, row = self.class_table_, codes[error.row]
            known = {name: table.states[k][row[k]] for k, name in enumerate(table.names) if row[k] >= 0}
            raise ValueError(
                f"y, row {error.row}: by this model the known states {known} and the sets of possible states have "
                "probability zero together, so nothing follows from them. Correct them, or fit with backoff='parents', "
                "which leaves no probability zero."
            ) from None

    def suspicious_cells(self: Any, X: Any, y: Any, *, cv: int = 5) -> SuspiciousCells:
        """Rank the known states of a table by how improbable they are.

        The probability of a state is given the features and all other known states of its row, by a model of the other
        folds: a clone of this classifier, which need not be fitted, is fitted without each fold in turn. Where the
        other states have probability zero together, it is given the features alone.

        Parameters
        ----------
        X, y : tables as for `fit`
            Missing states and sets of states are not ranked, but the other cells of their rows are.
        cv : int, default=5
            The number of folds.

        Returns
        -------
        SuspiciousCells
            The most improbable first: `rows`, `names`, `states`, `expected` and `prob`. States are as in ``classes_``;
            one that the model of the other folds has not seen is as it was given.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> found = GBNC(experts=None, max_parents=1).suspicious_cells(data.X, data.Y)
        >>> len(found.rows) == data.Y.size
        True
        """
        check_count("cv", cv, 2)
        own_folds = getattr(self, "cv", 5)
        if not isinstance(own_folds, Integral) and not hasattr(own_folds, "split"):
            raise ValueError(
                "suspicious_cells fits the classifier without some rows, but its parameter cv lists rows: give it a "
                "number of folds, such as set_params(cv=5)."
            )
        self._require_states(y)
        n_rows, cells = _num_samples(y), []
        _check_lengths(_num_samples(X), n_rows)
        if n_rows < cv:
            raise ValueError(f"cv={cv}, but y has only {n_rows} rows: give more rows or fewer folds.")
        folds = KFold(cv, shuffle=True, random_state=0).split(np.empty((n_rows, 1)))
        for number, (seen, held) in enumerate(folds):
            with phases_of(f"fold {number + 1} of {cv}"):
                model = clone(self).fit(_safe_indexing(X, seen), _safe_indexing(y, seen))
            cells.append(improbable_cells(model, _safe_indexing(X, held), _safe_indexing(y, held), held))
        rows, names, states, expected, prob = (np.concatenate(parts) for parts in zip(*cells, strict=True))
        order = np.lexsort((rows, prob))
        return SuspiciousCells(rows[order], names[order], states[order], expected[order], prob[order])


def improbable_cells(model: Any, X: Any, y: Any, numbers: Codes) -> SuspiciousCells:
    """Return the known cells of some rows with their probabilities by a fitted model, in no particular order.

    `numbers` are the positions of the rows in the table. A state that the model has not seen has probability 0.
    """
    table = model.class_table_
    features = model._read(X)
    codes, possible = table.encode_weak(y, unknown="mark")
    evidence = np.maximum(codes, NO_EVIDENCE)
    proba = [np.empty((len(codes), size)) for size in table.sizes]
    start = 0
    for part in model._chunk_distributions(features, None):
        rows = slice(start, start + len(part))
        for k, own in enumerate(proba):
            own[rows] = _given_others(part, evidence[rows], take_possible(possible, rows), k)
        start += len(part)
    columns, found = table.columns(take_sets(y)[0], allow_missing=True), []
    for k, name in enumerate(table.names):
        known = np.flatnonzero(codes[:, k] != MISSING)
        own = codes[known, k]
        prob = np.where(own >= 0, proba[k][known, np.maximum(own, 0)], 0.0)
        states = as_plain_objects(table.states[k])
        given = np.where(own >= 0, states[np.maximum(own, 0)], as_plain_objects(columns[k].values)[known])
        names = np.full(len(known), name, dtype=object)
        found.append((numbers[known], names, given, states[proba[k][known].argmax(axis=1)], prob))
    return SuspiciousCells(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _given_others(part: BaseDistribution, evidence: Codes, possible: Sequence[Marks | None] | None, k: int) -> Floats:
    """Return the distribution of a class variable given the other class variables."""
    others = evidence.copy()
    others[:, k] = NO_EVIDENCE
    sets = [None if j == k or own is None else own.copy() for j, own in enumerate(possible or ())]
    impossible = ~part.may_be(others, sets)
    others[impossible] = NO_EVIDENCE
    for own in sets:
        if own is not None:
            own[impossible] = True
    restricted = part.restricted(sets) if sets else part
    return restricted.given_codes(others).marginals()[k]


def _check_lengths(n_features: int, n_states: int) -> None:
    if n_features != n_states:
        raise ValueError(f"X has {n_features} rows, y has {n_states}: they must have the same number of rows.")
