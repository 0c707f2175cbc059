"""Helios: the job log of a SenseTime cluster, April to September 2020 (``cluster_log.csv``; Hu et al., SC'21).

One row a job, local times without a zone; ``vc`` is the virtual cluster, ``gpu_num`` 0 a job without GPUs. Nothing is
told of machines, so where a job ran is not known. ``duration`` and ``queue`` are differences of the stamps and are
computed here.
"""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.states import SLURM
from gpuctl.ingest.traces.table import Column, JobTable

TABLE = JobTable(
    what="a Helios job log",
    columns={
        "job_id": Column("job", needed=True),
        "user": Column("user"),
        "vc": Column("queue"),
        "gpu_num": Column("gpus", "number", needed=True),
        "cpu_num": Column("cpus", "whole"),
        "node_num": Column("nodes", "whole"),
        "state": Column("source_state", needed=True),
        "submit_time": Column("submit_ts", "time", needed=True),
        "start_time": Column("start_ts", "time"),
        "end_time": Column("end_ts", "time"),
    },
    states=SLURM,
    unread=frozenset({"duration", "queue"}),
)

FORMAT = Format(
    name="helios-jobs",
    title="Helios trace: jobs of a cluster (cluster_log.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("cluster_log.csv",),
    order=20,
    timezone="Asia/Shanghai",
    clock="wall",
    verified="documentation",
    sniff=TABLE.sniff,
    load=TABLE.load,
)
