"""The compiled pass of conservative backfilling: every waiting job has a reservation that none behind it may delay.

A queued job gets the earliest second at which it fits with all running jobs and reservations. If a job ends earlier
than planned, waiting jobs are moved, in order, to the earliest second now free for them. A reservation moves to a later
second only if a running job exceeds its plan and holds reserved GPUs, or nodes go down; then all are made again, in
order.

If places matter, a reservation is for GPUs of specific nodes, by the job's own placement.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.job_life_kernel import launch, note
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, set_free
from gpuctl.replay.engine.reasons import R_FIRST, REASONS
from gpuctl.replay.engine.requeue_kernel import joins_tail, to_tail
from gpuctl.replay.engine.resource_kernel import find_for
from gpuctl.replay.engine.running_jobs_kernel import back_to_now, remember, runs, runs_no_more
from gpuctl.replay.engine.state import D_RESERVE, E_FINISHED, E_NODE_DOWN, E_NODE_UP, E_QUEUED, WAITING
from gpuctl.replay.policies.backfill.compress_kernel import compress_counts
from gpuctl.replay.policies.backfill.profile_kernel import earliest, forget, step_at
from gpuctl.replay.policies.backfill.reservation_kernel import (
    begins_no_more,
    change_node,
    change_reserved,
    change_running,
    column_of,
    freed,
    into_line,
    reserve_count,
)

R_RESERVED = len(REASONS)
R_EARLY, R_DUE = R_RESERVED + 1, R_RESERVED + 2
OWN_REASONS = (
    "waits, with a reservation that nobody may delay",
    "backfilled: before jobs that wait longer, without delay to any",
    "at the second reserved for it",
)

# ---- reservations


@inner
def _fits_from(s, f, c, j, at, seconds):  # type: ignore[no-untyped-def]
    """Whether a job can be placed on what is free from `at` on for `seconds`; its places are in `choice`."""
    job = s.jobs[j]
    nodes = s.nodes.size
    column = column_of(s, f, job.queue)
    k = step_at(c, at)
    for number in range(nodes):
        f.least[number] = c.free[c.row[k], number]
    while k < c.n[0] + c.n[1] and c.t[k] < at + seconds:
        row = c.row[k]
        if f.p[0].quotas == 1 and c.free[row, column] < job.gpus:
            return False
        for number in range(nodes):
            f.least[number] = min(f.least[number], c.free[row, number])
        k += 1
    for number in range(nodes):
        if s.nodes[number].up == 1 and s.nodes[number].free != f.least[number]:
            set_free(s, number, f.least[number])
    if s.g[0].resources == 1:
        _least_needs(s, f, c, at, seconds)
    return find_for(s, j, f.how[j])


@inner
def _least_needs(s, f, c, at, seconds):  # type: ignore[no-untyped-def]
    """Set each node's CPUs and memory to the least that are free from `at` on for `seconds`."""
    cpu, mem = f.p[0].cpu, f.p[0].cpu + s.nodes.size
    first = step_at(c, at)
    for number in range(s.nodes.size):
        stock = s.stock[number]
        stock.cpu_free, stock.mem_free = c.free[c.row[first], cpu + number], c.free[c.row[first], mem + number]
    k = first + 1
    while k < c.n[0] + c.n[1] and c.t[k] < at + seconds:
        row = c.row[k]
        for number in range(s.nodes.size):
            stock = s.stock[number]
            stock.cpu_free = min(stock.cpu_free, c.free[row, cpu + number])
            stock.mem_free = min(stock.mem_free, c.free[row, mem + number])
        k += 1


