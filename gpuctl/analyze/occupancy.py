"""Replays how many GPUs were held, per queue and per server, from the recorded attempts.

Everything is an array over the change points of the cluster's state: ``times[k]`` is when something started
or ended, and values at k hold from then until ``times[k + 1]``. Times are seconds on the log's own clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze import interval_sweeps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.analyze.interval_sweeps import Numbers

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Holdings:
    """Who held GPUs and when; one element an attempt with a known start.

    Attributes:
        start: seconds.
        end: seconds, when the GPUs were free again; never before ``start``.
        gpus: GPUs held.
        queue: number of the attempt's queue.
    """

    start: Floats
    end: Floats
    gpus: Floats
    queue: Ints


@dataclass(frozen=True)
class Servers:
    """The servers' sizes and racks, and what each attempt held on each.

    Attributes:
        gpus: GPUs of each server.
        rack: number of its rack; servers of unknown rack are -1.
        start: seconds, one element a (attempt, server).
        end: seconds.
        server: number of the server.
        held: GPUs held there.
    """

    gpus: Ints
    rack: Ints
    start: Floats
    end: Floats
    server: Ints
    held: Ints


def change_points(holdings: Holdings, first: float) -> Floats:
    """All instants at which the state changes, ascending, with `first` in front (nothing held yet)."""
    return np.unique(np.concatenate([[first], holdings.start, holdings.end]))


def step(times: Floats, at: Floats, change: Floats) -> Floats:
    """The running sum of `change` (at the instants `at`, in any order) on every interval of `times`."""
    order = np.argsort(at, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(change[order])])
    return np.asarray(sums[np.searchsorted(at[order], times, side="right")])


def in_use(times: Floats, holdings: Holdings, queue: int | None = None) -> Floats:
    """GPUs held on every interval, by one queue or by all."""
    mine = slice(None) if queue is None else holdings.queue == queue
    start, end, gpus = holdings.start[mine], holdings.end[mine], holdings.gpus[mine]
    return step(times, np.concatenate([start, end]), np.concatenate([gpus, -gpus]))


def started(times: Floats, holdings: Holdings, queue: int | None = None) -> Floats:
    """GPUs of the gangs that start at each instant of `times`, of one queue or of all."""
    mine = slice(None) if queue is None else holdings.queue == queue
    at = np.searchsorted(times, holdings.start[mine])
    return np.bincount(at, weights=holdings.gpus[mine], minlength=times.size).astype(np.float64)


def subset(servers: Servers, members: Bools) -> Servers:
    """The same for some of the servers only; `members` has one element a server."""
    number = np.cumsum(members) - 1
    mine = members[servers.server]
    return Servers(
        gpus=servers.gpus[members],
        rack=servers.rack[members],
        start=servers.start[mine],
        end=servers.end[mine],
        server=number[servers.server[mine]],
        held=servers.held[mine],
    )


def joined(servers: Servers, more: Servers) -> Servers:
    """The same servers with what was held on them according to both."""
    names = ("start", "end", "server", "held")
    return replace(
        servers, **{name: np.concatenate([getattr(each, name) for each in (servers, more)]) for name in names}
    )


def emptied(servers: Servers) -> Servers:
    """The same servers with nothing held on them, which takes next to no memory."""
    none = np.zeros(0)
    numbers = none.astype(np.int64)
    return Servers(servers.gpus, servers.rack, none, none, numbers, numbers)


def free_and_open(times: Floats, servers: Servers, demands: list[int]) -> tuple[Floats, dict[int, Bools]]:
    """How many GPUs were free, and when a gang could have been put on the fewest servers, all in one rack.

    The fewest servers are ``ceil(demand / GPUs of the largest server)``. A gang that needs several is never
    placeable on servers of unknown rack, since they may stand anywhere.

    Args:
        times: change points.
        servers: the servers to look at and what was held on them.
        demands: gang sizes to ask for, each at least 1.

    Returns:
        free GPUs on every interval of `times`; for each demand, whether such a placement was free.
    """
    largest = int(servers.gpus.max(initial=0))
    if largest == 0:
        return np.zeros(times.size), {demand: np.zeros(times.size, bool) for demand in demands}
    rack, k, before, after = _changes(times, servers, largest)
    at_first = np.zeros((int(_racks(servers).max()) + 1, largest + 1), np.int64)
    np.add.at(at_first, (_racks(servers), servers.gpus), 1)
    change = np.bincount(k, weights=after - before, minlength=times.size)[: times.size]
    found = interval_sweeps.open_racks(times.size, rack, k, before, after, at_first, demands)
    return np.asarray(servers.gpus.sum() + np.cumsum(change)), found


def widest_rack(times: Floats, servers: Servers) -> Floats:
    """The most GPUs that were free in one rack, on every interval of `times`; a server of unknown rack is a rack."""
    vacant = np.bincount(_racks(servers), weights=servers.gpus)
    rack, k, before, after = _changes(times, servers, int(servers.gpus.max(initial=0)))
    sums = np.concatenate([[0], np.cumsum(after - before)])
    free = vacant[rack] + sums[1:] - sums[np.searchsorted(rack, rack)]
    follows = np.append(rack[1:] == rack[:-1], False)[: rack.size]
    until = np.where(follows, np.append(k[1:], 0)[: k.size], times.size)
    begun = np.full(vacant.size, times.size)
    np.minimum.at(begun, rack, k)
    first, last = (np.minimum(np.concatenate(each), times.size) for each in ([0 * begun, k], [begun, until]))
    return interval_sweeps.highest(times.size, first, last, np.concatenate([vacant, free]), 0.0)


def _racks(servers: Servers) -> Ints:
    """The number of each server's rack; a server of unknown rack is a rack of its own."""
    own = servers.rack.max(initial=-1) + 1 + np.arange(servers.rack.size)
    return np.where(servers.rack >= 0, servers.rack, own)


