"""Telegraf's plug-in ``nvidia_smi``: InfluxDB's line protocol, a line a GPU and time, nanoseconds of the node's clock.

``nvidia_smi,host=H,index=0,uuid=GPU-… utilization_gpu=93i,memory_used=40536i,power_draw=398.2 1793401200000000000``. A
row of the ledger is a line. https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import CUT_OFF
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.pieces import LARGE_PIECE, torn_off, whole_lines
from gpuctl.ingest.telemetry.exporters import whole
from gpuctl.ingest.telemetry.recorder import Device, Identity, Recorder, cleaned, fault, uuid_of

if TYPE_CHECKING:
    pass

_LINE = r"^nvidia_smi,((?:[^ \\]|\\.)*) (\S+) (-?\d{1,19})$"
_TAG = re.compile(r"(?:^|(?<=,))([^,=]+)=((?:[^,\\]|\\.)*)")
_FIELDS = {"utilization_gpu": "util", "memory_used": "mem_mb", "power_draw": "power_w"}


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples of GPUs of many nodes."""
    recorder = Recorder(sink, node_clock=True)
    known: dict[str, int] = {}
    at = 1
    for data, more in whole_lines(stream, b"", LARGE_PIECE):
        lines, torn = (data, b"") if more else torn_off(data, stream)
        if lines.strip():
            _take(lines, at, sink, recorder, known)
        at += lines.count(b"\n")
        if torn:
            sink.seen()
            sink.reject(at, CUT_OFF, torn)
    recorder.finish()


def _take(data: bytes, first: int, sink: Sink, recorder: Recorder, known: dict[str, int]) -> None:
    import polars as pl

    text = pl.read_csv(
        data.replace(b"\x01", b" "), has_header=False, separator="\x01", quote_char=None, schema={"text": pl.String},
        encoding="utf8-lossy",
    )  # fmt: skip
    text = text.with_row_index("line", first).filter(
        pl.col("text").is_not_null() & ~pl.col("text").str.starts_with("#")
    )
    parts = pl.col("text").str.extract_groups(_LINE).struct.rename_fields(["tags", "fields", "stamp"])
    rows = text.with_columns(parts.alias("parts")).unnest("parts")
    values = [
        cleaned(
            column, pl.col("fields").str.extract(rf"(?:^|,){name}=([-+.\deE]+)i?(?:,|$)", 1).cast(pl.Float64)
        ).alias(column)
        for name, column in _FIELDS.items()
    ]
    rows = rows.with_columns((pl.col("stamp").cast(pl.Int64) // 1000).alias("ts"), *values)
    wrong = pl.col("ts").is_null() | pl.any_horizontal(fault(column, pl.col(column)) for column in _FIELDS.values())
    sink.seen(rows.height)
    for line, raw in rows.filter(wrong).select("line", "text").iter_rows():
        sink.reject(line, "is no line of Telegraf's nvidia_smi, or a value cannot be right", raw)
    rows = rows.filter(~wrong)
    for tags in rows["tags"].unique():
        known.setdefault(tags, _number(tags, recorder))
    numbers = pl.DataFrame(
        {"tags": list(known), "series": list(known.values())}, schema={"tags": pl.String, "series": pl.Int64}
    )
    recorder.add(rows.join(numbers, on="tags").select("ts", "series", *_FIELDS.values()))
    sink.loaded(rows.height)


def _number(tags: str, recorder: Recorder) -> int:
    found = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _TAG.findall(tags)}
    machine, gpu, uuid = found.get("host"), whole(found.get("index")), uuid_of(found.get("uuid"))
    if gpu is not None and uuid:
        recorder.device(Device(machine, gpu, uuid, model=found.get("name")))
    return recorder.number(Identity("telegraf", machine, gpu, uuid))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the measurement."""
    del name
    return (
        "lines of the measurement nvidia_smi"
        if re.match(rb"(?:#[^\n]*\n)*nvidia_smi,[^\n]*utilization_gpu=", head)
        else None
    )


FORMAT = Format(
    name="gpu-telegraf",
    title="Telegraf: samples of nvidia_smi (line protocol)",
    fills=("gpu_series", "gpu_readings", "gpu_util", "gpu_devices"),
    file_names=("*.influx",),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
