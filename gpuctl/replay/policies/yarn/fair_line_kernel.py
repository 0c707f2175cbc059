"""The compiled bookkeeping of the fair scheduler: applications in queues, their requests and holdings."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import job_timer
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.state import RUNNING
from gpuctl.replay.policies.yarn.fair_order_kernel import app_first, is_none
from gpuctl.replay.policies.yarn.fair_state import ABSENT, HELD_BACK, OVER, RUNNABLE
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, BEFORE, first, last, put_after, put_last, take_out

MOMENT = 1.0 / (1 << 20)
"""Seconds, less than between the heartbeats of two nodes."""


@inner
def tick_after(f, now):  # type: ignore[no-untyped-def]
    """The first update after an instant."""
    return (np.floor(now / f.p[0].tick + 1e-9) + 1.0) * f.p[0].tick


@inner
def this_tick(f, now):  # type: ignore[no-untyped-def]
    """The first update at or after an instant."""
    return np.ceil(now / f.p[0].tick - 1e-9) * f.p[0].tick


@inner
def ask_update(f, t):  # type: ignore[no-untyped-def]
    """Schedule an update at `t` at the latest."""
    f.p[0].due = min(f.p[0].due, t)


@inner
def touch(f, a):  # type: ignore[no-untyped-def]
    """Mark an application's demand for the next update."""
    if f.apps[a].touched == 0:
        f.apps[a].touched = 1
        f.touched[f.p[0].fresh] = a
        f.p[0].fresh += 1


@inner
def wake_all(f):  # type: ignore[no-untyped-def]
    """Wake every node's next heartbeat."""
    for k in range(f.nodes.size):
        f.nodes[k].flag = 1


@inner
def wake_reserved(f):  # type: ignore[no-untyped-def]
    """Wake the next heartbeats of nodes with a reservation."""
    if f.p[0].reserved > 0:
        for k in range(f.nodes.size):
            if f.nodes[k].job >= 0:
                f.nodes[k].flag = 1


# ---- the line of a queue: runnable applications with requests, in the order of its policy


@inner
def _line_in(f, a):  # type: ignore[no-untyped-def]
    q = f.apps[a].queue
    place = last(f.lines, q)
    while place >= 0 and app_first(f, f.queues[q].policy, a, place):
        place = f.lines[place, BEFORE]
    put_after(f.lines, a, place)
    f.apps[a].lined = 1


@inner
def _line_out(f, a):  # type: ignore[no-untyped-def]
    take_out(f.lines, a)
    f.apps[a].lined = 0


@inner
def relined(f, a):  # type: ignore[no-untyped-def]
    """Reposition an application in its queue's line, or remove it."""
    app = f.apps[a]
    if app.lined == 1:
        _line_out(f, a)
    if app.state == RUNNABLE and app.asks > 0:
        _line_in(f, a)


@inner
def _waits(f, a, count):  # type: ignore[no-untyped-def]
    if f.apps[a].state == RUNNABLE:
        q = f.apps[a].queue
        while q >= 0:
            f.queues[q].waiting += count
            q = f.queues[q].parent


# ---- asks and use


@inner
def _count_ask(f, j, sign):  # type: ignore[no-untyped-def]
    a = f.tasks[j].app
    q = f.apps[a].queue
    f.apps[a].asks += sign
    if f.tasks[j].big == 1:
        f.gangs[f.tasks[j].kind] += sign
    for r in range(3):
        f.a_asks[a, r] += sign * f.j_need[j, r]
        f.q_asks[q, r] += sign * f.j_need[j, r]
    _waits(f, a, sign)


@inner
def count_use(f, j, sign):  # type: ignore[no-untyped-def]
    """Count a job's request as held (1), or no longer (-1)."""
    a = f.tasks[j].app
    q = f.apps[a].queue
    for r in range(3):
        f.a_used[a, r] += sign * f.j_need[j, r]
        at = q
        while at >= 0:
            f.q_used[at, r] += sign * f.j_need[j, r]
            at = f.queues[at].parent


@inner
def is_requesting(f, a):  # type: ignore[no-untyped-def]
    """Whether an application counts as requesting: its demand of the last update differs from its holdings.

    Ended containers offset later requests, as in Hadoop. Requests without counted resources do not show in a demand.
    """
    j = first(f.job_lists, a)
    known = j >= 0 and is_none(f.j_need, j)
    for r in range(3):
        known = known or f.a_demand[a, r] != f.a_used[a, r]
    return known


