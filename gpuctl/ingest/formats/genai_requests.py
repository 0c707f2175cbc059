"""Alibaba's trace of generated images, 2026 (``lora_request_trace.csv``): requests, their state, images asked for.

Stamps are local and shifted by a constant. A request that failed is counted in ``failed``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.requests import RequestTable
from gpuctl.ingest.traces.table import Column

if TYPE_CHECKING:
    import polars as pl


def _failed() -> dict[str, pl.Expr]:
    import polars as pl

    return {"failed": (pl.col("status") == "FAILED").cast(pl.Float64)}


TABLE = RequestTable(
    what="requests of Alibaba's GenAI trace",
    columns={
        "gmt_create": Column("ts", "time", needed=True),
        "predict_type": Column("service"),
        "predict_status": Column("status"),
        "num_images_per_prompt": Column("images", "whole"),
    },
    optional={"exec_time_seconds": Column("run_s", "number")},
    open_ended=True,
    derive=_failed,
)

FORMAT = Format(
    name="alibaba-genai-requests",
    title="Alibaba GenAI trace of 2026: requests (lora_request_trace.csv)",
    fills=("service_load",),
    file_names=("lora_request_trace.csv",),
    order=30,
    timezone="Asia/Shanghai",
    clock="wall",
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="shifted",
    verified="sample",
)
