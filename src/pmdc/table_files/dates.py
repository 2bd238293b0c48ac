"""Dates and times written as text: what a cell means, and the order of day and month of a column.

Recognised are 2024-01-31 (also with / or .), 31.01.2024 and 01/31/2024, 31 Jan 2024 and Jan 31, 2024, alone or with a
time of day, and times of day alone: 14:05, 2:05 PM, 14:05:30.5. A time zone may follow; the time on the clock counts.
Years have four digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Literal, NamedTuple

Order = Literal["dmy", "mdy"]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t|tember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d\d?)(?P=sign)(?P<day>\d\d?)",
        r"(?P<first>\d\d?)(?P<sign>[-/.])(?P<second>\d\d?)(?P=sign)(?P<year>\d{4})",
        rf"(?P<day>\d\d?)\.?[\s-]?{_NAME}[\s-]?(?P<year>\d{{4}})",
        rf"{_NAME}\s?(?P<day>\d\d?),?\s(?P<year>\d{{4}})",
    )
]
_CLOCK = re.compile(
    r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s?(?P<half>[ap])\.?m\.?)?(?:\s?(?:z|utc|gmt|[+-]\d\d(?::?\d\d)?))?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(?<=\d)t(?=\d)|,?\s+(?=\d\d?:)", re.IGNORECASE)
"""What separates a date from its time."""


class Written(NamedTuple):
    """A date as it is written; the month is None where only the column tells which of the two numbers is the month."""

    year: int
    month: int | None
    day: int
    clock: time
    numbers: tuple[int, int] = (0, 0)
    dotted: bool = False

    def value(self, order: Order) -> datetime | None:
        """Return the date; None if there is no such day."""
        month, day = self.month, self.day
        if month is None:
            day, month = self.numbers if order == "dmy" else self.numbers[::-1]
        try:
            return datetime.combine(date(self.year, month, day), self.clock)
        except ValueError:
            return None


def read_date(text: str) -> Written | time | None:
    """Read a date or a time of day; None if it is neither."""
    clock = _read_clock(text)
    if clock is not None:
        return clock
    head, *tail = _BETWEEN.split(text, maxsplit=1)
    clock = _read_clock(tail[0]) if tail else time()
    found = next(filter(None, (pattern.fullmatch(head) for pattern in _DATES)), None)
    if found is None or clock is None:
        return None
    parts = found.groupdict()
    if "first" in parts:
        return Written(
            int(parts["year"]), None, 0, clock, (int(parts["first"]), int(parts["second"])), parts["sign"] == "."
        )
    month = int(parts["month"]) if "month" in parts else _MONTHS.index(parts["name"][:3].lower()) + 1
    written = Written(int(parts["year"]), month, int(parts["day"]), clock)
    return None if written.value("dmy") is None else written


def _read_clock(text: str) -> time | None:
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "p")
    micro = int((found["fraction"] or "0")[:6].ljust(6, "0"))
    try:
        return time(hour, int(found["minute"]), int(found["second"] or 0), micro)
    except ValueError:
        return None


def order_of(column: Iterable[Written]) -> Order | None:
    """Return the order of day and month of a column of dates; None if its dates do not tell.

    A number above 12 decides; then full stops (31.12.2024); then a number that is 1 in all dates beside one that
    varies: these are the first days of months.
    """
    pairs = [written.numbers for written in column if written.month is None]
    if not pairs:
        return "dmy"  # nothing to decide
    first, second = ({pair[i] for pair in pairs} for i in (0, 1))
    if max(first) > 12 or max(second) > 12:
        return "dmy" if max(first) > 12 else "mdy"
    if all(written.dotted for written in column if written.month is None):
        return "dmy"
    if first == {1} != second:
        return "dmy"
    if second == {1} != first:
        return "mdy"
    return None
