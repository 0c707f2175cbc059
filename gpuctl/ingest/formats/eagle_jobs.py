"""Eagle, the supercomputer of NREL: its jobs of 2018 to 2023 (``eagle_data.parquet`` or CSV).

Published as submission 5860 of data.openei.org: Slurm's jobs under other names. Times carry no zone and are those of
Golden, Colorado; columns ``…_time_tz`` with an offset take precedence. Lengths are in seconds. All tasks of an array
have the number of their array: of rows with the same number the first keeps it, the others become ``NUMBER/LINE`` and
have the quirk ``task_of_an_array``. GPUs, CPUs and nodes are those requested.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.known_jobs import KnownJobs
from gpuctl.ingest.traces.jobs import LINE, Jobs
from gpuctl.ingest.traces.states import SLURM
from gpuctl.ingest.traces.table import Column, JobTable

_TIMES = ("submit", "start", "end")

TABLE = JobTable(
    what="a job table of Eagle",
    columns={
        "job_id": Column("job", needed=True),
        "user": Column("user"),
        "account": Column("account"),
        "partition": Column("queue"),
        "qos": Column("qos"),
        "wallclock_req": Column("limit_s", "number"),
        "nodes_req": Column("nodes", "whole"),
        "processors_req": Column("cpus", "whole"),
        "gpus_req": Column("gpus", "number", needed=True),
        "submit_time": Column("submit_ts", "time", needed=True),
        "start_time": Column("start_ts", "time"),
        "end_time": Column("end_ts", "time"),
        "state": Column("source_state", needed=True),
    },
    optional={"name": Column("name"), **{f"{name}_time_tz": Column(f"{name}_tz", "time") for name in _TIMES}},
    open_ended=True,
    states=SLURM,
    derive={
        **{f"{name}_ts": f"coalesce({name}_tz, {name}_ts)" for name in _TIMES},
        "time_limit_s": "cast(round(limit_s) as bigint)",
    },
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs; rows with the same number are tasks of an array.

    Raises:
        InputError: the header lacks a column.
    """
    import polars as pl

    jobs, seen = Jobs(sink), KnownJobs()
    for rows, raw in TABLE.rows(stream, sink):
        if rows.height:
            task = seen.add(rows["job"], rows[LINE]) > 0
            name = pl.when(task).then(pl.format("{}/{}", "job", LINE)).otherwise("job")
            mark = pl.when(task).then(pl.lit(["task_of_an_array"])).otherwise(pl.lit([], pl.List(pl.String)))
            jobs.add(rows.with_columns(job=name, quirks=mark), raw)
    jobs.finish()


FORMAT = Format(
    name="eagle-jobs",
    title="Eagle of NREL: jobs (eagle_data.parquet, or CSV)",
    fills=("jobs", "attempts", "queues"),
    file_names=("eagle_data.parquet", "sample_eagle_data.csv"),
    order=20,
    timezone="America/Denver",
    clock="wall",
    sniff=TABLE.sniff,
    load=load,
    verified="sample",
)
