"""``pai_sensor_table`` of Alibaba's trace of 2020: what each worker of a job read and wrote over the network.

The public file has no header; its columns are those of `COLUMNS`. ``read`` and ``write`` are averages over the life of
the worker, in bytes of a span that the trace does not show: no series, so that they go into a table of their own. CPU,
GPU and memory are not read. A row of the ledger is one line; a header is none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import split
from gpuctl.ingest.traffic.samples import job_name, number

if TYPE_CHECKING:
    from typing import Any

COLUMNS = (
    *("job_name", "task_name", "worker_name", "inst_id", "machine", "gpu_name"),
    *("cpu_usage", "gpu_wrk_util", "avg_mem", "max_mem", "avg_gpu_wrk_mem", "max_gpu_wrk_mem"),
    *("read", "write", "read_count", "write_count"),
)
_STORED = {
    **{"job_name": "job", "task_name": "task", "inst_id": "instance", "worker_name": "worker"},
    **{"machine": "machine", "gpu_name": "gpu"},
    **{"read": "read_bytes", "write": "write_bytes", "read_count": "read_count", "write_count": "write_count"},
}
_NUMBERS = COLUMNS[6:]
_AT = [(COLUMNS.index(name), name, name in _NUMBERS) for name in _STORED]
_HEADER = ",".join(COLUMNS).encode()
_BATCH = 50_000


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read averages into ``traffic_averages``; an empty cell is NULL, but every line needs its job."""
    rows: list[list[Any]] = []
    for line in numbered_lines(stream):
        if not line.data.strip() or (line.line_no == 1 and line.data.strip().lower() == _HEADER):
            continue
        sink.seen()
        try:
            rows.append(_row(line.text()))
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        sink.loaded()
        if len(rows) >= _BATCH:
            _write(sink, rows)
            rows = []
    _write(sink, rows)


def _row(text: str) -> list[Any]:
    cells = split(text)
    if len(cells) != len(COLUMNS):
        raise RowError(f"not {len(COLUMNS)} columns as pai_sensor_table has")
    row: list[Any] = []
    for at, name, is_number in _AT:
        cell = cells[at].strip()
        if not cell and name != "job_name":
            row.append(None)
        else:
            row.append(number(cell, name) if is_number else job_name(cell))
    return row


def _write(sink: Sink, rows: list[list[Any]]) -> None:
    import polars as pl

    if rows:
        schema = {stored: pl.Float64 if name in _NUMBERS else pl.String for name, stored in _STORED.items()}
        sink.insert("traffic_averages", pl.DataFrame(rows, schema=schema, orient="row"))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, or the usual file name with a first row that fits."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:10_000].strip()
    if name.endswith(".header"):
        return None
    if first.lower() == _HEADER:
        return "header of pai_sensor_table"
    try:
        cells = split(first.decode("utf-8", "replace"))
    except RowError:
        return None
    if len(cells) != len(COLUMNS):
        return None
    if "pai_sensor_table" in name:
        return "file name, and a first row of 16 cells (no header)"
    named = re.fullmatch(r"[0-9a-f]{24}", cells[0]) is not None
    return "a first row of 16 cells (no header), and what is in the first of them" if named else None


FORMAT = Format(
    name="traffic-pai",
    title="Alibaba PAI trace: network averages per worker (pai_sensor_table)",
    fills=("traffic_averages",),
    file_names=("pai_sensor_table.csv",),
    order=40,
    zoned=True,
    verified="documentation",
    sniff=sniff,
    load=load,
)
