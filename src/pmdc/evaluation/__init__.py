"""Compare methods over data sets: statistical tests and tables of results.

- Over data sets, from a table of losses: `ranks`, `average_ranks`, `friedman`, `nemenyi`, `conover`,
  `critical_difference`.
- One method against the others: `compare`, with `corrected_t_test` and `holm`.
- Tables in Markdown, LaTeX and HTML: `comparison_table`.

They need the extra ``benchmark``: ``pip install "pmdc[benchmark]"``.
"""

from pmdc.evaluation.statistics import (
    average_ranks,
    compare,
    conover,
    corrected_t_test,
    critical_difference,
    friedman,
    holm,
    nemenyi,
    ranks,
)
from pmdc.evaluation.tables import ComparisonTable, comparison_table

__all__ = [
    "ComparisonTable",
    "average_ranks",
    "compare",
    "comparison_table",
    "conover",
    "corrected_t_test",
    "critical_difference",
    "friedman",
    "holm",
    "nemenyi",
    "ranks",
]
