"""OpenB: pods with GPUs of a production cluster of Alibaba, 149 days (``openb_pod_list_*.csv``; Weng et al., ATC'23).

A row of ``jobs`` is a pod: neither the pods that belong together nor the node of a pod are known. Seconds count from
the first pod. ``gpu_milli`` is the part of each GPU, less than 1000 only for pods with one GPU. ``pod_phase`` is the
last phase seen: pods that were running have a time of deletion nevertheless; they ended then, in an unknown state. Of
pods that were still pending nothing more is known. CPUs are rounded up to whole ones.

The variants ``multigpu*`` have no times: pods in the order of their submission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    from typing import BinaryIO

    import polars as pl

    from gpuctl.ingest.core.format import Sink

WHOLE = 1000
_SIZE = {
    "name": Column("job", needed=True),
    "cpu_milli": Column("cpus_asked", "number", scale=1 / WHOLE),
    "memory_mib": Column("mem_mb", "whole"),
    "num_gpu": Column("devices", "whole", needed=True),
    "gpu_milli": Column("part", "number", needed=True, scale=1 / WHOLE),
}


_SIZES = {
    "gpus": "case when devices = 1 then part else devices end",
    "cpus": "cast(ceil(cpus_asked) as bigint)",
}


def _gpu_types() -> pl.Expr:
    import polars as pl

    return pl.col("spec").str.split("|").list.unique().list.sort().list.join("|")


TIMED = JobTable(
    what="a list of pods of the trace OpenB",
    columns={
        **_SIZE,
        "gpu_spec": Column("spec"),
        "qos": Column("qos"),
        "pod_phase": Column("source_state", needed=True),
        "creation_time": Column("submit_ts", "epoch", needed=True),
        "deletion_time": Column("end_ts", "epoch"),
        "scheduled_time": Column("start_ts", "epoch"),
    },
    states={"SUCCEEDED": State.COMPLETED, "FAILED": State.FAILED, "PENDING": State.PENDING, "RUNNING": State.UNKNOWN},
    derive={
        **_SIZES,
        "gpu_type": _gpu_types,
        "end_ts": "case when state <> 'pending' then end_ts end",
        "attempts": "cast(case when state = 'pending' then 0 else 1 end as int)",
    },
    quirks={"seen_running": "source_state = 'Running'"},
)
UNTIMED = JobTable(
    what="a list of pods of the trace OpenB without times",
    columns=_SIZE,
    derive={**_SIZES, "state": "'pending'", "attempts": "cast(0 as int)"},
    quirks={"no_times": "true"},
)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, with times or without."""
    return TIMED.sniff(name, head) or UNTIMED.sniff(name, head)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read pods into jobs, attempts and queues.

    Raises:
        InputError: the header is not that of such a list.
    """
    from gpuctl.ingest.read.streams import peeked

    head, again = peeked(stream)
    (UNTIMED if UNTIMED.sniff("", head) else TIMED).load(again, sink)


FORMAT = Format(
    name="openb-pods",
    title="OpenB trace: pods (openb_pod_list_*.csv)",
    fills=("jobs", "attempts", "queues"),
    file_names=("openb_pod_list_default.csv",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    epoch="relative",
    unit="pod",
)
