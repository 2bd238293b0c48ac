"""The picture of one row shows marginals, predicted states and evidence."""

import io
from itertools import combinations
from xml.etree import ElementTree

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pmdc import ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.inference import JointDistribution, OutcomeDistribution
from pmdc.report.individual import panels_of, percent
from pmdc.table.classes import ClassTable


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def chain_of_two():
    """Two class variables, three rows; in the first the best states and the best outcome differ."""
    Y = pd.DataFrame({"$a$": ["no", "yes", "yes"], "b": ["low", "high", "mid"]})
    first = np.array([[0.4, 0.6], [0.9, 0.1], [0.5, 0.5]])
    second = np.array([[0.04, 0.9, 0.06], [0.3, 0.3, 0.4]])  # high, low, mid
    return JointDistribution(ClassTable.fit(Y), [(), (0,)], [np.log(first), np.log(np.stack([second] * 3))])


def random_joint(sizes, parents, names=None, seed=0, n_rows=1):
    rng = np.random.default_rng(seed)
    names = names or [f"y{k}" for k in range(len(sizes))]
    most = max(sizes)
    Y = pd.DataFrame(
        {name: [f"s{min(i, size - 1):03}" for i in range(most)] for name, size in zip(names, sizes, strict=True)}
    )
    tables = [
        np.log(rng.dirichlet(np.ones(size), (n_rows, *(sizes[p] for p in members))))
        for size, members in zip(sizes, parents, strict=True)
    ]
    return JointDistribution(ClassTable.fit(Y), parents, tables)


def drawn(ax, kind):
    return {p.get_gid().removeprefix(f"{kind}:"): p for p in ax.patches if p.get_gid().startswith(f"{kind}:")}


def extents(ax, kind):
    return {name: patch.get_path().get_extents() for name, patch in drawn(ax, kind).items()}


def test_bars_are_marginals():
    joint = chain_of_two()
    for row in range(3):
        ax = joint.plot(row)
        bars, tracks = extents(ax, "bar"), extents(ax, "track")
        for name, states, marginal in zip(
            joint.class_table.names, joint.class_table.states, joint.marginals(), strict=True
        ):
            for state, p in zip(states, marginal[row], strict=True):
                share = bars[f"{name}:{state}"].width / tracks[f"{name}:{state}"].width
                assert share == pytest.approx(p)
    assert set(drawn(ax, "edge")) == {"$a$:b"}


@pytest.mark.parametrize(("loss", "predicted"), [("hamming", {"$a$:yes", "b:low"}), ("subset", {"$a$:no", "b:low"})])
def test_the_prediction_is_marked_by_shape_and_colour(loss, predicted):
    joint = chain_of_two()
    ax = joint.plot(loss=loss)
    assert set(drawn(ax, "mark")) == predicted
    bars = drawn(ax, "bar")
    colours = {bars[name].get_facecolor() for name in predicted}
    assert len(colours) == 1
    assert not colours & {bar.get_facecolor() for name, bar in bars.items() if name not in predicted}
    assert any(f"{loss} loss".lower() in text.lower() for text in drawn(ax, "legend"))


def test_what_is_known_is_shown_as_known():
    ax = chain_of_two().given({"b": "mid"}).plot(1)
    marks, nodes = drawn(ax, "mark"), drawn(ax, "node")
    assert set(marks) == {"$a$:no", "b:mid"}
    assert len(marks["b:mid"].get_path()) != len(marks["$a$:no"].get_path())
    assert nodes["b"].get_facecolor() != nodes["$a$"].get_facecolor()
    assert set(drawn(ax, "legend")) == {"prediction for the Hamming loss", "known state (evidence)"}
    assert extents(ax, "bar")["b:mid"].width == pytest.approx(extents(ax, "track")["b:mid"].width)


@pytest.mark.parametrize("n_states", [8, 9, 30])
def test_of_many_states_the_others_are_told_together(n_states):
    joint = random_joint([n_states, 2], [(), (0,)])
    (panel, _) = panels_of(joint, 0, "hamming")
    marginal = joint.marginals()[0][0]
    if n_states == 8:
        assert len(panel.states) == 8
        return
    assert len(panel.states) == 8
    *shown, others = panel.states
    best = np.sort(marginal)[::-1]
    assert sorted((state.probability for state in shown), reverse=True) == pytest.approx(best[:7])
    assert [state.name for state in shown] == sorted(state.name for state in shown)
    assert others.name == f"{n_states - 7} other states"
    assert others.probability == pytest.approx(best[7:].sum())
    assert sum(state.probability for state in panel.states) == pytest.approx(1)


