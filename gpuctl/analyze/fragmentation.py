"""Free GPUs over time, the largest gang that they could hold, and those that no waiting job could use.

A gang fits where the delays' cause ``fragmentation`` says that it does (`gpuctl.analyze.delays`): on the fewest servers
that can hold it, all in one rack of the servers that its queue may use. So a gang of 12 on servers of 8 GPUs needs two
servers of one rack with 12 free GPUs between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import delay_table, occupancy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from gpuctl.analyze.occupancy import Bools, Floats, Ints, Servers
    from gpuctl.store.database import Store

_CELLS = 2_000_000
"""Numbers held of the intervals that are looked at together: bounds the memory."""


@dataclass(frozen=True)
class Demand:
    """Gangs that wait for GPUs; one element each.

    Attributes:
        start: seconds, when it began to wait for nothing but GPUs.
        end: seconds, when it got them, gave up, or the log ended.
        gpus: the gang's size, whole GPUs.
        pool: number of the pool of servers that it may run on.
    """

    start: Floats
    end: Floats
    gpus: Ints
    pool: Ints


@dataclass(frozen=True)
class Levels:
    """What holds on each interval; arrays over the intervals.

    Attributes:
        free: free GPUs of all servers.
        largest: GPUs of the largest gang that would fit.
        stranded: free GPUs that no waiting gang could use, where any waits; 0 where none does.
        waiting: GPUs that waiting gangs ask for.
    """

    free: Floats
    largest: Floats
    stranded: Floats
    waiting: Floats


def build(store: Store, by: Literal["hour", "day"]) -> None:
    """Create ``base_fragmentation``: the time-weighted means of `Levels` for every hour or day (UTC) of the log.

    Args:
        store: an open store in which base_machines, base_racks (made with the delays), base_placements,
            base_holdings, base_machines_down, base_queue_machines, base_waiting_gangs and base_log_span exist.
        by: length of the periods.
    """
    machines = store.frame(
        "SELECT m.machine, coalesce(m.gpus, 0) AS gpus, m.gpu_type, r.rack FROM base_machines AS m "
        "LEFT JOIN base_racks AS r USING (machine) ORDER BY m.machine"
    )
    placements = store.frame(
        "SELECT machine, gpus, epoch(held_from_ts) AS held_from_c, epoch(held_until_ts) AS held_until_c "
        "FROM base_placements WHERE held_until_ts > held_from_ts AND NOT by_container UNION ALL "
        "SELECT machine, gpus, epoch(held_from_ts), epoch(held_until_ts) "
        "FROM base_holdings WHERE held_until_ts > held_from_ts AND machine IS NOT NULL"
    )
    down = store.frame("SELECT machine, epoch(from_ts) AS from_c, epoch(to_ts) AS to_c FROM base_machines_down")
    own = store.frame("SELECT queue, machine FROM base_queue_machines")
    gangs, pools = delay_table.pools_of(store.frame("FROM base_waiting_gangs"), machines, own)
    servers = delay_table.servers_of(machines, placements, down)
    demand = Demand(
        gangs["from_s"].to_numpy(),
        gangs["to_s"].to_numpy(),
        np.ceil(gangs["gpus"].to_numpy()).astype(np.int64),
        gangs["pool"].to_numpy(),
    )
    [(first, last)] = store.frame("SELECT epoch(first_ts), epoch(last_ts) FROM base_log_span").rows()
    seconds = {"hour": 3600.0, "day": 86400.0}[by]
    edges = np.array([]) if first is None else np.arange(first // seconds * seconds, last + seconds, seconds)
    found = means(servers, [*pools, *delay_table.queues_of(machines, own)], demand, np.clip(edges, first, last))
    rows = pl.DataFrame({"start_s": edges[:-1], **{name: getattr(found, name) for name in Levels.__dataclass_fields__}})
    store.keep("base_fragmentation", rows)


def means(servers: Servers, pools: Sequence[Bools], demand: Demand, edges: Floats) -> Levels:
    """The time-weighted means of `Levels` over the periods between `edges`.

    Args:
        servers: all servers, and what was held on them.
        pools: for each pool, which servers are in it; first those that ``demand.pool`` numbers. A gang runs in one.
        demand: the gangs that wait.
        edges: seconds, ascending; periods lie between neighbours, and one of no length has zeros.
    """
    if edges.size < 2:
        return Levels(*(np.zeros(0) for _ in range(4)))
    times = np.unique(np.concatenate([edges, servers.start, servers.end, demand.start, demand.end]))
    times = times[(times >= edges[0]) & (times <= edges[-1])]
    lengths = np.diff(times)
    period = np.searchsorted(edges, times[:-1], side="right") - 1
    sums = np.zeros((4, edges.size - 1))
    for part, found in levels(times[:-1], servers, pools, demand):
        for k, values in enumerate((found.free, found.largest, found.stranded, found.waiting)):
            sums[k] += np.bincount(period[part], weights=values * lengths[part], minlength=edges.size - 1)
    whole = np.diff(edges)
    return Levels(*np.divide(sums, whole, out=np.zeros_like(sums), where=whole > 0))


def levels(times: Floats, servers: Servers, pools: Sequence[Bools], demand: Demand) -> Iterator[tuple[slice, Levels]]:
    """What holds on the intervals that begin at `times`, a run of them at a time.

    Args:
        times: seconds, ascending; every change is one of them or lies before the first.
        servers: all servers, and what was held on them.
        pools: as in `means`.
        demand: the gangs that wait.
    """
    groups = _groups(servers, pools)
    top = int(servers.gpus.max(initial=0))
    # how many servers of each group have so many free GPUs
    state = np.zeros((groups.rack.size, top + 1), np.int64)
    np.add.at(state, (groups.of_server, servers.gpus), 1)
    at, server, before, after = _changes(times, servers)
    waits = _Waiting(times, demand)
    chunk = max(64, _CELLS // max(1, state.size))
    by_level = np.arange(top + 1)[None, :, None]
    for low in range(0, times.size, chunk):
        part = slice(low, min(low + chunk, times.size))
        changes = np.zeros((*state.shape, part.stop - low), np.int32)
        mine = slice(*np.searchsorted(at, (part.start, part.stop)))
        np.add.at(changes, (groups.of_server[server[mine]], before[mine], at[mine] - low), -1)
        np.add.at(changes, (groups.of_server[server[mine]], after[mine], at[mine] - low), 1)
        counts = state[:, :, None] + np.cumsum(changes, axis=2)
        state = counts[:, :, -1]
        largest, usable = _fitting(counts, groups, waits, part)
        free = (counts * by_level).sum(axis=(0, 1))
        used = (counts * by_level * (by_level >= usable[:, None, :])).sum(axis=(0, 1))
        asked = waits.gpus[part]
        yield part, Levels(free, largest, np.where(asked > 0, free - used, 0.0), asked)


@dataclass(frozen=True)
class _Groups:
    """Servers that may stand in for each other: those of one rack that are in the same pools.

    The servers of unknown rack are together in rack -1, in which no gang may have two of them.

    Attributes:
        of_server: the group of each server.
        rack: of each group.
        within: (groups, pools): whether a group is in a pool.
        largest: GPUs of the largest server of each pool.
    """

    of_server: Ints
    rack: Ints
    within: Bools
    largest: list[int]


def _groups(servers: Servers, pools: Sequence[Bools]) -> _Groups:
    keys, of_server = np.unique(np.column_stack([servers.rack, *pools]), axis=0, return_inverse=True)
    largest = [int(servers.gpus[pool].max(initial=0)) for pool in pools]
    return _Groups(of_server.reshape(-1), keys[:, 0], keys[:, 1:].astype(bool), largest)


def _fitting(counts: Ints, groups: _Groups, waits: _Waiting, part: slice) -> tuple[Floats, Ints]:
    """The largest gang that fits on each interval, and the fewest free GPUs with which a server of a group is of use.

    Args:
        counts: (groups, free GPUs, intervals): servers.
        groups: of the servers.
        waits: the gangs that wait.
        part: which intervals these are.
    """
    gang = np.zeros(counts.shape[2])
    usable = np.full((groups.rack.size, counts.shape[2]), counts.shape[1])
    for pool, size in enumerate(groups.largest):
        asking = waits.of_pool(pool, part)
        for rack in np.unique(groups.rack[groups.within[:, pool]]).tolist() if size else ():
            ours = groups.within[:, pool] & (groups.rack == rack)
            here = counts[ours].sum(axis=0)
            known = rack >= 0
            np.maximum(gang, _largest_gang(here, size) if known else _most_free(here), out=gang)
            fitting = {asked: when for asked, when in asking.items() if known or asked <= size}
            usable[ours] = np.minimum(usable[ours], _least_usable(here, size, fitting))
    return gang, usable


class _Waiting:
    """How many gangs of each size and pool wait on each interval."""

    def __init__(self, times: Floats, demand: Demand) -> None:
        self._times = times
        self._of: dict[int, dict[int, Floats]] = {}
        self.gpus = np.zeros(times.size)
        for pool in np.unique(demand.pool).tolist():
            ours = demand.pool == pool
            for size in np.unique(demand.gpus[ours]).tolist():
                some = ours & (demand.gpus == size)
                ends = np.concatenate([demand.start[some], demand.end[some]])
                count = occupancy.step(times, ends, np.repeat([1.0, -1.0], int(some.sum())))
                self._of.setdefault(pool, {})[size] = count
                self.gpus += size * count

    def of_pool(self, pool: int, part: slice) -> dict[int, Bools]:
        """By size, the intervals of `part` on which such a gang waits; sizes that do not wait at all are left out."""
        there = {size: count[part] > 0 for size, count in self._of.get(pool, {}).items()}
        return {size: waits for size, waits in there.items() if waits.any()}


def _changes(times: Floats, servers: Servers) -> tuple[Ints, Ints, Ints, Ints]:
    """Every change of a server's free GPUs, by time: interval that it begins, server, GPUs before and after."""
    server, at, before, after = occupancy.vacancies(servers)
    k = np.searchsorted(times, at, side="left")
    order = np.argsort(k, kind="stable")
    inside = order[k[order] < times.size]
    return k[inside], server[inside], before[inside], after[inside]


