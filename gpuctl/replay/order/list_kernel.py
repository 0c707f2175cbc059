"""The compiled pass of every policy that orders jobs: start what fits, and preempt if allowed.

One pass walks the waiting and the running jobs in the policy's order. Each job may use what earlier ones have left;
running jobs too late in order lose their GPUs. Free GPUs are used before any job is preempted.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, find, hide
from gpuctl.replay.engine.preemption_kernel import goal_at, must_go_on, preempt
from gpuctl.replay.engine.reasons import R_DISPLACED, R_FILL, R_FIRST, R_PREEMPTING, R_SKIPPED
from gpuctl.replay.engine.resource_kernel import find_for
from gpuctl.replay.engine.rounds_kernel import is_round, next_round
from gpuctl.replay.engine.state import RUNNING, SUSPENDING, WAITING
from gpuctl.replay.order.claim_kernel import claim_for
from gpuctl.replay.order.order_kernel import (
    BY_GITTINS,
    BY_LEVEL,
    BY_LIST,
    BY_REMAINING,
    BY_SERVICE,
    BY_SHARE,
    BY_SUBMIT,
    began,
    into_run,
    on_wake,
    out_of_run,
    place_of,
    precedes,
    sort_running,
    stamp,
    timers_fire,
    wait,
)
from gpuctl.replay.order.waiting_kernel import first, insert, pop, remove, sooner

# ---- the pass without preemption


@inner
def _first_by_share(s, q, r):  # type: ignore[no-untyped-def]
    """The first job of the tenant with the least share for its weight; -1 none."""
    best = -1
    this = q.counter[0]
    for group in range(q.head.size):
        j = q.head[group]
        if j < 0 or q.bad[group] == this:
            continue
        if best < 0:
            best = j
            continue
        a, b = s.jobs[j].share, s.jobs[best].share
        mine, its = s.share_used[a] / r.weights[a], s.share_used[b] / r.weights[b]
        if mine < its or (mine == its and sooner(q, j, best)):
            best = j
    return best


@inner
def _start_what_fits(s, q, r, reason):  # type: ignore[no-untyped-def]
    """Start waiting jobs in order on free GPUs; a job that does not fit is skipped, or ends it."""
    p = r.p[0]
    g = s.g[0]
    q.counter[0] += 1
    skipped = False
    while g.waiting > 0 and (g.free > 0 or g.resources == 1):
        j = _first_by_share(s, q, r) if p.rule == BY_SHARE else first(q)
        if j < 0:
            return
        job = s.jobs[j]
        within = s.queue_used[job.queue] + job.gpus <= s.queue_limit[job.queue]
        if within and find_for(s, j, r.how[j]):
            _go(s, q, r, j, R_SKIPPED if skipped else reason)
            continue
        if p.strict == 1:
            return
        q.bad[q.group[j]] = q.counter[0]
        skipped = True


@inner
def _go(s, q, r, j, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job on the GPUs in `choice`."""
    pop(q, q.group[j])
    _run_from_now(s, q, r, j, reason)


@inner
def _run_from_now(s, q, r, j, reason):  # type: ignore[no-untyped-def]
    p = r.p[0]
    at = place_of(s, q, r, j) if p.preempts == 1 else 0
    launch(s, j, reason)
    began(s, q, r, j)
    if p.preempts == 1:
        if p.rule == BY_LEVEL:
            at = place_of(s, q, r, j)
        into_run(s, q, r, j, at)


# ---- the pass with preemption


@inner
def _count_coming(s, r):  # type: ignore[no-untyped-def]
    """Count the GPUs being released, by node; returns their number."""
    r.coming[:] = 0
    size, total = 0, 0
    for k in range(r.n[2]):
        j = r.parting[k]
        if s.jobs[j].state == SUSPENDING:
            r.parting[size] = j
            size += 1
            row = s.attempts[s.jobs[j].row]
            for at in range(row.first, row.first + row.pieces):
                r.coming[s.pieces[at].node] += s.pieces[at].gpus
                total += s.pieces[at].gpus
    r.n[2] = size
    return total


@inner
def _keeps(s, r, k):  # type: ignore[no-untyped-def]
    """Whether no earlier job has claimed the GPUs of the running job at place `k`; if so, it keeps them."""
    row = s.attempts[s.jobs[r.run[k]].row]
    for at in range(row.first, row.first + row.pieces):
        if r.held[s.pieces[at].node] < s.pieces[at].gpus:
            return False
    for at in range(row.first, row.first + row.pieces):
        r.held[s.pieces[at].node] -= s.pieces[at].gpus
    return True


