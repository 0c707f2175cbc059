"""The compiled preemption monitor of the capacity scheduler (ProportionalCapacityPreemptionPolicy).

A round computes, level by level, each queue's ideal amount if requests were shared by guarantees, takes a part of the
excess of the others, and chooses containers for it: marked first, killed later.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.preemption_kernel import goal_at, must_go_on, preempt
from gpuctl.replay.engine.state import RUNNING, SUSPENDING
from gpuctl.replay.policies.yarn.amounts_kernel import (
    MILLI,
    add_to,
    at,
    compare,
    divide,
    fits_in,
    larger,
    least,
    minus,
    most,
    plus,
    put,
    smaller,
    times,
    times_up,
)
from gpuctl.replay.policies.yarn.capacity_apps_kernel import R_PREEMPTED
from gpuctl.replay.policies.yarn.capacity_limits_kernel import unreserve, user_limit
from gpuctl.replay.policies.yarn.capacity_lists_kernel import cluster, running_list, those_in
from gpuctl.replay.policies.yarn.capacity_tree_kernel import ACTIVE
from gpuctl.replay.policies.yarn.linked_lists_kernel import BEFORE, last

IDEAL, NET_PENDING, PENDING, TAKE, REST, FIXED, EXTRA, SET = range(8)
"""Kinds of amounts in `Tree.amounts`: ideal assignment, pending less reservations, pending, amount to take, amount to
take before the natural termination factor, extra that must stay, extra that may go, scratch."""


# ---- requests of queues


@inner
def _pending(f):  # type: ignore[no-untyped-def]
    """Requests of each leaf's users within their limits: all, and those not reserved yet."""
    for u in range(f.users.size):
        put(f.user_net, u, at(f.user_asks, u))
    f.p[0].sequence += 1
    stamp = f.p[0].sequence
    for number in range(f.nodes.size):
        a = f.nodes[number].app
        if a >= 0 and f.apps[a].counted_pass != stamp:
            f.apps[a].counted_pass = stamp
            add_to(f.user_net, f.apps[a].user, least(at(f.app_asks, a), at(f.app_reserved, a)), -1)
    for q in range(f.queues.size):
        if f.queues[q].leaf == 0:
            continue
        limit = user_limit(f, q)
        for u in range(f.queues[q].users, f.queues[q].users_end):
            room = most(minus(limit, at(f.user_used, u)), (0, 0, 0))
            add_to(f.amounts[PENDING], q, least(room, at(f.user_asks, u)), 1)
            add_to(f.amounts[NET_PENDING], q, least(room, at(f.user_net, u)), 1)


@inner
def _gather(f):  # type: ignore[no-untyped-def]
    """Pending amounts of all queues, and their use beyond their guarantees."""
    cap = cluster(f)
    for q in range(f.queues.size):
        for kind in (NET_PENDING, PENDING, EXTRA, FIXED, TAKE, REST, IDEAL):
            put(f.amounts[kind], q, (0, 0, 0))
    _pending(f)
    for k in range(f.queues.size):
        q = f.queues.size - 1 - k
        queue = f.queues[q]
        extra = minus(at(f.used, q), at(f.due, q))
        if compare(cap, extra, (0, 0, 0)) < 0:
            extra = (0, 0, 0)
        if queue.leaf == 1:
            put(f.amounts[FIXED if queue.no_preemption == 1 else EXTRA], q, extra)
        else:
            below = at(f.amounts[EXTRA], q)
            put(f.amounts[FIXED], q, (0, 0, 0) if compare(cap, below, extra) >= 0 else minus(extra, below))
            put(f.amounts[EXTRA], q, smaller(cap, below, extra))
        if queue.parent >= 0:
            add_to(f.amounts[PENDING], queue.parent, at(f.amounts[PENDING], q), 1)
            add_to(f.amounts[NET_PENDING], queue.parent, at(f.amounts[NET_PENDING], q), 1)
            add_to(f.amounts[EXTRA], queue.parent, at(f.amounts[EXTRA], q), 1)


# ---- the ideal assignment: amounts of siblings are compared by their shares of their parent's ideal amount


