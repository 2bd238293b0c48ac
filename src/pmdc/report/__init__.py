"""Reports and pictures of models and distributions, and graph files for other tools.

`write_report` writes a report about a fitted model as one HTML file.

`draw_graph` draws a graph, `consensus_graph` combines the graphs of several models, `resample_graph` fits a model to
resampled rows and combines the graphs, `feature_graph` adds the features that matter to the graph of a model,
`write_graph` writes a graph to a file, and `plot_calibration` draws a calibration curve. Models and distributions have
methods for their own pictures:
``plot`` of `GBNC`, ``plot`` and ``plot_table`` of the result of `predict_joint`. Pictures need the extra "plot".
"""

from pmdc.report.calibration import plot_calibration
from pmdc.report.consensus import consensus_graph, resample_graph
from pmdc.report.features import feature_graph
from pmdc.report.files import write_graph
from pmdc.report.graph import draw_graph
from pmdc.report.page.document import write_report

__all__ = [
    "consensus_graph",
    "draw_graph",
    "feature_graph",
    "plot_calibration",
    "resample_graph",
    "write_graph",
    "write_report",
]
