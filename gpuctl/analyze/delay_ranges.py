"""Collects what is in doubt about the waits of a log, and finds the range of each cause, wait by wait and in all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import delay_bounds, delays, doubts
from gpuctl.core.causes import CAUSES
from gpuctl.core.notes import listed, note

if TYPE_CHECKING:
    from gpuctl.analyze.occupancy import Bools, Floats, Ints
    from gpuctl.analyze.scheduler_rules import Rules
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

_NAMED = 5
_FREE = CAUSES.index("scheduler")
_PERHAPS_LIMITED = (
    "WITH named AS ("
    "SELECT a.number, a.\"user\", a.queue, coalesce(r.category = 'quota', false) AS limited "
    "FROM base_attempts AS a LEFT JOIN base_reasons AS r ON r.reason = split_part(a.source_reason, ',', 1) "
    "WHERE a.wait_s > 0), "
    'owners AS (SELECT DISTINCT "user", queue FROM named WHERE limited) '
    "SELECT n.number FROM named AS n LEFT JOIN owners AS o "
    'ON o."user" IS NOT DISTINCT FROM n."user" AND o.queue = n.queue '
    "WHERE n.limited OR o.queue IS NOT NULL ORDER BY n.number"
)
"""Slurm keeps one reason an attempt: of an owner for whom it named a limit once, others may have waited for it, too."""
_SAMPLES = (
    "SELECT a.number, count(*) AS samples, count(*) FILTER (r.category = 'quota') AS limited "
    "FROM base_queue_samples AS s JOIN base_attempts AS a USING (job, attempt) "
    "LEFT JOIN base_reasons AS r ON r.reason = split_part(s.reason, ',', 1) "
    "WHERE s.eligible GROUP BY a.number ORDER BY a.number"
)


@dataclass(frozen=True)
class Ranges:
    """The least and the most seconds by cause.

    Attributes:
        seconds: (waits, causes): what is most likely; queue samples moved what they say.
        low: (waits, causes).
        high: (waits, causes).
        total_low: by cause, of all waits together.
        total_high: likewise.
        warnings: what a reader must know.
    """

    seconds: Floats
    low: Floats
    high: Floats
    total_low: Floats
    total_high: Floats
    warnings: tuple[Note, ...] = ()


def find(  # noqa: PLR0917
    store: Store,
    numbers: Ints,
    waits: delays.Waits,
    cluster: delays.Cluster,
    found: delays.Delays,
    rules: Rules | None,
    quotas: pl.DataFrame,
    sizes: tuple[Ints, ...],
) -> Ranges:
    """Find the ranges.

    Args:
        store: with ``base_attempts``, ``base_gpu_limits``, ``base_machine_events``, ``base_queue_samples``.
        numbers: number of the attempt of each wait, ascending.
        waits: the waits.
        cluster: what was held, and the rules used.
        found: how the waits were split under these.
        rules: which rules explain the log; None where none was inferred.
        quotas: ``base_quotas``, in the order of the queues' numbers.
        sizes: of each pool, the most GPUs that each of its servers may have.
    """
    waited = waits.start - waits.queued
    guessed = rules is not None and rules.guessed
    broken = _broken(cluster, quotas, rules)
    limits = _limits(cluster, rules if guessed else None, broken, int(waits.gpus.max(initial=0)))
    of_rules = delay_bounds.Doubts(
        limits,
        rules.racks if rules is not None and guessed and len(rules.racks) > 1 else (),
        spread=rules is not None and guessed and not rules.explain and np.isfinite(rules.layout.relax[0]),
    )
    every = _of_servers(store, waits, cluster, found, sizes, of_rules)
    seconds = found.seconds
    low, high = delay_bounds.bounds(waits, cluster, every) if every else (seconds, seconds)
    total_low, total_high = low.sum(axis=0), high.sum(axis=0)
    if rules is not None and guessed:
        alone = delay_bounds.bounds(waits, cluster, of_rules) if every is not of_rules else (low, high)
        total_low = np.maximum(total_low, rules.low - (alone[0].sum(axis=0) - total_low))
        total_high = np.minimum(total_high, rules.high + (total_high - alone[1].sum(axis=0)))
        if rules.explain and rules.blur:
            low = np.maximum(low - rules.blur * waited[:, None], 0.0)
            high = np.minimum(high + rules.blur * waited[:, None], waited[:, None])
    change = _Change(numbers, seconds, low, high, waited)
    change.limited(store)
    change.sampled(store)
    moved_low, moved_high = change.low.sum(axis=0) - low.sum(axis=0), change.high.sum(axis=0) - high.sum(axis=0)
    point = change.seconds.sum(axis=0)
    return Ranges(
        change.seconds,
        change.low,
        change.high,
        np.minimum(np.maximum(total_low + moved_low, 0.0), point),
        np.maximum(np.minimum(total_high + moved_high, waited.sum()), point),
        _warnings(quotas, broken),
    )


def _limits(cluster: delays.Cluster, rules: Rules | None, broken: Bools, largest: int) -> delay_bounds.Limits | None:
    """What quotas may be: those inferred, and those that starts in the log break; None where all are exact."""
    if rules is None and not broken.any():
        return None
    if rules is not None:
        may_be = rules.may_be
        least, most, busiest = list(may_be.least), may_be.most.copy(), may_be.busiest
    else:
        total = max((float(pool.gpus.sum()) for pool in cluster.pools), default=0.0)
        size = int(total) + largest + 2
        busiest = cluster.borrow_below * total
        least = [np.where(np.arange(size) > busiest, quota, np.inf) for quota in cluster.quotas]
        most = cluster.quotas.copy()
    for queue in np.flatnonzero(broken):
        least[queue] = np.full(least[queue].size, -1.0)
        most[queue] = np.inf
    return delay_bounds.Limits(tuple(least), most, busiest)


def _broken(cluster: delays.Cluster, quotas: pl.DataFrame, rules: Rules | None) -> Bools:
    """Which queues' given or configured quotas their own starts break too often."""
    stated = quotas["quota_source"].is_in(["given", "configured"]).fill_null(value=False).to_numpy()
    wrong = np.zeros(stated.size, bool)
    if not stated.any():
        return wrong
    held = cluster.holdings
    starts = np.bincount(held.queue, minlength=stated.size)
    over = rules.broken if rules is not None else _starts_over(cluster, np.flatnonzero(stated))
    return np.asarray(stated & (over > np.maximum(2, doubts.BROKEN * starts)))


