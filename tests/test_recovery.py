"""With many rows, the structure that made the data comes back."""

import numpy as np
import pytest

from pmdc import GBNC
from pmdc.datasets import make_network
from pmdc.learners import Logistic


def skeleton(parents, classes):
    """The edges between class variables, whichever way they point: directions need not be identifiable."""
    return {frozenset((p, child)) for child, members in parents.items() for p in members if p in classes}


def f1(seed, n=20_000, **settings):
    data = make_network(n, n_class_variables=6, n_continuous=3, n_discrete=1, random_state=seed)
    model = GBNC(experts=None, max_parents=2, max_discrete_parents=1, **settings).fit(data.X, data.Y)
    truth = skeleton(data.truth.parents, set(data.Y))
    learned = skeleton(model.structure_.parents, set(data.Y))
    return 2 * len(truth & learned) / (len(truth) + len(learned))


# Twenty seeds in four parts, so that workers can share them; each part alone has to reach the mark.
@pytest.mark.parametrize("first", [0, 5, 10, 15])
def test_the_true_skeleton_is_recovered(first):
    paper = {"estimator": Logistic(), "criterion": "bic", "conditioning": "partition"}
    assert np.mean([f1(seed, **paper) for seed in range(first, first + 5)]) >= 0.95


def test_held_out_scores_recover_it_too():
    assert np.mean([f1(seed, n=5000) for seed in range(2)]) >= 0.95
