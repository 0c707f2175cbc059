"""Lines of ``sacctmgr dump``: accounts and users with their options."""

from __future__ import annotations

import re

from gpuctl.core.line_reader import RowError

_LINE = re.compile(r"(Cluster|Parent|Account|User)\s*-\s*'([^']*)'(?::(.*))?", re.IGNORECASE)

_OPTION = re.compile(r"(?<!\w)(\w++)=(?:'([^']*)'|([^:]*))(?::|$)")


def read_line(text: str) -> tuple[str, str, dict[str, str]]:
    """Parse one line: its kind in lower case, the name, and its options with keys in lower case.

    Raises:
        RowError: the line is not one of these.
    """
    line = _LINE.fullmatch(text.strip())
    if line is None:
        raise RowError("neither Cluster - 'name' nor Parent, Account or User")
    options = {m[1].lower(): m[2] if m[2] is not None else m[3] for m in _OPTION.finditer(line[3] or "")}
    return line[1].lower(), checked(line[2]) or "", options


def checked(text: str | None) -> str | None:
    """Return a name; None for an empty one.

    Raises:
        RowError: it has unprintable characters.
    """
    if text and not text.isprintable():
        raise RowError("an unprintable name")
    return text or None