@inner
def _until_a_claim(s, q, r, coming):  # type: ignore[no-untyped-def]
    """Start what fits, in order, up to the first job that needs to preempt; returns it, or -1."""
    q.counter[0] += 1
    while True:
        w = first(q)
        if w < 0:
            return -1
        job = s.jobs[w]
        if s.g[0].free >= job.gpus and find(s, job.mask, job.gpus, r.how[w]):
            _go(s, q, r, w, R_FIRST)
            continue
        enough = s.g[0].free + coming
        if enough < job.gpus:
            for k in range(place_of(s, q, r, w), r.n[0]):
                enough += r.run_gpus[k]
        if enough >= job.gpus:
            return w
        q.bad[q.group[w]] = q.counter[0]


@inner
def _walk(s, q, r, w, coming):  # type: ignore[no-untyped-def]
    """Walk waiting and running jobs in order from the waiting job `w` on, and preempt those too late in order.

    Returns:
        Whether a running job lost its GPUs at once.
    """
    i = place_of(s, q, r, w)
    r.held[:] = 0
    after = 0
    for k in range(i, r.n[0]):
        if must_go_on(s, r.run[k], s.g[0].mode):
            continue
        row = s.attempts[s.jobs[r.run[k]].row]
        for at in range(row.first, row.first + row.pieces):
            r.held[s.pieces[at].node] += s.pieces[at].gpus
        after += r.run_gpus[k]
    unclaimed = s.g[0].free + coming + after
    r.n[1] = 0
    later, lost = 0, 0
    while w >= 0 or (i < r.n[0] and later > 0):
        if i < r.n[0] and (w < 0 or not precedes(s, q, r, w, i)):
            if must_go_on(s, r.run[i], s.g[0].mode):
                i += 1
                continue
            if _keeps(s, r, i):
                unclaimed -= r.run_gpus[i]
            else:
                r.lost[lost] = r.run[i]
                lost += 1
            i += 1
            continue
        job = s.jobs[w]
        if job.gpus <= unclaimed and find(s, job.mask, job.gpus, r.how[w]):
            before = r.n[0]
            unclaimed -= job.gpus
            _go(s, q, r, w, R_FIRST)
            # it precedes those still to come
            i += r.n[0] - before
        elif job.gpus <= unclaimed and claim_for(s, r, w, i):
            unclaimed -= job.gpus
            pop(q, q.group[w])
            r.later[later] = w
            r.later_end[later] = r.n[1]
            later += 1
        else:
            q.bad[q.group[w]] = q.counter[0]
        w = first(q)
    return _preempt_and_start(s, q, r, later, lost)


@inner
def _preempt_and_start(s, q, r, later, lost):  # type: ignore[no-untyped-def]
    p = r.p[0]
    freed = False
    for k in range(lost):
        j = r.lost[k]
        freed |= preempt(s, j, s.g[0].mode, R_DISPLACED)
        if s.jobs[j].state != RUNNING:  # else it ends with its epoch
            out_of_run(r, j)
        if s.jobs[j].state == SUSPENDING:
            if p.rule == BY_LEVEL:
                cancel(s, s.jobs.size + j)
            r.parting[r.n[2]] = j
            r.n[2] += 1
    # requeue ahead of waiting jobs with the same key, in list order, from the last to the first
    listed = p.rule == BY_SERVICE or (p.rule == BY_LEVEL and p.inner == BY_LIST)
    for k in range(lost):
        j = r.lost[lost - 1 - k if listed else k]
        if s.jobs[j].state == WAITING:
            # but a job just moved to the end of a level stays there
            ahead, tie = p.rule == BY_SERVICE or q.key[j] == 0.0, q.tie[j]
            wait(s, q, r, j, 0)
            if listed:
                remove(q, j)
                q.tie[j] = -stamp(s, q, 0) if ahead else tie
                insert(q, j)
    for k in range(r.n[1]):
        hide(s, r.claim_node[k], 0)
    claim = 0
    for k in range(later):
        j = r.later[k]
        until = r.later_end[k]
        ready = True
        for c in range(claim, until):
            if s.nodes[r.claim_node[c]].free < r.claim_gpus[c]:
                ready = False
        if ready:
            s.g[0].chosen = 0
            for c in range(claim, until):
                choose(s, r.claim_node[c], r.claim_gpus[c])
            _run_from_now(s, q, r, j, R_PREEMPTING)
        else:
            insert(q, j)
        claim = until
    return freed


