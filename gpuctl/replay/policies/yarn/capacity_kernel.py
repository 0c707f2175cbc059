"""The compiled pass of the capacity scheduler at one heartbeat: queues, then applications, then the node.

Reproduces Hadoop 3.5.0 without asynchronous scheduling; classes named in comments are Hadoop's.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.placement_kernel import hide, suits
from gpuctl.replay.engine.resource_kernel import choose_for, find_for, room_for, room_in, units_of
from gpuctl.replay.engine.state import ANY
from gpuctl.replay.policies.yarn.amounts_kernel import (
    add_to,
    at,
    compare,
    divide,
    fits_in,
    is_none,
    larger,
    minus,
    plus,
    put,
    round_down,
    smaller,
)
from gpuctl.replay.policies.yarn.capacity_apps_kernel import R_GIVEN, R_RESERVED, R_SEVERAL, handle_start
from gpuctl.replay.policies.yarn.capacity_limits_kernel import reserve, to_give_up, unreserve, user_limit, wants_more
from gpuctl.replay.policies.yarn.capacity_lists_kernel import charge, cluster, enough_for, pending_list, those_in
from gpuctl.replay.policies.yarn.capacity_tree_kernel import ACTIVE, LEAST
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, first

NODE_LOCAL, RACK_LOCAL, OFF_SWITCH = range(3)
NOTHING, SKIPPED, FULL_QUEUE, TOOK, RESERVED = range(5)


# ---- choice of a job by locality


@inner
def _names(s, f, j, number):  # type: ignore[no-untyped-def]
    """Locality of a node for a job's preferred nodes: NODE_LOCAL, RACK_LOCAL or OFF_SWITCH."""
    near = OFF_SWITCH
    for k in range(f.want_first[j], f.want_first[j + 1]):
        if f.want[k] == number:
            return NODE_LOCAL
        if s.nodes[f.want[k]].rack == s.nodes[number].rack:
            near = RACK_LOCAL
    return near


@inner
def _first_for(s, f, a, number):  # type: ignore[no-untyped-def]
    """The first job that prefers this node, else this rack, else the first; and its locality."""
    j = first(f.job_lists, pending_list(a))
    best, near = j, OFF_SWITCH
    if f.apps[a].names <= 1:
        return best, near
    while j >= 0:
        this = _names(s, f, j, number)
        if this < near:
            best, near = j, this
            if near == NODE_LOCAL:
                break
        j = f.job_lists[j, AFTER]
    return best, near


@inner
def _patient(s, f, a, near):  # type: ignore[no-untyped-def]
    """Whether an application keeps waiting for a node with better locality."""
    p, app = f.p[0], f.apps[a]
    if near == NODE_LOCAL or app.names <= 1:
        return False
    nodes = s.nodes.size
    if near == RACK_LOCAL:
        return min(nodes, p.delay) >= app.missed
    if p.rack_delay >= 0:
        return min(nodes, p.delay + p.rack_delay) >= app.missed
    part = min(np.float32(app.names - 1) / np.float32(nodes), np.float32(1.0))
    return min(np.float32(nodes), np.float32(app.asks * part)) >= app.missed


@inner
def _missed(s, f, a):  # type: ignore[no-untyped-def]
    """Count a missed opportunity; beyond one per node the count has no effect."""
    app = f.apps[a]
    app.missed += 1
    f.p[0].missed += app.names > 1 and app.missed <= s.nodes.size + 1


@inner
def _reset_missed(f, a, near):  # type: ignore[no-untyped-def]
    """Reset the missed opportunities after a node with good locality."""
    p, app = f.p[0], f.apps[a]
    if near != OFF_SWITCH and (near == NODE_LOCAL or p.full_reset == 1):
        p.missed += app.missed > 0
        app.missed = 0


# ---- an application and a node


@inner
def _accepts(f, a, amount, released):  # type: ignore[no-untyped-def]
    """Whether the queues accept the proposal (accept of LeafQueue and AbstractCSQueue)."""
    app = f.apps[a]
    used = minus(at(f.user_used, app.user), released)
    if compare(cluster(f), used, user_limit(f, app.queue)) > 0:
        return False
    return enough_for(f, a, amount, released)


