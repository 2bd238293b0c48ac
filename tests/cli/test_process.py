"""The command line as a process: real files, pipes, interruption."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import pmdc
from small_survey import FIT, survey


def test_from_a_table_to_predictions_and_back(process, tmp_path):
    (tmp_path / "table.csv").write_text(survey())
    (tmp_path / "new.csv").write_text(survey(30, seed=1))
    done = process("fit", "table.csv", *FIT, "-o", "model.skops", "--test-size", "0.25")
    assert done.code == 0, done.err
    assert done.err == ""
    for words in ("class variable", "site", "3 values", "Losses on 30 held-out rows", "subset 0/1", "depends on"):
        assert words in done.out
    assert "The model, fitted on all 120 rows, was written to model.skops." in done.out
    widths = [len(line) for line in done.out.splitlines() if not line.endswith((":", "."))]
    assert max(widths) <= 110, "tables keep to the width; sentences may run over"
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "new.csv", "model.skops"}

    done = process("predict", "model.skops", "new.csv", "--loss", "subset", "--proba", "-o", "out.csv")
    assert done.code == 0
    assert done.out == ""
    assert done.err.count("class variables 'mood', 'works' in new.csv are not used") == 1
    found = pd.read_csv(tmp_path / "out.csv")
    model = pmdc.load(tmp_path / "model.skops")
    table = pd.read_csv(tmp_path / "new.csv", dtype={"site": str})
    X = table[["age", "income", "site", "colour"]]
    pd.testing.assert_frame_equal(
        found[["mood", "works"]].astype(object), model.predict(X, loss="subset").astype(object), check_dtype=False
    )
    proba = model.predict_proba(X)
    assert (found["P(mood=so so)"].to_numpy() == proba[0][:, list(model.classes_[0]).index("so so")]).all()
    assert (found["P(works=1)"].to_numpy() == proba[1][:, 1]).all()


def test_pipes_in_and_out_and_a_reader_that_goes_away(folder, tmp_path):
    (tmp_path / "many.csv").write_text(survey(3000, seed=2))  # its predictions are more than a pipe holds
    command = f"{sys.executable} -m pmdc predict model.skops - --proba --quiet"
    shell = f"set -o pipefail; cat {tmp_path}/many.csv | {command} | head -1 | cut -d, -f1-3"
    done = subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "mood,works,P(mood=bad)\n", "")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize(("jobs", "number"), [("1", signal.SIGINT), ("2", signal.SIGINT), ("2", signal.SIGTERM)])
def test_interruption_leaves_no_file_and_no_worker(tmp_path, jobs, number):
    (tmp_path / "table.csv").write_text(survey(400))
    command = [sys.executable, "-m", "pmdc", "fit", "table.csv", *FIT[:2], "--estimator", "forest", "--jobs", jobs]
    process = subprocess.Popen(
        [*command, "-o", "model.skops"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:  # the kinds of columns are shown when the work starts
        if line.startswith("works"):
            break
    time.sleep(1.0)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does it: to everyone
    else:
        os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err.endswith("pmdc fit: interrupted.\n")  # workers that are still starting may print a traceback
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    deadline = time.monotonic() + 20
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not living(process.pid)


def living(group):
    """The processes of a group that still run."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,pid="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [pid for pgid, state, pid in rows if pgid == str(group) and not state.startswith("Z")]


def run_program(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)


COMMAND = """
import atexit, ctypes, os, signal, sys, time
from pmdc.cli.app import app
from pmdc.__main__ import main
def wait():
    for _ in range(300): time.sleep(0.1)
def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number); wait()
sys.argv = ["pmdc", "work"]
@app.command()
def work():
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "place",
    [
        "interrupt({0})",
        "ctypes.CFUNCTYPE(None)(lambda: interrupt({0}))(); wait()",  # Python reports exceptions here, and goes on
        "try: interrupt({0})\n    except KeyboardInterrupt: pass",  # other libraries may do this
    ],
)
def test_a_signal_decides_the_exit_code(number, place):
    done = run_program(f"{COMMAND}    {place.format(int(number))}\nmain()")
    assert (done.returncode, done.stderr) == (128 + number, "pmdc work: interrupted.\n")


def test_the_second_ctrl_c_ends_the_process_at_once():
    done = run_program(f"{COMMAND}    try: interrupt()\n    finally: interrupt()\nmain()")
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_at_the_very_end_prints_no_traceback():
    done = run_program(f"{COMMAND}    atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\nmain()")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_ignored_stays_ignored():
    program = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from pmdc.cli import running
from pmdc.cli.app import app
@app.command()
def wait(): os.kill(os.getpid(), signal.SIGINT)
assert running.main(["wait"]) == 0
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_streams_that_take_nothing_and_names_that_are_no_text(folder, tmp_path):
    pmdc = f"{sys.executable} -m pmdc"
    for command, code, words in [
        (f"{pmdc} show model.skops --json > /dev/full", 1, b"No space left on device\n"),
        (f"{pmdc} fit none.csv -c a -o {tmp_path}/m.skops 2>&-", 2, b""),
        (f"{pmdc} --version >&-", 0, b""),
        (f"{pmdc} fit $'n\\xff.csv' -c a -o {tmp_path}/m.skops", 2, b"there is no file n\xff.csv"),
    ]:
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (code, b"")
        assert words in done.stderr
        assert done.stderr.count(b"\n") <= 1


def test_help_is_a_tour_that_comes_at_once(process):
    done = process("--help")
    assert done.code == 0
    places = [done.out.index(f"│ {name} ") for name in ("fit", "show", "predict", "evaluate", "demo", "benchmark")]
    assert places == sorted(places)
    assert "pmdc fit survey.csv --classes vote,party -o survey.skops" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert not [line for line in process("fit", "--help").out.splitlines() if "<bool>" in line and "--help" not in line]
    program = """
import sys
from pmdc.cli import main
assert main(["fit", "--help"]) == 0
assert not {"numba", "sklearn", "pandas", "scipy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_wrong_usage(process):
    done = process("fit", "table.csv")
    assert done.code == 2
    assert done.out == ""
    assert done.err == "pmdc fit: Missing option '--classes' / '-c'. See pmdc fit --help.\n"
    assert "no file größe.csv" in process("fit", "größe.csv", "-c", "a", "-o", "m.skops").err
    assert process().out == process("--help").out
    assert process("--version").out == f"pmdc {pmdc.__version__}\n"
