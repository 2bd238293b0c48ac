"""The folder of the benchmark tables, the hypothesis profiles, and signals.

The default profile generates the same examples in every run, without a deadline, so that the result depends neither on
chance nor on the load of the machine. ``HYPOTHESIS_PROFILE=explore`` (``make explore``) generates new examples.
"""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# What runs in the background of a shell or under nohup ignores these, and so would the processes that tests start.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the benchmark tables; tests that need it are skipped if it is absent."""
    folder = Path(os.environ.get("PMDC_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not all((folder / name / "data.csv.gz").is_file() for name in ("thyroid", "waterquality")):
        pytest.skip("the benchmark tables are absent: set PMDC_DATA to their folder")
    return folder
