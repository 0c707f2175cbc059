"""The compiled pass of the `philly` policy: quotas, idle GPUs lent, gangs gathered, locality given up step by step."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.instant_kernel import job_timer, named_timer
from gpuctl.replay.engine.job_life_kernel import launch, note
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, largest, set_free, suits
from gpuctl.replay.engine.preemption_kernel import preempt
from gpuctl.replay.engine.reasons import R_BONUS, R_GATHER, R_GATHERED, R_GIVE_UP, R_MOVED, R_QUOTA, R_RECLAIM
from gpuctl.replay.engine.state import A_FAILED, D_GATHER, D_GIVE_UP, E_QUEUED, RUNNING, SUSPENDING, WAITING
from gpuctl.replay.order.waiting_kernel import insert, pop, sooner
from gpuctl.replay.policies.philly.moves_kernel import LOOK_S, make_room
from gpuctl.replay.policies.philly.places_kernel import may_use, paint, seek
from gpuctl.replay.policies.philly.prerun_kernel import ALONE, NOT, first_alone, left_pool, no_retry, passed, run_alone
from gpuctl.replay.policies.philly.rules_kernel import (
    ADAPTIVE,
    LEVELS,
    RETRY,
    TIME,
    TRIES,
    adapt,
    first_level,
    is_pass_due,
    learn_run,
    over,
    request_pass,
    runs,
    schedule_pass,
    time_is_over,
    wants_locality,
)

USED, QUEUED = range(2)
ORDER = ("used", "queued")
"""The values of the parameter ``order``."""

AWAY = -1
"""Level of a failed job that is not requeued yet."""

PHILLY = np.dtype(
    [
        ("acquire", "f8"),  # seconds that a gang is gathered for
        ("backoff", "f8"),  # seconds until it is tried again
        ("tries", "i8"),  # failed attempts after which it relaxes locality
        ("busy", "f8"),  # share of the GPUs in use from which on lent GPUs are taken back
        ("borrow", "i8"),
        ("lent", "i8"),
        ("passes", "i8"),
        ("order", "i8"),
        ("take_back", "i8"),
        ("lend", "f8"),  # share of the GPUs in use up to which a queue may exceed its quota
        ("requeue", "f8"),  # seconds from a failure until the job is queued again
        ("queued", "i8"),  # number of queueings so far
    ],
    align=True,
)


class Gangs(Bundle):
    """Memory of the policy."""

    p = rows(PHILLY)  # one record of `PHILLY`
    quota = floats()  # GPUs of each queue; inf none
    level = ints()  # locality level that each job requires now
    tries = ints()  # attempts that failed at it
    queue_of = ints()  # queue of each group of the waiting list
    kind_of = ints()  # kind of each group: size, nodes, level
    bad = ints()  # pass in which a kind was found not to fit
    order = ints()  # queues in order of their first job
    first = ints()  # first waiting job of each queue, scratch
    gatherer = ints()  # job that each queue gathers GPUs for; -1 none
    hold = ints(2)  # [queues, nodes]: GPUs held for it
    held = ints()  # total GPUs held for it
    since = floats()  # second up to which holding is charged
    lent = ints()  # jobs that started on lent GPUs, in order of starting


@inner
def _within(s, f, queue, gpus):  # type: ignore[no-untyped-def]
    return s.queue_used[queue] + gpus <= f.quota[queue]


@inner
def _fullness(s, f, queue):  # type: ignore[no-untyped-def]
    if f.quota[queue] == np.inf:
        return 0.0
    return s.queue_used[queue] / max(f.quota[queue], 1e-9)


@inner
def _wait(q, f, j):  # type: ignore[no-untyped-def]
    group = q.group[j]
    q.group[j] = group - group % LEVELS + f.level[j]
    insert(q, j)


@inner
def _may_borrow(s, f, gpus):  # type: ignore[no-untyped-def]
    g = s.g[0]
    return g.total - g.free + gpus <= f.p[0].lend * g.total + 1e-9


@inner
def _best(s, q, f, lent):  # type: ignore[no-untyped-def]
    """The first possibly fitting job of the queue that has used least of its quota; -1 none."""
    best = -1
    least = 0.0
    for group in range(q.head.size):
        j = q.head[group]
        if j < 0 or f.bad[f.kind_of[group]] == f.p[0].passes or q.bad[group] == f.p[0].passes:
            continue
        queue = f.queue_of[group]
        if _within(s, f, queue, s.jobs[j].gpus) == lent or (lent and not _may_borrow(s, f, s.jobs[j].gpus)):
            continue
        full = _fullness(s, f, queue)
        if best < 0 or full < least or (full == least and q.key[j] < q.key[best]):
            best, least = j, full
    return best


@inner
def _launch(s, f, r, j, kind, reason):  # type: ignore[no-untyped-def]
    """Start a job on the GPUs in `choice`."""
    if r.since.size > 1:
        over(s, r, j, kind // LEVELS, f.level[j] == r.base[j])
        runs(r, j)
    paint(s, r, j)
    launch(s, j, reason)


@inner
def _oldest(s, q, f):  # type: ignore[no-untyped-def]
    """The first queued job that might fit and that quotas allow; -1 none."""
    best = -1
    for group in range(q.head.size):
        j = q.head[group]
        if j < 0 or f.bad[f.kind_of[group]] == f.p[0].passes or (best >= 0 and not sooner(q, j, best)):
            continue
        gpus = s.jobs[j].gpus
        if _within(s, f, f.queue_of[group], gpus) or (f.p[0].borrow == 1 and _may_borrow(s, f, gpus)):
            best = j
    return best


@inner
def _start_in_order(s, q, f, r):  # type: ignore[no-untyped-def]
    """Start jobs in order of queueing, within or beyond quotas."""
    p = f.p[0]
    p.passes += 1
    while s.g[0].free > 0:
        j = _oldest(s, q, f)
        if j < 0:
            return
        group = q.group[j]
        if seek(s, r, j, f.level[j]):
            lent = not _within(s, f, f.queue_of[group], s.jobs[j].gpus)
            pop(q, group)
            _launch(s, f, r, j, f.kind_of[group], R_BONUS if lent else R_QUOTA)
            if lent:
                _lend(f, j)
        else:
            f.bad[f.kind_of[group]] = p.passes


@inner
def _lend(f, j):  # type: ignore[no-untyped-def]
    if f.p[0].take_back == 1:
        f.lent[f.p[0].lent] = j
        f.p[0].lent += 1


@inner
def _start_those_that_fit(s, q, f, r, lent):  # type: ignore[no-untyped-def]
    g = s.g[0]
    f.p[0].passes += 1
    while g.free > 0:
        j = _best(s, q, f, lent)
        if j < 0:
            return
        group = q.group[j]
        if seek(s, r, j, f.level[j]):
            pop(q, group)
            _launch(s, f, r, j, f.kind_of[group], R_BONUS if lent else R_QUOTA)
            if lent:
                _lend(f, j)
        else:
            f.bad[f.kind_of[group]] = f.p[0].passes


@inner
def _heads(q, f):  # type: ignore[no-untyped-def]
    """The oldest job of each queue that waits and is not in back-off."""
    f.first[:] = -1
    for group in range(q.head.size):
        j = q.head[group]
        queue = f.queue_of[group]
        if j >= 0 and (f.first[queue] < 0 or q.key[j] < q.key[f.first[queue]]):
            f.first[queue] = j


@inner
def _take_back(s, q, f, r):  # type: ignore[no-untyped-def]
    """Preempt the newest jobs on lent GPUs while a queue within its quota cannot start its head."""
    g = s.g[0]
    p = f.p[0]
    # drop those that no longer run
    size = 0
    for k in range(p.lent):
        j = f.lent[k]
        if s.jobs[j].state == RUNNING and s.jobs[j].held > 0:
            again = False
            for i in range(size):
                if f.lent[i] == j:
                    again = True
            if not again:
                f.lent[size] = j
                size += 1
    p.lent = size
    coming = 0
    for queue in f.order:
        j = f.first[queue]
        if j < 0 or not _within(s, f, queue, s.jobs[j].gpus):
            continue
        if g.total - g.free < p.busy * g.total:
            return
        need = s.jobs[j].gpus - g.free - coming
        have = 0
        for k in range(p.lent):
            i = f.lent[k]
            if s.queue_used[s.jobs[i].queue] > f.quota[s.jobs[i].queue]:
                have += s.jobs[i].held
        if need > have:
            continue
        k = p.lent - 1
        while k >= 0 and not seek(s, r, j, f.level[j]):
            i = f.lent[k]
            over = s.queue_used[s.jobs[i].queue] > f.quota[s.jobs[i].queue]
            if s.jobs[i].state == RUNNING and s.jobs[i].queue != queue and over:
                gpus = s.jobs[i].held
                if preempt(s, i, g.mode, R_RECLAIM):
                    if r.p[0].relax > RETRY:
                        first_level(s, r, f, i)
                    _wait(q, f, i)
                elif s.jobs[i].state == SUSPENDING:
                    coming += gpus
                    if g.free + coming >= s.jobs[j].gpus:
                        break
            k -= 1
        if seek(s, r, j, f.level[j]):
            kind = f.kind_of[q.group[j]]
            pop(q, q.group[j])
            _launch(s, f, r, j, kind, R_QUOTA)
            _heads(q, f)


@inner
def _settle(s, f, queue):  # type: ignore[no-untyped-def]
    """Charge the holding of idle GPUs."""
    j = f.gatherer[queue]
    s.jobs[j].overhead += (s.g[0].now - f.since[queue]) * f.held[queue]
    f.since[queue] = s.g[0].now


@inner
def _hold_more(s, f, r, queue):  # type: ignore[no-untyped-def]
    """Hold newly free GPUs for the queue's gathered gang; true once it is complete."""
    j = f.gatherer[queue]
    job = s.jobs[j]
    level = f.level[j]
    most = largest(s, job.mask)
    limit = (job.gpus + most - 1) // most
    _settle(s, f, queue)
    used, rack = 0, -1
    for number in range(s.nodes.size):
        if f.hold[queue, number] > 0:
            used += 1
            rack = s.nodes[number].rack
    if used == 0:
        rack = -1
    while f.held[queue] < job.gpus:
        # the node with the most free GPUs, among those that satisfy the required locality
        best, free = -1, 0
        for number in range(s.nodes.size):
            # most nodes have no more, and need no second check
            if s.nodes[number].free <= free or not suits(s, number, job.mask):
                continue
            mine = f.hold[queue, number] > 0
            if level < 2 and rack >= 0 and s.nodes[number].rack != rack:
                continue
            if level == 0 and used >= limit and not mine:
                continue
            if level == 0 and s.nodes[number].cap < min(job.gpus, most):
                continue
            if mine or may_use(s, r, j, number):
                best, free = number, s.nodes[number].free
        if best < 0:
            break
        some = min(free, job.gpus - f.held[queue])
        if f.hold[queue, best] == 0:
            used += 1
        rack = s.nodes[best].rack
        f.hold[queue, best] += some
        f.held[queue] += some
        s.queue_used[queue] += some
        set_free(s, best, s.nodes[best].free - some)
    return f.held[queue] == job.gpus


