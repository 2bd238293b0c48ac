"""Table files: CSV, TSV, Parquet and Excel, read and written.

The cells of a text file have no types. `read_table` keeps every column as its distinct values and a code for each row;
`Cells` says what they look like (numbers, truth values, text) and what is missing, so that whoever reads can decide:
a new column by its own looks, a column that a model knows by what the model has seen.

Complaints are `TableFileError`s that name the file, the column, the value and its line.
"""

from pmdc.table_files.columns import MISSING_WORDS, Cells, Format, TableFile, TableFileError
from pmdc.table_files.reading import EXCEL, STANDARD_STREAM, SUFFIXES, read_table
from pmdc.table_files.writing import check_output, write_table

__all__ = [
    "EXCEL",
    "MISSING_WORDS",
    "STANDARD_STREAM",
    "SUFFIXES",
    "Cells",
    "Format",
    "TableFile",
    "TableFileError",
    "check_output",
    "read_table",
    "write_table",
]