@inner
def _part(f, cap, q):  # type: ignore[no-untyped-def]
    if compare(cap, at(f.due, q), (0, 0, 0)) <= 0:
        return np.float32(2147483647.0)
    return divide(cap, at(f.amounts[IDEAL], q), at(f.due, q))


@inner
def _needier(f, cap, a, b):  # type: ignore[no-untyped-def]
    """-1, 0, 1: whether one queue is served before the other."""
    x, y = _part(f, cap, a), _part(f, cap, b)
    p, q = f.queues[a].priority, f.queues[b].priority
    if p != q and f.queues[f.queues[a].parent].respects == 1 and (x < 1) == (y < 1):
        return -1 if p > q else 1
    if x == y:
        return 0
    return -1 if x < y else 1


@inner
def _offer(f, cap, q, amount):  # type: ignore[no-untyped-def]
    """The part of an offer that a queue takes."""
    ideal = at(f.amounts[IDEAL], q)
    below_most = most(minus(at(f.most, q), ideal), (0, 0, 0))
    pending = minus(plus(at(f.used, q), at(f.amounts[NET_PENDING], q)), ideal)
    taken = smaller(cap, below_most, smaller(cap, amount, pending))
    if f.queues[q].leaf == 1:
        bound = larger(cap, minus(larger(cap, at(f.used, q), at(f.due, q)), ideal), (0, 0, 0))
        taken = smaller(cap, taken, bound)
    taken = least(taken, amount)
    add_to(f.amounts[IDEAL], q, taken, 1)
    return taken


@inner
def _part_of(value, by, unit):  # type: ignore[no-untyped-def]
    return np.int64(np.ceil(value / unit * by)) * unit


@inner
def _share_among(f, cap, parent, with_guarantee, left):  # type: ignore[no-untyped-def]
    """Distribute the rest among a queue's children, by their guarantees; returns the remainder."""
    queue = f.queues[parent]
    for k in range(queue.first, queue.first + queue.count):
        q = f.children[k]
        f.amounts[SET, q, 0] = 0
        if (compare(cap, at(f.due, q), (0, 0, 0)) > 0) != with_guarantee:
            continue
        if compare(cap, at(f.used, q), at(f.due, q)) > 0:
            put(f.amounts[IDEAL], q, plus(least(at(f.due, q), at(f.used, q)), at(f.amounts[FIXED], q)))
        else:
            put(f.amounts[IDEAL], q, at(f.used, q))
        left = minus(left, at(f.amounts[IDEAL], q))
        if compare(cap, at(f.amounts[IDEAL], q), plus(at(f.used, q), at(f.amounts[PENDING], q))) < 0:
            f.amounts[SET, q, 0] = 1
    while compare(cap, left, (0, 0, 0)) > 0:
        first, total, count = -1, (0, 0, 0), 0
        for k in range(queue.first, queue.first + queue.count):
            q = f.children[k]
            if f.amounts[SET, q, 0] == 1:
                total = plus(total, at(f.due, q))
                count += 1
                if first < 0 or _needier(f, cap, q, first) < 0:
                    first = q
        if first < 0:
            break
        # children with equal ratios are served together
        for k in range(queue.first, queue.first + queue.count):
            q = f.children[k]
            f.amounts[SET, q, 1] = f.amounts[SET, q, 0] == 1 and _needier(f, cap, q, first) == 0
        taken = (0, 0, 0)
        for k in range(queue.first, queue.first + queue.count):
            q = f.children[k]
            if f.amounts[SET, q, 1] == 0:
                continue
            for r in range(3):
                if not with_guarantee:
                    f.weight[q, r] = np.float32(1.0) / np.float32(count)
                elif total[r] != 0:
                    f.weight[q, r] = np.float32(np.float32(f.due[q, r]) / np.float32(total[r]))
            amount = (
                _part_of(left[0], f.weight[q, 0], 1),
                _part_of(left[1], f.weight[q, 1], MILLI),
                _part_of(left[2], f.weight[q, 2], 1),
            )
            some = _offer(f, cap, q, least(amount, minus(left, taken)))
            if compare(cap, some, (0, 0, 0)) <= 0:
                f.amounts[SET, q, 0] = 0
            taken = plus(taken, some)
        left = minus(left, taken)
    return left


