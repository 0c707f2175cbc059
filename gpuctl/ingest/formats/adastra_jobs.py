"""Adastra of CINES: fifteen days of its nodes with MI250X (``AdastaJobsMI250_15days.parquet``).

Published as record 14007065 of zenodo.org. The columns are PM100's, but for GPUs: how many a job had is not known.
``time_limit`` is in seconds. Stamps without a zone are taken for Montpellier's. Columns of lists (power, nodes) are
not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.traces.states import SLURM
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _limit() -> dict[str, pl.Expr]:
    import polars as pl

    return {"time_limit_s": pl.col("limit").round().cast(pl.Int64)}


TABLE = JobTable(
    what="the job table of Adastra",
    columns={
        "job_id": Column("job", needed=True),
        "user_id": Column("user"),
        "job_state": Column("source_state", needed=True),
        "submit_time": Column("submit_ts", "time", needed=True),
        "start_time": Column("start_ts", "time"),
        "end_time": Column("end_ts", "time"),
        "run_time": Column("run_s", "number"),
        "num_nodes_alloc": Column("nodes", "whole"),
        "time_limit": Column("limit", "number"),
    },
    optional={
        "num_cores_alloc": Column("cpus", "whole"),
        "partition": Column("queue"),
        "qos": Column("qos"),
        "priority": Column("priority", "whole"),
        "state_reason": Column("reason"),
    },
    open_ended=True,
    states=SLURM,
    derive=_limit,
)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise its header: that of PM100 without GPUs."""
    return None if "num_gpus_alloc" in header(first_line(head), ",") else TABLE.sniff(name, head)


FORMAT = Format(
    name="adastra-jobs",
    title="Adastra of CINES: jobs on its nodes with MI250X (AdastaJobsMI250_15days.parquet)",
    fills=("jobs", "attempts", "queues"),
    file_names=("AdastaJobsMI250_15days.parquet",),
    order=20,
    timezone="Europe/Paris",
    sniff=sniff,
    load=TABLE.load,
    verified="documentation",
)