@inner
def _by_start(s, r):  # type: ignore[no-untyped-def]
    """Break ties of running jobs by start."""
    for k in range(1, r.n[0]):
        at = k
        while at > 0 and r.run_key[at] == r.run_key[at - 1] and r.run_level[at] == r.run_level[at - 1]:
            a, b = r.run[at - 1], r.run[at]
            if s.jobs[a].start < s.jobs[b].start:
                break
            if s.jobs[a].start == s.jobs[b].start and r.run_tie[at - 1] <= r.run_tie[at]:
                break
            r.run[at - 1], r.run[at] = b, a
            r.run_tie[at - 1], r.run_tie[at] = r.run_tie[at], r.run_tie[at - 1]
            r.run_gpus[at - 1], r.run_gpus[at] = r.run_gpus[at], r.run_gpus[at - 1]
            at -= 1


@inner
def waits(s, j, q, r):  # type: ignore[no-untyped-def]
    """Handle a job queued for the first time."""
    if s.jobs[j].state == WAITING:
        wait(s, q, r, j, 1)


@inner
def on_requeue(s, j, q, r):  # type: ignore[no-untyped-def]
    """Handle a requeued job."""
    on_finish(s, j, q, r)
    waits(s, j, q, r)


@inner
def on_finish(s, j, q, r):  # type: ignore[no-untyped-def]
    """Handle a job that stopped running."""
    if r.p[0].preempts == 1:
        out_of_run(r, j)


@inner
def decide(s, q, r):  # type: ignore[no-untyped-def]
    """One pass at this instant."""
    g = s.g[0]
    p = r.p[0]
    timers = r.n[3] > 0
    if timers:
        timers_fire(s, q, r)
    if timers and p.inner == BY_SUBMIT:
        _by_start(s, r)
    if g.waiting > 0:
        _pass(s, q, r, g.span <= 0 or is_round(s))
    if timers and p.inner == BY_LIST:
        # jobs demoted that kept their GPUs go ahead of the waiting jobs of the lower level from now on
        for k in range(r.n[0]):
            j = r.run[k]
            if r.run_key[k] == 1.0:
                q.key[j] = r.run_key[k] = 0.0
                q.tie[j] = r.run_tie[k] = stamp(s, q, 0)


@inner
def _wake_at_goals(s, r):  # type: ignore[no-untyped-def]
    """Wake when a protected running job reaches its goal."""
    g = s.g[0]
    soonest = np.inf
    for k in range(r.n[0]):
        if must_go_on(s, r.run[k], g.mode):
            soonest = min(soonest, goal_at(s, r.run[k], g.mode))
    if soonest < np.inf:
        named_timer(s, 1, soonest)


@inner
def _pass(s, q, r, turn):  # type: ignore[no-untyped-def]
    g = s.g[0]
    p = r.p[0]
    if not turn:
        next_round(s)
        return
    if p.preempts == 0:
        _start_what_fits(s, q, r, R_FIRST)
    else:
        if p.fixed == 0 and (
            p.rule == BY_REMAINING or p.rule == BY_SERVICE or (p.rule == BY_LEVEL and p.inner == BY_GITTINS)
        ):
            sort_running(s, q, r)
        coming = _count_coming(s, r)
        w = _until_a_claim(s, q, r, coming)
        if w >= 0:
            freed = _walk(s, q, r, w, coming)
            if freed and s.nodes.size > 1 and g.waiting > 0:
                _start_what_fits(s, q, r, R_FILL)
        if p.ties == 1:
            _by_start(s, r)
    if g.waiting > 0 and p.quantum > 0 and g.running > 0:
        named_timer(s, 0, g.now + p.quantum)
    elif g.waiting > 0 and p.preempts == 1:
        _wake_at_goals(s, r)
    if g.waiting > 0 and g.span > 0:
        next_round(s)


@compiled
def run(s, q, r, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(
        s, (q, r), until, steps, decide=decide, on_submit=waits, on_requeue=on_requeue, on_finish=on_finish,
        on_wake=on_wake,
    )  # fmt: skip
