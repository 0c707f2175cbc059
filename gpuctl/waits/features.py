"""Features of a forecast of a job's wait: the job, and queue and cluster as known at its submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.background_loop import aside, watch
from gpuctl.compiled.jit import read_only
from gpuctl.waits import limits as limits_
from gpuctl.waits.queue_log import UNLIMITED_S
from gpuctl.waits.state_kernel import END, ENTER, FEATURES, GROUPS, HOURS, OWN, START, sweep

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_JOB = {
    "size": "GPUs that it asks for, or nodes where the log has no GPUs",
    "limit_h": "its time limit, h; a year where it has none",
}
_STATE = {
    "waiting": "jobs that wait",
    "waiting_size": "what they ask for",
    "waiting_work_h": "what they ask for times their limits",
    "oldest_wait_h": "the longest wait so far of a job that still waits",
    "waited_log": "mean of log(1 + seconds that they have waited so far)",
    "queue_waiting": "jobs that wait in its queue",
    "queue_waiting_size": "what those ask for",
    "queue_oldest_h": "the longest wait so far among those",
    "user_waiting": "jobs of its user that wait",
    "waiting_as_large": "waiting jobs that ask for at least as much as it does",
    "waiting_as_short": "waiting jobs whose limit is no longer than its own",
    "running": "jobs that run",
    "running_size": "what they hold",
    "running_work_h": "what they hold times what their limits leave them",
    "queue_running_size": "what jobs of its queue hold",
    "user_running_size": "what jobs of its user hold",
    "most_size": "the most that was held at once so far",
    "free_size": "how much less is held now",
    "spare_size": "that, less what it asks for",
    **{f"free_in_{h}h": f"what is free after {h} h, if running jobs use up their limits" for h in HOURS},
    "planned_h": "its wait in a backfill plan of the first 200 waiting jobs, all limits used up",
    "came_1h": "submissions of the last hour",
    "came_24h": "submissions of the last day",
    "came_work_24h": "what those ask for times their limits",
    "user_came_1h": "its user's submissions of the last hour",
    "last_start_h": "since the last start of a job",
}
_GROUPS = {
    "all": "all jobs", "queue": "its queue", "class": "jobs of about its size and limit", "user": "its user",
}  # fmt: skip
_MEANS = {
    "last": "log(1 + wait) of the last start of {}",
    "fast": "running mean of the same over about 5 starts of {}",
    "slow": "running mean of the same over about 50 starts of {}",
}
_CALENDAR = {"hour": "of the day, with its fraction", "weekday": "0 is Monday"}
_LIMITED = tuple(limits_.FEATURES)
_SWEPT = (*_JOB, *_STATE, *(f"{group}_{mean}" for group in _GROUPS for mean in _MEANS))
assert len(_SWEPT) == FEATURES  # noqa: S101 - a name for each column of the loop

ALL = (*_SWEPT, *_CALENDAR, *_LIMITED)
"""Names of all features, in order."""
OF_JOB = (*_JOB, *_CALENDAR)
"""Those that need no queue to be known."""
_NO_GROUP = -1


def described() -> dict[str, str]:
    """Return the meaning of each feature."""
    means = {f"{g}_{m}": text.format(_GROUPS[g]) for g in _GROUPS for m, text in _MEANS.items()}
    return {**_JOB, **_STATE, **means, **_CALENDAR, **limits_.FEATURES}


@dataclass(frozen=True)
class WaitQueries:
    """Jobs whose waits are to be forecast, by the time at which they could first start.

    Attributes:
        rows: as `WaitLog.rows`.
        ready_s: when they could first start, ascending; s.
        place: number of each job in the log; the number of jobs if it is not in it.
    """

    rows: pl.DataFrame
    ready_s: Floats
    place: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "ready_s", read_only(self.ready_s))


def of_log(log: WaitLog, wanted: NDArray[np.bool_] | None = None) -> Floats:
    """Return the features of every job of a log at its eligibility [jobs, ALL]; NaN: unknown or not wanted."""
    if wanted is None or wanted.all():
        return for_queries(log, WaitQueries(log.rows, log.ready_s, np.arange(log.ready_s.size)))
    place = np.flatnonzero(wanted)
    found = np.full((log.ready_s.size, len(ALL)), np.nan)
    found[place] = for_queries(log, WaitQueries(log.rows[place.tolist()], log.ready_s[place], place))
    return found


def for_queries(log: WaitLog, queries: WaitQueries) -> Floats:
    """Return the features of jobs that join a queue, in the log or not, in the same form."""
    jobs = log.ready_s.size
    when = np.concatenate([log.ready_s, log.leave_s, log.end_s])
    kind = np.repeat(np.array([ENTER, START, END]), jobs)
    of = np.tile(np.arange(jobs), 3)
    dated = np.isfinite(when)
    order = np.lexsort((of, kind, when))
    order = order[dated[order]]
    size, limit = sizes(log.rows), limits(log.rows)
    names = [_codes(log.rows[c], queries.rows[c]) for c in ("queue", "user")]
    (queue, query_queue), (user, query_user) = names
    keys, query_keys, groups = _keys(log, queries, names)
    own = np.stack([sizes(queries.rows), limits(queries.rows), query_queue, query_user], axis=1)
    assert own.shape[1] == OWN  # noqa: S101
    out = np.zeros((queries.ready_s.size, FEATURES))
    aside(
        sweep, when[order], kind[order], of[order], log.ready_s, log.leave_s, log.wait_s, size, limit, queue, user,
        keys, np.full((groups, 3), -1.0), queries.ready_s, own.astype(np.float64), query_keys, queries.place, out,
        watched=watch(),
    )  # fmt: skip
    calendar = queries.rows.select(*_CALENDAR).to_numpy().astype(np.float64)
    times = limits_.Times(log.ready_s, log.leave_s, log.end_s, log.started, size)
    rooms = limits_.rooms(log.limits, times, queries.rows, queries.ready_s, queries.place)
    found = np.concatenate([out, calendar, rooms], axis=1)
    found[:, len(_JOB) + len(_STATE) - 1 : len(_SWEPT)][found[:, len(_JOB) + len(_STATE) - 1 : len(_SWEPT)] < 0] = (
        np.nan
    )
    return found


def of_jobs(rows: pl.DataFrame) -> Floats:
    """Return the features that do not depend on the queue [jobs, OF_JOB]."""
    calendar = rows.select(*_CALENDAR).to_numpy().astype(np.float64)
    return np.concatenate([np.stack([sizes(rows), limits(rows) / 3600], axis=1), calendar], axis=1)


def sizes(rows: pl.DataFrame) -> Floats:
    """Return the size that each job requests; 0 if unknown."""
    found: Floats = np.nan_to_num(rows["size"].to_numpy())
    return found


def limits(rows: pl.DataFrame) -> Floats:
    """Return the limit of each job, s; a year if there is none."""
    found: Floats = np.nan_to_num(rows["time_limit_s"].to_numpy(), nan=UNLIMITED_S)
    return found


def classes(rows: pl.DataFrame) -> Ints:
    """Return a class of size and limit of a job: by powers of two, and of four hours."""
    large = np.log2(np.maximum(sizes(rows), 1)).astype(np.int64).clip(0, 15)
    long = (1 + np.log(np.maximum(limits(rows), 1) / 3600) / np.log(4)).astype(np.int64).clip(0, 7)
    found: Ints = 8 * large + long
    return found


def _codes(known: pl.Series, queries: pl.Series) -> tuple[Ints, Ints]:
    """Return numbers for names of the log; -1 for a name that it lacks."""
    names = {name: k for k, name in enumerate(known.unique(maintain_order=True).to_list())}
    codes, query_codes = ([names.get(name, -1) for name in each.to_list()] for each in (known, queries))
    return np.array(codes, np.int64), np.array(query_codes, np.int64)


def _keys(log: WaitLog, queries: WaitQueries, names: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints, int]:
    """Return the rows of the state for each job's groups."""
    (queue, query_queue), (user, query_user) = names
    parts = [
        (np.zeros_like(queue), np.zeros_like(query_queue)), (queue, query_queue),
        (classes(log.rows), classes(queries.rows)), (user, query_user),
    ]  # fmt: skip
    first, keys, wanted = 0, [], []
    for known, asks in parts:
        keys.append(known + first)
        wanted.append(np.where(asks < 0, _NO_GROUP, asks + first))
        first += max(int(known.max(initial=0)), int(asks.max(initial=0))) + 1
    assert len(parts) == GROUPS  # noqa: S101
    return np.stack(keys, axis=1), np.stack(wanted, axis=1), first
