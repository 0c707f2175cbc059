"""F-DATA: jobs of Fugaku, month by month (``*.parquet``; Antici et al., 2024). There are no GPUs.

``adt`` is the submission, ``sdt`` and ``edt`` start and end, ``elpl`` the limit in seconds. A job with exit code 0 is
completed, as the authors have it, any other one failed. Stamps without a zone are taken for Japan's. The embedding of
the job's name is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    import polars as pl


def _states() -> dict[str, pl.Expr]:
    import polars as pl

    done = pl.when(pl.col("exit") == 0).then(pl.lit(State.COMPLETED.value)).when(pl.col("exit").is_not_null())
    return {
        "state": done.then(pl.lit(State.FAILED.value)).otherwise(pl.lit(State.UNKNOWN.value)),
        "source_state": pl.col("exit").cast(pl.Int64).cast(pl.String),
        "gpus": pl.lit(0.0),
        "time_limit_s": pl.col("time_limit_s").round().cast(pl.Int64),
    }


TABLE = JobTable(
    what="the job table of F-DATA",
    columns={
        "jid": Column("job", needed=True),
        "usr": Column("user"),
        "adt": Column("submit_ts", "time", needed=True),
        "sdt": Column("start_ts", "time"),
        "edt": Column("end_ts", "time"),
        "elpl": Column("time_limit_s", "number"),
        "nnuma": Column("nodes", "whole"),
        "ec": Column("exit", "real"),
    },
    optional={"jnam": Column("name"), "cnuma": Column("cpus", "whole"), "pri": Column("priority", "whole")},
    open_ended=True,
    derive=_states,
)

FORMAT = Format(
    name="fdata-jobs",
    title="F-DATA: jobs of Fugaku (*.parquet)",
    fills=("jobs", "attempts", "queues"),
    file_names=("24_04.parquet",),
    order=20,
    timezone="Asia/Tokyo",
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
)
