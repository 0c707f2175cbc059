"""Replays the GPUs held over time, per queue and per node, from the recorded attempts.

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
    """Holdings of GPUs over time; one element per attempt with a known start.

    Attributes:
        start: seconds.
        end: seconds at which the GPUs were free again; never before ``start``.
        gpus: GPUs held.
        queue: number of the attempt's queue.
    """

    start: Floats
    end: Floats
    gpus: Floats
    queue: Ints


@dataclass(frozen=True)
class Nodes:
    """The nodes' sizes and racks, and each attempt's holding on each.

    Attributes:
        gpus: GPUs of each node.
        rack: number of its rack; nodes of unknown rack are -1.
        start: seconds, one element per (attempt, node).
        end: seconds.
        node: number of the node.
        held: GPUs held there.
    """

    gpus: Ints
    rack: Ints
    start: Floats
    end: Floats
    node: Ints
    held: Ints


def change_points(holdings: Holdings, first: float) -> Floats:
    """Return all instants at which the state changes, ascending, with `first` in front (nothing held yet)."""
    return np.unique(np.concatenate([[first], holdings.start, holdings.end]))


def step(times: Floats, at: Floats, change: Floats) -> Floats:
    """Return the running sum of `change` (at the instants `at`, in any order) on every interval of `times`."""
    order = np.argsort(at, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(change[order])])
    return np.asarray(sums[np.searchsorted(at[order], times, side="right")])


def in_use(times: Floats, holdings: Holdings, queue: int | None = None) -> Floats:
    """Return the GPUs held on every interval, by one queue or by all."""
    mine = slice(None) if queue is None else holdings.queue == queue
    start, end, gpus = holdings.start[mine], holdings.end[mine], holdings.gpus[mine]
    return step(times, np.concatenate([start, end]), np.concatenate([gpus, -gpus]))


def started(times: Floats, holdings: Holdings, queue: int | None = None) -> Floats:
    """Return the GPUs of the gangs that start at each instant of `times`, of one queue or of all."""
    mine = slice(None) if queue is None else holdings.queue == queue
    at = np.searchsorted(times, holdings.start[mine])
    return np.bincount(at, weights=holdings.gpus[mine], minlength=times.size).astype(np.float64)


def subset(nodes: Nodes, members: Bools) -> Nodes:
    """Return only some of the nodes; `members` has one element per node."""
    number = np.cumsum(members) - 1
    mine = members[nodes.node]
    return Nodes(
        gpus=nodes.gpus[members],
        rack=nodes.rack[members],
        start=nodes.start[mine],
        end=nodes.end[mine],
        node=number[nodes.node[mine]],
        held=nodes.held[mine],
    )


def joined(nodes: Nodes, more: Nodes) -> Nodes:
    """Return the same nodes with the holdings of both."""
    names = ("start", "end", "node", "held")
    return replace(nodes, **{name: np.concatenate([getattr(each, name) for each in (nodes, more)]) for name in names})


def emptied(nodes: Nodes) -> Nodes:
    """Return the same nodes without holdings, which needs almost no memory."""
    none = np.zeros(0)
    numbers = none.astype(np.int64)
    return Nodes(nodes.gpus, nodes.rack, none, none, numbers, numbers)


def free_and_open(times: Floats, nodes: Nodes, demands: list[int]) -> tuple[Floats, dict[int, Bools]]:
    """Return the free GPUs, and when a gang would have fit on the fewest nodes, all in one rack.

    The fewest nodes are ``ceil(demand / GPUs of the largest node)``. A gang that needs several never fits on nodes of
    unknown rack, since they may be anywhere.

    Args:
        times: change points.
        nodes: the nodes and the holdings on them.
        demands: gang sizes, each at least 1.

    Returns:
        free GPUs on every interval of `times`; by demand, whether such a placement was free.
    """
    largest = int(nodes.gpus.max(initial=0))
    if largest == 0:
        return np.zeros(times.size), {demand: np.zeros(times.size, bool) for demand in demands}
    rack, k, before, after = _changes(times, nodes, largest)
    at_first = np.zeros((int(_racks(nodes).max()) + 1, largest + 1), np.int64)
    np.add.at(at_first, (_racks(nodes), nodes.gpus), 1)
    change = np.bincount(k, weights=after - before, minlength=times.size)[: times.size]
    found = interval_sweeps.open_racks(times.size, rack, k, before, after, at_first, demands)
    return np.asarray(nodes.gpus.sum() + np.cumsum(change)), found


def widest_rack(times: Floats, nodes: Nodes) -> Floats:
    """Return the most free GPUs in one rack, on every interval of `times`; a node of unknown rack is its own rack."""
    vacant = np.bincount(_racks(nodes), weights=nodes.gpus)
    rack, k, before, after = _changes(times, nodes, int(nodes.gpus.max(initial=0)))
    sums = np.concatenate([[0], np.cumsum(after - before)])
    free = vacant[rack] + sums[1:] - sums[np.searchsorted(rack, rack)]
    follows = np.append(rack[1:] == rack[:-1], False)[: rack.size]
    until = np.where(follows, np.append(k[1:], 0)[: k.size], times.size)
    start = np.full(vacant.size, times.size)
    np.minimum.at(start, rack, k)
    first, last = (np.minimum(np.concatenate(each), times.size) for each in ([0 * start, k], [start, until]))
    return interval_sweeps.highest(times.size, first, last, np.concatenate([vacant, free]), 0.0)


def _racks(nodes: Nodes) -> Ints:
    """Return the number of each node's rack; a node of unknown rack is its own rack."""
    own = nodes.rack.max(initial=-1) + 1 + np.arange(nodes.rack.size)
    return np.where(nodes.rack >= 0, nodes.rack, own)


