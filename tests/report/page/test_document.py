"""The report is one file that fetches nothing, runs nothing, and says what was found."""

import base64
import hashlib
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassPowerset
from pmdc.datasets import make_network
from pmdc.metrics import hamming_loss, subset_loss
from pmdc.report import write_report
from report_page import HOSTILE, local_name, report

ALL = ["summary", "data", "graph", "losses", "calibration", "importance", "sets", "hardest", "doubtful", "repeat"]


# A safe and self-contained page ----------------------------------------------------------------------------------


def test_nothing_is_fetched_and_nothing_runs(page, hostile):
    for one in (page, hostile[0]):
        for tag, attributes in one.elements:
            assert tag not in ("script", "link", "iframe", "object", "embed", "form", "base", "audio", "video")
            for name, value in attributes.items():
                assert not name.startswith("on"), name
                assert name != "style"
                if name in ("src", "href", "xlink:href", "action", "srcset"):
                    assert value.startswith(("data:image/svg+xml;base64,", "#"))
        assert "url(" not in one.style
        assert "@import" not in one.style


def test_the_policy_allows_only_the_style_of_the_page(page):
    policies = [a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a]
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    (policy,) = policies
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == f"'sha256-{digest}'"
    assert rules["img-src"] == "data:"
    assert not {"script-src", "connect-src"} & set(rules)


def test_pictures_hold_no_scripts_and_have_a_text_beside_them(page, hostile):
    for one in (page, hostile[0]):
        images = [attributes for tag, attributes in one.elements if tag == "img"]
        assert len(images) >= 5
        assert all(image["alt"] for image in images)
        for picture in one.pictures:
            for element in picture.iter():
                assert local_name(element) not in ("script", "foreignObject", "image", "a")
                for name, value in element.attrib.items():
                    assert not name.startswith("on")
                    assert "href" not in name or value.startswith("#")


def test_hostile_names_are_texts(hostile):
    page, folder = hostile
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[6], HOSTILE[7], HOSTILE[8], "two lines & more"):
        assert name in page.text
    assert HOSTILE[2] in page.text  # in full once, in the table of columns
    assert "\u202e" not in page.source
    drawn = "".join("".join(picture.itertext()) for picture in page.pictures)
    assert "<script>" in drawn
    assert "x" * 60 not in drawn
    card = (folder / "card.md").read_text(encoding="utf-8")
    assert "<script" not in card
    assert "<img" not in card
    assert "&lt;script&gt;" in card


def test_structure_for_those_who_do_not_see_it(page):
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == 1
    assert [tag for tag in ("header", "nav", "main", "footer") if tags.count(tag) != 1] == []
    (language,) = [attributes["lang"] for tag, attributes in page.elements if tag == "html"]
    assert language == "en"
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    targets = {a["href"].removeprefix("#") for tag, a in page.elements if tag == "a"}
    assert targets <= set(identifiers)
    assert set(page.sections) <= targets
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))


# Contents --------------------------------------------------------------------------------------------------------


def test_all_sections_are_there(page):
    assert page.sections == ALL


def test_it_says_what_the_model_says(page, model, data):
    text = page.text
    assert " ".join(model.summary().split()) in text
    loss = hamming_loss(data.Y[200:], model.predict(data.X[200:]))
    assert f"{100 * (1 - loss):.1f} %" in text
    for parent, child in model.graph_.edges:
        assert parent in text
        assert child in text
    assert "120 rows" in text
    assert "GBNC(experts=None, max_parents=1)" in text


def test_the_hardest_row_is_shown_with_its_states(page, model, data):
    log_prob = model.predict_joint(data.X[200:]).log_prob(data.Y[200:])
    worst = int(np.argmin(log_prob))
    assert f"Row {worst}: log-loss {-log_prob[worst]:.2f} nats" in page.text


def test_gaps_and_unseen_states_are_counted(model, data, tmp_path):
    X, Y = data.X[200:].copy(), data.Y[200:].astype(object)
    Y.iloc[:7, 0] = None
    Y.iloc[7:10, 1] = "new"
    column = model.feature_table_.number_names[0]
    X.loc[X.index[:11], column] = np.nan
    with pytest.warns(UserWarning, match=column):
        page = report(model, X, Y, tmp_path)
    lines = {line[0]: line for line in table_lines(page, "Class variables")}
    assert lines[model.class_names_[0]][-2:] == ["7", "–"]
    assert lines[model.class_names_[1]][-2:] == ["–", "3"]
    assert table_lines(page, "Features")[0][-1] == "11"
    assert "infinite" in page.text


