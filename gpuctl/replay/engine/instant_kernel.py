"""The compiled core of the simulator: the step to the next instant, and actions of special policies."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.checkpoint_kernel import reload_cost
from gpuctl.replay.engine.event_heap_kernel import NUMBERS, cancel, schedule
from gpuctl.replay.engine.job_life_kernel import (
    begin,
    emit,
    enqueue,
    give_back,
    note,
    plan_end,
    segment_ends,
    settle,
    snapped,
    stop,
    take,
    unspent,
)
from gpuctl.replay.engine.loan_kernel import wanted_back
from gpuctl.replay.engine.placement_kernel import set_free
from gpuctl.replay.engine.preemption_kernel import fail, suspended, throw_out
from gpuctl.replay.engine.resource_kernel import node_counts
from gpuctl.replay.engine.state import (
    A_DOWN,
    A_LEASE,
    A_MIGRATED,
    A_RESIZED,
    C_ARRIVE,
    C_LEASE,
    C_MACHINE,
    C_ROUND,
    C_TIMER,
    D_DOWN,
    D_LEASE,
    D_LEASE_END,
    D_MIGRATE,
    D_NODE_DOWN,
    D_NODE_UP,
    D_REJECT,
    D_RESIZE,
    E_JOB_TIMER,
    E_LEASE,
    E_NODE_DOWN,
    E_NODE_UP,
    E_ROUND,
    E_TIMER,
    ENDED,
    GROW,
    HELD,
    NAMED_TIMERS,
    REJECTED,
    RUNNING,
    STEPPED,
    SUSPENDING,
    wanted,
)

# ---- nodes


@inner
def _end_jobs_of(s, number):  # type: ignore[no-untyped-def]
    """End the attempts on a node that goes down."""
    for j in range(s.jobs.size):
        job = s.jobs[j]
        if job.state == RUNNING or job.state == SUSPENDING:
            row = s.attempts[job.row]
            for p in range(row.first, row.first + row.pieces):
                if s.pieces[p].node == number:
                    if s.g[0].failing == 1:
                        fail(s, j)
                    else:
                        throw_out(s, j, D_DOWN, A_DOWN)
                    break


@inner
def _node_goes(s, k):  # type: ignore[no-untyped-def]
    g = s.g[0]
    number = s.machine_node[k]
    node = s.nodes[number]
    if s.machine_up[k] == 1:
        if node.up == 0:
            free = node.free
            node.up = 1
            node.free = 0
            set_free(s, number, free)
            g.total += node.cap
            node_counts(s, number, 1)
            note(s, D_NODE_UP, -1, node.cap, number, 0)
            emit(s, E_NODE_UP, number)
        return
    if node.up == 0:
        return
    at_once = s.machine_up[k] == 2
    drains = s.machine_up[k] == 3
    note(s, D_NODE_DOWN, -1, node.cap, number, 0)
    if not drains:
        g.injected += 1
        _end_jobs_of(s, number)
    if at_once:
        note(s, D_NODE_UP, -1, node.cap, number, 0)
        return
    free = node.free
    set_free(s, number, 0)
    node.up = 0
    node.free = free
    g.total -= node.cap
    node_counts(s, number, -1)
    emit(s, E_NODE_DOWN, number)


# ---- one instant

_wanted = inner(wanted)


@inner
def room(s):  # type: ignore[no-untyped-def]
    """Whether the arrays have room for the next step, see `gpuctl.replay.engine.state.wanted`."""
    log, attempts, pieces, events, turns = _wanted(s.g[0], s.nodes.size)
    fits = log <= s.log.size and attempts <= s.attempts.size and pieces <= s.pieces.size
    return fits and events <= s.events.size and turns <= s.turns.size


@inner
def _over(s):  # type: ignore[no-untyped-def]
    """Whether only failures could still come: no job runs, waits or arrives, and those left wait for rejected ones."""
    g = s.g[0]
    return g.failing == 1 and g.running + g.waiting + g.heap == 0 and g.arrival == s.arrivals.size


@inner
def step(s, until):  # type: ignore[no-untyped-def]
    """Advance to the next instant with events, process them, and list them in `events`.

    Returns:
        STEPPED; ENDED if nothing comes before `until`; GROW if arrays must grow first.
    """
    g = s.g[0]
    if not room(s):
        return GROW
    t = s.heap_t[0] if g.heap > 0 else np.inf
    if g.arrival < s.arrivals.size:
        t = min(t, s.arrive_t[g.arrival])
    if g.machine < s.machine_t.size and (g.left > 0) and not _over(s):
        t = min(t, s.machine_t[g.machine])
    if t == np.inf or t > until or g.left == 0:
        return ENDED
    t = max(snapped(s, t), g.now)
    g.now = t
    by = t + g.grain
    g.events = g.carried
    g.carried = 0
    g.instants += 1
    n = s.jobs.size
    done = False
    while not done:
        done = True
        while g.heap > 0 and s.heap_t[0] <= by and s.heap_c[0] < C_MACHINE * NUMBERS:
            node = s.heap_node[0]
            cancel(s, node)
            if s.jobs[node].state == SUSPENDING:
                suspended(s, node)
            else:
                segment_ends(s, node)
        while g.machine < s.machine_t.size and s.machine_t[g.machine] <= by:
            _node_goes(s, g.machine)
            g.machine += 1
        while g.arrival < s.arrivals.size and s.arrive_t[g.arrival] <= by:
            j = s.arrivals[g.arrival]
            g.arrival += 1
            s.jobs[j].eligible = 1
            if s.jobs[j].parents == 0 and s.jobs[j].state == HELD:
                enqueue(s, j)
        while g.heap > 0 and s.heap_t[0] <= by:
            node, c = s.heap_node[0], s.heap_c[0] // NUMBERS
            if c < C_MACHINE:
                done = False
                break
            cancel(s, node)
            if c == C_LEASE and node >= 3 * n:
                wanted_back(s, node - 3 * n - NAMED_TIMERS - 2)
            elif c == C_LEASE:
                emit(s, E_LEASE, node - 2 * n)
            elif c == C_ARRIVE:
                # its think time after the last dependency is over
                s.jobs[node].parents = 0
                if s.jobs[node].eligible == 1 and s.jobs[node].state == HELD:
                    enqueue(s, node)
            elif c == C_TIMER:
                if node < 2 * n:
                    emit(s, E_JOB_TIMER, node - n)
                else:
                    emit(s, E_TIMER, node - 3 * n)
            elif c == C_ROUND:
                emit(s, E_ROUND, node - 3 * n - NAMED_TIMERS)
    return STEPPED


@inner
def next_instant(s, until):  # type: ignore[no-untyped-def]
    """Advance to the next instant, unless the policy has yet to decide at this one, and check the arrays' room.

    Returns:
        As `step` does; GROW also if arrays must grow before the policy decides.
    """
    g = s.g[0]
    if g.decision_phase == 0:
        status = step(s, until)
        if status != STEPPED:
            return status
        g.decision_phase = 1
    return STEPPED if room(s) else GROW


@inner
def end_leases(s):  # type: ignore[no-untyped-def]
    """Take the GPUs of jobs with expired leases; the policy is notified at this same instant."""
    g = s.g[0]
    known = g.events
    for k in range(known):
        event = s.events[k]
        if event.kind == E_LEASE:
            job = s.jobs[event.who]
            if job.state == RUNNING and job.lease <= g.now:
                settle(s, event.who)
                unspent(s, event.who)
                job.preempts += 1
                note(s, D_LEASE_END, event.who, job.held, job.row, 0)
                job.work += job.charge
                stop(s, event.who, A_LEASE)
    for k in range(known, g.events):
        # they are reported with the next step's events
        s.events[k - known].kind = s.events[k].kind
        s.events[k - known].who = s.events[k].who
    g.carried = g.events - known
    if g.carried > 0:
        schedule(s, 3 * s.jobs.size + NAMED_TIMERS, g.now, C_ROUND)


# ---- actions of special policies


@inner
def grant(s, j, until, reason):  # type: ignore[no-untyped-def]
    """Lease a running job its GPUs until `t`."""
    job = s.jobs[j]
    job.lease = until
    note(s, D_LEASE, j, job.held, job.row, reason)
    schedule(s, 2 * s.jobs.size + j, until, C_LEASE)


@inner
def job_timer(s, j, t):  # type: ignore[no-untyped-def]
    """Wake the policy at `t` because of this job; a job has one such timer."""
    schedule(s, s.jobs.size + j, t, C_TIMER)


@inner
def named_timer(s, number, t):  # type: ignore[no-untyped-def]
    """Wake the policy at `t`; `number` is below `NAMED_TIMERS`."""
    schedule(s, 3 * s.jobs.size + number, t, C_TIMER)


@inner
def move(s, j, how, what, reason):  # type: ignore[no-untyped-def]
    """Continue a running job on the GPUs in `choice`: others, more or fewer."""
    job = s.jobs[j]
    settle(s, j)
    unspent(s, j)
    cancel(s, j)
    start = job.start
    lease = job.lease
    give_back(s, j, how)
    go_on(s, j, what, start, lease, reason)


@inner
def go_on(s, j, what, start, lease, reason):  # type: ignore[no-untyped-def]
    """Continue a job whose GPUs have been released on those in `choice`."""
    job = s.jobs[j]
    due = job.due
    gpus = take(s, j, 0)
    job.changes += 1
    note(s, what, j, gpus, job.row, reason)
    begin(s, j, job.move + reload_cost(s, j))
    job.start, job.due = start, due
    if s.g[0].limits == 1:
        plan_end(s, j)
    job.lease = lease
    if lease < np.inf:
        schedule(s, 2 * s.jobs.size + j, lease, C_LEASE)


@inner
def migrate(s, j, reason):  # type: ignore[no-untyped-def]
    """Move a running job to the GPUs in `choice`."""
    move(s, j, A_MIGRATED, D_MIGRATE, reason)


@inner
def resize(s, j, reason):  # type: ignore[no-untyped-def]
    """Resize a running job to the GPUs in `choice`."""
    move(s, j, A_RESIZED, D_RESIZE, reason)


@inner
def reject(s, j, reason):  # type: ignore[no-untyped-def]
    """Take a waiting job out of the queue for good; jobs that depend on it never start."""
    g = s.g[0]
    job = s.jobs[j]
    note(s, D_REJECT, j, job.gpus, -1, reason)
    g.waiting -= 1
    job.state = REJECTED
    g.left -= 1
