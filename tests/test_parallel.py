"""Workers: progress, and what is left of them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pmdc import GBNC
from pmdc._support import parallel
from pmdc.datasets import make_network


def test_progress_tells_counts_and_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(parallel, "_EVERY", 0.0)
    data = make_network(60, n_class_variables=6, random_state=0)
    GBNC(verbose=1).fit(data.X, data.Y)
    told = capsys.readouterr().err
    assert "tasks done, about 0 s left" in told
    assert "sets of class variables scored" in told
    GBNC().fit(data.X, data.Y)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_interrupted_fit_leaves_no_worker_behind():
    program = """
from pmdc import GBNC
from pmdc.datasets import make_network
data = make_network(4000, n_class_variables=10, n_continuous=40, n_discrete=0, random_state=0)
GBNC(max_parents=1, n_jobs=2).fit(data.X[:50], data.Y[:50])
print("ready", flush=True)
GBNC(n_jobs=2).fit(data.X, data.Y)
"""
    fit = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )

    def members():
        """Processes of the session that the fit began."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == fit.pid and fields[0] != "Z":
                found.append(stat.parent.name)
        return found

    assert fit.stdout.readline() == b"ready\n"
    time.sleep(1)
    assert len(members()) > 1
    os.kill(fit.pid, signal.SIGINT)
    assert fit.wait(60) != 0
    fit.stdout.close()
    for _ in range(100):
        if not members():
            break
        time.sleep(0.1)
    assert members() == []
