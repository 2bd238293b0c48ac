"""Rows grouped by configuration, against plain dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmdc.learners.partition import Partition


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
    assert partition.configurations.find(later)[:, 0].tolist() == expected
    weights = rng.random(30)
    np.testing.assert_allclose(
        partition.weights(weights), [weights[partition.part == p].sum() for p in range(partition.n_parts)]
    )


def test_too_many_configurations_to_number():
    with pytest.raises(ValueError, match="configurations.*max_parents"):
        Partition(np.zeros((2, 4), dtype=int), (0, 1, 2, 3), [10**6] * 4)


@given(st.integers(0, 2**32 - 1))
def test_free_parents_run_through_their_configurations(seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 2, 4)
    codes = np.column_stack([rng.integers(0, size, 12) for size in sizes])
    parents = tuple(sorted(rng.choice(4, rng.integers(0, 5), replace=False).tolist()))
    free = tuple(p for p in parents if rng.random() < 0.5)
    found = Partition(codes, parents, sizes).configurations
    later = np.column_stack([rng.integers(-1, size, 9) for size in sizes])
    answer = found.find(later, free)
    fewer = tuple(p for p in parents if rng.random() < 0.5)
    columns = found.columns(fewer, free)
    every = list(np.ndindex(*[sizes[p] for p in free]))
    shorter = list(np.ndindex(*[sizes[p] for p in free if p in fewer]))
    assert answer.shape == (9, len(every))
    for number, configuration in enumerate(every):
        asked = later.copy()
        asked[:, free] = configuration
        assert answer[:, number].tolist() == found.find(asked)[:, 0].tolist()
        assert shorter[columns[number]] == tuple(v for p, v in zip(free, configuration, strict=True) if p in fewer)


@given(st.integers(0, 2**32 - 1))
def test_each_part_lies_in_a_coarser_one(seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 2, 4)
    codes = np.column_stack([rng.integers(0, size, 20) for size in sizes])
    parents = tuple(sorted(rng.choice(4, rng.integers(0, 5), replace=False).tolist()))
    some = tuple(p for p in parents if rng.random() < 0.5)
    fine, coarse = Partition(codes, parents, sizes), Partition(codes, some, sizes)
    within = fine.configurations.within(coarse.configurations)
    assert within[fine.part].tolist() == coarse.part.tolist()
