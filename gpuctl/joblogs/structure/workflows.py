"""Workflow engines that report a failed step by a class of error, with the cause in the lines below."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD = re.compile(r"([A-Z]\w{2,60}(?:Error|Exception))(?: in (?:rule|file|line|checkpoint|module) [^\n]{1,300})?:$")
_PLACE = re.compile(r"\s*(?:File [\"'][^\n]{1,300}|\[|Shutting down|Look below|Complete log)")
_MOST = 6


def placed_error(lines: Sequence[str], at: int) -> Ending | None:
    """Read an error that names its class and place in one line, and says what it is in the next ones."""
    head = _HEAD.match(lines[at].strip())
    if head is None:
        return None
    words, last = [], at
    while last + 1 < len(lines) and last - at < _MOST and lines[last + 1].strip() and not _PLACE.match(lines[last + 1]):
        last += 1
        words.append(lines[last].strip())
    text = f"{head[1]}: {' '.join(words)}"
    reason = reason_of(text)
    # what only tells of an exit code says nothing of why
    return Ending(at, at, last, reason, texts=(text, *words) if reason else ()) if words else None


FORMATS = (
    Format(
        "placed-error",
        (
            rb"^[A-Z]\w{2,60}(?:Error|Exception) in (?:rule|file|line|checkpoint|module) [^\n]{1,300}:\r?$",
            rb"^(?:Workflow|Rule)(?:Error|Exception):\r?$",
        ),
        placed_error,
        "MissingInputException in rule score in file /jobs/Snakefile, line 3:",
        "snakemake.readthedocs.io: snakemake/exceptions.py",
    ),
)
