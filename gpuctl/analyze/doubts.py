"""What the logs leave open about the servers of a cluster: their sizes, whether they were up, and earlier jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze import interval_sweeps, occupancy

if TYPE_CHECKING:
    from gpuctl.analyze.occupancy import Floats, Holdings, Ints, Servers

A_GAP_S = 7200.0
"""A server without a job for so long may have been down, where no log states which servers were."""
A_PASS_S = 240.0
"""Shorter waits with suitable GPUs free are the scheduler's way from pass to pass, at both ends of a wait."""
UNEXPLAINED = 0.005
"""Longer ones must be at least this share of the waiting before servers count as perhaps not available."""
MOST = 0.99
"""Share of the unexplained waiting that lies before the log has settled."""
EARLY = 0.8
"""It has done so within this share of its time; where waits are unexplained for longer, it is for another reason."""
BROKEN = 0.01
"""Share of a queue's starts that must exceed its quota before the quota counts as wrong."""

BY_CHANCE = 1e-6
"""A queue that would so rarely miss the other servers, if all were alike to it, may have only those that it used."""


def is_unexplained(free_s: Floats, waited_s: float) -> bool:
    """Whether so much was waited with suitable GPUs free that servers or holdings must be missing from the logs.

    Args:
        free_s: of each wait, the seconds in which GPUs that fit were free.
        waited_s: all waiting.
    """
    return float(np.maximum(free_s - A_PASS_S, 0.0).sum()) > UNEXPLAINED * waited_s


def larger(servers: Servers, gpus: Ints) -> Servers:
    """The same servers, each with the most GPUs that it may have."""
    return replace(servers, gpus=np.maximum(servers.gpus, gpus))


def without_racks(pools: tuple[Servers, ...]) -> tuple[Servers, ...]:
    """The same servers, all in one rack: gangs may be placed as if there were none. Equal pools stay one object."""
    one = {id(pool): replace(pool, rack=np.zeros_like(pool.rack)) for pool in pools}
    return tuple(one[id(pool)] for pool in pools)


def by_chance(share: float, elsewhere: float) -> bool:
    """Whether a queue may have missed by chance the servers on which it never started a gang.

    Args:
        share: its share of all starts.
        elsewhere: the starts of other queues on those servers; each could as well have been one of its own.
    """
    return elsewhere <= 0 or (share < 1 and elsewhere * np.log1p(-share) >= np.log(BY_CHANCE))


def perhaps_own(queue: Ints, machine: Ints, starts: Ints, servers: Servers) -> dict[int, Servers]:
    """The servers of each queue that may have no others: its gangs kept to them more often than chance would have it.

    Args:
        queue: number of a queue, one element for each server that it used.
        machine: that server.
        starts: gangs of the queue that were put on it.
        servers: those of the cluster.
    """
    own: dict[int, Servers] = {}
    every = np.bincount(machine, weights=starts, minlength=servers.gpus.size)
    for number in np.unique(queue).tolist():
        mine = queue == number
        used = np.zeros(servers.gpus.size, bool)
        used[machine[mine]] = True
        if not by_chance(float(starts[mine].sum() / every.sum()), float(every[~used].sum())):
            own[number] = occupancy.subset(servers, used)
    return own


def settled(start: Floats, free_s: Floats, first: float, last: float) -> float:
    """When all jobs that were submitted before a log began have started, so far as the log shows; else its begin.

    Where a log lacks such jobs, waits are unexplained at first, and later ones are not.

    Args:
        start: of each wait, when it ended, seconds.
        free_s: of each wait, the seconds in which GPUs that fit were free.
        first: when the log begins, seconds.
        last: when it ends, seconds.
    """
    odd = np.maximum(free_s - A_PASS_S, 0.0)
    order = np.argsort(start, kind="stable")
    sums = np.cumsum(odd[order])
    until = float(start[order][np.searchsorted(sums, MOST * sums[-1])])
    return until if until - first < EARLY * (last - first) else first


