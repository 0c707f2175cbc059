"""The compiled event loop: layers start and end, share the memory's bandwidth, and wait for decisions.

Times are microseconds on the clock of the first row; a layer's `left` is computing time at full speed. A flat layer is
an index into the cost tables, in which the layers of a model are in sequence.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.research.accel.decide_kernel import decide
from gpuctl.research.accel.net_kernel import observe
from gpuctl.research.accel.state import (
    ARRIVED,
    ASKED,
    BANDWIDTH,
    CANDIDATES,
    DECISIONS,
    DROP,
    DROPPED,
    DROPS,
    ENERGY,
    EPS,
    FINISHED,
    LOGGED,
    MET,
    MISSED,
    NOBODY,
    NOW,
    ORDER,
    OUTSIDE,
    OVER,
    PERIOD,
    PLANNED,
    READY,
    READY_COUNT,
    RUNNING,
    USED,
    WATCH,
)


@inner
def share(z):  # type: ignore[no-untyped-def]
    """Share the bandwidth among running layers, max-min fair; set their speeds and the bandwidth used."""
    count = 0
    for s in range(z.on.size):
        z.speed[s] = 0.0
        if z.on[s] == NOBODY:
            continue
        z.speed[s] = 1.0
        demand = z.demand[z.at[z.on[s]], s]
        if demand <= 0:
            continue
        k = count
        while k > 0 and z.wants[k - 1] > demand:
            z.wants[k], z.by[k] = z.wants[k - 1], z.by[k - 1]
            k -= 1
        z.wants[k], z.by[k] = demand, s
        count += 1
    left = z.f[BANDWIDTH]
    for k in range(count):
        got = min(z.wants[k], left / (count - k))
        z.speed[z.by[k]] = got / z.wants[k]
        left -= got
    z.f[USED] = z.f[BANDWIDTH] - left


@inner
def next_step(z):  # type: ignore[no-untyped-def]
    """Return the time until the next event at present speeds, and the clock then; -1: there is none."""
    now, step, then = z.f[NOW], np.inf, np.inf
    for s in range(z.on.size):
        if z.on[s] != NOBODY:
            each = z.left[s] / z.speed[s]
            if each < step:
                step, then = each, now + each
    if z.c[ARRIVED] < z.arrivals.size:
        at = z.arrival[z.arrivals[z.c[ARRIVED]]]
        if at - now < step:
            step, then = at - now, at
    if z.f[PERIOD] > 0 and z.c[READY_COUNT] > 0:
        at = (np.floor((now + EPS) / z.f[PERIOD]) + 1) * z.f[PERIOD]
        if at - now < step:
            step, then = at - now, at
    if step == np.inf:
        return -1.0, now
    return max(step, 0.0), then


@inner
def become_ready(z, r):  # type: ignore[no-untyped-def]
    """Add a request to those that wait for a decision."""
    z.state[r] = READY
    z.place[r] = z.c[READY_COUNT]
    z.ready[z.place[r]] = r
    z.c[READY_COUNT] += 1


@inner
def leave_ready(z, r):  # type: ignore[no-untyped-def]
    """Remove a request from those that wait for a decision."""
    z.c[READY_COUNT] -= 1
    last = z.ready[z.c[READY_COUNT]]
    z.ready[z.place[r]] = last
    z.place[last] = z.place[r]


@inner
def end_layer(z, s):  # type: ignore[no-untyped-def]
    """End the layer on a sub-accelerator; its request waits for its next one, or is finished."""
    r, now = z.on[s], z.f[NOW]
    k = z.c[LOGGED]
    z.log_request[k], z.log_layer[k], z.log_accel[k] = r, z.at[r] - z.first[r], s
    z.log_start[k], z.log_end[k] = z.started[s], now
    z.c[LOGGED] += 1
    z.on[s] = NOBODY
    z.at[r] += 1
    if z.at[r] <= z.last[r]:
        become_ready(z, r)
        return
    z.state[r] = FINISHED
    z.end[r] = now
    if now <= z.deadline[r] + EPS:
        z.c[MET] += 1
    elif not z.late[r]:
        z.c[MISSED] += 1


@inner
def advance(z, step, then):  # type: ignore[no-untyped-def]
    """Advance the time, end layers, and let requests arrive."""
    wanted = 0.0
    for s in range(z.on.size):
        if z.on[s] != NOBODY:
            wanted += z.demand[z.at[z.on[s]], s]
            z.left[s] -= step * z.speed[s]
    z.f[OVER] += step * max(0.0, wanted / z.f[BANDWIDTH] - 1)
    z.f[NOW] = then
    for s in range(z.on.size):
        if z.on[s] != NOBODY and z.left[s] <= EPS:
            end_layer(z, s)
    while z.c[ARRIVED] < z.arrivals.size and z.arrival[z.arrivals[z.c[ARRIVED]]] <= then + EPS:
        become_ready(z, z.arrivals[z.c[ARRIVED]])
        z.c[ARRIVED] += 1


@inner
def count_late(z):  # type: ignore[no-untyped-def]
    """Count requests that can no longer be in time, once each, and drop them if the rules require it."""
    for k in range(z.c[READY_COUNT] - 1, -1, -1):
        r = z.ready[k]
        if z.deadline[r] - z.f[NOW] - z.rest[z.at[r]] >= -EPS:
            continue
        if not z.late[r]:
            z.late[r] = True
            z.c[MISSED] += 1
        if z.c[DROP]:
            leave_ready(z, r)
            z.state[r] = DROPPED
            z.c[DROPS] += 1


@inner
def is_time(z):  # type: ignore[no-untyped-def]
    """Return whether a decision is due: a request waits, and, without a period, a sub-accelerator is idle."""
    if z.c[READY_COUNT] == 0:
        return False
    if z.f[PERIOD] > 0:
        tick = np.floor(z.f[NOW] / z.f[PERIOD] + 0.5) * z.f[PERIOD]
        return abs(z.f[NOW] - tick) <= EPS
    for s in range(z.on.size):
        if z.on[s] == NOBODY:
            return True
    return False


@inner
def start_layers(z):  # type: ignore[no-untyped-def]
    """Start the planned layers that can start, in order; without a period the plan is used once."""
    for k in range(z.c[PLANNED]):
        r, s = z.plan_request[k], z.plan_accel[k]
        if z.state[r] != READY or z.on[s] != NOBODY or z.at[r] != z.plan_layer[k]:
            continue
        leave_ready(z, r)
        z.state[r] = RUNNING
        z.on[s] = r
        z.left[s] = z.compute[z.at[r], s]
        z.started[s] = z.f[NOW]
        z.f[ENERGY] += z.energy[z.at[r], s]
        if z.at[r] == z.first[r]:
            z.start[r] = z.f[NOW]
    if z.f[PERIOD] <= 0:
        z.c[PLANNED] = 0


@compiled
def run(z):  # type: ignore[no-untyped-def]
    """Simulate to the end, or to a decision that is made outside; the observation is filled then.

    Returns:
        whether such a decision is due.
    """
    while True:
        if not z.c[ASKED]:
            step, then = next_step(z)
            if step < 0:
                if z.c[ORDER] == OUTSIDE:
                    observe(z)
                return False
            advance(z, step, then)
            if z.c[DROP] or z.c[WATCH]:
                count_late(z)
            share(z)
        due = is_time(z)
        if due:
            if not z.c[ASKED]:
                z.c[DECISIONS] += 1
                z.c[CANDIDATES] += z.c[READY_COUNT]
                if z.c[ORDER] == OUTSIDE:
                    observe(z)
                    z.c[ASKED] = 1
                    return True
            decide(z)
        z.c[ASKED] = 0
        start_layers(z)
        share(z)
