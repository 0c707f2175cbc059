"""User limits and reservations of the capacity scheduler."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.job_life_kernel import note
from gpuctl.replay.engine.placement_kernel import hide
from gpuctl.replay.engine.state import D_RESERVE
from gpuctl.replay.policies.yarn.amounts_kernel import (
    add_to,
    at,
    compare,
    fits_in,
    is_none,
    larger,
    minus,
    over,
    plus,
    put,
    ratio,
    round_down,
    round_up,
    smaller,
    times,
    times_up,
)
from gpuctl.replay.policies.yarn.capacity_apps_kernel import R_RESERVES
from gpuctl.replay.policies.yarn.capacity_lists_kernel import charge, cluster, pending_list
from gpuctl.replay.policies.yarn.capacity_tree_kernel import LARGEST, LEAST
from gpuctl.replay.policies.yarn.linked_lists_kernel import first

# ---- user limits


@inner
def user_limit(f, q):  # type: ignore[no-untyped-def]
    """Limit of a user with requests in a leaf (UsersManager): see docs/reference/policies.md."""
    cap, step, queue = cluster(f), at(f.sizes, LEAST), f.queues[q]
    due = larger(cap, at(f.due, q), step)
    consumed = times_up(cap, queue.used_ratio, step)
    current = due if compare(cap, consumed, due) < 0 else plus(consumed, step)
    among = over(plus(at(f.asking, q), step), max(queue.askers, 1))
    of_queue = over(times(current, queue.percent), 100)
    bound = round_down(at(f.most, q), step) if queue.factor < 0 or is_none(at(f.due, q)) else times(due, queue.factor)
    return round_up(smaller(cap, larger(cap, among, of_queue), bound), step)


# ---- reservations


@inner
def _keep(f, q, amount, sign):  # type: ignore[no-untyped-def]
    while q >= 0:
        add_to(f.reserved, q, amount, sign)
        q = f.queues[q].parent


@inner
def reserve(s, f, number, a, amount):  # type: ignore[no-untyped-def]
    """Reserve a node for an application."""
    f.nodes[number].app = a
    put(f.held, number, amount)
    app = f.apps[a]
    app.nodes += 1
    app.again = 0
    add_to(f.app_reserved, a, amount, 1)
    _keep(f, app.queue, amount, 1)
    charge(f, a, amount, 1)
    f.p[0].reserved += 1
    j = first(f.job_lists, pending_list(a))
    note(s, D_RESERVE, j, s.jobs[j].gpus, -1, R_RESERVES)
    hide(s, number, s.nodes[number].cap + 1)


@inner
def unreserve(s, f, number):  # type: ignore[no-untyped-def]
    """Drop an application's reservation of a node."""
    a = f.nodes[number].app
    amount = at(f.held, number)
    f.nodes[number].app = -1
    app = f.apps[a]
    app.nodes -= 1
    add_to(f.app_reserved, a, amount, -1)
    _keep(f, app.queue, amount, -1)
    charge(f, a, amount, -1)
    put(f.held, number, (0, 0, 0))
    f.p[0].reserved -= 1
    hide(s, number, 0)
    if f.p[0].wide == a and app.nodes == 0:
        f.p[0].wide = -1


@inner
def to_give_up(f, a, amount):  # type: ignore[no-untyped-def]
    """A node of an application with an equally large reservation; -1 none."""
    for k in range(f.nodes.size):
        number = f.nodes[k].turn
        if f.nodes[number].app == a and fits_in(amount, at(f.held, number)):
            return number
    return -1


@inner
def wants_more(f, a, amount):  # type: ignore[no-untyped-def]
    """Whether an application has fewer reservations than requests, or enough failed attempts for another."""
    app = f.apps[a]
    starvation = np.int64(0)
    if app.nodes > 0:
        large = at(f.sizes, LARGEST)
        part = min(ratio(amount, large), ratio(minus(large, at(f.sizes, LEAST)), large))
        starvation = np.int64(np.float32(app.again / np.float32(app.nodes)) * (np.float32(1.0) - part))
    return starvation + app.asks - app.nodes > 0
