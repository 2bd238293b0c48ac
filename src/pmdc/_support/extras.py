"""Import of optional dependencies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_EXTRAS = {
    "pandas": "data",
    "statsmodels": "data",
    "scikit_posthocs": "benchmark",
    "rich": "cli",
    "pyarrow": "parquet",
    "openpyxl": "excel",
    "skops": "save",
    "matplotlib": "plot",
    "pgmpy": "peers",
    "pyscipopt": "ip",
    "fastapi": "explore",
    "uvicorn": "explore",
}


def require(module: str) -> Any:
    """Import a module of an extra; the ImportError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f'{package.replace("_", "-")} is needed but could not be imported: pip install "pmdc[{_EXTRAS[package]}]"'
        ) from error
