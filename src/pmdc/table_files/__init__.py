"""Read and write table files: CSV, TSV, Parquet and Excel.

The cells of a text file have no types. `read_table` stores each column as its distinct values and a code for each row.
`Cells` tells which type they look like (numbers, booleans, text) and which are missing. A new
model takes the type that the values look like; a fitted model reads them in the type that it was fitted with.

Errors are `TableFileError`s that name the file, the column, the value and its line.
"""

from pmdc.table_files.columns import MISSING_WORDS, Cells, Format, TableFile, TableFileError
from pmdc.table_files.dates import Order
from pmdc.table_files.reading import EXCEL, STANDARD_STREAM, SUFFIXES, read_table
from pmdc.table_files.writing import check_output, write_table

__all__ = [
    "EXCEL",
    "MISSING_WORDS",
    "STANDARD_STREAM",
    "SUFFIXES",
    "Cells",
    "Format",
    "Order",
    "TableFile",
    "TableFileError",
    "check_output",
    "read_table",
    "write_table",
]
