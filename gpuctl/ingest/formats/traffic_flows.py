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


BATCH_ROWS = 100_000
LEAST_US = 1000
"""Microseconds that a flow without a length is given."""

_SUMMED = """
INSERT INTO traffic BY NAME
WITH flows AS (
    SELECT job, epoch_us(ts) - round(seconds * 1e6)::BIGINT AS begin_us, epoch_us(ts) AS end_us, bytes_read
    FROM traffic WHERE cluster = $cluster AND source = -$source
), changes AS (
    SELECT job, begin_us AS us, bytes_read / (end_us - begin_us) AS rate, 1 AS flows FROM flows
    UNION ALL SELECT job, end_us, -bytes_read / (end_us - begin_us), -1 FROM flows
), steps AS (
    SELECT job, us, sum(rate) AS rate, sum(flows) AS flows FROM changes GROUP BY job, us
), stretches AS (
    SELECT job, us AS begin_us, lead(us) OVER later AS end_us,
           sum(rate) OVER later AS rate, sum(flows) OVER later AS flows
    FROM steps WINDOW later AS (PARTITION BY job ORDER BY us)
)
SELECT $cluster AS cluster, job, make_timestamptz(end_us) AS ts,
       CASE WHEN flows > 0 THEN greatest(rate, 0) * (end_us - begin_us) ELSE 0 END AS bytes_read,
       (end_us - begin_us) / 1e6 AS seconds, $source::INTEGER AS source
FROM stretches WHERE end_us IS NOT NULL
"""
"""Rates change only if a flow begins or ends; between two such times they are constant."""


class Flows:
    """Takes flows in any order; the store sums them, so that memory stays bounded however many there are.

    Until `finish` they lie in ``traffic`` under the negative number of their source, within its transaction.

    Args:
        sink: where they go.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rows: list[tuple[str, int, float, float]] = []

    def add(self, job: str, start: int, end: int, size: float) -> None:
        """Take one flow: its job, start and end (microseconds since 1970), and its bytes."""
        length = max(end - start, LEAST_US)
        self._rows.append((job, start + length, size, length / 1e6))
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def finish(self) -> None:
        """Sum them and write the rows."""
        self._flush()
        own: dict[str, object] = {"cluster": self._sink.cluster, "source": self._sink.source}
        self._sink.execute(_SUMMED, own)
        self._sink.execute("DELETE FROM traffic WHERE cluster = $cluster AND source = -$source", own)

    def _flush(self) -> None:
        import polars as pl

        if not self._rows:
            return
        schema = {"job": pl.String, "us": pl.Int64, "bytes_read": pl.Float64, "seconds": pl.Float64}
        rows = pl.DataFrame(self._rows, schema=schema, orient="row")
        ts = pl.col("us").cast(pl.Datetime("us", "UTC")).alias("ts")
        source = pl.lit(-self._sink.source, dtype=pl.Int32).alias("source")
        self._sink.insert("traffic", rows.select("job", ts, "bytes_read", "seconds", source))
        self._rows = []