def _starts_over(cluster: delays.Cluster, queues: Ints) -> Floats:
    """Of each queue, the starts that took it over its quota; starts at one instant count as if each were alone."""
    from gpuctl.analyze import occupancy

    held = cluster.holdings
    over = np.zeros(cluster.quotas.size)
    for queue in queues:
        mine = np.flatnonzero((held.queue == queue) & (held.gpus > 0))
        if not mine.size or not np.isfinite(cluster.quotas[queue]):
            continue
        start, end, gpus = held.start[mine], held.end[mine], held.gpus[mine]
        times = np.unique(start)
        at = np.searchsorted(times, start)
        before = occupancy.step(times, np.concatenate([start, end]), np.concatenate([gpus, -gpus]))
        before -= np.bincount(at, weights=gpus, minlength=times.size)
        over[queue] = np.count_nonzero(before[at] + gpus > cluster.quotas[queue] + 1e-6)
    return over


def _of_servers(  # noqa: PLR0917
    store: Store,
    waits: delays.Waits,
    cluster: delays.Cluster,
    found: delays.Delays,
    sizes: tuple[Ints, ...],
    known: delay_bounds.Doubts,
) -> delay_bounds.Doubts:
    """The doubts, and what else is in doubt of the servers and of what was held on them."""
    if any((most > pool.gpus).any() for pool, most in zip(cluster.pools, sizes, strict=True)):
        larger = {id(pool): doubts.larger(pool, most) for pool, most in zip(cluster.pools, sizes, strict=True)}
        known = replace(known, larger=tuple(larger[id(pool)] for pool in cluster.pools))
    waited = float((waits.start - waits.queued).sum())
    if waits.queued.size and doubts.is_unexplained(found.seconds[:, _FREE], waited):
        told = bool(store.value("SELECT count(*) FROM base_machine_events"))
        first = float(min(waits.queued.min(), cluster.holdings.start.min(initial=np.inf)))
        gone = {id(pool): doubts.perhaps_gone(pool, cluster.holdings, first, told=told) for pool in cluster.pools}
        known = replace(
            known,
            gone=tuple(gone[id(pool)][0] for pool in cluster.pools),
            hidden=tuple(gone[id(pool)][1:] for pool in cluster.pools),
        )
    return known


