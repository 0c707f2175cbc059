"""Batsim's result (``out_jobs.csv``): jobs, when they started and ended.

Both generations of its columns are read: ``jobID`` and ``job_id``. Where a job ran is not read. A job that failed was
stopped at its limit or ended with an error: which, is not stated. Processors are CPUs unless ``--swf-unit`` states what
they are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.streams import peeked
from gpuctl.ingest.traces.processors import sizes, unit_of
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from gpuctl.ingest.core.format import Sink
    from gpuctl.ingest.traces.processors import Unit


def _size(unit: Unit, of: str) -> pl.Expr:
    import polars as pl

    return sizes(pl.col("processors"), unit)[of]


def _derived(unit: Unit) -> dict[str, str | Callable[[], pl.Expr]]:
    return {
        "state": "case when success = 1 then 'completed' else 'failed' end",
        "source_state": "cast(success as varchar)",
        **{of: partial(_size, unit, of) for of in ("gpus", "cpus", "nodes")},
    }


_COLUMNS = {
    "submission_time": Column("submit_ts", "epoch", needed=True),
    "requested_time": Column("time_limit_s", "number", missing=("-1",)),
    "success": Column("success", "whole", needed=True),
    "starting_time": Column("start_ts", "epoch", missing=("-1",)),
    "finish_time": Column("end_ts", "epoch", missing=("-1",)),
}
OLD = JobTable(
    what="a table of jobs of Batsim",
    columns={
        "jobID": Column("job", needed=True),
        "requested_number_of_processors": Column("processors", "whole", needed=True),
        **_COLUMNS,
    },
    open_ended=True,
    derive=_derived("core"),
)
NEW = replace(
    OLD,
    columns={
        "job_id": Column("job", needed=True),
        "requested_number_of_resources": Column("processors", "whole", needed=True),
        **_COLUMNS,
    },
)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header of either generation."""
    return OLD.sniff(name, head) or NEW.sniff(name, head)


def load(stream: BinaryIO, sink: Sink, unit: Unit = "core") -> None:
    """Read jobs and attempts.

    Args:
        stream: the file.
        sink: takes the rows.
        unit: what a processor is.

    Raises:
        InputError: the header is another.
    """
    head, again = peeked(stream)
    table = OLD if first_line(head).startswith(b"jobID,") else NEW
    replace(table, derive=_derived(unit)).load(again, sink)


FORMAT = Format(
    name="batsim-jobs",
    title="Batsim: jobs of a simulation (out_jobs.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("out_jobs.csv",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    epoch="relative",
)


def with_unit(unit: str) -> Format:
    """The same format, for files whose processors are something else.

    Raises:
        UsageError: there is no such unit.
    """
    return replace(FORMAT, load=partial(load, unit=unit_of(unit)))
