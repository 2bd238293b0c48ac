"""Where the benchmark tables are, for the tests that need them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the benchmark tables; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("PMDC_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not all((folder / name / "data.csv.gz").is_file() for name in ("thyroid", "waterquality")):
        pytest.skip("the benchmark tables are absent: set PMDC_DATA to their folder")
    return folder
