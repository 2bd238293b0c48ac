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


def test_the_demo_prints_what_the_readme_shows_and_draws(tmp_path, capsys, monkeypatch):
    """Apart from what was found, which may depend on the versions of other libraries."""
    monkeypatch.chdir(tmp_path)
    main([])
    told = capsys.readouterr()
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```\n(US election survey.*?)```", readme, flags=re.DOTALL)

    def frame(text):
        """The headings, and the table of losses without its numbers."""
        lines = [re.sub(r"[\d.]+", "#", line) for line in text.splitlines()]
        return [line.split() for line in lines if line.endswith(":") or line.count("±") == 3]

    assert frame(told.out) == frame(shown), "run python -m pmdc.demo and update README.md"
    assert len(frame(shown)) == 7
    assert shown.count("->") + shown.count("--") > 3
    assert (tmp_path / "out" / "graph.png").stat().st_size > 5_000
    phases = told.err.splitlines()
    assert phases[0] == "learning the network ..."
    assert "fitting and testing: class powerset ..." in phases
    assert len(phases) == len(set(phases))
    with pytest.raises(SystemExit):
        main(["--unknown"])
