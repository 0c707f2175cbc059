"""The compiled pair of jobs in Mirage's authors' simulator: predecessor P and successor S among a trace's jobs.

Scheduler, clock and plan are those of the replay policy ``mirage``. The difference: at each minute of interest the
state is copied, S is submitted to the copy, and the copy runs until S starts.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.policies.mirage.slots_kernel import LONGEST_LINE, SLOT_MIN, SLOTS, first_slot, free_by_slot, reserve

NOW, WAITING, RUNNING, FREE, NEXT, CHANGED, STARTED, P_START, S_START, P_BACKFILLED, S_BACKFILLED, SIZE = range(12)
COUNTERS = 12
NEVER = -1
LAST_WAITS = 100
"""Number of last started jobs in the mean of the mean-wait baseline."""


class Episode(Bundle):
    """A cluster at one minute, before the submissions of that minute; minutes count from the episode's start.

    The first arrays describe the jobs: the trace's by submission, then P, then S. Copies share them.
    """

    minute = ints()  # of submission [jobs]
    nodes = ints()  # nodes of each [jobs]
    limit = ints()  # minutes [jobs]
    ticks = ints()  # minutes for which it holds its nodes [jobs]
    key = ints()  # queue order, larger keys first [jobs]
    line = ints()  # pending jobs, in order [jobs]
    run = ints()  # running jobs, in no order; the next four by the same index [jobs]:
    start = ints()  # minute of the start
    end = ints()  # minute from which its nodes are free
    until = ints()  # minute of its limit
    held = ints()  # nodes
    slots = ints()  # free nodes in each slot of a plan [SLOTS]
    begins = ints()  # 1: the job at this place of the queue starts in this pass [jobs]
    waits = ints()  # waits of the last started jobs, minutes, a ring [LAST_WAITS]
    c = ints()  # the counters named above, in that order [COUNTERS]


@inner
def copy_to(e, f):  # type: ignore[no-untyped-def]
    """Copy the state of `e` to `f`."""
    for k in range(e.c.size):
        f.c[k] = e.c[k]
    for k in range(e.c[WAITING]):
        f.line[k] = e.line[k]
    for k in range(e.c[RUNNING]):
        f.run[k], f.start[k], f.end[k] = e.run[k], e.start[k], e.end[k]
        f.until[k], f.held[k] = e.until[k], e.held[k]


@inner
def _enter(e, j):  # type: ignore[no-untyped-def]
    """Put a job into the queue, behind those of its priority."""
    at = e.c[WAITING]
    while at > 0 and e.key[e.line[at - 1]] < e.key[j]:
        e.line[at] = e.line[at - 1]
        at -= 1
    e.line[at] = j
    e.c[WAITING] += 1
    e.c[CHANGED] = 1


@inner
def _start(e, j, now, backfilled):  # type: ignore[no-untyped-def]
    k = e.c[RUNNING]
    e.run[k], e.start[k], e.end[k], e.until[k], e.held[k] = j, now, now + e.ticks[j], now + e.limit[j], e.nodes[j]
    e.c[RUNNING] += 1
    e.c[FREE] -= e.nodes[j]
    e.waits[e.c[STARTED] % LAST_WAITS] = now - e.minute[j]
    e.c[STARTED] += 1
    if j == e.minute.size - 2:
        e.c[P_START], e.c[P_BACKFILLED] = now, backfilled
    elif j == e.minute.size - 1:
        e.c[S_START], e.c[S_BACKFILLED] = now, backfilled


@inner
def _free(e, now):  # type: ignore[no-untyped-def]
    """Free the nodes of jobs that have ended by this minute."""
    kept = 0
    for k in range(e.c[RUNNING]):
        if e.end[k] > now:
            e.run[kept], e.start[kept], e.end[kept] = e.run[k], e.start[k], e.end[k]
            e.until[kept], e.held[kept] = e.until[k], e.held[k]
            kept += 1
        else:
            e.c[FREE] += e.held[k]
            e.c[CHANGED] = 1
    e.c[RUNNING] = kept


@inner
def _last_that_fits(e):  # type: ignore[no-untyped-def]
    last = min(e.c[WAITING], LONGEST_LINE) - 1
    while last >= 0 and e.nodes[e.line[last]] > e.c[FREE]:
        last -= 1
    return last


@inner
def _main(e, now):  # type: ignore[no-untyped-def]
    started = 0
    while started < e.c[WAITING] and e.nodes[e.line[started]] <= e.c[FREE]:
        _start(e, e.line[started], now, 0)
        started += 1
    if started > 0:
        e.c[WAITING] -= started
        for k in range(e.c[WAITING]):
            e.line[k] = e.line[k + started]


@inner
def _backfill(e, now):  # type: ignore[no-untyped-def]
    last = _last_that_fits(e)
    if last < 0:
        return
    free_by_slot(e.slots, e.c[FREE], e.c[RUNNING], e.held, e.until, now)
    for k in range(last + 1):
        j = e.line[k]
        begin = first_slot(e.slots, e.nodes[j], e.limit[j])
        if begin >= 0:
            reserve(e.slots, begin, e.nodes[j], e.limit[j])
        e.begins[k] = begin == 0
        if e.slots[0] == 0:
            last = k
            break
    kept = 0
    for k in range(e.c[WAITING]):
        if k <= last and e.begins[k] == 1:
            _start(e, e.line[k], now, int(k > 0))
        else:
            e.line[kept] = e.line[k]
            kept += 1
    e.c[WAITING] = kept


@inner
def _next(e):  # type: ignore[no-untyped-def]
    """The next minute in which a pass may start a job; a large number: none."""
    now = e.c[NOW]
    if e.c[CHANGED] == 1:
        return now
    t = np.int64(1) << 60
    trace = e.minute.size - 2
    if e.c[NEXT] < trace:
        t = min(t, e.minute[e.c[NEXT]])
    if e.c[P_START] == NEVER and e.minute[trace] >= now:
        t = min(t, e.minute[trace])
    if e.c[RUNNING] > 0:
        for k in range(e.c[RUNNING]):
            t = min(t, e.end[k])
        if e.c[WAITING] > 0:
            tick = (now + SLOT_MIN - 1) // SLOT_MIN * SLOT_MIN
            if tick < t and _last_that_fits(e) >= 0:
                t = tick
    return max(t, now)


@inner
def _tick(e, now):  # type: ignore[no-untyped-def]
    """Run one minute: submissions, P before the trace's jobs, then a pass."""
    _free(e, now)
    trace = e.minute.size - 2
    if e.minute[trace] == now:
        _enter(e, trace)
    while e.c[NEXT] < trace and e.minute[e.c[NEXT]] <= now:
        _enter(e, e.c[NEXT])
        e.c[NEXT] += 1
    if now % SLOT_MIN == 0:
        _backfill(e, now)
    else:
        _main(e, now)
    e.c[CHANGED] = 0
    e.c[NOW] = now + 1


