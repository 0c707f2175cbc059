"""Replays how many GPUs were held, per queue and per server, from the recorded attempts.

Everything is an array over the change points of the cluster's state: ``times[k]`` is when something started
or ended, and values at k hold from then until ``times[k + 1]``. Times are seconds on the log's own clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

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
    vacant = np.zeros(times.size)
    count = {demand: np.zeros(times.size) for demand in demands}
    if largest > 0:
        for at, before, after, start_counts in _by_rack(servers, largest):
            free = np.zeros((at.size + 1, largest + 1), np.int32)
            free[0] = start_counts
            rows = np.arange(1, at.size + 1)
            np.add.at(free, (rows, before), -1)
            np.add.at(free, (rows, after), 1)
            np.cumsum(free, axis=0, out=free)
            last = np.append(at[1:] != at[:-1], True) if at.size else np.zeros(0, bool)
            kept = np.concatenate([[0], rows[last]])
            vacant += float(start_counts @ np.arange(largest + 1)) + step(
                times, at, (after - before).astype(np.float64)
            )
            for demand, racks in count.items():
                fits = _fits(free[kept], demand, largest)
                change = np.diff(fits.astype(np.float64))
                racks += float(fits[0]) + step(times, at[last], change)  # noqa: PLW2901 - adds in place
    return vacant, {demand: racks > 0 for demand, racks in count.items()}


def _by_rack(servers: Servers, largest: int) -> Iterator[tuple[Floats, Ints, Ints, NDArray[np.int32]]]:
    """For each rack its changes: instants, free GPUs of the changed server before and after; then its servers at first.

    The last is how many servers have 0, 1, 2 … GPUs. A server of unknown rack is a rack of its own.
    """
    at = np.concatenate([servers.start, servers.end])
    server = np.concatenate([servers.server, servers.server])
    change = np.concatenate([-servers.held, servers.held])
    # at one instant GPUs are given back before they are taken
    order = np.lexsort((-change, at, server))
    at, server, change = at[order], server[order], change[order]
    sums = np.cumsum(change)
    first = np.searchsorted(server, np.arange(servers.gpus.size))
    base = np.concatenate([[0], sums])[first]
    after = servers.gpus[server] + sums - base[server]
    before = after - change
    # logs overlap now and then: a server is never less than empty nor more than full
    after, before = np.clip(after, 0, largest), np.clip(before, 0, largest)
    rack = np.where(servers.rack >= 0, servers.rack, servers.rack.max(initial=-1) + 1 + np.arange(servers.rack.size))
    for number in np.unique(rack):
        members = rack == number
        mine = members[server]
        order = np.argsort(at[mine], kind="stable")
        yield (
            at[mine][order],
            before[mine][order],
            after[mine][order],
            np.bincount(servers.gpus[members], minlength=largest + 1).astype(np.int32),
        )


def _fits(free: NDArray[np.int32], demand: int, largest: int) -> Bools:
    """Whether `demand` GPUs are free on the fewest servers; row: a state, column f: servers with f free GPUs."""
    wanted = -(-demand // largest)
    left = np.full(free.shape[0], wanted, np.int64)
    gathered = np.zeros(free.shape[0], np.int64)
    for size in range(largest, 0, -1):
        taken = np.minimum(free[:, size], left)
        gathered += taken * size
        left -= taken
    return np.asarray(gathered >= demand)
