"""The compiled preemption of the fair scheduler: which containers must go for a starved application."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import job_timer
from gpuctl.replay.engine.preemption_kernel import must_go_on
from gpuctl.replay.policies.yarn.fair_line_kernel import forget_dead, preempted_entry, unused
from gpuctl.replay.policies.yarn.fair_order_kernel import below
from gpuctl.replay.policies.yarn.fair_share_kernel import share_of
from gpuctl.replay.policies.yarn.fair_starved_kernel import take_hungry
from gpuctl.replay.policies.yarn.fair_state import MEM
from gpuctl.replay.policies.yarn.linked_lists_kernel import AFTER, first, put_last, take_out


@inner
def _turn(f, j):  # type: ignore[no-untyped-def]
    a = f.tasks[j].app
    return f.turn[a, min(f.tasks[j].number, f.turn.shape[1] - 1)]


@inner
def _precedes(f, j, other):  # type: ignore[no-untyped-def]
    """Whether a container goes before an older one that is no master."""
    if f.apps[f.tasks[j].app].master == j or f.apps[f.tasks[other].app].master == other:
        return False
    return _turn(f, j) < _turn(f, other)


@inner
def _containers_by_node(s, f):  # type: ignore[no-untyped-def]
    """List the containers of each node, by turn and newest first; masters last."""
    forget_dead(s, f)
    f.part_first[:] = 0
    for k in range(f.p[0].lives):
        row = s.attempts[f.live_row[k]]
        for piece in range(row.first, row.first + row.pieces):
            f.part_first[s.pieces[piece].node + 1] += 1
    for number in range(f.nodes.size):
        f.part_first[number + 1] += f.part_first[number]
        f.part_at[number] = f.part_first[number]
    for turn in range(2):
        for back in range(f.p[0].lives):
            k = f.p[0].lives - 1 - back
            j = f.live[k]
            master = f.apps[f.tasks[j].app].master == j
            if (turn == 1) != master:
                continue
            row = s.attempts[f.live_row[k]]
            for piece in range(row.first, row.first + row.pieces):
                number = s.pieces[piece].node
                at = f.part_at[number]
                f.part_at[number] += 1
                while at > f.part_first[number] and _precedes(f, j, f.part[at - 1].job):
                    f.part[at] = f.part[at - 1]
                    at -= 1
                part = f.part[at]
                part.job, part.gpu, part.mem, part.cpu = j, s.pieces[piece].gpus, 0, 0
                if s.g[0].resources == 1:
                    part.mem, part.cpu = s.needs[piece].mem, s.needs[piece].cpu // f.unit[0]


@inner
def _may_go(s, f, j, taken):  # type: ignore[no-untyped-def]
    """Whether a container may be preempted: its application must not come below its fair share by it.

    Args:
        s: the state.
        f: the scheduler.
        j: its job.
        taken: number of `picked` already chosen on this node.
    """
    a = f.tasks[j].app
    queue = f.queues[f.apps[a].queue]
    if queue.victims == 0 or f.tasks[j].marked == s.jobs[j].row + 1:
        return False
    if f.apps[a].master == j and f.p[0].spare_masters == 1:
        return False
    if must_go_on(s, j, s.g[0].mode):
        return False
    share_of(f, a)
    for r in range(3):
        f.a_picked[5, r] = f.a_used[a, r] - f.a_marked[a, r] - f.j_need[j, r]
    for k in range(taken):
        i = f.part[f.picked[k]].job
        if f.tasks[i].app == a:
            for r in range(3):
                f.a_picked[5, r] -= f.j_need[i, r]
    return not below(f, queue.policy, f.a_picked, 5, f.a_picked, 0)


@inner
def _stock(s, f, number):  # type: ignore[no-untyped-def]
    """Write a node's free, unreserved amount into row 6 of `a_picked`."""
    node = s.nodes[number]
    f.a_picked[6, 2] = node.free
    f.a_picked[6, 0] = f.a_picked[6, 1] = 0
    if s.g[0].resources == 1:
        f.a_picked[6, 0] = s.stock[number].mem_free
        f.a_picked[6, 1] = s.stock[number].cpu_free // f.unit[0]
    reserving = f.nodes[number].job
    for r in range(3):
        away = f.n_taken[number, r] + (f.j_need[reserving, r] if reserving >= 0 else 0)
        f.a_picked[6, r] = max(f.a_picked[6, r] - away, 0)


@inner
def _holds(f, j):  # type: ignore[no-untyped-def]
    enough = True
    for r in range(3):
        enough = enough and (f.j_need[j, r] == 0 or f.j_need[j, r] <= f.a_picked[6, r])
    return enough


