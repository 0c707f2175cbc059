"""The compiled simulations of a queue into the future, from one instant or from each of a log's submissions."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.background_loop import DONE, EFFORT, STOP
from gpuctl.compiled.jit import compiled, inner
from gpuctl.waits.forward_kernel import (
    ARRIVAL,
    DELAYS,
    HORIZON_S,
    NODES,
    NOW,
    OTHER,
    OWN,
    PIECES,
    PLAN,
    POOL,
    RANK_EVERY_S,
    RANKED_AT,
    TARGET,
    USERS,
    WAITING,
    WIDTH,
    advance,
    copy_to,
    enter,
    force,
    one_pass,
    random,
    release,
    reorder,
    run_of,
    seeded,
)
from gpuctl.waits.state_kernel import ENTER, START

DAY_S = 86_400.0
LOOKED_BACK_D = 14
"""Days among which one is drawn whose submissions come again on a day of the future."""
MANY = 1000
"""Waiting jobs from which priorities are worked out the more seldom the more they are."""
FULL, FEWEST = 40, 4
"""Jobs waiting up to which all simulations are run; of a longer queue fewer, and at least so many."""
TOO_MANY = 400
"""Jobs waiting from which on a job by itself is not simulated: that takes too long."""
DRAWING = 20
"""Effort of the beginning of a simulation, for each piece that runs: run times are drawn, the first pass is made."""
SHORT_S = 300.0
"""Waits that count as the delay of a pass."""


@inner
def _first(values, size, least):  # type: ignore[no-untyped-def]
    """Return the index of the first of ascending values that is not below another."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _forward(f, now, number, ready, entered, wanted, begins):  # type: ignore[no-untyped-def]
    """Simulate a queue from now until the queried jobs have started.

    Args:
        f: the queue, changed.
        now: s.
        number: of the simulation, or PLAN.
        ready: submissions of past jobs, ascending, s.
        entered: number of them up to now.
        wanted: number of numbered jobs that wait; 0: one job is queried, as TARGET.
        begins: written, start of each numbered job.

    Returns:
        seconds until the queried job starts; NaN: the effort exceeds its maximum.
    """
    f.effort[0] += DRAWING * f.c[PIECES]
    for k in range(f.c[PIECES]):
        job = f.piece_job[k]
        run = f.limit[job]
        if number != PLAN:
            run = run_of(f, job, now - f.piece_start[k], seeded(number, job))
        f.piece_end[k] = max(f.piece_start[k] + run, now + 1.0)
    at, left = now, wanted
    day, shift = -1, 0.0
    source, last = 0, 0
    x = seeded(number, 3)
    known = (now - ready[0]) / DAY_S if entered > 0 and number != PLAN else 0.0
    coming = np.inf
    changed = True
    while True:
        f.effort[0] += f.c[PIECES] + f.c[WAITING] + f.c[NODES] + f.c[USERS]
        if f.effort[0] > f.effort[1]:
            return np.nan
        if changed:
            found, started = one_pass(f, at, number, begins)
            left -= started
            if found or (wanted > 0 and left == 0):
                return at - now
        # a new day of the future repeats a day of the past
        while coming == np.inf and day < HORIZON_S / DAY_S and known >= 1.0:
            if source < last:
                coming = ready[source] + shift
                break
            day += 1
            x = random(x)
            back = 1 + x % max(min(LOOKED_BACK_D, np.int64(known)), 1)
            shift = (day + back) * DAY_S
            source, last = _first(ready, entered, now - back * DAY_S), _first(ready, entered, now - (back - 1) * DAY_S)
        following, piece_end = np.inf, f.piece_end
        for k in range(f.c[PIECES]):
            following = min(following, piece_end[k])
        following = min(following, coming)
        if following > now + HORIZON_S:
            return HORIZON_S
        at = max(at, following)
        if f.t[RANKED_AT] + RANK_EVERY_S * max(f.c[WAITING] / MANY, 1.0) <= at:
            reorder(f, at)
        changed = False
        if coming <= at:
            if f.per[source] > 0 and f.c[WAITING] < f.line_job.size:
                enter(f, source, ARRIVAL, at, at)
                changed = True
            source += 1
            coming = np.inf
        else:
            advance(f, at)
            release(f, -1, at)
            changed = True


@inner
def _learn(s, j, limit, ran):  # type: ignore[no-untyped-def]
    """Record a run time."""
    share = ran / limit
    u, kind = s.user[j], s.kind[j]
    s.own[u, s.own_count[u] % OWN] = share
    s.own_count[u] += 1
    s.pool[kind, s.pool_count[kind] % POOL] = share
    s.pool_count[kind] += 1


