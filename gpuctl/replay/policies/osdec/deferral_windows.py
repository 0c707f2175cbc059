"""Which jobs are deferrable where nothing marks them, and how long each may be put off."""

from __future__ import annotations

import math
import zlib

SHARE = 30
"""Per cent of jobs that are taken to be deferrable, of those that may be."""

DAY_S = 86_400
LONGEST_S = DAY_S
"""Of a deferrable job."""

WINDOW, LONGEST_WINDOW_S = 3, DAY_S
"""A start may be put off by so many times the run time, at most by so many seconds."""

SLOT_S = 1800


def hashed(job: str, share: float) -> bool:
    """Whether a job is among the share of all, in per cent, that a hash of its name takes for deferrable."""
    return zlib.crc32(f"defer:{job}".encode("utf-8", "surrogateescape")) % 100 < share


def slots_of(run_s: float, slot_s: float) -> int:
    """Slots that a run takes."""
    return max(1, math.ceil(run_s / slot_s))


def put_off(run_s: float, slot_s: float) -> int:
    """Slots by which a start may be put off."""
    return int(min(WINDOW * run_s, LONGEST_WINDOW_S) // slot_s)
