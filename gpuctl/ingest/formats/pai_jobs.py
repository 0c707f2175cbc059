"""``pai_job_table`` of Alibaba's trace of 2020 (Weng et al., NSDI'22): who submitted a job, when, how it ended.

The public file has no header. ``start_time`` is the submission; jobs are made of this and the tables of tasks,
instances and groups (`gpuctl.ingest.traces.pai`). Seconds are shifted by a constant: in
UTC+8 they give the time of day and the weekday, not the date.
"""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces import pai
from gpuctl.ingest.traces.table import Column, RowTable

TABLE = RowTable(
    what="PAI's table of jobs",
    names=("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    file="pai_job_table",
    first_cell=pai.SHORT,
    columns={
        "job_name": Column("job", needed=True),
        "inst_id": Column("instance"),
        "user": Column("user"),
        "status": Column("source_state", needed=True),
        "start_time": Column("start_ts", "epoch", missing=pai.ZERO),
        "end_time": Column("end_ts", "epoch", missing=pai.ZERO),
    },
    states=pai.STATES,
    table="trace_parts",
    keep=("job", "instance", "user", "state", "source_state", "start_ts", "end_ts"),
    always={"kind": "job"},
)

FORMAT = Format(
    name="pai-jobs",
    title="Alibaba PAI trace of 2020: jobs (pai_job_table)",
    fills=("trace_parts", "jobs", "attempts", "placements"),
    file_names=("pai_job_table.csv",),
    order=20,
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
    **pai.FORMAT,
)
