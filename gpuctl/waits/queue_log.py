"""The jobs of a log from the view of a queue: when each entered it, left it, and released its resources."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.core.states import State
from gpuctl.predictors import job_table
from gpuctl.waits import queue_snapshot
from gpuctl.waits.limits import Limits
from gpuctl.waits.limits import read as read_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store
    from gpuctl.waits.queue_snapshot import Snapshot

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LATEST = 60_000
"""Of a longer log the latest so many jobs are looked at, and those that waited or ran when the first of them came."""
UNLIMITED_S = 365 * 86_400.0
"""What a job without a limit is planned for, as the replay's policies that plan have it."""

_JOBS = """
    SELECT job, "user", queue, gpus, nodes, time_limit_s, state, array_job, het_job,
           epoch(timezone($clock, submit_ts)) AS submit_s, epoch(timezone($clock, eligible_ts)) AS eligible_s,
           epoch(timezone($clock, start_ts)) AS start_s, epoch(timezone($clock, end_ts)) AS end_s
    FROM jobs WHERE cluster = $cluster
"""
_NEVER_STARTED = (State.KILLED, State.UNKNOWN, State.PENDING)

POPULATION = {
    "jobs": "Jobs in the log.",
    "no_submission": "Left out: no time of submission is known.",
    "no_end_of_wait": "Left out: no start, and not known whether or until when it waited.",
    "started": "Counted: the wait is known.",
    "left_early": "Left the queue without running: in the queue until then, but their own wait has no end to learn.",
    "still_waiting": "Still waiting when the log was taken: in the queue, but their own wait has no end yet.",
    "held_first": "Of the counted: could not start at first (held, depending, or to begin later); the wait counts from "
    "when they could.",
    "array_tasks": "Of the counted: tasks of arrays, each a job of its own.",
    "het_parts": "Of the counted: parts of heterogeneous jobs, each a job of its own.",
    "latest": f"The latest {LATEST:,} whose fate is known: of a longer log only these are learnt from and simulated, "
    "in a queue with what waited or ran when the first of them came.",
}
"""What `WaitLog.counts` count."""


@dataclass(frozen=True)
class WaitLog:
    """Jobs by eligibility; times are seconds of the log's clock.

    Attributes:
        name: of the cluster.
        rows: ``job``, ``user``, ``queue``, ``size``, ``time_limit_s``, ``submit_s``, ``hour``, ``weekday``, as
            `gpuctl.predictors.job_table.describe` makes them.
        ready_s: submission or eligibility, whichever is later.
        leave_s: time at which it left the queue: its start, or its end if it never ran; infinite: still waiting.
        end_s: time at which it released its resources; infinite: still running; `leave_s` if it never ran.
        started: whether the wait is known.
        taken_s: the last instant in the log.
        zone: IANA zone of hours and weekdays.
        clock: IANA zone of the clock.
        unit: unit of a job's size: ``GPUs`` or ``nodes``.
        counts: numbers of jobs, by the keys of `POPULATION`.
        width: the most GPUs that a job of the first quarter had on one node; 1: unknown, or whole nodes are counted.
        since_s: earlier jobs are included because they waited or ran then; their waits are not used for training.
        limits: loaded limits on the GPUs of users, accounts and QOS.
    """

    name: str
    rows: pl.DataFrame
    ready_s: Floats
    leave_s: Floats
    end_s: Floats
    started: NDArray[np.bool_]
    taken_s: float
    zone: str
    clock: str
    unit: str
    counts: Mapping[str, int]
    width: int = 1
    since_s: float = -math.inf
    limits: Limits = field(default_factory=Limits)

    @property
    def queues(self) -> tuple[str, ...]:
        """Return the names of the queues in which jobs have started, in order; empty: the log names none."""
        dated = self.rows["queue"].filter(pl.Series(self.started))
        return tuple(sorted({name for names in dated.unique().to_list() for name in queue_names(names)}))

    @property
    def wait_s(self) -> Floats:
        """Return the seconds from eligibility to start; NaN if it did not start."""
        return np.where(self.started, self.leave_s - self.ready_s, np.nan)


def queue_names(queue: str) -> list[str]:
    """Return the queues that a job names: several, separated by commas, if any of them will do."""
    return [name for name in queue.split(",") if name]


def from_store(store: Store, cluster: str | None, queue: Snapshot | None = None) -> tuple[WaitLog, tuple[Note, ...]]:
    """Read the jobs of one cluster of an open store; return notes on merging them with a current queue.

    Raises:
        UsageError: the store has no such cluster, or several and none is named.
        InputError: no wait of it is known, or its clock and that of the queue differ.
    """
    name = store.cluster(cluster)
    about = store.frame("SELECT timezone, clock FROM clusters WHERE cluster = $cluster", {"cluster": name})
    zone, kind = about.row(0)
    clock = zone if kind == "wall" else "UTC"
    jobs = store.frame(_JOBS, {"cluster": name, "clock": clock})
    if queue is None:
        return _limited(store, latest(log_of(name, jobs, zone=zone, clock=clock))), ()
    jobs, found = queue_snapshot.merged(jobs, queue, clock, name)
    log = log_of(name, jobs, zone=zone, clock=clock, taken_s=queue_snapshot.snapshot_time(queue, clock))
    return _limited(store, latest(log)), found


def _limited(store: Store, log: WaitLog) -> WaitLog:
    """Return a log with the limits on GPUs of its store."""
    return replace(log, limits=read_limits(store, log.name, log.rows)) if log.unit == "GPUs" else log


