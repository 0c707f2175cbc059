"""The layout of sacct's text: its fields, their order and its delimiter."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.slurm.tacc_fields import NAMES as TACC

RECIPE = (
    "TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -X -D -P --delimiter=$'\\x1f' -S 2026-01-01 -E now "
    "-o JobIDRaw,JobID,User,Account,Partition,QOS,State,ExitCode,DerivedExitCode,Submit,Eligible,Start,End,Suspended,"
    "Timelimit,NNodes,NCPUS,ReqMem,ReqTRES,AllocTRES,NodeList,Priority,Flags,Reason,Constraints,JobName"
)
"""The export that loses nothing."""

XDMOD = (
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS"),
    *("ReqMem", "ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
)
"""The order in which Open XDMoD has sacct print its logs; until 20.11 ReqGRES stood in the place of ReqTRES."""

USED = frozenset(
    {
        *("JobIDRaw", "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "Cluster"),
        *("ExitCode", "DerivedExitCode", "Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Suspended"),
        *("Timelimit", "TimelimitRaw", "NNodes", "AllocNodes", "ReqNodes", "NCPUS", "AllocCPUS", "ReqCPUS"),
        *("ReqTRES", "AllocTRES", "AllocGRES", "ReqGRES", "ReqMem", "NodeList", "Reason", "Priority", "Flags"),
        *("Restarts", "CPUTimeRAW", "Constraints", "SubmitLine", "AdminComment", "Comment"),
        *("TotalCPU", "NTasks", "MaxRSS", "TRESUsageInTot"),
    }
)
"""The fields that show something the store has a place for."""

_TEXT = """
AssocID AveCPU AveCPUFreq BlockID ConsumedEnergy ConsumedEnergyRaw Container CPUTime
CPUTimeRAW DBIndex Exclusive Extra FailedNode GID Group Layout Licenses McsLabel MinCPU MinCPUNode MinCPUTask
OriginalSLUID OverSubscribe Planned PlannedCPU PlannedCPURAW QOSRAW QOSREQ ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax
ReqCPUFreqMin ReqReservation Reservation ReservationId Reserved ResvCPU ResvCPURAW SegmentSize SLUID StdErr StdIn StdOut
SystemComment SystemCPU UID UserCPU WCKey WCKeyID WorkDir
"""
_MEASURED = ("DiskRead", "DiskWrite", "Pages", "RSS", "VMSize")
_USAGE = ("Ave", "Max", "MaxNode", "MaxTask", "Min", "MinNode", "MinTask", "Tot")
FIELDS = frozenset(
    {
        *USED,
        *_TEXT.split(),
        *(f"Ave{what}" for what in _MEASURED),
        *(f"Max{what}{of}" for what in _MEASURED for of in ("", "Node", "Task")),
        *(f"TRESUsage{way}{how}" for way in ("In", "Out") for how in _USAGE),
    }
)
"""Every field that a sacct from 15.08 to 26.05 prints."""
SINCE_26_05 = frozenset({"Exclusive", "OriginalSLUID"})
"""Fields that only releases have which show exit codes of 128 and more as they are."""

UNKNOWN_CONSTRAINTS = "not known"
"""Stands in ``Constraints`` if a record does not show whether it has any: not empty, so not "none"."""
_BY_LOWER = {name.lower(): name for name in FIELDS}
_FIRST_NAME = re.compile(rb'"?([A-Za-z]+)"?([^A-Za-z"]+)')
_LONGEST_DELIMITER = 8
_DELIMITERS = (b"\x1f", b"|", b"\t", b";", b",")
_JOB = re.compile(rb"\d{1,20}(_(\d{1,20}|\[[\d,%:.-]{0,4096}\]?))?(\+\d{1,9})?(\.\w+)?")
_STATE = re.compile(
    rb"(PENDING|RUNNING|SUSPENDED|COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE"
    rb"|OUT_OF_MEMORY|REQUEUED|RESIZING|REVOKED)( by \d+)?"
)
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([+-]\d{4})?|1\d{9}|Unknown|None")
_DASHES = re.compile(rb"-{2,}( +-{2,})+")


@dataclass(frozen=True)
class Layout:
    """The columns of a text.

    Attributes:
        fields: canonical names in their order; the name in lower case of a column that is none of sacct's, and the
            empty name for what follows a delimiter at the line's end (``sacct -p``).
        delimiter: what stands between columns.
        header: the header line; empty if the text has none.
        quoted: whether cells stand in double quotes.
    """

    fields: tuple[str, ...]
    delimiter: bytes
    header: bytes = b""
    quoted: bool = False

    def unknown(self) -> list[str]:
        """Columns that no release of sacct has."""
        return [name for name in self.fields if name and name not in FIELDS]

    def used(self) -> dict[str, int]:
        """The columns that show something and where they stand; the first one of each name."""
        return {name: self.fields.index(name) for name in self.fields if name in USED}


def canonical(name: str) -> str:
    """Return a field's name as sacct writes it in headers; the name in lower case if it has no such field."""
    bare = name.strip().partition("%")[0]
    return _BY_LOWER.get(bare.lower(), bare.lower())


