"""LDMS: CSV of its store with samples of a DCGM sampler; seconds since 1970 of the node's own clock.

https://github.com/ovis-hpc/ldms, store_csv. Columns differ by site; those that are read are in `LAYOUT`.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.telemetry.tables import Layout, columns_of
from gpuctl.ingest.telemetry.tables import load as load_table

LAYOUT = Layout(
    reader="ldms",
    values={
        "gpu_utilization": ("util", 1), "fb_used": ("mem_mb", 1), "power_usage": ("power_w", 1),
        "sm_active": ("sm_pct", 100), "tensor_active": ("tensor_pct", 100),
    },
    time=("Time",),
    form="",
    gpu="gpu_id",
    machine="ProducerName",
    job="job_id",
)  # fmt: skip


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples of the GPUs of many nodes.

    Raises:
        InputError: it has no time, node or number of the GPU.
    """
    load_table(stream, sink, LAYOUT)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header."""
    del name
    columns = set(columns_of(first_line(head), ","))
    return (
        "header #Time,…,ProducerName,…,gpu_id"
        if head[:1] == b"#" and {"Time", "ProducerName", "gpu_id"} <= columns
        else None
    )


FORMAT = Format(
    name="gpu-ldms",
    title="LDMS: samples of GPUs (store_csv)",
    fills=("gpu_series", "gpu_readings", "gpu_util"),
    file_names=("dcgm.*.csv",),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
