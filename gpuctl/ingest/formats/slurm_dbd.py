"""Slurm's accounting database, written out: a mysqldump of its tables, or one table as tabs (``mariadb -B``) or CSV.

A row of the ledger is one row of ``CLUSTER_job_table``, ``CLUSTER_step_table`` or ``CLUSTER_event_table``, or of a
table that names numbers (``tres_table``, ``qos_table``, ``CLUSTER_assoc_table``); other tables are skipped. Steps are
read beside their jobs only: they name them by a number of the database. Names may come after the jobs, or from files of
their own (`gpuctl.ingest.formats.slurm_dbd_names`), which are loaded first. Without ``tres_table``
it is unknown which numbers are GPUs, so they are unknown.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.streams import HeadAgain
from gpuctl.ingest.slurm import dbd_delimited, dbd_sql
from gpuctl.ingest.slurm.dbd_fields import (
    COLUMNS,
    JOB_COLUMNS,
    STEP_COLUMNS,
    STEP_FIELDS,
    fields,
    job_number,
    step_fields,
)
from gpuctl.ingest.slurm.dbd_tables import EVENT_COLUMNS, NAME_TABLES, Names, only_names, read_event
from gpuctl.ingest.slurm.gpu_summary import of_accounting
from gpuctl.ingest.slurm.record_batches import Batches, Spool
from gpuctl.ingest.slurm.records import Records
from gpuctl.ingest.slurm.site.machines import Rows
from gpuctl.ingest.slurm.usage import of_steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.ingest.slurm.dbd_sql import Row

_JOBS, _STEPS, _NODE_EVENTS = "_job_table", "_step_table", "_event_table"
_TABLES = {_JOBS: JOB_COLUMNS, _NODE_EVENTS: EVENT_COLUMNS, **NAME_TABLES}
_READ = {**_TABLES, _STEPS: STEP_COLUMNS}
_NO_JOB = "a step of a job that is not in this dump"
_HEAD = 2**16
_OF_SLURMDBD = (
    "_step_table",
    "_suspend_table",
    "_resv_table",
    "_usage_day_table",
    "_job_env_table",
    "table_defs_table",
)
_EVENTS = {"machine": "text", "from_ts": "s", "to_ts": "s", "state": "text", "reason": "text"}


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts, placements and node events; see `Records` for what becomes of the jobs.

    The jobs are held in a temporary file until the end, because the names of their numbers may stand there.

    Raises:
        InputError: no table of slurmdbd is in this file.
    """
    head = stream.read(_HEAD)
    again = cast("BinaryIO", HeadAgain(head, stream))
    single = dbd_delimited.table_of(head)
    found = (dbd_delimited if single else dbd_sql).rows(again, _READ)
    with Spool() as spool, Spool() as aside:
        steps = _Steps(aside, Batches(STEP_FIELDS, aside.put), array("q"), array("q"))
        names = _read(found, spool, steps, sink)
        if names is None:
            if single is not None:
                return
            raise InputError(
                "no rows of slurmdbd's tables of jobs, events or names",
                hint="dump CLUSTER_job_table, CLUSTER_assoc_table, CLUSTER_event_table, qos_table and tres_table",
            )
        records = Records(sink)
        for frame, lines in spool.frames():
            records.add(names.name(frame), lines)
        records.finish()
        _write_steps(steps, names, sink)


class _Steps(NamedTuple):
    """Steps, put aside until all jobs are read.

    Attributes:
        spool: has them.
        batches: puts them there.
        numbers: ``job_db_inx`` of each record of a job …
        jobs: … and the job's id.
    """

    spool: Spool
    batches: Batches
    numbers: array[int]
    jobs: array[int]


