"""Splits every queueing delay by its cause, from the recorded attempts alone.

At every instant of a wait, the cause is one of

* fair share: with this gang, its queue would exceed its quota (and may not borrow), or its account, user or QOS its
  limit (`gpuctl.analyze.gpu_limits`);
* capacity: within quota, but fewer GPUs are free in the whole cluster than the gang requests;
* fragmentation: enough GPUs are free, but not on the fewest nodes of one rack that can hold the gang;
* scheduler: such nodes are free, as far as the logs show, and it did not start (scheduling latency, back-off, the boot
  of nodes that it holds, the seconds between a failure and its retry, or a rule that the logs do not show).

The first two, and "the rest", are Jeon et al., ATC 2019, section 3.1: the paper counts everything within quota as
fragmentation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze import occupancy
from gpuctl.analyze.gpu_limits import Caps
from gpuctl.analyze.interval_sweeps import Ranked, highest, lengths
from gpuctl.core.causes import CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuctl.analyze.occupancy import Bools, Floats, Holdings, Ints, Nodes

    Causes = NDArray[np.int8]


@dataclass(frozen=True)
class Waits:
    """Attempts whose queueing and start are both known; one element each.

    Attributes:
        queued: seconds on the log's clock; from then on only other jobs kept it from starting.
        start: seconds, not before ``queued``; when it got its GPUs, even if they had to boot before it ran.
        gpus: the gang's size, whole GPUs.
        queue: number of its queue.
        pool: number of the pool of nodes that it may run on.
        priority: the scheduler's priority, higher ones first; NaN if unknown.
    """

    queued: Floats
    start: Floats
    gpus: Ints
    queue: Ints
    pool: Ints
    priority: Floats


@dataclass(frozen=True)
class Delays:
    """Result of `split`; arrays over the waits.

    Attributes:
        seconds: (waits, 4): seconds of delay by cause, in the order of `CAUSES`; a row sums to the wait.
        at_arrival: index into `CAUSES` of the cause at the instant of queueing.
        overtook_gpus: size of the smallest gang of the same queue that was queued earlier and still
            waited when this one started; 0 if it overtook none.
        behind: seconds of the cause scheduler while an attempt of the same queue with a higher priority waited; 0 if
            priorities are unknown.
        harmless: whether none of those overtaken could have started instead: even with this gang's GPUs they were too
            large for their queue's quota or for the free GPUs. The location of the GPUs is ignored, so "not harmless"
            is an upper bound.
    """

    seconds: Floats
    at_arrival: Ints
    behind: Floats
    overtook_gpus: Ints
    harmless: Bools


@dataclass(frozen=True)
class Cluster:
    """All holdings, the nodes, and the rules.

    Attributes:
        holdings: every attempt that held GPUs.
        pools: the nodes that an attempt of each pool may run on; pools may share nodes.
        quotas: GPUs of each queue's quota, by queue number; inf if it has none.
        borrow_below: a queue may exceed its quota while, with this gang, at most this share of its pool's
            GPUs is in use; 0 never.
        caps: limits of accounts, users and QOS.
    """

    holdings: Holdings
    pools: tuple[Nodes, ...]
    quotas: Floats
    borrow_below: float
    caps: Caps = field(default_factory=Caps)


@dataclass(frozen=True)
class State:
    """The nodes that some waits request, over the change points of everything that these waits depend on.

    Attributes:
        times: seconds; one element per interval, which lasts until the next one.
        used: GPUs held on each interval.
        total: GPUs of the nodes.
        borrow_below: see `Cluster`.
        placeable: by gang size, whether each interval has room for such a gang; eight intervals per byte.
    """

    times: Floats
    used: Floats
    total: float
    borrow_below: float
    placeable: dict[int, NDArray[np.uint8]]

    def room(self, demand: int, part: slice | None = None) -> Bools:
        """Return whether the intervals of `part`, or all, have room for a gang of `demand`, a size in `placeable`."""
        first, last, _ = (part or slice(None)).indices(self.times.size)
        bits = np.unpackbits(self.placeable[demand][first // 8 : -(-last // 8)])
        return bits[first % 8 : first % 8 + last - first].view(bool)

    def refined(self, extra: Floats) -> State:
        """Return the same state with additional intervals that begin at each of the ascending instants `extra`."""
        extra = extra[np.searchsorted(extra, self.times[0]) :]
        place = np.minimum(np.searchsorted(self.times, extra), self.times.size - 1)
        extra = extra[self.times[place] != extra]
        if not extra.size:
            return self
        times = np.sort(np.concatenate([self.times, extra]))
        k = np.searchsorted(self.times, times, side="right") - 1
        placeable = {demand: np.packbits(self.room(demand)[k]) for demand in self.placeable}
        return State(times, self.used[k], self.total, self.borrow_below, placeable)

    def over_quota(self, queue_used: Floats, used: Floats, demand: Ints | int, quota: float) -> Bools:
        """Return whether a gang of `demand` GPUs would exceed its queue's quota, and may not borrow."""
        borrows = used + demand <= self.borrow_below * self.total
        return np.asarray((queue_used + demand > quota) & ~borrows)

    def causes(self, queue_used: Floats, demand: int, quota: float, part: slice, capped: Bools | None) -> Causes:
        """Return the cause of a gang of `demand` GPUs on each interval of `part`, as index into `CAUSES`.

        ``capped``: by interval, whether the gang would exceed a limit of its owner.
        """
        used = self.used[part]
        over = self.over_quota(queue_used[part], used, demand, quota)
        if capped is not None:
            over |= capped
        full = self.total - used < demand
        spot = self.room(demand, part) if demand > 0 else np.ones(used.size, bool)
        # 8 bits suffice: there are millions of intervals
        late = np.where(spot, np.int8(3), np.int8(2))
        return np.where(over, np.int8(0), np.where(full, np.int8(1), late))