@inner
def _search(s, f, c, r, j, begin, before):  # type: ignore[no-untyped-def]
    """The first second from `begin` on and before `before` at which a job fits; `before` if there is none.

    If places matter, the job's own reservation must not be in the profile; its places are kept.
    """
    job = s.jobs[j]
    seconds = r.plan[j]
    if f.p[0].counts == 1:
        return earliest(c, job.gpus, seconds, begin, before, before)
    remember(s, r)
    at = begin
    found = before
    while at < before:
        at = earliest(c, job.gpus, seconds, at, before, np.inf)
        if at >= before:
            break
        if _fits_from(s, f, c, j, at, seconds):
            found = at
            f.pieces[j] = s.g[0].chosen
            for k in range(s.g[0].chosen):
                f.node[f.first[j] + k] = s.choice[k].node
                f.gpus[f.first[j] + k] = s.choice[k].gpus
                if s.g[0].resources == 1:
                    reserved = f.need[f.first[j] + k]
                    reserved.cpu, reserved.mem = s.need[k].cpu, s.need[k].mem
            break
        k = step_at(c, at) + 1
        at = c.t[k] if k < c.n[0] + c.n[1] else before
    back_to_now(s, r)
    return found


@inner
def _reserve(s, f, c, r, j):  # type: ignore[no-untyped-def]
    """Give a job without a reservation the earliest one."""
    at = _search(s, f, c, r, j, s.g[0].now, np.inf)
    f.at[j] = at
    f.p[0].next = min(f.p[0].next, at)
    if at == np.inf:
        return
    if f.p[0].counts == 1:
        reserve_count(f, c, j, s.jobs[j].gpus, at, at + r.plan[j])
    else:
        change_reserved(s, f, c, j, at, at + r.plan[j], -1)


@inner
def _make_anew(s, f, c, r):  # type: ignore[no-untyped-def]
    """Drop all reservations, and give each job the earliest one, in order."""
    p = f.p[0]
    now = s.g[0].now
    for k in range(c.n[0], c.n[0] + c.n[1]):
        c.spare[c.n[2]] = c.row[k]
        c.n[2] += 1
    c.n[2] -= 1
    row = c.spare[c.n[2]]
    c.n[0], c.n[1] = 0, 1
    c.t[0], c.level[0], c.row[0], c.starts[row] = now, s.g[0].total, row, -1
    if p.counts == 0:
        for number in range(s.nodes.size):
            up = s.nodes[number].up
            c.free[row, number] = s.nodes[number].cap if up == 1 else 0
            if s.g[0].resources == 1:
                c.free[row, p.cpu + number] = s.stock[number].cpu if up == 1 else 0
                c.free[row, p.cpu + s.nodes.size + number] = s.stock[number].mem if up == 1 else 0
    if p.quotas == 1:
        for queue in range(s.queue_limit.size):
            c.free[row, column_of(s, f, queue)] = np.int64(min(s.queue_limit[queue], 9e15))
    for k in range(r.n[0]):
        if r.end[k] > now:
            change_running(s, f, c, r.job[k], now, r.end[k], -1)
    p.next = np.inf
    for k in range(p.waiting):
        _reserve(s, f, c, r, f.line[k])
    p.freed_from, p.freed_to = np.inf, -np.inf
    p.stale = 0


@inner
def _move(s, f, c, r, j, after, before):  # type: ignore[no-untyped-def]
    """Move a reservation to the first second with room from `after` on, if that is before `before`."""
    old = f.at[j]
    seconds = r.plan[j]
    if old < np.inf:
        change_reserved(s, f, c, j, old, old + seconds, 1)
    at = _search(s, f, c, r, j, after, before)
    if at >= before:
        if old < np.inf:
            change_reserved(s, f, c, j, old, old + seconds, -1)
        return
    f.at[j] = at
    f.p[0].next = min(f.p[0].next, at)
    change_reserved(s, f, c, j, at, at + seconds, -1)
    if old < np.inf:
        freed(f, old, old + seconds)


@inner
def _compress(s, f, c, r):  # type: ignore[no-untyped-def]
    """The same as `compress_counts` if places matter."""
    p = f.p[0]
    now = s.g[0].now
    while p.freed_from < p.freed_to:
        begin, end = max(p.freed_from, now), p.freed_to
        p.freed_from, p.freed_to = np.inf, -np.inf
        for k in range(p.waiting):
            j = f.line[k]
            # a newly possible place must overlap what has become free before or in its turn of this round
            after = max(now, min(begin, p.freed_from) - r.plan[j])
            before = min(f.at[j], max(end, p.freed_to))
            if f.at[j] <= now:
                continue
            if after < before:
                _move(s, f, c, r, j, after, before)


# ---- the pass


