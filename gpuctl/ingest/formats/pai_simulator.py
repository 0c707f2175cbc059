"""Jobs of Alibaba's PAI simulator (``pai_job_*_100K.csv``): submissions, sizes and run times, one row a job.

GPUs are ``num_inst`` times ``num_gpu``. Columns of predicted run times (``user_dur``, ``group_dur`` ...) are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces import pai
from gpuctl.ingest.traces.table import Column, JobTable
from gpuctl.ingest.traces.to_come import to_come

if TYPE_CHECKING:
    import polars as pl


def _sizes() -> dict[str, pl.Expr]:
    import polars as pl

    return {
        **to_come("work_s"),
        "gpus": pl.col("gpu") * pl.col("instances"),
        "cpus": (pl.col("cpu") * pl.col("instances")).ceil().cast(pl.Int64),
    }


def _negative() -> dict[str, pl.Expr]:
    import polars as pl

    return {"duration is below 0": pl.col("work_s") < 0}


TABLE = JobTable(
    what="a job list of PAI's simulator",
    columns={
        "job_id": Column("job", needed=True),
        "user": Column("user"),
        "num_inst": Column("instances", "number", needed=True),
        "num_gpu": Column("gpu", "number", needed=True),
        "num_cpu": Column("cpu", "number"),
        "submit_time": Column("submit_ts", "epoch", needed=True),
        "duration": Column("work_s", "real", needed=True),
    },
    optional={"gpu_type": Column("gpu_type"), "group": Column("account"), "workload": Column("name")},
    open_ended=True,
    derive=_sizes,
    faults=_negative,
)


FORMAT = Format(
    name="pai-simulator",
    title="Alibaba PAI trace of 2020: jobs of its simulator (pai_job_*_100K.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("pai_job_no_estimate_100K.csv",),
    order=20,
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
    **pai.FORMAT,
)
