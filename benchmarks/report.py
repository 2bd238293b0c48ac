"""CPU time and size of reports: 100 to 100,000 rows, 5 to 60 class variables.

python benchmarks/report.py [--rows 100,1000] [--class-variables 5,20] [--experts]

Models are fitted to 500 rows of `make_network`, with ``experts=None`` unless --experts is given, one parent at most.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

from reporting import peak_memory

from pmdc import GBNC
from pmdc.datasets import make_network
from pmdc.report import write_report

N_TRAINING = 500


def measure(n_class_variables, counts, experts):
    """Yield a line of the table for each number of rows."""
    data = make_network(N_TRAINING + max(counts), n_class_variables=n_class_variables, random_state=0)
    model = GBNC(experts=experts, max_parents=1, conditioning="partition")
    model.fit(data.X[:N_TRAINING], data.Y[:N_TRAINING])
    for count in counts:
        rows = slice(N_TRAINING, N_TRAINING + count)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            start = time.process_time()
            write_report(model, data.X[rows], data.Y[rows], path)
            seconds, size = time.process_time() - start, path.stat().st_size / 1e6
        yield f"| {n_class_variables} | {count:,} | {seconds:.1f} | {size:.2f} | {peak_memory():.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="100,1000,10000,100000")
    parser.add_argument("--class-variables", default="5,20,60")
    parser.add_argument("--experts", action="store_true", help="models with the default experts")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    small = make_network(200, n_class_variables=2, random_state=0)
    write_report(GBNC(experts=None).fit(small.X, small.Y), small.X, small.Y, Path(tempfile.mkdtemp()) / "first.html")
    print(
        "| class variables | rows | CPU, s | file, MB | peak memory so far, MB |\n| ---: | ---: | ---: | ---: | ---: |"
    )
    for number in map(int, options.class_variables.split(",")):
        counts = [int(count) for count in options.rows.split(",")]
        for line in measure(number, counts, "auto" if options.experts else None):
            print(line, flush=True)


if __name__ == "__main__":
    main()
