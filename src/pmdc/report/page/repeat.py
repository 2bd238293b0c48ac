"""The section on how to repeat a report: settings, versions, and what was drawn at random."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from typing import Any
from xml.etree.ElementTree import Element

from pmdc.network.words import describe_structure
from pmdc.report.page.elements import E, clean, note, paragraph, section
from pmdc.report.page.findings import Findings

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "networkx", "matplotlib")


def settings_of(model: Any) -> str:
    """Return the class and the parameters that differ from their defaults; addresses in memory are left out.

    The `repr` of an estimator would leave out elements of long lists.
    """
    defaults = {name: one.default for name, one in signature(type(model).__init__).parameters.items()}
    given = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    changed = [f"{name}={text}" for name, text in given.items() if text != repr(defaults.get(name))]
    whole = f"{type(model).__name__}({', '.join(changed)})"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", whole)


def versions() -> dict[str, str]:
    """Return the versions of pmdc, Python and the packages on which results depend."""
    from pmdc import __version__

    found = {"pmdc": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def repeat_section(found: Findings, seed: int) -> Element:
    """Return what it takes to repeat the fit and the report."""
    details: list[Element] = []
    if hasattr(found.model, "structure_"):
        details.append(paragraph(f"The graph: {describe_structure(found.model)}."))
    return section(
        "repeat",
        "Settings and versions",
        paragraph("The settings of the model, where they differ from the defaults:"),
        E("pre", clean(settings_of(found.model))),
        *details,
        paragraph(f"Made with {', '.join(f'{package} {number}' for package, number in versions().items())}."),
        note(
            "Rows drawn at random (for importance and prediction sets) depend on "
            f"random_state={seed}: the same model, table and versions give the same report."
        ),
    )
