"""What the logs leave open about the nodes of a cluster: sizes, downtime, and earlier jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze import interval_sweeps, occupancy

if TYPE_CHECKING:
    from gpuctl.analyze.occupancy import Floats, Holdings, Ints, Nodes

A_GAP_S = 7200.0
"""A node without a job for so long may have been down, where no log states which nodes were."""
A_PASS_S = 240.0
"""Shorter waits with suitable GPUs free are the scheduler's way from pass to pass, at both ends of a wait."""
UNEXPLAINED = 0.005
"""Longer ones must be at least this share of the waiting before nodes count as perhaps not available."""
MOST = 0.99
"""Share of the unexplained waiting that lies before the log has settled."""
EARLY = 0.8
"""It has done so within this share of its time; where waits are unexplained for longer, it is for another reason."""
BROKEN = 0.01
"""Share of a queue's starts that must exceed its quota before the quota counts as wrong."""

BY_CHANCE = 1e-6
"""A queue that would so rarely miss the other nodes, if all were alike to it, may have only those that it used."""


def is_unexplained(free_s: Floats, waited_s: float) -> bool:
    """Return whether waits with suitable GPUs free are so long that nodes or holdings must be missing from the logs.

    Args:
        free_s: by wait, the seconds in which suitable GPUs were free.
        waited_s: total waiting.
    """
    return float(np.maximum(free_s - A_PASS_S, 0.0).sum()) > UNEXPLAINED * waited_s


def larger(nodes: Nodes, gpus: Ints) -> Nodes:
    """Return the same nodes, each with the most GPUs that it may have."""
    return replace(nodes, gpus=np.maximum(nodes.gpus, gpus))


def without_racks(pools: tuple[Nodes, ...]) -> tuple[Nodes, ...]:
    """Return the same nodes, all in one rack: gangs may be placed as if without racks. Equal pools share an object."""
    one = {id(pool): replace(pool, rack=np.zeros_like(pool.rack)) for pool in pools}
    return tuple(one[id(pool)] for pool in pools)


def by_chance(share: float, elsewhere: float) -> bool:
    """Return whether a queue may have missed by chance the nodes on which it never started a gang.

    Args:
        share: its share of all starts.
        elsewhere: starts of other queues on those nodes.
    """
    return elsewhere <= 0 or (share < 1 and elsewhere * np.log1p(-share) >= np.log(BY_CHANCE))


def possibly_exclusive(queue: Ints, machine: Ints, starts: Ints, nodes: Nodes) -> dict[int, Nodes]:
    """Return the nodes of each queue that may have no others: its gangs used them more often than by chance.

    Args:
        queue: number of a queue, one element per node that it used.
        machine: that node.
        starts: gangs of the queue that started on it.
        nodes: number of nodes of the cluster.
    """
    own: dict[int, Nodes] = {}
    every = np.bincount(machine, weights=starts, minlength=nodes.gpus.size)
    for number in np.unique(queue).tolist():
        mine = queue == number
        used = np.zeros(nodes.gpus.size, bool)
        used[machine[mine]] = True
        if not by_chance(float(starts[mine].sum() / every.sum()), float(every[~used].sum())):
            own[number] = occupancy.subset(nodes, used)
    return own


def settled(start: Floats, free_s: Floats, first: float, last: float) -> float:
    """Return when all jobs from before a log have started, as far as the log shows; else its begin.

    If a log lacks such jobs, early waits are unexplained, and later ones are not.

    Args:
        start: end of each wait, seconds.
        free_s: by wait, the seconds in which suitable GPUs were free.
        first: begin of the log, seconds.
        last: its end, seconds.
    """
    odd = np.maximum(free_s - A_PASS_S, 0.0)
    order = np.argsort(start, kind="stable")
    sums = np.cumsum(odd[order])
    until = float(start[order][np.searchsorted(sums, MOST * sums[-1])])
    return until if until - first < EARLY * (last - first) else first


