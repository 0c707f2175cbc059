"""Limits on the GPUs of users, accounts and QOS, if a store has them: the room that a job found under its own.

A job's limits follow from its account, user, QOS and queue, see `gpuctl.analyze.gpu_limits`. A job that is not in the
log gets those of the latest job of its user in its queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze import gpu_limits
from gpuctl.analyze.shared_sql import base_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from numpy.typing import NDArray

    from gpuctl.store.database import Store

    Floats = NDArray[np.float64]

FEATURES = {
    "limit_room": "what the limits of its user, account and QOS leave it, less what it asks for; below 0: it must wait",
    "limit_waiting": "what jobs that wait under the same limit ask for, of the limit that leaves it least",
}
"""What trees may look at of limits; not known where no limit is loaded, or none holds for the job."""


@dataclass(frozen=True)
class Limits:
    """Limits, each with the jobs that share it.

    Attributes:
        gpus: of each.
        of_job: limits of each job of the log, by its index; empty: no limits are loaded.
        of_user: those of the latest job of a user in a queue.
    """

    gpus: tuple[float, ...] = ()
    of_job: tuple[tuple[int, ...], ...] = ()
    of_user: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)


def read(store: Store, cluster: str, rows: pl.DataFrame) -> Limits:
    """Return the limits on GPUs that apply to jobs.

    Args:
        store: of the cluster.
        cluster: its name.
        rows: its jobs, in the order of a `gpuctl.waits.queue_log.WaitLog`: ``job``, ``user``, ``queue``.
    """
    limits = store.frame(base_sql("gpu_limits"), {"cluster": cluster})
    if limits.is_empty():
        return Limits()
    known = list(limits.iter_rows(named=True))
    whose = {row["job"]: row for row in store.frame(base_sql("owners"), {"cluster": cluster}).to_dicts()}
    types = dict(store.frame("SELECT job, gpu_type FROM jobs WHERE cluster = $cluster", {"cluster": cluster}).rows())
    numbers: dict[tuple[int, str | None], int] = {}
    of_job, of_user = [], {}
    for job, user, queue in rows.select("job", "user", "queue").iter_rows():
        about = {"gpu_type": types.get(job), "user": user, "queue": queue}
        keys = gpu_limits.keys(known, whose.get(job), about)
        of_job.append(tuple(numbers.setdefault(key, len(numbers)) for key in keys))
        of_user[user, queue] = of_job[-1]
    return Limits(tuple(float(known[number]["gpus"]) for number, _ in numbers), tuple(of_job), of_user)


@dataclass(frozen=True)
class Times:
    """Submissions, starts and ends of the jobs of a log, s, and the sizes that they request."""

    ready_s: Floats
    leave_s: Floats
    end_s: Floats
    started: NDArray[np.bool_]
    size: Floats


def rooms(limits: Limits, times: Times, queries: pl.DataFrame, at_s: Floats, place: NDArray[np.int64]) -> Floats:
    """Return `FEATURES` of jobs at some instants, from the running and waiting jobs just before [asks, FEATURES].

    Args:
        limits: as read.
        times: times of the jobs of the log.
        queries: ``user``, ``queue`` and ``size`` of each job.
        at_s: arrival of each.
        place: number of each in the log; the number of jobs if it is not in it.
    """
    found = np.full((at_s.size, len(FEATURES)), np.nan)
    if not limits.of_job:
        return found
    members: list[list[int]] = [[] for _ in limits.gpus]
    for job, keys in enumerate(limits.of_job):
        for key in keys:
            members[key].append(job)
    asks: list[list[int]] = [[] for _ in limits.gpus]
    for k, (user, queue, own) in enumerate(
        zip(queries["user"].to_list(), queries["queue"].to_list(), place.tolist(), strict=True)
    ):
        keys = limits.of_job[own] if own < len(limits.of_job) else limits.of_user.get((user, queue), ())
        for key in keys:
            asks[key].append(k)
    size = np.nan_to_num(queries["size"].to_numpy())
    for key, (own, which) in enumerate(zip(members, asks, strict=True)):
        if not which:
            continue
        jobs, when = np.array(own, np.int64), at_s[which]
        ran = jobs[times.started[jobs]]
        held = _before(times.leave_s[ran], times.size[ran], when) - _before(times.end_s[ran], times.size[ran], when)
        waits = _before(times.ready_s[jobs], times.size[jobs], when) - _before(
            times.leave_s[jobs], times.size[jobs], when
        )
        room = limits.gpus[key] - held - size[which]
        less = np.isnan(found[which, 0]) | (room < found[which, 0])
        least = np.array(which)[less]
        found[least] = np.stack([room, waits], axis=1)[less]
    return found


def _before(at_s: Floats, size: Floats, when: Floats) -> Floats:
    """Return the sum of sizes of events before some instants."""
    order = np.argsort(at_s, kind="stable")
    total = np.append(0.0, np.cumsum(size[order]))
    summed: Floats = total[np.searchsorted(at_s[order], when, side="left")]
    return summed
