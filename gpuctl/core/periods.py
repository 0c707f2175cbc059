"""Periods as users write them: ``2024-02``, ``2024Q1``, ``2024``, ``2024-W07``, ``2024-02-29``, or ``FROM..TO``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from datetime import tzinfo

_FORMS = "2024-02, 2024Q1, 2024-W07, 2024-02-29, 2024, or 2024-01-01..2024-02-15 (the last day is included)"
_NAMED = re.compile(
    r"(?P<year>[0-9]{4})(?:-?Q(?P<quarter>[1-4])|-W(?P<week>[0-9]{2})|-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?)?",
    re.ASCII,
)


@dataclass(frozen=True)
class Period:
    """A stretch of time.

    Attributes:
        label: as the user wrote it.
        start: its first instant, with a zone.
        end: the first instant after it.
    """

    label: str
    start: datetime
    end: datetime


def parse_period(text: str, zone: tzinfo) -> Period:
    """Return the period that a user means; days begin at midnight of a zone.

    Raises:
        UsageError: it is none, or empty.
    """
    first, dots, last = text.strip().partition("..")
    start = _bounds(first, text)[0]
    end = _bounds(last if dots else first, text)[1]
    if end <= start:
        raise UsageError(f"period {text!r}: it ends before it begins", hint=f"expected {_FORMS}")
    begins, ends = (datetime.combine(day, time(), zone) for day in (start, end))
    return Period(text.strip(), begins, ends)


def _bounds(text: str, whole: str) -> tuple[date, date]:
    """Return the first day of a named period, and the day after its last."""
    found = _NAMED.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        year = int(found["year"])
        if found["quarter"]:
            return _months(year, 3 * int(found["quarter"]) - 2, 3)
        if found["week"]:
            monday = date.fromisocalendar(year, int(found["week"]), 1)
            return monday, monday + timedelta(days=7)
        if found["day"]:
            day = date(year, int(found["month"]), int(found["day"]))
            return day, day + timedelta(days=1)
        return _months(year, int(found["month"]), 1) if found["month"] else _months(year, 1, 12)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"period {whole[:100]!r}: not a period", hint=f"expected {_FORMS}") from error


def _months(year: int, month: int, count: int) -> tuple[date, date]:
    after = month - 1 + count
    return date(year, month, 1), date(year + after // 12, after % 12 + 1, 1)