def _changes(times: Floats, nodes: Nodes, largest: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return every change of a node's free GPUs, by rack and time: rack, first interval, GPUs before and after."""
    at, change, node, by_node = _events(nodes)
    # changes before the first interval count from its start; for millions of changes each array is large
    k = np.searchsorted(times, at, side="left").astype(np.int32)
    del at
    small = np.dtype(np.int32 if largest < 1 << 31 else np.int64)
    before, after = np.empty(change.size, small), np.empty(change.size, small)
    given, taken = _free(nodes, node[by_node], change[by_node])
    del change
    before[by_node], after[by_node] = np.minimum(given, largest), np.minimum(taken, largest)
    del by_node, given, taken
    rack = _racks(nodes).astype(np.int32)[node]
    del node
    order = interval_sweeps.grouped(rack)
    return rack[order], k[order], before[order], after[order]


def vacancies(nodes: Nodes) -> tuple[Ints, Floats, Ints, Ints]:
    """Return every change of a node's free GPUs, by node and time: node, seconds, free GPUs before and after."""
    at, change, node, order = _events(nodes)
    node = node[order]
    return node, at[order], *_free(nodes, node, change[order])


def _events(nodes: Nodes) -> tuple[Floats, Ints, Ints, Ints]:
    """Return releases and allocations of GPUs, by time: seconds, GPUs, node; the order that sorts them by node."""
    # at one instant GPUs are released before others are allocated
    at = np.concatenate([nodes.end, nodes.start])
    order = np.argsort(at, kind="stable")
    node = np.concatenate([nodes.node, nodes.node])[order]
    return at[order], np.concatenate([nodes.held, -nodes.held])[order], node, interval_sweeps.grouped(node)


def _free(nodes: Nodes, node: Ints, change: Ints) -> tuple[Ints, Ints]:
    """Return the free GPUs before and after each change, by node and time."""
    after = np.cumsum(change)
    first = np.searchsorted(node, np.arange(nodes.gpus.size))
    base = np.concatenate([[0], after])[first]
    after += (nodes.gpus - base)[node]
    before = after - change
    # logs occasionally overlap: clip to an empty and a full node
    most = nodes.gpus[node]
    return np.clip(before, 0, most, out=before), np.clip(after, 0, most, out=after)
