"""How loops are compiled.

Modules of compiled loops are imported by those who call them, when they do: importing numba takes longer than importing
all the rest.
"""

from __future__ import annotations

from functools import partial

from numba import njit

SUMS = {"reassoc", "contract", "nsz"}
"""What the compiler may do to sums so that they run in vector registers. Infinities and NaN keep their meaning."""

compiled = partial(njit, cache=True, error_model="numpy")
"""Compiled once and kept; dividing by zero gives infinity or NaN, as in numpy, and costs no check."""
