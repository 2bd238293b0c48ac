"""Reports that several tests read: of plain and of hostile names."""

import numpy as np
import pytest

from pmdc import GBNC
from pmdc.datasets import make_network
from report_page import HOSTILE, report


@pytest.fixture(scope="session")
def data():
    return make_network(320, n_class_variables=3, n_discrete=1, random_state=1)


@pytest.fixture(scope="session")
def model(data):
    return GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])


@pytest.fixture(scope="session")
def page(model, data, tmp_path_factory):
    return report(model, data.X[200:], data.Y[200:], tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A report in which all names and states are hostile, with gaps everywhere."""
    data = make_network(320, n_class_variables=3, n_continuous=3, n_discrete=2, random_state=1)
    X, Y = data.X.copy(), data.Y.astype(str).set_axis(HOSTILE[:3], axis=1)
    X.columns = HOSTILE[4:9]
    X[HOSTILE[7]] = X[HOSTILE[7]].astype(str).map(lambda value: HOSTILE[0] + value)
    Y = Y.apply(lambda column: column.map(lambda state: HOSTILE["abc".index(state)] + state))
    random = np.random.default_rng(0)
    Y = Y.mask(random.random(Y.shape) < 0.05)
    X[HOSTILE[4]] = X[HOSTILE[4]].mask(random.random(len(X)) < 0.1)
    model = GBNC(experts=None, max_parents=1).fit(X[:200], Y[:200])
    folder = tmp_path_factory.mktemp("hostile")
    return report(model, X[200:], Y[200:], folder, title=HOSTILE[0], card=folder / "card.md"), folder
