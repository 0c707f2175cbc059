"""Trials of hyper-parameter searches of Philly, as mltiply publishes them (``philly_hyperdrive_workload.csv``, 2018).

``experiment-id`` names the search that a trial belongs to and is kept as its name; ``job-id`` is YARN's. When a trial
was submitted is not told, nor what became of it. Stamps are local and name no zone: that of the Philly trace is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _end() -> dict[str, pl.Expr]:
    import polars as pl

    micros = (pl.col("run_s") * 1_000_000).round().cast(pl.Int64).cast(pl.Duration("us"))
    return {"end_ts": pl.col("start_ts") + micros, "state": pl.lit(State.UNKNOWN.value)}


TABLE = JobTable(
    what="a list of trials of hyper-parameter searches",
    columns={
        "experiment-id": Column("name"),
        "job-id": Column("job", needed=True),
        "start-time": Column("start_ts", "time", needed=True),
        "run-time": Column("run_s", "number", needed=True),
        "num-gpus": Column("gpus", "whole", needed=True),
    },
    derive=_end,
)

FORMAT = Format(
    name="philly-hyperdrive",
    title="Philly: trials of hyper-parameter searches (philly_hyperdrive_workload.csv of mltiply)",
    fills=("jobs", "attempts", "queues"),
    file_names=("philly_hyperdrive_workload.csv",),
    order=20,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=TABLE.sniff,
    load=TABLE.load,
)
