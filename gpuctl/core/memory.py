"""Returns unused memory of the process to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

MANY_JOBS = 10_000
"""Number of jobs from which it pays to return unused memory."""

_DONTNEED = 4
"""``MADV_DONTNEED`` of Linux."""


def give_back() -> None:
    """Return freed memory that the C library keeps for later use: tens of MB after millions of rows.

    Without glibc this does nothing.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def give_back_library(name: str) -> None:
    """Release the pages of a library that is not needed for now; the system reads them again on use.

    Only unmodified pages of the library's file: its code and constants. Except on Linux this does nothing.

    Args:
        name: prefix of the name of the library's file.
    """
    with suppress(AttributeError, OSError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for begin, end in _unchanged(name):
            advise(begin, end - begin, _DONTNEED)


def _unchanged(name: str) -> list[tuple[int, int]]:
    """Return the address ranges of the library in memory, except pages that are writable or were written."""
    found: list[tuple[int, int]] = []
    place = None
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        first, *rest = line.split(maxsplit=5)
        if not first.endswith(":"):
            mine = len(rest) == 5 and rest[4].rpartition("/")[2].startswith(name) and "w" not in rest[0]
            place = first if mine else None
        elif place is not None and first == "Anonymous:" and rest[0] == "0":
            begin, _, end = place.partition("-")
            found.append((int(begin, 16), int(end, 16)))
    return found
