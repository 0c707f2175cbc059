"""Bounds on each wait's time per cause, if rules, nodes or holdings are uncertain.

At every instant of a wait a set of causes is possible; certain facts leave only one. The minimum of a cause is the time
in which it is the only possible one, the maximum the time in which it is possible at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze import delays, occupancy
from gpuctl.core.causes import CAUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.analyze.delays import Causes
    from gpuctl.analyze.occupancy import Bools, Floats, Nodes

FAIR, FULL, APART, FREE = (np.int8(1 << number) for number in range(len(CAUSES)))


@dataclass(frozen=True)
class Limits:
    """The possible quotas of each queue and the possible rules of borrowing.

    Attributes:
        asked: GPUs in use with the gang, ascending from 0, at which the smallest possible quota changes.
        least: smallest quota of each queue from each of these on; -1: any gang may be over a limit.
        most: largest possible quota of each queue; inf: there may be none.
        busiest: GPUs in use with the gang up to which a queue may at most exceed its quota.
    """

    requested: Floats
    least: tuple[Floats, ...]
    most: Floats
    busiest: float


@dataclass(frozen=True)
class Doubts:
    """Uncertainty about the state of the cluster.

    Attributes:
        limits: quotas and borrowing; None: those of the cluster are exact.
        racks: other layouts of the racks, each for every pool.
        spread: whether gangs may be placed on any free GPUs, so that fragmentation is not a certain cause.
        gone: by pool, its nodes with only those GPUs that may not have been available; empty: none.
        larger: by pool, all nodes that may be in it, with the most GPUs that each may have; empty: pools and
            sizes are exact.
        broken: by queue, the period in which its own starts show that its quota did not hold, seconds.
        hidden: per pool, seconds and changes of the GPUs that jobs from before the log may hold; empty: none.
        own: by queue, the nodes that it may have exclusively: then it has no others, and perhaps no quota.
    """

    limits: Limits | None = None
    racks: tuple[tuple[Nodes, ...], ...] = ()
    spread: bool = False
    gone: tuple[Nodes, ...] = ()
    larger: tuple[Nodes, ...] = ()
    broken: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    hidden: tuple[tuple[Floats, Floats], ...] = ()
    own: Mapping[int, Nodes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether there is any doubt."""
        doubts = (self.racks, self.spread, self.gone, self.larger, self.broken, self.hidden, self.own)
        return self.limits is not None or any(map(bool, doubts))


@dataclass(frozen=True)
class _Room:
    """Bounds on the free resources of a pool on each interval: GPUs, and nodes for gangs of each size."""

    least_free: Floats
    most_free: Floats
    sure: dict[int, Bools]
    maybe: dict[int, Bools]
    hidden: Floats


def bounds(
    waits: delays.Waits, cluster: delays.Cluster, known: tuple[delays.State, ...], doubts: Doubts
) -> tuple[Floats, Floats]:
    """Return minimum and maximum seconds of each wait by cause, both (waits, causes); `known`: see `delays.states`."""
    low, high = (np.zeros((waits.queued.size, len(CAUSES))) for _ in range(2))
    instants = [each for nodes in doubts.gone for each in (nodes.start, nodes.end)]
    if len(cluster.pools) > 1:
        wider = {id(nodes): nodes for nodes in doubts.larger}.values()
        instants += [each for nodes in wider for each in (nodes.start, nodes.end)]
    instants += [np.array(ends) for ends in doubts.broken.values()]
    instants += [at for at, _ in doubts.hidden]
    extra = np.unique(np.concatenate([np.zeros(0), *instants]))
    for state, queues in delays.by_pool(waits, cluster, known, extra):
        times, rooms = state.times, dict[int, _Room]()
        for queue, mine, members in queues:
            pool = int(waits.pool[members[0]])
            key = id(doubts.larger[pool]) if doubts.larger else 0
            if key not in rooms:
                rooms[key] = _room(state, cluster, doubts, pool)
            room = rooms[key]
            here = _own_room(room, state, doubts.own[queue]) if queue in doubts.own else room
            for demand, number, some in delays.by_size(waits, members, cluster.caps):
                queued, start = waits.queued[some], waits.start[some]
                begin = int(np.searchsorted(times, queued.min(), side="right")) - 1
                part = slice(begin, int(np.searchsorted(times, start.max(), side="right")))
                capped = cluster.caps.over(number, demand, times[part])
                over = _over(state, mine, demand, queue, part, cluster, doubts, room)
                if (open_ := doubts.broken.get(queue)) is not None:
                    within = (times[part] >= open_[0]) & (times[part] < open_[1])
                    over = (over[0] & ~within, over[1] | within)
                if queue in doubts.own and doubts.limits is not None:
                    over = (np.zeros_like(over[0]), over[0] | over[1])
                point = state.causes(mine, demand, float(cluster.quotas[queue]), part, capped)
                if capped is not None:
                    over = (over[0] | capped, over[1] | capped)
                possible = _possible(here, demand, part, over, spread=doubts.spread) | (np.int8(1) << point)
                low[some], high[some] = _times_of(times[part], possible, queued, start)
        del rooms, room
    return low, high