@inner
def ask(f, j):  # type: ignore[no-untyped-def]
    """Request a job's container, after its application's earlier jobs in the workload."""
    task = f.tasks[j]
    app = f.apps[task.app]
    place = last(f.job_lists, task.app)
    while place > j:
        place = f.job_lists[place, BEFORE]
    put_after(f.job_lists, j, place)
    task.requested = 1
    if app.state == RUNNABLE and not is_requesting(f, task.app):
        f.p[0].unknown += 1
    _count_ask(f, j, 1)
    if is_requesting(f, task.app):
        wake_all(f)
    touch(f, task.app)
    relined(f, task.app)


@inner
def _unask(f, j):  # type: ignore[no-untyped-def]
    take_out(f.job_lists, j)
    f.tasks[j].requested = 0
    _count_ask(f, j, -1)


@inner
def _fulfil(f, a, node, j):  # type: ignore[no-untyped-def]
    """Reduce the amount preempted on a node for an application by an assignment there."""
    k = preempted_entry(f, node, a)
    if k < 0:
        return
    left = False
    for r in range(3):
        some = min(f.e_left[k, r], f.j_need[j, r])
        f.e_left[k, r] -= some
        f.n_taken[node, r] -= some
        left = left or f.e_left[k, r] != 0
    if not left:
        drop_entry(f, node, k)


@inner
def preempted_entry(f, node, a):  # type: ignore[no-untyped-def]
    """The entry of an application's preempted amount on a node; negative: none."""
    k = first(f.entry_lists, node)
    while k >= 0 and f.entry_app[k] != a:
        k = f.entry_lists[k, AFTER]
    return k


@inner
def unused(f):  # type: ignore[no-untyped-def]
    """The number of the list of unused entries."""
    return f.nodes.size


@inner
def drop_entry(f, node, k):  # type: ignore[no-untyped-def]
    """Drop the rest of an application's preempted amount on a node."""
    for r in range(3):
        f.n_taken[node, r] -= f.e_left[k, r]
        f.e_left[k, r] = 0
    f.p[0].entries -= 1
    take_out(f.entry_lists, k)
    put_last(f.entry_lists, k, unused(f))


@inner
def alive(s, f, k):  # type: ignore[no-untyped-def]
    """Whether the job at a position of `live` still runs the same attempt."""
    job = s.jobs[f.live[k]]
    return job.state == RUNNING and job.row == f.live_row[k]


@inner
def forget_dead(s, f):  # type: ignore[no-untyped-def]
    """Remove stopped jobs from the list by start."""
    live_count = 0
    for k in range(f.p[0].lives):
        if alive(s, f, k):
            f.live[live_count], f.live_row[live_count] = f.live[k], f.live_row[k]
            live_count += 1
    f.p[0].lives = live_count


@inner
def _remember(s, f, j):  # type: ignore[no-untyped-def]
    """Append a running job to the list by start."""
    p = f.p[0]
    if p.lives == f.live.size:
        forget_dead(s, f)
    f.live[p.lives], f.live_row[p.lives] = j, s.jobs[j].row
    p.lives += 1


@inner
def give(s, f, j, node, reason):  # type: ignore[no-untyped-def]
    """Start a job on the choice at a node's heartbeat."""
    a = f.tasks[j].app
    app = f.apps[a]
    _unask(f, j)
    # it may have been one of them: preempted amounts are assigned without a request
    f.p[0].unknown = max(f.p[0].unknown - 1, 0)
    count_use(f, j, 1)
    launch(s, j, reason)
    f.tasks[j].marked = 0
    app.given += 1
    f.tasks[j].number = app.given
    if f.p[0].preempts == 1:
        _remember(s, f, j)
        ask_update(f, tick_after(f, s.g[0].now))
    if node >= 0:
        _fulfil(f, a, node, j)
    relined(f, a)
    wake_reserved(f)
    following = first(f.job_lists, a)
    if following >= 0 and f.tasks[following].kind != f.tasks[j].kind:
        # its new first request may fit where the former one did not
        wake_all(f)
    if app.master == j and app.opens == np.inf:
        for r in range(3):
            f.q_masters[app.queue, r] += f.j_need[j, r]
        app.opens = s.g[0].now
        if f.p[0].master > 0:
            app.opens = _master_beat(f, app.start, s.g[0].now)
        job_timer(s, j, app.opens)


