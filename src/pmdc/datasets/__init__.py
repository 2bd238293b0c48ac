"""Tables to learn from: benchmark tables, a real survey that needs no download, and tables from a known network.

Each table is a `sklearn.utils.Bunch` with ``X``, ``Y`` (pandas DataFrames) and ``DESCR``. They need pandas and
statsmodels, the extra ``pmdc[data]``.
"""

from pmdc.datasets.benchmark import available, load
from pmdc.datasets.election import load_election
from pmdc.datasets.network import TrueNetwork, make_network

__all__ = ["TrueNetwork", "available", "load", "load_election", "make_network"]