def _changes(times: Floats, servers: Servers, largest: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Every change of a server's free GPUs, by rack and time: rack, interval that it begins, GPUs before and after."""
    at, change, server, by_server = _events(servers)
    # what lies before the first interval counts from there on; of millions of changes each array is large
    k = np.searchsorted(times, at, side="left").astype(np.int32)
    del at
    small = np.dtype(np.int32 if largest < 1 << 31 else np.int64)
    before, after = np.empty(change.size, small), np.empty(change.size, small)
    given, taken = _free(servers, server[by_server], change[by_server])
    del change
    before[by_server], after[by_server] = np.minimum(given, largest), np.minimum(taken, largest)
    del by_server, given, taken
    rack = _racks(servers).astype(np.int32)[server]
    del server
    order = interval_sweeps.grouped(rack)
    return rack[order], k[order], before[order], after[order]


def vacancies(servers: Servers) -> tuple[Ints, Floats, Ints, Ints]:
    """Every change of a server's free GPUs, by server and time: server, seconds, free GPUs before and after."""
    at, change, server, order = _events(servers)
    server = server[order]
    return server, at[order], *_free(servers, server, change[order])


def _events(servers: Servers) -> tuple[Floats, Ints, Ints, Ints]:
    """When GPUs were given back or taken, by time: seconds, GPUs, server; the order that puts them by server."""
    # at one instant GPUs are given back before they are taken
    at = np.concatenate([servers.end, servers.start])
    order = np.argsort(at, kind="stable")
    server = np.concatenate([servers.server, servers.server])[order]
    return at[order], np.concatenate([servers.held, -servers.held])[order], server, interval_sweeps.grouped(server)


def _free(servers: Servers, server: Ints, change: Ints) -> tuple[Ints, Ints]:
    """Free GPUs before and after each change, by server and time."""
    after = np.cumsum(change)
    first = np.searchsorted(server, np.arange(servers.gpus.size))
    base = np.concatenate([[0], after])[first]
    after += (servers.gpus - base)[server]
    before = after - change
    # logs overlap now and then: a server is never less than empty nor more than full
    most = servers.gpus[server]
    return np.clip(before, 0, most, out=before), np.clip(after, 0, most, out=after)
