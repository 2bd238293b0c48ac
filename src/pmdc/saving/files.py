"""Write fitted models to files and read them: `save` and `load`."""

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
"""The version of the format. It is raised when the plain data changes; `_read` then updates older data."""

_MEMBER = "pmdc.json"
_MAX_BYTES, _MAX_RATIO = 2**30, 200
"""Limit of the unpacked size of a file: so many bytes, and so many more for each byte of the file."""
_MAX_JSON_BYTES, _MAX_JSON_VALUES, _MAX_VALUES_RATIO, _MAX_JSON_PACKED = 2**24, 2**18, 8, 2**18
"""Limits of each JSON member, which takes far more memory once parsed: bytes (and `_MAX_RATIO` more for each byte of
the file), values (and so many more for each byte), and how many bytes of the file count. Models have 1 to 3 values for
each byte."""

_REMEDIES = {
    "callback": "set_params(callback=None)",
    "criterion": "set_params(criterion='auto')",
    "cv": "set_params(cv=5)",
    "loss": "set_params(loss='hamming'), and give the function to predict",
}
"""Remedies for parameters that cannot be saved; none of them changes a fitted model."""


def save(model: MultiDimensionalClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file that `load` reads.

    The file holds the fitted models, no code, and no rows of the table unless the estimator itself stores them, as
    nearest neighbours do. Writing is atomic: if it fails, an existing file is left unchanged.

    Parameters
    ----------
    model : GBNC, BinaryRelevance, ClassifierChain, ChainEnsemble or ClassPowerset
        A fitted classifier.
    path : str or path
        The file; its name usually ends in ``.skops``.

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
    >>> model = pmdc.GBNC(experts=None, max_parents=1).fit(data.X, data.Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pmdc.save(model, os.path.join(folder, "model.skops"))
    ...     again = pmdc.load(os.path.join(folder, "model.skops"))
    >>> bool((again.predict(data.X) == model.predict(data.X)).all(axis=None))
    True
    """
    if type(model) not in MODELS.values():
        raise TypeError(
            f"model is of type {type(model).__name__}: save takes {', '.join(MODELS)}. For a search, save its "
            "`best_estimator_`; for a pipeline, its last step."
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(f"this {type(model).__name__} is not fitted: call fit before save.") from None
    if is_special(Path(path)):
        raise ValueError(f"{path} is not a regular file: give the name of one.")
    archive = _archive(model)
    with replacing(path) as new:
        new.write_bytes(archive)


def load(path: str | os.PathLike[str], trusted: Sequence[str | type] = ()) -> Any:
    """Read a classifier from a file written by `save`.

    No code in the file is run. Types that are not known to be safe, such as your own estimators, are refused and listed
    in the error.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str or types
        Further types to trust, as listed in the error, because you know who wrote the file.

    Returns
    -------
    GBNC, BinaryRelevance, ClassifierChain, ChainEnsemble or ClassPowerset

    Raises
    ------
    ValueError
        If the file was not written by `save`, is damaged, was written by a later version, or holds types that are not
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
    try:
        _read_json(buffer)
    except ValueError as error:
        raise ValueError(f"the model is too large for a file: {error}.") from None
    return buffer.getvalue()


def _versions() -> dict[str, str]:
    import pmdc

    return {"pmdc": pmdc.__version__, "scikit-learn": version("scikit-learn"), "numpy": version("numpy")}


def _is_readable(values: list[Any], skops: Any) -> bool:
    """Return whether skops reads what it writes.

    It does not for lambdas and inner functions, of which it writes a name that cannot be looked up, nor for subclasses
    of str and numbers, such as members of an enumeration, of which it writes the plain value.
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
    """Return the error message for a value that cannot be saved."""
    if where in ("class_table_", "classes_"):
        return (
            f"{value!r}, a state of a class variable, is of type {type(value).__name__}, which cannot be saved. "
            "Convert the states to strings or numbers, and fit again."
        )
    if where.startswith("_") or where in ("estimator", "experts"):
        return (
            f"the estimator {value!r} cannot be saved. Fit again with another one; functions in it must be defined "
            "in a module (not a lambda)."
        )
    remedy = _REMEDIES.get(where, f"set_params({where}=...) with another value")
    return f"{where}={value!r} cannot be saved. Before saving, call {remedy}."


# Reading --------------------------------------------------------------------------------------------------------


def _type_names(trusted: Any) -> list[str]:
    is_list = isinstance(trusted, Iterable) and not isinstance(trusted, (str, type))
    listed: list[Any] = list(trusted) if is_list else [None]
    if not all(isinstance(one, str) or hasattr(one, "__name__") for one in listed):
        raise ValueError(f"trusted={trusted!r} must be a list of types or of their names, as listed in the error.")
    return [one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in listed]


def _read(file: BinaryIO, path: Path, trusted: list[str], skops: Any) -> Any:
    content = _content(file, path)
    found = content.get("format")
    if type(found) is not int or found < 1:
        raise ValueError(f"{path} has no format version: it was not written by pmdc.save.")
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
            f"{path} is damaged, or was not written by pmdc.save: {_reason(error)}.{_other_versions(content)}"
        ) from error
    if type(model) not in MODELS.values():
        raise ValueError(f"{path} does not hold a pmdc classifier: it was not written by pmdc.save.")
    return model


def _content(file: BinaryIO, path: Path) -> dict[str, Any]:
    """Return the versions and the plain data."""
    start = file.read(2)
    if not zipfile.is_zipfile(file):
        kinds = {b"": "is empty", b"PK": "is damaged: a part of it is missing"}
        pickled = "is a pickle, which is not read because it could run code"
        what = kinds.get(start, pickled if start[:1] == b"\x80" else "was not written by pmdc.save")
        raise ValueError(f"{path} {what}. Give a file written by pmdc.save.")
    try:
        return _read_json(file)
    except Exception as error:  # whatever zipfile and json raise for damaged input
        raise ValueError(f"{path} is damaged: {_reason(error)}. Give a file written by pmdc.save.") from error


def _read_json(file: BinaryIO) -> dict[str, Any]:
    """Parse the versions and the plain data of an archive whose members are within the limits."""
    packed = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if not {_MEMBER, "schema.json"} <= sizes.keys():
            raise ValueError("it is an archive that was not written by pmdc.save")
        _refuse_size(sum(sizes.values()), packed)
        names: list[Any] = []  # of members that skops will read; one named several times is read as often
        _parse(archive, "schema.json", packed, object_hook=lambda node: names.append(node.get("file")))
        _refuse_size(sum(sizes.values()) + sum(sizes[name] for name in names if name in sizes), packed)
        content = _parse(archive, _MEMBER, packed)
    if not isinstance(content, dict):
        raise ValueError(f"{_MEMBER} is not a JSON object")
    return content


def _refuse_size(size: int, packed: int) -> None:
    if size > _MAX_BYTES + _MAX_RATIO * packed:
        raise ValueError(f"its {packed:,} bytes expand to {size:,}, more than any model needs")


def _parse(archive: zipfile.ZipFile, member: str, packed: int, **options: Any) -> Any:
    """Parse a JSON member after bounding its bytes and the number of its values."""
    counted, size = min(packed, _MAX_JSON_PACKED), archive.getinfo(member).file_size
    if size > _MAX_JSON_BYTES + _MAX_RATIO * counted:
        raise ValueError(f"its {packed:,} bytes expand to {size:,} bytes of {member}, more than any model needs")
    text = archive.read(member)
    n_values = sum(map(text.count, (b",", b"[", b"{", b"\\")))  # escapes may hide JSON within JSON
    if n_values > _MAX_JSON_VALUES + _MAX_VALUES_RATIO * counted:
        raise ValueError(f"its {packed:,} bytes expand to {n_values:,} values of {member}, more than any model needs")
    return json.loads(text, **options)


def _rest(file: BinaryIO, path: Path, trusted: list[str], content: dict[str, Any], skops: Any) -> Any:
    """Return arrays and objects of other libraries."""
    from skops.io.exceptions import UntrustedTypesFoundException

    known = [*KNOWN_TYPES, *trusted]
    with warnings.catch_warnings(record=True) as caught:
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
                f"{path} is damaged, or was written with a later skops: {_reason(error)}.{_other_versions(content)}"
            ) from error
    other_version = [one for one in caught if issubclass(one.category, InconsistentVersionWarning)]
    for one in caught:
        if one not in other_version:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if other_version:
        warnings.warn(
            f"{path} holds estimators of scikit-learn {content.get('scikit-learn')}, and this is scikit-learn "
            f"{version('scikit-learn')}: they may fail or predict differently. Load the file with that version, or fit "
            "again with this one. (pmdc's own logistic regression and naive Bayes do not depend on it.)",
            UserWarning,
            stacklevel=4,
        )
    return rest


def _other_versions(content: dict[str, Any]) -> str:
    """Return a sentence about the versions a file was written with, if they differ from the installed ones."""
    here = _versions()
    other = [f"{name} {content.get(name)} (here {found})" for name, found in here.items() if content.get(name) != found]
    return f" It was written with {', '.join(other)}: try these versions." if other else ""


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
