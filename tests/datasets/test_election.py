"""The election survey: its codes became the right states."""

import subprocess
import sys

import pandas as pd
import pytest
from statsmodels.datasets import anes96

from pmdc.datasets import load_election


def test_shape_and_types():
    survey = load_election()
    assert survey.X.shape == (944, 5)
    assert survey.Y.shape == (944, 5)
    discrete = [c for c in survey.X if isinstance(survey.X[c].dtype, pd.CategoricalDtype)]
    assert discrete == ["education"]
    assert survey.Y.apply(lambda column: len(column.cat.categories)).tolist() == [2, 7, 7, 7, 7]
    assert all(column.cat.ordered for _, column in survey.Y.items())
    assert not survey.X.isna().any(axis=None)
    assert not survey.Y.isna().any(axis=None)
    assert "public domain" in survey.DESCR


def test_states_are_those_of_the_codes():
    survey, raw = load_election(), anes96.load_pandas().data
    assert (survey.Y["vote"] == "Dole").tolist() == (raw["vote"] == 1).tolist()
    assert (survey.Y["party"] == "strong Democrat").tolist() == (raw["PID"] == 0).tolist()
    assert (survey.Y["party"] == "strong Republican").tolist() == (raw["PID"] == 6).tolist()
    for name, column in [("self", "selfLR"), ("clinton", "ClinLR"), ("dole", "DoleLR")]:
        assert (survey.Y[name] == "extremely liberal").tolist() == (raw[column] == 1).tolist()
        assert (survey.Y[name] == "moderate").tolist() == (raw[column] == 4).tolist()
        assert (survey.Y[name].cat.codes + 1).tolist() == raw[column].tolist()
    assert (survey.X["education"].cat.codes + 1).tolist() == raw["educ"].tolist()


def test_three_levels_draw_the_states_together():
    seven, three = load_election().Y, load_election(levels=3).Y
    assert three.apply(lambda column: len(column.cat.categories)).tolist() == [2, 3, 3, 3, 3]
    assert three["vote"].tolist() == seven["vote"].tolist()
    assert (three["party"] == "Republican").tolist() == (seven["party"] >= "weak Republican").tolist()
    for name in ("self", "clinton", "dole"):
        assert (three[name] == "liberal").tolist() == (seven[name] < "moderate").tolist()
    with pytest.raises(ValueError, match="levels=5"):
        load_election(levels=5)


def test_what_one_expects_of_the_answers():
    survey = load_election()
    republican = survey.Y["party"] >= "leaning Republican"
    assert (survey.Y["vote"][republican] == "Dole").mean() > 0.8
    assert (survey.Y["clinton"] < survey.Y["dole"]).mean() > 0.7


@pytest.mark.parametrize("absent", ["pandas", "statsmodels"])
def test_without_the_extra_the_message_says_how_to_install_it(absent):
    program = f"""
import sys
sys.modules[{absent!r}] = None
import pmdc.datasets, pmdc.report
try:
    pmdc.datasets.load_election()
except ImportError as error:
    assert {absent!r} in str(error) and 'pip install "pmdc[data]"' in str(error), error
else:
    raise AssertionError("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
