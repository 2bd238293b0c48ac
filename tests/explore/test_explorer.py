"""What only the page asks for: the list of rows, the graph, exports; and notebooks."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from pmdc import GBNC
from pmdc.datasets import load_election

pytest.importorskip("fastapi", reason='needs the extra "explore"')
pytest.importorskip("httpx", reason='needs the extra "test"')
from fastapi.testclient import TestClient

from pmdc.explore import explorer as module
from pmdc.explore.interface import Interface
from pmdc.explore.page.document import write_page
from pmdc.explore.table import Table


@pytest.fixture(scope="module")
def survey():
    data = load_election(levels=3)
    return data.X[700:].reset_index(drop=True), data.Y[700:].reset_index(drop=True)


@pytest.fixture(scope="module")
def model():
    data = load_election(levels=3)
    return GBNC(experts=None, max_parents=1).fit(data.X[:700], data.Y[:700])


@pytest.fixture(scope="module")
def interface(model, survey):
    X, Y = survey
    Y = Y.astype(object)
    Y.loc[0, "vote"] = None
    interface = Interface(model, Table.of(model, X, Y, "survey.csv", 1))
    interface.predict_table()
    return interface


@pytest.fixture(scope="module")
def client(interface):
    return TestClient(module.explorer(interface, write_page))


def send(client, path, body):
    """Send what a client in JavaScript can send, such as lone surrogates."""
    return client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})


def listed(client, *filters, limit=1000, **options):
    answer = client.post("/rows", json={"filters": filters, "limit": limit, **options})
    assert answer.status_code == 200, answer.text
    return [row["index"] for row in answer.json()["rows"]]


# Rows -------------------------------------------------------------------------------------------------------------


def test_rows_by_feature(client, survey):
    X, _ = survey
    assert listed(client, {"feature": "age", "min": 30, "max": 40}) == np.flatnonzero(X["age"].between(30, 40)).tolist()
    wanted = np.flatnonzero(X["education"].isin(["high school", "college"])).tolist()
    assert listed(client, {"feature": "education", "values": ["high school", "college"]}) == wanted


def test_rows_by_state_and_kind_of_error(client, survey, model):
    X, Y = survey
    predicted = model.predict(X, loss="hamming")
    missed = (predicted != Y).to_numpy()
    missed[0, 0] = False  # its true state is not known
    vote = np.flatnonzero((Y["vote"] == "Dole") & (Y.index != 0)).tolist()
    assert listed(client, {"variable": "vote", "state": "Dole"}) == vote
    assert (
        listed(client, {"variable": "vote", "state": "Dole", "of": "predicted"})
        == np.flatnonzero(predicted["vote"] == "Dole").tolist()
    )
    assert listed(client, {"error": "any"}) == np.flatnonzero(missed.any(axis=1)).tolist()
    assert listed(client, {"error": "none"}) == np.flatnonzero(~missed.any(axis=1)).tolist()
    assert listed(client, {"error": "variable", "variable": "party"}) == np.flatnonzero(missed[:, 1]).tolist()
    both = listed(client, {"error": "any"}, {"variable": "vote", "state": "Dole"})
    assert both == sorted(set(vote) & set(np.flatnonzero(missed.any(axis=1)).tolist()))


def test_search_and_pages(client, survey):
    X, Y = survey
    found = listed(client, search="MASTER liberal")
    words = (X["education"].str.contains("master")) & (Y == "liberal").any(axis=1)
    assert found == np.flatnonzero(words).tolist()
    assert listed(client, search="MASTER liberal", offset=1, limit=2) == found[1:3]
    assert client.post("/rows", json={"search": "nowhere"}).json()["found"] == 0


def test_rows_while_they_are_being_predicted(model, survey):
    """Rows not predicted yet are no errors and not free of errors."""
    table = Table.of(model, *survey)
    table.predicted[:10] = table.truth[:10]
    table.n_predicted = 10
    client = TestClient(module.explorer(Interface(model, table), write_page))
    assert listed(client, {"error": "none"}) == list(range(10))
    assert listed(client, {"error": "any"}) == []
    answer = client.post("/rows", json={"offset": 9, "limit": 2}).json()
    assert answer["predicted"] == 10
    assert answer["rows"][0]["predicted"] is not None
    assert answer["rows"][1]["predicted"] is None


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ([1], "filters[0]"),
        ([None], "filters[0]"),
        (["age"], "filters[0]"),
        ([{"feature": "agee"}], "filters[0].feature"),
        ([{"feature": "age", "min": "young"}], "filters[0]"),
        ([{"feature": "age", "min": True}], "filters[0].min"),
        ([{"feature": "age", "min": 10**400}], "filters[0].min"),
        ([{"feature": "education", "max": 3}], "filters[0]"),
        ([{"feature": "education", "values": ["\ud800"]}], "filters[0].values[0]"),
        ([{"error": "any"}, {"variable": "vote", "state": "Perot"}], "filters[1]"),
        ([{"error": "variable"}], "filters[0]"),
        ([{"error": "some"}], "filters[0].error"),
        ({}, "filters"),
    ],
)
def test_wrong_filters_are_named(client, filters, field):
    answer = send(client, "/rows", {"filters": filters})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["field"] == field
    assert field in error["message"]


def test_single_rows(client, survey):
    X, Y = survey
    found = client.get("/rows/1").json()
    assert found["values"] == X.iloc[1].to_dict()
    assert found["true"] == Y.iloc[1].to_dict()
    assert client.get("/rows/0").json()["true"]["vote"] is None
    for path, status in (("/rows/9999", 404), ("/rows/-1", 422), ("/rows/x", 422), ("/rows/" + "9" * 5000, 422)):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["field"]) == (status, "index")


def test_without_a_table_there_are_no_rows(model):
    bare = TestClient(module.explorer(Interface(model), write_page))
    for answer in (bare.post("/rows", json={}), bare.get("/rows/0")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert bare.get("/").status_code == 200


# The graph --------------------------------------------------------------------------------------------------------


def test_the_graph(client, model):
    graph = client.get("/graph").json()
    assert [own["name"] for own in graph["nodes"]] == model.class_names_
    arcs = {(own["parent"], own["child"]) for own in graph["edges"]}
    learned = {arc for arc in model.to_networkx().edges if set(arc) <= set(model.class_names_)}
    assert arcs == learned
    near = client.get("/graph", params={"focus": "dole", "steps": 1}).json()
    neighbours = {name for arc in learned if "dole" in arc for name in arc} | {"dole"}
    assert {own["name"] for own in near["nodes"]} == neighbours
    for wrong, field in (({"focus": "dale"}, "focus"), ({"steps": 11}, "steps"), ({"steps": "x"}, "steps")):
        answer = client.get("/graph", params=wrong)
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)


# Bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"[]", 422),
        (b'"rows"', 422),
        (b"{", 422),
        (b"\xff\xfe{}", 422),
        (b"[" * 100_000 + b"]" * 100_000, 400),
        (b'{"rows": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
        (b'{"top": ' + b"9" * 10_000 + b"}", 400),
        (b'{"rows": [], "rows": 3}', 422),
        (b'{"rows": NaN}', 422),
    ],
)
@pytest.mark.parametrize("path", ["/predict", "/explain", "/ask", "/rows", "/export"])
def test_malformed_bodies(client, path, body, status):
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == "invalid"
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_only_json_is_read(client, kind):
    """Pages of other origins can send the other types without being asked for leave."""
    headers = {} if kind is None else {"Content-Type": kind}
    answer = client.post("/rows", content=b"{}", headers=headers)
    assert answer.status_code == 422
    assert "application/json" in answer.json()["error"]["message"]


# Paths and exports ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/../etc/passwd", "/%2e%2e/etc/passwd", "/rows/../../etc/passwd", "/docs", "/schema/", "/page/main.js"]
)
def test_other_paths(client, path):
    """None is redirected: the address would be made of the host that the client names."""
    answer = client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def recorded(page):
    text = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    return json.loads(text)


def test_an_export_holds_the_answers(client):
    row = client.get("/rows/3").json()["values"]
    requests = [
        {"key": "one", "path": "/predict", "body": {"rows": [row]}},
        {"key": "two", "path": "/graph?focus=vote&steps=1"},
        {"key": "three", "path": "/rows/3"},
        {"key": "four", "path": "/rows", "body": {"limit": 1}},
        {"key": "five", "path": "/schema"},
    ]
    answer = client.post("/export", json={"state": "</script><script>", "recorded": requests})
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    found = recorded(answer.text)
    assert found["state"] == "</script><script>"
    assert found["recorded"]["one"] == client.post("/predict", json={"rows": [row]}).json()
    assert found["recorded"]["three"] == client.get("/rows/3").json()


@pytest.mark.parametrize(
    "path",
    ["http://[", "/rows/" + "9" * 5000, "/rows/９", "/graph?steps=" + "9" * 5000, "/nowhere", "", "\ud800", "//a/rows"],
)
def test_exports_of_other_requests_are_refused(client, path):
    answer = send(client, "/export", {"state": "", "recorded": [{"key": "a", "path": path}]})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] in ("recorded", "recorded[0].path")
    assert len(answer.text) < 300


# Notebooks --------------------------------------------------------------------------------------------------------


def test_notebooks(model, survey, tmp_path):
    X, Y = survey
    saved = model.explore(X, Y, live=False, n_saved=2)
    assert saved.url is None
    saved.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    answers = recorded(page)["recorded"]
    assert {"GET /schema", "GET /graph", "GET /rows/0", "GET /rows/1"} <= answers.keys()
    prediction = answers["predict 0 {} hamming null"]["rows"][0]["prediction"]
    assert prediction == model.predict(X[:1], loss="hamming").iloc[0].to_dict()
    assert saved._repr_html_().startswith("<iframe")
    with pytest.raises(ValueError, match="n_saved"):
        model.explore(X, n_saved=0)
    assert isinstance(X, pd.DataFrame)  # nothing is changed


class Elements(HTMLParser):
    """The elements of a page, as a browser would see them."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_names_stay_text_in_saved_pages_and_notebooks(tmp_path):
    names = ["'\"><script>alert(1)</script>", "</script><!--<script>", "&#39; onload=alert(1) &amp;lt;"]
    X = pd.DataFrame({names[0]: np.arange(30.0), "b": np.arange(30) % 3})
    Y = pd.DataFrame({names[1]: np.where(X["b"] > 0, names[2], "</style>"), "y": (X["b"] > 1).astype(int)})
    shown = GBNC(experts=None).fit(X, Y).explore(X, Y, live=False, n_saved=1)
    shown.save(tmp_path / "page.html")
    plain = [tag for tag, _ in Elements(write_page({"live": True})).found]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    [(tag, attributes)] = Elements(shown._repr_html_()).found
    assert (tag, sorted(attributes)) == ("iframe", ["srcdoc", "style", "title"])
    for text in (page, attributes["srcdoc"]):
        assert [tag for tag, _ in Elements(text).found] == plain
        schema = recorded(text)["recorded"]["GET /schema"]
        assert schema["features"][0]["name"] == names[0]
        assert schema["class_variables"][0]["name"] == names[1]


def test_numbers_that_are_none_in_json_are_null_in_saved_pages_as_in_answers():
    assert recorded(write_page({"live": False, "recorded": {"a": [float("nan"), -float("inf")]}}))["recorded"] == {
        "a": [None, None]
    }
