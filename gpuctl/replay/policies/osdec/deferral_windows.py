"""Default choice of deferrable jobs if none are marked, and how long each may be put off."""

from __future__ import annotations

import math
import zlib

SHARE = 30
"""Percentage of eligible jobs taken as deferrable."""

DAY_S = 86_400
LONGEST_S = DAY_S
"""Longest run time of a deferrable job."""

WINDOW, LONGEST_WINDOW_S = 3, DAY_S
"""A start may be put off by this multiple of the run time, at most by this many seconds."""

SLOT_S = 1800


def hashed(job: str, share: float) -> bool:
    """Whether the hash of a job's name is within the deferrable share, in percent."""
    return zlib.crc32(f"defer:{job}".encode("utf-8", "surrogateescape")) % 100 < share


def slots_of(run_s: float, slot_s: float) -> int:
    """Number of slots of a run."""
    return max(1, math.ceil(run_s / slot_s))


def put_off(run_s: float, slot_s: float) -> int:
    """Slots by which a start may be put off."""
    return int(min(WINDOW * run_s, LONGEST_WINDOW_S) // slot_s)
