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
heavy = {"numba", "pyscipopt", "networkx", "matplotlib", "statsmodels", "polars"} & (set(sys.modules) - before)
assert not heavy, heavy
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