@inner
def _let_go(s, f, queue, keep):  # type: ignore[no-untyped-def]
    """Release held GPUs; if the gang is complete, they become the choice."""
    s.g[0].chosen = 0
    for number in range(s.nodes.size):
        some = f.hold[queue, number]
        if some > 0:
            set_free(s, number, s.nodes[number].free + some)
            f.hold[queue, number] = 0
            if keep:
                choose(s, number, some)
    s.queue_used[queue] -= f.held[queue]
    f.held[queue] = 0
    f.gatherer[queue] = -1


@inner
def _lose_node(s, f, number):  # type: ignore[no-untyped-def]
    """Drop holds on a node that has gone down."""
    for queue in range(f.gatherer.size):
        some = f.hold[queue, number]
        if some > 0:
            _settle(s, f, queue)
            f.hold[queue, number] = 0
            f.held[queue] -= some
            s.queue_used[queue] -= some
            set_free(s, number, s.nodes[number].free + some)


@inner
def _whole(s, q, f, r, queue, j):  # type: ignore[no-untyped-def]
    """Start a queue's gang on the GPUs held for it."""
    cancel(s, s.jobs.size + j)
    _let_go(s, f, queue, True)
    _launch(s, f, r, j, f.kind_of[q.group[j]], R_GATHERED)


