"""Requests made from the OpenAPI description: no failure, and every answer is as described."""

import datetime
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from pmdc import GBNC

pytest.importorskip("schemathesis")
pytest.importorskip("fastapi", reason='needs the extra "explore"')
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pmdc.explore.application import service
from pmdc.explore.explorer import explorer
from pmdc.explore.interface import Interface
from pmdc.explore.page.document import write_page
from pmdc.explore.table import Table

N_EXAMPLES = int(os.environ.get("PMDC_FUZZ", "60"))
"""Requests of each kind to each path; ``HYPOTHESIS_PROFILE=explore PMDC_FUZZ=5000`` for a long run of new ones."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def table_of_all_kinds(n=80):
    """Columns of all kinds, with gaps; states that are no strings; names that need care."""
    rng = np.random.RandomState(0)
    number = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "number": np.where(rng.rand(n) < 0.1, np.nan, number),
            "flag": rng.rand(n) < 0.5,
            'a "b" <c>': np.where(rng.rand(n) < 0.1, None, rng.choice(["a", 'b "<c>"', "ü"], n)),
            "grade": rng.randint(0, 3, n),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.randint(0, 500, n), "D"),
            "clock": [datetime.time(int(hour), 30) for hour in rng.randint(0, 24, n)],
        }
    )
    noise = rng.rand(n)
    Y = pd.DataFrame(
        {
            "count/of": (number > 0) * 2 + rng.randint(0, 2, n),
            "yes": (number > 0.5) ^ (noise < 0.1),
            "☃": np.where(noise < 0.3, "left", "right"),
        }
    )
    return X, Y


@pytest.fixture(scope="module")
def interface():
    X, Y = table_of_all_kinds()
    model = GBNC(experts=None, max_parents=1, discrete_features=["flag", 'a "b" <c>', "grade"]).fit(X, Y)
    return Interface(model, Table.of(model, X, Y, "table.csv"), max_rows=20)


@pytest.fixture(scope="module")
def apps(interface):
    interface.predict_table()
    alone = Interface(interface.model, max_rows=20)
    return {"service": service(alone), "explorer": explorer(interface, write_page)}


PATHS = {
    "service": ["POST /predict", "POST /explain", "POST /ask", "GET /schema", "GET /health"],
    "explorer": [
        "POST /predict", "POST /explain", "POST /ask", "GET /schema", "GET /health", "POST /rows", "GET /rows/{index}",
        "GET /graph", "POST /export",
    ],
}  # fmt: skip


def operations(app):
    description = schemathesis.openapi.from_asgi("/openapi.json", app)
    return {own.ok().label: own.ok() for own in description.get_all_operations()}


@pytest.mark.parametrize("name", PATHS)
def test_all_paths_are_described(apps, name):
    assert list(operations(apps[name])) == PATHS[name]


@pytest.mark.parametrize(("name", "path"), [(name, path) for name, paths in PATHS.items() for path in paths])
def test_answers_are_as_described(apps, name, path):
    """Those to requests that fit the description, and where there is something to be wrong, to others."""
    operation = operations(apps[name])[path]
    modes = ["positive"] if path in ("GET /schema", "GET /health") else ["positive", "negative"]
    for mode in modes:

        @settings(max_examples=N_EXAMPLES, suppress_health_check=list(HealthCheck))
        @given(operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def check(case):
            case.call_and_validate(checks=CHECKS)

        check()