def test_a_known_state_is_shown_however_improbable():
    joint = random_joint([30, 2], [(), (0,)])
    rarest = joint.class_table.states[0][joint.marginals()[0][0].argmin()]
    (panel, _) = panels_of(joint.given({"y0": rarest}), 0, "hamming")
    assert panel.known
    assert [state.name for state in panel.states if state.role == "known"] == [rarest]


@pytest.mark.parametrize("n", [5, 16, 50])
def test_panels_do_not_overlap_and_hold_their_words(n):
    rng = np.random.default_rng(n)
    sizes = rng.integers(2, 5, n).tolist()
    parents = [tuple(sorted({int(p) for p in rng.integers(0, k, min(k, 2))})) for k in range(n)]
    names = [f"a rather long name_{k}" if k % 7 == 3 else f"y{k}" for k in range(n)]
    joint = random_joint(sizes, parents, names)
    ax = joint.plot(title="Row 0")
    nodes = extents(ax, "node")
    assert set(nodes) == set(names)
    for first, second in combinations(nodes.values(), 2):
        assert not first.padded(5).overlaps(second)
    for kind in ("text", "state", "percent", "track", "mark"):
        for name, shape in extents(ax, kind).items():
            box = nodes[name.rpartition(":")[0] or name]
            assert box.x0 + 3 < shape.x0
            assert shape.x1 < box.x1 - 3
            assert box.y0 + 2 < shape.y0
            assert shape.y1 < box.y1 - 2
    for edge, line in drawn(ax, "edge").items():
        for name, box in nodes.items():
            if name not in edge.split(":"):
                assert not line.get_path().intersects_bbox(box, filled=False)


def test_words_of_a_line_do_not_touch():
    joint = random_joint([3, 3], [(), (0,)])
    ax = joint.plot()
    for name, state in extents(ax, "state").items():
        assert state.x1 < extents(ax, "track")[name].x0
        assert extents(ax, "track")[name].x1 < extents(ax, "percent")[name].x0


def test_distributions_without_a_graph_have_panels_without_edges():
    data = make_network(120, n_class_variables=3, random_state=0)
    for model in (ClassPowerset(), ClassifierChain(), ChainEnsemble(n_chains=2, random_state=0)):
        joint = model.fit(data.X, data.Y).predict_joint(data.X)
        ax = joint.plot(3)
        assert set(drawn(ax, "node")) == {"y0", "y1", "y2"}
        assert not drawn(ax, "edge")
        ax = joint.given({"y0": joint.class_table.states[0][0]}).plot(3)
        assert len(drawn(ax, "mark")) == 3
        assert "known state (evidence)" in drawn(ax, "legend")


def test_a_loss_of_the_whole_batch_is_decided_for_the_batch():
    Y = ClassTable.fit(np.array([[0, 0], [1, 1]]))
    listed = [[0, 0], [0, 1], [1, 0], [1, 1]]
    log_p = np.log([[0.4, 0.2, 0.2, 0.2], [0.97, 0.01, 0.01, 0.01], [0.7, 0.1, 0.1, 0.1]])
    joint = OutcomeDistribution(Y, listed, log_p, np.zeros(3))
    for row, outcome in enumerate(joint.decide("f1_macro").outcome):
        assert {mark.split(":")[1] for mark in drawn(joint.plot(row, loss="f1_macro"), "mark")} == {
            str(state) for state in outcome
        }


@pytest.mark.parametrize("row", [3, -1, 1.5, "0"])
def test_rows_that_are_not_there_are_refused(row):
    with pytest.raises(ValueError, match=f"row={row!r}"):
        chain_of_two().plot(row)


def test_the_message_tells_how_many_rows_there_are():
    with pytest.raises(ValueError, match="row=3, but there are 3 rows"):
        chain_of_two().plot(3)


def test_names_survive_in_svg_files():
    Y = pd.DataFrame({"<a>": ["$x$", "y\nz"], "b": ["&", '"']})
    joint = JointDistribution(ClassTable.fit(Y), [(), ()], [np.log([[0.5, 0.5]])] * 2)
    file = io.BytesIO()
    joint.plot(title="$x$ < y").figure.savefig(file, format="svg")
    ids = {element.get("id") for element in ElementTree.fromstring(file.getvalue()).iter()}
    assert {"node:<a>", "node:b", "bar:<a>:$x$", "bar:<a>:y z", "bar:b:&", 'bar:b:"'} <= ids


def test_shares_are_never_rounded_to_nothing_or_all():
    assert [percent(p) for p in (0.0, 0.001, 0.005, 0.126, 0.994, 0.996, 1.0)] == [
        "0 %",
        "<1 %",
        "<1 %",
        "13 %",
        "99 %",
        ">99 %",
        "100 %",
    ]
