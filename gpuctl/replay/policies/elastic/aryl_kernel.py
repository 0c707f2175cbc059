"""The compiled Aryl: lends and returns nodes, starts waiting jobs, and redistributes flexible workers.

With S nodes, R running and W shapes of waiting jobs an instant costs O(S + W) plus O(S + R) per worker started or
dropped; a tick O(R S) per returned node, and the knapsack.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.job_life_kernel import launch, note, settle
from gpuctl.replay.engine.key_kernel import micro
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.reshuffle_kernel import drop_reclaimed, is_there, lower, relocate
from gpuctl.replay.engine.state import D_LOAN, D_RETURN, WAITING
from gpuctl.replay.policies.elastic.borrowing_kernel import (
    ELASTIC,
    RIGID,
    add,
    ahead,
    cheapest,
    clear,
    count_free,
    enter,
    pop,
    take_flex,
    takes,
    touch,
    usable,
    wait,
)
from gpuctl.replay.policies.elastic.knapsack_kernel import knapsack

R_FITS, R_RESIZED, R_RECLAIMED, R_IDLE, R_WANTED = range(len(REASONS), len(REASONS) + 5)
ARYL_REASONS = (
    "the shortest of those that fit",
    "flexible workers go where they save most",
    "a node with its base workers goes back to inference",
    "inference does without the node",
    "inference needs the node",
)


@inner
def waits(s, j, m):  # type: ignore[no-untyped-def]
    """Handle a job queued for the first time or again."""
    clear(m, j)
    wait(s, m, j)


@inner
def ends(s, j, m):  # type: ignore[no-untyped-def]
    """Handle an ended job."""
    clear(m, j)


@inner
def ticks(s, number, m):  # type: ignore[no-untyped-def]
    """Handle a tick with jobs present."""
    m.p[0].due = 1


# ---- loans


@inner
def _goal(m, t):  # type: ignore[no-untyped-def]
    """Nodes idle in inference at a second; none before the load begins."""
    within = t - _began(m, t)
    line = np.searchsorted(m.load_t, within, side="right")
    return m.load_free[line - 1] if line > 0 else 0


@inner
def _began(m, t):  # type: ignore[no-untyped-def]
    """Start of the load's present period."""
    period = m.load_period[0]
    return 0.0 if period == np.inf else np.floor(t / period) * period


@inner
def _next_change(m, t):  # type: ignore[no-untyped-def]
    """Second of the next change of the load; inf none."""
    began = _began(m, t)
    line = np.searchsorted(m.load_t, t - began, side="right")
    return began + (m.load_t[line] if line < m.load_t.size else m.load_period[0])


@inner
def _tick_by_tick(s, m):  # type: ignore[no-untyped-def]
    """Apply loans and returns of all ticks up to now, and set a timer for the next change."""
    p, g = m.p[0], s.g[0]
    tick = np.int64(np.floor(g.now / p.interval + 1e-9))
    if tick == p.tick:
        return
    while p.tick < tick:
        p.tick += 1
        _lend(s, m, _goal(m, p.tick * p.interval))
    for k in range(p.training, m.hosts.size):
        host = m.hosts[k]
        if host.logged != host.lent:
            host.logged = host.lent
            lent = host.lent == 1
            note(s, D_LOAN if lent else D_RETURN, -1, s.nodes[k].cap, k, R_IDLE if lent else R_WANTED)
    after = _next_change(m, p.tick * p.interval)
    if after < np.inf:
        named_timer(s, 0, max(np.ceil(after / p.interval - 1e-9), p.tick + 1.0) * p.interval)


@inner
def _lend(s, m, goal):  # type: ignore[no-untyped-def]
    p = m.p[0]
    for k in range(p.training, m.hosts.size):
        if p.lent < goal and m.hosts[k].lent == 0:
            m.hosts[k].lent = 1
            m.hosts[k].free = s.nodes[k].free
            p.free_l += m.hosts[k].free
            p.lent += 1
    while p.lent > goal:
        _give_back(s, m, cheapest(m))


