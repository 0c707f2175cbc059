"""Collects the uncertainties about the waits of a log, and computes the range of each cause, per wait and in total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import delay_bounds, delays, doubts, occupancy, unstated_limits
from gpuctl.core.causes import CAUSES
from gpuctl.core.notes import listed, note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.analyze.occupancy import Bools, Floats, Holdings, Ints, Nodes
    from gpuctl.analyze.scheduler_rules import Rules
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

_NAMED = 5
UNEXPLAINED = 0.05
"""If stated quotas leave a larger share of a queue's waiting unexplained, other limits may exist."""
_FREE = CAUSES.index("scheduler")
_ODD_S = 60.0
"""A wait at least this long with suitable GPUs free may have had another cause, however few such waits there are."""
_PERHAPS_LIMITED = (
    "WITH named AS ("
    "SELECT a.number, a.\"user\", a.queue, a.source_reason, coalesce(r.category = 'quota', false) AS limited "
    "FROM base_attempts AS a LEFT JOIN base_reasons AS r ON r.reason = split_part(a.source_reason, ',', 1) "
    "WHERE a.wait_s > 0), "
    'owners AS (SELECT DISTINCT "user", queue FROM named WHERE limited) '
    "SELECT n.number, n.limited OR o.queue IS NOT NULL AS owner_limited FROM named AS n LEFT JOIN owners AS o "
    'ON o."user" IS NOT DISTINCT FROM n."user" AND o.queue = n.queue '
    "WHERE n.limited OR o.queue IS NOT NULL "
    "OR (n.source_reason IS NULL AND n.queue IN (SELECT queue FROM owners)) ORDER BY n.number"
)
"""Slurm keeps one reason an attempt: of an owner for whom it named a limit once, others may have waited for it, too.

It keeps none of some that waited for a limit (of one in eight on a recorded cluster). So where it named a limit in a
queue, that of an attempt without a reason is in question, too, if its wait is not explained otherwise.
"""
_OWNED = (
    'SELECT a.number, a."user", a.account, j.qos, a.queue, a.gpus, j.cpus, held_from_c, held_until_c '
    "FROM base_attempts AS a JOIN base_jobs AS j USING (job) WHERE a.start_ts IS NOT NULL ORDER BY a.number"
)
_ACCOUNTED = (
    "SELECT count(*) FROM ("
    "FROM attempts SEMI JOIN base_attempts USING (job, attempt) WHERE eligible_ts IS NOT NULL LIMIT 1)"
)
"""Whether the source is accounting, which states when attempts became eligible."""
_STOOD = (
    "SELECT q.code AS queue, m.code AS machine, count(*) AS starts FROM base_placements JOIN base_attempts AS a "
    "USING (number) JOIN delay_queues AS q ON q.queue = a.queue JOIN delay_machines AS m USING (machine) "
    "GROUP BY ALL ORDER BY ALL"
)
"""How often gangs of each queue were put on each node."""
_SAMPLES = (
    "SELECT a.number, count(*) AS samples, count(*) FILTER (r.category = 'quota') AS limited "
    "FROM base_queue_samples AS s JOIN base_attempts AS a USING (job, attempt) "
    "LEFT JOIN base_reasons AS r ON r.reason = split_part(s.reason, ',', 1) "
    "WHERE s.eligible GROUP BY a.number ORDER BY a.number"
)


