"""Fitted models in files, without code in them: `save` and `load`.

A file is a zip archive. ``pmdc.json`` has the version of the format, those of the libraries, and the model as plain
data (`plain.py`): lists, numbers and text, with short names of our own for types. What is not plain goes through
`skops.io`: the numbers, pooled into a few arrays, and objects of other libraries such as scikit-learn's estimators.

So no type of this library can be named in the part that skops builds objects from; what can be named in the plain part
is listed in `plain.py`, and is made from its fields alone. And modules may be moved and classes renamed without a word
about it in the files, which skops would write with the path of every class.
"""

from pmdc.saving.files import load, save

__all__ = ["load", "save"]
