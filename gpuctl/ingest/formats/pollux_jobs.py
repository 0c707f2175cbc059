"""Jobs as the simulators of Pollux, Sia and DeepBoot take them: ``name,time,application,num_replicas,batch_size``.

How long a job runs is not told: their simulators compute it from models of the application. Where the file has a
``duration`` (DeepBoot's inference) it is the work of the job. Seconds count from a start that the file does not tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.table import Column, JobTable
from gpuctl.ingest.traces.to_come import to_come

if TYPE_CHECKING:
    import polars as pl


def _work() -> dict[str, pl.Expr]:
    return to_come("work_s")


def _no_work() -> pl.Expr:
    import polars as pl

    return pl.col("work_s").is_null()


TABLE = JobTable(
    what="a workload of Pollux's simulator",
    columns={
        "name": Column("job", needed=True),
        "time": Column("submit_ts", "epoch", needed=True),
        "application": Column("name"),
        "num_replicas": Column("gpus", "whole", needed=True),
    },
    optional={"duration": Column("work_s", "number", missing=("-1",))},
    passed=frozenset({"batch_size", "num_task"}),
    derive=_work,
    quirks={"no_run_time": _no_work},
)

FORMAT = Format(
    name="pollux-jobs",
    title="Pollux, Sia, DeepBoot: workload of a simulator (name, time, application, num_replicas, batch_size)",
    fills=("jobs", "attempts", "queues"),
    file_names=("workload-1.csv",),
    order=20,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="relative",
)
