"""The compiled plan of a backfill pass: reserved nodes over time, and when a job could start.

The plan is a list of time steps; in each, whole nodes are reserved for later jobs. It does not contain running jobs: a
job's start is found by removing them in the order of their planned ends.

Source: sched/backfill and select/cons_tres of 22.05.8 (node_space of backfill.c, _will_run_test of job_test.c), read
for facts: ends are tried in groups of 30, 60, 120 ... seconds from the first one on.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.resource_kernel import units_of
from gpuctl.replay.engine.state import CONSOLIDATE
from gpuctl.replay.policies.slurm.node_kernel import (
    NOW,
    THEN,
    as_now,
    biggest,
    copy_set,
    counted,
    fill,
    has,
    place,
    release,
    room,
    runs_on,
    usable,
)
from gpuctl.replay.policies.slurm.preempt_kernel import preempts, without_victims
from gpuctl.replay.policies.slurm.records_kernel import FIRST, P_NONE

GROUP_S = 30.0
"""Seconds of the first group of ends."""

_NONE = np.uint64(0)

# ---- steps


@inner
def clear_took(f, k):  # type: ignore[no-untyped-def]
    """Clear the amounts taken of a pool in a step."""
    for resource in range(f.step_took.shape[1]):
        f.step_took[k, resource] = 0


@inner
def _copy_step(f, of, to):  # type: ignore[no-untyped-def]
    """Copy the reservations of a step to another."""
    for word in range(f.ok.size):
        f.step_ok[to, word] = f.step_ok[of, word]
    for resource in range(f.step_took.shape[1]):
        f.step_took[to, resource] = f.step_took[of, resource]


@inner
def clear_plan(s, f):  # type: ignore[no-untyped-def]
    """Start an empty plan."""
    p = f.p[0]
    now = s.g[0].now
    p.window_end = np.floor((now + p.bf_window) / p.bf_resolution) * p.bf_resolution
    p.steps = p.made = 1
    f.step_t[0] = np.floor(now / p.bf_resolution) * p.bf_resolution
    fill(f.step_ok[0], ~_NONE)
    clear_took(f, 0)


@inner
def end_of(f, k):  # type: ignore[no-untyped-def]
    """When a step ends; the last one at the end of the window."""
    return f.step_t[k + 1] if k + 1 < f.p[0].steps else f.p[0].window_end


@inner
def _insert(f, at, t):  # type: ignore[no-untyped-def]
    """Let a step end at `t`, and one like it begin there."""
    p = f.p[0]
    for k in range(p.steps, at + 1, -1):
        f.step_t[k] = f.step_t[k - 1]
        _copy_step(f, k - 1, k)
    f.step_t[at + 1] = t
    _copy_step(f, at, at + 1)
    p.steps += 1
    p.made += 1


@inner
def cut(f, t):  # type: ignore[no-untyped-def]
    """Cut the plan at `t`; returns the step, or the number of steps if `t` is past the window."""
    p = f.p[0]
    if t >= p.window_end:
        return p.steps
    a, b = 0, p.steps - 1
    while a < b:
        middle = (a + b + 1) >> 1
        if f.step_t[middle] <= t:
            a = middle
        else:
            b = middle - 1
    if f.step_t[a] >= t:
        return a
    _insert(f, a, t)
    return a + 1


@inner
def between(f, begin, end):  # type: ignore[no-untyped-def]
    """Cut the plan at two seconds, rounded down to ``bf_resolution``; the steps between them, first and last + 1."""
    p = f.p[0]
    begin = max(np.floor(begin / p.bf_resolution) * p.bf_resolution, f.step_t[0])
    end = max(np.floor(end / p.bf_resolution) * p.bf_resolution, begin + p.bf_resolution)
    return cut(f, begin), cut(f, end)


@inner
def _same_reservations(f, a, b):  # type: ignore[no-untyped-def]
    """Whether two steps have the same reservations."""
    for word in range(f.ok.size):
        if f.step_ok[a, word] != f.step_ok[b, word]:
            return False
    return True


@inner
def keep(f, begin, end, words):  # type: ignore[no-untyped-def]
    """Reserve nodes for a job, between seconds rounded down to ``bf_resolution``, for at least a given time.

    The number of steps follows Slurm's count, which ends a pass: a reservation at the plan's start leaves an empty step
    before it, and of equal neighbours one is dropped, whose place is not reused.
    """
    p = f.p[0]
    begin = max(np.floor(begin / p.bf_resolution) * p.bf_resolution, f.step_t[0])
    end = max(np.floor(end / p.bf_resolution) * p.bf_resolution, begin + p.bf_resolution)
    k = 0
    while k < p.steps and end_of(f, k) < begin:
        k += 1
    if k == p.steps:
        return
    drop = max(k - 1, 0)
    if end_of(f, k) > begin:
        _insert(f, k, begin)
    k += 1
    while k < p.steps:
        if end < end_of(f, k):
            _insert(f, k, end)
        for word in range(words.size):
            f.step_ok[k, word] &= ~words[word]
        k += 1
        if end == end_of(f, k - 1):
            break
    # only up to the step after the reservation, and only the first two
    while drop < k and drop + 1 < p.steps:
        if _same_reservations(f, drop, drop + 1):
            p.steps -= 1
            for later in range(drop + 1, p.steps):
                f.step_t[later] = f.step_t[later + 1]
                _copy_step(f, later + 1, later)
            break
        drop += 1


@inner
def overlaps(f, begin, end, words):  # type: ignore[no-untyped-def]
    """Whether any of the nodes is reserved in that time, rounded as a reservation would be."""
    p = f.p[0]
    begin = np.floor(begin / p.bf_resolution) * p.bf_resolution
    end = np.floor(end / p.bf_resolution) * p.bf_resolution
    for k in range(p.steps):
        if end_of(f, k) > begin and f.step_t[k] < end:
            for word in range(words.size):
                if words[word] & ~f.step_ok[k, word] != _NONE:
                    return True
    return False


@inner
def unreserved(f, j, begin):  # type: ignore[no-untyped-def]
    """Set ``ok`` to the nodes of a job's partition without reservations while it would run from `begin` on.

    Returns:
        a later second with further candidates, the end of the first step after which there are any; 0 for none.
    """
    p = f.p[0]
    usable(f, j)
    copy_set(f.tmp, f.ok)
    end = begin + f.x[j].plan
    later = 0.0
    for k in range(p.steps):
        ends = end_of(f, k)
        if ends <= begin:
            continue
        if later == 0 and k + 1 < p.steps:
            for word in range(f.ok.size):
                if f.tmp[word] & f.step_ok[k + 1, word] & ~(f.ok[word] & f.step_ok[k, word]) != _NONE:
                    later = ends
                    break
        if f.step_t[k] > end:
            break
        for word in range(f.ok.size):
            f.ok[word] &= f.step_ok[k, word]
    return later


# ---- when a job could start


@inner
def _easy_to_see(s, f, j):  # type: ignore[no-untyped-def]
    """Whether a job fits only on a single node with room for all of it."""
    x = f.x[j]
    units = units_of(s, j)
    if units <= 1 or s.nodes.size == 1:
        return True
    return x.nodes <= 1 and (x.nodes == 1 or x.how == CONSOLIDATE or x.how == FIRST) and units <= biggest(s, f, j)


@inner
def _holds(s, f, j, i, units):  # type: ignore[no-untyped-def]
    """Whether a node just left by a job in row 1 holds all of another job."""
    row = s.attempts[s.jobs[i].row]
    for k in range(row.first, row.first + row.pieces):
        number = s.pieces[k].node
        if has(f.ok, number) and room(s, f, j, THEN, number) >= units:
            return True
    return False


@inner
def guess(s, f, end):  # type: ignore[no-untyped-def]
    """Assumed end of a job that is past its planned end."""
    return max(end + f.p[0].kill_wait, s.g[0].now + 1.0)


@inner
def _has_priority(s, f, j, i):  # type: ignore[no-untyped-def]
    return f.p[0].preempt != P_NONE and preempts(s, f, j, i)


@inner
def _after_ends(s, f, r, j, latest):  # type: ignore[no-untyped-def]
    """The planned end after which a job fits on the nodes in ``ok``; row 1 holds the free resources before it.

    Returns:
        the second; inf if there is none, or it is after `latest`.
    """
    p = f.p[0]
    single = _easy_to_see(s, f, j)
    units = units_of(s, j)
    first, window = -1.0, GROUP_S
    k = 0
    while k < r.n[0]:
        last, hit = -1.0, not single
        while k < r.n[0]:
            i = r.job[k]
            end = r.end[k]
            if p.coarse == 0 and last >= 0 and end > max(last, s.g[0].now):
                break
            k += 1
            if not runs_on(s, f, i) or _has_priority(s, f, j, i):
                continue
            if first < 0:
                first = (np.floor(end / GROUP_S) + 1.0) * GROUP_S
            release(s, f, i)
            last = end
            hit = hit or _holds(s, f, j, i, units)
            # Slurm tests the next job, wherever it runs, rather than the next one removed
            if p.coarse == 1 and k < r.n[0] and r.end[k] > first + window:
                break
        if last < 0 or last > latest:
            break
        if p.coarse == 1:
            window = window + p.window_add if p.window_add > 0 else window * 2.0
            while k < r.n[0] and r.end[k] > first + window:
                window = window + p.window_add if p.window_add > 0 else window * 2.0
        if hit and place(s, f, j, THEN):
            return last if last > s.g[0].now else guess(s, f, last)
    return np.inf


@inner
def could_start(s, f, r, j, now_only, latest):  # type: ignore[no-untyped-def]
    """When a job could start on the nodes in ``ok``, by planned ends; its nodes are in `choice`.

    Returns:
        the second, inf for never or after `latest` (with `now_only`: for not now), and whether it must preempt others.
    """
    now = s.g[0].now
    if counted(f.ok) == 0:
        return np.inf, False
    if f.bad[f.x[j].form] != f.p[0].freed and place(s, f, j, NOW):
        return now, False
    if f.p[0].preempt != P_NONE:
        if without_victims(s, f, r, j):
            return now, True
    elif not now_only:
        as_now(s, f)
    return (np.inf if now_only else _after_ends(s, f, r, j, latest)), False
