"""The graph of 60 class variables: pan, zoom, search, focus on a neighbourhood; the list."""

import re

import networkx as nx
import pytest

from explorer_page import eventually


def camera(view):
    """Return where the canvas is, and its scale."""
    transform = view.evaluate("getComputedStyle(document.getElementById('canvas')).transform")
    scale, _, _, _, x, y = map(float, re.findall(r"-?[\d.]+(?:e-?\d+)?", transform.removeprefix("matrix")))
    return x, y, scale


def center(view, name):
    """Return how far the middle of a box is from that of the viewport, in shares of its size."""
    return view.evaluate(
        """name => {
            const [outer, inner] = ['viewport', name].map(one => document.getElementById(one).getBoundingClientRect());
            return [Math.abs(inner.x + inner.width / 2 - outer.x - outer.width / 2) / outer.width,
                    Math.abs(inner.y + inner.height / 2 - outer.y - outer.height / 2) / outer.height];
        }""",
        name,
    )


def test_the_numbers_of_sixty_variables(view, sixty):
    shown = view(sixty)
    shown.shows(sixty.joint())
    assert shown.locator(".node").count() == 60
    assert shown.locator(".edge").count() == sixty.model.to_networkx().subgraph(sixty.model.class_names_).size()
    shown.fill("#find-variable", "y17")
    shown.keyboard.press("Enter")
    shown.fix("y17", "b")
    shown.shows(sixty.joint(0, {"y17": "b"}))


def test_names_can_be_read_at_first(view, sixty):
    shown = view(sixty)
    heights = shown.evaluate(
        "[...document.querySelectorAll('.far bdi')].map(one => one.getBoundingClientRect().height)"
    )
    assert min(heights) >= 10
    assert shown.locator(".node-name:visible").count() == 0  # boxes are summaries when they are small


def test_the_first_view_has_no_empty_space_beside_the_graph(view, sixty):
    shown = view(sixty)
    sides = shown.evaluate(
        """() => {
            const box = name => document.getElementById(name).getBoundingClientRect();
            const [outer, inner] = [box('viewport'), box('canvas')];
            return [inner.left - outer.left, outer.right - inner.right, inner.width - outer.width];
        }"""
    )
    assert sides[2] > 0
    assert max(sides[:2]) < 40


def test_zoom_by_buttons_wheel_and_fit(view, sixty):
    shown = view(sixty)
    *_, first = camera(shown)
    shown.locator("#zoom-in").click()
    assert camera(shown)[2] == pytest.approx(1.3 * first, rel=1e-3)
    shown.locator("#zoom-out").click()
    assert camera(shown)[2] == pytest.approx(first, rel=1e-3)
    shown.locator("#viewport").hover()
    shown.keyboard.down("Control")
    shown.mouse.wheel(0, -100)
    shown.keyboard.up("Control")
    eventually(lambda: camera(shown)[2] > 1.5 * first)
    shown.locator("#zoom-fit").click()
    outside = shown.evaluate(
        """() => {
            const outer = document.getElementById('viewport').getBoundingClientRect();
            const boxes = [...document.querySelectorAll('.node')].map(one => one.getBoundingClientRect());
            return boxes.filter(one => one.left < outer.left || one.right > outer.right ||
                one.top < outer.top || one.bottom > outer.bottom).length;
        }"""
    )
    assert outside == 0


def test_the_wheel_alone_scrolls_the_page(view, survey):
    shown = view(survey)
    before = camera(shown)
    shown.locator("#viewport").hover()
    shown.mouse.wheel(0, 200)
    eventually(lambda: shown.evaluate("scrollY") > 0)
    assert camera(shown) == before


def test_drag_moves_the_graph_and_is_no_click(view, survey):
    shown = view(survey)
    x, y, scale = camera(shown)
    box = shown.state("vote", "Dole").bounding_box()
    shown.mouse.move(box["x"] + 20, box["y"] + 8)
    shown.mouse.down()
    shown.mouse.move(box["x"] + 70, box["y"] + 38, steps=5)
    shown.mouse.up()
    assert camera(shown) == pytest.approx((x + 50, y + 30, scale), abs=1)
    assert "given" not in shown.url_state()


