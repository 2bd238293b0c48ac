"""Files with fitted models: `save` and `load`."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any, BinaryIO

from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from pmdc._support.atomic_files import is_special, replacing
from pmdc._support.extras import require
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.saving.consistency import check
from pmdc.saving.plain import MODELS, Reader, Writer
from pmdc.saving.trust import KNOWN_TYPES
from pmdc.saving.values import CannotSaveError

FORMAT = 1
"""The version of the format. A change of the plain data raises it; `_read` then brings older data up to date."""

_MEMBER = "pmdc.json"
_MOST_BYTES, _MOST_RATIO = 2**30, 200
"""An archive may unfold to so many bytes, and so many more for each of its own: no model needs as much."""

_REMEDIES = {
    "callback": "set_params(callback=None)",
    "criterion": "set_params(criterion='auto')",
    "cv": "set_params(cv=5)",
    "loss": "set_params(loss='hamming'), and give the function to predict",
}
"""What to do about parameters that cannot be saved; none of them changes a fitted model."""


def save(model: MultiDimensionalClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file that `load` reads.

    The file holds the fitted models, no rows of the table and no code. It is written beside its place and then put
    there: whatever happens, there is the whole new file or what was there before.

    Parameters
    ----------
    model : GBNC, BinaryRelevance, ClassifierChain, ChainEnsemble or ClassPowerset
        A fitted one.
    path : str or path
        The file. By custom its name ends in ``.skops``.

    Raises
    ------
    ValueError
        If something in the model cannot be saved, such as a lambda given as a parameter.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> import pmdc
    >>> from pmdc.datasets import make_network
    >>> data = make_network(200, random_state=0)
    >>> model = pmdc.GBNC(max_parents=1).fit(data.X, data.Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pmdc.save(model, os.path.join(folder, "model.skops"))
    ...     again = pmdc.load(os.path.join(folder, "model.skops"))
    >>> bool((again.predict(data.X) == model.predict(data.X)).all(axis=None))
    True
    """
    if type(model) not in MODELS.values():
        raise TypeError(
            f"model is of type {type(model).__name__}: save takes {', '.join(MODELS)}. Of a search save "
            "`best_estimator_`, of a pipeline its last step."
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(f"this {type(model).__name__} is not fitted: call fit before it is saved.") from None
    if is_special(Path(path)):
        raise ValueError(f"{path} is no regular file: give the name of one.")
    archive = _archive(model)
    with replacing(path) as new:
        new.write_bytes(archive)


def load(path: str | os.PathLike[str], trusted: Sequence[str | type] = ()) -> Any:
    """Read a classifier from a file that `save` has written.

    Nothing in the file is run. Types that are not known to be safe, such as those of your own estimators, are refused
    and listed.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str or types
        Names of types that you trust nevertheless, as the error lists them, because you know who wrote the file.

    Returns
    -------
    GBNC, BinaryRelevance, ClassifierChain, ChainEnsemble or ClassPowerset

    Raises
    ------
    ValueError
        If the file is not one of `save`, is damaged, was written by a later version, or holds types that are not
        trusted.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pmdc
    >>> pmdc.load("nowhere.skops")
    Traceback (most recent call last):
    ...
    FileNotFoundError: nowhere.skops does not exist.
    """
    path, names = Path(path), _type_names(trusted)
    skops = require("skops.io")
    try:
        with path.open("rb") as file:
            return _read(file, path, names, skops)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except OSError as error:
        raise type(error)(f"{path} cannot be read: {error.strerror or error}.") from None


# Writing --------------------------------------------------------------------------------------------------------


def _archive(model: MultiDimensionalClassifier) -> bytes:
    skops = require("skops.io")
    writer = Writer()
    try:
        plain = writer.write(model)
    except CannotSaveError as error:
        raise ValueError(f"the model cannot be saved: {error}.") from None
    objects = [value for _, value in writer.objects]
    if not _is_readable(objects, skops):
        where, value = next(pair for pair in writer.objects if not _is_readable([pair[1]], skops))
        raise ValueError(f"the model cannot be saved: {_complaint(where, value)}")
    rest = {"arrays": writer.arrays(), "objects": objects}
    buffer = io.BytesIO(skops.dumps(rest, compression=zipfile.ZIP_DEFLATED))
    content = {"format": FORMAT, **_versions(), "model": plain}
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MEMBER, json.dumps(content, separators=(",", ":")))
    return buffer.getvalue()


def _versions() -> dict[str, str]:
    import pmdc

    return {"pmdc": pmdc.__version__, "scikit-learn": version("scikit-learn"), "numpy": version("numpy")}


def _is_readable(values: list[Any], skops: Any) -> bool:
    """Whether skops reads again what it writes.

    Of a lambda it writes a name that nothing has, of an inner function one that another may have; of text and numbers
    of a type of their own, such as members of an enumeration, the mere text and numbers.
    """
    try:
        data = skops.dumps(values)
        again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    except Exception:
        return False
    return all(
        type(one) is type(other) and (one is other or not isinstance(one, FunctionType))
        for one, other in zip(values, again, strict=True)
    )


