"""Pictures of the page for people to look at, in the folder $PMDC_PICTURES or a temporary one."""

import os
from pathlib import Path

import pytest

SIZES = ("survey", "twenty", "sixty")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    found = os.environ.get("PMDC_PICTURES")
    if found is None:
        return tmp_path_factory.mktemp("pictures")
    Path(found).mkdir(parents=True, exist_ok=True)
    return Path(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_overflows(view, request, folder, size, width, scheme):
    case = request.getfixturevalue(size)
    names = case.model.class_names_
    given = {names[1]: case.interface.reader.states[1].listed[0]}
    why = {"variable": names[0], "state": case.interface.reader.states[0].listed[0]}
    shown = view(case, width, scheme, index=2, given=given, why=why)
    shown.page.screenshot(path=folder / f"{size}-{width}-{scheme}.png", full_page=True)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
