"""ALCF's job logs (``ANL-ALCF-DJC-<SYSTEM>_<from>_<to>.csv``): jobs of Cobalt and PBS, in whole nodes.

How many GPUs a node has is not told, so that a job's GPUs are not known. The id is the head of ``JOB_NAME``, or where
that is missing ``COBALT_JOBID``. Stamps name no zone and are taken for UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _made() -> dict[str, pl.Expr]:
    import polars as pl

    code = pl.col("exit")
    done = pl.when(code == 0).then(pl.lit(State.COMPLETED.value)).when(code.is_not_null())
    return {
        "job": pl.coalesce(pl.col("job_name").str.extract(r"^([^.]+)", 1), "cobalt"),
        "state": done.then(pl.lit(State.FAILED.value)).otherwise(pl.lit(State.UNKNOWN.value)),
        "source_state": code.cast(pl.Int64).cast(pl.String),
        "nodes": pl.coalesce("used", "asked"),
        "time_limit_s": pl.col("limit").round().cast(pl.Int64),
        "run_span_s": pl.col("run_s"),
    }


def _nameless() -> dict[str, pl.Expr]:
    import polars as pl

    return {"no id": pl.col("job").is_null()}


TABLE = JobTable(
    what="a job log of ALCF",
    columns={
        "JOB_NAME": Column("job_name"),
        "QUEUED_TIMESTAMP": Column("submit_ts", "time", needed=True),
        "START_TIMESTAMP": Column("start_ts", "time"),
        "END_TIMESTAMP": Column("end_ts", "time"),
        "NODES_USED": Column("used", "whole"),
        "WALLTIME_SECONDS": Column("limit", "number"),
        "RUNTIME_SECONDS": Column("run_s", "number"),
        "USERNAME_GENID": Column("user"),
    },
    optional={
        "COBALT_JOBID": Column("cobalt"),
        "NODES_REQUESTED": Column("asked", "whole"),
        "QUEUE_NAME": Column("queue"),
        "PROJECT_NAME_GENID": Column("account"),
        "EXIT_STATUS": Column("exit", "real"),
    },
    open_ended=True,
    derive=_made,
    faults=_nameless,
)

FORMAT = Format(
    name="alcf-jobs",
    title="ALCF: job logs of its systems (ANL-ALCF-DJC-*.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("ANL-ALCF-DJC-POLARIS_20230101_20231231.csv",),
    order=20,
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
)
