"""Applications of the capacity scheduler: refusal, holding back, activation, end and requests."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import job_timer, reject
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.state import WAITING
from gpuctl.replay.policies.yarn.amounts_kernel import add_to, at, fits_in, is_none, plus, smaller, times_up
from gpuctl.replay.policies.yarn.capacity_lists_kernel import (
    append,
    charge,
    cluster,
    count_asks,
    join,
    leave,
    pending_list,
    those_in,
    use,
)
from gpuctl.replay.policies.yarn.capacity_tree_kernel import (
    ACTIVE,
    ASKING,
    GIVEN,
    GONE,
    HELD_BACK,
    LEAST,
    NEW,
    NOT_REQUESTED,
    OVER,
    PENDING,
    REFUSED,
)
from gpuctl.replay.policies.yarn.heartbeat_kernel import NEAR
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, first, take_out

R_GIVEN = len(REASONS)
R_RESERVED, R_SEVERAL, R_LEFT_OUT, R_NEVER, R_PREEMPTED, R_RESERVES = range(R_GIVEN + 1, R_GIVEN + 7)
CAPACITY_REASONS = (
    "its queue is next at the heartbeat of a node on which it fits",
    "it fits on the node that was reserved for its application",
    "it is larger than a node and fits on several",
    "maximum-applications: its application is turned away",
    "it is larger than the maximum of its queue",
    "its queue has more than it is guaranteed, others ask for what they are",
    "it fits its queue, not the node whose heartbeat it is: the node is kept for its application",
)


# ---- room for masters


@inner
def _am_limit(f, q):  # type: ignore[no-untyped-def]
    """Limit of the masters of a leaf: a share of its present maximum, or of its guarantee."""
    due, now = at(f.due, q), at(f.limit, q)
    return times_up(now if fits_in(due, now) else due, f.queues[q].am, at(f.sizes, LEAST))


@inner
def _user_am_limit(f, q):  # type: ignore[no-untyped-def]
    queue = f.queues[q]
    part = max(queue.percent / 100.0, 1.0 / max(queue.askers, 1))
    by = queue.am if queue.factor < 0 else queue.am * part * queue.factor
    return times_up(at(f.due, q), by, at(f.sizes, LEAST))


@inner
def activate(f, q):  # type: ignore[no-untyped-def]
    """Activate a leaf's pending applications while there is room for their masters."""
    queue = f.queues[q]
    a = first(f.by_state, those_in(q, PENDING))
    if a < 0:
        return
    cap = cluster(f)
    limit = _am_limit(f, q)
    of_user = smaller(cap, _user_am_limit(f, q), limit)
    while a >= 0:
        app = f.apps[a]
        after = f.by_state[a, AFTER]
        am = at(f.app_am, a)
        none_yet = queue.active < 1 or is_none(at(f.am_used, q))
        fits = fits_in(plus(am, at(f.am_used, q)), limit) and fits_in(plus(am, at(f.user_am, app.user)), of_user)
        if fits or none_yet:
            leave(f, a)
            join(f, a, ACTIVE)
            queue.active += 1
            f.users[app.user].active += 1
            add_to(f.am_used, q, am, 1)
            add_to(f.user_am, app.user, am, 1)
            j = first(f.job_lists, pending_list(a))
            while j >= 0:
                count_asks(f, a, at(f.ask, j), 1)
                j = f.job_lists[j, AFTER]
        a = after


# ---- max-parallel-apps


@inner
def _runnable(f, q):  # type: ignore[no-untyped-def]
    while q >= 0:
        if f.queues[q].running >= f.queues[q].most_running:
            return False
        q = f.queues[q].parent
    return True


@inner
def _count_running(f, q, sign):  # type: ignore[no-untyped-def]
    while q >= 0:
        f.queues[q].running += sign
        q = f.queues[q].parent


@inner
def _next_runnable(f):  # type: ignore[no-untyped-def]
    """Release held-back applications, in order of submission."""
    while True:
        best = -1
        for q in range(f.queues.size):
            a = first(f.by_state, those_in(q, HELD_BACK))
            if a >= 0 and (best < 0 or a < best) and _runnable(f, q):
                best = a
        if best < 0:
            return
        q = f.apps[best].queue
        leave(f, best)
        _count_running(f, q, 1)
        join(f, best, PENDING)
        activate(f, q)


@inner
def _submit(s, f, a):  # type: ignore[no-untyped-def]
    app = f.apps[a]
    queue, user = f.queues[app.queue], f.users[app.user]
    app.submit = s.g[0].now
    if queue.apps >= queue.most_apps or user.apps >= queue.most_of_user:
        app.state = REFUSED
        return
    queue.apps += 1
    user.apps += 1
    if _runnable(f, app.queue):
        _count_running(f, app.queue, 1)
        join(f, a, PENDING)
        activate(f, app.queue)
    else:
        join(f, a, HELD_BACK)


# ---- actions of its master