@inner
def _master_beat(f, start, now):  # type: ignore[no-untyped-def]
    """A master's first heartbeat after `now`; at one instant masters come before nodes."""
    return start + (np.floor((now - start) / f.p[0].master + 1e-9) + 1.0) * f.p[0].master


# ---- applications come, run, and go


@inner
def _may_run(f, a):  # type: ignore[no-untyped-def]
    app = f.apps[a]
    if f.users[app.user] >= f.user_most[app.user]:
        return False
    q = app.queue
    while q >= 0:
        if f.queues[q].runnable >= f.queues[q].most:
            return False
        q = f.queues[q].parent
    return True


@inner
def _count_runnable(f, a, sign):  # type: ignore[no-untyped-def]
    app = f.apps[a]
    f.users[app.user] += sign
    q = app.queue
    while q >= 0:
        f.queues[q].runnable += sign
        if f.queues[q].runnable == 0 or (sign == 1 and f.queues[q].runnable == 1):
            f.p[0].active = 1
        q = f.queues[q].parent


@inner
def _run(f, a):  # type: ignore[no-untyped-def]
    app = f.apps[a]
    app.state = RUNNABLE
    app.since = f.p[0].updates
    put_last(f.members, a, app.queue)
    _count_runnable(f, a, 1)
    _waits(f, a, app.asks)
    if app.asks > 0:
        # its requests while held back count from the next update on, as does its share
        f.p[0].asking = 1
    relined(f, a)


@inner
def appear(f, a):  # type: ignore[no-untyped-def]
    """Submit an application: it runs, or is held back by a limit. Returns whether it is new."""
    app = f.apps[a]
    if app.state != ABSENT:
        return False
    if _may_run(f, a):
        _run(f, a)
        return True
    app.state = HELD_BACK
    put_last(f.members, a, held_back_list(f))
    return True


@inner
def held_back_list(f):  # type: ignore[no-untyped-def]
    """The number of the list of applications held back by a limit, of all queues."""
    return f.queues.size


@inner
def leave(f, a):  # type: ignore[no-untyped-def]
    """End an application: those that it held back may run, the earliest first. Returns whether one does."""
    app, p = f.apps[a], f.p[0]
    if app.lined == 1:
        _line_out(f, a)
    take_out(f.members, a)
    was = app.state
    app.state = OVER
    if was == HELD_BACK:
        return False
    _count_runnable(f, a, -1)
    if first(f.lines, app.queue) >= 0 and p.reservable > 0:
        # the others of its queue have larger shares from the next update on, and may then reserve
        p.asking = 1
    if app.master >= 0 and app.opens < np.inf:
        for r in range(3):
            f.q_masters[app.queue, r] -= f.j_need[app.master, r]
    some = False
    other = first(f.members, held_back_list(f))
    while other >= 0 and _may_let_in(f, a):
        following = f.members[other, AFTER]
        if _may_run(f, other):
            take_out(f.members, other)
            _run(f, other)
            some = True
        other = following
    return some


@inner
def _may_let_in(f, a):  # type: ignore[no-untyped-def]
    """Whether a limit filled by an ended application is now one below its maximum; else all stay held back."""
    app = f.apps[a]
    if f.users[app.user] == f.user_most[app.user] - 1:
        return True
    q = app.queue
    while q >= 0:
        if f.queues[q].runnable == f.queues[q].most - 1:
            return True
        q = f.queues[q].parent
    return False


@inner
def ends(s, f, j):  # type: ignore[no-untyped-def]
    """Handle an ended job, and with the last one its application.

    An application whose master is a job ends after the heartbeats of this instant; otherwise at the next heartbeat of
    its master, which holds nothing.
    """
    app = f.apps[f.tasks[j].app]
    app.left -= 1
    if app.left == 0:
        now = s.g[0].now
        if app.master >= 0:
            job_timer(s, j, now + MOMENT)
        else:
            job_timer(s, j, _master_beat(f, app.start, now) if f.p[0].master > 0 else now)
