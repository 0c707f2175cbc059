"""The compiled loop that tracks the waits of groups of jobs, and bounds the next wait of each."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled

FEWEST = 29
"""Waits from which a bound of the 0.9 quantile with that confidence is known: 1 - 0.9^29 > 0.95."""
MISSES = 4
"""So many waits in a row above their 0.9 bounds: all but the latest `FEWEST` waits are forgotten."""


@compiled
def follow(leave, order, wait, group, asks, own_group, own_job, places, top, recent, count, out):  # type: ignore[no-untyped-def]
    """Process starts and queries in order of time.

    Args:
        leave: when jobs start, s; infinite: never.
        order: job numbers by `leave`.
        wait: of each job, s; NaN if it never started.
        group: of each job, from 1 on.
        asks: time of each query, s, ascending.
        own_group: group of each query; below 0: not in the log.
        own_job: job of each query in the log; the number of jobs: none.
        places: which of n waits bounds each level.
        top: column of `places` whose bound shows whether the past still applies.
        recent: written, the waits of each group, the k-th in column k modulo their number.
        count: written, number of waits of each group.
        out: written, the bounds; NaN with fewer waits than `FEWEST` [asks, levels].
    """
    groups = count.size
    window = recent.shape[1]
    valid = np.zeros(groups, np.int64)
    misses = np.zeros(groups, np.int64)
    bound = np.full(wait.size, np.nan)
    some = np.empty(window)
    at = 0
    for n in range(asks.size):
        while at < order.size and leave[order[at]] < asks[n]:
            j = order[at]
            at += 1
            if np.isnan(wait[j]):
                continue
            for g in (0, group[j]):
                recent[g, count[g] % window] = wait[j]
                count[g] += 1
                valid[g] = min(valid[g] + 1, window)
                if g > 0 and not np.isnan(bound[j]):
                    misses[g] = misses[g] + 1 if wait[j] > bound[j] else 0
                    if misses[g] >= MISSES:
                        valid[g] = min(valid[g], FEWEST)
                        misses[g] = 0
        g = own_group[n]
        if g < 0 or valid[g] < FEWEST:
            g = 0
        m = valid[g]
        if m < FEWEST:
            continue
        for k in range(m):
            some[k] = recent[g, (count[g] - 1 - k) % window]
        ranked = np.sort(some[:m])
        for column in range(places.shape[1]):
            out[n, column] = ranked[places[m, column]]
        if own_job[n] < wait.size:
            bound[own_job[n]] = out[n, top]