@inner
def _take(s, f, number, j, reason, near):  # type: ignore[no-untyped-def]
    f.p[0].version += 1
    s.g[0].chosen = 0
    choose_for(s, number, j, units_of(s, j))
    launch(s, j, reason)
    handle_start(s, f, j)


@inner
def _on_node(s, f, number, a, j, near, room, need):  # type: ignore[no-untyped-def]
    """Give a job its container on a node, or reserve the node (assignContainer of RegularContainerAllocator).

    Args:
        s: the simulation.
        f: the tree.
        number: the node.
        a: the application.
        j: its job.
        near: locality of the node.
        room: remaining maximum of its queue.
        need: amount of reservations to drop for the user limit.
    """
    p = f.p[0]
    amount = at(f.ask, j)
    cap = cluster(f)
    if room_in(s, number, j) < units_of(s, j):
        return SKIPPED
    more = wants_more(f, a, amount)
    need = larger(cap, minus(amount, room), need)
    too_much = compare(cap, need, (0, 0, 0)) > 0
    if room_for(s, number, j) >= units_of(s, j):
        freed = -1
        if p.look_on == 1 and (not more or too_much):
            freed = to_give_up(f, a, need if too_much else amount)
            if freed < 0:
                return SKIPPED
        released = at(f.held, freed) if freed >= 0 else (0, 0, 0)
        _reset_missed(f, a, near)
        if not _accepts(f, a, amount, released):
            return TOOK
        if freed >= 0:
            unreserve(s, f, freed)
        charge(f, a, amount, 1)
        _take(s, f, number, j, R_GIVEN, near)
        return TOOK
    if not more or (p.look_on == 1 and too_much):
        return SKIPPED
    _reset_missed(f, a, near)
    if _accepts(f, a, amount, (0, 0, 0)):
        reserve(s, f, number, a, amount)
    return RESERVED


@inner
def _show(s, f, a, seen):  # type: ignore[no-untyped-def]
    """Show the nodes reserved for an application to a search, or hide them again."""
    for number in range(f.nodes.size):
        if f.nodes[number].app == a:
            hide(s, number, 0 if seen else s.nodes[number].cap + 1)


@inner
def _on_several(s, f, number, a, j):  # type: ignore[no-untyped-def]
    """Place a gang larger than any node on several nodes at once, which are reserved one by one until it fits."""
    p = f.p[0]
    if p.wide >= 0 and p.wide != a:
        return SKIPPED
    if not _accepts(f, a, at(f.ask, j), (0, 0, 0)):
        return SKIPPED
    if p.wide == a:
        _show(s, f, a, True)
    found = find_for(s, j, f.how[j])
    if found:
        for k in range(f.nodes.size):
            if f.nodes[k].app == a:
                unreserve(s, f, k)
        charge(f, a, at(f.ask, j), 1)
        p.version += 1
        launch(s, j, R_SEVERAL)
        handle_start(s, f, j)
        return TOOK
    if p.wide == a:
        _show(s, f, a, False)
    if f.nodes[number].app >= 0 or room_in(s, number, j) == 0:
        return SKIPPED
    units = 0
    for k in range(f.nodes.size):
        if f.nodes[k].app == a:
            units += room_in(s, k, j)
    if units >= units_of(s, j) and f.how[j] == ANY:
        return SKIPPED
    p.wide = a
    reserve(s, f, number, a, (0, 0, 0))
    return RESERVED


@inner
def _application(s, f, number, a, room, need):  # type: ignore[no-untyped-def]
    """Offer a node to an application (RegularContainerAllocator): the result, and the locality."""
    j, near = _first_for(s, f, a, number)
    amount = at(f.ask, j)
    extra = at(f.app_reserved, a) if f.p[0].look_on == 1 else (0, 0, 0)
    if not fits_in(amount, plus(room, extra)):
        return FULL_QUEUE, near
    if not suits(s, number, s.jobs[j].mask):
        return SKIPPED, near
    _missed(s, f, a)
    if f.jobs[j].wide == 1:
        return _on_several(s, f, number, a, j), OFF_SWITCH
    # the nearest level first; a patient one leaves the node to the next level, and to others
    if near == NODE_LOCAL:
        done = _on_node(s, f, number, a, j, near, room, need)
        if done != SKIPPED:
            return done, near
        near = RACK_LOCAL
    if near == RACK_LOCAL and not _patient(s, f, a, near):
        done = _on_node(s, f, number, a, j, near, room, need)
        if done != SKIPPED:
            return done, near
    if not _patient(s, f, a, OFF_SWITCH):
        return _on_node(s, f, number, a, j, OFF_SWITCH, room, need), OFF_SWITCH
    return SKIPPED, OFF_SWITCH