def possibly_unavailable(
    nodes: Nodes, holdings: Holdings, first: float, settled: float, *, told: bool
) -> tuple[Nodes, Floats, Floats]:
    """Return the GPUs that may have been unavailable on the nodes.

    A log may lack the jobs that ended or were submitted before it begins: they may hold all GPUs that are free until it
    has settled; later, on each node, at most the fewest that have been free since, as long as jobs run. Nodes without a
    job for more than `A_GAP_S` may have been down.

    Args:
        nodes: the nodes of a pool.
        holdings: all holdings of the whole cluster.
        first: begin of the log, seconds.
        settled: see `settled`.
        told: whether logs state which nodes were down.

    Returns:
        the nodes with only these GPUs held; seconds, and changes of the GPUs that jobs from before the log may hold.
    """
    nothing = occupancy.emptied(nodes)
    if not holdings.end.size or not nodes.gpus.size:
        return nothing, np.zeros(0), np.zeros(0)
    last = float(holdings.end.max())
    rows = [] if told else [_gaps(nodes, first, last)]
    at, change = np.zeros(0), np.zeros(0)
    if settled > first:
        longest = float((holdings.end - holdings.start).max())
        node, begin, gpus = _running_least(nodes, settled)
        until = _until(node, begin, settled + longest)
        valid = (until > begin) & (gpus > 0)
        every = np.arange(nodes.gpus.size)
        rows.append((node[valid], begin[valid], until[valid], gpus[valid]))
        rows.append((every, np.full(every.size, first), np.full(every.size, settled), nodes.gpus))
        at = np.concatenate([begin[valid], until[valid], [first, settled]])
        total = float(nodes.gpus.sum())
        change = np.concatenate([gpus[valid], -gpus[valid], [total, -total]])
    if not rows:
        return nothing, at, change
    number, start, end, held = (np.concatenate(each) for each in zip(*rows, strict=True))
    gone = replace(nodes, start=start, end=end, node=number.astype(np.int64), held=held.astype(np.int64))
    return gone, at, change


def _running_least(nodes: Nodes, first: float) -> tuple[Ints, Floats, Ints]:
    """Return each node's fewest free GPUs since a time, whenever they decrease: node, seconds, GPUs."""
    node, at, before, after = occupancy.vacancies(nodes)
    every = np.arange(nodes.gpus.size)
    later = at >= first
    # the free GPUs at that time are those before the first later change
    node, at, before, after = node[later], at[later], before[later], after[later]
    begin = np.searchsorted(node, every)
    held = (begin < node.size) & (node[np.minimum(begin, max(0, node.size - 1))] == every) if node.size else every < 0
    at_first = nodes.gpus.copy()
    at_first[held] = before[begin[held]]
    node, at, after = (
        np.concatenate(each) for each in ((every, node), (np.full(every.size, first), at), (at_first, after))
    )
    order = np.argsort(at, kind="stable")
    order = order[interval_sweeps.grouped(node[order])]
    node, at, after = node[order], at[order], after[order]
    # the next node's values lie below those of the previous one, so that one sweep serves all
    drop = node * (int(nodes.gpus.max(initial=0)) + 1)
    least = np.minimum.accumulate(after - drop) + drop
    change = np.append(True, (least[1:] != least[:-1]) | (node[1:] != node[:-1]))[: least.size]
    return node[change], np.maximum(at[change], first), least[change]


def _until(node: Ints, at: Floats, end: float) -> Floats:
    """Return until when each of the values of a node holds: its next one, at most `end`."""
    following = np.append(node[1:] == node[:-1], False)[: node.size]
    return np.minimum(np.where(following, np.append(at[1:], 0.0)[: at.size], end), end)


def _gaps(nodes: Nodes, first: float, last: float) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the periods of more than `A_GAP_S` without a job on a node: node, start, end, GPUs."""
    every = np.arange(nodes.gpus.size)
    node = np.concatenate([every, nodes.node])
    start = np.concatenate([np.full(every.size, first), nodes.start])
    end = np.concatenate([np.full(every.size, first), nodes.end])
    order = np.argsort(start, kind="stable")
    order = order[interval_sweeps.grouped(node[order])]
    node, start, end = node[order], start[order], end[order]
    # running maximum of ends, node by node: each node's lie beyond those of the previous one
    shift = node * (2 * (max(last, float(end.max())) - min(first, float(start.min()))) + 1)
    ended = np.maximum.accumulate(end + shift) - shift
    following = np.append(node[1:] == node[:-1], False)[: node.size]
    until = np.where(following, np.append(start[1:], 0.0)[: start.size], last)
    long = until - ended > A_GAP_S
    return node[long], ended[long], until[long], nodes.gpus[node[long]]
