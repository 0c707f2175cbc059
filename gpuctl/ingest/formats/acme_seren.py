"""Acme, cluster Seren: the job log of a Slurm cluster for large models, 2023 (``trace_seren.csv``; Hu et al., NSDI'24).

One row a job, times with their offset; ``type`` (Pretrain, Eval, SFT …) is kept as the job's name. Neither queues nor
machines are told. ``duration``, ``queue`` and ``gpu_time`` follow from the times and are computed here.
"""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.states import SLURM
from gpuctl.ingest.traces.table import Column, JobTable

TABLE = JobTable(
    what="a job log of Acme's cluster Seren",
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
    },
    states=SLURM,
    unread=frozenset({"duration", "queue", "gpu_time"}),
)

FORMAT = Format(
    name="acme-seren",
    title="Acme trace: jobs of the cluster Seren (trace_seren.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("trace_seren.csv",),
    order=20,
    timezone="Asia/Shanghai",
    verified="documentation",
    sniff=TABLE.sniff,
    load=TABLE.load,
    zoned=True,
)
