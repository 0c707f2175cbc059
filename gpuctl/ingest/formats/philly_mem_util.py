"""``cluster_mem_util`` of the Philly trace: host memory in kB, total and free, one row per node and minute.

Free does not count the page cache, so 100 * (total - free) / total is near 100 on a busy host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line, looks_like_row, read_header

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_HEADER = re.compile(rb"time, ?machine_?id, ?mem_total, ?mem_free,?", re.IGNORECASE)
_MOST_KB = 1e12  # a petabyte: past it the field is no memory size


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, or the usual file name with a row that fits."""
    line = first_line(head)
    if _HEADER.fullmatch(line):
        return "header time,machine_id,mem_total,mem_free"
    if "mem_util" in name and looks_like_row(line, 2, 2):
        return "file name, and a first row of time, node and two values (no header)"
    return None


def load(stream: BinaryIO, sink: Sink) -> None:
    """Load into ``host_util.mem_total_kb`` and ``host_util.mem_free_kb``."""
    from gpuctl.ingest.philly import telemetry

    body, _, at = read_header(stream, _HEADER)
    telemetry.load(body, sink, telemetry.Layout("host_util", 2, 2, 0.0, _MOST_KB, _columns), first_line=at)


def _columns(values: np.ndarray, ends: np.ndarray) -> dict[str, pa.Array]:
    import pyarrow as pa

    return {
        "mem_total_kb": pa.array(values[0::2], from_pandas=True),
        "mem_free_kb": pa.array(values[1::2], from_pandas=True),
    }


FORMAT = Format(
    name="philly-mem-util",
    title="Philly trace: host memory per minute (cluster_mem_util)",
    fills=("host_util",),
    file_names=("cluster_mem_util",),
    order=50,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=sniff,
    load=load,
    alone=True,
)