@inner
def _give_back(s, m, k):  # type: ignore[no-untyped-def]
    """Return a node: its flexible workers are dropped, jobs with base workers there are preempted."""
    p = m.p[0]
    i = 0
    while i < p.line:
        j = m.line[i]
        at = m.members[j].first
        while at >= 0 and m.shares[at].node != k:
            at = m.shares[at].next
        if at < 0:
            i += 1
        elif m.shares[at].fixed > 0:
            touch(s, m, j)
            clear(m, j)
            drop_reclaimed(s, j, R_RECLAIMED)
            wait(s, m, j)
            p.thrown += 1
        else:
            take_flex(s, m, j, k, m.shares[at].flex)
            p.scaled_in += 1
            i += 1
    p.free_l -= m.hosts[k].free
    m.hosts[k].free = m.hosts[k].lent = 0
    p.lent -= 1
    p.reclaimed += 1


# ---- phase 1: waiting jobs


@inner
def _room(s, m, j, training, lent, flexible):  # type: ignore[no-untyped-def]
    """Free GPUs on nodes that suit a job, optionally with those of flexible workers."""
    p = m.p[0]
    if p.plain == 1:
        return (p.free_t + flexible * p.flex_t if training else 0) + (p.free_l + flexible * p.flex_l if lent else 0)
    gpus = 0
    for k in range(m.hosts.size):
        if usable(s, m, j, k, training, lent):
            gpus += m.hosts[k].free + flexible * m.hosts[k].flex
    return gpus


@inner
def _set_with(s, m, j, flexible):  # type: ignore[no-untyped-def]
    """The first set of nodes with room for a job: 0 training, 1 loaned, 2 both; -1 none."""
    member = m.members[j]
    if _room(s, m, j, True, False, flexible) >= member.least:
        return 0
    if member.kind != RIGID and _room(s, m, j, False, True, flexible) >= member.least:
        return 1
    if member.kind == ELASTIC and _room(s, m, j, True, True, flexible) >= member.least:
        return 2
    return -1


@inner
def _admit(s, m):  # type: ignore[no-untyped-def]
    """Start waiting jobs, shortest first. Room only shrinks: a shape that does not fit is skipped from then on."""
    while True:
        best = -1
        for shape in range(m.size.size):
            if m.size[shape] > 0:
                j = m.heap[m.first[shape]]
                if (best < 0 or ahead(m, j, best)) and _set_with(s, m, j, 1) >= 0:
                    best = j
        if best < 0:
            return
        pop(m, m.members[best].request)
        _start(s, m, best)


@inner
def _start(s, m, j):  # type: ignore[no-untyped-def]
    least = m.members[j].least
    which = _set_with(s, m, j, 0)
    short = 0
    if which < 0:
        which = _set_with(s, m, j, 1)
        short = least - _room(s, m, j, which != 1, which != 0, 0)
    training, lent = which != 1, which != 0
    for _ in range(short):
        _drop_one(s, m, j, training, lent)
    enter(m, j)
    one = -1
    for k in range(m.hosts.size):
        free = m.hosts[k].free
        if free >= least and usable(s, m, j, k, training, lent) and (one < 0 or free < m.hosts[one].free):
            one = k
    if one >= 0:
        add(s, m, j, one, least, 0)
        return
    while least > 0:
        most = -1
        for k in range(m.hosts.size):
            free = m.hosts[k].free
            if free > 0 and usable(s, m, j, k, training, lent) and (most < 0 or free > m.hosts[most].free):
                most = k
        some = min(least, m.hosts[most].free)
        add(s, m, j, most, some, 0)
        least -= some


@inner
def _drop_one(s, m, j, training, lent):  # type: ignore[no-untyped-def]
    """Drop a flexible worker in a job's way: from the job that loses least, on the last node."""
    best, least, node = -1, 0, -1
    for i in range(m.p[0].line):
        other = m.line[i]
        member = m.members[other]
        if member.flex == 0:
            continue
        last = _last_flex(s, m, other, j, training, lent)
        if last < 0:
            continue
        settle(s, other)
        gpus = member.least + member.flex
        loss = micro(takes(s, other, gpus - 1) - takes(s, other, gpus))
        if best < 0 or loss < least:
            best, least, node = other, loss, last
    take_flex(s, m, best, node, 1)