def split(waits: Waits, cluster: Cluster, known: tuple[State, ...], *, order: bool = True) -> Delays:
    """Split every wait by cause at each change of the cluster's state.

    Args:
        waits: the waits.
        cluster: holdings and rules.
        known: the result of `states` for these.
        order: also find overtaken attempts, which takes a third of the time; else ``overtook_gpus``, ``harmless`` and
            ``behind`` are empty.
    """
    seconds = np.zeros((waits.queued.size, len(CAUSES)))
    at_arrival = np.zeros(waits.queued.size, np.int64)
    overtook = overtaken_gpus(waits) if order else np.zeros(0, np.int64)
    harmless = np.zeros(overtook.size, bool)
    behind = np.zeros(overtook.size)
    for state, queues in by_pool(waits, cluster, known):
        times = state.times
        for queue, mine, members in queues:
            quota = float(cluster.quotas[queue])
            most = _highest_waiting(times, waits, queue) if order else np.zeros(0)
            ranked = Ranked(most) if most.size else None
            for demand, number, some in by_size(waits, members, cluster.caps):
                queued, start = waits.queued[some], waits.start[some]
                low = int(np.searchsorted(times, queued.min(), side="right")) - 1
                part = slice(low, int(np.searchsorted(times, start.max(), side="right")))
                cause = state.causes(mine, demand, quota, part, cluster.caps.over(number, demand, times[part]))
                seconds[some], at_arrival[some] = _integrate(times[part], cause, queued, start)
                if ranked is not None:
                    fitted = np.zeros(times.size)
                    fitted[part] = np.where(cause == CAUSES.index("scheduler"), lengths(times)[part], 0.0)
                    behind[some] = seconds_behind(times, fitted, ranked, queued, start, waits.priority[some])
                if order:
                    harmless[some] = _harmless(start, waits.gpus[some], overtook[some], state, mine, quota)
    return Delays(seconds, at_arrival, behind, overtook, harmless)


def _highest_waiting(times: Floats, waits: Waits, queue: int) -> Floats:
    """Return the highest waiting priority of a queue on each interval; empty if none is known."""
    ours = np.flatnonzero((waits.queue == queue) & ~np.isnan(waits.priority))
    if not ours.size:
        return np.zeros(0)
    first, last = (np.searchsorted(times, at[ours], side="left") for at in (waits.queued, waits.start))
    return highest(times.size, first, last, waits.priority[ours], -np.inf)


