"""The jobs that a run-time predictor learns from: one row per job, with what was known at submission and its outcome.

This module decides which jobs count, and counts the others:

* used for training and scoring: jobs whose end and run time are known, whatever their final state. A scheduler does not
  know at submission whether a job will fail, and its GPUs are held until it does. A job that was ended at its limit
  counts with the time that it held.
* left out: jobs that never ran, jobs that still ran when the log was taken, and jobs that a node or the scheduler ended
  (node failure, preemption): their length is not a property of the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.core.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpuctl.store.database import Store

SHORTEST_S = 1.0
"""Shorter run times count as this: a logarithm and a percentage need more than 0."""

TEXTS = ("user", "queue", "name")
"""What a job may be described with in words; an empty text is as none."""

_JOBS = """
    SELECT job, "user", queue, name, gpus, nodes, time_limit_s, state, run_sum_s AS run_s,
           epoch(timezone($clock, submit_ts)) AS submit_s, epoch(timezone($clock, eligible_ts)) AS eligible_s,
           epoch(timezone($clock, end_ts)) AS end_s
    FROM jobs WHERE cluster = $cluster
"""
_UNFINISHED = (State.RUNNING, State.SUSPENDED)
_FROM_OUTSIDE = (State.NODE_FAIL, State.PREEMPTED)

POPULATION = {
    "jobs": "Jobs in the log.",
    "no_submission": "Left out: no time of submission is known.",
    "never_ran": "Left out: never ran, or the log has no run time of it.",
    "still_running": "Left out: still running or suspended when the log was taken; how long it ran is not known.",
    "ended_from_outside": "Left out: ended by a node failure or a preemption, which says nothing about the job.",
    "known": "Counted: end and run time are known, however the job ended.",
    "failed": "Of the counted: failed or out of memory.",
    "killed": "Of the counted: ended by its user or an administrator.",
    "timeout": "Of the counted: ended at its limit; counts with the time that it held.",
    "end_estimated": "Of the counted: the log has no end; taken as submission (or when it was eligible) "
    "+ run time, the earliest possible. Later jobs may use it before its true end.",
}
"""What `JobTable.counts` count."""


@dataclass(frozen=True)
class JobTable:
    """Jobs in order of submission.

    Attributes:
        name: of the cluster or file.
        rows: one per job with a known submission: ``job``, ``user``, ``queue``, ``name`` (digits masked; "" for none),
            ``size`` (GPUs or nodes), ``time_limit_s``, ``submit_s`` and ``end_s`` (seconds of the clock that durations
            are measured on), ``hour``, ``weekday`` (0 is Monday), ``run_s``, ``known`` (whether it is used for
            training); unknown numbers are NaN.
        zone: IANA zone that hours and weekdays are of.
        clock: IANA zone of the clock that times are seconds of, from 1970-01-01 00:00 on.
        size: what ``size`` counts: ``GPUs`` or ``nodes``.
        counts: number of jobs, by the keys of `POPULATION`.
        dated: false if times are seconds from an arbitrary instant.
    """

    name: str
    rows: pl.DataFrame
    zone: str
    clock: str
    size: str
    counts: Mapping[str, int]
    dated: bool = True


def from_store(store: Store, cluster: str | None) -> JobTable:
    """Read the jobs of one cluster of an open store; a run time is the sum over a job's attempts.

    Raises:
        UsageError: the store has no such cluster, or several and none is named.
        InputError: no job of it has a known run time.
    """
    name = store.cluster(cluster)
    about = store.frame("SELECT timezone, clock FROM clusters WHERE cluster = $cluster", {"cluster": name})
    zone, kind = about.row(0)
    clock = zone if kind == "wall" else "UTC"
    rows = store.frame(_JOBS, {"cluster": name, "clock": clock})
    return table(name, rows, zone=zone, clock=clock)


def from_jobs(jobs: Any, path: Path) -> JobTable:
    """Make a table of the jobs of a CSV.

    Args:
        jobs: the result of `gpuctl.replay.inputs.job_csv.read_jobs`, passed in because that package must not be
            imported here.
        path: the file; its column ``name``, if present, holds the names of the jobs.

    Raises:
        InputError: none of the jobs has a known run time.
    """
    rows = pl.DataFrame(
        {
            "job": jobs.ids,
            "user": [jobs.users[code] if code >= 0 else None for code in jobs.user],
            "queue": [jobs.queues[code] for code in jobs.queue],
            "name": _names(path, jobs.ids),
            "gpus": jobs.gpus,
            "time_limit_s": jobs.time_limit,
            "submit_s": jobs.submit,
            "run_s": jobs.segment_s,
            "eligible_s": jobs.eligible,
        }
    )
    return table(jobs.name, rows, dated=False)


def _names(path: Path, ids: Sequence[str]) -> list[str | None]:
    """Return the names of jobs, from a column ``name`` that a replay does not read."""
    cells = pl.read_csv(read_whole(path, most=MOST_TABLE), infer_schema=False)
    header = [column.strip() for column in cells.columns]
    if "name" not in header:
        return [None] * len(ids)
    jobs, names = (cells.to_series(header.index(column)) for column in ("job_id", "name"))
    found = dict(zip(jobs.str.strip_chars(), names, strict=True))
    return [found[job] for job in ids]


def table(name: str, rows: pl.DataFrame, *, zone: str = "UTC", clock: str = "UTC", dated: bool = True) -> JobTable:
    """Make a table of jobs from the columns of a log.

    Args:
        name: of the cluster or file.
        rows: ``job``, ``submit_s``, ``run_s``, and any of ``user``, ``queue``, ``name``, ``gpus``, ``nodes``,
            ``time_limit_s``, ``eligible_s``, ``end_s``, ``state``.
        zone: IANA zone that hours and weekdays are of.
        clock: IANA zone of the clock that ``submit_s`` and ``end_s`` are seconds of.
        dated: whether these seconds are from 1970 on.

    Raises:
        InputError: none of the jobs has a known run time.
    """
    states = rows["state"] if "state" in rows.columns else pl.Series([State.UNKNOWN] * rows.height, dtype=pl.String)
    size = "nodes" if "gpus" not in rows.columns or rows["gpus"].is_null().all() else "GPUs"
    described = describe(rows, size="nodes" if size == "nodes" else "gpus", zone=zone, clock=clock)
    full = described.with_columns(
        _number(rows, "run_s").alias("run_s"), _number(rows, "end_s").alias("end_s"), state=states
    )
    eligible = _number(rows, "eligible_s").fill_nan(None)
    begin = pl.max_horizontal("submit_s", eligible)
    marked = full.with_columns(_fate().alias("fate"), earliest=begin + pl.col("run_s"))
    counts = _counts(marked)
    if not counts["known"]:
        listed = ", ".join(f"{key.replace('_', ' ')} {n:,}" for key, n in counts.items() if n)
        raise InputError(
            f"{name}: no job has a known run time ({listed})", hint="train on a log of jobs that have ended"
        )
    usable = (
        marked.filter(pl.col("fate") != "no_submission")
        .with_columns(
            known=pl.col("fate") == "known",
            # clocks are set back: no job ended before it was submitted
            end_s=pl.max_horizontal(pl.col("end_s").fill_nan(None).fill_null(pl.col("earliest")), "submit_s"),
        )
        .sort("submit_s", "job")
        .drop("fate", "earliest", "state")
    )
    return JobTable(name, usable, zone, clock, size, counts, dated)


def describe(rows: pl.DataFrame, *, size: str, zone: str, clock: str) -> pl.DataFrame:
    """Return what is known of jobs at submission, in the columns of `JobTable.rows`; missing columns are unknown.

    Args:
        rows: ``job`` and any of ``user``, ``queue``, ``name``, ``gpus`` or ``nodes``, ``time_limit_s``, ``submit_s``.
        size: the column with the size of a job.
        zone: IANA zone of hours and weekdays.
        clock: IANA zone of the clock of ``submit_s``.
    """
    texts = [pl.col(c).cast(pl.String).fill_null("") if c in rows.columns else pl.lit("").alias(c) for c in TEXTS]
    masked = pl.col("name").str.replace_all("[0-9]+", "#")
    numbers = [
        _number(rows, size).alias("size"), _number(rows, "time_limit_s").alias("time_limit_s"),
        _number(rows, "submit_s").alias("submit_s"),
    ]  # fmt: skip
    base = rows.select(pl.col("job").cast(pl.String), *texts).with_columns(masked, *numbers)
    return base.with_columns(*_calendar(zone, clock))


def _number(rows: pl.DataFrame, column: str) -> pl.Series:
    if column not in rows.columns:
        return pl.Series(column, [float("nan")] * rows.height, dtype=pl.Float64)
    values = rows[column].cast(pl.Float64).fill_null(float("nan"))
    return values.set(values.is_infinite(), float("nan"))


def _calendar(zone: str, clock: str) -> tuple[pl.Expr, pl.Expr]:
    """Return hour of the day (with its fraction) and day of the week, as a wall clock in `zone` showed them."""
    inside = pl.col("submit_s").is_between(-_FAR_S, _FAR_S)
    ticks = pl.when(inside).then(pl.col("submit_s")).fill_nan(None) * 1e6
    local = ticks.cast(pl.Int64).cast(pl.Datetime("us"))
    if zone != clock:
        there = local.dt.replace_time_zone(clock, ambiguous="earliest", non_existent="null")
        local = there.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    second = local.dt.epoch("us") / 1e6
    hour = (second % 86400) / 3600
    # 1970-01-01 was a Thursday
    weekday = ((second / 86400).floor() + 3) % 7
    return hour.fill_null(float("nan")).alias("hour"), weekday.fill_null(float("nan")).alias("weekday")


_FAR_S = 2e11
"""Some 6 000 years from 1970: what lies beyond has no calendar."""


def _fate() -> pl.Expr:
    return (
        pl.when(pl.col("submit_s").is_nan())
        .then(pl.lit("no_submission"))
        .when(pl.col("state").is_in(_UNFINISHED))
        .then(pl.lit("still_running"))
        .when(pl.col("run_s").is_nan() | (pl.col("run_s") < 0) | (pl.col("state") == State.PENDING))
        .then(pl.lit("never_ran"))
        .when(pl.col("state").is_in(_FROM_OUTSIDE))
        .then(pl.lit("ended_from_outside"))
        .otherwise(pl.lit("known"))
    )


def _counts(rows: pl.DataFrame) -> dict[str, int]:
    fates: dict[str, Any] = dict(rows["fate"].value_counts().iter_rows())
    known = rows.filter(pl.col("fate") == "known")
    states = known["state"]
    counts = {key: int(fates.get(key, 0)) for key in POPULATION}
    return counts | {
        "jobs": rows.height,
        "failed": int(states.is_in([State.FAILED, State.OUT_OF_MEMORY]).sum()),
        "killed": int((states == State.KILLED).sum()),
        "timeout": int((states == State.TIMEOUT).sum()),
        "end_estimated": int(known["end_s"].is_nan().sum()),
    }
