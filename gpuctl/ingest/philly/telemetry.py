"""Streams telemetry files (``time,node,value…``) into the store in bounded memory, on all cores."""

from __future__ import annotations

import logging
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import pyarrow as pa

    from gpuctl.ingest.core.format import Sink
    from gpuctl.ingest.read.csv_header import Rest

LONGEST_LINE = 2 << 20
"""A line of more bytes than this is refused."""
GROUP = 256
"""Pieces of the stream (about 1 MiB each) inserted by one statement; their rejects are in memory until it ends."""


@dataclass(frozen=True)
class Layout:
    """What the value columns of one telemetry file mean.

    Attributes:
        table: the table its rows go to.
        least: fewest values a row must have.
        most: most values a row may have.
        low: smallest value allowed.
        high: largest value allowed.
        columns: (values, row ends) -> the table's value columns, as name -> Arrow array.
    """

    table: str
    least: int
    most: int
    low: float
    high: float
    columns: Callable[[np.ndarray, np.ndarray], dict[str, pa.Array]]


@dataclass(frozen=True)
class Chunk:
    """The result of one chunk of lines: rows to insert, rejects, and the number of rows."""

    batch: pa.RecordBatch
    rejects: list[tuple[int, str, bytes]]
    rows: int


def load(stream: Rest, sink: Sink, layout: Layout, *, first_line: int = 1) -> None:
    """Scan a telemetry stream and insert its rows.

    Blank lines are no rows. A last line without a line end is read like any other, unless the stream states
    that it was truncated (``stream.truncated``), in which case it may be half a row and is rejected.

    Args:
        stream: decompressed bytes after the header.
        sink: takes rows and rejects.
        layout: what the value columns mean.
        first_line: the number of the stream's first line in its file.
    """
    import pyarrow as pa

    from gpuctl.compiled.jit import is_compiled
    from gpuctl.ingest.philly import telemetry_kernel as kernel

    if not is_compiled(kernel.scan):
        logging.getLogger(__name__).warning("compiling the telemetry reader; only the first run on a node does")
    workers = max(1, min(8, len(os.sched_getaffinity(0))))
    chunks = _chunks(stream, first_line)
    with ThreadPoolExecutor(workers) as pool:
        results = _in_order(pool, chunks, layout, sink.timezone, workers + 1)
        first = next(results, None)
        while first is not None:
            group: list[Chunk] = []

            def batches(head: Chunk = first, group: list[Chunk] = group) -> Iterator[pa.RecordBatch]:
                chunk: Chunk | None = head
                while chunk is not None:
                    batch = chunk.batch
                    group.append(Chunk(batch.slice(0, 0), chunk.rejects, chunk.rows))
                    yield batch
                    chunk = next(results, None) if len(group) < GROUP else None

            sink.insert(layout.table, pa.RecordBatchReader.from_batches(first.batch.schema, batches()))
            for chunk in group:
                sink.seen(chunk.rows)
                sink.loaded(chunk.rows - len(chunk.rejects))
                for line_no, reason, raw in chunk.rejects:
                    sink.reject(line_no, reason, raw)
            first = next(results, None)


def _in_order(
    pool: ThreadPoolExecutor, chunks: Iterator[tuple[int, bytes, str]], layout: Layout, zone: str, ahead: int
) -> Iterator[Chunk]:
    waiting: deque[Future[Chunk]] = deque()
    try:
        for line, data, fault in chunks:
            waiting.append(pool.submit(_scan, data, line, fault, layout, zone))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _chunks(stream: Rest, line: int) -> Iterator[tuple[int, bytes, str]]:
    """(number of the first line, whole lines, fault) of a stream; with a fault the bytes are one refused line."""
    rest = b""
    skipping = False
    for data in stream.blocks():
        cut = data.rfind(b"\n") + 1
        if skipping:
            start = data.find(b"\n") + 1
            if not start:
                continue
            skipping, data, cut = False, data[start:], cut - start  # noqa: PLW2901 - the rest of the long line goes
        if not cut:
            rest += data
            if len(rest) >= LONGEST_LINE:
                yield line, rest[:4096], f"a line longer than {LONGEST_LINE} bytes"
                line += 1
                rest, skipping = b"", True
            continue
        whole = b"".join((rest, memoryview(data)[:cut])) if rest or cut < len(data) else data
        rest = data[cut:]
        yield line, whole, ""
        line += whole.count(b"\n")
    if rest:
        yield line, rest, "the stream was cut off inside this line" if stream.truncated else ""


def _scan(data: bytes, line: int, fault: str, layout: Layout, zone: str) -> Chunk:
    import pyarrow as pa

    if fault:
        empty = _scan(b"", line, "", layout, zone)
        return Chunk(empty.batch, [(line, fault, data[:4096])], 1)
    batches, rejects, rows = [], [], 0
    while True:
        batch, refused, count, consumed, lines = _scan_once(data, line, layout, zone)
        batches.append(batch)
        rejects += refused
        rows += count
        if consumed >= len(data):
            break
        data, line = data[consumed:], line + lines
    if len(batches) == 1:
        return Chunk(batches[0], rejects, rows)
    table = pa.concat_tables([pa.Table.from_batches([b]) for b in batches]).unify_dictionaries().combine_chunks()
    return Chunk(table.to_batches()[0], rejects, rows)


def _scan_once(
    data: bytes, line: int, layout: Layout, zone: str
) -> tuple[pa.RecordBatch, list[tuple[int, str, bytes]], int, int, int]:
    import numpy as np
    import pyarrow as pa

    from gpuctl.ingest.philly import telemetry_kernel as kernel

    buffer = np.frombuffer(data, np.uint8)
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    found = kernel.scan(buffer, lines, layout.least, layout.most, layout.low, layout.high)
    rows, seconds, shift, codes, ends, values, name_start, name_end = found[:8]
    refused, at, start, end, code, blanks, consumed = found[9:]
    table = [data[a:b].decode("ascii") for a, b in zip(name_start.tolist(), name_end.tolist(), strict=True)]
    rejects = [
        (line + int(at[k]), kernel.REASONS[int(code[k])], data[int(start[k]) : min(int(end[k]), int(start[k]) + 4096)])
        for k in range(refused)
    ]
    columns: dict[str, pa.Array] = {
        "ts": _utc(seconds, shift, zone),
        "machine": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(table, pa.string())),
        **layout.columns(values, ends),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    return batch, rejects, rows + refused, consumed, rows + refused + blanks


def _utc(seconds: np.ndarray, shift: np.ndarray, zone: str) -> pa.Array:
    """UTC times; a stamp without a zone is read in `zone`, the earlier reading if the hour occurs twice."""
    import numpy as np
    import polars as pl
    import pyarrow as pa

    bare = shift >= (1 << 60)
    if not bare.any():
        return pa.array((seconds + shift) * 1_000_000).cast(pa.timestamp("us", "UTC"))
    stamps = pl.Series(seconds[bare] * 1_000_000).cast(pl.Datetime("us"))
    local = stamps.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    # 02:30 on the night the clocks go forward does not exist; the log's clock was then still an hour behind
    later = stamps.dt.offset_by("1h").dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    instants = local.fill_null(later).dt.convert_time_zone("UTC").to_physical().to_numpy()
    result = (seconds + np.where(bare, 0, shift)) * 1_000_000
    result[bare] = instants
    return pa.array(result).cast(pa.timestamp("us", "UTC"))
