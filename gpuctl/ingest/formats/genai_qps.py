"""Alibaba's trace of generated images, 2026 (``qps.csv``): requests a second, by container and type, every 57 s.

Times are shifted by a constant. The rate is taken for the 57 s that follow; those of all containers add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.requests import RequestTable
from gpuctl.ingest.traces.table import Column

if TYPE_CHECKING:
    import polars as pl

SPAN_S = 57.0
"""Between samples of a container: 1 440 of them in 22.8 h."""


def _count() -> dict[str, pl.Expr]:
    import polars as pl

    return {"requests": pl.col("rate") * SPAN_S, "span_s": pl.lit(SPAN_S)}


TABLE = RequestTable(
    what="request rates of Alibaba's GenAI trace",
    columns={
        "timestamp_anon": Column("ts", "epoch", needed=True),
        "value": Column("rate", "number", needed=True),
        "request_type": Column("service"),
    },
    unread=frozenset({"container_ip"}),
    derive=_count,
)

FORMAT = Format(
    name="alibaba-genai-qps",
    title="Alibaba GenAI trace of 2026: requests a second (qps.csv)",
    fills=("service_load",),
    file_names=("qps.csv",),
    order=30,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="shifted",
    verified="sample",
)