def _largest_gang(counts: Ints, size: int) -> Floats:
    """The largest gang that fits one rack, on every interval.

    A gang on k servers, the fewest that could hold it, asks for more than (k - 1) * size GPUs: the k emptiest servers
    may lack less than `size` of being empty.

    Args:
        counts: (free GPUs, intervals): servers of the rack.
        size: GPUs of the largest server.
    """
    gang = np.zeros(counts.shape[1])
    lacking = np.full(counts.shape[1], size - 1)
    for free in range(min(size, len(counts) - 1), 0, -1):
        taken = counts[free] if free == size else np.minimum(counts[free], lacking // (size - free))
        gang += taken * free
        lacking -= taken * (size - free)
    return gang


def _most_free(counts: Ints) -> Floats:
    """The most GPUs that are free on one server, on every interval; `counts` as in `_largest_gang`."""
    most = np.zeros(counts.shape[1])
    for free in range(1, len(counts)):
        most[counts[free] > 0] = free
    return most


def _least_usable(counts: Ints, size: int, waiting: dict[int, Bools]) -> Ints:
    """The fewest free GPUs that a server of one rack must have for some waiting gang to use them, on every interval.

    Args:
        counts: (free GPUs, intervals): servers of the rack.
        size: GPUs of the largest server of the pool.
        waiting: by size of gang, whether one waits on each interval.
    """
    least = np.full(counts.shape[1], len(counts))
    for gang, waits in waiting.items():
        fewest = -(-gang // size)
        others, whole = _emptiest(counts, fewest - 1), _emptiest(counts, fewest)
        needed = np.maximum(1, gang - others)
        least = np.where(waits & (whole >= gang), np.minimum(least, needed), least)
    return least


def _emptiest(counts: Ints, servers: int) -> Ints:
    """Free GPUs of so many servers of a rack, those with most free, on every interval."""
    left = np.full(counts.shape[1], servers)
    found = np.zeros(counts.shape[1], np.int64)
    for free in range(len(counts) - 1, 0, -1):
        taken = np.minimum(counts[free], left)
        found += taken * free
        left -= taken
    return found
