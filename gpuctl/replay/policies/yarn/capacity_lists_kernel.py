"""Lists and sums of the capacity scheduler, updated when containers are requested, assigned or released."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.yarn.amounts_kernel import add_to, at, fits_in, minus, put, ratio, times
from gpuctl.replay.policies.yarn.capacity_tree_kernel import ACTIVE, ASKING, CAP, FAIR_SIZED, FIFO, HELD_BACK, LARGEST
from gpuctl.replay.policies.yarn.linked_lists_kernel import BEFORE, last, put_after, put_last, take_out

# ---- guarantees of queues


@inner
def cluster(f):  # type: ignore[no-untyped-def]
    """Total of the nodes that are up."""
    return at(f.sizes, CAP)


@inner
def size_queues(f):  # type: ignore[no-untyped-def]
    """Compute guarantees and maxima from the total of the nodes that are up, rounded down to whole units."""
    cap = cluster(f)
    for q in range(f.queues.size):
        put(f.due, q, times(cap, f.queues[q].capacity))
        put(f.most, q, times(cap, f.queues[q].maximum))
        for r in range(3):
            if f.fixed[q, r] >= 0:
                f.due[q, r] = min(f.fixed[q, r], cap[r])
            if f.fixed_most[q, r] >= 0:
                f.most[q, r] = min(f.fixed_most[q, r], cap[r])


# ---- lists of applications


@inner
def _weight(f, order, a):  # type: ignore[no-untyped-def]
    # memory alone, as in Hadoop; GPUs if memory does not count
    r = 0 if f.sizes[LARGEST, 0] > 0 else 2
    used = np.float64(f.app_used[a, r])
    if order == FAIR_SIZED:
        # by the logarithm of all that it uses and requests
        weight = np.log1p(f.app_used[a, r] + f.app_asks[a, r]) / np.log(2.0)
        used = used / weight if weight > 0 else used
    return used


@inner
def _precedes(f, order, a, b):  # type: ignore[no-untyped-def]
    """Whether an application goes before another one: fifo by priority, fair by use; then the one submitted first."""
    if order != FIFO:
        x, y = _weight(f, order, a), _weight(f, order, b)
        return x < y if x != y else a < b
    if f.apps[a].priority != f.apps[b].priority:
        return f.apps[a].priority > f.apps[b].priority
    return a < b


@inner
def into_line(f, a):  # type: ignore[no-untyped-def]
    """Put an active application with requests into its queue's line."""
    q = f.apps[a].queue
    place = last(f.lines, q)
    while place >= 0 and _precedes(f, f.queues[q].order, a, place):
        place = f.lines[place, BEFORE]
    put_after(f.lines, a, place)
    f.apps[a].queued = 1


@inner
def out_of_line(f, a):  # type: ignore[no-untyped-def]
    """Remove an application from its queue's line."""
    take_out(f.lines, a)
    f.apps[a].queued = 0


@inner
def those_in(q, state):  # type: ignore[no-untyped-def]
    """The number of the list of a queue's applications in a state, one of those from HELD_BACK to ACTIVE."""
    return 3 * q + state - HELD_BACK


@inner
def join(f, a, state):  # type: ignore[no-untyped-def]
    """Move an application to a state and its list."""
    q = f.apps[a].queue
    order = f.queues[q].order if state == ACTIVE else FIFO
    place = last(f.by_state, those_in(q, state))
    while place >= 0 and _precedes(f, order, a, place):
        place = f.by_state[place, BEFORE]
    put_after(f.by_state, a, place)
    f.apps[a].state = state


@inner
def leave(f, a):  # type: ignore[no-untyped-def]
    """Remove an application from the list of its state."""
    take_out(f.by_state, a)


# ---- jobs of an application


@inner
def pending_list(a):  # type: ignore[no-untyped-def]
    """The number of the list of an application's requested jobs."""
    return 2 * a