@inner
def go_on(e, upto, stop):  # type: ignore[no-untyped-def]
    """Advance to just before the submissions of a minute.

    Args:
        e: the episode.
        upto: the minute.
        stop: P_START or S_START: stop at the minute after that start; NEVER: go to `upto`.
    """
    while stop == NEVER or e.c[stop] == NEVER:
        t = _next(e)
        if t >= upto:
            break
        _tick(e, t)
    if stop == NEVER or e.c[stop] == NEVER:
        e.c[NOW] = upto
    _free(e, e.c[NOW])


@inner
def enter_s(e, since):  # type: ignore[no-untyped-def]
    """Submit S now, before the trace's jobs of this minute; its age counts from minute `since`."""
    s = e.minute.size - 1
    e.minute[s] = e.c[NOW]
    e.key[s] = 3600 * e.nodes[s] - 25 * e.c[SIZE] * since
    _enter(e, s)


@inner
def _planned(e):  # type: ignore[no-untyped-def]
    """Minutes until S starts in a backfill plan of all pending jobs; the window's length if S has no slot."""
    now = e.c[NOW]
    free_by_slot(e.slots, e.c[FREE], e.c[RUNNING], e.held, e.until, now)
    for k in range(e.c[WAITING]):
        j = e.line[k]
        begin = first_slot(e.slots, e.nodes[j], e.limit[j])
        if j == e.minute.size - 1:
            return SLOTS * SLOT_MIN if begin < 0 else begin * SLOT_MIN
        if begin >= 0:
            reserve(e.slots, begin, e.nodes[j], e.limit[j])
    return SLOTS * SLOT_MIN