def latest(log: WaitLog, most: int = LATEST) -> WaitLog:
    """Return the latest jobs of a log, up to a maximum, and those that waited or ran when the first of them arrived."""
    if log.ready_s.size <= most:
        return log
    since = float(log.ready_s[-most])
    here = (log.ready_s >= since) | (log.end_s >= since)
    return replace(
        log,
        rows=log.rows.filter(pl.Series(here)),
        ready_s=log.ready_s[here],
        leave_s=log.leave_s[here],
        end_s=log.end_s[here],
        started=log.started[here],
        counts={**log.counts, "latest": int((log.ready_s >= since).sum())},
        since_s=since,
    )


def log_of(
    name: str, jobs: pl.DataFrame, *, zone: str = "UTC", clock: str = "UTC", taken_s: float | None = None
) -> WaitLog:
    """Make a log of jobs in any order.

    Args:
        name: of the cluster.
        jobs: ``job``, ``submit_s``, ``start_s``, ``end_s``, ``state``, and any of ``user``, ``queue``, ``gpus``,
            ``nodes``, ``time_limit_s``, ``eligible_s``, ``array_job``, ``het_job``.
        zone: IANA zone of hours and weekdays.
        clock: IANA zone of the clock of the times.
        taken_s: the last instant; None: the last one of any job.

    Raises:
        InputError: no wait is known.
    """
    blank = [c for c in ("eligible_s", "array_job", "het_job") if c not in jobs.columns]
    jobs = jobs.with_columns(pl.lit(None).alias(c) for c in blank).with_columns(
        pl.col("submit_s", "eligible_s", "start_s", "end_s").cast(pl.Float64).fill_nan(None)
    )
    eligible = pl.col("eligible_s").fill_null(pl.col("submit_s"))
    # a job that ran for 0 s and did not complete was cancelled while it waited
    ran = pl.col("start_s").is_not_null() & ~(
        (pl.col("start_s") == pl.col("end_s")) & pl.col("state").is_in(_NEVER_STARTED)
    )
    gone = ~ran & pl.col("end_s").is_not_null()
    waiting = ~ran & ~gone & (pl.col("state") == State.PENDING)
    # clocks are set back: no job left before it arrived
    ready = pl.max_horizontal("submit_s", pl.min_horizontal(eligible, pl.coalesce("start_s", "end_s", eligible)))
    dated = jobs.with_columns(ready=ready, ran=ran.fill_null(value=False), gone=gone, waiting=waiting)
    submitted = pl.col("submit_s").is_not_null()
    fate = pl.col("ran") | pl.col("gone") | pl.col("waiting")
    # of jobs that arrived within one second, the one with the lower number was first
    number = pl.col("job").str.extract(r"^(\d{1,18})(?:\D|$)").cast(pl.Int64)
    rows_kept = dated.filter(submitted & fate).sort("ready", "submit_s", number, "job")
    unit = "nodes" if "gpus" not in jobs.columns or jobs["gpus"].is_null().all() else "GPUs"
    rows = job_table.describe(rows_kept, size="nodes" if unit == "nodes" else "gpus", zone=zone, clock=clock)
    ran_, gone_ = rows_kept["ran"].to_numpy(), rows_kept["gone"].to_numpy()
    counts = {
        "jobs": jobs.height,
        "no_submission": dated.filter(~submitted).height,
        "no_end_of_wait": dated.filter(submitted & ~fate).height,
        "started": int(ran_.sum()),
        "left_early": int(gone_.sum()),
        "still_waiting": int((~ran_ & ~gone_).sum()),
        "held_first": rows_kept.filter(pl.col("ran") & (pl.col("ready") > pl.col("submit_s"))).height,
        "array_tasks": rows_kept.filter(pl.col("ran") & pl.col("array_job").is_not_null()).height,
        "het_parts": rows_kept.filter(pl.col("ran") & pl.col("het_job").is_not_null()).height,
    }
    if not counts["started"]:
        listed = ", ".join(f"{key.replace('_', ' ')} {n:,}" for key, n in counts.items() if n)
        raise InputError(
            f"{name}: no job has a known wait ({listed})", hint="train on accounting, which has the starts of jobs"
        )
    ready_s, start, end = (rows_kept[c].fill_null(np.inf).to_numpy() for c in ("ready", "start_s", "end_s"))
    leave = np.maximum(np.where(ran_, start, np.where(gone_, end, np.inf)), ready_s)
    times = rows_kept.select(pl.max_horizontal("submit_s", "start_s", "end_s").max()).item()
    return WaitLog(
        name=name,
        rows=rows,
        ready_s=ready_s,
        leave_s=leave,
        end_s=np.where(ran_, np.maximum(end, leave), leave),
        started=ran_,
        taken_s=float(times if taken_s is None else max(taken_s, times)),
        zone=zone,
        clock=clock,
        unit=unit,
        counts=counts,
        width=1 if unit == "nodes" else _width(rows_kept.filter(ran_)),
    )


def _width(ran: pl.DataFrame) -> int:
    """Return the GPUs of a node, estimated from the first quarter of the jobs that ran."""
    if "nodes" not in ran.columns:
        return 1
    early = ran.head(max(ran.height // 4, 1)).filter(pl.col("nodes") > 0)
    found = early.select((pl.col("gpus") / pl.col("nodes")).ceil().max()).item()
    return max(int(found or 1), 1)
