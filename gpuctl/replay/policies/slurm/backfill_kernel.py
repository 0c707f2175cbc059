"""The compiled backfill pass of Slurm's scheduler.

Sources: SchedMD's page *Scheduling Configuration Guide*, slurm.conf(5); _attempt_backfill of
src/plugins/sched/backfill/backfill.c of 22.05.8 was read for the rules of a reservation.

A pass makes reservations only to find jobs that may start now. So it first finds the jobs that could start now without
reservations, and ends as soon as its reservations leave none of them: further reservations would start no job.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.job_life_kernel import note
from gpuctl.replay.engine.state import D_RESERVE
from gpuctl.replay.policies.slurm.amount_plan_kernel import (
    amount_from,
    amount_now,
    clear_amounts,
    keep_amount,
    take_amount,
)
from gpuctl.replay.policies.slurm.backfill_plan_kernel import clear_plan, could_start, keep, overlaps, unreserved
from gpuctl.replay.policies.slurm.job_states_kernel import start
from gpuctl.replay.policies.slurm.limit_kernel import within
from gpuctl.replay.policies.slurm.main_pass_kernel import begin_pass, of_partition, start_preempting
from gpuctl.replay.policies.slurm.node_kernel import (
    NOW,
    copy_set,
    counted,
    fill,
    least_nodes,
    mark_choice,
    meets,
    place,
    usable,
)
from gpuctl.replay.policies.slurm.order_kernel import out_of_line
from gpuctl.replay.policies.slurm.preempt_kernel import without_victims
from gpuctl.replay.policies.slurm.records_kernel import P_NONE, R_BACKFILL, R_PREEMPTS, R_RESERVED

_NONE = np.uint64(0)
_LATER_S = 500.0
"""Assumed start of a job held up by limits if nothing else is known (``assoc_limit_stop``)."""

# ---- candidates to start now


@inner
def _hopes(s, f, r, kind):  # type: ignore[no-untyped-def]
    """Whether a job of a kind could start now besides reservations; its nodes are stored in `kind_ok`."""
    p = f.p[0]
    j = f.kinds[kind].job
    form = f.x[j].form
    if f.bad[form] == p.freed and p.preempt == P_NONE:
        return False
    unreserved(f, j, s.g[0].now)
    if f.bad[form] != p.freed and (amount_now(s, f, j) if p.counts == 1 else place(s, f, j, NOW)):
        mark_choice(s, f.kind_ok[kind])
        return True
    if p.preempt != P_NONE and without_victims(s, f, r, j):
        # which nodes it would take depends on running jobs: check again whenever anything changes
        copy_set(f.kind_ok[kind], f.part_ok[f.x[j].part])
        return True
    return False


@inner
def _new(kind, j, run):  # type: ignore[no-untyped-def]
    """Reset a kind's results of an earlier pass."""
    kind.mark, kind.jobs, kind.job, kind.alive, kind.none_at = run, 0, j, 0, -1


@inner
def _count_startable(s, f, r, run):  # type: ignore[no-untyped-def]
    """Count, by kind, the jobs that could start now without reservations."""
    p = f.p[0]
    p.alive = p.hopes = 0
    for at in range(p.waiting):
        j = f.line[at]
        x = f.x[j]
        kind = f.kinds[x.kind]
        if kind.mark != run:
            _new(kind, j, run)
            usable(f, j)
            free = f.bad[x.form] != p.freed
            if free and not place(s, f, j, NOW):
                f.bad[x.form] = p.freed
            kind.alive = 1 if _hopes(s, f, r, x.kind) else 0
            if kind.alive == 1:
                f.alive[p.alive] = x.kind
                p.alive += 1
        if kind.alive == 1 and x.victims == 0:
            kind.jobs += 1
            p.hopes += 1


@inner
def _recheck_kinds(s, f, r, words):  # type: ignore[no-untyped-def]
    """After free nodes changed, find the kinds that can still start now."""
    p = f.p[0]
    p.version += 1
    left = 0
    for k in range(p.alive):
        number = f.alive[k]
        kind = f.kinds[number]
        if kind.jobs > 0 and (not meets(f.kind_ok[number], words) or _hopes(s, f, r, number)):
            f.alive[left] = number
            left += 1
        else:
            kind.alive = 0
            p.hopes -= kind.jobs
            kind.jobs = 0
    p.alive = left


# ---- limits of a pass


@inner
def _too_many(f, mark, tested, key, most, run):  # type: ignore[no-untyped-def]
    if most == 0:
        return False
    if mark[key] != run:
        mark[key], tested[key] = run, 0
    return tested[key] >= most


@inner
def _passed_over(f, j, run):  # type: ignore[no-untyped-def]
    """Whether ``bf_max_job_user``, ``_part``, ``_user_part`` or ``_assoc`` excludes a job; counts it otherwise."""
    p, x = f.p[0], f.x[j]
    pair = x.user * f.part.size + x.part
    part = of_partition(f, x.part, run)
    if _too_many(f, f.pair_mark, f.pair_tested, pair, p.bf_user_part, run):
        return True
    if p.bf_part > 0 and part.tested >= p.bf_part:
        return True
    if _too_many(f, f.assoc_mark, f.assoc_tested, x.assoc, p.bf_assoc, run):
        return True
    if _too_many(f, f.user_mark, f.user_tested, x.user, p.bf_user, run):
        return True
    part.tested += 1
    f.pair_tested[pair] += 1
    f.assoc_tested[x.assoc] += 1
    f.user_tested[x.user] += 1
    return False


