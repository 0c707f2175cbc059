"""Preemption by partition or by QOS, compiled: which jobs a job may preempt, and the choice of victims.

Source: slurm.conf(5) (PreemptType, PreemptMode, PreemptExemptTime), SchedMD's page *Preemption*; _run_now of
src/plugins/select/cons_common/job_test.c of 22.05.8 was read for the order in which victims are tried.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.preemption_kernel import goal_at, must_go_on, preempt
from gpuctl.replay.engine.state import ABORT, NOW, SUSPENDING
from gpuctl.replay.policies.slurm.node_kernel import THEN, as_now, has, mark_choice, place, release
from gpuctl.replay.policies.slurm.records_kernel import (
    M_CANCEL,
    M_OFF,
    M_SUSPEND,
    P_NONE,
    P_PARTITION,
    R_CANCELLED,
    R_PREEMPTED,
)

_LAST = 99_999
"""Marks the victim without which the preemptor did not fit: it comes first when victims are sorted again."""


@inner
def preemption_mode(f, j):  # type: ignore[no-untyped-def]
    """The mode in which a job is preempted."""
    own = f.p[0].mode
    return own if own >= 0 else NOW if f.x[j].mode == M_SUSPEND else ABORT


@inner
def preempts(s, f, j, victim):  # type: ignore[no-untyped-def]
    """Whether a waiting job may take the nodes of a running one."""
    p, one, other = f.p[0], f.x[j], f.x[victim]
    if other.mode == M_OFF or other.gives_way >= 0 or s.jobs[victim].state == SUSPENDING:
        return False
    if s.g[0].now < s.jobs[victim].start + other.exempt:
        return False
    if p.preempt == P_PARTITION:
        may = other.tier < one.tier
    elif one.qos < 0 or other.qos < 0 or f.qos_preempts[one.qos, other.qos] == 0:
        may = False
    else:
        may = one.qos != other.qos or one.prio > other.prio
    if not may:
        return False
    how = preemption_mode(f, victim)
    if must_go_on(s, victim, how):
        p.again = min(p.again, goal_at(s, victim, how))
        return False
    return True


@inner
def candidates(s, f, r, j):  # type: ignore[no-untyped-def]
    """Put the jobs that a job may preempt into `victims`, in order of preemption; returns their number."""
    p = f.p[0]
    count = 0
    if p.preempt == P_NONE:
        return 0
    for k in range(r.n[0]):
        i = r.job[k]
        if not preempts(s, f, j, i):
            continue
        row = s.attempts[s.jobs[i].row]
        inside = False
        for piece in range(row.first, row.first + row.pieces):
            inside = inside or has(f.part_ok[f.x[j].part], s.pieces[piece].node)
        if not inside:
            continue
        # by tier or QOS, then fewest nodes; else the one submitted first
        key = -np.int64(s.jobs[i].start * 1000.0) if p.youngest == 1 else f.x[i].victim_prio + row.pieces
        at = count
        while at > 0 and (f.victim_key[at - 1] > key or (f.victim_key[at - 1] == key and f.victims[at - 1] > i)):
            f.victims[at], f.victim_key[at] = f.victims[at - 1], f.victim_key[at - 1]
            at -= 1
        f.victims[at], f.victim_key[at] = i, key
        count += 1
    return count


@inner
def _removed(s, f, j, count):  # type: ignore[no-untyped-def]
    """Remove victims, one after the other, until the job fits; returns their number, or -1."""
    as_now(s, f)
    for k in range(count):
        release(s, f, f.victims[k])
        if place(s, f, j, THEN):
            return k + 1
    return -1


@inner
def _sort_victims(s, f, taken, count):  # type: ignore[no-untyped-def]
    """Sort victims by nodes held in `choice`, descending; the last one removed comes first."""
    mark_choice(s, f.tmp)
    for k in range(count):
        f.victim_key[k] = 0
    for k in range(taken):
        row = s.attempts[s.jobs[f.victims[k]].row]
        for piece in range(row.first, row.first + row.pieces):
            if has(f.tmp, s.pieces[piece].node):
                f.victim_key[k] += 1
    f.victim_key[taken - 1] = _LAST
    for k in range(1, count):
        i, key = f.victims[k], f.victim_key[k]
        at = k
        while at > 0 and f.victim_key[at - 1] < key:
            f.victims[at], f.victim_key[at] = f.victims[at - 1], f.victim_key[at - 1]
            at -= 1
        f.victims[at], f.victim_key[at] = i, key


@inner
def _give_way(s, f, i, j):  # type: ignore[no-untyped-def]
    """Preempt one job for another; both are linked until the nodes are free."""
    x = f.x[i]
    x.gives_way = j
    f.x[j].victims += 1
    preempt(s, i, preemption_mode(f, i), R_CANCELLED if x.mode == M_CANCEL else R_PREEMPTED)


@inner
def make_room(s, f, r, j):  # type: ignore[no-untyped-def]
    """Preempt jobs so that one fits on the nodes in ``ok``; returns whether any were."""
    count = candidates(s, f, r, j)
    if count == 0:
        return False
    taken = _removed(s, f, j, count)
    turn = 0
    while taken > 0 and turn <= f.p[0].reorder and count > turn + 1:
        turn += 1
        _sort_victims(s, f, taken, count)
        taken = _removed(s, f, j, count)
    if taken < 0:
        return False
    mark_choice(s, f.tmp)
    for k in range(taken):
        i = f.victims[k]
        row = s.attempts[s.jobs[i].row]
        held = False
        for piece in range(row.first, row.first + row.pieces):
            held = held or has(f.tmp, s.pieces[piece].node)
        if held:
            _give_way(s, f, i, j)
    return True


@inner
def without_victims(s, f, r, j):  # type: ignore[no-untyped-def]
    """Whether a job would fit on the nodes in ``ok`` if all its possible victims were gone; row 1 keeps that state."""
    as_now(s, f)
    count = candidates(s, f, r, j)
    for k in range(count):
        release(s, f, f.victims[k])
    return count > 0 and place(s, f, j, THEN)
