"""Synthetic jobs as files: a CSV of jobs as ``gpuctl replay`` reads it, SWF, or a trace store."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from gpuctl.workloads.jobs import Jobs

SUFFIXES = {".swf": "swf", ".duckdb": "db", ".db": "db"}
_DONE = {"completed": 1, "failed": 0, "killed": 5, "timeout": 0, "node_fail": 0, "out_of_memory": 0}


def start_of(text: str | None) -> datetime:
    """The Monday that submissions are counted from: that of the week of a date.

    Args:
        text: ``2026-11-25``; None: 1970-01-05.

    Raises:
        UsageError: it is no date.
    """
    if text is None:
        return datetime(1970, 1, 5, tzinfo=UTC)
    try:
        day = datetime.fromisoformat(text).replace(tzinfo=UTC, hour=0, minute=0, second=0, microsecond=0)
    except ValueError:
        raise UsageError(f"--start {text[:40]}: expected a date", hint="--start 2026-11-23") from None
    return day - timedelta(days=day.weekday())


def frame(jobs: Jobs) -> pl.DataFrame:
    """The CSV's columns known for any job: one row per job, named 1, 2, 3 …; seconds are whole numbers."""
    known = {
        "vc": (jobs.queue, jobs.queues), "user": (jobs.user, None), "gpu_type": (jobs.gpu_type, jobs.gpu_types),
    }  # fmt: skip
    columns: dict[str, pl.Series | pl.Expr] = {
        "job_id": pl.int_range(1, jobs.count + 1, eager=True).cast(pl.String),
        "submit_time": pl.Series(jobs.submit_s).cast(pl.Int64),
        "duration": pl.Series(jobs.run_s).cast(pl.Int64),
        "num_gpus": pl.Series(jobs.size),
    }
    for name, (numbers, names) in known.items():
        if (numbers >= 0).any():
            columns[name] = _named(numbers, names)
    if np.isfinite(jobs.limit_s).any():
        columns["requested_time"] = pl.Series(jobs.limit_s).fill_nan(None).cast(pl.Int64)
    return pl.DataFrame(columns)


def _named(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], names: tuple[str, ...] | None) -> pl.Series:
    if names is None:
        return pl.select(pl.when(pl.Series(numbers) >= 0).then(pl.format("u{}", pl.Series(numbers) + 1))).to_series()
    lookup = pl.Series([*names, None], dtype=pl.String)
    return lookup.gather(pl.Series(np.where(numbers < 0, len(names), numbers)))


def csv(jobs: Jobs, file: BinaryIO) -> None:
    """Write a CSV of jobs."""
    frame(jobs).write_csv(file)


def store(jobs: Jobs, path: Path) -> None:
    """Write a trace store of the jobs; they have no starts and ends.

    Raises:
        UsageError: the file exists.
    """
    import tempfile
    from pathlib import Path as RealPath

    from gpuctl.core.file_io import write_atomically
    from gpuctl.replay.inputs.job_csv import read_jobs
    from gpuctl.replay.inputs.jobs_store import write_jobs

    if path.exists():
        raise UsageError(f"{path}: already exists", hint="name a new store")
    with tempfile.TemporaryDirectory(prefix="gpuctl-") as folder:
        table = RealPath(folder) / "synthetic.csv"
        write_atomically(table, lambda file: csv(jobs, file))
        write_jobs(path, read_jobs(table), table)


def swf(jobs: Jobs, start: datetime, file: BinaryIO) -> None:
    """Write SWF 2.2; processors are the unit of sizes; fields that a model lacks are left unknown."""
    zero = pl.lit(-1)
    state = pl.Series([_DONE.get(word, -1) for word in jobs.state.tolist()], dtype=pl.Int64)
    rows = frame(jobs).select(
        "job_id", "submit_time", zero.alias("wait"), "duration", "num_gpus", *(zero.alias(f"x{k}") for k in range(2)),
        pl.col("num_gpus").alias("asked"),
        (pl.Series(jobs.limit_s).fill_nan(-1).cast(pl.Int64)).alias("limit"), zero.alias("memory"),
        state.alias("status"), pl.Series(np.where(jobs.user < 0, -1, jobs.user + 1)).alias("who"),
        *(zero.alias(f"y{k}") for k in range(2)), pl.Series(np.where(jobs.queue < 0, -1, jobs.queue + 1)).alias("q"),
        *(zero.alias(f"z{k}") for k in range(3)),
    )  # fmt: skip
    head = io.StringIO()
    capacity = int(jobs.capacity) if np.isfinite(jobs.capacity) else -1
    for key, value in (
        ("Version", "2.2"), ("Computer", "synthetic, made by gpuctl synth"), ("MaxJobs", jobs.count),
        ("MaxRecords", jobs.count), ("UnixStartTime", int(start.timestamp())), ("TimeZoneString", "UTC"),
        ("MaxProcs", capacity), ("Note", f"processors are {jobs.unit}s of the model; times of start are not known"),
    ):  # fmt: skip
        head.write(f"; {key}: {value}\n")
    file.write(head.getvalue().encode())
    rows.write_csv(file, include_header=False, separator=" ")
