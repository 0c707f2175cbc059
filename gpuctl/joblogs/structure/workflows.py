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
_TASK = re.compile(r"(?:TASK|PLAY|RUNNING HANDLER) \[")
_TASK_LINES = 40


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


def build_failed(lines: Sequence[str], at: int) -> Ending | None:
    """Read the message below the words that a build failed."""
    place = next((n for n in range(at + 1, min(at + 3, len(lines))) if lines[n].strip()), None)
    if place is None or _PLACE.match(lines[place]):
        return None
    text = lines[place].strip()
    reason = reason_of(text)
    return Ending(place, at, place, reason, texts=(text, f"ERROR: {text}")) if reason else None


def ignored(lines: Sequence[str], at: int) -> Ending:
    """Read the word that the failure above does not count: of its paragraphs up to the head of its task."""
    first = at
    while first > 0 and at - first < _TASK_LINES and not _TASK.match(lines[first]):
        first -= 1
    return Ending(at, first, at, None, ignored=True)


IGNORED = Format(
    "failure-ignored",
    (rb"^\.\.\.ignoring\r?$",),
    ignored,
    "...ignoring",
    "docs.ansible.com: ignore_errors",
)
"""Its line is harmless by itself."""

FORMATS = (
    Format(
        "build-failed",
        (rb"^BUILD FAILED\r?$", rb"^\* What went wrong:\r?$"),
        build_failed,
        "BUILD FAILED",
        "ant.apache.org: DefaultLogger; docs.gradle.org: build failures",
    ),
    IGNORED,
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
