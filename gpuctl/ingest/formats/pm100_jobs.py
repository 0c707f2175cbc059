"""PM100: jobs of Marconi100, 4 V100 a node, May to October 2020 (``job_table.parquet``; Antici et al., SC-W'23).

Stamps carry their zone. ``time_limit`` is in minutes. Columns of lists (power) are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.states import SLURM
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _gpus() -> dict[str, pl.Expr]:
    import polars as pl

    limit = pl.col("time_limit_s").round().cast(pl.Int64)
    return {"gpus": pl.coalesce("gpus_had", "gpus_asked", pl.lit(0.0)), "time_limit_s": limit}


TABLE = JobTable(
    what="the job table of PM100",
    columns={
        "job_id": Column("job", needed=True),
        "job_state": Column("source_state", needed=True),
        "submit_time": Column("submit_ts", "time", needed=True),
        "start_time": Column("start_ts", "time"),
        "end_time": Column("end_ts", "time"),
        "num_gpus_alloc": Column("gpus_had", "number"),
        "num_nodes_alloc": Column("nodes", "whole"),
        "time_limit": Column("time_limit_s", "number", scale=60),
    },
    optional={
        "num_gpus_req": Column("gpus_asked", "number"),
        "num_cores_alloc": Column("cpus", "whole"),
        "user_id": Column("user"),
        "partition": Column("queue"),
        "qos": Column("qos"),
        "priority": Column("priority", "whole"),
        "state_reason": Column("reason"),
    },
    open_ended=True,
    states=SLURM,
    derive=_gpus,
)

FORMAT = Format(
    name="pm100-jobs",
    title="PM100: jobs of Marconi100 (job_table.parquet)",
    fills=("jobs", "attempts", "queues"),
    file_names=("job_table.parquet",),
    order=20,
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
)