@inner
def _can_start(s, f, j):  # type: ignore[no-untyped-def]
    """Whether the reservation of a due job is actually free; its places are in `choice`."""
    job = s.jobs[j]
    if s.g[0].free < job.gpus or s.queue_used[job.queue] + job.gpus > s.queue_limit[job.queue]:
        return False
    if f.p[0].counts == 1:
        return find_for(s, j, f.how[j])
    s.g[0].chosen = 0
    for k in range(f.first[j], f.first[j] + f.pieces[j]):
        number = f.node[k]
        if s.nodes[number].up == 0 or s.nodes[number].free < f.gpus[k]:
            return False
        if s.g[0].resources == 1:
            stock, reserved, need = s.stock[number], f.need[k], s.need[s.g[0].chosen]
            if stock.cpu_free < reserved.cpu or stock.mem_free < reserved.mem:
                return False
            need.cpu, need.mem = reserved.cpu, reserved.mem
        choose(s, number, f.gpus[k])
    return True


@inner
def _start_those_due(s, f, c, r):  # type: ignore[no-untyped-def]
    """Start the jobs whose reserved second has come, in order."""
    p = f.p[0]
    now = s.g[0].now
    p.next = np.inf
    left = 0
    for k in range(p.waiting):
        j = f.line[k]
        if f.at[j] > now:
            p.next = min(p.next, f.at[j])
        elif _can_start(s, f, j):
            if p.counts == 1:
                begins_no_more(f, c, j)
            launch(s, j, R_EARLY if left > 0 else R_FIRST if s.jobs[j].queued == now else R_DUE)
            runs(s, r, j)
            continue
        else:
            # a job exceeds its planned time
            p.stale = 1
        f.line[left] = j
        left += 1
    p.waiting = left


@inner
def _take_back(s, f, c, r):  # type: ignore[no-untyped-def]
    """Update the profile by ended jobs and present nodes, and adapt reservations."""
    g = s.g[0]
    p = f.p[0]
    anew, early = p.stale == 1, False
    for k in range(g.events):
        event = s.events[k]
        if event.kind == E_FINISHED or event.kind == E_QUEUED:
            end = runs_no_more(r, event.who)
            if end > g.now:
                change_running(s, f, c, event.who, g.now, end, 1)
                freed(f, g.now, end)
                early = True
        elif event.kind == E_NODE_DOWN:
            anew = True
        elif event.kind == E_NODE_UP:
            change_node(s, f, c, event.who)
            freed(f, g.now, np.inf)
            early = True
    if anew:
        _make_anew(s, f, c, r)
    elif early and p.counts == 1:
        compress_counts(s, f, c, r)
    elif early:
        _compress(s, f, c, r)


@inner
def _welcome(s, f, c, r, j):  # type: ignore[no-untyped-def]
    """Give a newly queued job its first reservation."""
    _reserve(s, f, c, r, j)
    if f.at[j] > s.g[0].now:
        note(s, D_RESERVE, j, s.jobs[j].gpus, -1, R_RESERVED)


@inner
def decide(s, f, c, r):  # type: ignore[no-untyped-def]
    """One pass at this instant."""
    g = s.g[0]
    p = f.p[0]
    forget(c, g.now)
    _take_back(s, f, c, r)
    fresh = -1
    several = False
    for k in range(g.events):
        event = s.events[k]
        if event.kind == E_QUEUED and s.jobs[event.who].state == WAITING:
            several = fresh >= 0
            fresh = event.who
            if joins_tail(s, fresh):
                to_tail(s, f.rank, fresh)
            into_line(f, fresh)
            f.at[fresh] = np.nan
    if several:
        for k in range(p.waiting):
            if np.isnan(f.at[f.line[k]]):
                _welcome(s, f, c, r, f.line[k])
    elif fresh >= 0:
        _welcome(s, f, c, r, fresh)
    if p.next <= g.now:
        _start_those_due(s, f, c, r)
    if p.next < np.inf and p.next != p.bell:
        # no job may end then: a reservation may begin at the former end of a moved one
        p.bell = p.next
        named_timer(s, 0, p.next)


@compiled
def run(s, f, c, r, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(s, (f, c, r), until, steps, decide=decide)