def _room(state: delays.State, cluster: delays.Cluster, doubts: Doubts, pool: int) -> _Room:
    """Return the bounds of a pool's free GPUs and of the possible placements."""
    times, demands = state.times, sorted(state.placeable)
    free = state.total - state.used
    least, most = free, free
    sure = {demand: state.room(demand) for demand in demands}
    maybe = dict(sure)
    if doubts.gone and doubts.gone[pool].start.size and demands:
        tight, fits = occupancy.free_and_open(times, occupancy.joined(cluster.pools[pool], doubts.gone[pool]), demands)
        least = np.minimum(least, tight)
        sure = {demand: sure[demand] & fits[demand] for demand in demands}
    if doubts.larger and demands:
        nodes = doubts.larger[pool]
        wide, fits = occupancy.free_and_open(times, nodes, demands)
        most = np.maximum(most, wide)
        maybe = {demand: maybe[demand] | fits[demand] for demand in demands}
        small = int(cluster.pools[pool].gpus.max(initial=0))
        sure = {demand: sure[demand] & fits[demand] if demand > small else sure[demand] for demand in demands}
    # a gang that one node can hold does not depend on racks
    largest = int(cluster.pools[pool].gpus.max(initial=0))
    wide_gangs = [demand for demand in demands if demand > largest]
    for layout in doubts.racks if wide_gangs else ():
        _, fits = occupancy.free_and_open(times, layout[pool], wide_gangs)
        sure |= {demand: sure[demand] & fits[demand] for demand in wide_gangs}
        maybe |= {demand: maybe[demand] | fits[demand] for demand in wide_gangs}
    hidden = occupancy.step(times, *doubts.hidden[pool]) if doubts.hidden else np.zeros(times.size)
    return _Room(least, most, sure, maybe, hidden)


def _own_room(room: _Room, state: delays.State, nodes: Nodes) -> _Room:
    """Return the bounds for a queue that may be confined to these nodes."""
    free, fits = occupancy.free_and_open(state.times, nodes, sorted(state.placeable))
    sure = {demand: room.sure[demand] & fits[demand] for demand in room.sure}
    return replace(room, least_free=np.minimum(room.least_free, free), sure=sure)


def _over(  # noqa: PLR0917
    state: delays.State,
    mine: Floats,
    demand: int,
    queue: int,
    part: slice,
    cluster: delays.Cluster,
    doubts: Doubts,
    room: _Room,
) -> tuple[Bools, Bools]:
    """Return whether a gang is certainly over a quota, and whether it may be."""
    wanted, requested = mine[part] + demand, state.used[part] + demand
    hidden = room.hidden[part]
    if doubts.limits is None:
        quota = float(cluster.quotas[queue])
        sure = state.over_quota(mine[part], state.used[part], demand, quota)
        return sure, sure | state.over_quota(mine[part] + hidden, state.used[part] + hidden, demand, quota)
    step = np.searchsorted(doubts.limits.requested, (requested + hidden).astype(np.int64), side="right") - 1
    smallest = doubts.limits.least[queue][np.maximum(step, 0)]
    sure = (wanted > doubts.limits.most[queue]) & (requested > doubts.limits.busiest)
    return np.asarray(sure), np.asarray(wanted + hidden > smallest)


def _possible(room: _Room, demand: int, part: slice, over: tuple[Bools, Bools], *, spread: bool) -> Causes:
    """Return the possible causes on each interval, as bits."""
    sure, maybe = over
    within, enough = ~sure, ~(room.most_free[part] < demand)
    if demand > 0:
        fits, may_fit = room.sure[demand][part], room.maybe[demand][part]
    else:
        fits = may_fit = np.ones(within.size, bool)
    found = FAIR * maybe.view(np.int8)
    found |= FULL * (within & (room.least_free[part] < demand)).view(np.int8)
    if demand > 1:  # a single GPU is never fragmented
        found |= APART * (within & enough & ~fits).view(np.int8)
    found |= FREE * (within & enough & (may_fit | spread)).view(np.int8)
    return found


def _times_of(times: Floats, possible: Causes, queued: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Return the seconds in which each cause is the only possible one, and possible at all, within a wait."""
    begins = np.flatnonzero(np.append(True, possible[1:] != possible[:-1]))
    possible, begin = possible[begins], times[begins]
    lasts = np.diff(begin, append=times[-1])
    first, last = (np.searchsorted(begin, at, side="right") - 1 for at in (queued, start))

    def between(here: Bools) -> Floats:
        held = here.astype(np.float64)
        before = np.concatenate([[0.0], np.cumsum(held * lasts)])
        return np.asarray(
            (before[last] + held[last] * (start - begin[last]))
            - (before[first] + held[first] * (queued - begin[first]))
        )

    causes = range(len(CAUSES))
    low = np.stack([between(possible == 1 << number) for number in causes], axis=1)
    high = np.stack([between((possible >> number) & 1 == 1) for number in causes], axis=1)
    return low, high
