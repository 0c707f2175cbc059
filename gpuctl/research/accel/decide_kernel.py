"""Decisions in the compiled loop: the order of requests, and the sub-accelerator of each."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.research.accel.net_kernel import act, affinity_of_pair, begin_pairs, observe, priorities
from gpuctl.research.accel.state import (
    AFFINITY,
    BEHIND,
    BEST,
    EDF,
    EFT,
    EPS,
    FCFS,
    FIXED,
    HEAP,
    IDLE,
    LLF,
    MIX,
    NET_A,
    NET_B,
    NOBODY,
    NOW,
    ORDER,
    OUTSIDE,
    PERIOD,
    PLACE,
    PLANNED,
    RANDOM,
    READY_COUNT,
    ROWS,
    SJF,
)

BEHIND_ALL = 1 << 61
"""Added to the key of a request that goes behind all others."""
LATE_US, SLACK_SHARE = 3000.0, 5.0
"""Of MIX."""


@inner
def whole(value):  # type: ignore[no-untyped-def]
    """Return a key as an integer of millionths, as keys are compared."""
    return int(np.rint(1e6 * value))


@inner
def key_of(z, r):  # type: ignore[no-untyped-def]
    """Return the key of a request in the selected order."""
    order, rest = z.c[ORDER], z.rest[z.at[r]]
    slack = z.deadline[r] - z.f[NOW] - rest
    key = 0
    if order == FCFS:
        key = whole(z.arrival[r])
    elif order == EDF:
        key = whole(z.deadline[r])
    elif order == LLF:
        key = whole(slack)
    elif order == SJF:
        key = whole(rest)
    elif order == MIX:
        key = whole(rest + max(slack, 0.0) / SLACK_SHARE + (LATE_US if slack < -EPS else 0.0))
    elif order == RANDOM:
        key = z.keys[z.keys_at[r] + z.at[r] - z.first[r]]
    elif order == FIXED:
        key = z.keys[r]
    if z.c[BEHIND] and slack < -EPS:
        key += BEHIND_ALL
    return key


@inner
def before(z, one, other):  # type: ignore[no-untyped-def]
    """Return whether a request precedes another."""
    return z.key[one] < z.key[other] or (z.key[one] == z.key[other] and one < other)


@inner
def sift(z, k):  # type: ignore[no-untyped-def]
    """Sift a request down the heap to its place."""
    count, r = z.c[HEAP], z.heap[k]
    while 2 * k + 1 < count:
        child = 2 * k + 1
        if child + 1 < count and before(z, z.heap[child + 1], z.heap[child]):
            child += 1
        if not before(z, z.heap[child], r):
            break
        z.heap[k] = z.heap[child]
        k = child
    z.heap[k] = r


@inner
def pop(z):  # type: ignore[no-untyped-def]
    """Remove and return the first request of the heap."""
    r = z.heap[0]
    z.c[HEAP] -= 1
    z.heap[0] = z.heap[z.c[HEAP]]
    sift(z, 0)
    return r


@inner
def line_up(z):  # type: ignore[no-untyped-def]
    """Put the eligible requests in a heap, by their keys."""
    order = z.c[ORDER]
    if order in (NET_A, OUTSIDE):
        z.c[HEAP] = z.c[ROWS]
        for k in range(z.c[ROWS]):
            z.heap[k] = z.rows[k]
            z.key[z.rows[k]] = -whole(z.action[k, 0])
            z.place_seen[z.rows[k]] = k
    else:
        z.c[HEAP] = z.c[READY_COUNT]
        for k in range(z.c[READY_COUNT]):
            z.heap[k] = z.ready[k]
            if order != NET_B:
                z.key[z.ready[k]] = key_of(z, z.ready[k])
    for k in range(z.c[HEAP] // 2 - 1, -1, -1):
        sift(z, k)


@inner
def choose(z, r):  # type: ignore[no-untyped-def]
    """Return the sub-accelerator for a request; NOBODY: none."""
    layer, place = z.at[r], z.c[PLACE]
    found, least, idle = NOBODY, 0, False
    most = -np.inf
    if z.c[ORDER] == NET_B:
        begin_pairs(z, r)
    for s in range(z.on.size):
        alone = z.alone[layer, s]
        if place == AFFINITY:
            wait = -(z.free[s] + alone) / z.best[layer]
            if z.c[ORDER] == NET_B:
                score = wait + affinity_of_pair(z, layer, s)
            else:
                score = wait + z.action[z.place_seen[r], 1 + s]
            if score > most:
                found, most = s, score
            continue
        now_idle = z.on[s] == NOBODY and not z.taken[s]
        if place == IDLE and not now_idle:
            continue
        key = whole(z.free[s] + alone) if place == EFT else whole(alone)
        if found == NOBODY or key < least or (place == BEST and key == least and now_idle and not idle):
            found, least, idle = s, key, now_idle
    return found


@inner
def decide(z):  # type: ignore[no-untyped-def]
    """Make the plan: requests in order, each with its sub-accelerator."""
    order = z.c[ORDER]
    if order == NET_A:
        observe(z)
        act(z)
    elif order == NET_B:
        priorities(z)
    idle = 0
    for s in range(z.on.size):
        z.taken[s] = False
        z.free[s] = 0.0
        if z.on[s] == NOBODY:
            idle += 1
        else:
            z.free[s] = z.left[s] / z.speed[s]
    line_up(z)
    z.c[PLANNED] = 0
    once = z.f[PERIOD] <= 0
    # without a period, entries for busy sub-accelerators lapse: the rest of the order has no effect
    while z.c[HEAP] > 0 and (idle > 0 or not once):
        r = pop(z)
        s = choose(z, r)
        if s == NOBODY:
            break
        k = z.c[PLANNED]
        z.plan_request[k], z.plan_accel[k], z.plan_layer[k] = r, s, z.at[r]
        z.c[PLANNED] += 1
        z.free[s] += z.alone[z.at[r], s]
        if z.on[s] == NOBODY and not z.taken[s]:
            z.taken[s] = True
            idle -= 1
