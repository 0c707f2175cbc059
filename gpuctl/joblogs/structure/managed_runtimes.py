"""Programs on the JVM, .NET and Node.js: a line that names the exception, and a stack below it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format, reason_of, single

if TYPE_CHECKING:
    from collections.abc import Sequence

_STACK = re.compile(r"\s{1,8}(?:at |\.\.\. \d{1,6} more)")
_CAUSED = re.compile(r"(?:Caused by: |\s{0,4}---> )")
_ABOVE = 6


def jvm(lines: Sequence[str], at: int) -> Ending:
    """Parse a stack of the JVM: the last `Caused by` is its origin."""
    last = place = at
    for number in range(at + 1, len(lines)):
        if _CAUSED.match(lines[number]):
            place = number
        elif not _STACK.match(lines[number]):
            break
        last = number
    return Ending(place, at, last, reason_of(lines[place]))


def node(lines: Sequence[str], at: int) -> Ending | None:
    """Parse a stack of Node.js from its first frame: the message precedes it, in one line or a few."""
    if at == 0 or _STACK.match(lines[at - 1]):
        return None
    place = at - 1
    for number in range(at - 1, max(at - _ABOVE, -1), -1):
        if re.match(r"(?:Uncaught )?(?:\[)?(?:[A-Za-z_$][\w$]{0,60}(?:Error|Exception)\b|Error\b)", lines[number]):
            place = number
            break
    last = at
    while last + 1 < len(lines) and _STACK.match(lines[last + 1]):
        last += 1
    return Ending(place, place, last, reason_of(lines[place]))


FORMATS = (
    Format(
        "jvm",
        (rb'^[^\n]{0,60}Exception in thread "[^"\n]{1,100}" ', rb"^Caught: (?:[a-z]\w{0,40}\.){1,8}[A-Z]\w{1,80}"),
        jvm,
        'Exception in thread "main" org.acme.Oops: no',
        "docs.oracle.com: java.lang.Throwable.printStackTrace",
    ),
    Format(
        "dotnet",
        (rb"^Unhandled exception(?:\.|:) ",),
        jvm,
        "Unhandled exception. System.Exception: no",
        "learn.microsoft.com: System.Exception.ToString",
    ),
    Format(
        "node",
        (rb"^ {4}at [^\n]{1,300}:\d{1,7}:\d{1,6}\)?\r?$",),
        node,
        "    at Object.<anonymous> (/jobs/run.js:3:7)",
        "nodejs.org/api/errors.html",
    ),
    Format(
        "node-throw",
        (rb"^Uncaught:?$|^node:internal/process/promises:\d{1,6}$",),
        single,
        "node:internal/process/promises:288",
        "nodejs.org/api/process.html: unhandledRejection",
    ),
)
CHAINS = tuple(form for form in FORMATS if form.read is jvm)
"""Formats whose endings are chains of exceptions, each caused by the next."""
