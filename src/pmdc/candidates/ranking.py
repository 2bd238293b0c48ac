"""Ranking of possible parents by mutual information, before anything is fitted."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from pmdc.table.rows import TrainingRows


def rank_parents(rows: TrainingRows) -> list[list[int]]:
    """Return for each class variable all other nodes by decreasing mutual information; ties by number.

    It is that of the rows in which both are known.
    """
    weights = rows.weights / rows.weights.sum()
    ranking = []
    for child in range(rows.n_classes):
        others = [v for v in range(len(rows.sizes)) if v != child]
        information = {v: _mutual_information(rows, child, v, weights) for v in others}
        ranking.append(sorted(others, key=lambda v: (-information[v], v)))
    return ranking


def _mutual_information(rows: TrainingRows, one: int, other: int, weights: np.ndarray) -> float:
    pair = rows.codes[:, one] * rows.sizes[other] + rows.codes[:, other]
    if rows.has_gaps:
        both = (rows.codes[:, [one, other]] >= 0).all(axis=1)
        pair, weights = pair[both], weights[both] / max(weights[both].sum(), np.finfo(float).tiny)
    cells = np.bincount(pair, weights=weights, minlength=rows.sizes[one] * rows.sizes[other])
    joint = cells.reshape(rows.sizes[one], rows.sizes[other])
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return round(float(rel_entr(joint, independent).sum()), 12)  # so that rounding does not break ties
