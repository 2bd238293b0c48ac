"""Load model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pmdc.cli.running import BadInput
from pmdc.table_files import SUFFIXES

_TREES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")
"""Types in the files of ``--estimator forest`` and ``boosting``: they hold numbers that are used as memory offsets."""


def load_model(path: Path, trust: bool) -> Any:
    """Load a model; `trust` allows trees, and nothing else."""
    import pmdc

    if not path.exists():
        raise BadInput(f"there is no file {path}: a model is written by pmdc fit ... -o {path}.")
    if path.is_dir():
        raise BadInput(f"{path} is a folder: give a model file in it.")
    try:
        model = pmdc.load(path, trusted=_TREES if trust else ())
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, TypeError) as error:
        if not trust and any(name in str(error) for name in _TREES):
            raise BadInput(
                f"{path} holds trees; a malicious file of trees can crash the program. If you trust its author, add "
                "--trust."
            ) from None
        message = str(error).replace("pmdc.save", "pmdc fit").replace("load it with", "load it in Python with")
        is_table = path.name.lower().endswith(SUFFIXES)
        raise BadInput(message + is_table * " The model comes first, then the table.") from None
    if not hasattr(model, "class_table_") or not hasattr(model, "predict_joint"):
        raise BadInput(f"{path} holds a {type(model).__name__}, which is not a model of pmdc.")
    return model


def written_by(path: Path) -> str:
    """Return the version of pmdc that wrote a model file."""
    from pmdc.saving.files import _content

    with path.open("rb") as file:
        return str(_content(file, path)["pmdc"])