def seconds_behind(  # noqa: PLR0917
    times: Floats, fitted: Floats, ranked: Ranked, queued: Floats, start: Floats, priority: Floats
) -> Floats:
    """Return the seconds of some waits on which a higher priority waited in their queue.

    Args:
        times: beginnings of the intervals, including every beginning and end of a wait whose priority is known.
        fitted: seconds of each interval that count.
        ranked: the intervals by the highest waiting priority, at least that of any current wait.
        queued: seconds.
        start: seconds.
        priority: of each wait; NaN if unknown: then its result is 0.
    """
    found = np.zeros(queued.size)
    known = np.flatnonzero(~np.isnan(priority) & (start > queued))
    first, last = (np.searchsorted(times, at[known], side="left") for at in (queued, start))
    before = np.concatenate([[0.0], np.cumsum(fitted)])
    alone = ranked.sums(fitted, priority[known], first, last)
    found[known] = np.maximum(before[last] - before[first] - alone, 0.0)
    return found


def causes_at(waits: Waits, cluster: Cluster, known: tuple[State, ...], wait: Ints, at: Floats) -> tuple[Ints, Bools]:
    """Return the cause of some waits at an instant within each.

    Args:
        waits: the waits.
        cluster: as for `split`.
        known: the result of `states` for these.
        wait: index into `waits`, one element per query.
        at: seconds, one element per query.

    Returns:
        the cause, as index into `CAUSES`; whether an attempt of the same queue with a higher priority waited.
    """
    answer, behind = np.zeros(wait.size, np.int64), np.zeros(wait.size, bool)
    if not wait.size:
        return answer, behind
    selected = np.zeros(waits.queued.size, bool)
    selected[wait] = True
    for state, queues in by_pool(waits, cluster, known):
        for queue, mine, members in queues:
            most = _highest_waiting(state.times, waits, queue)
            for demand, number, some in by_size(waits, members[selected[members]], cluster.caps):
                ours = np.isin(wait, some)
                k = np.searchsorted(state.times, at[ours], side="right") - 1
                whole = slice(0, state.times.size)
                capped = cluster.caps.over(number, demand, state.times)
                answer[ours] = state.causes(mine, demand, float(cluster.quotas[queue]), whole, capped)[k]
                # from then on it has its GPUs
                answer[ours] = np.where(at[ours] >= waits.start[wait[ours]], CAUSES.index("scheduler"), answer[ours])
                if most.size:
                    behind[ours] = most[k] > waits.priority[wait[ours]]
    return answer, behind


def _times(waits: Waits, cluster: Cluster, nodes: Nodes, asking: Ints) -> Floats:
    """Return every instant at which something changes for the waits `asking` for `nodes`.

    That is: holdings there or in their queues, nodes that are up, waits, their priorities, and holdings of owners with
    limits.
    """
    held = cluster.holdings
    first = float(min(waits.queued.min(initial=np.inf), held.start.min(initial=np.inf)))
    queues = np.unique(waits.queue[asking])
    ours: Bools | slice = np.isin(held.queue, queues) if len(cluster.pools) > 1 else slice(None)
    # of queues, not of pools: a priority counts among all waits of a queue
    arrivals = waits.queued[np.isin(waits.queue, queues) & ~np.isnan(waits.priority)]
    limits = [cap.at for part in cluster.caps.sets for cap in part]
    own = [np.array([first]), held.start[ours], held.end[ours], arrivals, nodes.start, nodes.end]
    times = np.unique(np.concatenate([*own, *limits]))
    return times[times >= first]


def states(waits: Waits, cluster: Cluster) -> tuple[State, ...]:
    """Return the state of each pool that has waits, for `by_pool`; pools with the same nodes share one."""
    return tuple(_state(waits, cluster, nodes, asking) for nodes, asking in _asking(waits, cluster))


def by_pool(
    waits: Waits, cluster: Cluster, known: tuple[State, ...], extra: Floats | None = None
) -> Iterator[tuple[State, Iterator[tuple[int, Floats, Ints]]]]:
    """Yield each pool that has waits: its state, and the number, held GPUs and waits of each of its queues.

    Args:
        waits: the waits.
        cluster: holdings and rules.
        known: the result of `states` for these.
        extra: further change points, seconds, ascending.
    """
    for state, (_, asking) in zip(known, _asking(waits, cluster), strict=True):
        finer = state if extra is None else state.refined(extra)
        yield finer, _queues(waits, cluster, finer.times, asking)