def test_the_numbers_of_the_summary_say_what_they_are_of(page, model, data, tmp_path):
    assert "of all known states" in page.text
    assert "predicted as a whole; 120 complete rows" in page.text
    Y = data.Y[200:].astype(object)
    Y.iloc[:119, 0] = None
    wrong = subset_loss(data.Y[319:], model.predict(data.X[319:], loss="subset"))
    text = report(model, data.X[200:], Y, tmp_path, n_rows=0).text
    assert f"Whole rows predicted right{100 * (1 - wrong):.1f} %predicted as a whole; 1 complete row" in text


def table_lines(page, caption):
    """The texts of the lines of the first table whose caption begins so."""
    start = page.source.index(f"<caption>{caption}")
    body = page.source[page.source.index("<tbody", start) : page.source.index("</tbody>", start)]
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", line)]
        for line in re.findall("<tr.*?</tr>", body)
    ]


def test_sets_of_states_count_as_missing(model, data, tmp_path):
    Y = data.Y[200:].astype(object)
    Y.iat[0, 0] = {"a", "b"}
    page = report(model, data.X[200:], Y, tmp_path)
    assert table_lines(page, "Class variables")[0][-1] == "1"


def test_no_rows(model, data, tmp_path):
    page = report(model, data.X[200:], data.Y[200:], tmp_path, n_rows=0)
    assert page.sections == [name for name in ALL if name not in ("hardest", "doubtful")]
    assert not re.search(r"Row \d", page.text)


def test_a_report_to_share_lists_no_rare_values(model, data, tmp_path):
    X = data.X[200:].assign(name=[f"person {i}" for i in range(120)])
    model = GBNC(experts=None, max_parents=0, discrete_features=["d0"])
    train = data.X[:200].assign(name=None)
    with pytest.warns(UserWarning, match="name"):
        model.fit(train, data.Y[:200])
    assert "person 7" not in report(model, X, data.Y[200:], tmp_path, n_rows=0).text
    assert "person 0" in report(model, X, data.Y[200:], tmp_path, n_rows=1).text


def test_training_rows_are_marked(page, model, data, tmp_path):
    assert "look like the training rows" not in page.text
    assert "look like the training rows" in report(model, data.X[:200], data.Y[:200], tmp_path).text


def test_title(model, data, page, tmp_path):
    assert "A model of y0, y1 and y2" in page.text
    assert (
        "<h1><bdi>Mine &amp; yours</bdi></h1>"
        in report(model, data.X[200:], data.Y[200:], tmp_path, title="Mine & yours").source
    )


@pytest.mark.parametrize("title", ["", " \n"])
def test_a_blank_title_is_none(title, model, data, tmp_path):
    page = report(model, data.X[200:], data.Y[200:], tmp_path, title=title, n_rows=0)
    assert "<h1><bdi>A model of y0, y1 and y2</bdi></h1>" in page.source


def test_empty_names_and_states_can_be_seen(data, tmp_path):
    Y = data.Y.astype(object).replace("a", "").rename(columns={"y1": ""})
    model = GBNC(experts=None, max_parents=1).fit(data.X[:200], Y[:200])
    page = report(model, data.X[200:], Y[200:], tmp_path, card=tmp_path / "card.md")
    names = [line[0] for line in table_lines(page, "Class variables")]
    assert names == ["y0", "(empty)", "y2"]
    assert all("(empty): " in line[2] for line in table_lines(page, "Class variables"))
    drawn = "".join("".join(picture.itertext()) for picture in page.pictures)
    assert "(empty)" in drawn
    assert "(empty)" in (tmp_path / "card.md").read_text()


@pytest.mark.parametrize("estimator", [BinaryRelevance(), ClassPowerset(), ChainEnsemble(n_chains=2, random_state=0)])
def test_baselines(estimator, data, tmp_path):
    page = report(estimator.fit(data.X[:200], data.Y[:200]), data.X[200:], data.Y[200:], tmp_path)
    assert page.sections == ALL


@pytest.mark.parametrize("name", ["polars", "array", "list"])
def test_other_tables(name, tmp_path):
    random = np.random.RandomState(0)
    X = random.normal(size=(120, 2))
    Y = (X + random.normal(size=X.shape) > 0).astype(int)
    tables = X, Y
    if name == "polars":
        polars = pytest.importorskip("polars")
        tables = polars.DataFrame(X, schema=["a", "b"]), polars.DataFrame(Y, schema=["c", "d"])
    model = GBNC(experts=None).fit(*(table[:60] for table in tables))
    if name == "list":
        tables = X.tolist(), Y.tolist()
    assert report(model, *(table[60:] for table in tables), tmp_path).sections == ALL


def test_with_experts(tmp_path):
    data = make_network(120, n_class_variables=2, random_state=0)
    model = GBNC(experts=[LogisticRegression()], cv=2, blocks=[["y0", "y1"]], random_state=0)
    model.fit(data.X[:80], data.Y[:80])
    assert report(model, data.X[80:], data.Y[80:], tmp_path).sections == ALL


