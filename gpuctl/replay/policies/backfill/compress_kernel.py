"""Compiled: moves reservations to earlier seconds, if only the number of free GPUs matters.

The result is defined thus: go through the waiting jobs in order, repeatedly, and move each to the earliest second with
room for it, until none moves. Most jobs do not move, so only candidates are visited, in the same order. A job of g GPUs
and L seconds reserved at second a can be moved in two cases:

- near, by less than L: then g GPUs are free just before a;
- far, by L or more: then g GPUs are free for L seconds somewhere before a.

Both can become true only where GPUs become free: a job ends early, a node comes up, or a reservation moves away. For
the first case, the jobs whose reservations begin in that time are marked. For the second, the time with room is stored
per gang size, with the seconds of its longest stretch, and the first job in order that may fit is marked, and another
one after its turn or a change of room. So an unmarked job cannot be moved. A marked one may lack room; its turn checks
that, and then updates the room.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.backfill.profile_kernel import (
    NO_LIMIT,
    cut,
    earliest,
    fuller_from,
    join,
    open_from,
    open_since,
    step_at,
    step_from,
)
from gpuctl.replay.policies.backfill.reservation_kernel import begins, begins_no_more

BLOCK = 6
"""Log2 of the positions in the line per count of marked jobs."""
NEAR, FAR = 1, 2
"""Marks in `Reservations.look`."""

# ---- candidates


@inner
def _mark(f, k, case):  # type: ignore[no-untyped-def]
    """Mark the job at a position in the line for its turn."""
    if f.look[k] == 0:
        f.block[k >> BLOCK] += 1
        f.p[0].looks += 1
    f.look[k] |= case


@inner
def _unmark(f, k, case):  # type: ignore[no-untyped-def]
    """Clear a mark."""
    if f.look[k] == case:
        f.block[k >> BLOCK] -= 1
        f.p[0].looks -= 1
    f.look[k] &= ~case


@inner
def _next_marked(f, k):  # type: ignore[no-untyped-def]
    """The first marked position from `k` on; the line's length if there is none."""
    n = f.p[0].waiting
    look, block = f.look, f.block
    while k < n:
        if block[k >> BLOCK] == 0:
            k = ((k >> BLOCK) + 1) << BLOCK
        elif look[k] != 0:
            return k
        else:
            k += 1
    return n


@inner
def _room(f, c, a, first, last, most):  # type: ignore[no-untyped-def]
    """Begin and end of the stretches of steps with room for some job of a size, and the longest one's seconds.

    Only stretches with a step from `first` to `last` in which at most `most` GPUs are free. Returns (inf, -inf, -inf)
    if there is none.
    """
    seconds = c.t
    gpus, fewest, latest = f.size[a], f.fewest[a], f.last[a]
    steps = c.n[0] + c.n[1]
    begin, end, most_s = np.inf, -np.inf, -np.inf
    k = first
    while True:
        k = open_from(c, k, gpus, most, last)
        if k >= last:
            break
        i = open_since(c, k, gpus)
        k = fuller_from(c, k, gpus, latest)
        until = seconds[k] if k < steps else np.inf
        if seconds[i] + fewest <= min(until, latest):
            begin, end = min(begin, seconds[i]), max(end, until)
            # one second longer: differences are rounded, and overestimates are harmless
            most_s = max(most_s, min(until, latest) - seconds[i] + 1)
        if until >= latest:
            # time after the last reservation is of no use
            break
    return begin, end, most_s


@inner
def _steps_before(c, t):  # type: ignore[no-untyped-def]
    """The first step that begins at second `t` or later; the end of the steps if none does."""
    k = step_at(c, t)
    return k if c.t[k] >= t else k + 1


@inner
def _mark_far(f, c, r, a):  # type: ignore[no-untyped-def]
    """Mark the first job of a size, in order after the present turn, that has enough room."""
    if f.far[a] >= 0:
        _unmark(f, f.far[a], FAR)
        f.far[a] = -1
    n, turn = f.p[0].waiting, f.p[0].turn
    room, until, most_s = f.room[a], f.until[a], f.most_s[a]
    members, plans, line, at = f.members, f.plans, f.line, f.at
    begin, end = f.group[a], f.group[a + 1]
    lap = turn // n * n
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if members[middle] <= turn - lap:
            low = middle + 1
        else:
            high = middle
    for i in range(low, low + end - begin):
        k = i
        here = lap
        if k >= end:
            k -= end - begin
            here += n
        place = members[k]
        if here + place > f.turns[a]:
            break
        if plans[k] <= most_s and room + plans[k] <= min(until, at[line[place]]):
            f.far[a] = place
            _mark(f, place, FAR)
            return
    f.room[a], f.until[a], f.most_s[a] = np.inf, -np.inf, -np.inf