def _asking(waits: Waits, cluster: Cluster) -> Iterator[tuple[Nodes, Ints]]:
    """Return each set of nodes that waits request, and these waits."""
    same: dict[int, list[int]] = {}
    for number, nodes in enumerate(cluster.pools):
        same.setdefault(id(nodes), []).append(number)
    for numbers in same.values():
        asking = np.flatnonzero(np.isin(waits.pool, numbers))
        if asking.size:
            yield cluster.pools[numbers[0]], asking


def _state(waits: Waits, cluster: Cluster, nodes: Nodes, asking: Ints) -> State:
    times = _times(waits, cluster, nodes, asking)
    demands = sorted({int(g) for g in np.unique(waits.gpus[asking]) if g > 0})
    free, placeable = occupancy.free_and_open(times, nodes, demands)
    total = float(nodes.gpus.sum())
    used = total - free
    if len(cluster.pools) == 1:  # some sources do not state where GPUs were held
        used = np.maximum(used, occupancy.in_use(times, cluster.holdings))
    packed = {demand: np.packbits(there) for demand, there in placeable.items()}
    return State(times, used, total, cluster.borrow_below, packed)


def _queues(waits: Waits, cluster: Cluster, times: Floats, asking: Ints) -> Iterator[tuple[int, Floats, Ints]]:
    for queue in np.unique(waits.queue[asking]):
        held = occupancy.in_use(times, cluster.holdings, int(queue))
        ours = asking[waits.queue[asking] == queue]
        for number in np.unique(waits.pool[ours]):
            yield int(queue), held, ours[waits.pool[ours] == number]


def by_size(waits: Waits, members: Ints, caps: Caps) -> Iterator[tuple[int, int, Ints]]:
    """Return the waits `members` by gang size and set of limits: size, number of the set, waits."""
    for demand in np.unique(waits.gpus[members]):
        for number, some in caps.parts(members[waits.gpus[members] == demand]):
            yield int(demand), number, some


def _integrate(times: Floats, cause: Causes, queued: Floats, start: Floats) -> tuple[Floats, Ints]:
    """Return the seconds of each cause between `queued` and `start`, and the cause at `queued`."""
    begins = np.flatnonzero(np.append(True, cause[1:] != cause[:-1]))
    cause, begin = cause[begins], times[begins]
    lasts = np.diff(begin, append=times[-1])
    low, high = (np.searchsorted(begin, at, side="right") - 1 for at in (queued, start))
    seconds = np.empty((queued.size, len(CAUSES)))
    for number in range(len(CAUSES)):
        here = (cause == number).astype(np.float64)
        before = np.concatenate([[0.0], np.cumsum(here * lasts)])
        seconds[:, number] = (before[high] + here[high] * (start - begin[high])) - (
            before[low] + here[low] * (queued - begin[low])
        )
    return seconds, cause[low].astype(np.int64)


def overtaken_gpus(waits: Waits) -> Ints:
    """Return, for every start, the smallest gang of its queue that was queued earlier and started later; 0: none.

    Equal queueing times have no order.
    """
    smallest = np.zeros(waits.queued.size, np.int64)
    for queue in np.unique(waits.queue):
        members = np.flatnonzero(waits.queue == queue)
        members = members[np.argsort(waits.queued[members], kind="stable")]
        queued, start, gpus = waits.queued[members], waits.start[members], waits.gpus[members]
        earlier = np.searchsorted(queued, queued, side="left")  # number queued strictly before
        found = np.zeros(members.size, np.int64)
        for demand in np.unique(gpus)[::-1]:
            latest = np.maximum.accumulate(np.where(gpus == demand, start, -np.inf))
            latest = np.concatenate([[-np.inf], latest])[earlier]
            found[latest > start] = demand
        smallest[members] = found
    return smallest


def _harmless(start: Floats, gpus: Ints, demand: Ints, state: State, mine: Floats, quota: float) -> Bools:  # noqa: PLR0917
    k = np.searchsorted(state.times, start, side="right") - 1
    queue_used, used = mine[k] - gpus, state.used[k] - gpus  # as if it had not started
    over = state.over_quota(queue_used, used, demand, quota)
    return np.asarray((demand > 0) & (over | (state.total - used < demand)))
