"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside `path` that takes its place at the end; if anything goes wrong, `path` stays as it was.

    Devices and pipes cannot be replaced and are written to as they are. Errors of the file system name the path and the
    remedy.
    """
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(_folder(path))
    if is_special(place):
        yield place
        return
    new = place.with_name(f".{place.name[:50]}.{uuid4().hex[:8]}{''.join(place.suffixes[-2:])}")
    try:
        new.touch(exist_ok=False)
        yield new
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        if place.exists():
            new.chmod(place.stat().st_mode & 0o777)
        new.replace(place)
    except OSError as error:
        raise _unwritable(path, place, error) from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _folder(path: str | os.PathLike[str]) -> str:
    return f"{path} is a folder: give the name of a file."


def _unwritable(path: str | os.PathLike[str], place: Path, error: OSError) -> OSError:
    if not place.parent.is_dir():
        message = f"there is no folder {place.parent}. Create it first."
    else:
        message = f"{error.strerror or error}. Choose a place in a folder that can be written to, with enough room."
    return type(error)(f"{path} cannot be written: {message}")


def is_special(path: Path) -> bool:
    """Whether it is a device or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_place(path: str | os.PathLike[str]) -> None:
    """Check, before any work, that `replacing` can write a file; raise OSError with the remedy if not."""
    place = Path(os.path.realpath(path))
    if is_special(place):
        return
    if not place.is_dir() and place.parent.is_dir():
        try:
            with tempfile.TemporaryFile(dir=place.parent):
                return
        except OSError as error:
            raise _unwritable(path, place, error) from None
    raise IsADirectoryError(_folder(path)) if place.is_dir() else _unwritable(path, place, FileNotFoundError())
