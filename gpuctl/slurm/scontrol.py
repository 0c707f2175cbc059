"""Records of ``Key=Value`` words as scontrol prints them, one per line (``-o``) or one per block of lines.

Such output is unquoted: a value may hold blanks, line ends and even ``Other=words``. The first occurrence of a key
counts, since scontrol prints free text (Reason, Comment) last.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.line_reader import GLUED, LINE_LIMIT, RowError, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

TOO_LONG = f"record of more than {LINE_LIMIT // 2**20} MiB"
NO_RECORD = "line outside of any record"
_BEGINS = {
    b"NodeName=": re.compile(rb"NodeName=\S+ (?:Arch|CoresPerSocket)="),
    b"PartitionName=": re.compile(rb"PartitionName=\S+(?: AllowGroups=|$)"),
    b"JobId=": re.compile(rb"JobId=\d{1,20} (?:UserId|ArrayJobId|HetJobId|PackJobId|JobName)="),
}
"""How records begin, longer than their first key, so that no name or comment holds it by chance."""
_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:-]*)=")


class Record(NamedTuple):
    """One record.

    Attributes:
        line_no: its first line, 1-based.
        text: its lines, joined by line ends.
        fault: why it cannot be parsed, or None.
    """

    line_no: int
    text: str
    fault: str | None


def records(stream: BinaryIO, first_key: bytes, ends: re.Pattern[bytes] | None = None) -> Iterator[Record]:
    """Yield every record that begins with a key at the start of a line, and any text before the first one.

    A record that begins later in a line has a fault, as does the preceding text in that line, because the end of the
    earlier record is uncertain. Bytes that are not UTF-8 (names, comments) are replaced: the parsed part of a record is
    ASCII.

    Args:
        stream: decompressed bytes.
        first_key: ``b"NodeName="``, ``b"PartitionName="`` or ``b"JobId="``.
        ends: pattern of a record's last line, if known; later text does not belong to it.
    """
    lines: list[str] = []
    begins = _BEGINS[first_key]
    start, size, fault = 0, 0, None
    for line in numbered_lines(stream):
        opens = line.data.startswith(first_key)
        inside = [at for at in (m.start() for m in begins.finditer(line.data)) if at or not opens]
        if lines and (opens or inside):
            yield Record(start, "\n".join(lines), fault)
            lines = []
        if inside:
            cuts = [0, *(inside if opens else inside[1:]), len(line.data)]
            for at, end in pairwise(cuts):
                yield Record(line.line_no, line.data[at:end].decode("utf-8", "replace"), line.fault or GLUED)
            continue
        if not lines:
            if not line.data.strip():
                continue
            start, size, fault = line.line_no, 0, None if opens else NO_RECORD
        size += len(line.data)
        fault = fault or line.fault or (TOO_LONG if size > LINE_LIMIT else None)
        if size <= LINE_LIMIT or not lines:
            lines.append(line.data.decode("utf-8", "replace"))
        if ends is not None and fault is None and ends.search(line.data):
            yield Record(start, "\n".join(lines), None)
            lines = []
    if lines:
        yield Record(start, "\n".join(lines), fault)


def fields(text: str) -> dict[str, str]:
    """Split ``Key=Value Key=Value`` into its fields; the first occurrence of a key counts."""
    marks = list(_KEY.finditer(text))
    found: dict[str, str] = {}
    for mark, after in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
        found.setdefault(mark[1], text[mark.end() : after].strip())
    return found


def whole(text: str | None, most: int = 2**31 - 1) -> int | None:
    """Return an integer of at most ``most``; None if it is missing.

    Raises:
        RowError: it is something else.
    """
    if text is None or text in {"", "(null)", "N/A", "n/a"}:
        return None
    if not re.fullmatch(r"\d{1,19}", text, re.ASCII) or int(text) > most:
        raise RowError(f"a number is not a whole number up to {most}")
    return int(text)


def name_of(text: str | None, what: str) -> str:
    """Return a printable name.

    Raises:
        RowError: it is missing or unprintable.
    """
    if not text or not text.isprintable() or text in {"(null)", "N/A"} or len(text) > 255:
        raise RowError(f"no printable {what}")
    return text


_SETTING = re.compile(r"([A-Za-z][\w.\[\]]*)\s*=\s?(.*)")


def setting_of(line: str) -> tuple[str, str] | None:
    """Return name and value of a line ``Name = value``; None if it is not a setting."""
    found = _SETTING.fullmatch(line)
    return (found[1], found[2]) if found else None
