"""``cluster_cpu_util`` of the Philly trace: host CPU utilization in percent, one row per node and minute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line, looks_like_row, read_header

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_HEADER = re.compile(rb"time, ?machine_?id, ?cpu_util,?", re.IGNORECASE)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, or the usual file name with a row that fits."""
    line = first_line(head)
    if _HEADER.fullmatch(line):
        return "header time,machine_id,cpu_util"
    if "cpu_util" in name and looks_like_row(line, 1, 1):
        return "file name, and a first row of time, node and a value (no header)"
    return None


def load(stream: BinaryIO, sink: Sink) -> None:
    """Load into ``host_util.cpu_pct``."""
    from gpuctl.ingest.philly import telemetry

    body, _, at = read_header(stream, _HEADER)
    telemetry.load(body, sink, telemetry.Layout("host_util", 1, 1, 0.0, 100.0, _columns), first_line=at)


def _columns(values: np.ndarray, ends: np.ndarray) -> dict[str, pa.Array]:
    import pyarrow as pa

    return {"cpu_pct": pa.array(values.astype("float32"), from_pandas=True)}


FORMAT = Format(
    name="philly-cpu-util",
    title="Philly trace: host CPU utilization per minute (cluster_cpu_util)",
    fills=("host_util",),
    file_names=("cluster_cpu_util",),
    order=40,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=sniff,
    load=load,
    alone=True,
)
