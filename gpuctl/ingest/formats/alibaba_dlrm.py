"""Alibaba's trace of disaggregated recommendation models, 2025 (``disaggregated_DLRM_trace.csv``): their instances.

A row of ``jobs`` is an instance, with 1 GPU (role HN) or none (CN); ``app_name`` is its queue. Seconds count from the
start of the trace: where there is none, the instance was there before it, or still after its end. Services are neither
completed nor failed: an instance that was deleted was ended by somebody, one that was not still ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _states() -> dict[str, pl.Expr]:
    import polars as pl

    here = pl.col("end_ts").is_null()
    return {
        "state": pl.when(here).then(pl.lit(State.RUNNING.value)).otherwise(pl.lit(State.KILLED.value)),
        "cpus": pl.col("cpu").ceil().cast(pl.Int64),
        "mem_mb": (pl.col("mem_gb") * 1024).round().cast(pl.Int64),
    }


def _before() -> pl.Expr:
    import polars as pl

    return pl.col("submit_ts").is_null()


TABLE = JobTable(
    what="a list of instances of Alibaba's DLRM trace",
    columns={
        "instance_sn": Column("job", needed=True),
        "role": Column("qos"),
        "app_name": Column("queue"),
        "cpu_request": Column("cpu", "number"),
        "gpu_request": Column("gpus", "number", needed=True),
        "memory_request": Column("mem_gb", "number"),
        "creation_time": Column("submit_ts", "epoch"),
        "scheduled_time": Column("start_ts", "epoch"),
        "deletion_time": Column("end_ts", "epoch"),
    },
    unread=frozenset(
        {"cpu_limit", "gpu_limit", "rdma_request", "rdma_limit", "memory_limit", "disk_request", "disk_limit"}
        | {"max_instance_per_node"}
    ),
    derive=_states,
    quirks={"created_before_trace": _before},
)

FORMAT = Format(
    name="alibaba-dlrm",
    title="Alibaba DLRM trace of 2025: instances of services (disaggregated_DLRM_trace.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("disaggregated_DLRM_trace.csv",),
    order=20,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="relative",
    unit="instance",
    verified="sample",
)
