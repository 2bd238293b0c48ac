"""Shapley values are those of the definition; sampled ones are within their standard errors."""

import itertools

import numpy as np
import pytest

from pmdc.explain import shapley
from pmdc.explain.shapley import shapley_values

N_PLAYERS, N_BACKGROUND = 5, 7


def random_game(seed, n_players=N_PLAYERS):
    """A function of the row with all interactions of three players; one of them is never used."""
    rng = np.random.default_rng(seed)
    one, others = rng.normal(size=n_players), rng.normal(size=(N_BACKGROUND, n_players))
    weights = rng.normal(size=(n_players, n_players, n_players, 2))
    weights[1], weights[:, 1], weights[:, :, 1] = 0.0, 0.0, 0.0

    def game(switched, rows):
        values = np.where(switched, one, others[rows])
        return np.tanh(np.einsum("ni,nj,nk,ijko->no", values, values, values, weights))

    return game


def by_definition(game, n_players):
    """The mean over all orders of what each player changes, from each background row."""
    total = np.zeros((n_players, 2))
    orders = list(itertools.permutations(range(n_players)))
    rows = np.arange(N_BACKGROUND)
    for order in orders:
        switched = np.zeros((N_BACKGROUND, n_players), dtype=bool)
        before = game(switched, rows)
        for player in order:
            switched[:, player] = True
            after = game(switched, rows)
            total[player] += (after - before).mean(axis=0)
            before = after
    return total / len(orders)


@pytest.mark.parametrize("seed", range(3))
def test_few_players_by_the_definition(seed):
    game = random_game(seed)
    found = shapley_values(game, N_PLAYERS, N_BACKGROUND, 2, np.random.RandomState(0))
    assert found.values == pytest.approx(by_definition(game, N_PLAYERS), abs=1e-12)
    assert (found.standard_errors == 0).all()
    assert (found.values[1] == 0).all()


def test_sampled_values_are_within_three_standard_errors(monkeypatch):
    monkeypatch.setattr(shapley, "MAX_ENUMERATED", 0)
    z = []
    for seed in range(6):
        game = random_game(seed)
        exact = by_definition(game, N_PLAYERS)
        found = shapley_values(game, N_PLAYERS, N_BACKGROUND, 20, np.random.RandomState(seed))
        used = [0, 2, 3, 4]
        z.append((found.values[used] - exact[used]) / found.standard_errors[used])
        assert (found.values[1] == 0).all()
        assert (found.standard_errors[1] == 0).all()
        assert found.values.sum(axis=0) == pytest.approx(exact.sum(axis=0), abs=1e-12)
    assert np.abs(z).max() < 3.5  # 48 values
    assert 0.5 < np.std(z) < 1.5


def test_sums_over_players_are_exact(monkeypatch):
    monkeypatch.setattr(shapley, "MAX_ENUMERATED", 0)
    rng = np.random.default_rng(0)
    one, others, slope = rng.normal(size=40), rng.normal(size=(N_BACKGROUND, 40)), rng.normal(size=(40, 1))
    found = shapley_values(
        lambda switched, rows: np.where(switched, one, others[rows]) @ slope,
        40,
        N_BACKGROUND,
        2,
        np.random.RandomState(0),
    )
    assert found.values[:, 0] == pytest.approx(slope[:, 0] * (one - others.mean(axis=0)), abs=1e-12)
    assert found.standard_errors.max() < 1e-12


def test_blocks_of_rows_change_nothing(monkeypatch):
    game = random_game(4)
    whole = shapley_values(game, N_PLAYERS, N_BACKGROUND, 2, np.random.RandomState(0))
    monkeypatch.setattr(shapley, "MAX_ROWS", 3)
    assert shapley_values(game, N_PLAYERS, N_BACKGROUND, 2, np.random.RandomState(0)).values == pytest.approx(
        whole.values
    )
