"""The optional dependencies of the datasets, imported when a table is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str) -> Any:
    """Import a module of the extra ``data``, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f'pmdc.datasets needs {package}, which could not be imported: pip install "pmdc[data]"'
        ) from error
