import re

import numpy as np
import pytest

from pmdc.inference import JointDistribution
from pmdc.table.classes import ClassTable
from problems import States, random_tables


@pytest.fixture
def distribution():
    rng = np.random.default_rng(0)
    sizes, parents = [2, 3, 2], [(1,), (), (0, 1)]
    return JointDistribution(States(sizes), parents, random_tables(rng, sizes, parents, 2))


def read_bif(text):
    """Variables with their states, and the probabilities of each table by the states of the parents."""
    variables = dict(re.findall(r"variable (\w+) \{\s*type discrete \[ \d+ \] \{ ([^}]*) \};", text))
    tables = {}
    for name, parents, body in re.findall(r"probability \( (\w+)(?: \| ([^)]*))? \) \{([^}]*)\}", text):
        rows = re.findall(r"\(([^)]*)\) ([^;]*);|table ([^;]*);", body)
        tables[name] = (
            parents.split(", ") if parents else [],
            {key: [float(v) for v in (values or alone).split(", ")] for key, values, alone in rows},
        )
    return {name: states.split(", ") for name, states in variables.items()}, tables


def test_bif_holds_the_tables(distribution):
    variables, tables = read_bif(distribution.to_bif(1))
    assert variables == {"A": ["s0", "s1"], "B": ["s0", "s1", "s2"], "C": ["s0", "s1"]}
    assert tables["C"][0] == ["A", "B"]
    np.testing.assert_allclose(tables["C"][1]["s1, s2"], np.exp(distribution.log_tables[2][1, 1, 2]), rtol=1e-12)
    np.testing.assert_allclose(tables["B"][1][""], np.exp(distribution.log_tables[1][1]), rtol=1e-12)


def test_bif_of_names_that_it_does_not_know():
    table = ClassTable.fit(np.array([["very bad", "very-bad"], ["", "1.5"]], dtype=object))
    table.names = ["the mood", "the_mood"]
    text = JointDistribution(table, [(), ()], [np.log([[0.5, 0.5]])] * 2).to_bif()
    variables, _ = read_bif(text)
    assert list(variables) == ["the_mood", "the_mood_2"]
    assert variables["the_mood"] == ["_", "very_bad"]
    assert variables["the_mood_2"] == ["1_5", "very_bad"]


def test_pgmpy_answers_the_same(distribution):
    pytest.importorskip("pgmpy")
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    network = distribution.to_pgmpy(1)
    assert network.check_model()
    bif = BIFReader(string=distribution.to_bif(1)).get_model()
    for name, marginal in zip("ABC", distribution.marginals(), strict=True):
        for model in (network, bif):
            found = VariableElimination(model).query([name], show_progress=False)
            np.testing.assert_allclose(
                [found.get_value(**{name: state}) for state in distribution.class_table.states["ABC".index(name)]],
                marginal[1],
                rtol=1e-9,
            )


def test_what_cannot_be_exported(distribution):
    with pytest.raises(ValueError, match="row=2, but there are 2 rows"):
        distribution.to_bif(2)
    with pytest.raises(ValueError, match="evidence has no conditional tables.*before `given`"):
        distribution.given({"A": "s0"}).to_bif()
