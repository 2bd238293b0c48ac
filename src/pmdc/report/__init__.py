"""Drawings of what was learned."""

from pmdc.report.graph import draw_graph

__all__ = ["draw_graph"]
