"""Compiled: migrations by the `philly` policy to free a node for a gang that waits for locality alone."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import migrate
from gpuctl.replay.engine.placement_kernel import hide, suits
from gpuctl.replay.engine.state import RUNNING
from gpuctl.replay.policies.philly.places_kernel import may_use, paint, seek
from gpuctl.replay.policies.philly.rules_kernel import extra_wait

LOOK_S = 60.0
"""Seconds between two searches for jobs to move."""
MOST = 4
"""Most jobs moved for one gang."""


@inner
def _movable(s, j):  # type: ignore[no-untyped-def]
    """Whether a job runs on a single node, and has begun to make progress there."""
    job = s.jobs[j]
    if job.state != RUNNING or job.held == 0 or job.last > s.g[0].now:
        return False
    return s.attempts[job.row].pieces == 1


@inner
def _cost(s, j):  # type: ignore[no-untyped-def]
    """GPU-seconds that moving a job costs."""
    return s.jobs[j].move * s.jobs[j].held


@inner
def _others_hold(s, r, number, j):  # type: ignore[no-untyped-def]
    """Whether another node has room for a job."""
    job = s.jobs[j]
    for other in range(s.nodes.size):
        fits = other != number and s.nodes[other].free >= job.held and suits(s, other, job.mask)
        if fits and may_use(s, r, j, other):
            return True
    return False


@inner
def _cheapest(s, r, first, last, number, need):  # type: ignore[no-untyped-def]
    """Cost in GPU-seconds of freeing GPUs of a node; moves the jobs to go to the front of its victims."""
    count, freed, cost = 0, 0, 0.0
    while freed < need and count < MOST:
        best, least = -1, np.inf
        for k in range(first + count, last):
            j = r.victims[k]
            each = _cost(s, j) / s.jobs[j].held
            if each < least and _others_hold(s, r, number, j):
                best, least = k, each
        if best < 0:
            return np.inf, 0
        r.victims[first + count], r.victims[best] = r.victims[best], r.victims[first + count]
        j = r.victims[first + count]
        freed += s.jobs[j].held
        cost += _cost(s, j)
        count += 1
    return (cost, count) if freed >= need else (np.inf, 0)


@inner
def _by_node(s, r):  # type: ignore[no-untyped-def]
    """Put the movable jobs into `victims`, node by node."""
    p = r.p[0]
    size = 0
    r.ends[:] = 0
    for k in range(p.running):
        i = r.running[k]
        if s.jobs[i].held == 0:
            r.listed[i] = 0
            continue
        r.running[size] = i
        size += 1
        if _movable(s, i):
            r.ends[s.pieces[s.attempts[s.jobs[i].row].first].node + 1] += 1
    p.running = size
    for number in range(s.nodes.size):
        r.ends[number + 1] += r.ends[number]
        r.at[number] = r.ends[number]
    for k in range(size):
        i = r.running[k]
        if _movable(s, i):
            number = s.pieces[s.attempts[s.jobs[i].row].first].node
            r.victims[r.at[number]] = i
            r.at[number] += 1


@inner
def make_room(s, r, j, kind, reason):  # type: ignore[no-untyped-def]
    """Move the cheapest jobs off one node, for a gang that fits on it; true if any was moved.

    Only if `worth` times the cost is less than the gang's expected wait, in GPU time.
    """
    p = r.p[0]
    gang = s.jobs[j]
    gain = extra_wait(s, r, j, kind) * gang.gpus
    ends = r.ends
    _by_node(s, r)
    chosen, least, moves = -1, gain / max(p.worth, 1e-9), 0
    for number in range(s.nodes.size):
        node = s.nodes[number]
        if node.cap < gang.gpus or node.free >= gang.gpus or not suits(s, number, gang.mask):
            continue
        if not may_use(s, r, j, number):
            continue
        cost, count = _cheapest(s, r, ends[number], ends[number + 1], number, gang.gpus - node.free)
        if cost < least:
            chosen, least, moves = number, cost, count
    if chosen < 0:
        return False
    hide(s, chosen, s.nodes[chosen].cap)
    moved = False
    for k in range(moves):
        i = r.victims[ends[chosen] + k]
        if seek(s, r, i, 0):
            paint(s, r, i)
            migrate(s, i, reason)
            moved = True
    hide(s, chosen, 0)
    return moved
