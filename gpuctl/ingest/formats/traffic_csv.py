"""Traffic of jobs over time as CSV: ``job_id,t,bytes``, or ``job_id,t,bytes_total`` with counters.

``t`` is in seconds since 1970, or since any origin, which then counts as 1970. ``bytes`` are those read since the
sample before of the same job; if the file is known to hold counters, ``bytes`` are since some start, as
``bytes_total`` always are. Samples of one job stand in the order of time; jobs may take turns. Other columns are not
read. A row of the ledger is one line after the header; blank lines do not count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traffic.csv_table import CsvTable, header_of
from gpuctl.ingest.traffic.samples import Feed, job_name, micros, name_of, number, warn_of_counters

if TYPE_CHECKING:
    from gpuctl.core.line_reader import Line

NEEDED = ("job_id", "t", "bytes")
_ALIASES = {"job": "job_id"}
_COUNTER = "bytes_total"


def load(stream: BinaryIO, sink: Sink, *, cumulative: bool = False) -> None:
    """Read samples into ``traffic``.

    Args:
        stream: the file.
        sink: takes the rows.
        cumulative: ``bytes`` are counters.

    Raises:
        InputError: the header has not the columns job_id, t and one of bytes and bytes_total.
    """
    table = CsvTable(stream, ("job_id", "t"), ("bytes", _COUNTER), what="a traffic CSV", aliases=_ALIASES)
    given = [name for name in (_COUNTER, "bytes") if name in table.columns]
    if len(given) != 1:
        raise InputError("line 1 is not the header of a traffic CSV: expected job_id,t and one of bytes, bytes_total")
    column = given[0]
    feed = Feed(sink, cumulative=cumulative or column == _COUNTER)

    def take(line: Line, cells: dict[str, str]) -> None:
        job, at, value = job_name(cells["job_id"]), micros(cells["t"], "t"), number(cells[column], column)
        feed.add(line.line_no, line.data, job, at, value)

    table.read(sink, take)
    feed.finish(name_of(stream))
    if not cumulative and column != _COUNTER:
        warn_of_counters(sink, name_of(stream))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header with the three columns."""
    del name
    names = {_ALIASES.get(column, column) for column in header_of(head)}
    if {"job_id", "t"} <= names and len(names & {"bytes", _COUNTER}) == 1:
        return f"header job_id,t,{'bytes' if 'bytes' in names else _COUNTER}"
    return None


FORMAT = Format(
    name="traffic-csv",
    title="Traffic of jobs over time, CSV (job_id,t,bytes; gpuctl profile record)",
    fills=("traffic",),
    file_names=("profile.csv",),
    order=40,
    zoned=True,
    sniff=sniff,
    load=load,
)


def with_counters() -> Format:
    """Return the format of files whose ``bytes`` are counters.

    It has a name of its own, so that a file that was read without takes the place of itself.
    """

    def read(stream: BinaryIO, sink: Sink) -> None:
        load(stream, sink, cumulative=True)

    return replace(FORMAT, name=f"{FORMAT.name}-counters", load=read)
