"""Alibaba's trace of a GPU fleet, 2026 (``job_execution_summary``, Parquet or CSV): lengths of jobs, no times.

When a job came is not told; ``schedule_delay_sec`` and ``duration_hours`` are lengths. The priority class is the queue.
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

    return {"job": pl.coalesce("pod", "workload"), "run_span_s": pl.col("hours") * 3600}


def _nameless() -> dict[str, pl.Expr]:
    import polars as pl

    return {"no pod_id and no workload_id": pl.col("job").is_null()}


def _always() -> pl.Expr:
    import polars as pl

    return pl.lit(value=True)


TABLE = JobTable(
    what="the job summary of Alibaba's trace of 2026",
    columns={
        "gpu_request": Column("gpus", "number", needed=True),
        "schedule_delay_sec": Column("wait_s", "number"),
        "duration_hours": Column("hours", "number"),
    },
    optional={
        "pod_id": Column("pod"),
        "workload_id": Column("workload"),
        "state_public": Column("source_state"),
        "gpu_spec_public": Column("gpu_type"),
        "priority_class": Column("queue"),
        "job_type_public": Column("qos"),
        "model_type_public": Column("name"),
    },
    open_ended=True,
    states={
        "SUCCEEDED": State.COMPLETED,
        "FAILED": State.FAILED,
        "RUNNING": State.RUNNING,
        "PENDING": State.PENDING,
        "STANDBY": State.PENDING,
    },
    derive=_made,
    faults=_nameless,
    quirks={"no_times": _always},
)

FORMAT = Format(
    name="alibaba-asi",
    title="Alibaba GPU trace of 2026: lengths of jobs (job_execution_summary)",
    fills=("jobs", "attempts", "queues"),
    file_names=("job_execution_summary.parquet",),
    order=20,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="relative",
    unit="pod",
    verified="documentation",
)
