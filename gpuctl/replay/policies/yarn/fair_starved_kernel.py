"""The compiled search for starved applications: below their share, or in a queue below its minimum, for too long."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.yarn.fair_line_kernel import wake_all
from gpuctl.replay.policies.yarn.fair_order_kernel import below, is_none, more
from gpuctl.replay.policies.yarn.fair_share_kernel import share_of
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, first


@inner
def _lack(f, a, floor):  # type: ignore[no-untyped-def]
    """Compute an application's deficit, and whether it has lasted long enough; false if there is none."""
    app, now = f.apps[a], floor
    queue = f.queues[app.queue]
    share_of(f, a)
    for r in range(3):
        part = np.int64(f.a_picked[0, r] * queue.threshold)
        f.a_picked[1, r] = min(part, f.a_demand[a, r])
    starved = below(f, queue.policy, f.a_used, a, f.a_picked, 1)
    if not starved:
        app.fed = now
        app.full = f.p[0].updates
    f.a_lack[a, :] = 0
    if starved and now - app.fed >= queue.fair_wait:
        for r in range(3):
            f.a_lack[a, r] = max(f.a_picked[1, r] - f.a_used[a, r], 0)
    return starved


@inner
def _greedier(f, a, b):  # type: ignore[no-untyped-def]
    """The order of starved applications (class FSStarvedApps): `a` before `b` if it lacks no more in any resource."""
    no_more = True
    for r in range(3):
        no_more = no_more and f.a_lack[a, r] + f.a_low[a, r] <= f.a_lack[b, r] + f.a_low[b, r]
    return no_more


@inner
def _put_hungry(f, a):  # type: ignore[no-untyped-def]
    if f.apps[a].queued == 1:
        return
    f.apps[a].queued = 1
    k = f.p[0].hungry
    f.p[0].hungry += 1
    while k > 0:
        parent = (k - 1) >> 1
        if not _greedier(f, a, f.hungry[parent]):
            break
        f.hungry[k] = f.hungry[parent]
        k = parent
    f.hungry[k] = a


@inner
def take_hungry(f):  # type: ignore[no-untyped-def]
    """Take the next starved application, in the order of a binary heap; -1 none."""
    p = f.p[0]
    if p.hungry == 0:
        return -1
    found = f.hungry[0]
    f.apps[found].queued = 0
    p.hungry -= 1
    last, k = f.hungry[p.hungry], 0
    while 2 * k + 1 < p.hungry:
        child = 2 * k + 1
        if child + 1 < p.hungry and not _greedier(f, f.hungry[child], f.hungry[child + 1]):
            child += 1
        if _greedier(f, last, f.hungry[child]):
            break
        f.hungry[k] = f.hungry[child]
        k = child
    f.hungry[k] = last
    return found


@inner
def _first_tick(f, t):  # type: ignore[no-untyped-def]
    return np.ceil(t / f.p[0].tick - 1e-9) * f.p[0].tick if t < np.inf else np.inf


@inner
def _starved_by_share(f, q, now, since):  # type: ignore[no-untyped-def]
    """Visit the applications of a queue in order, up to the first that is not below its share.

    Writes their total deficit into row 2 of `a_picked`; returns when the next visit may differ.
    """
    f.a_picked[2, :] = 0
    wake = np.inf
    a = first(f.lines, q)
    while a >= 0:
        app = f.apps[a]
        if app.next > now:
            wake = min(wake, _first_tick(f, app.next))
            a = f.lines[a, AFTER]
            continue
        if since >= 0 and app.full == f.p[0].updates - 1 and app.fed < now:
            # nothing changed in between: the skipped updates would also have found it satisfied
            app.fed = max(app.fed, now - f.p[0].tick)
        starved = _lack(f, a, now)
        if starved and is_none(f.a_lack, a):
            wake = min(wake, _first_tick(f, app.fed + f.queues[q].fair_wait))
        if is_none(f.a_lack, a):
            break
        _put_hungry(f, a)
        for r in range(3):
            f.a_picked[2, r] += f.a_lack[a, r]
        a = f.lines[a, AFTER]
    return wake


@inner
def _starved_by_minimum(f, q, now):  # type: ignore[no-untyped-def]
    """Assign a queue's deficit of its minimum to its applications as their starvation (class FSLeafQueue).

    An application's starvation is its request less the queue's deficit, as in Hadoop, rather than the smaller of both.
    """
    queue = f.queues[q]
    starved = False
    for r in range(3):
        lack = max(min(f.q_min[q, r], f.q_demand[q, r]) - f.q_used[q, r], 0)
        f.a_picked[3, r] = lack
        starved = starved or lack > 0
    if queue.above == 1:
        queue.fed = max(queue.fed, now - f.p[0].tick)
    queue.above = 0 if starved else 1
    if not starved:
        queue.fed = now
    wake = np.inf
    if now - queue.fed < queue.min_wait:
        f.a_picked[3, :] = 0
        wake = _first_tick(f, queue.fed + queue.min_wait) if starved else np.inf
    lacks, left = not is_none(f.a_picked, 3), False
    for r in range(3):
        f.a_picked[3, r] = max(f.a_picked[3, r] - f.a_picked[2, r], 0)
    if queue.low == 0 and not lacks:
        return wake
    a = first(f.lines, q)
    while a >= 0:
        app = f.apps[a]
        if app.next <= now:
            was = is_none(f.a_low, a)
            if is_none(f.a_picked, 3):
                f.a_low[a, :] = 0
                left = True
            else:
                for r in range(3):
                    f.a_picked[4, r] = max(f.a_demand[a, r] - f.a_used[a, r] - f.a_lack[a, r], 0)
                if more(f, queue.policy, f.a_picked, 4, f.a_picked, 3):
                    for r in range(3):
                        f.a_picked[4, r] = max(f.a_picked[4, r] - f.a_picked[3, r], 0)
                    f.a_picked[3, :] = 0
                else:
                    for r in range(3):
                        f.a_picked[3, r] = max(f.a_picked[3, r] - f.a_picked[4, r], 0)
                for r in range(3):
                    f.a_low[a, r] = f.a_picked[4, r]
                _put_hungry(f, a)
            queue.low += int(was) - int(is_none(f.a_low, a))
            if was and not is_none(f.a_low, a):
                # it counts as starved from now on, and may reserve any node
                wake_all(f)
        elif lacks or not is_none(f.a_low, a):
            wake = min(wake, _first_tick(f, app.next))
        a = f.lines[a, AFTER]
    if lacks and left:
        # applications that got none are next while the others wait
        wake = now + f.p[0].tick
    return wake


@inner
def update_starved(f, now):  # type: ignore[no-untyped-def]
    """Find starved applications; returns the next update at which there may be others."""
    p = f.p[0]
    since = 0 if p.tried == 1 else -1
    p.tried = 0
    whole = 0.0
    for r in range(2):
        if f.cluster[r] > 0:
            whole = max(whole, float(np.float32(f.q_used[0, r]) / np.float32(f.cluster[r])))
    if f.cluster[0] == 0 and f.cluster[1] == 0 and f.cluster[2] > 0:
        # own rule: Hadoop considers memory and CPUs only, which do not count here
        whole = float(np.float32(f.q_used[0, 2]) / np.float32(f.cluster[2]))
    if p.utilization >= whole:
        return np.inf
    p.tried = 1
    wake = np.inf
    for q in range(f.queues.size):
        if f.queues[q].count == 0:
            wake = min(wake, _starved_by_share(f, q, now, since))
            if since < 0:
                f.queues[q].above = 0
            wake = min(wake, _starved_by_minimum(f, q, now))
    return wake