@inner
def _gather(s, q, f, r):  # type: ignore[no-untyped-def]
    """Let every queue within its quota gather GPUs for its oldest job."""
    g = s.g[0]
    p = f.p[0]
    for queue in f.order:
        j = f.gatherer[queue]
        if j < 0:
            j = f.first[queue]
            if j < 0 or s.jobs[j].state != WAITING or not _within(s, f, queue, s.jobs[j].gpus):
                continue
            pop(q, q.group[j])
            if p.acquire <= 0:
                _fail(s, f, r, j)
                continue
            f.gatherer[queue] = j
            f.since[queue] = g.now
            note(s, D_GATHER, j, s.jobs[j].gpus, -1, R_GATHER)
            job_timer(s, j, g.now + p.acquire)
        if _hold_more(s, f, r, queue):
            _whole(s, q, f, r, queue, j)


@inner
def _fail(s, f, r, j):  # type: ignore[no-untyped-def]
    """Handle a failed attempt: back off, and relax locality after a number of them."""
    p = f.p[0]
    f.tries[j] += 1
    if f.tries[j] >= p.tries and f.level[j] < LEVELS - 1 and r.p[0].relax == TRIES:
        f.level[j] += 1
        f.tries[j] = 0
    note(s, D_GIVE_UP, j, s.jobs[j].gpus, -1, R_GIVE_UP)
    job_timer(s, j, s.g[0].now + max(p.backoff, 1.0))


