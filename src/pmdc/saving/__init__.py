"""Fitted models in files, without code in them: `save` and `load`.

A file is a zip archive. ``pmdc.json`` holds the version of the format, those of the libraries, and the model as plain
data (`plain.py`): lists, numbers and strings, with short names of our own for types. The rest is stored by `skops.io`:
the numbers, pooled into a few arrays, and objects of other libraries such as scikit-learn estimators.

skops alone would write the import path of every class, so that no module could ever be moved, and would have to trust
all of them. The plain part can only name the types that `plain.py` lists; the skops part only those that skops knows to
be safe and the few of `trust.py`. All are built from their fields alone.
"""

from pmdc.saving.files import load, save

__all__ = ["load", "save"]
