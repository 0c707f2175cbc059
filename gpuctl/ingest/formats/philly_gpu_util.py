"""``cluster_gpu_util`` of the Philly trace: GPU utilization, one row per node and minute.

``time,machineId,gpu0_util,…,gpu7_util`` with a trailing comma on the rows, on the header or not; times carry
PDT or PST; values are percent or ``NA``; a node with fewer GPUs may have fewer fields. Rows with more
fields than the header names are records glued together and are rejected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line, looks_like_row, read_header

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

DEFAULT_GPUS = 8
_HEADER = re.compile(rb"time, ?machine_?id(, ?gpu\d+_util)+,?", re.IGNORECASE)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, or the usual file name with a row that fits."""
    line = first_line(head)
    if _HEADER.fullmatch(line):
        return "header time,machineId,gpu0_util…"
    if "gpu_util" in name and looks_like_row(line, 1, 64):
        return "file name, and a first row of time, node and values (no header)"
    return None


def load(stream: BinaryIO, sink: Sink) -> None:
    """Load into ``gpu_samples``; one element of ``util`` for each field of the row, NULL for NA."""
    from gpuctl.ingest.philly import telemetry

    body, header, at = read_header(stream, _HEADER)
    gpus = header.lower().count(b"_util") if header else DEFAULT_GPUS
    layout = telemetry.Layout("gpu_samples", 1, gpus, 0.0, 100.0, _columns)
    telemetry.load(body, sink, layout, first_line=at)


def _columns(values: np.ndarray, ends: np.ndarray) -> dict[str, pa.Array]:
    import pyarrow as pa

    util = pa.array(values.astype("float32"), from_pandas=True)
    return {"util": pa.ListArray.from_arrays(pa.array(ends), util)}


FORMAT = Format(
    name="philly-gpu-util",
    title="Philly trace: GPU utilization per minute (cluster_gpu_util)",
    fills=("gpu_samples",),
    file_names=("cluster_gpu_util",),
    order=30,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=sniff,
    load=load,
    alone=True,
)