@inner
def _take(s, event, j, when, wait, ended):  # type: ignore[no-untyped-def]
    """Apply one event of the log."""
    if event == ENTER:
        if s.per[j] > 0:
            enter(s, j, OTHER, when, when)
        s.c[USERS] = max(s.c[USERS], s.user[j] + 1)
        return
    runs = not np.isnan(wait)
    if event == START:
        for k in range(s.c[WAITING]):
            if s.line_job[k] == j:
                for m in range(k, s.c[WAITING] - 1):
                    s.line_job[m], s.line_who[m] = s.line_job[m + 1], s.line_who[m + 1]
                    s.line_ready[m], s.line_key[m] = s.line_ready[m + 1], s.line_key[m + 1]
                s.c[WAITING] -= 1
                break
        if not runs:
            _learn(s, j, s.limit[j], 0.0)
            return
        if wait < SHORT_S:
            s.delays[s.delay_count[0] % DELAYS] = wait
            s.delay_count[0] += 1
        if s.per[j] > 0 and ended > 0:
            advance(s, when)
            force(s, j, when)
    elif runs:
        _learn(s, j, s.limit[j], ended)
        if s.per[j] > 0:
            advance(s, when)
            release(s, j, when)


@inner
def delay(s, number):  # type: ignore[no-untyped-def]
    """Draw the delay of a pass, s: one of the last short waits."""
    known = min(s.delay_count[0], DELAYS)
    return s.delays[seeded(number, 11) % known] if known > 0 else 0.0


@compiled
def sweep(s, f, when, kind, of, ready, wait, ran, asks, own, own_job, wanted, samples, plans, watched):  # type: ignore[no-untyped-def]
    """Replay a log's events, and simulate forward from each query's instant, from what was known just before it.

    Args:
        s: the queue, initially empty.
        f: a copy of it.
        when: time of each event, s, in order.
        kind: of each event.
        of: job of each event.
        ready: eligibility of each job, s, in order.
        wait: its wait, s; NaN if it never started.
        ran: its run time, s.
        asks: seconds, ascending [asks].
        own: of the queried jobs: GPUs per node, nodes, class of limit, user, limit, s, queue, user in queue, and the
            trees' forecast of their run times, as `Queue.curve` [asks, 7 + LEVELS].
        own_job: number of each in the log; the number of jobs if it is not in it [asks].
        wanted: which queries to answer [asks].
        samples: written, simulated waits, s; NaN: none [asks, simulations].
        plans: written, waits in a plan, s; NaN: none [asks].
        watched: steps done are simulated jobs; effort is that of all simulations (`gpuctl.compiled.background_loop`).
    """
    at = entered = 0
    jobs = ready.size
    nothing = np.empty(0)
    for n in range(asks.size):
        if watched[STOP] != 0:
            return
        now = asks[n]
        while at < when.size and (when[at] < now or (when[at] == now and kind[at] == ENTER and of[at] < own_job[n])):
            j = of[at]
            entered += kind[at] == ENTER
            _take(s, kind[at], j, when[at], wait[j], ran[j])
            at += 1
        s.t[NOW] = now
        samples[n, :] = np.nan
        plans[n] = np.nan
        total = s.c[NODES] * s.t[WIDTH]
        if not wanted[n] or own[n, 0] < 1 or own[n, 0] * own[n, 1] > total or s.c[WAITING] >= TOO_MANY:
            continue
        count = samples.shape[1]
        count = min(count, max(count * FULL // max(s.c[WAITING], 1), FEWEST))
        s.per[jobs], s.count[jobs] = np.int64(own[n, 0]), np.int64(own[n, 1])
        s.kind[jobs], s.user[jobs], s.limit[jobs] = np.int64(own[n, 2]), np.int64(own[n, 3]), own[n, 4]
        s.queue[jobs], s.pair[jobs] = np.int64(own[n, 5]), np.int64(own[n, 6])
        s.curve[jobs] = own[n, 7:]
        reorder(s, now)
        f.effort[0] = 0
        for number in range(PLAN, count):
            copy_to(s, f)
            enter(f, jobs, TARGET, now, now)
            found = _forward(f, now, number, ready, entered, 0, nothing)
            if np.isnan(found):
                # as behind a long queue: it takes too long
                samples[n, :] = np.nan
                break
            if number == PLAN:
                plans[n] = found
            else:
                samples[n, number] = found
            if found == 0.0 and number != PLAN:
                # a job that starts at once does so for any draw; a plan ignores limits of users
                samples[n, :] = 0.0
                break
        for number in range(samples.shape[1]):
            if number >= count:
                samples[n, number] = samples[n, number % count]
            else:
                samples[n, number] += delay(s, number)
        watched[DONE] += 1
        watched[EFFORT] += f.effort[0]


@compiled
def whole_line(s, f, now, ready, entered, waiting, begins, watched):  # type: ignore[no-untyped-def]
    """Simulate forward from one instant until all waiting jobs have started.

    Args:
        s: the queue; jobs of its line are numbered from 0 on.
        f: a copy of it.
        now: s.
        ready: submissions of past jobs, ascending, s.
        entered: number of them up to now.
        waiting: number of numbered jobs.
        begins: written, start of each, s; the horizon for one that has not started by then. The first
            row is a plan [1 + simulations, waiting].
        watched: steps done are simulations (`gpuctl.compiled.background_loop`).
    """
    reorder(s, now)
    for row in range(begins.shape[0]):
        if watched[STOP] != 0:
            return
        copy_to(s, f)
        begins[row, :] = now + HORIZON_S
        _forward(f, now, row - 1, ready, entered, waiting, begins[row])
        late = delay(s, row) if row > 0 else 0.0
        for k in range(waiting):
            begins[row, k] += late
        watched[DONE] += 1
