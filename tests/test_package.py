"""The package as a whole: what an import costs, its metadata, and the demo."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

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


PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(extra):
    """The names of the packages of an extra, and of the extras that it includes."""
    names = set()
    for requirement in PROJECT["optional-dependencies"][extra]:
        if included := re.fullmatch(r"pmdc\[(.*)\]", requirement):
            names |= {name for one in included[1].split(",") for name in requirements(one)}
        else:
            names.add(re.match(r"[\w-]+", requirement)[0].lower())
    return names


def test_the_solver_is_an_extra():
    assert not any("pyscipopt" in requirement.lower() for requirement in PROJECT["dependencies"])
    assert requirements("ip") == {"pyscipopt"}
    for extra in ("cli", "demo", "test", "benchmark", "coverage"):
        assert "pyscipopt" in requirements(extra), extra
    assert "pyscipopt" not in requirements("data") | requirements("save")


def test_the_citation_has_the_version():
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {pmdc.__version__}\n" in citation


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