# ---- a leaf


@inner
def _leaf(s, f, number, q, bound):  # type: ignore[no-untyped-def]
    """Offer a node to the applications of a leaf, in order.

    Returns:
        The result, the locality, and the room of the queue.
    """
    cap, p = cluster(f), f.p[0]
    put(f.limit, q, smaller(cap, round_down(at(f.most, q), at(f.sizes, LEAST)), bound))
    now = smaller(cap, at(f.most, q), bound)
    room = minus(now, at(f.used, q))
    full = compare(cap, at(f.used, q), now) >= 0
    # a full queue may only drop reservations, application by application: the first one without any ends the loop, with
    # or without requests
    limit = user_limit(f, q)
    a = first(f.by_state, those_in(q, ACTIVE)) if full else first(f.lines, q)
    while a >= 0:
        app = f.apps[a]
        reserved = at(f.app_reserved, a)
        if full and (p.look_on == 0 or is_none(reserved) or compare(cap, minus(at(f.used, q), reserved), now) >= 0):
            return NOTHING, OFF_SWITCH, room
        used = at(f.user_used, app.user)
        need = (0, 0, 0)
        may = app.asks > 0
        if compare(cap, used, limit) > 0:
            may = may and p.look_on == 1 and compare(cap, minus(used, reserved), limit) <= 0
            need = minus(used, limit)
        after = f.by_state[a, AFTER] if full else f.lines[a, AFTER]
        if may:
            done, near = _application(s, f, number, a, room, need)
            if done != SKIPPED:
                return done, near, room
        a = after
    return NOTHING, OFF_SWITCH, room


# ---- the tree


@inner
def _queue_precedes(f, a, b, respects):  # type: ignore[no-untyped-def]
    """PriorityUtilizationQueueOrderingPolicy; ties go by the order of the configuration."""
    cap, least_size = cluster(f), at(f.sizes, LEAST)
    x = divide(cap, at(f.used, a), larger(cap, at(f.due, a), least_size))
    y = divide(cap, at(f.used, b), larger(cap, at(f.due, b), least_size))
    if respects == 1 and f.queues[a].priority != f.queues[b].priority and (x < 1) == (y < 1):
        return f.queues[a].priority > f.queues[b].priority
    if x != y:
        return x < y
    return f.queues[a].capacity > f.queues[b].capacity


@inner
def _next_child(f, q, stamp):  # type: ignore[no-untyped-def]
    """The next of a queue's children with requests; -1 none."""
    best = -1
    queue = f.queues[q]
    asking = idle = 0
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.queues[child].asks == 0 or f.queues[child].tried == stamp:
            continue
        asking += 1
        idle += compare(cluster(f), at(f.used, child), (0, 0, 0)) == 0
        if best < 0 or _queue_precedes(f, child, best, queue.respects):
            best = child
    if asking > 1:
        f.p[0].choices += 1
        # a queue that holds nothing goes before others, whatever its guarantee
        f.p[0].by_share += idle != 1
    return best


@inner
def _bound_of(f, q, child, bound):  # type: ignore[no-untyped-def]
    """Limit of a child: its parent's limit less use elsewhere."""
    free = minus(bound, at(f.used, q))
    return round_down(plus(free, at(f.used, child)), at(f.sizes, LEAST))


@inner
def _droppable(f, q):  # type: ignore[no-untyped-def]
    """The reservations below a queue, which could be dropped."""
    # Hadoop uses a parent's metrics, which have memory and vcores only; GPUs count if there is nothing else
    reserved, cap = at(f.reserved, q), cluster(f)
    return (reserved[0], reserved[1], reserved[2] if cap[0] == 0 and cap[1] == 0 else 0)


