"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
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
        raise IsADirectoryError(f"{path} is a folder: give the name of a file.")
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
        if not place.parent.is_dir():
            message = f"there is no folder {place.parent}. Create it first."
        else:
            message = f"{error.strerror or error}. Choose a place in a folder that can be written to, with enough room."
        raise type(error)(f"{path} cannot be written: {message}") from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def is_special(path: Path) -> bool:
    """Whether it is a device or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()
