"""``nvidia-smi --query-gpu=timestamp,index,uuid,utilization.gpu,… --format=csv -l N``: a row a GPU and round.

Times are local times of the node, without a zone. The node is in the file's name or its folder. ``utilization.memory``
is time in which memory was read or written, not memory in use. https://docs.nvidia.com/deploy/nvidia-smi/
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.telemetry.tables import Layout, columns_of
from gpuctl.ingest.telemetry.tables import load as load_table

LAYOUT = Layout(
    reader="nvidia-smi",
    values={
        "utilization.gpu": ("util", 1), "memory.used": ("mem_mb", 1), "power.draw": ("power_w", 1),
        "power.draw.average": ("power_w", 1),
    },
    time=("timestamp",),
    form="%Y/%m/%d %H:%M:%S%.f",
    gpu="index",
    uuid="uuid",
    pci="pci.bus_id",
    hint="record it with --query-gpu=timestamp,index,uuid,utilization.gpu,memory.used,power.draw",
)  # fmt: skip


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples of the GPUs of a node.

    Raises:
        InputError: no time, or nothing shows which node it is.
    """
    load_table(stream, sink, LAYOUT)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header."""
    del name
    columns = columns_of(first_line(head), ",")
    known = {"utilization.gpu", "memory.used", "power.draw"} & set(columns)
    return (
        f"header with {', '.join(sorted(known))}"
        if known and {"index", "uuid", "pci.bus_id", "timestamp"} & set(columns)
        else None
    )


FORMAT = Format(
    name="gpu-nvidia-smi",
    title="nvidia-smi --query-gpu in a loop (CSV)",
    fills=("gpu_series", "gpu_readings", "gpu_util", "gpu_devices"),
    file_names=("NODE.csv",),
    order=45,
    clock="wall",
    sniff=sniff,
    load=load,
    verified="documentation",
)
