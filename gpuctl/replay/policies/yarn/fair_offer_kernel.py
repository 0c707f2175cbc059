"""The compiled choice at one heartbeat: which application gets a container of a node, or the node itself."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.job_life_kernel import note
from gpuctl.replay.engine.resource_kernel import choose_for, find_for, room_for, room_in, units_of
from gpuctl.replay.engine.state import D_RESERVE
from gpuctl.replay.policies.yarn.fair_line_kernel import drop_entry, give, is_requesting, preempted_entry, wake_all
from gpuctl.replay.policies.yarn.fair_order_kernel import below, fits_in, is_none, queue_first
from gpuctl.replay.policies.yarn.fair_share_kernel import share_of
from gpuctl.replay.policies.yarn.fair_state import (
    DRF,
    GIVEN,
    NODE_LOCAL,
    NOTHING,
    OFF_SWITCH,
    OVER,
    R_GIVEN,
    R_RESERVED,
    R_RESERVED_START,
    R_TAKEN,
    RACK_LOCAL,
    RESERVED,
    RUNNABLE,
)
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, first

# ---- permission


@inner
def _within_max(f, q, j):  # type: ignore[no-untyped-def]
    """Whether a queue and all above it may hold another job's container."""
    if f.p[0].limited == 0:
        return True
    while q >= 0:
        for r in range(3):
            if f.q_used[q, r] + f.j_need[j, r] > f.q_max[q, r]:
                return False
        q = f.queues[q].parent
    return True


@inner
def _may_hold(s, f, a, j, node):  # type: ignore[no-untyped-def]
    """Whether a node, if it were empty, and the queue could hold a job's container."""
    if f.tasks[j].big == 0 and room_in(s, node, j) < units_of(s, j):
        return False
    return _within_max(f, f.apps[a].queue, j)


@inner
def _over_masters(f, a):  # type: ignore[no-untyped-def]
    """Whether an application's master would exceed its queue's limit on masters."""
    app = f.apps[a]
    queue = f.queues[app.queue]
    if app.master < 0 or app.opens < np.inf or queue.masters < 0:
        return False
    j = first(f.job_lists, a)
    if j < 0:
        return True
    for r in range(3):
        whole = f.q_fair[app.queue, r]
        if whole == 0:
            whole = min(f.cluster[r] - f.q_used[0, r], f.q_max[app.queue, r])
        if f.q_masters[app.queue, r] + f.j_need[j, r] > np.ceil(whole * queue.masters):
            return True
    return False


@inner
def _starved(f, a):  # type: ignore[no-untyped-def]
    """Whether an application holds less than its share, or lacks part of its queue's minimum."""
    share_of(f, a)
    policy = f.queues[f.apps[a].queue].policy
    return below(f, policy, f.a_used, a, f.a_picked, 0) or not is_none(f.a_low, a)


@inner
def _large(f, a, j):  # type: ignore[no-untyped-def]
    """Whether a container is so large that a node may be reserved for it."""
    p = f.p[0]
    if f.queues[f.apps[a].queue].policy != DRF:
        return p.by != 0 or f.j_need[j, 0] >= p.least_mem
    one, other, second, third = 0.0, 0.0, 0.0, 0.0
    for r in range(3):
        if f.cluster[r] > 0:
            share = f.j_need[j, r] / f.cluster[r]
            second = max(min(one, share), second)
            one = max(one, share)
    mem = p.least_mem / f.cluster[0] if f.cluster[0] > 0 else 0.0
    cpu = p.least_cpu / f.cluster[1] if f.cluster[1] > 0 else 0.0
    other, third = max(mem, cpu), min(mem, cpu)
    return one > other or (one == other and second >= third)


@inner
def _reserve(s, f, a, j, node, kind):  # type: ignore[no-untyped-def]
    """Reserve a node for a job's container that does not fit there now, if allowed."""
    p, place, app = f.p[0], f.nodes[node], f.apps[a]
    if p.reservable <= 0 or f.tasks[j].big == 1 or not _starved(f, a) or not _large(f, a, j):
        return False
    if preempted_entry(f, node, a) >= 0:
        return False
    if kind != NODE_LOCAL:
        count, nodes = app.reservations, f.nodes.size
        if kind == RACK_LOCAL:
            count, nodes = 0, 0
            for number in range(f.nodes.size):
                if s.nodes[number].rack == s.nodes[node].rack:
                    nodes += 1
                    if f.nodes[number].app == a:
                        count += 1
        if count >= np.ceil(np.float32(nodes) * np.float32(p.reservable)):
            return False
    place.job, place.app = j, a
    app.reservations += 1
    p.reserved += 1
    note(s, D_RESERVE, j, s.jobs[j].gpus, -1, R_RESERVED)
    return True