def test_many_class_variables_are_not_all_drawn(tmp_path):
    data = make_network(260, n_class_variables=20, random_state=0)
    model = GBNC(experts=None, max_parents=1, conditioning="partition").fit(data.X[:200], data.Y[:200])
    page = report(model, data.X[200:], data.Y[200:], tmp_path, n_rows=1)
    assert "8 further class variables" in page.text
    assert "(12 of 20)" in page.text
    assert len(page.source) < 1_000_000


# Writing ---------------------------------------------------------------------------------------------------------


def test_the_same_input_gives_the_same_file_and_changes_no_answer(model, data, page, tmp_path):
    X, Y = data.X[200:], data.Y[200:]
    before = model.predict_joint(X).log_prob(Y)
    assert report(model, X, Y, tmp_path, random_state=0).source == page.source
    np.testing.assert_array_equal(model.predict_joint(X).log_prob(Y), before)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3), np.int64(3)])
def test_the_seed_in_the_report_repeats_it(random_state, model, data, tmp_path):
    X, Y = data.X[200:], data.Y[200:]
    first = report(model, X, Y, tmp_path, n_rows=0, random_state=random_state)
    (seed,) = re.findall(r"random_state=(\d+):", first.text)
    assert report(model, X, Y, tmp_path, n_rows=0, random_state=int(seed)).source == first.source


def test_a_path_that_cannot_be_written_is_refused_before_the_work(data, tmp_path):
    class Worker(GBNC):
        def predict_joint(self, X, given=None):
            raise AssertionError("work has begun")

    model = Worker(experts=None, max_parents=0).fit(data.X[:50], data.Y[:50])
    (tmp_path / "folder.html").mkdir()
    absent = tmp_path / "absent"
    with pytest.raises(FileNotFoundError, match="absent"):
        write_report(model, data.X, data.Y, absent / "r.html")
    with pytest.raises(FileNotFoundError, match="absent"):
        write_report(model, data.X, data.Y, tmp_path / "r.html", card=absent / "r.md")
    with pytest.raises(IsADirectoryError, match="folder.html"):
        write_report(model, data.X, data.Y, tmp_path / "folder.html")
    for path in ("report.pdf", "report"):
        with pytest.raises(ValueError, match=f"path='{path}'"):
            write_report(model, data.X, data.Y, path)
    with pytest.raises(ValueError, match="card='card.html'"):
        write_report(model, data.X, data.Y, tmp_path / "r.html", card="card.html")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder.html"]


def test_a_failure_leaves_the_files_as_they_were(model, data, tmp_path, monkeypatch):
    from pmdc.report.page import card, document

    path = tmp_path / "report.html"
    path.write_text("before")

    def fail(*arguments):
        raise RuntimeError("stopped")

    for module, name in ((document, "repeat_section"), (card, "model_card")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(RuntimeError, match="stopped"):
                write_report(model, data.X[200:], data.Y[200:], path, card=tmp_path / "card.md")
        assert path.read_text() == "before"
        assert list(tmp_path.iterdir()) == [path]


def test_bad_input(model, data, tmp_path):
    path = tmp_path / "report.html"
    X, Y = data.X[200:], data.Y[200:]
    with pytest.raises(TypeError, match="LogisticRegression"):
        write_report(LogisticRegression(), X, Y, path)
    with pytest.raises(NotFittedError, match="GBNC"):
        write_report(GBNC(), X, Y, path)
    for table in (None, 3, "table.csv", np.float64(1.5)):
        with pytest.raises(TypeError, match=f"X=.*{table}.*table"):
            write_report(model, table, Y, path)
        with pytest.raises(TypeError, match=f"Y=.*{table}.*table"):
            write_report(model, X, table, path)
    for wrong in (None, 3):
        with pytest.raises(TypeError, match=rf"path={wrong} .*\.html"):
            write_report(model, X, Y, wrong)
    with pytest.raises(TypeError, match=r"card=3 .*\.md"):
        write_report(model, X, Y, path, card=3)
    with pytest.raises(ValueError, match="X has 120 rows, Y has 119"):
        write_report(model, X, Y[1:], path)
    with pytest.raises(ValueError, match="y1"):
        write_report(model, X, Y.drop(columns="y1"), path)
    with pytest.raises(ValueError, match="feature names"):
        write_report(model, X.rename(columns=str.upper), Y, path)
    with pytest.raises(ValueError, match="n_rows=-1"):
        write_report(model, X, Y, path, n_rows=-1)
    with pytest.raises(ValueError, match="column 'y2'.*no state"):
        write_report(model, X, Y.assign(y2=pd.Series(None, index=Y.index, dtype=object)), path)
    assert not list(tmp_path.iterdir())