@inner
def _distribute(f, parent, allowed):  # type: ignore[no-untyped-def]
    """Ideal assignments of a queue's children, and the amount to take from each, relative to the queue."""
    cap = at(f.amounts[IDEAL], parent)
    queue = f.queues[parent]
    left = _share_among(f, cap, parent, True, at(f.amounts[IDEAL], parent))
    if compare(cap, left, (0, 0, 0)) > 0:
        _share_among(f, cap, parent, False, left)
    needed = (0, 0, 0)
    for k in range(queue.first, queue.first + queue.count):
        q = f.children[k]
        if compare(cap, at(f.used, q), at(f.amounts[IDEAL], q)) > 0:
            needed = plus(needed, minus(at(f.used, q), at(f.amounts[IDEAL], q)))
    scale = np.float32(1.0)
    if compare(cap, needed, allowed) > 0:
        scale = divide(cap, allowed, needed)
    for k in range(queue.first, queue.first + queue.count):
        q = f.children[k]
        stays = smaller(cap, plus(at(f.used, q), at(f.amounts[PENDING], q)), at(f.due, q))
        stays = larger(cap, stays, at(f.amounts[IDEAL], q))
        if compare(cap, at(f.used, q), stays) > 0:
            put(f.amounts[REST], q, times(minus(at(f.used, q), stays), scale))


@inner
def reckon(f, allowed):  # type: ignore[no-untyped-def]
    """Write the amount that each leaf loses in this round into `amounts[TAKE]`. Returns whether any loses something."""
    p, cap = f.p[0], cluster(f)
    _gather(f)
    put(f.amounts[IDEAL], 0, at(f.due, 0))
    some = False
    for q in range(f.queues.size):
        if f.queues[q].leaf == 0:
            _distribute(f, q, allowed)
        elif f.queues[q].no_preemption == 0 and compare(cap, at(f.used, q), times(at(f.due, q), 1.0 + p.ignored)) > 0:
            rest = at(f.amounts[REST], q)
            if compare(cap, rest, (0, 0, 0)) > 0:
                rest = times_up(rest, p.natural, (1, MILLI, 0))
                put(f.amounts[TAKE], q, rest)
                some = some or compare(cap, rest, (0, 0, 0)) > 0
    return some


# ---- choice of containers


@inner
def _helps(f, rest, amount, allowed):  # type: ignore[no-untyped-def]
    """Whether taking a container brings a queue closer to its amount to lose."""
    if not (rest[0] > 0 or rest[1] > 0 or rest[2] > 0) or not fits_in(amount, allowed):
        return False
    return compare(cluster(f), most(minus(rest, amount), (0, 0, 0)), most(rest, (0, 0, 0))) < 0


@inner
def _no_zero(a):  # type: ignore[no-untyped-def]
    return (a[0] if a[0] != 0 else -1, a[1] if a[1] != 0 else -1, a[2] if a[2] != 0 else -1)


@inner
def _choose(s, f, j, stamp):  # type: ignore[no-untyped-def]
    """Mark a job, or kill it if marked long enough; returns whether it is killed."""
    p, job, now = f.p[0], f.jobs[j], s.g[0].now
    if np.isnan(job.mark):
        job.mark = now
        f.marks[p.listed] = j
        p.listed += 1
        p.marked += 1
        job.chosen = stamp
        return False
    job.chosen = stamp
    return job.mark + p.wait <= now + 1e-9


@inner
def _drop_reservations(s, f, a, rest, allowed):  # type: ignore[no-untyped-def]
    for number in range(f.nodes.size):
        if f.nodes[number].app == a and (rest[0] > 0 or rest[1] > 0 or rest[2] > 0):
            amount = at(f.held, number)
            if _helps(f, rest, amount, allowed):
                rest, allowed = _no_zero(minus(rest, amount)), minus(allowed, amount)
            unreserve(s, f, number)
    return rest, allowed