def from_header(line: bytes) -> Layout | None:
    """Read the header of a text that sacct printed with ``-P`` or ``-p``, or that went through a CSV writer.

    Returns:
        None if this is none: it needs a job id, one more field that gpuctl uses, and most of its names must be
        sacct's.
    """
    first = _FIRST_NAME.match(line)
    if first is None or (first[2].isspace() and first[2] != b"\t"):
        return None
    delimiter = first[2]
    quoted = line.startswith(b'"')
    names = [part.strip().strip(b'"') for part in line.split(delimiter)]
    # squeue writes its names in capitals
    if b"JOBID" in names:
        return None
    fields = tuple(canonical(name.decode("utf-8", "replace")) for name in names)
    if not {"JobID", "JobIDRaw"} & set(fields) or len(USED.intersection(fields)) < 2:
        return None
    if 2 * len(FIELDS.intersection(fields)) <= len([name for name in fields if name]):
        return None
    return Layout(fields, delimiter, line, quoted)


def delimiter_of(text: str) -> bytes:
    r"""Read a delimiter as users write it: ``~``, ``\t``, ``\x1f``, ``||``.

    Raises:
        UsageError: it is empty, has more than 8 characters, or could be part of a number or a word.
    """
    escapes = {"t": "\t", "\\": "\\"}
    plain = re.sub(r"\\(x[0-9a-fA-F]{2}|[t\\])", lambda m: escapes.get(m[1]) or chr(int(m[1][1:], 16)), text)
    if not 1 <= len(plain) <= _LONGEST_DELIMITER or any(each.isalnum() or each in "\r\n-_+:." for each in plain):
        raise UsageError(
            f"--delimiter {text}: expected 1 to {_LONGEST_DELIMITER} characters that stand in no word or time",
            hint="for example '|', '~', '\\t' or '\\x1f'",
        )
    return plain.encode()


def from_columns(columns: str, line: bytes, delimiter: bytes | None = None) -> Layout:
    """Lay out a text without a header by the names of its columns.

    Args:
        columns: names as given to ``sacct -o``, commas between.
        line: its first line, to find the delimiter.
        delimiter: what stands between columns, if the user states so.

    Raises:
        InputError: the columns have no job id, or the line has another number of columns.
    """
    fields = named_fields(columns)
    several = (delimiter,) if delimiter is not None else _DELIMITERS
    for each in several:
        count = line.count(each) + 1
        if count == len(fields):
            return Layout(fields, each)
        if count == len(fields) + 1 and line.rstrip().endswith(each):
            return Layout((*fields, ""), each)
    free = next((each for each in several if line.count(each) + 1 > len(fields)), None)
    if free is None:
        raise InputError(
            f"the first line has fewer columns than the {len(fields)} named",
            line=1,
            hint="name every column, in order; --delimiter sets the delimiter",
        )
    return Layout(fields, free)


