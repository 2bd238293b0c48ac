"""The package as a whole: what an import costs, and the demo."""

import subprocess
import sys

import pytest

import pmdc
from pmdc.demo import main


def test_public_names():
    names = [
        "BinaryRelevance",
        "ChainEnsemble",
        "ClassPowerset",
        "ClassifierChain",
        "GBNC",
        "__version__",
        "load",
        "save",
    ]
    assert sorted(pmdc.__all__) == names


def test_import_brings_no_heavy_module():
    program = """
import sys
import sklearn.linear_model, sklearn.model_selection
before = set(sys.modules)
import pmdc
[getattr(pmdc, name) for name in pmdc.__all__]
heavy = {"numba", "pyscipopt", "networkx", "matplotlib", "statsmodels", "polars"} & (set(sys.modules) - before)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names_and_modules_come_when_they_are_asked_for():
    program = """
import sys
import pmdc
assert not {"sklearn", "numpy"} & set(sys.modules)
assert {"GBNC", "save", "metrics", "learners"} <= set(dir(pmdc))
assert pmdc.metrics.subset_accuracy and pmdc.learners.NaiveBayes
from pmdc import *
import pickle
assert pickle.loads(pickle.dumps(GBNC(max_parents=1))).max_parents == 1
assert not hasattr(pmdc, "nothing")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_demo_prints_the_graph_and_the_table_and_draws(tmp_path, capsys):
    main(["--out", str(tmp_path), "--folds", "2"])
    told = capsys.readouterr().out
    for words in ("vote", "depends on", "binary relevance", "classifier chain", "class powerset", "joint log-loss"):
        assert words in told
    assert (tmp_path / "graph.png").stat().st_size > 5_000
    with pytest.raises(SystemExit):
        main(["--folds", "many"])
