"""Tracebacks of Python: chained ones, groups of exceptions, and those that were ignored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_FRAME = re.compile(r'\s{2,8}File "([^"]{1,400})", line \d+')
_BETWEEN = re.compile(r"\s|\[Previous line repeated|$")
_NAMED = re.compile(r"(?:[^\W\d]\w{0,80}\.){0,10}[^\W\d]\w{0,80}(?:\[[^\]]{1,60}\])?(?::(?: |$)|$)")
_IGNORED = re.compile(
    r"Exception ignored (?:in|on|while)|Error in sys\.excepthook|Exception in callback|exception calling callback"
    r"|Error in atexit\._run_exitfuncs|Task (?:exception was never retrieved|was destroyed)|Future exception was never"
    r"|--- Logging error ---|Exception in thread",
    re.IGNORECASE,
)
"""What stands before a traceback that did not end the main thread."""
_ABOVE = 3


def read(lines: Sequence[str], at: int) -> Ending | None:
    """Read a traceback from its first line to the line that names the exception, whatever its class is called."""
    frame = None
    place = at + 1
    while place < len(lines):
        found = _FRAME.match(lines[place])
        if found:
            frame = found[1]
        elif not _BETWEEN.match(lines[place]):
            break
        place += 1
    if place >= len(lines) or not _NAMED.match(lines[place]):
        return None
    above = lines[max(at - _ABOVE, 0) : at]
    ignored = next((n for n, line in enumerate(above, max(at - _ABOVE, 0)) if _IGNORED.search(line)), None)
    return Ending(
        place,
        at if ignored is None else ignored,
        place,
        reason_of(" ".join(lines[place : place + 2])),
        frame,
        ignored=ignored is not None,
    )


FORMAT = Format(
    "python",
    (rb"^[^\n]{0,80}Traceback \(most recent call last\):",),
    read,
    "Traceback (most recent call last):",
    "docs.python.org/3/library/traceback.html",
)
