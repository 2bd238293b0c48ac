"""Model files, as the commands read and write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pmdc.cli.running import BadInput

_TREES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")
"""What ``--estimator forest`` and ``boosting`` leave in a file: numbers that are taken for places in memory."""


def load_model(path: Path, trust: bool) -> Any:
    """The model in a file; what is no model is told in the words of the user.

    `trust` lets in trees, and nothing else.
    """
    import pmdc

    if not path.exists():
        raise BadInput(f"there is no file {path}: a model is written by pmdc fit ... -o {path}.")
    if path.is_dir():
        raise BadInput(f"{path} is a folder: name a model file in it.")
    try:
        model = pmdc.load(path, trusted=_TREES if trust else ())
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, TypeError) as error:
        if not trust and any(name in str(error) for name in _TREES):
            raise BadInput(
                f"{path} holds trees, with which a file that was made with malice can crash the program. If you know "
                "who wrote it, add --trust."
            ) from None
        raise BadInput(
            str(error).replace("pmdc.save", "pmdc fit").replace("load it with", "load it in Python with")
        ) from None
    if not hasattr(model, "class_table_") or not hasattr(model, "predict_joint"):
        raise BadInput(f"{path} holds a {type(model).__name__}, which is no model of pmdc.")
    return model


def written_by(path: Path) -> str:
    """The version of pmdc that has written a model file."""
    from pmdc.saving.files import _content

    with path.open("rb") as file:
        return str(_content(file, path)["pmdc"])


def save_model(model: Any, path: Path) -> None:
    """Write a model; a file that is there already is replaced as a whole or stays."""
    import pmdc

    pmdc.save(model, path)
