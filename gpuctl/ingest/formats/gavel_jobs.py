"""Jobs for the simulators of Gavel (OSDI'20) and Shockwave (NSDI'23): one line per job, tabs between its cells.

Lines of 12 cells are Shockwave's, with a known run time; of 11 cells the same without it; of 10 cells Gavel's; of 7
cells those of its folder ``msr``, which Gavel itself no longer reads. Except in Shockwave's, the work is in steps: its
run time depends on the GPUs and is unknown unless there are ``gavel-speeds``. Seconds count from a start of the file's
own; a job is named after its place in the file, from 0. An SLO above 0 is a deadline, as a multiple of the run time
after submission: it is read where the run time is known, in Shockwave's lines of 12 cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.streams import peeked
from gpuctl.ingest.traces import gavel
from gpuctl.ingest.traces.jobs import Jobs, unrun_jobs
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl

_COLUMNS = {
    "job_type": Column("name", needed=True),
    "total_steps": Column("steps", "number", needed=True),
    "scale_factor": Column("gpus", "whole", needed=True),
    "arrival": Column("submit_ts", "epoch", needed=True),
}
_START = ("job_type", "command", "working_dir", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor")
_WIDTHS = {
    7: ("job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival", "scale_factor"),
    10: (*_START, "priority_weight", "SLO", "arrival"),
    11: (*_START, "mode", "priority_weight", "SLO", "arrival"),
    12: (*_START, "mode", "priority_weight", "SLO", "duration", "arrival"),
}


_LATEST_S = 60_000_000_000
"""Some 1,900 years after submission, far within what a store can keep."""
_TIMED = {"duration": Column("work_s", "number", needed=True), "SLO": Column("slo", "real")}


def _due() -> pl.Expr:
    import polars as pl

    after = (pl.col("slo") * pl.col("work_s") * 1_000_000).round().cast(pl.Int64, strict=False)
    return pl.when(pl.col("slo") > 0).then(pl.col("submit_ts") + pl.duration(microseconds=after))


def _table(width: int) -> JobTable:
    timed = "duration" in _WIDTHS[width]
    return JobTable(
        what="a trace of Gavel's simulator",
        columns=_COLUMNS | (_TIMED if timed else {}),
        names=_WIDTHS[width],
        separator="\t",
        derive={
            "job": "cast(line - 1 as varchar)",
            **unrun_jobs("work_s" if timed else None),
            **({"deadline_ts": _due} if timed else {}),
        },
        faults={"SLO x duration is out of range": f"slo * work_s > {_LATEST_S}"} if timed else {},
        quirks={} if timed else {"work_in_steps": "true"},
    )


TABLES = {width: _table(width) for width in _WIDTHS}


def _table_of(head: bytes) -> JobTable | None:
    cells = first_line(head).split(b"\t")
    table = TABLES.get(len(cells))
    if table is None:
        return None
    named = dict(zip(table.names, cells, strict=True))
    numbers = (named[name].strip() for name in ("total_steps", "scale_factor", "arrival"))
    whole = all(n.replace(b".", b"", 1).isdigit() for n in numbers)
    return (
        table if whole and named["needs_data_dir"] in {b"0", b"1"} and named["num_steps_arg"].startswith(b"-") else None
    )


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first row by its number of cells and what is in them."""
    del name
    table = _table_of(head)
    return f"a first row of {len(table.names)} cells of Gavel's traces" if table else None


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs.

    Raises:
        InputError: the first line is not a job.
    """
    head, again = peeked(stream)
    table = _table_of(head)
    if table is None:
        raise InputError(
            "line 1 is no job of Gavel's simulator",
            line=1,
            hint="expected 7, 10, 11 or 12 cells with tabs between them",
        )
    jobs = Jobs(sink)
    for rows, raw in table.rows(again, sink):
        loaded = jobs.add(rows, raw)
        if "duration" not in table.names:
            gavel.insert_steps(sink, loaded)
    jobs.finish()


FORMAT = Format(
    name="gavel-jobs",
    title="Gavel, Shockwave: jobs of a simulator (*.trace)",
    fills=("jobs", "attempts", "queues"),
    file_names=("*.trace",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    epoch="relative",
    parser_version=2,
)
