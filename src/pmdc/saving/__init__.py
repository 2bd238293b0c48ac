"""Fitted models in files, without code in them: `save` and `load`.

A file is a zip archive. ``pmdc.json`` has the version of the format, those of the libraries, and the model as plain
data (`plain.py`): lists, numbers and text, with short names of our own for types. What is not plain goes through
`skops.io`: the numbers, pooled into a few arrays, and objects of other libraries such as scikit-learn's estimators.

skops alone would write the path of every class, so that no module could be moved any more, and would have to trust all
of them. In the plain part a file can name what `plain.py` lists, and nothing else; in the part of skops, what skops
knows to be safe and the few types of `trust.py`. Either is made from its fields alone.
"""

from pmdc.saving.files import load, save

__all__ = ["load", "save"]