def _complaint(where: str, value: Any) -> str:
    """What cannot be saved, and what to do about it."""
    if where in ("class_table_", "classes_"):
        return (
            f"{value!r}, a state of a class variable, is of type {type(value).__name__}, which a file cannot hold. "
            "Make the states text or numbers, and fit again."
        )
    if where.startswith("_") or where == "estimator":
        return (
            f"a file cannot hold all of the estimator {value!r}. Fit again with another one; functions in it need a "
            "name in a module, which a lambda has not."
        )
    remedy = _REMEDIES.get(where, f"set_params({where}=...) with something that it can hold")
    return f"{where}={value!r} is nothing that a file can hold. Before saving, call {remedy}."


# Reading --------------------------------------------------------------------------------------------------------


def _type_names(trusted: Any) -> list[str]:
    is_list = isinstance(trusted, Iterable) and not isinstance(trusted, (str, type))
    listed: list[Any] = list(trusted) if is_list else [None]
    if not all(isinstance(one, str) or hasattr(one, "__name__") for one in listed):
        raise ValueError(f"trusted={trusted!r} must be a list of types or of their names, as the error lists them.")
    return [one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in listed]


def _read(file: BinaryIO, path: Path, trusted: list[str], skops: Any) -> Any:
    content = _content(file, path)
    found = content.get("format")
    if type(found) is not int or found < 1:
        raise ValueError(f"{path} has no version of the format: it was not written by pmdc.save.")
    if found > FORMAT:
        raise ValueError(
            f"{path} has format {found} and was written by pmdc {content.get('pmdc')}; this pmdc, "
            f"{_versions()['pmdc']}, reads formats up to {FORMAT}. Update pmdc."
        )
    rest = _rest(file, path, trusted, content, skops)
    try:
        model = Reader(rest["arrays"], rest["objects"]).read(content["model"])
        check(rest, model)
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(
            f"{path} is damaged, or was not written by pmdc.save: {_told(error)}.{_other_versions(content)}"
        ) from error
    if type(model) not in MODELS.values():
        raise ValueError(f"{path} holds no classifier of pmdc: it was not written by pmdc.save.")
    return model


def _content(file: BinaryIO, path: Path) -> dict[str, Any]:
    """The versions and the plain data."""
    start = file.read(2)
    if not zipfile.is_zipfile(file):
        kinds = {b"": "is empty", b"PK": "is damaged: a part of it is missing"}
        pickled = "is a pickle, which is not read because it could run code"
        what = kinds.get(start, pickled if start[:1] == b"\x80" else "was not written by pmdc.save")
        raise ValueError(f"{path} {what}. Give a file that pmdc.save has written.")
    try:
        with zipfile.ZipFile(file) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            known = {_MEMBER, "schema.json"} <= sizes.keys()
            size, packed = sum(sizes.values()), file.seek(0, os.SEEK_END)
            most = _MOST_BYTES + _MOST_RATIO * packed
            if known and size <= most:  # what is asked for several times is unfolded as often
                size += sum(sizes[name] for name in _asked_for(archive) if name in sizes)
            content = json.loads(archive.read(_MEMBER)) if known and size <= most else {}
    except Exception as error:
        raise ValueError(f"{path} is damaged: {_told(error)}. Give a file that pmdc.save has written.") from error
    if not known:
        raise ValueError(f"{path} is an archive that was not written by pmdc.save. Give one that was.")
    if not content or not isinstance(content, dict):
        raise ValueError(f"{path} is refused: it is damaged, or its {packed:,} bytes unfold to {size:,}.")
    return content


def _asked_for(archive: zipfile.ZipFile) -> list[Any]:
    """The members that the part of skops asks for."""
    names: list[Any] = []
    json.loads(archive.read("schema.json"), object_hook=lambda node: names.append(node.get("file")))
    return names


def _rest(file: BinaryIO, path: Path, trusted: list[str], content: dict[str, Any], skops: Any) -> Any:
    """Arrays and objects of other libraries."""
    from skops.io.exceptions import UntrustedTypesFoundException

    known = [*KNOWN_TYPES, *trusted]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            rest = skops.load(file, trusted=known)
        except UntrustedTypesFoundException:
            unknown = sorted(set(skops.get_untrusted_types(file=file)) - set(known))
            raise ValueError(
                f"{path} holds types that are not known to be safe: {', '.join(unknown)}. If you know who wrote the "
                f"file and trust it, load it with trusted={unknown}."
            ) from None
        except ImportError as error:
            raise ImportError(f"{path} needs a module that could not be imported: {error}.") from error
        except Exception as error:
            raise ValueError(
                f"{path} is damaged, or was written with a later skops: {_told(error)}.{_other_versions(content)}"
            ) from error
    other_version = [one for one in told if issubclass(one.category, InconsistentVersionWarning)]
    for one in told:
        if one not in other_version:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if other_version:
        warnings.warn(
            f"{path} holds estimators of scikit-learn {content.get('scikit-learn')}, and this is scikit-learn "
            f"{version('scikit-learn')}: they may fail or answer otherwise. Load the file with that version, or fit "
            "again with this one. (Models of pmdc's own logistic regression and naive Bayes do not depend on it.)",
            UserWarning,
            stacklevel=4,
        )
    return rest


def _other_versions(content: dict[str, Any]) -> str:
    """What a file that cannot be read was written with, where that is not what is here."""
    here = _versions()
    other = [f"{name} {content.get(name)} (here {found})" for name, found in here.items() if content.get(name) != found]
    return f" It was written with {', '.join(other)}: try these versions." if other else ""


def _told(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
