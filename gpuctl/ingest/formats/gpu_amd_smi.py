"""``amd-smi monitor --csv``: a row a GPU and round, seconds since 1970, with units in the cells.

Columns differ by version and by option: those of `LAYOUT` are read, by their names. ``gfx`` is the time in which
graphics engines worked. The node is in the file's name or its folder. https://rocm.docs.amd.com/projects/amdsmi/
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.telemetry.tables import Layout, columns_of
from gpuctl.ingest.telemetry.tables import load as load_table

LAYOUT = Layout(
    reader="amd-smi",
    values={"gfx": ("util", 1), "gfx_util": ("util", 1), "vram_used": ("mem_mb", 1), "power_usage": ("power_w", 1)},
    time=("timestamp",),
    form="",
    gpu="gpu",
    hint="record it with amd-smi monitor --csv --watch 60, with power, gfx and vram",
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples of the GPUs of a node.

    Raises:
        InputError: no time, or nothing shows which node it is.
    """
    load_table(stream, sink, LAYOUT)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header."""
    del name
    columns = set(columns_of(first_line(head), ","))
    known = set(LAYOUT.values) & columns
    return f"header gpu,…,{min(known)}" if known and {"timestamp", "gpu"} <= columns else None


def passes_over(name: str, head: bytes) -> str | None:
    """Recognise tables of AMD's tools without a time."""
    del name
    columns = set(columns_of(first_line(head), ","))
    if "GPU use (%)" in columns or ("gpu" in columns and columns & set(LAYOUT.values)):
        return "rocm-smi or amd-smi without a column timestamp: record amd-smi monitor --csv --watch 60"
    return None


FORMAT = Format(
    name="gpu-amd-smi",
    title="amd-smi monitor --csv",
    fills=("gpu_series", "gpu_readings", "gpu_util"),
    file_names=("NODE.csv",),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    passes_over=passes_over,
    verified="documentation",
)