def test_search_brings_a_variable_to_the_middle(view, sixty):
    shown = view(sixty)
    shown.fill("#find-variable", "y45")
    shown.keyboard.press("Enter")
    assert max(center(shown, "node-45")) < 0.02
    assert camera(shown)[2] == 1
    assert shown.evaluate("document.activeElement.id") == "node-45-name"
    shown.fill("#find-variable", "nothing")
    shown.keyboard.press("Enter")
    assert "nothing" in shown.locator("#said").text_content()


def test_a_small_box_zooms_in(view, sixty):
    shown = view(sixty)
    number = shown.evaluate(
        """() => {
            const outer = document.getElementById('viewport').getBoundingClientRect();
            const inside = one => one.left > outer.left + 50 && one.right < outer.right - 50 &&
                one.bottom < outer.bottom - 50;
            return [...document.querySelectorAll('.node')].find(one => inside(one.getBoundingClientRect())).id;
        }"""
    )
    shown.locator(f"#{number} .far").click()
    assert max(center(shown, number)) < 0.02
    assert shown.locator(f"#{number}-name").is_visible()


@pytest.mark.parametrize("steps", [1, 2])
def test_focus_on_a_neighbourhood(view, sixty, steps):
    names = sixty.model.class_names_
    graph = sixty.model.to_networkx().subgraph(names).to_undirected()
    hub = max(names, key=graph.degree)
    shown = view(sixty)
    shown.fill("#find-variable", hub)
    shown.keyboard.press("Enter")
    shown.locator(f"#node-{names.index(hub)}-name").click()
    shown.click("#only-neighbours")
    if steps > 1:
        shown.act(lambda: shown.select_option("#steps", str(steps)))
    near = nx.ego_graph(graph, hub, radius=steps)
    eventually(lambda: shown.locator(".node").count() == len(near))
    assert {names[int(own.removeprefix("node-"))] for own in ids(shown)} == set(near)
    other = next(name for name in names if name not in near)
    shown.fill("#find-variable", other)
    shown.keyboard.press("Enter")
    eventually(lambda: shown.locator(".node").count() == 60)
    assert max(center(shown, f"node-{names.index(other)}")) < 0.02


def ids(view):
    return view.locator(".node").evaluate_all("all => all.map(one => one.id)")


def test_the_list_is_short_at_first(view, sixty):
    names = sixty.model.class_names_
    shown = view(sixty, 390, given={"y44": "a"})
    listed = shown.locator(".node:visible").evaluate_all("all => all.map(one => one.id)")
    assert listed == [*(f"node-{i}" for i in range(12)), "node-44"]
    shown.fill("#find-variable", "y30")
    shown.keyboard.press("Enter")
    assert shown.locator(".node:visible").count() == 60
    assert shown.evaluate("document.activeElement.id") == "node-30-name"
    shown.reload()
    shown.settled()
    shown.locator("#all-variables").click()
    assert shown.locator(".node:visible").count() == len(names)
    assert shown.evaluate("document.activeElement.id") == "node-12-name"


def test_list_and_graph(view, survey):
    shown = view(survey)
    shown.click("#view")
    assert shown.locator(".edge").first.is_hidden()
    shown.fix("party", "Democrat")
    shown.shows(survey.joint(0, {"party": "Democrat"}))
    shown.click("#view")
    assert shown.locator(".edge").first.is_visible()


@pytest.mark.parametrize("width", [1280, 1000, 390])
def test_nothing_is_cut_off_in_the_boxes(view, survey, width):
    shown = view(survey, width, given={"party": "Democrat"}, pinned={"index": 3, "edits": {}, "given": {}})
    cut = shown.locator(".state-name, .node-name, .number > input").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    )
    assert cut == []


def test_parts_of_the_page_are_one_tap_away_on_a_phone(view, survey):
    shown = view(survey, 390)
    for label, part in (("Ask next", "next"), ("Case", "case"), ("Outcomes", "outcomes")):
        shown.locator("#jump button", has_text=label).click()
        bar = shown.locator("#jump").bounding_box()
        top = shown.locator(f"#{part}").bounding_box()["y"]
        assert bar["height"] <= top < bar["height"] + 60
    assert shown.locator("#field-0").is_visible()