@inner
def waits(s, j, q, f, r):  # type: ignore[no-untyped-def]
    """Handle a queued job: it requires full locality."""
    if s.jobs[j].state == WAITING:
        if f.p[0].order == QUEUED:
            q.key[j] = f.p[0].queued
            f.p[0].queued += 1
        first_level(s, r, f, j)
        _wait(q, f, j)


@inner
def on_submit(s, j, q, f, r, c):  # type: ignore[no-untyped-def]
    """Handle a submitted job: it joins the pool's line if it first runs on one GPU."""
    request_pass(r)
    if not first_alone(s, j, c):
        waits(s, j, q, f, r)


@inner
def on_requeue(s, j, q, f, r, c):  # type: ignore[no-untyped-def]
    """Handle a requeued job: after a failed first run it gets another, and it ends if no retry helps."""
    request_pass(r)
    alone = left_pool(s, j, c)
    if s.jobs[j].state != WAITING:
        return
    known = s.g[0].events
    if no_retry(s, j, c):
        for k in range(known, s.g[0].events):
            # its end lets dependents into the queue, which no other event reports
            if s.events[k].kind == E_QUEUED:
                on_submit(s, s.events[k].who, q, f, r, c)
    elif f.p[0].requeue > 0 and not alone and s.attempts[s.jobs[j].row].how == A_FAILED:
        f.level[j] = AWAY
        job_timer(s, j, s.g[0].now + f.p[0].requeue)
    elif not (alone and first_alone(s, j, c)):
        waits(s, j, q, f, r)


@inner
def on_finish(s, j, q, f, r, c):  # type: ignore[no-untyped-def]
    """Handle an ended job: its run time is known; it may have ended in its first run."""
    request_pass(r)
    left_pool(s, j, c)
    if r.p[0].relax == ADAPTIVE:
        learn_run(s, r, j)


@inner
def on_node_down(s, node, q, f, r, c):  # type: ignore[no-untyped-def]
    """Handle a node that went down: GPUs gathered there are lost."""
    request_pass(r)
    _lose_node(s, f, node)


