"""Jobs for Tiresias's simulator and its descendants (ElasticFlow, Chronus, mltiply): a CSV with a header.

All have ``job_id``, ``num_gpu``, ``submit_time``, ``model_name`` and ``duration``, in any order, and columns of their
own; ``user`` and ``job_type`` (the quality of service) are read if present. Seconds count from an unknown start. The
jobs have not run: no wait is known, and ``duration`` is their work.

Chronus counts in minutes: a column ``expect_time_list`` identifies its files. Its deadlines, in minutes after
submission, are not read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.read.streams import peeked
from gpuctl.ingest.traces.jobs import unrun_jobs
from gpuctl.ingest.traces.table import Column, JobTable

TABLE = JobTable(
    what="a job list of Tiresias's simulator",
    columns={
        "job_id": Column("job", needed=True),
        "num_gpu": Column("gpus", "whole", needed=True),
        "submit_time": Column("submit_ts", "epoch", needed=True),
        "model_name": Column("name"),
        "duration": Column("work_s", "number", needed=True),
    },
    optional={"user": Column("user"), "job_type": Column("qos")},
    open_ended=True,
    derive=unrun_jobs("work_s"),
)
MINUTES = replace(
    TABLE,
    what="a job list of Chronus",
    columns={
        **TABLE.columns,
        "submit_time": Column("submit_ts", "epoch", needed=True, scale=60.0),
        "duration": Column("work_s", "number", needed=True, scale=60.0),
    },
)
"""Chronus's job lists: the same columns, in minutes."""


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs; times are in minutes if the header has ``expect_time_list``.

    Raises:
        InputError: the header lacks a column.
    """
    head, again = peeked(stream)
    (MINUTES if "expect_time_list" in header(first_line(head), ",") else TABLE).load(again, sink)


FORMAT = Format(
    name="tiresias-jobs",
    title="Tiresias, ElasticFlow, Chronus, mltiply: jobs of a simulator (job_id, num_gpu, submit_time, model_name ...)",
    fills=("jobs", "attempts", "queues"),
    file_names=("60_job.csv", "tf_job.csv"),
    order=20,
    zoned=True,
    sniff=TABLE.sniff,
    load=load,
    epoch="relative",
    parser_version=2,
)
