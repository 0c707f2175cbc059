"""Alibaba's trace of generated images, 2026 (``pod_gpu_duty_cycle_anon.csv``): how busy the GPU of a container was.

Every 57 s, per cent; a container is a machine with one GPU here. The files of memory and of queues have the same
columns, in another order: only a name tells them apart, and nothing is read of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.traces.table import Column, RowTable

if TYPE_CHECKING:
    import polars as pl

_COLUMNS = {"value", "timestamp_anon", "container_ip"}


def _lists() -> dict[str, pl.Expr]:
    import polars as pl

    return {"util": pl.concat_list(pl.col("value").cast(pl.Float32))}


def _past() -> dict[str, pl.Expr]:
    import polars as pl

    return {"value is over 100": pl.col("value") > 100}


TABLE = RowTable(
    what="GPU duty cycles of Alibaba's GenAI trace",
    columns={
        "timestamp_anon": Column("ts", "epoch", needed=True),
        "container_ip": Column("machine", needed=True),
        "value": Column("value", "number", needed=True),
    },
    derive=_lists,
    faults=_past,
    table="gpu_samples",
    keep=("ts", "machine", "util"),
)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header and the file's name."""
    return TABLE.sniff(name, head) if "gpu_duty_cycle" in name else None


def passes_over(name: str, head: bytes) -> str | None:
    """Tell the trace's other samples of containers."""
    del name
    return (
        "samples of Alibaba's GenAI trace of which nothing is read"
        if set(header(first_line(head))) == _COLUMNS
        else None
    )


FORMAT = Format(
    name="alibaba-genai-gpu-util",
    title="Alibaba GenAI trace of 2026: GPU utilization of containers (pod_gpu_duty_cycle_anon.csv)",
    fills=("gpu_samples", "gpu_util"),
    file_names=("pod_gpu_duty_cycle_anon.csv",),
    order=40,
    zoned=True,
    sniff=sniff,
    load=TABLE.load,
    passes_over=passes_over,
    epoch="shifted",
    verified="sample",
)
