"""Compiled state changes of a job between submission and end in Slurm's scheduler."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import job_timer, reject
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.requeue_kernel import HEAD
from gpuctl.replay.engine.running_jobs_kernel import runs, runs_no_more
from gpuctl.replay.engine.state import E_FINISHED, E_JOB_TIMER, E_NODE_DOWN, E_NODE_UP, E_QUEUED, WAITING
from gpuctl.replay.policies.slurm.limit_kernel import may_submit, submitted, use
from gpuctl.replay.policies.slurm.node_kernel import occupy, refresh, update_up_nodes
from gpuctl.replay.policies.slurm.order_kernel import activate, ended, into_line, set_priority
from gpuctl.replay.policies.slurm.records_kernel import M_CANCEL, R_CANCELLED, R_NEVER, R_SUBMIT


@inner
def start(s, f, r, j, reason):  # type: ignore[no-untyped-def]
    """Start a job, already removed from the line, on the nodes in `choice`."""
    launch(s, j, reason)
    runs(s, r, j)
    f.x[j].runs = 1
    occupy(s, f, j, 1)
    refresh(s, f)
    use(f, j, 1)


@inner
def _let_go(s, f, r, j):  # type: ignore[no-untyped-def]
    """Handle a job that released its nodes."""
    now = s.g[0].now
    runs_no_more(r, j)
    f.x[j].runs = 0
    occupy(s, f, j, -1)
    use(f, j, -1)
    ended(s, f, j, now)
    f.p[0].freed += 1


@inner
def _release_preemptor(f, j):  # type: ignore[no-untyped-def]
    """Handle a preempted job that is gone: its preemptor waits for one less."""
    x = f.x[j]
    if x.gives_way >= 0:
        f.x[x.gives_way].victims -= 1
        x.gives_way = -1


@inner
def _leave(s, f, j, reason):  # type: ignore[no-untyped-def]
    """Reject a job that is in no line."""
    if f.x[j].counted == 1:
        submitted(f, j, -1)
    activate(f, j, -1)
    reject(s, j, reason)


@inner
def _arrive(s, f, j, submit):  # type: ignore[no-untyped-def]
    """Add a waiting job, as submitted at a given second: Slurm compares whole seconds."""
    x, now = f.x[j], s.g[0].now
    if x.never == 1:
        _leave(s, f, j, R_NEVER)
        return
    if x.counted == 0:
        if not may_submit(f, j):
            _leave(s, f, j, R_SUBMIT)
            return
        submitted(f, j, 1)
    x.queued = np.floor(submit)
    x.accrue = x.queued if f.p[0].accrue_always == 1 else now
    x.prio = 0
    activate(f, j, 1)
    set_priority(f, j, now)
    into_line(f, j)


@inner
def take_in(s, f, r):  # type: ignore[no-untyped-def]
    """Process the unhandled events of this instant.

    Returns:
        whether resources became free or came up, and whether a job arrived.
    """
    g, p = s.g[0], f.p[0]
    freed, came = False, False
    while p.seen < g.events:
        event = s.events[p.seen]
        kind, j = event.kind, event.who
        p.seen += 1
        if kind == E_NODE_UP or kind == E_NODE_DOWN:
            update_up_nodes(s, f)
            p.freed += 1
            freed = True
        elif kind == E_JOB_TIMER:
            p.held -= 1
            _arrive(s, f, j, f.x[j].queued)
            came = True
        elif kind == E_FINISHED or kind == E_QUEUED:
            if f.x[j].runs == 1:
                _let_go(s, f, r, j)
                freed = True
            preempted = f.x[j].gives_way >= 0
            _release_preemptor(f, j)
            if kind == E_FINISHED:
                submitted(f, j, -1)
                activate(f, j, -1)
            elif s.jobs[j].state == WAITING and f.x[j].in_line == 0:
                if preempted and f.x[j].mode == M_CANCEL:
                    _leave(s, f, j, R_CANCELLED)
                elif preempted and p.requeue_delay > 0:
                    # it counts as submitted now, although not yet eligible
                    f.x[j].queued = g.now
                    p.held += 1
                    job_timer(s, j, g.now + p.requeue_delay)
                else:
                    again = s.jobs[j].attempts > 0 and not (g.requeue == HEAD and s.jobs[j].reload == 1)
                    _arrive(s, f, j, g.now if again else s.jobs[j].submit)
                    came = True
    if freed:
        refresh(s, f)
    return freed, came
