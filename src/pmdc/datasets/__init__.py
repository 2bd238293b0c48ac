"""Tables to learn from: the benchmark, a real survey that needs no download, and tables whose truth is known.

Each table is a `sklearn.utils.Bunch` with ``X``, ``Y`` (pandas DataFrames) and ``DESCR``. pandas and
statsmodels are the extra ``pmdc[data]``: they are imported when a table is asked for.
"""

from pmdc.datasets.benchmark import available, load
from pmdc.datasets.election import load_election
from pmdc.datasets.network import TrueNetwork, make_network

__all__ = ["TrueNetwork", "available", "load", "load_election", "make_network"]
