"""The jobs of a Slurm log as Mirage's authors use them: nodes, limits and run times, on the log's own clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.core.notes import Note, literal, note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.store.database import Store

    Ints = NDArray[np.int64]

UNLIMITED_S = 365 * 86_400
"""Planned run time of a job without a limit, as in the replay policies that plan."""

_JOBS = """
    SELECT job, epoch(timezone($zone, submit_ts)) AS submit_s, epoch(timezone($zone, start_ts)) AS start_s,
           epoch(timezone($zone, end_ts)) AS end_s, nodes, time_limit_s, user
    FROM jobs WHERE cluster = $cluster ORDER BY submit_s, job
"""


@dataclass(frozen=True)
class Log:
    """Jobs in order of submission, as arrays.

    Attributes:
        name: name of the log.
        ids: names of the jobs.
        text: rank of each name in text order.
        submit_s: seconds since 1970 on the log's own clock, ignoring time zones.
        nodes: nodes of each job.
        limit_min: minutes, at least 1.
        ticks: minutes for which a job holds its nodes: run time cut at its limit, rounded up, at least 1.
        user: number of each job's user, in `users`; -1: unknown.
        end_s: end of each job, rounded up to a second, on the same clock.
        first_start_s: the first start of a job, on the same clock.
        notes: jobs left out, and assumptions.
        users: names.
    """

    name: str
    ids: tuple[str, ...]
    text: Ints
    submit_s: Ints
    nodes: Ints
    limit_min: Ints
    ticks: Ints
    user: Ints
    end_s: Ints
    first_start_s: int
    notes: tuple[Note, ...] = ()
    users: tuple[str, ...] = ()


def from_store(store: Store, cluster: str | None) -> Log:
    """Read the jobs of one cluster of an open store.

    Jobs without a submission, a number of nodes or a start are left out. A job still running when the log ends runs to
    its limit; a job without a limit gets one year.

    Raises:
        UsageError: the store has no such cluster, or has several and `cluster` is None.
        InputError: no job is left.
    """
    name = store.cluster(cluster)
    zone = store.value("SELECT timezone FROM clusters WHERE cluster = $cluster", {"cluster": name})
    rows = store.frame(_JOBS, {"cluster": name, "zone": zone or "UTC"})
    known = pl.col("submit_s").is_not_null() & (pl.col("nodes") >= 1) & pl.col("start_s").is_not_null()
    usable = rows.filter(known)
    if not usable.height:
        raise InputError(
            f"{name}: none of {rows.height:,} jobs has a submission, a start and a number of nodes",
            hint="chains are evaluated on accounting of Slurm (sacct), whose jobs hold whole nodes",
        )
    counts = {
        "left out: no submission, start or number of nodes": rows.height - usable.height,
        "ran to their limits: no end": usable["end_s"].null_count(),
        "planned for a year: no limit": usable["time_limit_s"].null_count(),
    }
    limit = pl.col("time_limit_s").fill_null(UNLIMITED_S)
    cells = usable.select(
        pl.col("submit_s").floor().cast(pl.Int64),
        pl.col("nodes").cast(pl.Int64),
        limit.cast(pl.Int64).alias("limit_s"),
        (pl.col("end_s") - pl.col("start_s")).fill_null(limit).clip(0).ceil().cast(pl.Int64).alias("run_s"),
        pl.col("end_s").fill_null(pl.col("start_s") + limit).ceil().cast(pl.Int64),
        pl.when(pl.col("user").is_null())
        .then(-1)
        .otherwise(pl.col("user").rank("dense").cast(pl.Int64) - 1)
        .alias("user"),
    )
    left_out = tuple(note("{n:,} job{n||s} {what}", n=n, what=literal(what)) for what, n in counts.items() if n)
    columns = {column: cells[column].to_numpy() for column in cells.columns}
    first = int(usable["start_s"].min())  # type: ignore[arg-type]
    users = tuple(usable["user"].drop_nulls().unique().sort().to_list())
    return log_of(name, usable["job"].to_list(), **columns, users=users, first_start_s=first, notes=left_out)


def log_of(
    name: str,
    ids: list[str],
    *,
    submit_s: Ints,
    run_s: Ints,
    nodes: Ints,
    limit_s: Ints,
    end_s: Ints | None = None,
    user: Ints | None = None,
    users: tuple[str, ...] = (),
    first_start_s: int = 0,
    notes: tuple[Note, ...] = (),
) -> Log:
    """Make a log of columns in any order; times in seconds. Without ends, each job started at its submission."""
    order = np.argsort(submit_s, kind="stable")
    limit = np.maximum(-(-limit_s[order] // 60), 1)
    names = tuple(ids[k] for k in order.tolist())
    text = np.empty(len(names), np.int64)
    text[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    ticks = np.clip(-(-run_s[order] // 60), 1, limit)
    ends = submit_s + run_s if end_s is None else end_s
    numbers = np.full(len(names), -1) if user is None else user
    return Log(
        name, names, text, submit_s[order], nodes[order], limit, ticks, numbers[order], ends[order], first_start_s,
        notes, users,
    )  # fmt: skip


def check_size(log: Log, size: int) -> None:
    """Check that each job fits the cluster.

    Raises:
        InputError: some do not; they would block all other jobs forever.
    """
    large = np.flatnonzero(log.nodes > size)
    if large.size:
        listed = ", ".join(f"{log.ids[k]} ({log.nodes[k]} nodes)" for k in large[:5].tolist())
        more = f" and {large.size - 5:,} more" if large.size > 5 else ""
        raise InputError(
            f"{log.name}: {large.size:,} jobs request more than {size} nodes: {listed}{more}",
            hint=f"name at least {log.nodes.max()} nodes",
        )