FAR = 1 << 50
"""A minute that never comes."""


@compiled
def advance(e, upto, stop):  # type: ignore[no-untyped-def]
    """Advance to just before the submissions of a minute; see `go_on`."""
    go_on(e, upto, stop)


@compiled
def submit(e):  # type: ignore[no-untyped-def]
    """Submit S now, before the trace's jobs of this minute."""
    enter_s(e, e.c[NOW])


@compiled
def outcome(e, f, at, since, found):  # type: ignore[no-untyped-def]
    """Submit S at a minute and compute the outcome.

    Args:
        e: the episode; advances to that minute.
        f: a copy in which S is submitted; advances to S's start.
        at: the minute.
        since: the minute from which S's age counts, at most `at`.
        found: written: start of P, start of S, whether each was backfilled, and minutes to the planned start of S [5].
    """
    go_on(e, at, NEVER)
    copy_to(e, f)
    enter_s(f, since)
    found[4] = _planned(f)
    go_on(f, FAR, S_START)
    if f.c[P_START] == NEVER:
        go_on(f, FAR, P_START)
    found[0], found[1], found[2], found[3] = f.c[P_START], f.c[S_START], f.c[P_BACKFILLED], f.c[S_BACKFILLED]


# ---- inputs of a policy


@inner
def _five(values, n, into, at):  # type: ignore[no-untyped-def]
    """Write minimum, quartiles and maximum of `n` values, linearly interpolated; zeros if there are none."""
    if n == 0:
        into[at : at + 5] = 0.0
        return
    ordered = np.sort(values[:n])
    for q in range(5):
        place = q * (n - 1) / 4.0
        low = int(place)
        high = min(low + 1, n - 1)
        into[at + q] = ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@inner
def _snapshot(e, row, values):  # type: ignore[no-untyped-def]
    """Write 34 numbers on the queue and running jobs in this minute; `values` is scratch [jobs]."""
    now, waiting, running = e.c[NOW], e.c[WAITING], e.c[RUNNING]
    row[0], row[1] = waiting, 0
    for k in range(waiting):
        row[1] += e.nodes[e.line[k]]
        values[k] = e.limit[e.line[k]]
    _five(values, waiting, row, 2)
    for k in range(waiting):
        values[k] = 60 * (now - e.minute[e.line[k]])
    _five(values, waiting, row, 7)
    row[12:17] = 0.0
    row[17], row[18] = running, 0
    for k in range(running):
        row[18] += e.held[k]
        values[k] = e.limit[e.run[k]]
    _five(values, running, row, 19)
    for k in range(running):
        values[k] = 60 * (e.start[k] - e.minute[e.run[k]])
    _five(values, running, row, 24)
    for k in range(running):
        values[k] = 60 * (now - e.start[k])
    _five(values, running, row, 29)


@compiled
def snapshots(e, upto, stop, rows, values):  # type: ignore[no-untyped-def]
    """Advance like `advance`, and take a snapshot in every tenth minute, the last included.

    Args:
        e: the episode.
        upto: see `go_on`; minute `upto` also gets its snapshot.
        stop: see `go_on`.
        rows: written, the snapshot of minute t in row t // 10 [minutes // 10, 34].
        values: scratch [jobs].

    Returns:
        The minute reached; later minutes have no snapshot.
    """
    t = (e.c[NOW] + SLOT_MIN - 1) // SLOT_MIN * SLOT_MIN
    while t <= upto and t // SLOT_MIN < rows.shape[0]:
        go_on(e, t, stop)
        if stop != NEVER and e.c[stop] != NEVER and e.c[NOW] < t:
            return e.c[NOW]
        _snapshot(e, rows[t // SLOT_MIN], values)
        t += SLOT_MIN
    go_on(e, upto, stop)
    return e.c[NOW]
