"""Lucid's quotas of Helios's virtual clusters (``vc_config.csv``): ``,num``, the nodes of 8 GPUs per cluster."""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import replace_rows
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.traces.table import Column, Table

GPUS_PER_NODE = 8
TABLE = Table(
    what="a list of virtual clusters of Lucid",
    columns={"": Column("queue", needed=True), "num": Column("quota_gpus", "whole", needed=True, scale=GPUS_PER_NODE)},
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``queues``.

    Raises:
        InputError: the header lacks a column.
    """
    import polars as pl

    for rows, _ in TABLE.rows(stream, sink):
        sink.loaded(rows.height)
        last = rows.unique("queue", keep="last", maintain_order=True)
        quotas = last.select("queue", pl.col("quota_gpus").cast(pl.Float64), quota_source=pl.lit("configured"))
        replace_rows(sink, "queues", quotas)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header ``,num`` and a first row of two cells."""
    return TABLE.sniff(name, head) if first_line(head) == b",num" else None


FORMAT = Format(
    name="helios-vc-config",
    title="Lucid: nodes of Helios's virtual clusters (vc_config.csv)",
    fills=("queues",),
    file_names=("vc_config.csv",),
    order=14,
    timezone="Asia/Shanghai",
    zoned=True,
    clock="wall",
    sniff=sniff,
    load=load,
)
