"""Converts timestamps of a log without a time zone into UTC, and computes their differences."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuctl.core.errors import UsageError

MISSING = frozenset((None, "", "None"))
"""Values that sources write for an unknown time."""

LATEST_S = 7_258_118_400
"""2200-01-01 in seconds since 1970: later times are errors of the source."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1971, 2200)
_WITHIN_HOUR = {f":{minute:02}:{second:02}": 60 * minute + second for minute in range(60) for second in range(60)}

_LOCAL = re.compile(
    rb"(?:\d{4}-\d\d-\d\d[T ]|\d{4}/\d\d/\d\d |\b20\d{6} {1,4})\d\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"(?!\d|[.,]\d|Z| ?[+-]\d\d:?\d\d\b| ?(?:UTC|GMT|[PMCEA][SD]T|CES?T|WES?T|EES?T|BST|JST|KST|IST|MSK)\b)"
)
"""A time of day without an offset or zone name."""


def check_timezone(timezone: str | None, option: str = "--timezone") -> None:
    """Reject an unknown time zone.

    Raises:
        UsageError: there is none of that name.
    """
    try:
        if timezone is not None:
            ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"{option} {timezone!r}: no such time zone", hint="give an IANA name, e.g. America/Los_Angeles or UTC"
        ) from error


def has_local_times(text: bytes) -> bool:
    """Return whether there is a time whose zone must be known."""
    return _LOCAL.search(text) is not None


class Stamp(NamedTuple):
    """One time of a log whose clock was set to a local zone.

    Attributes:
        wall: the reading of the clock, in seconds since 1970-01-01 00:00:00 of that clock.
        utc: seconds since the epoch; of two readings the earlier one, unless ``second`` is true. A time that
            the clock skipped is counted on from the hour before the change.
        later: the later reading, if the clock showed this time twice; else None.
        second: whether the later reading was taken.
    """

    wall: int
    utc: int
    later: int | None = None
    second: bool = False


class WallClock:
    """Reads stamps ``YYYY-MM-DD HH:MM:SS`` of one zone.

    Args:
        timezone: IANA name.
    """

    def __init__(self, timezone: str) -> None:
        self._zone = ZoneInfo(timezone)
        self._hours: dict[str, tuple[int, int | None]] = {}

    def read(self, text: str) -> Stamp | None:
        """Return the stamp; None if the text is not one or its year is not in 1971 … 2199."""
        within = _WITHIN_HOUR.get(text[13:])
        if within is None:
            return None
        hour = self._hours.get(text[:13])
        if hour is None:
            hour = self._hour(text[:13])
            if hour is None:
                return None
            self._hours[text[:13]] = hour
        wall = hour[0] + within
        if hour[1] is not None:
            return Stamp(wall, wall - hour[1])
        first, second = self._offsets(wall)
        return Stamp(wall, wall - first, wall - second if second < first else None)

    def _hour(self, text: str) -> tuple[int, int | None] | None:
        """Return the wall seconds at the start of an hour, and its offset from UTC if constant within the hour."""
        try:
            start = datetime.strptime(text, "%Y-%m-%d %H").replace(tzinfo=UTC)
        except ValueError:
            return None
        if start.year not in _YEARS or start.strftime("%Y-%m-%d %H") != text:
            return None
        wall = int((start - _EPOCH).total_seconds())
        offsets = {*self._offsets(wall), *self._offsets(wall + 3599)}
        return wall, offsets.pop() if len(offsets) == 1 else None

    def _offsets(self, wall: int) -> tuple[int, int]:
        local = (_EPOCH + timedelta(seconds=wall)).replace(tzinfo=self._zone)
        first, second = local.utcoffset(), local.replace(fold=1).utcoffset()
        if first is None or second is None:  # a zone from zoneinfo always has an offset
            raise AssertionError
        return int(first.total_seconds()), int(second.total_seconds())


def settle(stamp: Stamp, before: Stamp | None) -> Stamp:
    """Choose between the two readings of a stamp by the stamp logged before it.

    The earlier reading stands, unless the stamp before it lies in the same doubled hour and would come after it.
    """
    if stamp.later is None or before is None or before.later is None or stamp.utc >= before.utc:
        return stamp
    return stamp._replace(utc=stamp.later, second=True) if stamp.later >= before.utc else stamp


def elapsed(start: Stamp, end: Stamp) -> int:
    """Return the seconds from one stamp to another; negative if the second one is earlier.

    This is the difference of the clock's readings, as publications on such logs compute it, except if a later reading
    was taken (`settle`): then it is the difference of the instants.
    """
    return end.utc - start.utc if start.second or end.second else end.wall - start.wall
