"""The compiled fair scheduler: heartbeats, updates, and events in between.

Heartbeats are emulated, but only those that may have an effect are processed: after a heartbeat that assigned and
reserved nothing, a node's heartbeats are skipped until something changes for it.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.preemption_kernel import preempt
from gpuctl.replay.engine.resource_kernel import find_for
from gpuctl.replay.engine.state import E_FINISHED, E_JOB_TIMER, E_NODE_DOWN, E_NODE_UP, E_QUEUED, RUNNING, WAITING
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.policies.yarn.fair_line_kernel import (
    appear,
    ask,
    ask_update,
    count_use,
    ends,
    leave,
    relined,
    this_tick,
    tick_after,
    touch,
    wake_all,
)
from gpuctl.replay.policies.yarn.fair_offer_kernel import heartbeat, unreserve
from gpuctl.replay.policies.yarn.fair_preempt_kernel import preempt_for_starved
from gpuctl.replay.policies.yarn.fair_share_kernel import update_demands, update_shares
from gpuctl.replay.policies.yarn.fair_starved_kernel import update_starved
from gpuctl.replay.policies.yarn.fair_state import OVER, R_FAIR_STARVED
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, first, put_last, take_out

# ---- events


@inner
def _try_gangs(s, f):  # type: ignore[no-untyped-def]
    """Wake all nodes if a gang larger than a node fits now: the next heartbeat may assign it."""
    p = f.p[0]
    if p.looked == p.freed:
        return
    p.looked = p.freed
    for shape in range(f.gangs.size):
        if f.gangs[shape] > 0:
            if find_for(s, f.one_of[shape], p.how):
                wake_all(f)
                return
            f.bad[shape] = p.freed


@inner
def _ended(s, f, j):  # type: ignore[no-untyped-def]
    """Handle a job that released its resources: its nodes may assign something at their next heartbeats."""
    row = s.attempts[s.jobs[j].row]
    if f.tasks[j].marked == s.jobs[j].row + 1:
        for r in range(3):
            f.a_marked[f.tasks[j].app, r] -= f.j_need[j, r]
        f.tasks[j].marked = 0
    count_use(f, j, -1)
    touch(f, f.tasks[j].app)
    relined(f, f.tasks[j].app)
    for k in range(row.first, row.first + row.pieces):
        f.nodes[s.pieces[k].node].flag = 1
    f.p[0].freed += 1
    if f.p[0].limited == 1 or f.apps[f.tasks[j].app].asks > 0:
        # its queue may have fallen below its maximum, or its application below its share, and it counts as requesting
        f.p[0].unknown = 0
        wake_all(f)


@inner
def _kill(s, f, j):  # type: ignore[no-untyped-def]
    """A job's timer: it is preempted now if that is what the timer is for."""
    if f.tasks[j].marked == s.jobs[j].row + 1 and s.jobs[j].state == RUNNING:
        preempt(s, j, s.g[0].mode, R_FAIR_STARVED)
        # the update of this instant comes after it
        ask_update(f, this_tick(f, s.g[0].now))


@inner
def _master_acts(s, f, j):  # type: ignore[no-untyped-def]
    """A job's timer: its application is over, or its master requests the others."""
    a = f.tasks[j].app
    app = f.apps[a]
    if app.left == 0 and app.state != OVER:
        if leave(f, a) or app.master >= 0:
            wake_all(f)
        ask_update(f, tick_after(f, s.g[0].now))
    elif app.master == j and app.opens <= s.g[0].now:
        _open(s, f, a)


@inner
def shut_out(f, a):  # type: ignore[no-untyped-def]
    """The number of the list of an application's jobs that wait for its master."""
    return f.apps.size + a


@inner
def _open(s, f, a):  # type: ignore[no-untyped-def]
    """Let the master request the containers of its application."""
    j = first(f.job_lists, shut_out(f, a))
    while j >= 0:
        following = f.job_lists[j, AFTER]
        take_out(f.job_lists, j)
        ask(f, j)
        j = following
    f.p[0].asking = 1
    ask_update(f, tick_after(f, s.g[0].now))


@inner
def _last_words(s, f, j):  # type: ignore[no-untyped-def]
    """Let a master that ends before its first heartbeat request the others then; Hadoop's would have failed."""
    a = f.tasks[j].app
    app = f.apps[a]
    if app.master == j:
        app.opens = min(app.opens, s.g[0].now)
        if first(f.job_lists, shut_out(f, a)) >= 0:
            _open(s, f, a)


@inner
def _queued(s, f, j):  # type: ignore[no-untyped-def]
    """Handle a queued job: its application requests it, after its master runs if it has one."""
    a = f.tasks[j].app
    app = f.apps[a]
    appear(f, a)
    if app.master >= 0 and app.master != j and app.opens > s.g[0].now:
        put_last(f.job_lists, j, shut_out(f, a))
        return
    if app.master == j and app.opens < np.inf:
        # a master that was stopped: its others are not affected
        for r in range(3):
            f.q_masters[app.queue, r] -= f.j_need[j, r]
        app.opens = np.inf
    ask(f, j)
    f.p[0].asking = 1