@inner
def _kill(s, f, j):  # type: ignore[no-untyped-def]
    p = f.p[0]
    p.marked -= 1
    f.jobs[j].mark = np.nan
    preempt(s, j, p.mode, R_PREEMPTED)
    p.version += 1


@inner
def _may_go(s, f, j, stamp):  # type: ignore[no-untyped-def]
    """Whether a job may be chosen in this round; for a protected job, the monitor wakes when it may."""
    p = f.p[0]
    if s.jobs[j].state != RUNNING or f.jobs[j].chosen == stamp:
        return False
    if must_go_on(s, j, p.mode):
        p.again = min(p.again, goal_at(s, j, p.mode))
        return False
    return True


@inner
def _take_from(s, f, q, allowed, stamp):  # type: ignore[no-untyped-def]
    """Choose containers of a leaf: of the last application first, the newest first, masters last of all."""
    cap = cluster(f)
    rest = _no_zero(at(f.amounts[TAKE], q))
    skipped = (0, 0, 0)
    a = last(f.by_state, those_in(q, ACTIVE))
    while a >= 0 and compare(cap, rest, (0, 0, 0)) > 0:
        if f.apps[a].nodes > 0:
            rest, allowed = _drop_reservations(s, f, a, rest, allowed)
        j = last(f.job_lists, running_list(a))
        while j >= 0 and compare(cap, rest, (0, 0, 0)) > 0:
            before = f.job_lists[j, BEFORE]
            amount = at(f.ask, j)
            if s.jobs[j].state == SUSPENDING and _helps(f, rest, amount, allowed):
                # it is already being preempted: its resources return without another victim
                rest = _no_zero(minus(rest, amount))
            elif _may_go(s, f, j, stamp):
                if j == f.apps[a].master:
                    skipped = plus(skipped, amount)
                elif _helps(f, rest, amount, allowed):
                    rest, allowed = _no_zero(minus(rest, amount)), minus(allowed, amount)
                    if _choose(s, f, j, stamp):
                        _kill(s, f, j)
            j = before
        a = f.by_state[a, BEFORE]
    if compare(cap, skipped, (0, 0, 0)) > 0:
        queue = f.queues[q]
        keep = times(times(cap, queue.capacity), queue.am)
        a = last(f.by_state, those_in(q, ACTIVE))
        while a >= 0 and compare(cap, rest, (0, 0, 0)) > 0 and compare(cap, skipped, keep) > 0:
            j = f.apps[a].master
            a = f.by_state[a, BEFORE]
            if j < 0 or not _may_go(s, f, j, stamp):
                continue
            amount = at(f.ask, j)
            if _helps(f, rest, amount, allowed):
                rest, allowed = _no_zero(minus(rest, amount)), minus(allowed, amount)
                skipped = minus(skipped, amount)
                if _choose(s, f, j, stamp):
                    _kill(s, f, j)
    return allowed


@inner
def _forget(f, oldest):  # type: ignore[no-untyped-def]
    """Remove unmarked jobs from the list of marks, and void marks older than a second."""
    p, count = f.p[0], 0
    for k in range(p.listed):
        j = f.marks[k]
        if f.jobs[j].mark < oldest:
            f.jobs[j].mark = np.nan
            p.marked -= 1
        if not np.isnan(f.jobs[j].mark):
            f.marks[count] = j
            count += 1
    p.listed = count


@inner
def monitor_round(s, f):  # type: ignore[no-untyped-def]
    """One round of the monitor."""
    p = f.p[0]
    allowed = times(cluster(f), p.share)
    p.sequence += 1
    p.looked, p.again = s.g[0].now, np.inf
    stamp = p.sequence
    _forget(f, -np.inf)
    if reckon(f, allowed):
        for q in range(f.queues.size):
            if f.queues[q].leaf == 1 and compare(cluster(f), at(f.amounts[TAKE], q), (0, 0, 0)) > 0:
                allowed = _take_from(s, f, q, allowed, stamp)
    # as in Hadoop: after twice the wait
    _forget(f, p.looked - 2 * p.wait - 1e-9)