@dataclass(frozen=True)
class Ranges:
    """Minimum and maximum seconds by cause.

    Attributes:
        seconds: (waits, causes): the most likely values, corrected by queue samples.
        low: (waits, causes).
        high: (waits, causes).
        total_low: by cause, over all waits.
        total_high: likewise.
        warnings: caveats for the reader.
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
    known: tuple[delays.State, ...],
    found: delays.Delays,
    rules: Rules | None,
    quotas: pl.DataFrame,
    most: tuple[Nodes, ...],
    *,
    racks_guessed: bool,
) -> Ranges:
    """Compute the ranges.

    Args:
        store: with ``base_attempts``, ``base_gpu_limits``, ``base_machine_events``, ``base_queue_samples``.
        numbers: number of the attempt of each wait, ascending.
        waits: the waits.
        cluster: the holdings, and the rules used.
        known: the result of `delays.states` for these.
        found: the split of the waits under these.
        rules: the rules that explain the log; None if none were inferred.
        quotas: ``base_quotas``, in the order of the queues' numbers.
        most: by pool, all nodes that may be in it, each with the most GPUs that it may have; for certain pools, the
            cluster's own object.
        racks_guessed: whether racks are inferred from shared gangs, so that there may be none.
    """
    waited = waits.start - waits.queued
    guessed = rules is not None and rules.guessed
    broken = _broken(cluster, quotas)
    of_rules = delay_bounds.Doubts(
        rules.may_be if rules is not None and guessed else None,
        tuple((nodes,) for nodes in rules.racks) if rules is not None and guessed and len(rules.racks) > 1 else (),
        spread=rules is not None and guessed and not rules.explain and np.isfinite(rules.layout.relax[0]),
        broken=broken,
    )
    every = of_rules
    if any(more is not pool for more, pool in zip(most, cluster.pools, strict=True)):
        every = replace(every, larger=most)
    if racks_guessed:
        every = replace(every, racks=(*every.racks, doubts.without_racks(cluster.pools)))
    seconds, free_s = found.seconds, found.seconds[:, _FREE]
    odd = free_s > _ODD_S
    much = bool(odd.any()) and doubts.is_unexplained(free_s, float(waited.sum()))
    if much:
        every = _of_holders(store, waits, cluster, free_s, every)
    if not store.value("SELECT count(*) FROM base_queue_machines") and (
        much or (rules is not None and not rules.explain)
    ):
        stood = store.frame(_STOOD)
        queue, machine, starts = (stood[name].to_numpy() for name in ("queue", "machine", "starts"))
        every = replace(every, own=doubts.possibly_exclusive(queue, machine, starts, cluster.pools[0]))
    low, high = delay_bounds.bounds(waits, cluster, known, every) if every else (seconds, seconds)
    if odd.any() and not much:
        # nodes that were down for a while leave few waits unexplained, except these
        apart = delay_bounds.bounds(waits, cluster, known, _of_holders(store, waits, cluster, free_s, every))
        low, high = (np.where(odd[:, None], new, old) for new, old in zip(apart, (low, high), strict=True))
    total_low, total_high = low.sum(axis=0), high.sum(axis=0)
    if rules is not None and guessed and rules.explain:
        # if the rules do not explain the log, others apply, and waits that no rule of this kind explains are possible
        alone = delay_bounds.bounds(waits, cluster, known, of_rules) if every is not of_rules else (low, high)
        total_low = np.maximum(total_low, rules.low - (alone[0].sum(axis=0) - low.sum(axis=0)))
        total_high = np.minimum(total_high, rules.high + (high.sum(axis=0) - alone[1].sum(axis=0)))
        if rules.blur:
            low = np.maximum(low - rules.blur * waited[:, None], 0.0)
            high = np.minimum(high + rules.blur * waited[:, None], waited[:, None])
    change = _Change(numbers, seconds, low, high, waited)
    change.unplaced(np.array([not pool.gpus.any() for pool in cluster.pools], bool)[waits.pool] & (waits.gpus > 0))
    unstated = np.isinf(cluster.quotas)[waits.queue] if rules is None else np.zeros(waited.size, bool)
    exact = rules is not None and not guessed
    unexplained = change.unexplained(waits.queue) if exact else np.zeros(waited.size, bool)
    change.limited(store, unstated, unexplained, waits, cluster)
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


def _broken(cluster: delays.Cluster, quotas: pl.DataFrame) -> dict[int, tuple[float, float]]:
    """Return, per queue whose own starts exceed its stated quota too often, when the quota did not hold.

    A quota may have been changed before the first of these starts, or after the last one: the longer of the two
    remaining periods is assumed to be the one in which it held.
    """
    stated = quotas["quota_source"].is_in(["given", "configured"]).fill_null(value=False).to_numpy()
    held = cluster.holdings
    wrong: dict[int, tuple[float, float]] = {}
    if not stated.any() or not held.start.size:
        return wrong
    first, last = float(held.start.min()), float(held.end.max())
    total = max(float(pool.gpus.sum()) for pool in cluster.pools)
    for queue in np.flatnonzero(stated & np.isfinite(cluster.quotas)).tolist():
        mine = np.flatnonzero((held.queue == queue) & (held.gpus > 0))
        times, at = np.unique(held.start[mine], return_inverse=True)
        over = _alone(times, held, mine)[at] + held.gpus[mine] > cluster.quotas[queue] + 1e-6
        if cluster.borrow_below and over.any():
            every = np.arange(held.start.size)
            over &= _alone(times, held, every)[at] + held.gpus[mine] > cluster.borrow_below * total + 1e-6
        if np.count_nonzero(over) > max(2, doubts.BROKEN * mine.size):
            begin, end = float(times[at[over]].min()), float(times[at[over]].max())
            wrong[queue] = (first, end) if last - end > begin - first else (begin, last)
    return wrong


def _alone(times: Floats, held: Holdings, some: Ints) -> Floats:
    """Return the GPUs that some holdings hold at times, counting each of several simultaneous starts as if alone.

    Args:
        times: seconds, ascending.
        held: every holding.
        some: selection of them.
    """
    start, end, gpus = held.start[some], held.end[some], held.gpus[some]
    now = occupancy.step(times, np.concatenate([start, end]), np.concatenate([gpus, -gpus]))
    place = np.minimum(np.searchsorted(times, start), times.size - 1)
    begins = times[place] == start
    return now - np.bincount(place[begins], weights=gpus[begins], minlength=times.size)


def _of_holders(
    store: Store, waits: delays.Waits, cluster: delays.Cluster, free_s: Floats, known: delay_bounds.Doubts
) -> delay_bounds.Doubts:
    """Collect the doubts, including whether nodes were up and which GPUs jobs from before the log held."""
    has_events = bool(store.value("SELECT count(*) FROM base_machine_events"))
    first = float(min(waits.queued.min(), cluster.holdings.start.min(initial=np.inf)))
    settled = doubts.settled(waits.start, free_s, first, float(waits.start.max()))
    # if waits are unexplained to the end, jobs that ran when the log began may still have held GPUs that were free
    # since; accounting has these, but not those that ended before its first end, while listed jobs already waited
    accounted = bool(store.value(_ACCOUNTED))
    least = float(cluster.holdings.end.min(initial=np.inf)) if accounted else float(np.nextafter(first, np.inf))
    settled = max(settled, least)
    gone = {
        key: doubts.possibly_unavailable(pool, cluster.holdings, first, settled, told=has_events)
        for key, pool in {id(pool): pool for pool in cluster.pools}.items()
    }
    return replace(
        known,
        gone=tuple(gone[id(pool)][0] for pool in cluster.pools),
        hidden=tuple(gone[id(pool)][1:] for pool in cluster.pools),
    )


class _Change:
    """Seconds and their ranges, changed in place for waits about which a source has more information."""

    def __init__(self, numbers: Ints, seconds: Floats, low: Floats, high: Floats, waited: Floats) -> None:
        self._numbers, self._waited = numbers, waited
        self.seconds, self.low, self.high = seconds, low, high

    def _of(self, numbers: pl.Series) -> tuple[Ints, Bools]:
        """Return the indices of some attempts among the waits, and which of them are there."""
        rows = numbers.to_numpy().astype(np.int64)
        at = np.minimum(np.searchsorted(self._numbers, rows), max(0, self._numbers.size - 1))
        return at, self._numbers[at] == rows if self._numbers.size else np.zeros(rows.size, bool)

    def _copy(self) -> None:
        self.seconds, self.low, self.high = self.seconds.copy(), self.low.copy(), self.high.copy()

    def unplaced(self, some: Bools) -> None:
        """Widen the waits for nodes on which no source has information: GPUs may have been free there."""
        if some.any():
            self._copy()
            self.high[some] = self._waited[some, None]
            self.low[some] = 0.0

    def unexplained(self, queues: Ints) -> Bools:
        """Widen the waits of queues whose stated quotas leave much unexplained, to limits that no file states.

        Returns which waits belong to such a queue: more of them may have been for such a limit.
        """
        odd = np.maximum(self.seconds[:, _FREE] - doubts.A_PASS_S, 0.0)
        by_queue = np.bincount(queues, weights=odd), np.bincount(queues, weights=self._waited)
        doubtful = (by_queue[0] > UNEXPLAINED * by_queue[1])[queues]
        much = doubtful & (odd > 0)
        if much.any():
            self._copy()
            free = self.seconds[much, _FREE]
            self.high[much, 0] = np.minimum(self.high[much, 0] + free, self._waited[much])
            self.low[much, _FREE] = np.maximum(self.low[much, _FREE] - free, 0.0)
        return doubtful

    def limited(
        self, store: Store, without_quota: Bools, doubtful: Bools, waits: delays.Waits, cluster: delays.Cluster
    ) -> None:
        """Widen the waits that may have been for limits that no file states.

        These are the waits of owners for whom Slurm named a limit, and unexplained ones without a reason in a queue
        with such an owner. If no source states any reason, they are the waits in queues without a quota
        (`without_quota`; none if quotas are inferred) while the owner held so much that it may have been at a limit: in
        Slurm's partitions, and in all queues of a log without nodes. The same applies to queues whose quota explains
        too little (`beside`).
        """
        if store.value("SELECT count(*) FROM base_gpu_limits"):
            return
        rows = store.frame(_PERHAPS_LIMITED)
        at, there = self._of(rows["number"])
        odd = self.seconds[at, _FREE] > doubts.A_PASS_S if at.size and self._numbers.size else np.zeros(at.size, bool)
        some = at[there & (rows["owner_limited"].to_numpy() | odd)]
        most = self._waited[some]
        perhaps = without_quota | doubtful
        if perhaps.any() and not store.value("SELECT count(source_reason) FROM base_attempts WHERE wait_s > 0"):
            some = np.flatnonzero(perhaps)
            attempts = store.frame(_OWNED)
            row = np.searchsorted(attempts["number"].to_numpy(), self._numbers[some])
            total = np.array([pool.gpus.sum() or np.inf for pool in cluster.pools])[waits.pool[some]]
            most = unstated_limits.possible_s(attempts, row, waits.queued[some], waits.start[some], total)
            # a wait that continued with suitable GPUs free may have been for another kind of limit, such as GPU-minutes
            odd = without_quota[some] & (self.seconds[some, _FREE] > doubts.A_PASS_S)
            most = np.where(odd, self._waited[some], most)
        if not some.size:
            return
        self._copy()
        self.high[some, 0] = np.minimum(self.high[some, 0] + most, self._waited[some])
        self.low[some, 1:] = np.maximum(self.low[some, 1:] - most[:, None], 0.0)

    def sampled(self, store: Store) -> None:
        """Take from samples of the queue how long each attempt waited for a limit, if limits are not loaded."""
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
            # any excess returns to the first of them
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


def _warnings(quotas: pl.DataFrame, broken: Iterable[int]) -> tuple[Note, ...]:
    names = [quotas["queue"][queue] for queue in broken]
    if not names:
        return ()
    return (
        note(
            "starts in the log exceed the quotas of {count:,} queue{count||s} ({queues}{more}), so these quotas did "
            "not apply all the time, and the share of fair share there is unknown."
            " Check --quotas and "
            "--borrow-below",
            count=len(names),
            queues=listed("queue", names, _NAMED),
            more=note(" and others") if len(names) > _NAMED else note(""),
        ),
    )
