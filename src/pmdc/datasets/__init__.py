"""Tables to learn from: the benchmark, a real survey that needs no download, and tables whose truth is known.

Everything here returns a `sklearn.utils.Bunch` with ``X``, ``Y`` (pandas DataFrames) and ``DESCR``. Importing
this package imports neither pandas nor statsmodels: they are the extra ``pmdc[data]``.
"""

from pmdc.datasets.benchmark import available, load
from pmdc.datasets.election import load_election
from pmdc.datasets.network import TrueNetwork, make_network

__all__ = ["TrueNetwork", "available", "load", "load_election", "make_network"]
