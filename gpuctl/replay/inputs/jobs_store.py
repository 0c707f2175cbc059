"""A CSV of jobs as a trace store; columns that it lacks (starts, places, ends) stay empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.states import State
from gpuctl.store.database import Store
from gpuctl.store.sources import JOBS_CSV, jobs_csv

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.replay.models.records import Floats, Ints, Workload

_MICROSECONDS = 1_000_000
READER_VERSION = 1


def write_jobs(place: Path, workload: Workload, path: Path) -> str:
    """Make a store of the jobs of a CSV; seconds are counted from 1970.

    Args:
        place: the store, which must not exist.
        workload: from `gpuctl.replay.inputs.job_csv.read_jobs`.
        path: the CSV.

    Returns:
        The cluster's name in the store.
    """
    w, name = workload, workload.name
    submitted = _instants(w.submit)
    common = {"cluster": name, "source": 1}
    rows = pl.DataFrame(
        {
            "job": w.ids,
            "user": _names(w.user, w.users),
            "queue": _names(w.queue, w.queues),
            "account": _names(w.account, w.accounts, w.size),
            "qos": _names(w.qos, w.qos_names, w.size),
            "gpu_type": _names(w.gpu_type, w.gpu_types),
            "submit_ts": submitted,
            "eligible_ts": _instants(w.eligible),
            "deadline_ts": _instants(np.full(w.size, np.nan) if w.deadline is None else w.deadline),
            "gpus": w.gpus.astype(np.float64),
            "time_limit_s": pl.Series(w.time_limit).fill_nan(None).round().cast(pl.Int64),
            "run_sum_s": w.segment_s,
            "run_last_s": w.segment_s,
        }
    ).with_columns(
        state=pl.lit(State.UNKNOWN.value),
        attempts=pl.lit(0, pl.Int32),
        quirks=pl.lit([], pl.List(pl.String)),
        **{key: pl.lit(value) for key, value in common.items()},
    )
    about = {"cluster": name, "source_format": JOBS_CSV, "timezone": "UTC", "clock": "utc"}
    span = {"first_ts": submitted.min(), "last_ts": submitted.max()}
    source = jobs_csv(path, w.size, w.size)
    ledger = {
        **common, "path": source.path, "format": source.format, "sha256": source.sha256, "bytes": source.bytes,
        "rows_in": w.size, "rows_loaded": w.size, "rows_rejected": 0, "parser_version": READER_VERSION,
    }  # fmt: skip
    with Store(place, write=True) as store:
        for table, frame in (("clusters", pl.DataFrame({**about, **span})), ("job_rows", rows)):
            store.view("csv_rows", frame)
            # table is a literal of this function
            store.execute(f"INSERT INTO {table} BY NAME SELECT * FROM csv_rows")  # noqa: S608
            store.drop_view("csv_rows")
        store.view("csv_rows", pl.DataFrame(ledger))
        store.execute("INSERT INTO sources BY NAME SELECT *, now() AS loaded_at FROM csv_rows")
        store.drop_view("csv_rows")
    return name


def _instants(seconds: Floats) -> pl.Series:
    """Instants; null for NaN."""
    return pl.Series((seconds * _MICROSECONDS).round()).fill_nan(None).cast(pl.Int64).cast(pl.Datetime("us", "UTC"))


def _names(numbers: Ints | None, names: Sequence[str], size: int = 0) -> pl.Series:
    """Names for numbers; null for -1, an empty name, or if there are no numbers."""
    if numbers is None:
        return pl.Series([None] * size, dtype=pl.String)
    return pl.Series([names[k] or None if k >= 0 else None for k in numbers.tolist()], dtype=pl.String)
