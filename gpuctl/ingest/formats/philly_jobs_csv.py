"""The job table that simulators derive from the Philly trace: ``timestamp,duration,num_gpus,gpu_time,cluster``.

Only this family of headers is read: ``timestamp`` is a local wall-clock time, ``duration`` the seconds that a job's
attempts ran in all, ``cluster`` its virtual cluster. The order of the columns is free, ``gpu_time`` may be absent,
further columns are ignored. Tables with other names or with seconds from a start are other formats. The source
has no job ids, attempts, nodes or states. A row of the ledger is one line after the header; blank lines are no
rows, and rows that are equal are all kept.
"""

from __future__ import annotations

import math
import re
from itertools import compress
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import Line, RowError, numbered_lines
from gpuctl.core.local_time import Stamp, WallClock
from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import JOBS, JobRow, add_queues, new_jobs
from gpuctl.ingest.read.csv_header import split

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDED = ("timestamp", "duration", "num_gpus", "cluster")
PRODUCT = "gpu_time"

_BATCH = 20_000
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_MOST_SECONDS = 1e10
_MOST_GPUS = 1e6


class Table:
    """Reads the data lines of one file.

    Args:
        header: the column names.
        clock: reads the stamps.

    Raises:
        InputError: a needed column is absent, or a name occurs twice among those that are read.
    """

    def __init__(self, header: list[str], clock: WallClock) -> None:
        absent = [name for name in NEEDED if name not in header]
        if absent or any(header.count(name) > 1 for name in (*NEEDED, PRODUCT)):
            raise InputError(
                f"line 1 is not the header of a Philly job table; expected the columns {', '.join(NEEDED)} once each",
                hint="add or rename the columns, or name the right format",
            )
        self._width = len(header)
        self._at = [header.index(name) for name in NEEDED]
        self._product = header.index(PRODUCT) if PRODUCT in header else None
        self._clock = clock

    def row(self, line: Line) -> JobRow:
        """Return one row of the table ``jobs``.

        Raises:
            RowError: it is not what the header promises.
        """
        cells = split(line.text())
        if len(cells) != self._width:
            raise RowError(f"not {self._width} columns as in the header")
        stamp_text, duration_text, gpus_text, queue = (cells[i].strip() for i in self._at)
        stamp: Stamp | None = self._clock.read(stamp_text)
        if stamp is None:
            raise RowError("timestamp is not YYYY-MM-DD HH:MM:SS")
        duration = _number(duration_text, "duration", _MOST_SECONDS)
        gpus = _number(gpus_text, "num_gpus", _MOST_GPUS)
        if gpus == 0:
            raise RowError("num_gpus is 0")
        if not queue.isprintable():
            raise RowError("cluster contains unprintable characters")
        if self._product is not None:
            product = _number(cells[self._product].strip(), PRODUCT, math.inf)
            if not math.isclose(product, duration * gpus, rel_tol=1e-6, abs_tol=1e-3):
                raise RowError("gpu_time is not duration times num_gpus")
        return JobRow(
            job=f"row-{line.line_no}",
            queue=queue or None,
            submit_ts=stamp.utc,
            state=State.UNKNOWN.value,
            gpus=gpus,
            attempts=0,
            run_sum_s=duration,
            quirks=() if stamp.later is None else ("ambiguous_hour",),
        )


def _number(text: str, name: str, most: float) -> float:
    if not _NUMBER.fullmatch(text):
        raise RowError(f"{name} is not a number")
    value = float(text)
    if value > most:
        raise RowError(f"{name} is over {most:.0f}")
    return value


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a job table into ``jobs`` and ``queues``.

    A job is named ``row-N`` after its line, for the source has no ids; its state is unknown, it has no attempts, and
    of the durations only ``run_sum_s`` is known. Rows whose id another file has taken in this cluster, with other
    values, are rejected.

    Raises:
        InputError: the first line is not the header of such a table.
    """
    lines = numbered_lines(stream)
    reader = Table(_header(next(lines, None)), WallClock(sink.timezone))
    batch: list[tuple[Line, JobRow]] = []
    queues: set[str] = set()
    for line in lines:
        if not line.data.strip():
            continue
        sink.seen()
        try:
            batch.append((line, reader.row(line)))
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        if len(batch) == _BATCH:
            queues.update(_write(sink, batch))
            batch = []
    queues.update(_write(sink, batch))
    add_queues(sink, queues)


def _header(line: Line | None) -> list[str]:
    try:
        return [name.strip() for name in split(line.text())] if line is not None else []
    except RowError:
        return []


def _write(sink: Sink, batch: Sequence[tuple[Line, JobRow]]) -> set[str]:
    """Write the jobs that the store does not have yet, and name their queues."""
    new = new_jobs(sink, [row for _, row in batch], [(line.line_no, line.data) for line, _ in batch])
    fresh = [row for _, row in compress(batch, new)]
    if fresh:
        sink.insert(JOBS.table, JOBS.arrow(fresh, sink))
        sink.loaded(len(fresh))
    return {row.queue for row in fresh if row.queue is not None}


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header that has all the needed columns."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    names = {cell.strip() for cell in first.split(b",")}
    if names.issuperset(column.encode() for column in NEEDED):
        return f"header with {', '.join(NEEDED)}"
    return None


FORMAT = Format(
    name="philly-jobs-csv",
    title="Philly trace, job table of simulators (timestamp, duration, num_gpus, gpu_time, cluster)",
    fills=("jobs", "queues"),
    file_names=("philly.csv",),
    order=20,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=sniff,
    load=load,
)
