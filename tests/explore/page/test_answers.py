"""The page shows the library's own numbers: the start, known states, edits, losses, outcomes, sets, what to ask."""

import json

import numpy as np
import pytest

from explorer_page import EXACT, View, ignored_warnings
from pmdc.explain import value_of_features


def check_decision(view, joint, loss="hamming"):
    decision = joint.decide(loss)
    assert view.numbers("#expected-loss") == pytest.approx([float(decision.expected_loss[0])], abs=EXACT)
    predicted = view.locator("#predicted-states tbody td:first-of-type").all_inner_texts()
    assert predicted == decision.outcome.iloc[0].astype(str).tolist()
    marked = view.locator(".state.decided").evaluate_all("all => all.map(one => one.dataset.state)")
    assert sorted(marked) == sorted(predicted)


def test_the_page_starts_with_the_first_row(view, survey):
    shown = view(survey)
    shown.shows(survey.joint())
    check_decision(shown, survey.joint())
    assert shown.title() == "model.skops · pmdc explorer"
    assert "5 class variables, 5 features" in shown.text("#subtitle")
    assert shown.url_state() == {"index": 0, "loss": "hamming"}
    assert shown.locator("#field-0").input_value() == str(int(survey.X["age"][0]))
    assert shown.locator("#field-2-missing").is_checked()


def test_click_a_state_to_fix_it_and_again_to_release_it(view, survey):
    shown = view(survey, index=3)
    assert shown.locator(".before:visible").count() == 0
    shown.fix("party", "Republican")
    known = survey.joint(3, {"party": "Republican"})
    shown.shows(known)
    shown.shows(survey.joint(3), "before")
    assert shown.locator(".before:visible").count() == 14
    assert shown.state("party", "Republican").get_attribute("aria-pressed") == "true"
    assert shown.text("#known-panel .chip .pair") == "party = Republican"
    check_decision(shown, known)
    shown.fix("party", "Republican")
    shown.shows(survey.joint(3))
    assert shown.locator("#known-panel .chip").count() == 0


def test_several_states_are_possible(view, survey):
    shown = view(survey, index=3)
    shown.fix("party", "Republican")
    shown.fix("party", "independent", modifiers=["Shift"])
    shown.shows(survey.joint(3, {"party": ["Republican", "independent"]}))
    shown.locator(".node-name").nth(2).click()
    shown.locator("dialog input").nth(0).check()
    shown.click("dialog .main")
    shown.shows(survey.joint(3, {"party": ["Republican", "independent"], "self": "liberal"}))
    shown.click("#release-all")
    shown.shows(survey.joint(3))


def test_edit_a_number_a_category_and_a_missing_value(view, survey):
    shown = view(survey, index=5)
    shown.fill("#field-0", "33.5")
    shown.shows(survey.joint(5, age=33.5))
    shown.select_option("#field-1", label=shown.locator("#field-1 option", has_text="advanced degree").inner_text())
    shown.shows(survey.joint(5, age=33.5, education="advanced degree"))
    shown.click("#field-2-missing")
    shown.shows(survey.joint(5, age=33.5, education="advanced degree", income=None))
    assert shown.text("#edited") == "3 values changed. Reset all"
    assert shown.url_state()["edits"] == {"age": 33.5, "education": "advanced degree", "income": None}
    shown.click("#field-0-reset")
    shown.shows(survey.joint(5, education="advanced degree", income=None))
    shown.click("#reset-all")
    shown.shows(survey.joint(5))


def test_the_slider_edits_a_number(view, survey):
    shown = view(survey, index=5)
    slider = shown.locator("#field-4 ~ .slider input")
    shown.act(lambda: slider.fill("2"))
    shown.shows(survey.joint(5, tv_news=2.0))
    assert shown.locator("#field-4").input_value() == "2"


@pytest.mark.parametrize("loss", ["hamming", "subset", "sub-exact"])
def test_the_loss_decides(view, survey, loss):
    given = {"dole": "liberal"}
    shown = view(survey, index=7, given=given)
    shown.act(lambda: shown.select_option("#loss", loss))
    check_decision(shown, survey.joint(7, given), loss)


