"""Priorities of waiting jobs and their order, compiled; usage and fair-share as in slurmctld.

Priorities are computed at whole multiples of ``PriorityCalcPeriod`` for all jobs, and for a job at arrival. Usage is
decayed and charged at each of these times, even while no job waits, since the result depends on the length of periods;
all periods since the last event are processed at the next event.
"""

from __future__ import annotations

import sys

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.slurm import fairshare_kernel
from gpuctl.replay.policies.slurm.records_kernel import F_CLASSIC, F_NONE, F_TREE
from gpuctl.replay.policies.slurm.usage_kernel import charge, decayed_amount
from gpuctl.slurm.associations import USE_PARENT

_TINY = sys.float_info.min
_LEAST, _MOST = 1.0, 4294967295.0

# ---- the order


@inner
def before(f, a, b):  # type: ignore[no-untyped-def]
    """Whether job `a` goes before job `b`."""
    one, other = f.x[a], f.x[b]
    if one.level != other.level:
        return one.level > other.level
    if one.tier != other.tier:
        return one.tier > other.tier
    if one.prio != other.prio:
        return one.prio > other.prio
    if one.queued != other.queued:
        return one.queued < other.queued
    return a < b


@inner
def _place(f, j):  # type: ignore[no-untyped-def]
    a, b = 0, f.p[0].waiting
    while a < b:
        middle = (a + b) >> 1
        if before(f, f.line[middle], j):
            a = middle + 1
        else:
            b = middle
    return a


@inner
def into_line(f, j):  # type: ignore[no-untyped-def]
    """Insert a waiting job at its position in the order."""
    p = f.p[0]
    at = _place(f, j)
    for k in range(p.waiting, at, -1):
        f.line[k] = f.line[k - 1]
    f.line[at] = j
    p.waiting += 1
    f.x[j].in_line = 1
    f.part[f.x[j].part].waiting += 1


@inner
def out_of_line(f, at):  # type: ignore[no-untyped-def]
    """Remove the job at a position from the line."""
    p = f.p[0]
    j = f.line[at]
    p.waiting -= 1
    for k in range(at, p.waiting):
        f.line[k] = f.line[k + 1]
    f.x[j].in_line = 0
    f.part[f.x[j].part].waiting -= 1


@inner
def _merge(f, a, b, c):  # type: ignore[no-untyped-def]
    """Merge two sorted parts of the line."""
    for k in range(a, b):
        f.spare[k] = f.line[k]
    left, right, at = a, b, a
    while left < b and right < c:
        if before(f, f.line[right], f.spare[left]):
            f.line[at] = f.line[right]
            right += 1
        else:
            f.line[at] = f.spare[left]
            left += 1
        at += 1
    while left < b:
        f.line[at] = f.spare[left]
        left += 1
        at += 1


@inner
def _run_from(f, a):  # type: ignore[no-untyped-def]
    """End of the sorted part of the line that begins at `a`."""
    b = a + 1
    while b < f.p[0].waiting and not before(f, f.line[b], f.line[b - 1]):
        b += 1
    return b


@inner
def sort(f):  # type: ignore[no-untyped-def]
    """Sort the line by merging its sorted parts, as most of it is in order. Returns whether any job moved."""
    n = f.p[0].waiting
    moved = False
    while n > 1:
        a = 0
        parts = 0
        while a < n:
            b = _run_from(f, a)
            parts += 1
            if b < n:
                c = _run_from(f, b)
                _merge(f, a, b, c)
                moved = True
                a = c
            else:
                a = b
        if parts <= 1:
            break
    return moved


# ---- the jobs that wait or run, in the order of their rows


@inner
def activate(f, j, sign):  # type: ignore[no-untyped-def]
    """Add a job (1), or remove it (-1)."""
    p = f.p[0]
    a, b = 0, p.active
    while a < b:
        middle = (a + b) >> 1
        if f.active[middle] < j:
            a = middle + 1
        else:
            b = middle
    there = a < p.active and f.active[a] == j
    if sign > 0 and not there:
        for k in range(p.active, a, -1):
            f.active[k] = f.active[k - 1]
        f.active[a] = j
        p.active += 1
    elif sign < 0 and there:
        p.active -= 1
        for k in range(a, p.active):
            f.active[k] = f.active[k + 1]


# ---- usage


@inner
def _reset(f, t):  # type: ignore[no-untyped-def]
    p = f.p[0]
    while p.reset < f.resets.size and f.resets[p.reset] <= t:
        for k in range(f.raw.size):
            f.raw[k] = 0.0
        p.reset += 1


