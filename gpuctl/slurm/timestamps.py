"""Times in Slurm's output except accounting: local without a zone, with an offset, or seconds since 1970."""

from __future__ import annotations

import re
from datetime import datetime

from gpuctl.core.local_time import Stamp, WallClock, settle

NEVER = frozenset({"", "Unknown", "None", "N/A", "(null)", "NONE"})
"""What Slurm writes in place of a time that it does not have."""
_EPOCHS = range(10**8, 7 * 10**9)
_EPOCH = re.compile(r"\d{9,10}", re.ASCII)
_ZONELESS = len("2026-11-20T21:04:37")
_OFFSET = re.compile(r"[+-]\d\d:?\d\d|Z")


class LocalClock:
    """Reads stamps of one zone.

    Args:
        timezone: IANA name, for stamps without a zone.
        in_order: stamps are chronological: of the two readings in a repeated hour, use the one that does not go back.
            Else always the first.
    """

    def __init__(self, timezone: str, *, in_order: bool = False) -> None:
        self._wall = WallClock(timezone)
        self._in_order = in_order
        self._before: Stamp | None = None

    def read(self, text: str) -> int:
        """Return seconds since the epoch (UTC) of ``2026-11-20T21:04:37``, with or without an offset, or of an epoch.

        Raises:
            ValueError: it is not such a time.
        """
        if _EPOCH.fullmatch(text) and int(text) in _EPOCHS:
            return int(text)
        if _OFFSET.fullmatch(text[19:]):
            return int(datetime.fromisoformat(text).timestamp())
        stamp = self._wall.read(f"{text[:10]} {text[11:]}") if text[10:11] in {"T", " "} else None
        if stamp is None:
            raise ValueError("time is neither YYYY-MM-DDTHH:MM:SS nor seconds since 1970")
        if self._in_order:
            stamp = settle(stamp, self._before)
            self._before = stamp
        return stamp.utc

    def read_or_none(self, text: str) -> int | None:
        """Return the same; None for Unknown, None and the like.

        Raises:
            ValueError: it is neither a time nor such a word.
        """
        return None if text in NEVER else self.read(text)

    def readings(self, text: str) -> tuple[int, ...]:
        """Return every possible reading of a text: two in a repeated hour, none if it is not a time."""
        try:
            first = self.read_or_none(text)
        except ValueError:
            return ()
        stamp = self._wall.read(f"{text[:10]} {text[11:]}") if len(text) == _ZONELESS else None
        later = stamp.later if stamp is not None else None
        return tuple(each for each in (first, later) if each is not None)
