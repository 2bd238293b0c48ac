"""How long the first fit and the first prediction of an installation take, and how much of it is compilation.

Each program runs in a new process, first with an empty cache of compiled kernels and then again with the cache that the
first run has left; the difference in CPU time is what compilation costs.

    python benchmarks/first_use.py
    python benchmarks/first_use.py --kernels  # also what each kernel costs
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

START = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
def cpu():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
kernels = {}
if __KERNELS__:
    from numba.core import event
    class Listener(event.Listener):
        def __init__(self): self.stack = []
        def on_start(self, e): self.stack.append([time.process_time(), 0.0])
        def on_end(self, e):
            start, nested = self.stack.pop()
            took = time.process_time() - start
            if self.stack: self.stack[-1][1] += took
            name = e.data["dispatcher"].py_func.__module__ + "." + e.data["dispatcher"].__name__
            own, count = kernels.get(name, (0.0, 0))
            kernels[name] = own + took - nested, count + 1
    event.register("numba:compile", Listener())
start = cpu()
"""
END = """
print(json.dumps({"cpu": cpu() - start, "kernels": kernels}))
"""
PROGRAMS = {
    "GBNC: fit and predict, survey": """
from pmdc import GBNC
from pmdc.datasets import load_election
survey = load_election(levels=3)
model = GBNC().fit(survey.X, survey.Y)
model.predict(survey.X)
""",
    "the same, and all questions of the README": """
from pmdc import GBNC
from pmdc.datasets import load_election
survey = load_election(levels=3)
model = GBNC().fit(survey.X, survey.Y)
model.predict(survey.X); model.predict(survey.X, loss="subset"); model.predict_proba(survey.X)
joint = model.predict_joint(survey.X)
joint.top(3), joint.given({"party": "Democrat"}).marginals()
""",
    "GBNC(NaiveBayes()): fit and predict, survey": """
from pmdc import GBNC
from pmdc.datasets import load_election
from pmdc.learners import NaiveBayes
survey = load_election(levels=3)
GBNC(NaiveBayes()).fit(survey.X, survey.Y).predict(survey.X)
""",
}


def run(program: str, cache: str, kernels: bool) -> dict:
    """Run a program in a new process with a given cache of compiled kernels."""
    text = START.replace("__KERNELS__", str(kernels)) + program + END
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", action="store_true", help="list the kernels by CPU seconds of compilation")
    kernels = parser.parse_args().kernels
    print(f"{'program':46s} {'first':>7s} {'second':>7s} {'compiling':>10s} {'signatures':>11s}   (CPU seconds)")
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as cache:
            first = run(program, cache, kernels)
            signatures = len(list(Path(cache).rglob("*.nbc")))
            second = run(program, cache, False)
        compiling = first["cpu"] - second["cpu"]
        print(f"{name:46s} {first['cpu']:7.1f} {second['cpu']:7.1f} {compiling:10.1f} {signatures:11d}", flush=True)
        for kernel, (seconds, count) in sorted(first["kernels"].items(), key=lambda item: -item[1][0]):
            print(f"    {seconds:6.2f} s  {count} signature(s)  {kernel}")


if __name__ == "__main__":
    main()
