"""``pai_instance_table`` of Alibaba's trace of 2020: the instances of tasks, where and when they ran.

The public file has no header. An instance goes into ``containers``. A status ``Interrupted``, which the documentation
does not name, is an unknown state. Failed instances have a start or an end and seldom both: how long they ran is then
not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces import pai
from gpuctl.ingest.traces.table import Column, RowTable

if TYPE_CHECKING:
    import polars as pl


def _instance() -> dict[str, pl.Expr]:
    import polars as pl

    return {"attempt": pl.lit(0, pl.Int32), "is_master": pl.lit(value=False)}


TABLE = RowTable(
    what="PAI's table of instances",
    names=(
        *("job_name", "task_name", "inst_name", "worker_name", "inst_id", "status"),
        *("start_time", "end_time", "machine"),
    ),
    file="pai_instance_table",
    first_cell=pai.SHORT,
    columns={
        "job_name": Column("job", needed=True),
        "task_name": Column("task"),
        "inst_name": Column("container", needed=True),
        "status": Column("source_state", needed=True),
        "start_time": Column("running_ts", "epoch", missing=pai.ZERO),
        "end_time": Column("end_ts", "epoch", missing=pai.ZERO),
        "machine": Column("machine"),
    },
    states=pai.STATES,
    derive=_instance,
    table="containers",
    keep=(
        *("job", "task", "container", "attempt", "is_master", "state", "source_state", "running_ts", "end_ts"),
        "machine",
    ),
)


def passes_over(name: str, head: bytes) -> str | None:
    """Tell the files that hold the names of columns."""
    del head
    return pai.HEADERS if name.startswith("pai_") and name.endswith(".header") else None


FORMAT = Format(
    name="pai-instances",
    title="Alibaba PAI trace of 2020: instances of tasks (pai_instance_table)",
    fills=("containers", "jobs", "attempts", "placements"),
    file_names=("pai_instance_table.csv",),
    order=20,
    sniff=TABLE.sniff,
    load=TABLE.load,
    passes_over=passes_over,
    conclude=pai.conclude,
    verified="sample",
    **pai.FORMAT,
)