@inner
def _became_free(f, c, r, first, last, gpus):  # type: ignore[no-untyped-def]
    """Mark the jobs that may be moved because more GPUs are free in these steps."""
    rows, level, starts = c.row, c.level, c.starts
    least, most = NO_LIMIT, np.int64(0)
    for k in range(first, min(last + 1, c.n[0] + c.n[1])):
        if k > first:
            j = starts[rows[k]]
            while j >= 0:
                if f.gpus_of[j] <= level[k - 1]:
                    _mark(f, f.place[j], NEAR)
                j = f.behind[j]
        if k < last:
            least, most = min(least, level[k]), max(most, level[k])
    for a in range(f.size.size):
        # stretches of other sizes are unchanged
        if f.size[a] > most:
            return
        # sizes without waiting jobs do not matter
        if f.last[a] == -np.inf or f.size[a] <= least - gpus:
            continue
        room, until, most_s = _room(f, c, a, first, last, f.size[a] + gpus - 1)
        if room < np.inf:
            # all jobs of this size have a turn from here on
            f.turns[a] = f.p[0].turn + f.p[0].waiting
            f.room[a], f.until[a] = min(f.room[a], room), max(f.until[a], until)
            f.most_s[a] = max(f.most_s[a], most_s)
            _mark_far(f, c, r, a)


# ---- moves


@inner
def _move_count(f, c, r, j, i, k):  # type: ignore[no-untyped-def]
    """Move a job's reservation from step `k` to the earlier step `i`, and mark jobs that may move for it."""
    new, old, seconds, gpus = c.t[i], f.at[j], r.plan[j], f.gpus_of[j]
    level = c.level
    f.at[j] = new
    f.p[0].next = min(f.p[0].next, new)
    if old < np.inf:
        begins_no_more(f, c, j)
    begins(f, c, j, c.row[i])
    if old == np.inf:
        last = c.n[0] + c.n[1] if seconds == np.inf else cut(c, new + seconds, i)
        for m in range(i, last):
            level[m] -= gpus
        join(c, last)
        return
    if new + seconds < old:
        last = cut(c, new + seconds, i)
        for m in range(i, last):
            level[m] -= gpus
        join(c, last)
        first = step_from(c, old, last - 1)
    else:
        # the overlap of old and new times stays unchanged
        for m in range(i, k):
            level[m] -= gpus
        k -= join(c, k)
        if seconds == np.inf:
            return
        first = cut(c, new + seconds, k)
    last = cut(c, old + seconds, first)
    for m in range(first, last):
        level[m] += gpus
    join(c, last)
    went = join(c, first)
    _became_free(f, c, r, first - went, last - went, gpus)


@inner
def _turn(f, c, r, j, now, marks):  # type: ignore[no-untyped-def]
    """Move a marked job to the earliest second with room, if that is before its reservation.

    Returns whether it moved.
    """
    old = f.at[j]
    if old <= now:
        return False
    a = f.gang[j]
    gpus = f.gpus_of[j]
    k = step_at(c, old) if old < np.inf else c.n[0] + c.n[1]
    i = k
    if marks & NEAR and old < np.inf:
        i = open_since(c, k, gpus)
    if marks & FAR:
        before = min(c.t[i] if old < np.inf else np.inf, f.until[a])
        at = earliest(c, gpus, r.plan[j], max(now, f.room[a]), before, old)
        if at < before:
            i = step_at(c, at)
    if i < k:
        _move_count(f, c, r, j, i, k)
        return True
    return False


@inner
def _prepare(f, r):  # type: ignore[no-untyped-def]
    """Sort the line by sizes of gangs."""
    p = f.p[0]
    sizes = f.size.size
    f.fewest[:] = np.inf
    f.last[:] = -np.inf
    f.room[:] = np.inf
    f.until[:] = -np.inf
    f.most_s[:] = -np.inf
    f.group[:] = 0
    for k in range(p.waiting):
        j = f.line[k]
        a = f.gang[j]
        f.place[j] = k
        f.group[a + 1] += 1
        f.fewest[a] = min(f.fewest[a], r.plan[j])
        f.last[a] = max(f.last[a], f.at[j])
    f.far[:] = -1
    for a in range(sizes):
        f.turns[a] = f.group[a]
        f.group[a + 1] += f.group[a]
    for k in range(p.waiting):
        j = f.line[k]
        a = f.gang[j]
        f.members[f.turns[a]], f.plans[f.turns[a]] = k, r.plan[j]
        f.turns[a] += 1


@inner
def compress_counts(s, f, c, r):  # type: ignore[no-untyped-def]
    """Move reservations, in order, to the earliest seconds with newly free room, until none moves."""
    p = f.p[0]
    now = s.g[0].now
    begin, end = max(p.freed_from, now), p.freed_to
    p.freed_from, p.freed_to = np.inf, -np.inf
    if begin >= end or p.waiting == 0:
        return
    _prepare(f, r)
    p.turn = -1
    _became_free(f, c, r, step_at(c, begin), _steps_before(c, end), NO_LIMIT)
    while p.looks > 0:
        lap = (p.turn + 1) // p.waiting * p.waiting
        k = _next_marked(f, p.turn + 1 - lap)
        if k == p.waiting:
            p.turn = lap + k - 1
            continue
        p.turn = lap + k
        marks = f.look[k]
        _unmark(f, k, marks)
        j = f.line[k]
        a = f.gang[j]
        if marks & FAR:
            f.far[a] = -1
        moved = _turn(f, c, r, j, now, marks)
        if marks & FAR and f.far[a] < 0 and f.room[a] < np.inf:
            if not moved:
                # is there still room?
                first, last = step_at(c, f.room[a]), _steps_before(c, f.until[a])
                f.room[a], f.until[a], f.most_s[a] = _room(f, c, a, first, last, NO_LIMIT)
            if f.room[a] < np.inf:
                _mark_far(f, c, r, a)
