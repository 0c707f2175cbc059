"""The offset of PBS's local stamps from UTC, learnt from records that have an instant in both."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

_QUARTER_S, _NEAR_S, _FARTHEST_S = 900, 90, 14 * 3600


class Clock:
    """The offset of the stamps of records, which carry no zone, from UTC.

    The stamp of the record of an end and the time ``end`` in it are the same instant: their difference, in quarters of
    an hour, holds until another record shows another one. Without such a record the zone is the sink's.
    """

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self._since: list[int] = []
        self._offsets: list[int] = []

    def learn(self, stamp: int, end: int) -> None:
        """Take a stamp, as if it were UTC, and the same instant in seconds from 1970."""
        offset = round((stamp - end) / _QUARTER_S) * _QUARTER_S
        if abs(stamp - end - offset) > _NEAR_S or abs(offset) > _FARTHEST_S:
            return
        if not self._since or (stamp >= self._since[-1] and offset != self._offsets[-1]):
            self._since.append(stamp)
            self._offsets.append(offset)

    def utc(self, stamp: int) -> int:
        """Return the seconds from 1970 of a stamp that is given as if it were UTC."""
        if self._since:
            return stamp - self._offsets[max(0, bisect_right(self._since, stamp) - 1)]
        local = datetime.fromtimestamp(stamp, UTC).replace(tzinfo=self._zone)
        return int(local.timestamp())