@inner
def unreserve(f, node):  # type: ignore[no-untyped-def]
    """Drop a node's reservation."""
    place = f.nodes[node]
    f.apps[place.app].reservations -= 1
    if f.apps[place.app].asks > 0:
        # it may reserve another node now
        wake_all(f)
    place.job, place.app = -1, -1
    f.p[0].reserved -= 1


# ---- locality


@inner
def _wants(s, f, j, node, by_rack):  # type: ignore[no-untyped-def]
    for k in range(f.want_first[j], f.want_first[j + 1]):
        if f.wants[k] == node or (by_rack and s.nodes[f.wants[k]].rack == s.nodes[node].rack):
            return True
    return False


@inner
def _allowed(f, a):  # type: ignore[no-untyped-def]
    """The worst locality that an application accepts now; relaxed after enough misses."""
    p, app = f.p[0], f.apps[a]
    if p.node_share < 0 or p.rack_share < 0:
        return OFF_SWITCH
    if app.level < 0:
        app.level = NODE_LOCAL
        return NODE_LOCAL
    if app.level != OFF_SWITCH:
        share = p.node_share if app.level == NODE_LOCAL else p.rack_share
        if app.missed > f.nodes.size * min(share, 1.0):
            app.level += 1
            app.missed = 0
    return app.level


@inner
def _choose_job(s, f, a, node):  # type: ignore[no-untyped-def]
    """The job for which an application would take a container of a node, and its locality; -1 none."""
    app = f.apps[a]
    j = first(f.job_lists, a)
    while j >= 0 and not _may_hold(s, f, a, j, node):
        j = f.job_lists[j, AFTER]
    if j < 0:
        return -1, OFF_SWITCH
    app.missed += 1
    allowed = _allowed(f, a)
    if f.want_first[j] == f.want_first[j + 1]:
        return j, OFF_SWITCH
    in_rack = -1
    i = j
    while i >= 0:
        if _wants(s, f, i, node, False) and _may_hold(s, f, a, i, node):
            return i, NODE_LOCAL
        if in_rack < 0 and _wants(s, f, i, node, True) and _may_hold(s, f, a, i, node):
            in_rack = i
        i = f.job_lists[i, AFTER]
    if in_rack >= 0 and allowed >= RACK_LOCAL:
        return in_rack, RACK_LOCAL
    if allowed == OFF_SWITCH:
        return j, OFF_SWITCH
    # each heartbeat counts from now on, including those of full nodes
    f.p[0].missing = 1
    return -1, OFF_SWITCH


# ---- one container


@inner
def _place(s, f, j, node, kind, reason):  # type: ignore[no-untyped-def]
    """Start a job on a node if it fits; else return false."""
    units = units_of(s, j)
    if f.tasks[j].big == 1:
        shape = f.tasks[j].kind
        if f.bad[shape] == f.p[0].freed:
            return False
        if not find_for(s, j, f.p[0].how):
            f.bad[shape] = f.p[0].freed
            return False
    else:
        if room_for(s, node, j) < units:
            return False
        s.g[0].chosen = 0
        choose_for(s, node, j, units)
    a = f.tasks[j].app
    app = f.apps[a]
    if (app.level == OFF_SWITCH and kind != OFF_SWITCH) or (app.level == RACK_LOCAL and kind == NODE_LOCAL):
        app.level = kind
    give(s, f, j, node, reason)
    return True


@inner
def _offer(s, f, a, node, reason):  # type: ignore[no-untyped-def]
    """Offer a node to an application; returns NOTHING, RESERVED or GIVEN, and the job."""
    if _over_masters(f, a):
        return NOTHING, -1
    j, kind = _choose_job(s, f, a, node)
    if j < 0:
        return NOTHING, -1
    if _place(s, f, j, node, kind, reason):
        return GIVEN, j
    if _reserve(s, f, a, j, node, kind):
        return RESERVED, j
    return NOTHING, -1


# ---- one pass through the tree


@inner
def _enter(f, q):  # type: ignore[no-untyped-def]
    """Whether a queue may be visited; sorts its children with requests."""
    if f.p[0].limited == 1 and not fits_in(f.q_used, q, f.q_max, q):
        return False
    queue = f.queues[q]
    queue.top = queue.at = 0
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.queues[child].waiting > 0:
            at = queue.first + queue.top
            while at > queue.first and queue_first(f, queue.policy, child, f.order[at - 1]):
                f.order[at] = f.order[at - 1]
                at -= 1
            f.order[at] = child
            queue.top += 1
    return True


@inner
def _visit_leaf(s, f, q, node):  # type: ignore[no-untyped-def]
    a = first(f.lines, q)
    while a >= 0:
        following = f.lines[a, AFTER]
        if is_requesting(f, a):
            found, j = _offer(s, f, a, node, R_GIVEN)
            if found != NOTHING:
                return found, j
        a = following
    return NOTHING, -1


