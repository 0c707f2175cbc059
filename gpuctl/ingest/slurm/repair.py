"""Puts records together that a stray delimiter has shifted or a line end has broken, if only one way fits.

``sacct -P`` escapes nothing, so a name or command line may hold the delimiter and line ends. Most fields can hold
neither and have a shape; a record is repaired if the shapes leave one place for every field that gpuctl uses, and
where what a name or command line would take up is no other record: a torn line runs on into the next one.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from gpuctl.ingest.slurm.layout import UNKNOWN_CONSTRAINTS, USED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.ingest.slurm.layout import Layout

MOST_LINES = 64
"""Lines that one record may have."""
MOST_EXTRA = 32
"""Delimiters that one record may have too many."""
WORK = 50_000_000
"""Comparisons of a field with a shape that one source is worth, about a minute; past that they are rejected."""

AMBIGUOUS = "stray delimiter or line end: more than one way to read the record"
_LONGEST = 1 << 16

_FREE = frozenset(
    {
        *("JobName", "SubmitLine", "Comment", "AdminComment", "SystemComment", "Extra", "WorkDir", "StdErr", "StdIn"),
        *("StdOut", "Constraints", "Container"),
    }
)
"""Fields in which anything may stand."""
_AMBIGUOUS_VALUES = {"Constraints": UNKNOWN_CONSTRAINTS, "Comment": ""}
"""Values of fields that may have more than one place: of constraints it matters whether there are any; a comment is
read only for summaries of GPUs, which have one place."""
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[+-]\d{4}|Z)?|\d{1,12}|Unknown|None|N/A|"
_DURATION = r"(?:(?:\d+-)?\d+:)?\d+:\d+(?:\.\d+)?|UNLIMITED|Partition_Limit|INVALID|"
_NUMBER = r"\d*"
_TRES = r"(?:[\w/:.+-]+=[^,=|]*(?:,[\w/:.+-]+=[^,=|]*)*)?"
_SHAPES = {
    "JobIDRaw": r"\d{1,20}(?:\.\w+)?",
    "JobID": r"\d{1,20}(?:_(?:\d{1,20}|\[[\d,%:.-]{0,4096}\]?))?(?:\+\d{1,9})?(?:\.\w+)?",
    "State": r"[A-Z_]{4,}\+?(?: by \d+)?",
    "Reason": r"[\w ,:/()\[\].-]*",
    "NodeList": r"None assigned|[\w.,\[\]-]*",
    "Layout": r"(?:[A-Z][A-Za-z,]*)?",
    "ReqMem": r"(?:\d+(?:\.\d+)?[KMGTPE]?[cn]?)?",
    **dict.fromkeys(("ExitCode", "DerivedExitCode"), r"(?:\d+:\d+)?"),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), _TIME),
    **dict.fromkeys(
        ("Elapsed", "Timelimit", "Suspended", "CPUTime", "TotalCPU", "UserCPU", "SystemCPU", "Planned", "Reserved"),
        _DURATION,
    ),
    **dict.fromkeys(
        ("NNodes", "NCPUS", "AllocNodes", "AllocCPUS", "ReqCPUS", "ReqNodes", "Priority", "Restarts", "UID", "GID"),
        _NUMBER,
    ),
    **dict.fromkeys(("ElapsedRaw", "CPUTimeRAW", "AssocID", "DBIndex", "NTasks", "QOSRAW"), _NUMBER),
    **dict.fromkeys(("ReqTRES", "AllocTRES"), _TRES),
    "": "",
}
_RECORD_VALUE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[+-]\d{4}|Z)?|(?:PENDING|RUNNING|SUSPENDED|COMPLETED|CANCELLED|FAILED|TIMEOUT"
    r"|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE|OUT_OF_MEMORY|REQUEUED|RESIZING|REVOKED)(?: by \d+)?",
    re.ASCII,
)
"""A cell that is a time or a state: more likely the piece of a torn record than of a name."""
_PLAIN = re.compile(r"\d{1,20}(?:\.\w+)?", re.ASCII)
_WORD = r"\S*"
"""The shape of all other fields: no blanks."""
_OTHER = r"[^\s|]*?"
"""The same if it is followed by a delimiter."""


class RecordRepair:
    """Repairs the records of one text.

    Args:
        layout: the text's columns.
    """

    def __init__(self, layout: Layout) -> None:
        self._width = len(layout.fields)
        self._delimiter = layout.delimiter.decode("latin-1")
        self._shapes = [
            None if name in _FREE else re.compile(_SHAPES.get(name, _WORD), re.ASCII) for name in layout.fields
        ]
        self._used = [i for i, name in enumerate(layout.fields) if name in USED]
        self._spare = {i: _AMBIGUOUS_VALUES[name] for i, name in enumerate(layout.fields) if name in _AMBIGUOUS_VALUES}
        self._work = 0
        self._begins = self._beginning(layout.fields)
        self._counts = layout.delimiter == b"\x1f"
        """No name holds this one: the number of delimiters alone shows where a record ends."""
        self.swallows_following_lines = self._begins is not None and layout.fields[-1] in _FREE
        """Whether a line that begins no record can only be more of the last field of the record before it."""
        self._ids = [layout.fields.index(name) for name in ("JobIDRaw", "JobID") if name in layout.fields]
        mark = re.escape(self._delimiter)
        self._twice = re.compile(rf"(\d{{1,20}}(?:\.\w+)?){mark}\1{mark}", re.ASCII) if max(self._ids) == 1 else None
        """How a record begins where both ids come first."""

    def begins(self, line: str) -> bool:
        """Check whether a line may be the first one of a record."""
        return self._begins is None or self._begins.match(line) is not None

    def group(self, lines: Sequence[str]) -> tuple[int, list[str] | None]:
        """Join the first of some damaged lines with the lines that belong to it.

        Args:
            lines: lines that have not as many fields as there are columns.

        Returns:
            (how many lines the record takes up, its fields); (0, None) if no number of lines gives a record, and
            fields None if several readings of it do, or if it runs on into another record.
        """
        if not self.begins(lines[0]):
            return 0, None
        text = lines[0]
        for count in range(1, min(len(lines), MOST_LINES) + 1):
            if count > 1:
                if self._begins is not None and not self._counts and self.begins(lines[count - 1]):
                    return 0, None
                text += "\n" + lines[count - 1]
            if len(text) > _LONGEST:
                return 0, None
            fields = text.split(self._delimiter)
            extra = len(fields) - self._width
            if extra > MOST_EXTRA:
                return 0, None
            if extra >= 0:
                ways, record = self._fit(fields, extra)
                if ways and extra and (self._counts or self._last_start(fields) is not None or self._work > WORK):
                    return count, None
                if ways:
                    return count, record
        return 0, None

    def split_records(self, text: str) -> list[str]:
        """Split a line into the whole records that begin in it, and the text before them.

        Returns:
            the line alone if none begins behind its beginning.
        """
        fields = text.split(self._delimiter)
        parts: list[str] = []
        while (at := self._last_start(fields)) is not None:
            head = self._head(fields[at:])
            parts.append(self._delimiter.join([fields[at][head:], *fields[at + 1 :]]))
            fields = [*fields[:at], fields[at][:head]]
        return [self._delimiter.join(fields), *reversed(parts)]

    def looks_like_record(self, cells: Sequence[str]) -> bool:
        """Check whether text taken for part of a name or command line has the start or values of a record."""
        if any(_RECORD_VALUE.fullmatch(cell) for cell in cells):
            return True
        return self._twice is not None and self._twice.search(self._delimiter.join(cells)) is not None

    def is_fragment(self, line: str) -> bool:
        """Check whether a line that fits no record is a fragment of a record rather than of a command line."""
        cells = line.split(self._delimiter)
        if self.looks_like_record(cells) or re.fullmatch(_SHAPES["JobID"], line, re.ASCII):
            return True
        # a command line's pipes have blanks around them
        return len(cells) > 1 and (self._counts or sum(" " not in cell for cell in cells) > 1)

    def _last_start(self, fields: list[str]) -> int | None:
        """The last field that ends with the beginning of a whole record; None if there is none but the first."""
        last = len(fields) - self._width
        return next((at for at in range(last, max(0, last - MOST_EXTRA), -1) if self._starts(fields[at:])), None)

    def _starts(self, fields: list[str]) -> bool:
        """Whether these fields are a record, except for what stands before it in the first one."""
        head = self._head(fields)
        if head is None:
            return False
        whole = [fields[0][head:], *fields[1:]]
        ids = [whole[i] for i in self._ids]
        if any(not re.fullmatch(_SHAPES["JobID"], cell, re.ASCII) for cell in ids) or contradict(*ids):
            return False
        return self._fit(whole, len(whole) - self._width)[0]

    def _head(self, fields: list[str]) -> int | None:
        """Where in the first of these fields a record may begin."""
        if 0 not in self._ids:
            return 0
        cell, other = fields[0], fields[max(self._ids)]
        if len(self._ids) > 1 and _PLAIN.fullmatch(other):
            return len(cell) - len(other) if cell.endswith(other) else None
        found = re.search(rf"(?:{_SHAPES['JobID']})\Z", cell, re.ASCII)
        return None if found is None else found.start()

    def _beginning(self, names: Sequence[str]) -> re.Pattern[str] | None:
        """What a record's first line begins with, as far as its fields have shapes; None if no job id is first."""
        if names[0] not in {"JobIDRaw", "JobID"}:
            return None
        fixed = list(takewhile(lambda name: name not in _FREE, names[:-1]))
        parts = [f"(?:{_SHAPES.get(name, _OTHER)}){re.escape(self._delimiter)}" for name in fixed]
        return re.compile("".join(parts), re.ASCII)

    def _fit(self, fields: list[str], extra: int) -> tuple[bool, list[str] | None]:
        """Find how the fields fill the columns.

        Column i begins at field i + d, with d the fields that earlier columns took too many; sets of such d are bits.

        Returns:
            (whether they do at all, the columns if every one in use has one place).
        """
        self._work += self._width * (extra + 1)
        if self._work > WORK:
            return False, None
        every = (1 << extra + 1) - 1
        reach = [1]
        for i, shape in enumerate(self._shapes):
            here = reach[-1]
            if shape is None:
                reach.append(every & ~((here & -here) - 1))
            else:
                reach.append(sum(1 << d for d in range(extra + 1) if here >> d & 1 and shape.fullmatch(fields[i + d])))
            if not reach[-1]:
                return False, None
        left = 1 << extra
        if not reach[-1] & left:
            return False, None
        alive = [left]
        for i in range(self._width - 1, -1, -1):
            if self._shapes[i] is None:
                left = reach[i] & (1 << left.bit_length()) - 1
            else:
                # what reached here through a shape comes on with the same d
                left &= reach[i]
            alive.append(left)
        alive.reverse()
        return True, None if self._swallows(fields, alive) else self._columns(fields, alive)

    def _swallows(self, fields: list[str], alive: list[int]) -> bool:
        """Whether a name or a command line would take up what describes a record."""
        for i, shape in enumerate(self._shapes):
            if shape is None:
                start, end = i + (alive[i] & -alive[i]).bit_length() - 1, i + alive[i + 1].bit_length()
                if end - start > 1 and self.looks_like_record(fields[start:end]):
                    return True
        return False

    def _columns(self, fields: list[str], alive: list[int]) -> list[str] | None:
        columns = [""] * self._width
        for i in self._used:
            if alive[i].bit_count() > 1 or alive[i + 1].bit_count() > 1:
                if i not in self._spare:
                    return None
                columns[i] = self._spare[i]
                continue
            start, end = i + alive[i].bit_length() - 1, i + alive[i + 1].bit_length()
            columns[i] = self._delimiter.join(fields[start:end])
        return columns


def contradict(*ids: str) -> bool:
    """Whether the two ids of a record, each a plain number (of a step too), are not the same."""
    return len(set(ids)) > 1 and all(_PLAIN.fullmatch(one) for one in ids)
