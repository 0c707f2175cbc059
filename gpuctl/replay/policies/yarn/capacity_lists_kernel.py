"""Lists and sums of the capacity scheduler: what changes in them when a container is asked for, given or given back."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.yarn.amounts_kernel import add_to, at, fits_in, minus, put, ratio, times
from gpuctl.replay.policies.yarn.capacity_tree_kernel import ACTIVE, ASKING, CAP, FAIR_SIZED, FIFO, LARGEST, PENDING

# ---- what queues are due


@inner
def cluster(f):  # type: ignore[no-untyped-def]
    """What the servers that are up have."""
    return at(f.sizes, CAP)


@inner
def size_queues(f):  # type: ignore[no-untyped-def]
    """Work out guarantees and maxima from what the servers that are up have: rounded down to whole units."""
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
    # memory alone, as Hadoop has it; where memory does not count, GPUs
    r = 0 if f.sizes[LARGEST, 0] > 0 else 2
    used = np.float64(f.app_used[a, r])
    if order == FAIR_SIZED:
        # by the logarithm of all that it uses and asks for
        weight = np.log1p(f.app_used[a, r] + f.app_asks[a, r]) / np.log(2.0)
        used = used / weight if weight > 0 else used
    return used


@inner
def _goes_before(f, order, a, b):  # type: ignore[no-untyped-def]
    """Whether an application goes before another one: fifo by priority, fair by use; then the one submitted first."""
    if order != FIFO:
        x, y = _weight(f, order, a), _weight(f, order, b)
        return x < y if x != y else a < b
    if f.apps[a].priority != f.apps[b].priority:
        return f.apps[a].priority > f.apps[b].priority
    return a < b


@inner
def into_line(f, a):  # type: ignore[no-untyped-def]
    """Put an active application with asks into its queue's line."""
    app = f.apps[a]
    queue = f.queues[app.queue]
    b = queue.line_end
    while b >= 0 and _goes_before(f, queue.order, a, b):
        b = f.apps[b].last
    after = queue.line if b < 0 else f.apps[b].next
    app.last, app.next, app.queued = b, after, 1
    if b < 0:
        queue.line = a
    else:
        f.apps[b].next = a
    if after < 0:
        queue.line_end = a
    else:
        f.apps[after].last = a


@inner
def out_of_line(f, a):  # type: ignore[no-untyped-def]
    """Take an application out of its queue's line."""
    app = f.apps[a]
    queue = f.queues[app.queue]
    if app.last < 0:
        queue.line = app.next
    else:
        f.apps[app.last].next = app.next
    if app.next < 0:
        queue.line_end = app.last
    else:
        f.apps[app.next].last = app.last
    app.queued = 0


@inner
def ends_of(f, q, state):  # type: ignore[no-untyped-def]
    """The first and the last one of a queue's applications in a state."""
    queue = f.queues[q]
    if state == ACTIVE:
        return queue.actives, queue.actives_end
    if state == PENDING:
        return queue.late, queue.late_end
    return queue.held, queue.held_end


@inner
def _set_ends(f, q, state, first, last):  # type: ignore[no-untyped-def]
    queue = f.queues[q]
    if state == ACTIVE:
        queue.actives, queue.actives_end = first, last
    elif state == PENDING:
        queue.late, queue.late_end = first, last
    else:
        queue.held, queue.held_end = first, last


@inner
def join(f, a, state):  # type: ignore[no-untyped-def]
    """Bring an application into a state, and into the list of those in it."""
    app = f.apps[a]
    first, last = ends_of(f, app.queue, state)
    b = last
    order = f.queues[app.queue].order if state == ACTIVE else FIFO
    while b >= 0 and _goes_before(f, order, a, b):
        b = f.apps[b].before
    after = first if b < 0 else f.apps[b].after
    app.before, app.after, app.state = b, after, state
    if b < 0:
        first = a
    else:
        f.apps[b].after = a
    if after < 0:
        last = a
    else:
        f.apps[after].before = a
    _set_ends(f, app.queue, state, first, last)


@inner
def leave(f, a):  # type: ignore[no-untyped-def]
    """Take an application out of the list of those in its state."""
    app = f.apps[a]
    first, last = ends_of(f, app.queue, app.state)
    if app.before < 0:
        first = app.after
    else:
        f.apps[app.before].after = app.after
    if app.after < 0:
        last = app.before
    else:
        f.apps[app.after].before = app.before
    _set_ends(f, app.queue, app.state, first, last)


# ---- jobs of an application


@inner
def append(f, j, state):  # type: ignore[no-untyped-def]
    """Put a job behind those of its application that ask, or that run."""
    job = f.jobs[j]
    app = f.apps[job.app]
    end = app.ask_end if state == ASKING else app.run_end
    job.state, job.last, job.next = state, end, -1
    if end >= 0:
        f.jobs[end].next = j
    if state == ASKING:
        app.ask_end = j
        if end < 0:
            app.ask = j
    else:
        app.run_end = j
        if end < 0:
            app.run = j


@inner
def detach(f, j):  # type: ignore[no-untyped-def]
    """Take a job out of the list that it is in."""
    job = f.jobs[j]
    app = f.apps[job.app]
    if job.last >= 0:
        f.jobs[job.last].next = job.next
    elif job.state == ASKING:
        app.ask = job.next
    else:
        app.run = job.next
    if job.next >= 0:
        f.jobs[job.next].last = job.last
    elif job.state == ASKING:
        app.ask_end = job.last
    else:
        app.run_end = job.last


# ---- sums


@inner
def charge(f, a, amount, sign):  # type: ignore[no-untyped-def]
    """What an application's user and queues use is so much more (1) or less (-1)."""
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
    """Put an active application where it now belongs by the ordering policy ``fair``."""
    app = f.apps[a]
    if app.state == ACTIVE:
        leave(f, a)
        join(f, a, ACTIVE)
    if app.queued == 1:
        out_of_line(f, a)
        into_line(f, a)


@inner
def use(f, a, amount, sign):  # type: ignore[no-untyped-def]
    """What an application's containers have is so much more (1) or less (-1)."""
    add_to(f.app_used, a, amount, sign)
    if f.queues[f.apps[a].queue].order != FIFO:
        _reorder(f, a)


@inner
def count_asks(f, a, amount, sign):  # type: ignore[no-untyped-def]
    """An active application asks for one container more (1) or less (-1)."""
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
    """Sum up dominant shares anew: the servers that are up have changed."""
    cap = cluster(f)
    for q in range(f.queues.size):
        f.queues[q].used_ratio = 0.0
    for u in range(f.users.size):
        queue = f.queues[f.users[u].queue]
        queue.used_ratio = np.float32(queue.used_ratio + ratio(at(f.user_used, u), cap))


@inner
def enough_for(f, a, amount, extra):  # type: ignore[no-untyped-def]
    """Whether an application's queues, all of them, keep to their maxima with `amount` more and `extra` less."""
    q = f.apps[a].queue
    while q >= 0:
        used = at(f.used, q)
        more = minus((used[0] + amount[0], used[1] + amount[1], used[2] + amount[2]), extra)
        if not fits_in(more, at(f.most, q)):
            return False
        q = f.queues[q].parent
    return True
