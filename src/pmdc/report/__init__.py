"""Pictures of what was learned, and files for other tools.

`draw_graph` draws a graph, `consensus_graph` makes one of several models, `write_graph` writes one to a file, and
`plot_calibration` shows whether probabilities are what they say. Models and distributions draw themselves: ``plot`` of
`GBNC`, ``plot`` and ``plot_table`` of what `predict_joint` returns. All pictures need the extra "plot".
"""

from pmdc.report.calibration import plot_calibration
from pmdc.report.consensus import consensus_graph
from pmdc.report.files import write_graph
from pmdc.report.graph import draw_graph

__all__ = ["consensus_graph", "draw_graph", "plot_calibration", "write_graph"]