@inner
def _pass(s, f, node):  # type: ignore[no-untyped-def]
    """Descend the tree, the queue furthest below its share first, to the first application that takes something."""
    if f.queues[0].waiting == 0 or not _enter(f, 0):
        return NOTHING, -1
    q = 0
    while q >= 0:
        queue = f.queues[q]
        if queue.count == 0:
            found, j = _visit_leaf(s, f, q, node)
            if found != NOTHING:
                return found, j
            q = queue.parent
        elif queue.at < queue.top:
            child = f.order[queue.first + queue.at]
            queue.at += 1
            if _enter(f, child):
                q = child
        else:
            q = queue.parent
    return NOTHING, -1


# ---- a heartbeat


@inner
def _assign_preempted(s, f, node):  # type: ignore[no-untyped-def]
    """Assign the amounts preempted here to their applications, all at once. Returns whether any was assigned."""
    some = False
    k = first(f.entry_lists, node)
    while k >= 0:
        a, following = f.entry_app[k], f.entry_lists[k, AFTER]
        fed = is_none(f.a_lack, a) and is_none(f.a_low, a)
        if f.apps[a].state == OVER or not _starved(f, a) or fed:
            drop_entry(f, node, k)
        k = following
    k = first(f.entry_lists, node)
    while k >= 0:
        a, following = f.entry_app[k], f.entry_lists[k, AFTER]
        left0, left1, left2 = f.e_left[k, 0], f.e_left[k, 1], f.e_left[k, 2]
        while f.apps[a].state == RUNNABLE and (left0 != 0 or left1 != 0 or left2 != 0):
            found, j = _offer(s, f, a, node, R_TAKEN)
            if found != GIVEN:
                break
            some = True
            left0 = max(left0 - f.j_need[j, 0], 0)
            left1 = max(left1 - f.j_need[j, 1], 0)
            left2 = max(left2 - f.j_need[j, 2], 0)
        k = following
    return some


@inner
def _use_reservation(s, f, node):  # type: ignore[no-untyped-def]
    """Use a node's reservation if it has room now. Returns 2 used, 1 still needed, 0 dropped."""
    place = f.nodes[node]
    a, j = place.app, place.job
    app = f.apps[a]
    if f.tasks[j].requested == 0:
        # any container of the same kind qualifies
        i = first(f.job_lists, a)
        while i >= 0 and (
            f.j_need[i, 0] != f.j_need[j, 0] or f.j_need[i, 1] != f.j_need[j, 1] or f.j_need[i, 2] != f.j_need[j, 2]
        ):
            i = f.job_lists[i, AFTER]
        if i >= 0:
            j = place.job = i
    if app.state != RUNNABLE or f.tasks[j].requested == 0 or not _may_hold(s, f, a, j, node) or _over_masters(f, a):
        unreserve(f, node)
        return 0
    if room_for(s, node, j) < units_of(s, j):
        return 1
    i, kind = _choose_job(s, f, a, node)
    if i < 0 or not _place(s, f, i, node, kind, R_RESERVED_START):
        return 1
    unreserve(f, node)
    return 2


@inner
def _free_row(s, f, node, row):  # type: ignore[no-untyped-def]
    f.a_picked[row, 0] = f.a_picked[row, 1] = 0
    f.a_picked[row, 2] = s.nodes[node].free
    if s.g[0].resources == 1:
        f.a_picked[row, 0] = s.stock[node].mem_free
        f.a_picked[row, 1] = s.stock[node].cpu_free // f.unit[0]


@inner
def heartbeat(s, f, node):  # type: ignore[no-untyped-def]
    """Process one heartbeat of a node."""
    p, place = f.p[0], f.nodes[node]
    place.flag = 0
    some = _assign_preempted(s, f, node)
    if first(f.entry_lists, node) >= 0:
        place.flag = 1
    used = 0
    if place.job >= 0:
        used = _use_reservation(s, f, node)
    if used == 0:
        count = 0
        _free_row(s, f, node, 8)
        for r in range(3):
            f.a_picked[8, r] = np.int64(f.a_picked[8, r] * 0.5)
            f.a_picked[9, r] = 0
        while place.job < 0:
            found, j = _pass(s, f, node)
            if found == NOTHING:
                break
            some = True
            count += 1
            if found == GIVEN:
                for r in range(3):
                    f.a_picked[9, r] += f.j_need[j, r]
            if p.multiple == 0 or (p.dynamic == 1 and not fits_in(f.a_picked, 9, f.a_picked, 8)):
                break
            if p.dynamic == 0 and p.most > 0 and count >= p.most:
                break
    if some or used == 2:
        place.flag = 1
    if p.missing == 1:
        p.missing = 0
        wake_all(f)
