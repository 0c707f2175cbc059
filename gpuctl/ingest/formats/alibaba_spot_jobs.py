"""Alibaba's trace of spot GPUs, 2026 (``job_info_df.csv``): when jobs came and how long they ran, not when they began.

GPUs are ``worker_num`` times ``gpu_request``; seconds count from the first job. ``job_type`` is HP or Spot and is kept
as the quality of service, ``organization`` as the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.table import Column, JobTable
from gpuctl.ingest.traces.to_come import to_come

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.format import Sink


def _sizes() -> dict[str, pl.Expr]:
    import polars as pl

    return {
        **to_come("work_s"),
        "gpus": pl.col("gpu") * pl.col("workers"),
        "cpus": (pl.col("cpu") * pl.col("workers")).ceil().cast(pl.Int64),
    }


_CROWDED = """
    WITH demand AS (
        SELECT gpu_type, sum(gpus * run_sum_s) AS gpu_s, epoch(max(submit_ts) - min(submit_ts)) AS span_s
        FROM jobs WHERE cluster = $cluster GROUP BY gpu_type
    ), stock AS (SELECT gpu_type, sum(gpus) AS gpus FROM machines WHERE cluster = $cluster GROUP BY gpu_type)
    SELECT gpu_type, gpu_s / span_s / gpus AS share, gpus FROM demand JOIN stock USING (gpu_type)
    WHERE span_s > 0 AND gpus > 0 AND gpu_s / span_s > gpus ORDER BY gpu_type
"""


def conclude(sink: Sink | None) -> list[str]:
    """Say of which GPUs the jobs ask for more than there are, on average over the time of their submissions."""
    if sink is None:
        return []
    here: dict[str, object] = {"cluster": sink.cluster}
    known = "SELECT count(*) > 0 FROM sources WHERE cluster = $cluster AND format = 'alibaba-spot-jobs'"
    if not sink.query(known, here).item():
        return []
    return [
        f"jobs ask for {100 * share:.0f} % of the {gpus:.0f} GPUs of type {kind} on average: "
        "a replay of them never drains"
        for kind, share, gpus in sink.query(_CROWDED, here).iter_rows()
    ]


TABLE = JobTable(
    what="a list of jobs of Alibaba's spot trace",
    columns={
        "job_name": Column("job", needed=True),
        "organization": Column("queue"),
        "gpu_model": Column("gpu_type"),
        "cpu_request": Column("cpu", "number"),
        "gpu_request": Column("gpu", "number", needed=True),
        "worker_num": Column("workers", "whole", needed=True),
        "submit_time": Column("submit_ts", "epoch", needed=True),
        "duration": Column("work_s", "number", needed=True),
        "job_type": Column("qos"),
    },
    derive=_sizes,
)

FORMAT = Format(
    name="alibaba-spot-jobs",
    title="Alibaba spot trace of 2026: jobs (job_info_df.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("job_info_df.csv",),
    order=20,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    conclude=conclude,
    epoch="relative",
    verified="documentation",
)
