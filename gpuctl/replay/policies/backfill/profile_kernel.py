"""The compiled profile of free GPUs over time: in total, per node, and within each queue's limit.

The profile is a step function of time. Each step has the total free GPUs, and a row of further numbers: a column per
node if places matter, and one per queue for its remaining quota if quotas matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.bundles import AT_ONCE, Bundle, array_of, first_in, floats, ints, last_in, move
from gpuctl.compiled.jit import inner

NO_LIMIT = np.int64(1) << 60
"""A number of GPUs above any total; negated, below any."""


class Profile(Bundle):
    """Free GPUs over time."""

    n = ints()  # [3]: first step, steps from there on, rows not in use
    t = floats()  # when each step begins; the last one goes on for ever
    level = ints()  # total free GPUs
    # row of each step in `free` and `starts`; a step's row is stable, its position is not
    row: NDArray[np.int32] = array_of("i4")
    spare = ints()  # rows not in use
    free = ints(2)  # GPUs [rows, columns]
    # first of the waiting jobs whose reservations begin with a row's step; -1: none, or not tracked [rows]
    starts = ints()


def profile(jobs: int, columns: int) -> Profile:
    """Make a profile with room for the steps of `jobs` jobs: each may add two."""
    rows = 2 * jobs + 8
    return Profile(
        n=np.array([0, 1, rows - 1]),
        t=np.full(2 * rows, -np.inf),
        # as many more as are compared at once
        level=2 * rows + AT_ONCE,
        row=2 * rows,
        spare=np.append(np.arange(1, rows)[::-1], 0),
        # not touched until used: untouched memory costs nothing
        free=(rows, columns),
        starts=np.full(rows, -1),
    )


@inner
def step_from(c, t, low):  # type: ignore[no-untyped-def]
    """The step at second `t`, from step `low` on."""
    seconds = c.t
    a, left = low, c.n[0] + c.n[1] - low
    # no branches within: which half it is cannot be predicted
    while left > 1:
        half = left >> 1
        a += half * (seconds[np.uint64(a + half)] <= t)
        left -= half
    return a


@inner
def step_at(c, t):  # type: ignore[no-untyped-def]
    """The step at second `t`."""
    return step_from(c, t, c.n[0])


@inner
def forget(c, now):  # type: ignore[no-untyped-def]
    """Drop steps before now."""
    k = step_at(c, now)
    for i in range(c.n[0], k):
        c.spare[c.n[2]] = c.row[i]
        c.n[2] += 1
    c.n[1] -= k - c.n[0]
    c.n[0] = k
    c.t[k] = now
    if k > c.t.size // 2:
        _shift(c, 0, k, c.n[1])
        c.n[0] = 0


@inner
def _shift(c, to, start, count):  # type: ignore[no-untyped-def]
    """Move steps."""
    move(c.t, to, start, count)
    move(c.level, to, start, count)
    move(c.row, to, start, count)


@inner
def cut(c, t, low):  # type: ignore[no-untyped-def]
    """Cut the profile at `t`, from step `low` on; returns the step."""
    k = step_from(c, t, low)
    if c.t[k] >= t:
        return k
    _shift(c, k + 2, k + 1, c.n[0] + c.n[1] - k - 1)
    c.n[2] -= 1
    row = c.spare[c.n[2]]
    c.t[k + 1], c.level[k + 1], c.row[k + 1] = t, c.level[k], row
    c.starts[row] = -1
    old = c.row[k]
    for column in range(c.free.shape[1]):
        c.free[row, column] = c.free[old, column]
    c.n[1] += 1
    return k + 1


@inner
def join(c, k):  # type: ignore[no-untyped-def]
    """Drop a step equal to the one before it, if no reservation begins with it; returns the steps dropped."""
    end = c.n[0] + c.n[1]
    if k <= c.n[0] or k >= end or c.level[k - 1] != c.level[k]:
        return 0
    a, b = c.row[k - 1], c.row[k]
    if c.starts[b] >= 0:
        return 0
    for column in range(c.free.shape[1]):
        if c.free[a, column] != c.free[b, column]:
            return 0
    c.spare[c.n[2]] = b
    c.n[2] += 1
    c.n[1] -= 1
    _shift(c, k, k + 1, end - k - 1)
    return 1


@inner
def span(c, begin, end):  # type: ignore[no-untyped-def]
    """Cut the profile at both seconds; returns the steps between them, first and last + 1. `end` may be inf."""
    first = cut(c, begin, c.n[0])
    last = c.n[0] + c.n[1] if end == np.inf else cut(c, end, first)
    return first, last


@inner
def joined(c, first, last):  # type: ignore[no-untyped-def]
    """Undo cuts between equal steps."""
    join(c, last)
    join(c, first)


@inner
def fuller_from(c, k, gpus, before):  # type: ignore[no-untyped-def]
    """The first step from `k` on with fewer than `gpus` free, if it begins before a second; else the end."""
    begins, level = c.t, c.level
    end = c.n[0] + c.n[1]
    while k < end and begins[k] < before:
        found = first_in(level, k, -NO_LIMIT, gpus - 1)
        k += found
        if found < AT_ONCE:
            return k if k < end and begins[k] < before else end
    return end


@inner
def open_from(c, k, gpus, most, end):  # type: ignore[no-untyped-def]
    """The first step from `k` on with at least `gpus` and at most `most` free; `end` if none before it."""
    level = c.level
    while k < end:
        found = first_in(level, k, gpus, most)
        k += found
        if found < AT_ONCE:
            return min(k, end)
    return end


@inner
def open_since(c, k, gpus):  # type: ignore[no-untyped-def]
    """The first step of the run before `k` in which at least `gpus` are free; `k` if there is none."""
    begin, level = c.n[0], c.level
    while k - AT_ONCE >= begin:
        found = last_in(level, k - AT_ONCE, -NO_LIMIT, gpus - 1)
        if found >= 0:
            return k - AT_ONCE + found + 1
        k -= AT_ONCE
    while k > begin and level[k - 1] >= gpus:
        k -= 1
    return k


@inner
def earliest(c, gpus, seconds, begin, before, own):  # type: ignore[no-untyped-def]
    """The first second from `begin` on, before `before`, from which `gpus` are free in total for `seconds`.

    From `own` on, GPUs that the job itself has reserved count as free. Returns `before` if there is none.
    """
    begins = c.t
    k = step_at(c, begin)
    end = c.n[0] + c.n[1]
    at = begin
    while at < before:
        # the first step in the required time that is too full
        bad = fuller_from(c, k, gpus, min(at + seconds, own))
        if bad == end:
            return at
        k = open_from(c, bad + 1, gpus, NO_LIMIT, end)
        if k == end:
            return before
        at = begins[k]
    return before
