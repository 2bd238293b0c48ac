"""Stage 1: tables as numbers and codes, and back.

`columns.py` reads tables, `features.py` and `classes.py` store what `fit` has seen of them, `dates.py` and
`grouping.py` convert features, `rows.py` defines the input of learning. All errors about input tables are raised here.
"""

from pmdc.table.classes import ClassTable
from pmdc.table.features import Features, FeatureTable

__all__ = ["ClassTable", "FeatureTable", "Features"]