def named_fields(columns: str) -> tuple[str, ...]:
    """Read the names of columns, commas between.

    Raises:
        InputError: one is not a field of sacct, or the job id is not among them.
    """
    fields = tuple(canonical(name) for name in columns.split(","))
    unknown = [name for name in fields if name not in FIELDS]
    if unknown or not {"JobID", "JobIDRaw"} & set(fields):
        what = f"{unknown[0]!r} is not a field of sacct" if unknown else "neither JobID nor JobIDRaw is among them"
        raise InputError(f"columns {columns}: {what}", hint="name them as sacct -o does: JobIDRaw,User,State,Submit,…")
    return fields


def fits(columns: str, line: bytes, delimiter: bytes | None = None) -> bool:
    """Check whether a line may be a record of these columns: as many cells, and a job id where one should be."""
    fields = named_fields(columns)
    at = min(fields.index(name) for name in ("JobID", "JobIDRaw") if name in fields)
    several = (delimiter,) if delimiter is not None else _DELIMITERS
    cells = next((line.split(d) for d in several if line.count(d) + 1 >= len(fields)), [])
    return len(cells) >= len(fields) and _JOB.fullmatch(cells[at]) is not None


def from_rows(head: bytes) -> Layout | None:
    """Recognise the order of Open XDMoD in a text without a header."""
    rows = [line.split(b"|", len(XDMOD) - 1) for line in head.split(b"\n")[:20] if line.strip()]
    if head and not head.endswith(b"\n") and len(rows) > 1:
        rows.pop()
    if not rows or not all(_is_xdmod(row) for row in rows):
        return None
    place = XDMOD.index("ReqTRES")
    older = any(row[place].startswith(b"gpu") for row in rows) and not any(b"=" in row[place] for row in rows)
    return Layout(tuple("ReqGRES" if older and name == "ReqTRES" else name for name in XDMOD), b"|")


def _is_xdmod(row: list[bytes]) -> bool:
    at = {name: i for i, name in enumerate(XDMOD)}
    return (
        len(row) == len(XDMOD)
        and _JOB.fullmatch(row[at["JobID"]]) is not None
        and _JOB.fullmatch(row[at["JobIDRaw"]]) is not None
        and all(_TIME.fullmatch(row[at[name]]) for name in ("Submit", "Eligible", "Start", "End"))
        and b":" in row[at["ExitCode"]]
        and all(row[at[name]].isdigit() or not row[at[name]] for name in ("GID", "UID", "NNodes", "NCPUS", "ReqCPUS"))
        and row[at["State"]][:2].isalpha()
    )


def is_headless_record(line: bytes) -> bool:
    """Check whether a line is a record of sacct: a job id first, and further on a state and two times."""
    for delimiter in _DELIMITERS:
        cells = line.split(delimiter)
        if len(cells) >= 5 and _JOB.fullmatch(cells[0]):
            times = sum(_TIME.fullmatch(cell) is not None for cell in cells)
            return times >= 2 and any(_STATE.fullmatch(cell) for cell in cells)
    return False


def is_table(head: bytes) -> bool:
    """Check whether a text is sacct's table for people: names in columns, with a line of dashes under them."""
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 3)
    if len(lines) < 2 or not _DASHES.fullmatch(lines[1].strip()):
        return False
    names = lines[0].split()
    known = [name for name in names if canonical(name.decode("utf-8", "replace")) in FIELDS]
    return (
        bool({b"JobID", b"JobIDRaw"} & set(names))
        and 2 * len(known) > len(names)
        and names != [name.encode() for name in TACC]
    )


def split_quoted(text: str, delimiter: str) -> list[str] | None:
    """Split a line of CSV in which cells may stand in double quotes; None if a quote is not closed."""
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), None)
    except csv.Error:
        return None