@inner
def _machines(s, f):  # type: ignore[no-untyped-def]
    """Handle a change of nodes, which changes shares."""
    f.cluster[:] = 0
    for number in range(s.nodes.size):
        if s.nodes[number].up == 1:
            f.cluster[2] += s.nodes[number].cap
            if s.g[0].resources == 1:
                if s.stock[number].mem < UNBOUND:
                    f.cluster[0] += s.stock[number].mem
                if s.stock[number].cpu < UNBOUND:
                    f.cluster[1] += s.stock[number].cpu // f.unit[0]
        elif f.nodes[number].job >= 0:
            unreserve(f, number)
    f.p[0].active = 1
    f.p[0].freed += 1
    wake_all(f)
    ask_update(f, this_tick(f, s.g[0].now))


@inner
def _update(s, f):  # type: ignore[no-untyped-def]
    """Update fair shares, demands, and preemptions."""
    p, now = f.p[0], s.g[0].now
    p.due = np.inf
    p.updates += 1
    if p.active == 1 or p.asking == 1 or (p.sized == 1 and p.fresh > 0):
        # applications that are new or due more may take or reserve anywhere
        wake_all(f)
        p.asking = 0
    if p.active == 1:
        p.active = 0
        update_shares(f)
    count = p.fresh
    update_demands(f)
    if p.sized == 1:
        for k in range(count):
            relined(f, f.touched[k])
    if p.preempts == 1:
        wake = update_starved(f, now)
        again = preempt_for_starved(s, f)
        if again < np.inf:
            wake = min(wake, this_tick(f, again))
        p.due = min(p.due, max(wake, now + p.tick))
    if p.awake == 1:
        ask_update(f, tick_after(f, now))


@inner
def _listen(s, f):  # type: ignore[no-untyped-def]
    """Process the events of this instant.

    In the order of the driver that recorded Hadoop: kills, submissions, update, ends, masters and their requests.
    """
    now = s.g[0].now
    known = s.g[0].events
    machines = False
    for k in range(known):
        kind = s.events[k].kind
        if kind == E_JOB_TIMER:
            _kill(s, f, s.events[k].who)
        elif kind == E_NODE_DOWN or kind == E_NODE_UP:
            machines = True
    if machines:
        _machines(s, f)
    for k in range(known, s.g[0].events):
        _ended(s, f, s.events[k].who)
    for k in range(known):
        kind, j = s.events[k].kind, s.events[k].who
        if kind == E_QUEUED and s.jobs[j].attempts == 0:
            if appear(f, f.tasks[j].app):
                ask_update(f, this_tick(f, now))
            if f.apps[f.tasks[j].app].master == j:
                # the scheduler itself requests a master, when the application is submitted
                _queued(s, f, j)
                ask_update(f, this_tick(f, now))
    if f.p[0].due <= now:
        _update(s, f)
    for k in range(known):
        kind, j = s.events[k].kind, s.events[k].who
        if kind == E_FINISHED or (kind == E_QUEUED and s.jobs[j].attempts > 0):
            _ended(s, f, j)
    some = machines
    for k in range(s.g[0].events):
        kind, j = s.events[k].kind, s.events[k].who
        if kind == E_QUEUED and s.jobs[j].state == WAITING and f.tasks[j].requested == 0:
            _queued(s, f, j)
            some = True
        elif kind == E_FINISHED:
            ends(s, f, j)
            _last_words(s, f, j)
            some = True
        elif kind == E_JOB_TIMER:
            _master_acts(s, f, j)
    if some:
        ask_update(f, tick_after(f, now))
    _try_gangs(s, f)


@inner
def _beat_at(f, node, now):  # type: ignore[no-untyped-def]
    """A node's first unprocessed heartbeat at or after `now`."""
    place, beat = f.nodes[node], f.p[0].beat
    k = max(np.ceil((now - place.offset) / beat - 1e-9), 0.0)
    t = place.offset + k * beat
    return t if t > place.beaten else t + beat


@inner
def _listens(s, f, node, idle):  # type: ignore[no-untyped-def]
    """Whether a node's next heartbeat may have an effect; without requests it may only drop a reservation."""
    place = f.nodes[node]
    if f.p[0].awake == 1:
        return s.nodes[node].up == 1
    return place.flag == 1 and s.nodes[node].up == 1 and (not idle or place.job >= 0 or first(f.entry_lists, node) >= 0)


@inner
def _idle(f):  # type: ignore[no-untyped-def]
    """Whether no runnable application has known requests."""
    return f.queues[0].waiting <= f.p[0].unknown


@inner
def _beats(s, f):  # type: ignore[no-untyped-def]
    """Process the heartbeats of this instant, and schedule the next one that may have an effect."""
    now = s.g[0].now
    t = np.inf
    if _idle(f) and f.p[0].reserved == 0 and f.p[0].entries == 0 and f.p[0].awake == 0:
        return t
    for node in range(f.nodes.size):
        if _listens(s, f, node, _idle(f)):
            at = _beat_at(f, node, now)
            if at <= now:
                f.nodes[node].beaten = at
                heartbeat(s, f, node)
    idle = _idle(f)
    for node in range(f.nodes.size):
        if _listens(s, f, node, idle):
            t = min(t, _beat_at(f, node, now))
    return t


@inner
def decide(s, f):  # type: ignore[no-untyped-def]
    """Process this instant."""
    g = s.g[0]
    _listen(s, f)
    if g.heap == 0 or s.heap_t[0] > g.now:
        # further events of this instant (a kill without a wait) come before heartbeats
        t = min(_beats(s, f), f.p[0].due)
        if t < np.inf and g.left > 0:
            named_timer(s, 0, t)


@compiled
def run(s, f, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(s, (f,), until, steps, decide=decide)
