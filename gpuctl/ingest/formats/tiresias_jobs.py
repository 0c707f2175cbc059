"""Jobs for Tiresias's simulator and its descendants (ElasticFlow, Chronus, mltiply): a CSV with a header.

All have ``job_id``, ``num_gpu``, ``submit_time``, ``model_name`` and ``duration``, in any order, and columns of their
own; ``user``, ``job_type`` (the quality of service), and ElasticFlow's ``ddl`` (the second at which a job is due) and
``best_effort`` (1: it has no deadline, whatever the list says) are read if present. Seconds count from an unknown
start. The jobs have not run: no wait is known, and ``duration`` is their work.

Chronus counts in minutes: a column ``expect_time_list`` identifies its files. It is the time from submission to the
deadline. Several values, with the worth of a job that ends by each in ``expect_value_list``, are a soft deadline: the
first one counts (quirk ``soft_deadline``). A job whose ``job_type`` is best has no deadline.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.read.streams import peeked
from gpuctl.ingest.traces.jobs import unrun_jobs
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _due() -> pl.Expr:
    import polars as pl

    return pl.when((pl.col("best_effort") == 1).not_().fill_null(value=True)).then("due_ts")


def _due_in_minutes() -> pl.Expr:
    import polars as pl

    minutes = pl.col("expected").str.split("-").list.first().cast(pl.Float64, strict=False)
    due = pl.col("submit_ts") + pl.duration(microseconds=(minutes * 60_000_000).round().cast(pl.Int64))
    best = (pl.col("best_effort") == 1).fill_null(value=False) | (pl.col("qos") == "best").fill_null(value=False)
    return pl.when(~best).then(due)


TABLE = JobTable(
    what="a job list of Tiresias's simulator",
    columns={
        "job_id": Column("job", needed=True),
        "num_gpu": Column("gpus", "whole", needed=True),
        "submit_time": Column("submit_ts", "epoch", needed=True),
        "model_name": Column("name"),
        "duration": Column("work_s", "number", needed=True),
    },
    optional={
        "user": Column("user"),
        "job_type": Column("qos"),
        "best_effort": Column("best_effort", "number"),
        "ddl": Column("due_ts", "epoch"),
    },
    open_ended=True,
    derive={**unrun_jobs("work_s"), "deadline_ts": _due},
)
MINUTES = replace(
    TABLE,
    what="a job list of Chronus",
    columns={
        **TABLE.columns,
        "submit_time": Column("submit_ts", "epoch", needed=True, scale=60.0),
        "duration": Column("work_s", "number", needed=True, scale=60.0),
    },
    optional={
        **{name: column for name, column in TABLE.optional.items() if name != "ddl"},
        "expect_time_list": Column("expected"),
    },
    derive={**unrun_jobs("work_s"), "deadline_ts": _due_in_minutes},
    faults={
        "expect_time_list is not minutes with - between them": (
            "expected IS NOT NULL AND NOT regexp_like(expected, '^[0-9]{1,9}(\\.[0-9]+)?(-[0-9]{1,9}(\\.[0-9]+)?)*$')"
        )
    },
    quirks={"soft_deadline": "deadline_ts IS NOT NULL AND expected LIKE '%-%'"},
)
"""Chronus's job lists: the same columns, in minutes."""


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs; times are in minutes if the header has ``expect_time_list``.

    Raises:
        InputError: the header lacks a column.
    """
    head, again = peeked(stream)
    (MINUTES if "expect_time_list" in header(first_line(head), ",") else TABLE).load(again, sink)


FORMAT = Format(
    name="tiresias-jobs",
    title="Tiresias, ElasticFlow, Chronus, mltiply: jobs of a simulator (job_id, num_gpu, submit_time, model_name ...)",
    fills=("jobs", "attempts", "queues"),
    file_names=("60_job.csv", "tf_job.csv"),
    order=20,
    zoned=True,
    sniff=TABLE.sniff,
    load=load,
    epoch="relative",
    parser_version=3,
)
