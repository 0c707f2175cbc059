"""Watchdogs that end a program which makes no progress: the stacks of its threads show where it hung."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format

if TYPE_CHECKING:
    from collections.abc import Sequence

_STACK = ('  File "', "Thread 0x", "  <", "Current thread 0x", "  ...")


def stalled(lines: Sequence[str], at: int) -> Ending:
    """Read the head of a dump of threads, and the dump."""
    last = at
    while last + 1 < len(lines) and (lines[last + 1].startswith(_STACK) or not lines[last + 1].strip()):
        last += 1
    return Ending(at, at, last, "hang")


FORMATS = (
    Format(
        "faulthandler",
        (rb"^Timeout \(\d{1,4}(?: days?, \d{1,3})?:\d\d:\d\d(?:\.\d{1,9})?\)!\r?$",),
        stalled,
        "Timeout (0:00:05)!",
        "docs.python.org/3/library/faulthandler.html: dump_traceback_later",
        (("hang", "root"),),
    ),
)
