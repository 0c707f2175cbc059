"""Which days (UTC) of a live source were fetched into a folder, and when: a run that stopped goes on from there."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTLE_S = 3600
"""A day is whole this many seconds after its end: sources hand records on late after they were cut off."""
_FETCH_TIMES = ".fetched.json"


class FetchedDays:
    """The days of a folder.

    Args:
        folder: belongs to one cluster; need not exist.
        source: its name after ``--from``.
        there: whether the files of a day are still in the folder.

    Raises:
        InputError: the record is damaged.
    """

    def __init__(self, folder: Path, source: str, there: Callable[[date], bool]) -> None:
        self._folder, self._source = folder, source
        self.times: dict[str, float] = {}
        """When each day was requested, in seconds since 1970."""
        if (folder / _FETCH_TIMES).exists():
            try:
                found = json.loads(read_whole(folder / _FETCH_TIMES))
                times = {date.fromisoformat(day): float(at) for day, at in found.items()}
            except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                raise InputError(
                    "damaged", path=str(folder / _FETCH_TIMES), hint=f"remove {folder}: it is fetched again"
                ) from error
            self.times = {day.isoformat(): at for day, at in times.items() if there(day)}

    def wanted(self, since: date | None, until: date | None, now: float) -> list[date]:
        """All days to be in the folder after a fetch, in order: the days requested, and incomplete days.

        Raises:
            UsageError: `since` is after `until`, or is None and the folder has nothing yet.
        """
        today = datetime.fromtimestamp(now, UTC).date()
        half = [day for day in map(date.fromisoformat, self.times) if not self._whole(day)]
        if since is None:
            if not self.times:
                raise UsageError(f"--from {self._source} needs a first day", hint="--since YYYY-MM-DD")
            since = min(half, default=date.fromisoformat(max(self.times)) + timedelta(days=1))
        last = min(until or today, today)
        if since > last and not half:
            raise UsageError(f"no day from --since {since} until {last} (UTC) to fetch")
        days = {since + timedelta(days=number) for number in range((last - since).days + 1)}
        return sorted(days.union(half))

    def due(self, wanted: list[date]) -> list[date]:
        """Those of some days that were not requested, or not yet over when they were."""
        return [day for day in wanted if not self._whole(day)]

    def note(self, day: date, at: float) -> None:
        """Record that a day was requested at a time (seconds since 1970)."""
        self.times[day.isoformat()] = at
        whole = self._folder / _FETCH_TIMES
        part = whole.with_name(_FETCH_TIMES + ".part")
        part.write_text(json.dumps(self.times, indent=0, sort_keys=True) + "\n", "utf-8")
        part.replace(whole)

    def _whole(self, day: date) -> bool:
        return self.times.get(day.isoformat(), 0) >= end_of(day) + SETTLE_S


def end_of(day: date) -> float:
    """When a day (UTC) ends, in seconds since 1970."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + 86400