@inner
def _decay(f, t):  # type: ignore[no-untyped-def]
    p = f.p[0]
    _reset(f, t)
    if p.second != 1.0 and t > p.tick_last:
        left = max(p.second ** (t - p.tick_last), _TINY)
        for k in range(f.raw.size):
            f.raw[k] *= left


@inner
def _charge_running(s, f, r, t):  # type: ignore[no-untyped-def]
    p = f.p[0]
    since = p.tick_last
    whole = decayed_amount(t - since, 1.0, p.second)
    for k in range(r.n[0]):
        j = r.job[k]
        start = s.jobs[j].start
        if start <= since:
            charge(f.raw, f.parent, f.x[j].assoc, whole * f.x[j].rate)
        elif t > start:
            charge(f.raw, f.parent, f.x[j].assoc, decayed_amount(t - start, f.x[j].rate, p.second))


@inner
def _classic(s, f, t):  # type: ignore[no-untyped-def]
    """One calculation of classic fair-share: accounts, decay, then jobs in the order of Slurm's list."""
    p = f.p[0]
    fairshare_kernel.classic_accounts(
        f.shares, f.level_shares, f.is_user, f.parent, f.fair_parent, f.raw, f.norm_usage, f.effective, f.fresh
    )
    _decay(f, t)
    for k in range(p.active):
        j = f.active[k]
        x = f.x[j]
        if x.runs == 1:
            run_s = t - max(s.jobs[j].start, p.tick_last)
            if run_s > 0:
                charge(f.raw, f.parent, x.assoc, decayed_amount(run_s, x.rate, p.second))
        elif f.shares[x.assoc] != USE_PARENT:
            fairshare_kernel.classic_user(
                x.assoc, f.shares, f.level_shares, f.fair_parent, f.raw, f.norm_usage, f.effective, f.fresh
            )


@inner
def ended(s, f, j, t):  # type: ignore[no-untyped-def]
    """Charge a job that released its nodes for its run time since the last calculation."""
    p = f.p[0]
    if p.fair_share == F_NONE:
        return
    run_s = t - max(s.jobs[j].start, p.tick_last)
    if run_s > 0:
        charge(f.raw, f.parent, f.x[j].assoc, decayed_amount(run_s, f.x[j].rate, p.second))


@inner
def fair_share(f, of):  # type: ignore[no-untyped-def]
    """The fair-share factor of an association."""
    p = f.p[0]
    if p.fair_share == F_NONE:
        return 0.0
    if p.fair_share == F_TREE:
        if p.stale == 1:
            fairshare_kernel.fair_tree(
                f.first, f.children, f.shares, f.is_user, f.fair_parent, f.level_norm, False, f.raw,
                f.effective, f.level, f.factor,
            )  # fmt: skip
            p.stale = 0
        return f.factor[of]
    if f.shares[of] == USE_PARENT and f.is_user[of]:
        of = f.fair_parent[of]
    else:
        fairshare_kernel.classic_user(
            of, f.shares, f.level_shares, f.fair_parent, f.raw, f.norm_usage, f.effective, f.fresh
        )
    return 2.0 ** -((f.effective[of] / f.norm[of]) / p.dampening) if f.norm[of] > 0 else 0.0


# ---- priorities


@inner
def set_priority(f, j, t):  # type: ignore[no-untyped-def]
    """Compute a job's priority, with the order of sums of `gpuctl.replay.policies.slurm.priority`."""
    p, x = f.p[0], f.x[j]
    waited = max(np.floor(t) - np.floor(x.accrue), 0.0)
    age = waited / p.max_age if waited < p.max_age else 1.0
    total = x.site + age * p.weight_age + x.assoc_part
    if p.weight_fairshare > 0:
        total += fair_share(f, x.assoc) * p.weight_fairshare
    total = total + x.job_size + x.partition_part + x.qos_part + x.tres - x.nice
    found = np.int64(min(max(total, _LEAST), _MOST))
    x.prio = max(found, x.prio) if p.incr_only == 1 else found


@inner
def calculate(s, f, r, now):  # type: ignore[no-untyped-def]
    """Do the calculations that are due; returns whether the order of waiting jobs has changed."""
    p = f.p[0]
    if p.tick > now:
        return False
    while p.tick <= now:
        t = p.tick
        if p.fair_share == F_TREE:
            _decay(f, t)
            _charge_running(s, f, r, t)
        elif p.fair_share == F_CLASSIC:
            _classic(s, f, t)
        p.tick_last = t
        p.tick = t + p.calc_period
    p.stale = 1
    for k in range(p.waiting):
        set_priority(f, f.line[k], p.tick_last)
    return sort(f)
