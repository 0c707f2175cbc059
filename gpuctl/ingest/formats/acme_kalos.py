"""Acme, cluster Kalos: jobs of a Kubernetes cluster for large models, 2023 (``trace_kalos.csv``; Hu et al., NSDI'24).

One row a job, times with their offset; ``type`` (Pretrain, Eval, SFT …) is kept as the job's name. Neither queues nor
machines are told. The source's ``duration`` is the time from submission to end, and ``gpu_time`` that times the GPUs,
though its description says otherwise: both hold the wait. Run times are those from start to end here, and such jobs
have the quirk ``duration_includes_wait``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.states import SLURM
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _with_wait() -> pl.Expr:
    """Whether the source's duration is more than the time from start to end by the wait."""
    import polars as pl

    since, start, end = pl.col("submit_ts"), pl.col("start_ts"), pl.col("end_ts")
    return (start > since) & (pl.col("duration_s") == (end - since).dt.total_microseconds() / 1e6)


TABLE = JobTable(
    what="a job log of Acme's cluster Kalos",
    columns={
        "job_id": Column("job", needed=True),
        "user": Column("user"),
        "node_num": Column("nodes", "whole"),
        "gpu_num": Column("gpus", "number", needed=True),
        "cpu_num": Column("cpus", "whole"),
        "type": Column("name"),
        "state": Column("source_state", needed=True),
        "submit_time": Column("submit_ts", "time", needed=True),
        "start_time": Column("start_ts", "time"),
        "end_time": Column("end_ts", "time"),
        "duration": Column("duration_s", "real"),
    },
    states=SLURM,
    unread=frozenset({"mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time", "queue", "gpu_time"}),
    quirks={"duration_includes_wait": _with_wait},
)

FORMAT = Format(
    name="acme-kalos",
    title="Acme trace: jobs of the cluster Kalos (trace_kalos.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("trace_kalos.csv",),
    order=20,
    verified="documentation",
    sniff=TABLE.sniff,
    load=TABLE.load,
    zoned=True,
)