def _write_steps(steps: _Steps, names: Names, sink: Sink) -> None:
    """Insert what steps used; one whose job is in no table of jobs is rejected."""
    import polars as pl

    known = pl.DataFrame(
        {"record": pl.Series(steps.numbers, dtype=pl.Int64), "job": pl.Series(steps.jobs, dtype=pl.Int64)}
    )
    known = known.unique("record", keep="last")
    for frame, lines in steps.spool.frames():
        sink.seen(frame.height)
        every = frame.with_columns(pl.col("record").cast(pl.Int64), lines.alias("line")).join(
            known, on="record", how="left", maintain_order="left"
        )
        for line, record in every.filter(pl.col("job").is_null()).select("line", "record").iter_rows():
            sink.reject(line, _NO_JOB, f"job_db_inx {record}")
        found = every.filter(pl.col("job").is_not_null())
        sink.loaded(found.height)
        texts = found.select(
            names.usage(found["TRESUsageInTot"]),
            "Start", "NTasks", "TotalCPU", "MaxRSS",
            JobIDRaw=pl.format("{}.{}", "job", "step"),
            _record="record",
        )  # fmt: skip
        if texts.height:
            sink.insert("step_usage", of_steps(texts, sink.timezone))
            if (gpus := of_accounting(pl.DataFrame(), texts, sink.timezone)) is not None:
                sink.insert("job_gpu_summary", gpus)


def _read(rows: Iterable[Row], spool: Spool, steps: _Steps, sink: Sink) -> Names | None:
    """Put the jobs aside, write the rest into the store, and return what names numbers; None if there is no row."""
    names, any_row = Names(sink), False
    batches, events = Batches(COLUMNS, spool.put), Rows(sink, "machine_events", _EVENTS)
    for row in rows:
        any_row = True
        try:
            _take(row, names, batches, steps, events, sink=sink)
        except RowError as bad:
            sink.seen()
            sink.reject(row.line_no, str(bad), row.raw)
    batches.flush()
    steps.batches.flush()
    events.flush()
    names.store()
    return names if any_row else None


def _take(row: Row, names: Names, batches: Batches, steps: _Steps, events: Rows, *, sink: Sink) -> None:
    if row.fault is not None:
        raise RowError(row.fault)
    if row.table.endswith(_JOBS):
        found = fields(row.cells, row.table.removesuffix(_JOBS))
        batches.add(row.line_no, found)
        number = job_number(row.cells)
        if number is not None:
            steps.numbers.append(number)
            steps.jobs.append(int(found["JobIDRaw"]))
        return
    if row.table.endswith(_STEPS):
        steps.batches.add(row.line_no, step_fields(row.cells))
        return
    if row.table.endswith(_NODE_EVENTS):
        event = read_event(row.cells)
        if event is not None:
            events.add(*event)
    else:
        names.add(next(end for end in NAME_TABLES if row.table.endswith(end)), row.cells)
    sink.seen()
    sink.loaded()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an SQL dump with a table of jobs, events or names, or the header of a table of jobs or events."""
    del name
    if any(table.endswith(tuple(_TABLES)) for table in dbd_sql.tables_in(head)):
        return None if only_names(head) else "SQL dump with tables of slurmdbd"
    single = dbd_delimited.table_of(head)
    return f"header of slurmdbd's {single[0].removeprefix('_')}" if single and single[0] not in NAME_TABLES else None


def passes_over(name: str, head: bytes) -> str | None:
    """Recognise the tables of slurmdbd that nothing is read of."""
    del name
    table = dbd_delimited.unused_table(head)
    if table is None:
        table = next((t for t in sorted(dbd_sql.tables_in(head)) if t.endswith(_OF_SLURMDBD)), None)
    if table is None:
        return None
    if table.endswith(_STEPS.removeprefix("_")):
        return f"slurmdbd's {table}: gpuctl reads it in one SQL dump with job_table, not alone"
    return f"slurmdbd's {table}: gpuctl reads nothing of it; the jobs are in job_table"


FORMAT = Format(
    name="slurm-dbd",
    title="Slurm accounting database: SQL dump, or job_table as tabs or CSV",
    fills=("jobs", "attempts", "placements", "queues", "step_usage", "job_gpu_summary", "machine_events", "settings"),
    file_names=("slurmdbd_tables.sql", "slurm-log.csv", "scheduler-log.csv"),
    order=22,  # if several forms describe the same attempts, the fuller one counts
    zoned=True,
    parser_version=3,
    sniff=sniff,
    load=load,
    passes_over=passes_over,
)
