"""The report about a fitted model: one HTML file, and a model card beside it.

`findings.py` measures, `sections.py`, `data.py`, `cases.py` and `repeat.py` turn what was found into sections, and
`document.py` puts them together and writes the file.
"""