@inner
def _beat_after(s, f, a):  # type: ignore[no-untyped-def]
    """The next heartbeat of an application's master, now or later."""
    p, app, now = f.p[0], f.apps[a], s.g[0].now
    if p.am_beat <= 0:
        return now
    return max(app.submit + np.ceil((now - app.submit) / p.am_beat - 1e-7) * p.am_beat, now)


@inner
def _request_container(s, f, j):  # type: ignore[no-untyped-def]
    """Request a job's container from now on."""
    append(f, j, ASKING)
    if f.apps[f.jobs[j].app].state == ACTIVE:
        count_asks(f, f.jobs[j].app, at(f.ask, j), 1)


@inner
def _later(s, f, j):  # type: ignore[no-untyped-def]
    f.jobs[j].state = NOT_REQUESTED
    f.apps[f.jobs[j].app].unrequested += 1


@inner
def arrives(s, f, j):  # type: ignore[no-untyped-def]
    """Handle a queued or requeued job."""
    job = f.jobs[j]
    a = job.app
    app = f.apps[a]
    if job.state == GIVEN:
        returns(f, j)
    again = job.state == GONE
    if app.state == NEW:
        _submit(s, f, a)
    if app.state == REFUSED or job.never == 1:
        reject(s, j, R_NEVER if job.never == 1 and app.state != REFUSED else R_LEFT_OUT)
        f.p[0].refused += 1
        handle_end(s, f, j)
        return
    if j == app.master or (app.up == 1 and not again):
        _request_container(s, f, j)
    elif app.up == 0:
        _later(s, f, j)
    else:
        t = _beat_after(s, f, a)
        if t > s.g[0].now:
            f.jobs[j].state = NOT_REQUESTED
            job_timer(s, j, t)
        else:
            _request_container(s, f, j)


@inner
def handle_start(s, f, j):  # type: ignore[no-untyped-def]
    """Handle a started job: it is no longer requested."""
    job = f.jobs[j]
    a = job.app
    app = f.apps[a]
    take_out(f.job_lists, j)
    count_asks(f, a, at(f.ask, j), -1)
    append(f, j, GIVEN)
    job.mark = np.nan
    use(f, a, at(f.ask, j), 1)
    if j == app.master and app.up == 0:
        if f.p[0].am_beat > 0:
            t = app.submit + (np.floor((s.g[0].now - app.submit) / f.p[0].am_beat + 1e-7) + 1) * f.p[0].am_beat
            job_timer(s, j, t)
        else:
            _master_up(s, f, a)


@inner
def _master_up(s, f, a):  # type: ignore[no-untyped-def]
    app = f.apps[a]
    app.up = 1
    if app.unrequested == 0:
        return
    app.unrequested = 0
    for j in range(f.jobs.size):
        if f.jobs[j].app == a and f.jobs[j].state == NOT_REQUESTED and s.jobs[j].state == WAITING:
            _request_container(s, f, j)


@inner
def returns(f, j):  # type: ignore[no-untyped-def]
    """Handle a job that released its resources."""
    job = f.jobs[j]
    take_out(f.job_lists, j)
    job.state = GONE
    if not np.isnan(job.mark):
        job.mark = np.nan
        f.p[0].marked -= 1
    use(f, job.app, at(f.ask, j), -1)
    charge(f, job.app, at(f.ask, j), -1)


@inner
def handle_end(s, f, j):  # type: ignore[no-untyped-def]
    """Handle an ended job; with its last one an application ends, once its master sees it."""
    job = f.jobs[j]
    app = f.apps[job.app]
    job.state = GONE
    app.left -= 1
    if app.left > 0 or app.state == REFUSED:
        return
    # the end of a master's container is known after the heartbeat that reports it
    t = _beat_after(s, f, job.app) if app.master < 0 else s.g[0].now + 2 * NEAR
    if t > s.g[0].now:
        job_timer(s, j, t)
    else:
        _is_over(s, f, job.app)


@inner
def _is_over(s, f, a):  # type: ignore[no-untyped-def]
    app = f.apps[a]
    if app.state == NEW or app.state == OVER or app.left > 0:
        return
    q = app.queue
    user = f.users[app.user]
    was = app.state
    leave(f, a)
    if was == ACTIVE:
        f.queues[q].active -= 1
        user.active -= 1
        add_to(f.am_used, q, at(f.app_am, a), -1)
        add_to(f.user_am, app.user, at(f.app_am, a), -1)
    app.state = OVER
    f.queues[q].apps -= 1
    user.apps -= 1
    if was != HELD_BACK:
        _count_running(f, q, -1)
    activate(f, q)
    _next_runnable(f)
    f.p[0].version += 1


@inner
def rings(s, f, j):  # type: ignore[no-untyped-def]
    """Handle the heartbeat of a master that a job waited for."""
    job = f.jobs[j]
    app = f.apps[job.app]
    if job.state == NOT_REQUESTED and app.up == 1:
        if s.jobs[j].state == WAITING:
            _request_container(s, f, j)
    elif j == app.master and app.up == 0 and job.state == GIVEN:
        _master_up(s, f, job.app)
    elif job.state == GONE and app.left == 0:
        _is_over(s, f, job.app)