@inner
def _last_flex(s, m, owner, j, training, lent):  # type: ignore[no-untyped-def]
    """The highest node with flexible workers of one job that suits another; -1 none."""
    last = -1
    at = m.members[owner].first
    while at >= 0:
        share = m.shares[at]
        if share.flex > 0 and share.node > last and usable(s, m, j, share.node, training, lent):
            last = share.node
        at = share.next
    return last


# ---- phase 2: flexible workers


@inner
def _share_out(s, m):  # type: ignore[no-untyped-def]
    p = m.p[0]
    groups = 0
    for i in range(p.line):
        j = m.line[i]
        member = m.members[j]
        if member.most > member.least:
            settle(s, j)
            items = min(member.most - member.least + 1, m.values.shape[1])
            base = takes(s, j, member.least)
            for k in range(items):
                m.values[groups, k] = micro(base - takes(s, j, member.least + k)) if k > 0 else 0
            m.group[groups], m.items[groups] = j, items
            groups += 1
    if groups == 0:
        return
    p.knapsacks += 1
    room = p.free_t + p.free_l + p.flex_t + p.flex_l
    knapsack(m.values, m.best, m.items, m.counts, groups, room)
    for g in range(groups):
        while m.members[m.group[g]].flex > m.counts[g]:
            _shrink(s, m, m.group[g])
    for g in range(groups):
        while m.members[m.group[g]].flex < m.counts[g] and _grow(s, m, m.group[g]):
            pass


@inner
def _shrink(s, m, j):  # type: ignore[no-untyped-def]
    """Drop a flexible worker: from training nodes before loaned ones, the highest first."""
    last = _last_flex(s, m, j, j, True, False)
    if last < 0:
        last = _last_flex(s, m, j, j, False, True)
    take_flex(s, m, j, last, 1)


@inner
def _grow(s, m, j):  # type: ignore[no-untyped-def]
    """Add a flexible worker: to loaned nodes without base workers, other loaned ones, training nodes."""
    best, kind = -1, 3
    for k in range(m.hosts.size):
        host = m.hosts[k]
        if host.free <= 0 or not usable(s, m, j, k, True, True):
            continue
        its = 2 if k < m.p[0].training else 1 if host.fixed > 0 else 0
        if its < kind or (its == kind and host.free < m.hosts[best].free):
            best, kind = k, its
    if best >= 0:
        add(s, m, j, best, 0, 1)
    return best >= 0


# ---- an instant


@inner
def _settle_all(s, m):  # type: ignore[no-untyped-def]
    """Apply the decisions to the engine; jobs that end up as before are unchanged."""
    p, g = m.p[0], s.g[0]
    for i in range(p.changed):
        j = m.changed[i]
        m.members[j].touched = 0
        g.chosen = 0
        at = m.members[j].first
        while at >= 0:
            choose(s, m.shares[at].node, m.shares[at].fixed + m.shares[at].flex)
            at = m.shares[at].next
        if s.jobs[j].state == WAITING:
            if g.chosen > 0:
                launch(s, j, R_FITS)
        elif is_there(s, j):
            lower(s, j)
        else:
            relocate(s, j, R_RESIZED)
    g.chosen = 0
    p.changed = 0


@inner
def decide(s, m):  # type: ignore[no-untyped-def]
    """Decide at an instant, in this order."""
    p = m.p[0]
    count_free(s, m)
    if p.loan == 1:
        _tick_by_tick(s, m)
    _admit(s, m)
    if p.due == 1:
        p.due = 0
        if p.elastic == 1:
            _share_out(s, m)
    _settle_all(s, m)


@compiled
def run(s, m, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants."""
    return loop(s, (m,), until, steps, decide=decide, on_finish=ends, on_requeue=waits, on_submit=waits, on_round=ticks)
