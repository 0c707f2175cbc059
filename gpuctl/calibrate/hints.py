"""Hints from a trace about its scheduler: the values that a search tries first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.models.speed import recorded_level

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload

ROUNDED_S = 1.0
"""Tolerance of logged times, in seconds."""
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
_ROUND = (36_000.0, 86_400.0, 14_400.0)
_FEW = 10
"""Fewest jobs that show anything."""


@dataclass(frozen=True)
class Hints:
    """Values that a trace shows.

    Attributes:
        configured: whether the quotas are given.
        requeued: most frequent seconds between a failure and the next attempt; empty: none repeats.
        relaxed: least seconds of waiting of gangs that then ran on more nodes than the fewest.
        rack_relaxed: how much longer gangs that ran in several racks had waited.
        lent: shares of the GPUs in use up to which jobs started beyond their queues' quotas.
        quotas: sets of quotas that agree with the jobs' starts, by name: GPUs of each queue.
        held: the GPU counts near a queue's maximum that it held most often after a start, ascending.
        largest: GPUs of the largest job of each queue: no quota is less.
        alike: weights of Slurm's priority that no start can reveal, as their factor is the same for all jobs.
    """

    configured: bool
    requeued: tuple[float, ...]
    relaxed: tuple[float, ...]
    rack_relaxed: tuple[float, ...]
    lent: tuple[float, ...]
    quotas: dict[str, Floats]
    held: dict[str, tuple[float, ...]]
    largest: Floats
    alike: frozenset[str] = frozenset()


def hints(workload: Workload, cluster: Cluster) -> Hints:
    """Derive hints from recorded starts, ends and places."""
    after, own, queue = _in_use(workload)
    total = max(cluster.total_gpus, 1)
    largest = np.zeros(cluster.quota.size)
    np.maximum.at(largest, workload.queue[workload.queue < largest.size], workload.gpus[workload.queue < largest.size])
    first = workload.recorded_start[workload.segment_start[:-1]]
    wait = first - np.fmin(workload.eligible, first)
    level = recorded_level(workload, cluster, by_fewest=True)
    relaxed = _least(wait[(level > 0) & (workload.gpus > 1)])
    further = _least(wait[(level > 1) & (workload.gpus > 1)])
    return Hints(
        configured=cluster.quota_source == "configured",
        requeued=_usual_gap(workload),
        relaxed=relaxed,
        rack_relaxed=tuple(dict.fromkeys(b - a for a in relaxed[:1] for b in (*further, *_ROUND) if b > a))[:5],
        lent=_lent(after, own, cluster.quota[queue] if cluster.quota.size else np.full(queue.size, np.inf), total),
        quotas={f"held beyond {share:.0%}": _quotas(after, own, queue, share * total, cluster) for share in _SHARES},
        held={name: _levels(own[queue == at]) for at, name in enumerate(workload.queues)},
        largest=largest,
        alike=_alike(workload),
    )  # fmt: skip


def _alike(workload: Workload) -> frozenset[str]:
    factors: dict[str, tuple[Ints | None, ...]] = {
        "weight_fairshare": (workload.user, workload.account),
        "weight_job_size": (workload.gpus,),
        "weight_partition": (workload.queue,),
        "weight_qos": (workload.qos,),
    }
    return frozenset(
        name
        for name, columns in factors.items()
        if all(column is None or np.unique(column).size < 2 for column in columns)
    )


def _in_use(workload: Workload) -> tuple[Ints, Ints, Ints]:
    """Return, per recorded start, in order: GPUs in use after it, those of the job's queue, and that queue."""
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    known = np.isfinite(workload.recorded_start)
    start, gpus = workload.recorded_start[known], workload.gpus[owner[known]]
    end, queue = start + workload.segment_s[known], workload.queue[owner[known]]
    starts, ends = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")

    def used(which: np.ndarray) -> Ints:
        # logs round times: ends within a second of a start come first; of starts in one second, the job submitted first
        over = ends[which[ends]]
        gone = np.concatenate([[0], np.cumsum(gpus[over])])
        begun = starts[which[starts]]
        before = np.searchsorted(end[over], start[begun] + ROUNDED_S, side="right")
        return np.asarray(np.cumsum(gpus[begun]) - gone[before])

    everything = np.ones(start.size, bool)
    after = used(everything)
    own = np.zeros(start.size, np.int64)
    for one in np.unique(queue).tolist():
        here = queue[starts] == one
        own[here] = used(queue == one)
    return after, own, queue[starts]


def _usual_gap(workload: Workload) -> tuple[float, ...]:
    inner = np.ones(workload.segment_s.size, bool)
    inner[workload.segment_start[1:] - 1] = False
    at = np.flatnonzero(inner)
    gap = workload.recorded_start[at + 1] - workload.recorded_start[at] - workload.segment_s[at]
    gap = np.round(gap[np.isfinite(gap)])
    if gap.size < _FEW:
        return ()
    values, counts = np.unique(gap, return_counts=True)
    best = int(counts.argmax())
    return (float(values[best]),) if values[best] > 0 and counts[best] > gap.size / 5 else ()


def _least(waits: Floats) -> tuple[float, ...]:
    """Return the shortest of some waits, ignoring a few outliers, rounded down to a value that people configure."""
    waits = waits[np.isfinite(waits)]
    if waits.size < _FEW:
        return ()
    low = float(np.quantile(waits, 0.02))
    found = [low - low % step for step in (3600, 600, 60) if low >= step]
    return tuple(dict.fromkeys(found))


def _lent(after: Ints, own: Ints, quota: Floats, total: int) -> tuple[float, ...]:
    beyond = own > quota
    if beyond.sum() < _FEW:
        return ()
    shares = [float(each) / total for each in np.quantile(after[beyond], (0.5, 0.9, 0.95, 0.99))]
    return tuple(dict.fromkeys(min(1.0, round(float(np.ceil(share / 0.05)) * 0.05, 4)) for share in shares))


def _quotas(after: Ints, own: Ints, queue: Ints, above: float, cluster: Cluster) -> Floats:
    """Return the most GPUs that each queue held after a start in a cluster too busy to lend any."""
    found = np.full(cluster.quota.size, np.inf)
    full = after > above
    for one in range(cluster.quota.size):
        held = own[full & (queue == one)]
        if held.size >= _FEW:
            found[one] = float(held.max())
    return found


def _levels(held: Ints) -> tuple[float, ...]:
    """Return values from the upper half of a queue's holdings; its quota is among or near them if it was ever full."""
    most = int(held.max(initial=0))
    levels = np.unique(held[held > most / 2]) if most else np.zeros(0)
    return tuple(float(each) for each in np.unique(np.quantile(levels, np.linspace(0, 1, 8)).round())) if most else ()