@inner
def on_node_up(s, node, q, f, r, c):  # type: ignore[no-untyped-def]
    """Handle a node that came up."""
    request_pass(r)


@inner
def on_timer(s, number, q, f, r, c):  # type: ignore[no-untyped-def]
    """Handle the timer of passes."""
    request_pass(r)


@inner
def on_wake(s, j, q, f, r, c):  # type: ignore[no-untyped-def]
    """Handle a job's timer: gathering, back-off or first run is over."""
    if c.stage[j] != NOT:
        request_pass(r)
        if c.stage[j] == ALONE:
            passed(s, j, c)
            waits(s, j, q, f, r)
        return
    if s.jobs[j].state != WAITING:
        return
    if f.level[j] == AWAY:
        request_pass(r)
        waits(s, j, q, f, r)
        return
    if r.p[0].relax == TIME:
        time_is_over(s, q, f, r, j)
    if r.p[0].relax > RETRY:
        return
    request_pass(r)
    queue = s.jobs[j].queue
    if f.gatherer[queue] == j:
        _settle(s, f, queue)
        _let_go(s, f, queue, False)
        _fail(s, f, r, j)
    else:
        _wait(q, f, j)


@inner
def _check_heads(s, q, f, r):  # type: ignore[no-untyped-def]
    """Check the heads that wait for locality alone; true if one of them may start now."""
    g = s.g[0]
    p = r.p[0]
    look = p.defragment == 1 and g.now >= p.looked + LOOK_S
    changed = False
    for group in range(q.head.size):
        j = q.head[group]
        if j < 0:
            continue
        apart = s.jobs[j].gpus <= g.free and f.bad[f.kind_of[group]] == f.p[0].passes
        apart = apart and _within(s, f, f.queue_of[group], s.jobs[j].gpus)
        wants_locality(s, r, j, apart)
        if not apart:
            continue
        kind = f.kind_of[group] // LEVELS
        if p.relax == ADAPTIVE and f.level[j] < LEVELS - 1 and adapt(s, q, f, r, j, kind):
            changed = True
        elif look:
            p.looked = g.now
            if make_room(s, r, j, kind, R_MOVED):
                changed = True
                look = False
        if p.defragment == 1:
            # its wait grows, and with it the savings of a migration
            named_timer(s, 0, max(p.looked, g.now) + LOOK_S)
    return changed


@inner
def decide(s, q, f, r, c):  # type: ignore[no-untyped-def]
    """One pass at this instant."""
    p = f.p[0]
    if s.g[0].waiting == 0 or not is_pass_due(s, q, f, r):
        return
    run_alone(s, c)
    for queue in f.order:
        # gathering gangs get newly free GPUs first
        if f.gatherer[queue] >= 0 and _hold_more(s, f, r, queue):
            j = f.gatherer[queue]
            _whole(s, q, f, r, queue, j)
    in_order = p.order == QUEUED
    if in_order:
        _start_in_order(s, q, f, r)
    else:
        _start_those_that_fit(s, q, f, r, False)
    if r.since.size > 1:
        while _check_heads(s, q, f, r):
            if in_order:
                _start_in_order(s, q, f, r)
            else:
                _start_those_that_fit(s, q, f, r, False)
    if q.counter[2] > 0:
        _heads(q, f)
        if p.borrow == 1 and p.lent > 0:
            _take_back(s, q, f, r)
        if r.p[0].relax <= RETRY:
            _gather(s, q, f, r)
        if p.borrow == 1 and not in_order:
            _start_those_that_fit(s, q, f, r, True)
        schedule_pass(s, q, r)


@compiled
def run(s, q, f, r, c, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants. Returns as `step` does."""
    return loop(
        s, (q, f, r, c), until, steps, decide=decide, on_finish=on_finish, on_submit=on_submit, on_requeue=on_requeue,
        on_node_down=on_node_down, on_node_up=on_node_up, on_wake=on_wake, on_timer=on_timer,
    )  # fmt: skip
