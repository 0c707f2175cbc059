"""The prefix of a line: timestamps, ranks, levels."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import tzinfo

_MOST_PARTS = 5
_STAMP = (
    r"(?P<y>\d{4})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[ T_](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
    r"(?:[.,](?P<f>\d{1,9}))?(?P<z>Z|[+-]\d\d:?\d\d)?"
)
_PARTS = re.compile(
    r"(?:"
    # torchrun: [rank3]: [default3]: ; MPICH's mpiexec -prepend-rank: [3] ; Open MPI's --tag-output: [1,3]<stderr>:
    r"\[(?:rank|default|RANK )?(?P<r1>\d{1,6})\](?::|(?=\s))"
    r"|\[\d{1,5},(?P<r2>\d{1,6})\]<(?:stderr|stdout|stddiag)>:"
    r"|\[(?:rank|default|RANK )\s?(?P<r3>\d{1,6})\]"
    # srun --label
    r"|(?P<r4>\d{1,6}):(?=\s)"
    r"|\((?:[A-Za-z_][\w.]{0,60} )?(?:pid|ip)=[^)\n]{1,60}\)"
    rf"|\[?{_STAMP}\]?(?::(?=\s))?"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d{1,9})?(?: {1,3}\d{1,9})? [^\s:\]]{1,80}:\d{1,6}\]"
    r"|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE)\]?:?(?=\s)"
    r"|[-|](?=\s)"
    # an ExceptionGroup's parts follow bars
    r"|\s{1,12}[|](?=\s)"
    r")\s{0,8}"
)


class Prefix(NamedTuple):
    """The prefix of a line.

    Attributes:
        end: start of the text.
        rank: rank of the process, if named.
        ts: timestamp in seconds since 1970; None if there is none with a date.
    """

    end: int
    rank: int | None
    ts: float | None


def prefix(line: str, zone: tzinfo = UTC) -> Prefix:
    """Find where the text of a line begins.

    Args:
        line: one line without its end; leading blanks belong to the text.
        zone: of timestamps without one.
    """
    at, rank, ts = 0, None, None
    for _ in range(_MOST_PARTS):
        match = _PARTS.match(line, at)
        if match is None:
            break
        if rank is None:
            found = match["r1"] or match["r2"] or match["r3"] or match["r4"]
            rank = int(found) if found else None
        if ts is None and match["y"]:
            ts = _seconds(match, zone)
        at = match.end()
    # frames of a traceback are indented by two blanks, which belong to the text
    while at > 0 and line[at - 1] in " \t" and at < len(line) and _frame(line, at):
        at -= 1
    return Prefix(at, rank, ts)


def _frame(line: str, at: int) -> bool:
    return line.startswith('File "', at)


def _seconds(match: re.Match[str], zone: tzinfo) -> float | None:
    try:
        year, month, day, hour, minute, second = (int(match[name]) for name in ("y", "mo", "d", "h", "mi", "s"))
        micro = int((match["f"] or "0")[:6].ljust(6, "0"))
        offset = _offset(match["z"]) if match["z"] else zone
        return datetime(year, month, day, hour, minute, second, micro, offset).timestamp()
    except (ValueError, OverflowError):
        return None


def _offset(text: str) -> tzinfo:
    found = datetime.strptime("00" + (text if text == "Z" else text.replace(":", "")), "%y%z").tzinfo
    return UTC if found is None else found
