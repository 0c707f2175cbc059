"""The compiled fair shares of queues and applications, in whole units, as in Hadoop."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.yarn.fair_state import DRF, FIFO, RUNNABLE, UNBOUNDED
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, first

# ---- shares


@inner
def _whole_units(weight, rate, least, most):  # type: ignore[no-untyped-def]
    """Whole units at a rate."""
    share = min(max(weight * rate, float(least)), float(most))
    return UNBOUNDED if share >= float(UNBOUNDED) else np.int64(share)


@inner
def _sum_at(f, q, r, rate):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    queue = f.queues[q]
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.q_fair[child, r] < 0:
            total += _whole_units(f.queues[child].weight, rate, f.q_min[child, r], f.q_max[child, r])
            if total >= UNBOUNDED:
                return UNBOUNDED
    return total


@inner
def _share_out(f, q, r):  # type: ignore[no-untyped-def]
    """Divide a resource of a queue's fair share among its children: weighted, within bounds, in whole units.

    The rate is searched for by halving, 25 times, as in Hadoop (class ComputeFairShares): sums may be slightly off.
    """
    queue = f.queues[q]
    fixed, most, free = np.int64(0), np.int64(0), 0
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.q_max[child, r] <= 0 or f.queues[child].runnable == 0:
            f.q_fair[child, r] = 0
        elif f.queues[child].weight <= 0:
            f.q_fair[child, r] = f.q_min[child, r]
            fixed += f.q_min[child, r]
        else:
            f.q_fair[child, r] = -1
            most = min(most + f.q_max[child, r], np.int64(UNBOUNDED))
            free += 1
    if free == 0:
        return
    total = min(most, max(f.q_fair[q, r] - fixed, 0))
    # if there is nothing, such as while all nodes are down, each has its minimum
    high = 1.0 if total > 0 else 0.0
    while _sum_at(f, q, r, high) < total:
        high *= 2.0
    low = 0.0
    for _ in range(25 if total > 0 else 0):
        middle = (low + high) / 2.0
        planned = _sum_at(f, q, r, middle)
        if planned < total:
            low = middle
        else:
            high = middle
            if planned == total:
                break
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.q_fair[child, r] < 0:
            f.q_fair[child, r] = _whole_units(f.queues[child].weight, high, f.q_min[child, r], f.q_max[child, r])


@inner
def _equal_parts(total, count):  # type: ignore[no-untyped-def]
    """Share of each of a number of applications of weight 1 in a queue's fair share, by the same search."""
    high = 1.0
    while count * np.int64(high) < total:
        high *= 2.0
    low = 0.0
    for _ in range(25):
        middle = (low + high) / 2.0
        planned = count * np.int64(middle)
        if planned < total:
            low = middle
        else:
            high = middle
            if planned == total:
                break
    return np.int64(high)


@inner
def _sum_apps(f, q, rate):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    a = first(f.members, q)
    while a >= 0:
        total += np.int64(min(f.apps[a].weight * rate, float(UNBOUNDED) / 1024.0))
        a = f.members[a, AFTER]
    return min(total, UNBOUNDED)


@inner
def _heaviest(f, q):  # type: ignore[no-untyped-def]
    heaviest = 0.0
    a = first(f.members, q)
    while a >= 0:
        heaviest = max(heaviest, f.apps[a].weight)
        a = f.members[a, AFTER]
    return heaviest


@inner
def _rate_of_apps(f, q, total):  # type: ignore[no-untyped-def]
    if _heaviest(f, q) <= 0.0:
        # none requests memory: no weight, no share
        return 0.0
    high = 1.0
    while _sum_apps(f, q, high) < total:
        high *= 2.0
    low = 0.0
    for _ in range(25):
        middle = (low + high) / 2.0
        planned = _sum_apps(f, q, middle)
        if planned < total:
            low = middle
        else:
            high = middle
            if planned == total:
                break
    return high


@inner
def share_of(f, a):  # type: ignore[no-untyped-def]
    """Write the fair share of an application, as of the last update, into row 0 of `a_picked`."""
    app = f.apps[a]
    policy = f.queues[app.queue].policy
    f.a_picked[0, :] = 0
    if app.state != RUNNABLE or app.since >= f.p[0].updates:
        return
    if policy == FIFO:
        # the earliest application gets all
        earliest = other = first(f.members, app.queue)
        while other >= 0:
            if f.apps[other].start < f.apps[earliest].start:
                earliest = other
            other = f.members[other, AFTER]
        if earliest == a:
            for r in range(3):
                f.a_picked[0, r] = f.q_fair[app.queue, r]
        return
    for r in range(3):
        if policy == DRF or r == f.p[0].by:
            if f.p[0].sized == 1:
                f.a_picked[0, r] = np.int64(app.weight * f.q_rate[app.queue, r])
            else:
                f.a_picked[0, r] = f.q_app[app.queue, r]


@inner
def update_shares(f):  # type: ignore[no-untyped-def]
    """Compute fair shares from the root down, for the set of active queues."""
    for r in range(3):
        f.q_fair[0, r] = f.cluster[r]
    for q in range(f.queues.size):
        queue = f.queues[q]
        for r in range(3):
            if queue.count > 0 and (queue.policy == DRF or r == f.p[0].by):
                _share_out(f, q, r)


@inner
def update_demands(f):  # type: ignore[no-untyped-def]
    """Update the known demands of applications and queues."""
    for k in range(f.p[0].fresh):
        a = f.touched[k]
        app = f.apps[a]
        app.touched = 0
        for r in range(3):
            f.a_demand[a, r] = f.a_used[a, r] + f.a_asks[a, r]
        if f.p[0].sized == 1:
            app.weight = np.float64(np.float32(np.log1p(float(f.a_demand[a, f.p[0].by])) / np.log(2.0)))
    f.p[0].fresh = f.p[0].unknown = 0
    for k in range(f.queues.size):
        q = f.queues.size - 1 - k
        if f.queues[q].count > 0:
            f.q_demand[q, :] = 0
            for c in range(f.queues[q].first, f.queues[q].first + f.queues[q].count):
                for r in range(3):
                    f.q_demand[q, r] += f.q_demand[f.children[c], r]
        else:
            for r in range(3):
                f.q_demand[q, r] = f.q_used[q, r] + f.q_asks[q, r]
                if f.queues[q].runnable > 0 and (f.queues[q].policy == DRF or r == f.p[0].by):
                    if f.p[0].sized == 1:
                        f.q_rate[q, r] = _rate_of_apps(f, q, f.q_fair[q, r])
                    else:
                        f.q_app[q, r] = _equal_parts(f.q_fair[q, r], f.queues[q].runnable)
        for r in range(3):
            f.q_demand[q, r] = min(f.q_demand[q, r], f.q_max[q, r])
