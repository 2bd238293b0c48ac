"""Sets of up to 64 members in one word, and random numbers that are the same on every machine; for compiled kernels."""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Words
from pmdc._support.compiled import compiled


@compiled()
def count_bits(x: np.uint64) -> int:
    """Return the number of members."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    x = x + (x >> np.uint64(8))
    x = x + (x >> np.uint64(16))
    x = x + (x >> np.uint64(32))
    return int(np.int64(x & np.uint64(127)))


@compiled()
def lowest_bit(x: np.uint64) -> np.uint64:
    """Return the set with the first member alone; `x` must not be empty."""
    return x & (~x + np.uint64(1))


@compiled()
def position(bit: np.uint64) -> int:
    """Return the only member."""
    return count_bits(bit - np.uint64(1))


@compiled()
def single(member: int) -> np.uint64:
    """Return the set with this member alone."""
    return np.uint64(1) << np.uint64(member)


@compiled()
def random_below(state: Words, below: int) -> int:
    """Return the next integer of a xorshift generator from 0 to `below` - 1."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return int(np.int64(x >> np.uint64(33)) % below)


@compiled()
def random_unit(state: Words) -> float:
    """Return a random number above 0 and below 1."""
    return (random_below(state, 1 << 30) + 0.5) / (1 << 30)
