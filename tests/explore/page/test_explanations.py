"""Waterfalls add up to the library's log-odds; two cases stand side by side."""

import pytest

from explorer_page import EXACT, ignored_warnings
from pmdc.explain import explain_difference, explain_row


def check_waterfall(view, expected):
    assert view.numbers(".waterfall", "data-base") == pytest.approx([expected.base], abs=EXACT)
    assert view.numbers(".waterfall", "data-total") == pytest.approx([expected.log_odds], abs=EXACT)
    steps = view.numbers(".waterfall .step .amount[data-value]")
    assert expected.base + sum(steps) == pytest.approx(expected.log_odds, abs=EXACT)
    largest = [own.contribution for own in expected.contributions if abs(own.contribution) >= 0.005]
    assert steps[: len(largest)] == pytest.approx(largest, abs=EXACT)
    ends = view.numbers(".waterfall .end .amount:last-child")
    assert ends == pytest.approx([1 / (1 + 2.718281828459045**-expected.base), expected.prob], abs=EXACT)


def check_bars(view):
    """Each bar starts where the one before ends."""
    boxes = view.locator(".waterfall .change").evaluate_all(
        """all => all.map(({ classList, style }) =>
            [classList.contains('for'), parseFloat(style.left), parseFloat(style.width)])"""
    )
    at = view.evaluate("parseFloat(document.querySelector('.waterfall .point').style.left)")
    for forward, left, width in boxes:
        assert (left if forward else left + width) == pytest.approx(at, abs=0.01)
        at = left + width if forward else left


def test_a_waterfall_adds_up(view, survey):
    shown = view(survey, index=7)
    shown.locator("#node-0-why").click()
    shown.locator(".waterfall").wait_for()
    with ignored_warnings():
        predicted = str(survey.joint(7).decide("hamming").outcome["vote"].iloc[0])
        check_waterfall(shown, explain_row(survey.model, survey.X, 7, "vote", predicted))
        check_bars(shown)
        other = "Dole" if predicted == "Clinton" else "Clinton"
        shown.act(lambda: shown.select_option("#why-state", label=other))
        check_waterfall(shown, explain_row(survey.model, survey.X, 7, "vote", other))
    assert f"vote = {other}" in shown.text("#why-sentence")


def test_known_states_and_edits_enter_the_waterfall(view, survey):
    given = {"party": "Republican", "vote": "Dole"}
    shown = view(survey, index=7, given=given, edits={"age": 80}, why={"variable": "vote", "state": "Dole"})
    X = survey.X.copy()
    X.loc[7, "age"] = 80.0
    with ignored_warnings():
        check_waterfall(shown, explain_row(survey.model, X, 7, "vote", "Dole", given={"party": "Republican"}))
    assert "As if vote itself were not known" in shown.text("#why")


def test_what_a_contribution_consists_of(view, survey):
    shown = view(survey, index=7, given={"party": "Republican"}, why={"variable": "vote", "state": "Dole"})
    toggle = shown.locator(".waterfall button").first
    before = shown.locator(".waterfall .part:visible").count()
    toggle.click()
    assert before == 0
    assert shown.locator(".waterfall .part:visible").count() > 0
    assert toggle.get_attribute("aria-expanded") == "true"
    toggle.click()
    assert shown.locator(".waterfall .part:visible").count() == 0


def test_two_rows_side_by_side(view, survey):
    shown = view(survey, index=3)
    shown.click("#compare")
    assert "Both are the same" in shown.text("#comparison")
    shown.act(lambda: (shown.fill("#row-number", "9"), shown.keyboard.press("Enter")))
    shown.shows(survey.joint(8))
    shown.shows(survey.joint(3), "first")
    rows = shown.locator("#differences tbody tr").evaluate_all(
        "all => all.map(one => [...one.children].map(cell => cell.innerText))"
    )
    different = [name for name in survey.X if survey.X[name][3] != survey.X[name][8]]
    assert [name for name, *_ in rows[: len(different)]] == different
    decisions = [survey.joint(i).decide("hamming") for i in (3, 8)]
    predicted = [own.outcome.iloc[0].astype(str) for own in decisions]
    expected = [
        [f"{name} prediction", predicted[0][name], predicted[1][name]]
        for name in survey.model.class_names_
        if predicted[0][name] != predicted[1][name]
    ]
    assert [own for own in rows if own[0].endswith("prediction")] == expected
    shown.locator("#node-0-why").click()
    shown.locator(".waterfall").wait_for()
    shown.settled()
    with ignored_warnings():
        difference = explain_difference(survey.model, survey.X, (3, 8), "vote", predicted[1]["vote"])
    check_waterfall(shown, difference)
    check_bars(shown)
    assert "clinton (as predicted)" in shown.text("#why")  # not known, but the features say something about it
    shown.click("#exchange")
    shown.shows(survey.joint(3))
    shown.shows(survey.joint(8), "first")
    shown.click("#stop-comparing")
    assert not shown.locator("#comparison").is_visible()


def test_two_sets_of_known_states_side_by_side(view, survey):
    shown = view(survey, index=3, given={"party": "Democrat"})
    shown.click("#compare")
    shown.fix("party", "Republican")
    shown.fix("self", "liberal")
    shown.shows(survey.joint(3, {"party": "Republican", "self": "liberal"}))
    shown.shows(survey.joint(3, {"party": "Democrat"}), "first")
    assert "Democrat" in shown.text("#differences")
    assert "not known" in shown.text("#differences")
    shown.locator("#node-0-why").click()
    shown.locator(".waterfall").wait_for()
    shown.settled()
    given = ({"party": "Democrat"}, {"party": "Republican", "self": "liberal"})
    state = shown.url_state()["why"]["state"]
    with ignored_warnings():
        check_waterfall(shown, explain_difference(survey.model, survey.X, 3, "vote", state, given=given))


@pytest.mark.parametrize("given", [{}, {"party": "Republican"}, {"party": "Republican", "self": "liberal"}])
def test_class_variables_as_predicted_are_spoken_of_only_if_they_have_a_bar(view, survey, given):
    shown = view(survey, index=7, given=given, why={"variable": "vote", "state": "Dole"})
    bars = shown.locator(".waterfall .step th").all_inner_texts()
    assert ("as predicted" in shown.text("#why > .note:last-of-type")) == any("(as predicted)" in one for one in bars)