@inner
def _on_node(s, f, number, j, masters):  # type: ignore[no-untyped-def]
    """Choose containers of a node that make room for a job, fewer than `masters` masters among them.

    Returns:
        Their number, in `picked`, and the number of masters; -1 if there is no such choice.
    """
    if s.nodes[number].up == 0:
        return -1, 0
    _stock(s, f, number)
    count, bosses = 0, 0
    for k in range(f.part_first[number], f.part_first[number + 1]):
        i = f.part[k].job
        if f.tasks[i].marked == s.jobs[i].row + 1:
            continue
        if _may_go(s, f, i, count):
            if f.apps[f.tasks[i].app].master == i:
                bosses += 1
                if bosses >= masters:
                    return -1, 0
            f.picked[count] = k
            count += 1
            f.a_picked[6, 0] += f.part[k].mem
            f.a_picked[6, 1] += f.part[k].cpu
            f.a_picked[6, 2] += f.part[k].gpu
        if _holds(f, j):
            return count, bosses
    return -1, 0


@inner
def _mark(s, f, number, count, a):  # type: ignore[no-untyped-def]
    """End the containers chosen on a node after the wait, and keep their place for the starved application."""
    p = f.p[0]
    new = first(f.entry_lists, unused(f))
    if count == 0 or new < 0:
        return
    k = preempted_entry(f, number, a)
    if k < 0:
        k = new
        take_out(f.entry_lists, k)
        put_last(f.entry_lists, k, number)
        p.entries += 1
        f.entry_app[k] = a
        f.e_left[k, :] = 0
    for c in range(count):
        part = f.part[f.picked[c]]
        i = part.job
        f.e_left[k, 0] += part.mem
        f.e_left[k, 1] += part.cpu
        f.e_left[k, 2] += part.gpu
        f.n_taken[number, 0] += part.mem
        f.n_taken[number, 1] += part.cpu
        f.n_taken[number, 2] += part.gpu
        f.tasks[i].marked = s.jobs[i].row + 1
        for r in range(3):
            f.a_marked[f.tasks[i].app, r] += f.j_need[i, r]
        job_timer(s, i, s.g[0].now + p.wait)
    f.nodes[number].flag = 1


@inner
def _make_room(s, f, j, a):  # type: ignore[no-untyped-def]
    """Choose victims for one container, on one node: the first without masters among them, else with the fewest.

    Returns whether there are any; if not, there are none for another container of that size.
    """
    best, masters = -1, np.int64(1) << 40
    for k in range(f.search.size):
        count, bosses = _on_node(s, f, f.search[k], j, masters)
        if count >= 0:
            best, masters = f.search[k], bosses
            if masters == 0:
                _mark(s, f, best, count, a)
                return True
    if best >= 0:
        count, _ = _on_node(s, f, best, j, masters + 1)
        _mark(s, f, best, count, a)
    return best >= 0


@inner
def _same(f, i, j):  # type: ignore[no-untyped-def]
    return f.j_need[i, 0] == f.j_need[j, 0] and f.j_need[i, 1] == f.j_need[j, 1] and f.j_need[i, 2] == f.j_need[j, 2]


@inner
def _for_one(s, f, a):  # type: ignore[no-untyped-def]
    """Choose victims for a starved application: as many containers as fit into its deficit."""
    by = MEM if f.cluster[MEM] > 0 else f.p[0].by
    for r in range(3):
        f.a_picked[7, r] = f.a_lack[a, r] + f.a_low[a, r]
    j = first(f.job_lists, a)
    while j >= 0:
        if f.a_picked[7, 0] == 0 and f.a_picked[7, 1] == 0 and f.a_picked[7, 2] == 0:
            return
        same, i = 0, j
        while i >= 0 and _same(f, i, j):
            same += 1
            i = f.job_lists[i, AFTER]
        count = same
        if f.j_need[j, by] > 0:
            count = min(count, f.a_picked[7, by] // f.j_need[j, by])
        if f.tasks[j].big == 0:
            for _ in range(count):
                if not _make_room(s, f, j, a):
                    break
        for r in range(3):
            f.a_picked[7, r] = max(f.a_picked[7, r] - count * f.j_need[j, r], 0)
        j = i


@inner
def preempt_for_starved(s, f):  # type: ignore[no-untyped-def]
    """Choose victims for all applications that the last update found starved.

    Returns:
        When the first of them counts as starved again; other victims may exist by then.
    """
    a = take_hungry(f)
    laid_out = False
    again = np.inf
    while a >= 0:
        if not laid_out:
            _containers_by_node(s, f)
            laid_out = True
        _for_one(s, f, a)
        f.apps[a].next = s.g[0].now + f.p[0].check
        again = f.apps[a].next
        a = take_hungry(f)
    return again
