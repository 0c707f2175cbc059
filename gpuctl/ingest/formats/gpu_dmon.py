"""``nvidia-smi dmon -o DT``: a row a GPU and round, with headers that are repeated. Local times of the node.

``sm`` is the time in which a kernel ran (``utilization.gpu``), ``mem`` is activity of the memory, ``fb`` memory in use.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.telemetry.tables import Layout, columns_of
from gpuctl.ingest.telemetry.tables import load as load_table

LAYOUT = Layout(
    reader="dmon",
    values={"sm": ("util", 1), "fb": ("mem_mb", 1), "pwr": ("power_w", 1)},
    time=("Date", "Time"),
    form="%Y%m%d %H:%M:%S",
    gpu="gpu",
    separator=" ",
    hint="record it with nvidia-smi dmon -o DT",
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples of the GPUs of a node.

    Raises:
        InputError: no date and time (without -o DT), or nothing shows which node it is.
    """
    load_table(stream, sink, LAYOUT)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header of columns."""
    del name
    columns = columns_of(first_line(head), " ")
    return "header #… gpu … sm" if head[:1] == b"#" and {"gpu", "sm"} <= set(columns) and "pid" not in columns else None


def passes_over(name: str, head: bytes) -> str | None:
    """Recognise pmon."""
    del name
    columns = columns_of(first_line(head), " ")
    if head[:1] == b"#" and {"gpu", "pid"} <= set(columns):
        return (
            "nvidia-smi pmon: activity of processes, which overlap; gpuctl reads that of GPUs (nvidia-smi dmon -o DT)"
        )
    return None


FORMAT = Format(
    name="gpu-dmon",
    title="nvidia-smi dmon -o DT",
    fills=("gpu_series", "gpu_readings", "gpu_util"),
    file_names=("dmon.NODE.log",),
    order=45,
    clock="wall",
    sniff=sniff,
    load=load,
    passes_over=passes_over,
    verified="documentation",
)