@inner
def running_list(a):  # type: ignore[no-untyped-def]
    """The number of the list of an application's running jobs, in order of assignment."""
    return 2 * a + 1


@inner
def append(f, j, state):  # type: ignore[no-untyped-def]
    """Append a job to its application's requested or running jobs."""
    job = f.jobs[j]
    job.state = state
    put_last(f.job_lists, j, pending_list(job.app) if state == ASKING else running_list(job.app))


# ---- sums


@inner
def charge(f, a, amount, sign):  # type: ignore[no-untyped-def]
    """Add to the use of an application's user and queues (1), or subtract (-1)."""
    app = f.apps[a]
    cap = cluster(f)
    queue = f.queues[app.queue]
    before = ratio(at(f.user_used, app.user), cap)
    add_to(f.user_used, app.user, amount, sign)
    queue.used_ratio = np.float32(queue.used_ratio + np.float32(ratio(at(f.user_used, app.user), cap) - before))
    if f.users[app.user].askers > 0:
        add_to(f.asking, app.queue, amount, sign)
    q = app.queue
    while q >= 0:
        add_to(f.used, q, amount, sign)
        q = f.queues[q].parent
    f.p[0].version += 1


@inner
def _reorder(f, a):  # type: ignore[no-untyped-def]
    """Reposition an active application under the ordering policy ``fair``."""
    app = f.apps[a]
    if app.state == ACTIVE:
        leave(f, a)
        join(f, a, ACTIVE)
    if app.queued == 1:
        out_of_line(f, a)
        into_line(f, a)


@inner
def use(f, a, amount, sign):  # type: ignore[no-untyped-def]
    """Add to the use of an application's containers (1), or subtract (-1)."""
    add_to(f.app_used, a, amount, sign)
    if f.queues[f.apps[a].queue].order != FIFO:
        _reorder(f, a)


@inner
def count_asks(f, a, amount, sign):  # type: ignore[no-untyped-def]
    """Add a requested container to an active application (1), or remove one (-1)."""
    app = f.apps[a]
    user = f.users[app.user]
    app.asks += sign
    add_to(f.app_asks, a, amount, sign)
    add_to(f.user_asks, app.user, amount, sign)
    f.p[0].asks += sign
    q = app.queue
    while q >= 0:
        f.queues[q].asks += sign
        add_to(f.pending, q, amount, sign)
        q = f.queues[q].parent
    if sign > 0 and app.asks == 1:
        into_line(f, a)
        user.askers += 1
        if user.askers == 1:
            f.queues[app.queue].askers += 1
            add_to(f.asking, app.queue, at(f.user_used, app.user), 1)
    elif sign < 0 and app.asks == 0:
        out_of_line(f, a)
        user.askers -= 1
        if user.askers == 0:
            f.queues[app.queue].askers -= 1
            add_to(f.asking, app.queue, at(f.user_used, app.user), -1)
    elif f.queues[app.queue].order == FAIR_SIZED:
        _reorder(f, a)
    f.p[0].version += 1


@inner
def recount(f):  # type: ignore[no-untyped-def]
    """Recompute sums of dominant shares after nodes changed."""
    cap = cluster(f)
    for q in range(f.queues.size):
        f.queues[q].used_ratio = 0.0
    for u in range(f.users.size):
        queue = f.queues[f.users[u].queue]
        queue.used_ratio = np.float32(queue.used_ratio + ratio(at(f.user_used, u), cap))


@inner
def enough_for(f, a, amount, extra):  # type: ignore[no-untyped-def]
    """Whether all of an application's queues stay within their maxima with `amount` more and `extra` less."""
    q = f.apps[a].queue
    while q >= 0:
        used = at(f.used, q)
        more = minus((used[0] + amount[0], used[1] + amount[1], used[2] + amount[2]), extra)
        if not fits_in(more, at(f.most, q)):
            return False
        q = f.queues[q].parent
    return True
