"""The compiled forecast of S's wait: the queue simulated forward, with run times drawn from the past."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.research.chain.episode_kernel import (
    FAR,
    NEVER,
    NEXT,
    NOW,
    RUNNING,
    S_START,
    WAITING,
    copy_to,
    enter_s,
    go_on,
)

OF_CHAIN = -1
"""Kind of a job of the chain, which is assumed to run to its limit."""


@inner
def _random(x):  # type: ignore[no-untyped-def]
    """The next random number below 2**31 (the generator of the C standard)."""
    return (x * 1103515245 + 12345) % 2147483648


@inner
def _share(own, count, pool, least, x):  # type: ignore[no-untyped-def]
    """A run time as a share of the limit, larger than `least`: drawn from the user's past plus one draw from all jobs.

    Args:
        own: shares of jobs of the same user.
        count: number of these shares.
        pool: shares of all jobs of its kind, ascending.
        least: the share already elapsed.
        x: a random number.
    """
    fit = 0
    for k in range(count):
        fit += own[k] > least
    pick = (x >> 8) % (fit + 1)
    for k in range(count):
        if own[k] > least:
            if pick == 0:
                return own[k]
            pick -= 1
    first = 0
    while first < pool.size and pool[first] <= least:
        first += 1
    if first == pool.size:
        return 1.0
    return pool[first + (_random(x) >> 8) % (pool.size - first)]


@inner
def _draw(f, past, count, kind, pool, number):  # type: ignore[no-untyped-def]
    """Draw the run time of each running and pending job."""
    now = f.c[NOW]
    for k in range(f.c[RUNNING]):
        j = f.run[k]
        if kind[j] == OF_CHAIN:
            f.end[k] = f.until[k]
        else:
            x = _random((_random(12345 + 7919 * number) + 7919 * j) % 2147483648)
            share = _share(past[j], count[j], pool[kind[j]], (now - f.start[k]) / f.limit[j], x)
            f.end[k] = max(now + 1, min(f.until[k], f.start[k] + np.int64(np.ceil(share * f.limit[j]))))
    for k in range(f.c[WAITING]):
        j = f.line[k]
        if kind[j] == OF_CHAIN:
            f.ticks[j] = f.limit[j]
        else:
            x = _random((_random(12345 + 7919 * number) + 7919 * j) % 2147483648)
            share = _share(past[j], count[j], pool[kind[j]], 0.0, x)
            f.ticks[j] = max(1, np.int64(np.ceil(share * f.limit[j])))


@compiled
def forecasts(e, f, at, past, count, kind, pool, waits):  # type: ignore[no-untyped-def]
    """Forecast S's wait in each of several minutes; no other job is submitted later.

    In all forecasts of the same number, a job's run time is the same share of its limit if its elapsed time allows.

    Args:
        e: the episode, not past the first of them.
        f: a copy with its own run times.
        at: the minutes, ascending.
        past: run times of each job's user, as shares of limits [jobs, PAST].
        count: number of these shares by job [jobs].
        kind: kind of each job: a row of `pool`, or OF_CHAIN [jobs].
        pool: shares of all jobs, ascending, by kind [kinds, POOL].
        waits: written, minutes that S waits [minutes, forecasts].
    """
    for k in range(at.size):
        go_on(e, at[k], NEVER)
        now = e.c[NOW]
        for number in range(waits.shape[1]):
            copy_to(e, f)
            enter_s(f, now)
            f.c[NEXT] = e.minute.size - 2
            _draw(f, past, count, kind, pool, number)
            go_on(f, FAR, S_START)
            waits[k, number] = f.c[S_START] - now
