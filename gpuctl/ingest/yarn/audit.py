"""Reads the lines of RMAuditLogger and NMAuditLogger: ``KEY=value`` pairs parted by TABs, or by blanks in copies."""

from __future__ import annotations

import re

_BLANKS = re.compile(r"\s{2,}|\s(?=[A-Z]+=)")
_KEYS = frozenset(
    {
        *(
            "USER",
            "IP",
            "OPERATION",
            "TARGET",
            "RESULT",
            "APPID",
            "APPATTEMPTID",
            "CONTAINERID",
            "RESOURCE",
            "QUEUENAME",
        ),
        *("CALLERCONTEXT", "CALLERSIGNATURE", "DESCRIPTION", "PERMISSIONS", "NODELABEL", "CALLER", "CALLERCONTEXT"),
    }
)


def read_audit(text: str) -> dict[str, str]:
    """Read the message of an audit line.

    What does not begin with a known key belongs to the value before it: values hold blanks, diagnostics even ``=``.
    The first of several equal keys counts, since user text (diagnostics, caller context) stands at the end.
    """
    parts = text.split("\t") if "\tOPERATION=" in text else _BLANKS.split(text)
    fields: dict[str, str] = {}
    last = ""
    for part in parts:
        key, equals, value = part.strip().partition("=")
        if equals and key in _KEYS:
            last = key if key not in fields else ""
            fields.setdefault(key, value)
        elif last:
            fields[last] = f"{fields[last]} {part.strip()}"
    return fields
