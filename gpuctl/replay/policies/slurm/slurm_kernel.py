"""Slurm's scheduler, compiled: the schedule of its passes.

Submissions and ends trigger a main pass at once, each ``sched_interval`` visits the whole line, each ``bf_interval``
backfills. Passes that would start no job are skipped: a main pass without an event since the last one, and backfill
while no job would fit even without reservations.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.policies.slurm.backfill_kernel import backfill_pass
from gpuctl.replay.policies.slurm.job_states_kernel import take_in
from gpuctl.replay.policies.slurm.main_pass_kernel import main_pass
from gpuctl.replay.policies.slurm.node_kernel import refresh
from gpuctl.replay.policies.slurm.order_kernel import calculate
from gpuctl.replay.policies.slurm.records_kernel import F_NONE, P_NONE, S_BACKFILL, S_FULL, S_PRIORITY


@inner
def _next_multiple(t, period, last):  # type: ignore[no-untyped-def]
    """The first whole multiple of a period from `t` on, and after `last`."""
    k = np.ceil(t / period)
    if k * period <= last:
        k = np.floor(last / period) + 1.0
    return k * period


@inner
def _changed(s, f):  # type: ignore[no-untyped-def]
    """Mark a change: a full main pass and a pass of backfill are due."""
    p, now = f.p[0], s.g[0].now
    if p.full_due == 0:
        p.full_due = 1
        p.full_at = _next_multiple(now, p.sched_interval, p.full_last)
    if p.bf_due == 0 and p.backfill == 1:
        p.bf_due = 1
        p.bf_at = _next_multiple(now, p.bf_interval, p.bf_last)


@inner
def _moves(s, f):  # type: ignore[no-untyped-def]
    """Whether any job runs or is yet to come; else jobs that do not start now never do."""
    g = s.g[0]
    return g.running > 0 or f.p[0].held > 0 or g.arrival < s.arrivals.size


@inner
def _passes(s, f, r):  # type: ignore[no-untyped-def]
    """Run the passes that are due now."""
    p, now = f.p[0], s.g[0].now
    before, again = p.freed, False
    if p.full_due == 1 and p.full_at <= now:
        p.full_due = 0
        p.full_last = p.main_last = now
        p.main_at = np.inf
        complete, starts = main_pass(s, f, r, True)
        again = again or (starts > 0 and not complete)
    elif p.main_at <= now:
        p.main_at = np.inf
        p.main_last = now
        complete, _ = main_pass(s, f, r, False)
        if complete:
            p.full_due = 0
    if p.bf_due == 1 and p.bf_at <= now:
        p.bf_due = 0
        p.bf_last = now
        again = backfill_pass(s, f, r) or again
    if (again and _moves(s, f)) or p.freed != before:
        # the next pass may start jobs that this one left, or jobs were preempted
        _changed(s, f)


@inner
def _wake(s, f, r):  # type: ignore[no-untyped-def]
    """Set the next timer."""
    g, p = s.g[0], f.p[0]
    t = min(p.main_at, p.again)
    if p.full_due == 1:
        t = min(t, p.full_at)
    if p.bf_due == 1:
        t = min(t, p.bf_at)
    # while no job runs or is to come, another order starts no job
    if (_moves(s, f) or t < np.inf) and (p.weight_age > 0 or p.fair_share != F_NONE):
        t = min(t, p.tick)
    if p.preempt != P_NONE:
        for k in range(r.n[0]):
            j = r.job[k]
            spared = s.jobs[j].start + f.x[j].exempt
            if spared > g.now:
                t = min(t, spared)
    if t < np.inf:
        named_timer(s, 0, max(t, g.now))


@inner
def _spared(s, f, r):  # type: ignore[no-untyped-def]
    """Whether a running job can be preempted from now on."""
    if f.p[0].again <= s.g[0].now:
        f.p[0].again = np.inf
        return True
    if f.p[0].preempt != P_NONE:
        for k in range(r.n[0]):
            j = r.job[k]
            if f.x[j].exempt > 0 and s.jobs[j].start + f.x[j].exempt == s.g[0].now:
                return True
    return False


@inner
def _follow(s, f, r):  # type: ignore[no-untyped-def]
    """Run only the scripted passes of this second."""
    p, now = f.p[0], s.g[0].now
    p.tick = np.inf
    take_in(s, f, r)
    while p.script < f.script_t.size and f.script_t[p.script] <= now:
        kind = f.script_kind[p.script]
        p.script += 1
        if kind == S_PRIORITY:
            p.tick = now
            calculate(s, f, r, now)
            p.tick = np.inf
        elif kind == S_BACKFILL:
            backfill_pass(s, f, r)
        else:
            main_pass(s, f, r, kind == S_FULL)
        take_in(s, f, r)
    if p.script < f.script_t.size:
        named_timer(s, 0, f.script_t[p.script])


@inner
def decide(s, f, r):  # type: ignore[no-untyped-def]
    """Run the scheduler at this instant."""
    g, p = s.g[0], f.p[0]
    p.seen = 0
    refresh(s, f)
    if f.script_t.size > 0:
        _follow(s, f, r)
        return
    if calculate(s, f, r, g.now):
        _changed(s, f)
    freed, came = take_in(s, f, r)
    if p.waiting > 0:
        if freed or came or _spared(s, f, r):
            _changed(s, f)
            p.main_at = min(p.main_at, max(g.now, p.main_last + max(p.min_interval, p.delay)))
        _passes(s, f, r)
    if p.waiting > 0:
        _wake(s, f, r)
    else:
        p.full_due = p.bf_due = 0
        p.main_at = np.inf


@compiled
def run(s, f, r, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(s, (f, r), until, steps, decide=decide)
