"""The compiled pass of EASY backfilling: the first job that cannot start has a reservation, others must not delay it.

A reservation is the earliest second at which the job could be placed, by its own placement and within its queue's
limit, if every running job ended as planned. A later job starts at its placement if it is planned to end by then, or if
the reserved job could still be placed at that second; else on what the reserved job would leave on each node; else not
now. More free GPUs never prevent a placement, so reservations hold as long as jobs end as planned and nodes stay up.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.job_life_kernel import launch, note
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, hide, set_free
from gpuctl.replay.engine.reasons import R_FIRST, REASONS
from gpuctl.replay.engine.requeue_kernel import joins_tail
from gpuctl.replay.engine.resource_kernel import find_for
from gpuctl.replay.engine.running_jobs_kernel import back_to_now, give, remember, runs, runs_no_more
from gpuctl.replay.engine.state import D_RESERVE, E_FINISHED, E_QUEUED, NEED, RUNNING, WAITING
from gpuctl.replay.policies.backfill.line_kernel import mark, move_to_tail, next_in_line, next_of

R_HEAD = len(REASONS)
R_SHORT, R_SPARE, R_AROUND = R_HEAD + 1, R_HEAD + 2, R_HEAD + 3
OWN_REASONS = (
    "first that cannot start: others must leave it the GPUs that it needs by its reservation",
    "backfilled: planned to end by the reservation of the first that waits",
    "backfilled: leaves enough for the reservation of the first that waits",
    "backfilled: on GPUs that the reservation of the first that waits leaves",
)

EASY = np.dtype(
    [
        ("counts", "i8"),  # 1: only how many GPUs are free decides whether a job can be placed
        ("head", "i8"),  # the job with a reservation; -1 none
        ("logged_head", "i8"),  # the last one that the log has
        ("version", "i8"),  # changes with what is free
        ("at", "f8"),  # second of the reservation
        ("extra", "i8"),  # GPUs that are free then besides its own
        ("room", "f8"),  # GPUs that its queue may still hold then besides its own
        ("each", "i8"),  # 1: a pass per event, not per instant
        ("withheld", "i8"),  # GPUs of jobs that have ended at this instant, before their turn in it
    ],
    align=True,
)


class Easy(Bundle):
    """Memory of the policy."""

    p = rows(EASY)  # one record of `EASY`
    how = ints()  # placement of each job [jobs]
    then = ints()  # GPUs free on each node at the reservation, without the reserved ones taken off [nodes]
    reserved_gpus = ints()  # of them, those reserved [nodes]
    then_need = rows(NEED)  # CPUs and memory free on each node then, records of `NEED` [nodes]
    reserved_need = rows(NEED)  # of them, those reserved [nodes]
    mine_node = ints()  # pieces of the candidate job, saved while the reservation is tried [nodes]
    mine_gpus = ints()  # GPUs there
    mine_need = rows(NEED)  # CPUs and memory there
    next = ints()  # the next job of each group that may be backfilled; -1 none [groups]
    out = ints()  # pass in which no job of the group can be placed any more [groups]
    late = ints()  # version at which one that ends after the reservation could not be started [groups]


@inner
def _free(s, f):  # type: ignore[no-untyped-def]
    return s.g[0].free - f.p[0].withheld


@inner
def _room(s, queue):  # type: ignore[no-untyped-def]
    """GPUs that a queue may still hold."""
    return s.queue_limit[queue] - s.queue_used[queue]


@inner
def _fits(s, f, j):  # type: ignore[no-untyped-def]
    """Whether a job can start now; its places are in `choice`."""
    job = s.jobs[j]
    return job.gpus <= _free(s, f) and job.gpus <= _room(s, job.queue) and find_for(s, j, f.how[j])


@inner
def _go(s, q, b, f, r, j, reason):  # type: ignore[no-untyped-def]
    mark(q, j, np.inf)
    mark(b, j, np.inf)
    launch(s, j, reason)
    runs(s, r, j)
    f.p[0].version += 1


# ---- the reservation


@inner
def _reserve_by_count(s, f, r, j):  # type: ignore[no-untyped-def]
    """Count released GPUs until the job fits. Returns whether it ever does."""
    p = f.p[0]
    free = _free(s, f)
    need = s.jobs[j].gpus
    for k in range(r.n[0]):
        free += s.jobs[r.job[k]].gpus
        if k + 1 < r.n[0] and r.end[k + 1] <= max(r.end[k], s.g[0].now):
            continue
        if free >= need:
            p.at = max(r.end[k], s.g[0].now)
            p.extra = free - need
            p.room = np.inf
            return True
    return False


@inner
def _reserve_places(s, f, r, j):  # type: ignore[no-untyped-def]
    """Release the GPUs of running jobs, one after the other, until the job fits. Returns whether it ever does."""
    p = f.p[0]
    job = s.jobs[j]
    now = s.g[0].now
    room = _room(s, job.queue)
    remember(s, r)
    found = False
    for k in range(r.n[0]):
        give(s, r.job[k])
        if s.jobs[r.job[k]].queue == job.queue:
            room += s.jobs[r.job[k]].held
        if k + 1 < r.n[0] and r.end[k + 1] <= max(r.end[k], now):
            continue
        if room >= job.gpus and find_for(s, j, f.how[j]):
            p.at = max(r.end[k], now)
            p.room = room - job.gpus
            found = True
            break
    if found:
        for number in range(s.nodes.size):
            f.then[number] = s.nodes[number].free if s.nodes[number].up == 1 else 0
            if s.g[0].resources == 1:
                f.then_need[number].cpu, f.then_need[number].mem = s.stock[number].cpu_free, s.stock[number].mem_free
        _keep_choice(s, f)
    back_to_now(s, r)
    return found


@inner
def _keep_choice(s, f):  # type: ignore[no-untyped-def]
    """Reserve `choice`."""
    f.reserved_gpus[:] = 0
    for k in range(f.reserved_need.size):
        f.reserved_need[k].cpu = f.reserved_need[k].mem = 0
    for k in range(s.g[0].chosen):
        number = s.choice[k].node
        f.reserved_gpus[number] = s.choice[k].gpus
        if s.g[0].resources == 1:
            f.reserved_need[number].cpu, f.reserved_need[number].mem = s.need[k].cpu, s.need[k].mem


@inner
def _leaves_reserved(s, f):  # type: ignore[no-untyped-def]
    """Whether `choice` avoids what is reserved."""
    for k in range(s.g[0].chosen):
        number = s.choice[k].node
        if f.then[number] - f.reserved_gpus[number] < s.choice[k].gpus:
            return False
        if s.g[0].resources == 1:
            then, reserved_gpus = f.then_need[number], f.reserved_need[number]
            if then.cpu - reserved_gpus.cpu < s.need[k].cpu or then.mem - reserved_gpus.mem < s.need[k].mem:
                return False
    return True


@inner
def _head_still_fits(s, f, r):  # type: ignore[no-untyped-def]
    """Whether the reserved job could be placed elsewhere at its time in addition to `choice`; if so, move it.

    `choice` stays unchanged.
    """
    g = s.g[0]
    p = f.p[0]
    mine = g.chosen
    for k in range(mine):
        f.mine_node[k], f.mine_gpus[k] = s.choice[k].node, s.choice[k].gpus
        if g.resources == 1:
            f.mine_need[k].cpu, f.mine_need[k].mem = s.need[k].cpu, s.need[k].mem
    remember(s, r)
    for number in range(s.nodes.size):
        if s.nodes[number].up == 1 and s.nodes[number].free != f.then[number]:
            set_free(s, number, f.then[number])
        if g.resources == 1:
            s.stock[number].cpu_free, s.stock[number].mem_free = f.then_need[number].cpu, f.then_need[number].mem
    for k in range(mine):
        number = f.mine_node[k]
        set_free(s, number, s.nodes[number].free - f.mine_gpus[k])
        if g.resources == 1:
            s.stock[number].cpu_free -= f.mine_need[k].cpu
            s.stock[number].mem_free -= f.mine_need[k].mem
    found = find_for(s, p.head, f.how[p.head])
    if found:
        _keep_choice(s, f)
    back_to_now(s, r)
    g.chosen = 0
    for k in range(mine):
        choose(s, f.mine_node[k], f.mine_gpus[k])
        if g.resources == 1:
            s.need[k].cpu, s.need[k].mem = f.mine_need[k].cpu, f.mine_need[k].mem
    return found


@inner
def _find_around(s, f, r, j):  # type: ignore[no-untyped-def]
    """Choose places on GPUs that the reservation leaves on each node."""
    remember(s, r)
    for number in range(s.nodes.size):
        free = s.nodes[number].free
        seen = min(free, max(f.then[number] - f.reserved_gpus[number], 0))
        if seen < free:
            hide(s, number, free - seen)
        if s.g[0].resources == 1:
            stock, then, reserved_gpus = s.stock[number], f.then_need[number], f.reserved_need[number]
            stock.cpu_free = min(stock.cpu_free, max(then.cpu - reserved_gpus.cpu, 0))
            stock.mem_free = min(stock.mem_free, max(then.mem - reserved_gpus.mem, 0))
    found = find_for(s, j, f.how[j])
    for number in range(s.nodes.size):
        if s.nodes[number].hidden > 0:
            hide(s, number, 0)
    back_to_now(s, r)
    return found


# ---- the pass


@inner
def _backfill_late(s, q, b, f, r, j):  # type: ignore[no-untyped-def]
    """Start a job planned to end after the reservation if it does not delay it; its places are in `choice`."""
    p = f.p[0]
    job = s.jobs[j]
    same = job.queue == s.jobs[p.head].queue
    if same and job.gpus > p.room:
        return False
    if p.counts == 1:
        if job.gpus > p.extra:
            return False
        p.extra -= job.gpus
        _go(s, q, b, f, r, j, R_SPARE)
        return True
    reason = R_SPARE
    if not _leaves_reserved(s, f) and not _head_still_fits(s, f, r):
        if not _find_around(s, f, r, j):
            return False
        reason = R_AROUND
    if same:
        p.room -= job.gpus
    for k in range(s.g[0].chosen):
        number = s.choice[k].node
        f.then[number] -= s.choice[k].gpus
        if s.g[0].resources == 1:
            f.then_need[number].cpu -= s.need[k].cpu
            f.then_need[number].mem -= s.need[k].mem
    _go(s, q, b, f, r, j, reason)
    return True


@inner
def _next_candidate(s, b, f, group, after):  # type: ignore[no-untyped-def]
    """Find the next job of a group that may be able to start."""
    p = f.p[0]
    f.next[group] = -1
    if f.out[group] == 1:
        return
    tried = f.late[group] == p.version or (p.counts == 1 and f.late[group] >= 0)
    # slightly more than the time left: the exact sum decides later
    most = p.at - s.g[0].now + 1e-6 if tried else np.inf
    j = next_of(b, group, after, most)
    if j >= 0 and s.jobs[j].gpus > _free(s, f):
        f.out[group] = 1
        return
    if j == p.head and j >= 0:
        j = next_of(b, group, b.rank[j], most)
    f.next[group] = j


@inner
def _backfill(s, q, b, f, r):  # type: ignore[no-untyped-def]
    """Start jobs after the reserved one, each tried once, in the order of `b`."""
    g = s.g[0]
    p = f.p[0]
    f.out[:] = 0
    f.late[:] = -1
    after = -1
    version = -1
    # jobs without GPUs may fit if no GPUs are free
    while _free(s, f) > 0 or s.g[0].resources == 1:
        if version != p.version:
            # jobs that could not start may now, placed elsewhere
            for group in range(f.next.size):
                _next_candidate(s, b, f, group, after)
            version = p.version
        group = -1
        for k in range(f.next.size):
            if f.next[k] >= 0 and (group < 0 or b.rank[f.next[k]] < b.rank[f.next[group]]):
                group = k
        if group < 0:
            return
        j = f.next[group]
        after = b.rank[j]
        # planned ends are this very sum
        in_time = g.now + r.plan[j] <= p.at
        if not _fits(s, f, j):
            f.out[group] = 1
        elif in_time:
            _go(s, q, b, f, r, j, R_SHORT)
        elif not _backfill_late(s, q, b, f, r, j):
            f.late[group] = p.version
        _next_candidate(s, b, f, group, after)


@inner
def _pass(s, q, b, f, r):  # type: ignore[no-untyped-def]
    """Start jobs in order up to the first that cannot, reserve for it, and backfill."""
    p = f.p[0]
    after = -1
    p.head = -1
    p.at = np.inf
    while s.g[0].waiting > 0:
        j = next_in_line(q, after)
        if j < 0:
            return
        if _fits(s, f, j):
            _go(s, q, b, f, r, j, R_FIRST)
            continue
        found = _reserve_by_count(s, f, r, j) if p.counts == 1 else _reserve_places(s, f, r, j)
        if not found:
            # it does not fit even on all nodes that are up: it blocks no other job
            after = q.rank[j]
            continue
        p.head = j
        if p.logged_head != j:
            note(s, D_RESERVE, j, s.jobs[j].gpus, -1, R_HEAD)
            p.logged_head = j
        _backfill(s, q, b, f, r)
        return


@inner
def _queue(s, q, b, r, j):  # type: ignore[no-untyped-def]
    if joins_tail(s, j):
        move_to_tail(s, q, j)
    mark(q, j, r.plan[j])
    mark(b, j, r.plan[j])


@inner
def _one_by_one(s, q, b, f, r):  # type: ignore[no-untyped-def]
    """Run a pass per submission, then per end in the order of starts; planned ends count before their turn."""
    g = s.g[0]
    p = f.p[0]
    planned = s.attempts.size
    for k in range(g.events):
        j = s.events[k].who
        ended = s.events[k].kind == E_FINISHED or s.events[k].kind == E_QUEUED
        if ended and r.until[j] > g.now:
            p.withheld += s.jobs[j].gpus
        elif ended and not np.isnan(runs_no_more(r, j)):
            planned = min(planned, s.jobs[j].row)
    for k in range(g.events):
        j = s.events[k].who
        if s.events[k].kind == E_QUEUED and s.jobs[j].state == WAITING and np.isnan(r.until[j]):
            _queue(s, q, b, r, j)
            _pass(s, q, b, f, r)
    while True:
        first = -1
        for k in range(g.events):
            j = s.events[k].who
            ended = s.events[k].kind == E_FINISHED or s.events[k].kind == E_QUEUED
            ended = ended and s.jobs[j].state != RUNNING and r.until[j] > g.now
            if ended and (first < 0 or s.jobs[j].row < s.jobs[first].row):
                first = j
        if planned < (s.attempts.size if first < 0 else s.jobs[first].row):
            # the turn of jobs that ended as planned: their GPUs are free already
            planned = s.attempts.size
            _pass(s, q, b, f, r)
        if first < 0:
            return
        runs_no_more(r, first)
        p.withheld -= s.jobs[first].gpus
        if s.jobs[first].state == WAITING:
            _queue(s, q, b, r, first)
        _pass(s, q, b, f, r)


@inner
def on_finish(s, j, q, b, f, r):  # type: ignore[no-untyped-def]
    """Handle an ended job; if each event has its own pass, its turn is in `decide`."""
    if f.p[0].each == 0:
        runs_no_more(r, j)


@inner
def waits(s, j, q, b, f, r):  # type: ignore[no-untyped-def]
    """Handle a job queued for the first time or again; see `on_finish`."""
    if f.p[0].each == 0:
        runs_no_more(r, j)
        if s.jobs[j].state == WAITING:
            _queue(s, q, b, r, j)


@inner
def decide(s, q, b, f, r):  # type: ignore[no-untyped-def]
    """One pass at this instant, or one per event."""
    if f.p[0].each == 1:
        _one_by_one(s, q, b, f, r)
    else:
        _pass(s, q, b, f, r)


@compiled
def run(s, q, b, f, r, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(
        s, (q, b, f, r), until, steps, decide=decide, on_submit=waits, on_requeue=waits, on_finish=on_finish,
    )  # fmt: skip