@inner
def _pass(s, f, number):  # type: ignore[no-untyped-def]
    """Offer a node to the tree once (ParentQueue.assignContainers, level by level): the result, and the locality."""
    p = f.p[0]
    p.sequence += 1
    stamp = p.sequence
    cap = cluster(f)
    depth = 0
    f.path[0] = 0
    put(f.bound, 0, cap)
    put(f.blocked, 0, (0, 0, 0))
    while depth >= 0:
        q = f.path[depth]
        child = -1
        mine = smaller(cap, at(f.bound, depth), at(f.most, q))
        bound = minus(mine, at(f.blocked, depth))
        if compare(cap, at(f.used, q), mine) < 0 or (
            p.look_on == 1 and p.reserved > 0 and compare(cap, minus(at(f.used, q), _droppable(f, q)), mine) < 0
        ):
            child = _next_child(f, q, stamp)
        if child < 0:
            if depth > 0:
                # an amount reserved for a child that could not use it is withheld from its siblings
                add_to(f.blocked, depth - 1, at(f.blocked, depth), 1)
            depth -= 1
            continue
        f.queues[child].tried = stamp
        limit = _bound_of(f, q, child, bound)
        if f.queues[child].leaf == 0:
            depth += 1
            f.path[depth] = child
            put(f.bound, depth, limit)
            put(f.blocked, depth, (0, 0, 0))
            continue
        done, near, room = _leaf(s, f, number, child, limit)
        if done == TOOK or done == RESERVED:
            return done, near
        if done == FULL_QUEUE:
            add_to(f.blocked, depth, larger(cap, room, (0, 0, 0)), 1)
    return NOTHING, OFF_SWITCH


# ---- a heartbeat


@inner
def is_open(s, f, number):  # type: ignore[no-untyped-def]
    """Whether a node has room for the smallest container; for one GPU if only GPUs count."""
    node = s.nodes[number]
    if node.up == 0:
        return False
    if s.g[0].resources == 0:
        return node.free > 0
    stock = s.stock[number]
    cpu, mem = min(f.sizes[LEAST, 1], stock.cpu), min(f.sizes[LEAST, 0], stock.mem)
    return stock.cpu_free >= cpu and stock.mem_free >= mem


@inner
def _visit_reserved_node(s, f, number):  # type: ignore[no-untyped-def]
    """The heartbeat of a node reserved for an application."""
    a = f.nodes[number].app
    app = f.apps[a]
    if app.asks == 0:
        unreserve(s, f, number)
        return
    j, near = _first_for(s, f, a, number)
    _missed(s, f, a)
    if f.jobs[j].wide == 1:
        _on_several(s, f, number, a, j)
        return
    if not fits_in(at(f.ask, j), at(f.held, number)) or not suits(s, number, s.jobs[j].mask):
        # it now has another request first
        unreserve(s, f, number)
        return
    hide(s, number, 0)
    if room_for(s, number, j) < units_of(s, j):
        hide(s, number, s.nodes[number].cap + 1)
        before = wants_more(f, a, at(f.ask, j))
        app.again += 1
        if wants_more(f, a, at(f.ask, j)) and not before:
            p = f.p[0]
            p.version += 1
        return
    unreserve(s, f, number)
    charge(f, a, at(f.ask, j), 1)
    _take(s, f, number, j, R_RESERVED, near)


@inner
def heartbeat(s, f, number):  # type: ignore[no-untyped-def]
    """Assign containers at one heartbeat of a node."""
    p = f.p[0]
    if s.nodes[number].up == 0:
        return
    if f.nodes[number].app >= 0:
        _visit_reserved_node(s, f, number)
        return
    away, count = 0, 0
    while p.asks > 0 and is_open(s, f, number):
        done, near = _pass(s, f, number)
        if done != TOOK:
            return
        count += 1
        away += near == OFF_SWITCH
        if p.multiple == 0 or away >= p.offswitch or (p.batch >= 0 and count >= p.batch):
            return