@inner
def _now_only(s, f, j, run):  # type: ignore[no-untyped-def]
    """Whether a job gets no reservation: it starts now or is skipped."""
    p, x = f.p[0], f.x[j]
    least = x.min_prio if x.min_prio > 0 else p.bf_min_prio
    if x.prio < least or s.g[0].now - x.accrue < p.bf_min_age:
        return True
    return p.bf_part_reserve > 0 and of_partition(f, x.part, run).reserved >= p.bf_part_reserve


# ---- one job


@inner
def _try_pool(s, f, r, j, now_only):  # type: ignore[no-untyped-def]
    """As `_try`, if amounts rather than nodes are reserved."""
    p, now = f.p[0], s.g[0].now
    p.later = 0.0
    if f.bad[f.x[j].form] != p.freed and amount_now(s, f, j):
        return now, False, True
    usable(f, j)
    if p.preempt != P_NONE and without_victims(s, f, r, j):
        return now, True, True
    at = np.inf if now_only else amount_from(s, f, j)
    if at > now + p.bf_window:
        return np.inf, False, True
    return at, False, True


@inner
def _try(s, f, r, j, now_only):  # type: ignore[no-untyped-def]
    """Find when and where a job could start so that no reservation is delayed; its nodes are in `choice`.

    Returns:
        the second; inf if there is none inside the window; whether it preempts; whether it counts as tested.
    """
    p, x, now = f.p[0], f.x[j], s.g[0].now
    if p.counts == 1:
        return _try_pool(s, f, r, j, now_only)
    from_s = now
    nodes = least_nodes(s, f, j)
    tested = False
    while True:
        later = unreserved(f, j, from_s)
        at, preempting = np.inf, False
        if counted(f.ok) >= nodes:
            tested = True
            at, preempting = could_start(s, f, r, j, now_only, later if later > 0 else np.inf)
            p.later = later
        if at == np.inf:
            if later == 0 or now_only:
                return np.inf, False, tested
            from_s = later
            continue
        at = max(at, from_s)
        if at <= now:
            return at, preempting, tested
        if now_only:
            return np.inf, False, tested
        if later > 0 and at > later:
            from_s = later
            continue
        if at > now + p.bf_window:
            return np.inf, False, tested
        mark_choice(s, f.tmp)
        if overlaps(f, at, at + x.plan, f.tmp):
            from_s = at
            continue
        return at, False, tested


@inner
def _reserve(s, f, r, j, at, run):  # type: ignore[no-untyped-def]
    """Reserve the nodes in `choice` for a job."""
    p = f.p[0]
    part = of_partition(f, f.x[j].part, run)
    if p.bf_part_reserve > 0 and part.reserved >= p.bf_part_reserve:
        return
    part.reserved += 1
    if p.counts == 1:
        fill(f.off, ~_NONE)
    else:
        mark_choice(s, f.off)
    if p.first == 1 and p.logged_head != j:
        # only the first one of a pass is logged, once
        p.logged_head = j
        note(s, D_RESERVE, j, s.jobs[j].gpus, -1, R_RESERVED)
    p.first = 0
    if p.counts == 1:
        keep_amount(s, f, j, at, at + f.x[j].plan)
    else:
        keep(f, at, at + f.x[j].plan, f.off)
    _recheck_kinds(s, f, r, f.off)


@inner
def backfill_pass(s, f, r):  # type: ignore[no-untyped-def]
    """Start jobs that delay no reservation, and reserve for those that cannot start.

    Returns:
        whether the next pass may start a job without an event before it: some jobs could start now without
            reservations, and reservations shift with time.
    """
    p, now = f.p[0], s.g[0].now
    run = begin_pass(f)
    if p.counts == 1:
        clear_amounts(s, f, r)
    else:
        clear_plan(s, f)
    _count_startable(s, f, r, run)
    again = p.hopes > 0
    at, tests, starts = 0, 0, 0
    p.first = 1
    while at < p.waiting and p.hopes > 0 and tests < p.bf_tests:
        j = f.line[at]
        x = f.x[j]
        kind = f.kinds[x.kind]
        if kind.mark != run:
            _new(kind, j, run)
        if kind.alive == 1 and kind.jobs > 0 and x.victims == 0:
            kind.jobs -= 1
            p.hopes -= 1
        at += 1
        if x.victims > 0 or (p.assoc_stop == 0 and not within(f, j)):
            continue
        now_only = _now_only(s, f, j, run)
        if _passed_over(f, j, run):
            continue
        if kind.none_at == p.version and kind.alive == 0:
            # one of its kind was tested, and nothing has been reserved or started since
            tests += kind.tested
            continue
        second, preempting, tested = _try(s, f, r, j, now_only)
        tests += tested
        if second == np.inf:
            if not now_only:
                kind.none_at, kind.tested = p.version, tested
            continue
        if second <= now:
            if within(f, j):
                if preempting:
                    _, ran = start_preempting(s, f, r, at - 1, R_PREEMPTS)
                else:
                    out_of_line(f, at - 1)
                    start(s, f, r, j, R_BACKFILL)
                    ran = True
                if ran and p.counts == 1:
                    take_amount(s, f, j)
                if ran:
                    at -= 1
                    starts += 1
                if preempting:
                    fill(f.off, ~_NONE)
                else:
                    mark_choice(s, f.off)
                _recheck_kinds(s, f, r, f.off)
                if p.bf_starts > 0 and starts >= p.bf_starts:
                    return again
                continue
            second = p.later if p.later > now else now + _LATER_S
        if p.made >= p.bf_records:
            return again
        _reserve(s, f, r, j, second, run)
    return again
