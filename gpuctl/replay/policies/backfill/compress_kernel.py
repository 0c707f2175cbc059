"""Reservations moved to earlier seconds, compiled, where only how many GPUs are free decides.

What has to come out is this: waiting jobs are gone through in order, again and again, and each is moved to the earliest
second that has room for it, until none moves. Most that are looked at do not move. So this looks only at those that
may, in the same order. Let a job of g GPUs and L seconds have a reservation at second a. It can be moved in two cases:

- near, by less than L: then g GPUs are free just before a;
- far, by L or more: then g GPUs are free for L seconds somewhere before a.

Both begin to hold only where GPUs become free: when a job ends early, a node comes up, or a reservation is moved
away. Then the jobs whose reservations begin in that time are marked by the first case. For the second, the time that
has room is remembered for each size of gangs, with the seconds of the longest stretch in it, and the first job in order
that may fit into it is marked, another one when that has had its turn or the room has changed. So a job that is not
marked when its turn comes cannot be moved. One that is may have no room, or have it no more; its turn finds out, and
then what room there still is is looked up anew.
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
"""Two to this power places in the line have one count of marked jobs."""
NEAR, FAR = 1, 2
"""Marks in `Reservations.look`."""

# ---- who is looked at


@inner
def _mark(f, k, case):  # type: ignore[no-untyped-def]
    """Have the job at a place in the line looked at when it has its turn."""
    if f.look[k] == 0:
        f.block[k >> BLOCK] += 1
        f.p[0].looks += 1
    f.look[k] |= case


@inner
def _unmark(f, k, case):  # type: ignore[no-untyped-def]
    """Take a mark back."""
    if f.look[k] == case:
        f.block[k >> BLOCK] -= 1
        f.p[0].looks -= 1
    f.look[k] &= ~case


@inner
def _next_marked(f, k):  # type: ignore[no-untyped-def]
    """The first marked place from `k` on; the line's length where there is none."""
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
    """Begin and end of the time of stretches of steps that have room for some job of a size, and the longest's seconds.

    Of those only that have a step from `first` to `last` in which no more than `most` GPUs are free. Returns (inf,
    -inf, -inf) where there is none.
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
            # a second more than it is: a difference is rounded, and too much does no harm
            most_s = max(most_s, min(until, latest) - seconds[i] + 1)
        if until >= latest:
            # what is behind the last reservation is of no use
            break
    return begin, end, most_s


@inner
def _steps_before(c, t):  # type: ignore[no-untyped-def]
    """The first step that begins at second `t` or later; the end of the steps where none does."""
    k = step_at(c, t)
    return k if c.t[k] >= t else k + 1


@inner
def _mark_far(f, c, r, a):  # type: ignore[no-untyped-def]
    """Mark the first job of a size, in order after the present turn, for which there is room enough."""
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
    """Mark the jobs that may be moved because so many GPUs more are free in these steps than were."""
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
        # a stretch of other sizes is what it was
        if f.size[a] > most:
            return
        # nor is one of a size that none waits with
        if f.last[a] == -np.inf or f.size[a] <= least - gpus:
            continue
        room, until, most_s = _room(f, c, a, first, last, f.size[a] + gpus - 1)
        if room < np.inf:
            # all of this size have a turn from here on
            f.turns[a] = f.p[0].turn + f.p[0].waiting
            f.room[a], f.until[a] = min(f.room[a], room), max(f.until[a], until)
            f.most_s[a] = max(f.most_s[a], most_s)
            _mark_far(f, c, r, a)


# ---- moves


@inner
def _move_count(f, c, r, j, i, k):  # type: ignore[no-untyped-def]
    """Move a job's reservation from step `k` to the earlier step `i`, and mark who may be moved by that."""
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
        # what it has both before and after stays as it is
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
    """Move a marked job to the earliest second that has room for it, if that is before what it has.

    Returns whether it is.
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
    """Move reservations, in order, to the earliest seconds that what has become free has room for, until none moves."""
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
