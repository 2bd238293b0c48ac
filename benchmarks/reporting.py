"""What the benchmarks share: how they tell their results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def publish(lines: Iterable[str], out: Path | None) -> None:
    """Print lines as they come and, if wanted, write them all to a file."""
    told = []
    for line in lines:
        print(line, flush=True)
        told.append(line)
    if out:
        out.write_text("\n".join(told), encoding="utf-8")


def peak_memory() -> float:
    """Peak of this process in MB. Unlike that of `getrusage`, it does not begin with the peak of the parent process."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
