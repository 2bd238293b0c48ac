"""Stage 1: tables as numbers and codes, and back.

`columns.py` reads tables as they are given, `features.py` and `classes.py` remember what `fit` saw of them, `rows.py`
has what learning starts from. Every complaint about input comes from here.
"""

from pmdc.table.classes import ClassTable
from pmdc.table.features import Features, FeatureTable

__all__ = ["ClassTable", "FeatureTable", "Features"]