def test_the_ten_most_probable_outcomes(view, survey):
    given = {"party": "Democrat"}
    shown = view(survey, index=7, given=given)
    outcomes, log_prob = survey.joint(7, given).top(10)
    found = shown.locator("#outcomes li").evaluate_all("all => all.map(one => one.dataset.states)")
    assert [list(json.loads(own).values()) for own in found] == [list(map(str, own)) for own in outcomes[0]]
    assert shown.numbers("#outcomes .amount") == pytest.approx(np.exp(log_prob[0]).tolist(), abs=EXACT)
    second = dict(zip(survey.model.class_names_, map(str, outcomes[0][1]), strict=True))
    first = dict(zip(survey.model.class_names_, map(str, outcomes[0][0]), strict=True))
    different = [f"{name} = {state}" for name, state in second.items() if state != first[name]]
    assert shown.locator("#outcomes li").nth(1).locator(".pair").all_inner_texts() == different


@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_calibrated_sets(view, survey, coverage):
    shown = view(survey, index=9)
    shown.act(lambda: shown.select_option("#coverage", str(coverage)))
    with ignored_warnings():
        calibration = survey.model.calibrate_sets(survey.X, survey.Y, kind="variables", max_outcomes=100)
        expected = survey.model.predict_set(survey.X[9:10], coverage, calibration=calibration)
    states = survey.model.class_table_.states
    masks = zip(survey.model.class_names_, states, expected, strict=True)
    rows = shown.locator("#sets tr").evaluate_all(
        "all => all.map(one => [one.querySelector('th').innerText, JSON.parse(one.dataset.states)])"
    )
    assert dict(rows) == {name: own[mask[0]].tolist() for name, own, mask in masks}
    assert "244 rows" in shown.text("#sets")


def test_what_to_ask_next(view, survey):
    given = {"party": "Democrat"}
    shown = view(survey, index=0, given=given)
    known = survey.joint(0, given).value_of_information("hamming")[0]
    expected = dict(zip(survey.model.class_names_, known, strict=True))
    del expected["party"]
    with ignored_warnings():
        missing = value_of_features(
            survey.model, survey.X, row=survey.row(0), given=given, features=["education", "income"], max_rows=200
        )
    expected |= dict(zip(missing.feature_names, missing.value, strict=True))
    best = sorted(expected.items(), key=lambda own: -own[1])[:6]
    assert shown.locator("#next li .name").all_inner_texts() == [name for name, value in best if value > 1e-9]
    listed = [value for _, value in best if value > 1e-9]
    assert shown.numbers("#next .amount") == pytest.approx(listed, abs=EXACT)
    shown.locator("#next .name", has_text=best[0][0]).click()
    assert shown.evaluate("document.activeElement.innerText") == best[0][0]
    shown.locator("#next .name", has_text="education").click()
    assert shown.evaluate("document.activeElement.id") == "field-1"


def test_warnings_of_the_library_are_shown(view, survey):
    shown = view(survey)
    assert shown.locator("#decision .warnings summary").inner_text() == "2 warnings"
    assert "'income'" in shown.locator("#decision .warning").first.text_content()


def test_impossible_and_unknown_states_are_told(view, survey):
    shown = view(survey, given={"party": "Whig", "vote": "Dole"})
    assert "‘Whig’" in shown.text("#problem")
    shown.shows(survey.joint(0, {"vote": "Dole"}))


def test_a_server_that_does_not_answer_is_told(browser, survey):
    page = browser.new_page()
    page.goto(survey.url)
    shown = View(page, survey).settled()
    page.route("**/predict", lambda route: route.abort())
    shown.fix("party", "Democrat")
    assert "pmdc explore model.skops survey.csv" in shown.text("#problem")
    assert "No answer" in shown.text("#outcomes")
    page.unroute("**/predict")
    shown.fix("party", "Republican")
    shown.shows(survey.joint(0, {"party": "Republican"}))
    assert shown.text("#problem") == ""
    page.close()
