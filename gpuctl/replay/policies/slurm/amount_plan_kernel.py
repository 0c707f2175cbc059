"""The compiled plan of a backfill pass if places do not matter: amounts over time instead of nodes.

A pool is one "node", so that reserving whole nodes would reserve all of it. Instead the amount that a job requests is
reserved, and the plan also contains running jobs, each to its planned end.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.slurm.backfill_plan_kernel import between, clear_plan, clear_took, cut, end_of, guess
from gpuctl.replay.policies.slurm.node_kernel import NOW, place, usable


@inner
def clear_amounts(s, f, r):  # type: ignore[no-untyped-def]
    """Start a plan that contains only running jobs."""
    p, now = f.p[0], s.g[0].now
    clear_plan(s, f)
    f.step_t[0] = min(f.step_t[0], now)
    for k in range(r.n[0]):
        end = r.end[k] if r.end[k] > now else guess(s, f, r.end[k])
        if end < p.window_end and end > f.step_t[p.steps - 1]:
            f.step_t[p.steps] = end
            clear_took(f, p.steps)
            p.steps += 1
    for k in range(r.n[0]):
        end = r.end[k] if r.end[k] > now else guess(s, f, r.end[k])
        row = s.attempts[s.jobs[r.job[k]].row]
        for step in range(p.steps):
            if f.step_t[step] >= end:
                break
            f.step_took[step, 0] += row.gpus
            if s.g[0].resources == 1:
                f.step_took[step, 1] += s.needs[row.first].cpu
                f.step_took[step, 2] += s.needs[row.first].mem


@inner
def _holds(s, f, j, k):  # type: ignore[no-untyped-def]
    """Whether a step has room for a job."""
    node = s.nodes[0]
    if f.step_took[k, 0] + s.jobs[j].gpus > node.cap:
        return False
    if s.g[0].resources == 0:
        return True
    ask, stock = s.asks[j], s.stock[0]
    return f.step_took[k, 1] + ask.cpu <= stock.cpu and f.step_took[k, 2] + ask.mem <= stock.mem


@inner
def amount_now(s, f, j):  # type: ignore[no-untyped-def]
    """Whether a job can start now without delaying reservations; its place is in `choice`."""
    usable(f, j)
    if not place(s, f, j, NOW):
        return False
    end = s.g[0].now + f.x[j].plan
    for k in range(f.p[0].steps):
        if f.step_t[k] >= end:
            return True
        if not _holds(s, f, j, k):
            return False
    return True


@inner
def amount_from(s, f, j):  # type: ignore[no-untyped-def]
    """The first second after now with room for a job for its planned time; inf for none."""
    p, now = f.p[0], s.g[0].now
    at = np.inf
    for k in range(p.steps):
        if end_of(f, k) <= now:
            continue
        if at < np.inf and f.step_t[k] >= at + f.x[j].plan:
            return at
        if not _holds(s, f, j, k):
            at = np.inf
        elif at == np.inf and f.step_t[k] > now:
            at = f.step_t[k]
    return at


@inner
def keep_amount(s, f, j, begin, end):  # type: ignore[no-untyped-def]
    """Reserve a job's request."""
    first, last = between(f, begin, end)
    for k in range(first, last):
        f.step_took[k, 0] += s.jobs[j].gpus
        if s.g[0].resources == 1:
            f.step_took[k, 1] += s.asks[j].cpu
            f.step_took[k, 2] += s.asks[j].mem


@inner
def take_amount(s, f, j):  # type: ignore[no-untyped-def]
    """Add a started job of the pool, which holds its request to its planned end."""
    now = s.g[0].now
    last = cut(f, now + f.x[j].plan)
    for k in range(last):
        f.step_took[k, 0] += s.jobs[j].gpus
        if s.g[0].resources == 1:
            f.step_took[k, 1] += s.asks[j].cpu
            f.step_took[k, 2] += s.asks[j].mem