def perhaps_gone(
    servers: Servers, holdings: Holdings, first: float, settled: float, *, told: bool
) -> tuple[Servers, Floats, Floats]:
    """What else may have been held on the servers: GPUs that may not have been available.

    A log may lack the jobs that ended or were submitted before it begins: all GPUs that are free until it has settled
    may be theirs; then on each server at most the fewest that have been free since, as long as jobs run. And servers
    without a job for more than `A_GAP_S` may have been down.

    Args:
        servers: the servers of a pool.
        holdings: all that was held, in the whole cluster.
        first: when the log begins, seconds.
        settled: see `settled`.
        told: whether logs state which servers were down.

    Returns:
        the servers with that alone; seconds, and changes of the GPUs that jobs from before the log may hold.
    """
    nothing = occupancy.emptied(servers)
    if not holdings.end.size or not servers.gpus.size:
        return nothing, np.zeros(0), np.zeros(0)
    last = float(holdings.end.max())
    rows = [] if told else [_gaps(servers, first, last)]
    at, change = np.zeros(0), np.zeros(0)
    if settled > first:
        longest = float((holdings.end - holdings.start).max())
        server, begin, gpus = _running_least(servers, settled)
        until = _until(server, begin, settled + longest)
        kept = (until > begin) & (gpus > 0)
        every = np.arange(servers.gpus.size)
        rows.append((server[kept], begin[kept], until[kept], gpus[kept]))
        rows.append((every, np.full(every.size, first), np.full(every.size, settled), servers.gpus))
        at = np.concatenate([begin[kept], until[kept], [first, settled]])
        total = float(servers.gpus.sum())
        change = np.concatenate([gpus[kept], -gpus[kept], [total, -total]])
    if not rows:
        return nothing, at, change
    number, start, end, held = (np.concatenate(each) for each in zip(*rows, strict=True))
    gone = replace(servers, start=start, end=end, server=number.astype(np.int64), held=held.astype(np.int64))
    return gone, at, change


def _running_least(servers: Servers, first: float) -> tuple[Ints, Floats, Ints]:
    """Each server's fewest free GPUs since a time, where they become fewer: server, seconds, GPUs."""
    server, at, before, after = occupancy.vacancies(servers)
    every = np.arange(servers.gpus.size)
    later = at >= first
    # what was free at that time is what was so before the first change since
    server, at, before, after = server[later], at[later], before[later], after[later]
    begin = np.searchsorted(server, every)
    held = (
        (begin < server.size) & (server[np.minimum(begin, max(0, server.size - 1))] == every)
        if server.size
        else every < 0
    )
    at_first = servers.gpus.copy()
    at_first[held] = before[begin[held]]
    server, at, after = (
        np.concatenate(each) for each in ((every, server), (np.full(every.size, first), at), (at_first, after))
    )
    order = np.argsort(at, kind="stable")
    order = order[interval_sweeps.grouped(server[order])]
    server, at, after = server[order], at[order], after[order]
    # the next server's values lie below those of the one before, so that one sweep serves all
    drop = server * (int(servers.gpus.max(initial=0)) + 1)
    least = np.minimum.accumulate(after - drop) + drop
    change = np.append(True, (least[1:] != least[:-1]) | (server[1:] != server[:-1]))[: least.size]
    return server[change], np.maximum(at[change], first), least[change]


def _until(server: Ints, at: Floats, end: float) -> Floats:
    """Until when each of the values of a server holds: its next one, at most `end`."""
    following = np.append(server[1:] == server[:-1], False)[: server.size]
    return np.minimum(np.where(following, np.append(at[1:], 0.0)[: at.size], end), end)


def _gaps(servers: Servers, first: float, last: float) -> tuple[Ints, Floats, Floats, Ints]:
    """Times of more than `A_GAP_S` in which servers held nothing: server, start, end, GPUs."""
    every = np.arange(servers.gpus.size)
    server = np.concatenate([every, servers.server])
    start = np.concatenate([np.full(every.size, first), servers.start])
    end = np.concatenate([np.full(every.size, first), servers.end])
    order = np.argsort(start, kind="stable")
    order = order[interval_sweeps.grouped(server[order])]
    server, start, end = server[order], start[order], end[order]
    # ends so far, server by server: each server's lie beyond those of the one before
    shift = server * (2 * (max(last, float(end.max())) - min(first, float(start.min()))) + 1)
    ended = np.maximum.accumulate(end + shift) - shift
    following = np.append(server[1:] == server[:-1], False)[: server.size]
    until = np.where(following, np.append(start[1:], 0.0)[: start.size], last)
    long = until - ended > A_GAP_S
    return server[long], ended[long], until[long], servers.gpus[server[long]]
