"""The tutorial runs from beginning to end.

``python tests/test_tutorial.py --write`` runs docs/tutorial.ipynb and stores its output.
"""

import argparse
import os
import tempfile
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"


def executed(folder):
    """The notebook, run in a folder."""
    import nbclient
    import nbformat

    notebook = nbformat.read(PATH, as_version=4)
    place = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=600, coalesce_streams=True, resources=place).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the time of each run
    return notebook


def texts(notebook):
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))


def test_the_tutorial_runs(tmp_path, monkeypatch):
    for name in ("nbclient", "ipykernel", "matplotlib", "pandas", "skops", "statsmodels"):
        pytest.importorskip(name, reason=f"the tutorial needs {name}: pip install '.[test]'")
    import pmdc

    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(pmdc.__file__).parents[1]))  # the same code as here, in any folder
    notebook = executed(tmp_path)
    for cell in notebook.cells:
        assert not any(output.get("name") == "stderr" for output in cell.get("outputs", [])), cell.outputs
    shown = texts(notebook)
    assert "the same predictions: True" in shown
    assert "more than chance" in shown
    costs = [int(line.rpartition(" ")[2]) for line in shown.splitlines() if "total cost" in line]
    assert len(costs) == 3
    assert costs[0] > costs[1] > costs[2]  # decisions for the costs are cheaper, those that know more are the cheapest
    assert not list(tmp_path.iterdir())


def test_the_stored_output_is_complete_and_small():
    nbformat = pytest.importorskip("nbformat", reason="the tutorial needs nbformat: pip install '.[test]'")
    assert PATH.stat().st_size < 400_000
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    assert not any(output.output_type == "error" for cell in notebook.cells for output in cell.get("outputs", []))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    pictures = [cell for cell in code if ".plot(" in cell.source or "plot_calibration(" in cell.source]
    for cell in pictures:
        assert any("image/png" in output.get("data", {}) for output in cell.outputs), cell.source
    assert len(pictures) == 5


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    import nbformat

    os.environ.pop("MPLBACKEND", None)
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(executed(folder), PATH)
