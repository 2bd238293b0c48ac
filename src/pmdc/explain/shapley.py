"""Shapley values of players that switch from the values of background rows to those of one row.

The value of a coalition is the mean over the background rows of a function of the row in which the players of the
coalition have the values of the row to be explained, and the others those of the background row (the *interventional*
value of Lundberg and Lee 2017). With few players all coalitions are evaluated. Otherwise players switch one after the
other in random orders, each order and its reverse (Mitchell et al. 2022), from every background row in turn; for
functions that are sums over players this is exact, too. The contributions always sum to the whole difference.

Beyond the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks

MAX_ENUMERATED = 6
"""With at most so many players all coalitions are evaluated by default."""

MAX_ROWS = 2**15
"""Rows that are evaluated at once."""


class Shapley(NamedTuple):
    """Shapley values.

    Attributes
    ----------
    values : array of shape (n_players, n_outputs)
    standard_errors : array of the same shape
        Of the random orders; zero if all coalitions were evaluated.
    """

    values: Floats
    standard_errors: Floats


Game = Callable[[Marks, Codes], Floats]
"""Returns the outputs, (n, n_outputs), of players that have switched, (n, n_players), from background rows, (n,)."""


def shapley_values(
    game: Game,
    n_players: int,
    n_background: int,
    n_permutations: int,
    random: np.random.RandomState,
    max_enumerated: int | None = None,
) -> Shapley:
    """Return Shapley values.

    Parameters
    ----------
    game : function of (switched, background)
    n_players, n_background : int
    n_permutations : int
        Random orders for each background row, each of which is used with its reverse; at least 2.
    random : RandomState
    max_enumerated : int, optional
        With at most so many players all coalitions are evaluated; by default `MAX_ENUMERATED`.
    """
    if n_players <= (MAX_ENUMERATED if max_enumerated is None else max_enumerated):
        return _enumerate(game, n_players, n_background)
    return _sample(game, n_players, n_background, n_permutations, random)


def _enumerate(game: Game, n_players: int, n_background: int) -> Shapley:
    coalitions = (np.arange(2**n_players)[:, None] >> np.arange(n_players)) & 1 == 1
    rows = np.repeat(np.arange(n_background), len(coalitions))
    found = _evaluate(game, np.tile(coalitions, (n_background, 1)), rows)
    value = found.reshape(n_background, len(coalitions), -1).mean(axis=0)
    values = np.zeros((n_players, value.shape[1]))
    sizes = coalitions.sum(axis=1)
    for player in range(n_players):
        without = np.flatnonzero(~coalitions[:, player])
        share = np.array([1 / (n_players * math.comb(n_players - 1, size)) for size in sizes[without].tolist()])
        values[player] = share @ (value[without + 2**player] - value[without])
    return Shapley(values, np.zeros_like(values))


def _sample(
    game: Game, n_players: int, n_background: int, n_permutations: int, random: np.random.RandomState
) -> Shapley:
    means = []
    for _ in range(n_permutations):
        orders = np.array([random.permutation(n_players) for _ in range(n_background)])
        pair = [_switch(game, some) for some in (orders, orders[:, ::-1])]
        means.append((pair[0] + pair[1]) / 2)
    found = np.stack(means)  # (n_permutations, n_background, n_players, n_outputs)
    variance = found.var(axis=0, ddof=1) / n_permutations
    return Shapley(found.mean(axis=(0, 1)), np.sqrt(variance.sum(axis=0)) / n_background)


def _switch(game: Game, orders: Codes) -> Floats:
    """Return the changes as the players switch in these orders, (n_background, n_players, n_outputs)."""
    n_background, n_players = orders.shape
    place = np.argsort(orders, axis=1)  # of each player in the order
    switched = place[:, None, :] < np.arange(n_players + 1)[None, :, None]
    rows = np.repeat(np.arange(n_background), n_players + 1)
    value = _evaluate(game, switched.reshape(-1, n_players), rows).reshape(n_background, n_players + 1, -1)
    steps = np.diff(value, axis=1)
    return np.take_along_axis(steps, place[:, :, None], axis=1)


def _evaluate(game: Game, switched: Marks, rows: Codes) -> Floats:
    starts = range(0, len(rows), MAX_ROWS)
    return np.concatenate([game(switched[i : i + MAX_ROWS], rows[i : i + MAX_ROWS]) for i in starts])
