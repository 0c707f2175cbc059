"""Mirage's scheduler, compiled: a main pass each minute, replaced by a pass of backfill in each tenth one.

Passes that would start no job are skipped: main passes without an event since the last one, and backfill while every
waiting job requests more nodes than are free.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.reasons import R_FIRST, REASONS
from gpuctl.replay.engine.resource_kernel import find_for
from gpuctl.replay.engine.state import E_QUEUED, E_TIMER, RUNNING, WAITING
from gpuctl.replay.models.decision_log import BACKFILLED
from gpuctl.replay.policies.mirage.slots_kernel import LONGEST_LINE, SLOT_MIN, first_slot, free_by_slot, reserve

OWN_REASONS = (BACKFILLED,)
R_BACKFILLED = len(REASONS)


class Memory(Bundle):
    """Input and memory of the policy; a node counts as a GPU."""

    rank = ints()  # position of each job in the queue, 0 first [jobs]
    limit = ints()  # minutes that it is planned for [jobs]
    how = ints()  # where its gang goes [jobs]
    line = ints()  # jobs that wait, in that order [jobs]
    run = ints()  # jobs that run, in no order; `nodes` and `until` (the minute of its limit) by the same place [jobs]
    nodes = ints()  # see there
    until = ints()  # see there
    slots = ints()  # free nodes in each slot of a plan [SLOTS]
    starts = ints()  # 1 where the job at that place of the line starts in this pass [jobs]
    n = ints()  # number waiting; number running; whether an event has happened since the last pass [3]


@inner
def _queue(m, j):  # type: ignore[no-untyped-def]
    at = m.n[0]
    while at > 0 and m.rank[m.line[at - 1]] > m.rank[j]:
        m.line[at] = m.line[at - 1]
        at -= 1
    m.line[at] = j
    m.n[0] += 1


@inner
def _process_events(s, m):  # type: ignore[no-untyped-def]
    """Process the events of this instant."""
    for k in range(s.g[0].events):
        if s.events[k].kind == E_QUEUED and s.jobs[s.events[k].who].state == WAITING:
            _queue(m, s.events[k].who)
        if s.events[k].kind != E_TIMER:
            m.n[2] = 1
    count = 0
    for k in range(m.n[1]):
        j = m.run[k]
        if s.jobs[j].state == RUNNING:
            m.run[count], m.nodes[count], m.until[count] = j, m.nodes[k], m.until[k]
            count += 1
    m.n[1] = count


@inner
def _start(s, m, j, minute, reason):  # type: ignore[no-untyped-def]
    """Start a job on the nodes in `choice`."""
    launch(s, j, reason)
    k = m.n[1]
    m.run[k], m.nodes[k], m.until[k] = j, s.jobs[j].gpus, minute + m.limit[j]
    m.n[1] += 1


@inner
def _main(s, m, minute):  # type: ignore[no-untyped-def]
    """Start jobs from the head; stop at the first that does not fit."""
    begun = 0
    while begun < m.n[0] and s.jobs[m.line[begun]].gpus <= s.g[0].free:
        j = m.line[begun]
        if not find_for(s, j, m.how[j]):
            break
        _start(s, m, j, minute, R_FIRST)
        begun += 1
    if begun > 0:
        m.n[0] -= begun
        for k in range(m.n[0]):
            m.line[k] = m.line[k + begun]


@inner
def _last_that_fits(s, m):  # type: ignore[no-untyped-def]
    """The last position of the line that a pass must visit; -1: no job requests as few nodes as are free."""
    last = min(m.n[0], LONGEST_LINE) - 1
    while last >= 0 and s.jobs[m.line[last]].gpus > s.g[0].free:
        last -= 1
    return last


@inner
def _backfill(s, m, minute):  # type: ignore[no-untyped-def]
    """Plan the jobs in order; start those due now."""
    last = _last_that_fits(s, m)
    if last < 0:
        return
    free_by_slot(m.slots, s.g[0].free, m.n[1], m.nodes, m.until, minute)
    for k in range(last + 1):
        j = m.line[k]
        nodes = s.jobs[j].gpus
        begin = first_slot(m.slots, nodes, m.limit[j])
        if begin >= 0:
            reserve(m.slots, begin, nodes, m.limit[j])
        m.starts[k] = begin == 0
        if m.slots[0] == 0:
            last = k
            break
    count = 0
    for k in range(m.n[0]):
        j = m.line[k]
        if k <= last and m.starts[k] == 1 and find_for(s, j, m.how[j]):
            _start(s, m, j, minute, R_FIRST if k == 0 else R_BACKFILLED)
        else:
            m.line[count] = j
            count += 1
    m.n[0] = count


@inner
def decide(s, m):  # type: ignore[no-untyped-def]
    """Run the pass of this minute, and schedule the next one that may start a job."""
    now = s.g[0].now
    _process_events(s, m)
    if m.n[0] == 0:
        return
    minute = int(np.floor(now / 60.0))
    if now > minute * 60.0:
        if m.n[2] == 1:
            named_timer(s, 0, (minute + 1) * 60.0)
        return
    if minute % SLOT_MIN == 0:
        _backfill(s, m, minute)
    elif m.n[2] == 1:
        _main(s, m, minute)
    m.n[2] = 0
    if s.g[0].running > 0 and _last_that_fits(s, m) >= 0:
        named_timer(s, 0, (minute // SLOT_MIN + 1) * SLOT_MIN * 60.0)


@compiled
def run(s, m, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(s, (m,), until, steps, decide=decide)