class _Change:
    """Seconds and their ranges, changed in place of some waits by what a source says of these."""

    def __init__(self, numbers: Ints, seconds: Floats, low: Floats, high: Floats, waited: Floats) -> None:
        self._numbers, self._waited = numbers, waited
        self.seconds, self.low, self.high = seconds, low, high

    def _of(self, numbers: pl.Series) -> tuple[Ints, Bools]:
        """Where some attempts stand among the waits, and which of them do."""
        asked = numbers.to_numpy().astype(np.int64)
        at = np.minimum(np.searchsorted(self._numbers, asked), max(0, self._numbers.size - 1))
        return at, self._numbers[at] == asked if self._numbers.size else np.zeros(asked.size, bool)

    def _copy(self) -> None:
        self.seconds, self.low, self.high = self.seconds.copy(), self.low.copy(), self.high.copy()

    def limited(self, store: Store) -> None:
        """Open the waits that may have been for limits that Slurm names and no file states."""
        if store.value("SELECT count(*) FROM base_gpu_limits"):
            return
        at, there = self._of(store.frame(_PERHAPS_LIMITED)["number"])
        if not there.any():
            return
        self._copy()
        self.high[at[there], 0] = self._waited[at[there]]
        self.low[at[there], 1:] = 0.0

    def sampled(self, store: Store) -> None:
        """Where limits are not loaded, take from samples of the queue how long each attempt waited for one."""
        if store.value("SELECT count(*) FROM base_gpu_limits"):
            return
        rows = store.frame(_SAMPLES)
        at, there = self._of(rows["number"])
        if not there.any():
            return
        self._copy()
        at = at[there]
        samples, limited = (rows[name].to_numpy()[there] for name in ("samples", "limited"))
        waited = self._waited[at]
        # between two samples the reason may have changed at any time
        least = np.maximum(limited - 1, 0) / samples * waited
        most = np.minimum(limited + 1, samples) / samples * waited
        fair = np.clip(self.seconds[at, 0], least, most)
        moved = fair - self.seconds[at, 0]
        for cause in (_FREE, 1, 2):
            # what is too much goes back to the first of them
            part = np.minimum(moved, self.seconds[at, cause])
            self.seconds[at, cause] -= part
            moved -= part
        self.seconds[at, 0] = fair - moved
        self.low[at, 0] = np.maximum(np.minimum(least, fair), 0.0)
        self.high[at, 0] = np.maximum(most, fair)
        self.low[at, 1:] = np.minimum(np.maximum(self.low[at, 1:] - most[:, None], 0.0), self.seconds[at, 1:])
        self.high[at, 1:] = np.maximum(
            np.minimum(self.high[at, 1:], (waited - self.low[at, 0])[:, None]), self.seconds[at, 1:]
        )


def _warnings(quotas: pl.DataFrame, broken: Bools) -> tuple[Note, ...]:
    names = quotas["queue"].filter(pl.Series(broken)).to_list()
    if not names:
        return ()
    return (
        note(
            "starts in the log exceed the quotas of {count:,} queue{count||s} ({queues}{more}), so these quotas did "
            "not hold all the time, and fair share may be any share of the waiting there. Check --quotas and "
            "--borrow-below",
            count=len(names),
            queues=listed("queue", names, _NAMED),
            more=note(" and others") if len(names) > _NAMED else note(""),
        ),
    )
