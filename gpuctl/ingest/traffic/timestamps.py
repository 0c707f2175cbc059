"""The line with the time that stands before each sample, as ``date`` prints it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.slurm.timestamps import LocalClock

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS = {10: 1_000_000, 9: 1_000_000, 13: 1000, 16: 1}
_NANOS = 19
_EPOCH = re.compile(r"(\d{9,10}|\d{13}|\d{16}|\d{19})(?:\.(\d{1,9}))?", re.ASCII)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


def reader(timezone: str) -> Callable[[str], int | None]:
    """Return what reads microseconds since 1970 out of a line, and None out of one that is not a time.

    A time is a number since 1970 (seconds with or without a fraction; whole milli-, micro- or nanoseconds) or
    ``2026-11-21T10:00:00``, with or without a fraction and an offset.

    Args:
        timezone: of times that carry no offset.
    """
    clock = LocalClock(timezone, in_order=True)

    def read(line: str) -> int | None:
        text = line.strip()
        epoch = _EPOCH.fullmatch(text)
        if epoch is not None:
            whole, size = int(epoch[1]), len(epoch[1])
            return whole // 1000 if size == _NANOS else whole * _UNITS[size] + _micros(epoch[2] if size < 11 else None)
        iso = _ISO.fullmatch(text)
        if iso is None:
            return None
        try:
            return clock.read(iso[1] + (iso[3] or "")) * 1_000_000 + _micros(iso[2])
        except (ValueError, OverflowError):
            return None

    return read


def _micros(fraction: str | None) -> int:
    return int((fraction or "0").ljust(6, "0")[:6])
