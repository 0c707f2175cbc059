"""BurstGPT: requests to GPT services (``BurstGPT_*.csv``). Seconds count from midnight of the first day.

The service is the model. A request without a token of response failed. Of a file and its twin
``without_fails`` load one.
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

    return {"failed": (pl.col("output_tokens") == 0).cast(pl.Float64)}


TABLE = RequestTable(
    what="requests of BurstGPT",
    columns={
        "Timestamp": Column("ts", "epoch", needed=True),
        "Model": Column("service"),
        "Request tokens": Column("prompt_tokens", "whole", needed=True),
        "Response tokens": Column("output_tokens", "whole", needed=True),
    },
    passed=frozenset({"Total tokens", "Log Type", "Session ID", "Elapsed time"}),
    derive=_failed,
)

FORMAT = Format(
    name="llm-burstgpt",
    title="BurstGPT: requests to GPT services (Timestamp, Model, Request tokens ...)",
    fills=("service_load",),
    file_names=("BurstGPT_1.csv",),
    order=30,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="relative",
    verified="documentation",
)
