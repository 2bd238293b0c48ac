"""Rows grouped by configuration, against plain dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmdc.partition import Partition


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_parts_are_the_distinct_configurations(seed, n_parents):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, size=4)
    codes = rng.integers(0, sizes, size=(30, 4))
    parents = tuple(rng.choice(4, size=n_parents, replace=False).tolist())
    partition = Partition(codes, parents, sizes)
    seen = {}
    for row, part in zip(codes[:, parents].tolist(), partition.part.tolist(), strict=True):
        assert seen.setdefault(tuple(row), part) == part
    assert sorted(seen.values()) == list(range(partition.n_parts))
    later = rng.integers(-1, sizes, size=(50, 4))
    expected = [seen.get(tuple(row), -1) for row in later[:, parents].tolist()]
    assert partition.configurations.find(later).tolist() == expected
    weights = rng.random(30)
    np.testing.assert_allclose(
        partition.weights(weights), [weights[partition.part == p].sum() for p in range(partition.n_parts)]
    )


def test_too_many_configurations_to_number():
    with pytest.raises(ValueError, match="cannot be numbered; lower max_parents"):
        Partition(np.zeros((2, 4), dtype=int), (0, 1, 2, 3), [10**6] * 4)
