"""``pai_task_table`` of Alibaba's trace of 2020: what the instances of each task of a job ask for.

The public file has no header. ``plan_gpu`` and ``plan_cpu`` are per cent of one GPU or core, for one instance;
``plan_mem`` is in GB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces import pai
from gpuctl.ingest.traces.table import Column, RowTable

if TYPE_CHECKING:
    import polars as pl


def _no_gpus() -> dict[str, pl.Expr]:
    """A task that asks for none has an empty cell."""
    import polars as pl

    return {"gpus": pl.col("gpus").fill_null(0.0)}


TABLE = RowTable(
    what="PAI's table of tasks",
    names=(
        *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
        *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
    ),
    file="pai_task_table",
    first_cell=pai.SHORT,
    columns={
        "job_name": Column("job", needed=True),
        "task_name": Column("task"),
        "inst_num": Column("instances", "number"),
        "status": Column("source_state", needed=True),
        "start_time": Column("start_ts", "epoch", missing=pai.ZERO),
        "end_time": Column("end_ts", "epoch", missing=pai.ZERO),
        "plan_cpu": Column("cpus", "number", scale=0.01),
        "plan_mem": Column("mem_mb", "number", scale=1024),
        "plan_gpu": Column("gpus", "number", scale=0.01),
        "gpu_type": Column("gpu_type"),
    },
    states=pai.STATES,
    derive=_no_gpus,
    table="trace_parts",
    keep=(
        *("job", "task", "instances", "state", "source_state", "start_ts", "end_ts"),
        *("cpus", "mem_mb", "gpus", "gpu_type"),
    ),
    always={"kind": "task"},
)

FORMAT = Format(
    name="pai-tasks",
    title="Alibaba PAI trace of 2020: tasks (pai_task_table)",
    fills=("trace_parts", "jobs", "attempts", "placements"),
    file_names=("pai_task_table.csv",),
    order=20,
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
    **pai.FORMAT,
)
