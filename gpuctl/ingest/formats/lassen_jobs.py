"""Lassen, a machine of LLNL with 4 V100 a node: its allocations (``final_csm_allocation_history_hashed.csv``).

Published with Patki et al., CLUSTER'21. A row is an allocation of whole nodes, which ``allocation_id`` names; LSF's
number of its job may be in several. The source tells 0 GPUs of every row: a job has the 4 of each of its nodes here,
and the quirk ``gpus_of_its_nodes``. Stamps name no zone and are taken for Livermore's. In which unit
``time_limit`` is, is not told: it is not read. Of the tables of nodes and of steps nothing is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl

GPUS_A_NODE = 4
_SIDE_TABLES = {
    "nodes of allocations": {"allocation_id", "node_name", "gpu_energy"},
    "steps of allocations": {"allocation_id", "step_id", "omp_thread_limit"},
}


def _made() -> dict[str, pl.Expr]:
    import polars as pl

    code = pl.col("exit")
    done = pl.when(code == 0).then(pl.lit(State.COMPLETED.value)).when(code.is_not_null())
    return {
        "gpus": pl.when(pl.col("told") > 0).then("told").otherwise(GPUS_A_NODE * pl.col("nodes")).cast(pl.Float64),
        "gpu_type": pl.lit("V100"),
        "state": done.then(pl.lit(State.FAILED.value)).otherwise(pl.lit(State.UNKNOWN.value)),
        "source_state": code.cast(pl.Int64).cast(pl.String),
    }


def _of_nodes() -> pl.Expr:
    import polars as pl

    return pl.col("told").fill_null(0) == 0


TABLE = JobTable(
    what="the allocations of Lassen",
    columns={
        "allocation_id": Column("job", needed=True),
        "primary_job_id": Column("lsf"),
        "num_nodes": Column("nodes", "whole", needed=True),
        "num_gpus": Column("told", "number"),
        "begin_time": Column("start_ts", "time"),
        "end_time": Column("end_ts", "time"),
        "exit_status": Column("exit", "real"),
        "job_submit_time": Column("submit_ts", "time", needed=True),
    },
    optional={
        "hashed_user_id": Column("user"),
        "hashed_user_group_id": Column("account"),
        "queue": Column("queue"),
        "job_type": Column("qos"),
    },
    open_ended=True,
    derive=_made,
    quirks={"gpus_of_its_nodes": _of_nodes},
)


def passes_over(name: str, head: bytes) -> str | None:
    """What the two tables beside it are."""
    del name
    there = set(header(first_line(head), ","))
    return next((f"{what} of Lassen, of which nothing is read" for what, n in _SIDE_TABLES.items() if n <= there), None)


FORMAT = Format(
    name="lassen-jobs",
    title="Lassen of LLNL: allocations of whole nodes (final_csm_allocation_history_hashed.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("final_csm_allocation_history_hashed.csv",),
    order=20,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=TABLE.sniff,
    load=TABLE.load,
    passes_over=passes_over,
    verified="documentation",
)
