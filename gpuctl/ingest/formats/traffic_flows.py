"""Flows as CSV: ``start,end,dst,bytes`` or ``start,end,job_id,bytes``, and what ``nfdump -o csv`` prints.

The bytes of a flow are spread evenly over its time; if flows of one job overlap they are summed, so that the rows
of a job follow one another (one a stretch of time with the same flows, also if there are none). The job is
``job_id``, else the address that received the bytes: let the file hold flows from storage alone. Times are seconds
since 1970 or ``YYYY-MM-DD HH:MM:SS``, with or without fraction and offset; a flow without a length is given a
millisecond. The summary at the end of nfdump's output is not read. A row of the ledger is one flow. Flows of different
files are not summed: rows of two files may overlap.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traffic.csv_table import CsvTable, header_of
from gpuctl.ingest.traffic.flows import Flows
from gpuctl.ingest.traffic.samples import job_name, micros, number
from gpuctl.ingest.traffic.timestamps import reader

if TYPE_CHECKING:
    from collections.abc import Callable

ALIASES = {
    **{"ts": "start", "firstseen": "start", "te": "end", "lastseen": "end", "td": "duration"},
    **{"da": "dst", "dstaddr": "dst", "ibyt": "bytes"},
}
"""Names that nfdump 1.6 and 1.7 give to the columns."""
SUMMARY = b"Summary"
_SUMMARY_LINES = 2
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d*)?", re.ASCII)
_MOST_S = 1e9


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read flows into ``traffic``.

    Raises:
        InputError: the header has not the columns that are needed.
    """
    table = CsvTable(
        stream,
        ("start", "bytes"),
        ("end", "duration", "job_id", "dst"),
        what="a CSV of flows",
        aliases=ALIASES,
        others=False,
    )
    if not _whole(table.columns):
        raise InputError(
            "line 1 is not the header of a CSV of flows: expected start, end or duration, job_id or dst, and bytes",
            path=getattr(stream, "name", None),
            line=1,
        )
    flows, stamp, skip = Flows(sink), reader(sink.timezone), 0
    for line in table.rows():
        if line.data.strip() == SUMMARY:
            skip = _SUMMARY_LINES + 1
        if skip:
            skip -= 1
            continue
        sink.seen()
        try:
            flows.add(*_flow(table.cells(line), stamp))
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        sink.loaded()
    flows.finish()


def _flow(cells: dict[str, str], stamp: Callable[[str], int | None]) -> tuple[str, int, int, float]:
    """Job, start and end (microseconds since 1970) and bytes of a flow."""
    job = job_name(cells.get("job_id") or cells.get("dst", ""))
    start = _time(cells["start"], "start", stamp)
    end = _time(cells["end"], "end", stamp) if cells.get("end") else start
    if cells.get("duration"):
        # nfdump 1.6 cuts the times off after the second, but not the duration
        end = max(end, start + round(number(cells["duration"], "duration", 0.0, _MOST_S) * 1e6))
    if end < start:
        raise RowError("end is before start")
    if end - start > _MOST_S * 1e6:
        raise RowError(f"a flow of more than {_MOST_S:g} s")
    return job, start, end, number(cells["bytes"], "bytes")


def _time(text: str, name: str, stamp: Callable[[str], int | None]) -> int:
    if _NUMBER.fullmatch(text) and len(text.partition(".")[0]) <= 12:
        return micros(text, name)
    found = stamp(text)
    if found is None:
        raise RowError(f"{name} is neither seconds since 1970 nor YYYY-MM-DD HH:MM:SS")
    return found


def _whole(columns: frozenset[str] | set[str]) -> bool:
    return {"start", "bytes"} <= columns and bool(columns & {"end", "duration"}) and bool(columns & {"job_id", "dst"})


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header with the columns that are needed."""
    del name
    names = header_of(head)
    if not _whole({ALIASES.get(column, column) for column in names}):
        return None
    return "header of nfdump" if names & {"ts", "firstseen"} else "header of flows"


FORMAT = Format(
    name="traffic-flows",
    title="Traffic as flows, CSV (start,end,dst,bytes; nfdump -o csv)",
    fills=("traffic",),
    file_names=("flows.csv",),
    order=40,
    sniff=sniff,
    load=load,
)
