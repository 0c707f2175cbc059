"""Compiled: a partial-allocation auction of GPUs, with hidden payments.

With A admitted bidders, P GPUs and bids for up to K of them, an optimum costs O(A P K), and payments as much per
winner. At most as many bidders as GPUs are admitted, in addition to jobs that hold some. If all bids can be met at
once, neither is computed.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, array_of, ints, rows
from gpuctl.compiled.jit import inner

NEVER = -(1 << 62)
"""The value of an infeasible allocation."""

SALE = np.dtype(
    [
        ("pool", "i8"),  # GPUs for sale
        ("chosen", "i8"),  # bidders that take part
        ("waiting", "i8"),  # bidders without GPUs, who are the first in rank
        ("fewest", "i8"),  # GPUs on which each of these starts
        ("known", "i8"),  # bidders whose places in rank are known
        ("admitted", "i8"),
        ("rows", "i8"),  # of `value` that are in use
    ],
    align=True,
)


class Auction(Bundle):
    """Bids in order of rank, and their results."""

    p = rows(SALE)  # scalars [1]
    least = ints()  # least additional GPUs of each [bidders]
    most = ints()  # most additional GPUs of each [bidders]
    admitted = ints()  # ranks of admitted bidders [bidders]
    won = ints()  # GPUs that each wins; -1: it is not admitted [bidders]
    instead = ints()  # the same with one other removed [bidders]
    granted = ints()  # GPUs granted after payment [bidders]
    row = ints()  # of each bidder in `value`; -1: none yet [bidders]
    filled = ints()  # number of GPUs up to which it is computed [bidders]
    value = ints(2)  # value of each number of GPUs to a bidder; the last row is scratch [rows, most GPUs + 1]
    best = ints(2)  # the largest sums of values by GPUs left, for the bidders after one and with it [2, GPUs + 1]
    take = array_of("i4", 2)  # GPUs of each admitted bidder in the optimum, by GPUs left [admitted, GPUs + 1]


@inner
def _admit(a, s, m, reach, without):  # type: ignore[no-untyped-def]
    """Admit, in order of rank, each bidder whose least fits into what earlier ones leave."""
    p = a.p[0]
    room, i = p.pool, 0
    p.admitted = 0
    while i < p.chosen:
        if i < p.waiting and room < p.fewest:
            i = p.waiting
            continue
        if i != without:
            reach(s, m, a, i)
            if a.least[i] <= room and a.least[i] <= a.most[i]:
                room -= a.least[i]
                a.admitted[p.admitted] = i
                p.admitted += 1
        i += 1


@inner
def _fit(a):  # type: ignore[no-untyped-def]
    """Whether all admitted bidders can have their most."""
    total = 0
    for k in range(a.p[0].admitted):
        total += a.most[a.admitted[k]]
    return total <= a.p[0].pool


@inner
def _values(a, s, m, worth, i, most):  # type: ignore[no-untyped-def]
    """Compute a bidder's values up to a number of GPUs. Returns their row; the scratch row if none is left."""
    p = a.p[0]
    scratch = a.value.shape[0] - 1
    if a.row[i] < 0 and p.rows < scratch:
        a.row[i] = p.rows
        a.filled[i] = a.least[i]
        p.rows += 1
    row = a.row[i] if a.row[i] >= 0 else scratch
    for k in range(a.filled[i] if a.row[i] >= 0 else a.least[i], most + 1):
        a.value[row, k] = worth(s, m, a, i, k)
    if a.row[i] >= 0:
        a.filled[i] = max(a.filled[i], most + 1)
    return row


@inner
def _wins_best(a, s, m, worth, out):  # type: ignore[no-untyped-def]
    for at in range(a.p[0].admitted):
        i = a.admitted[at]
        row = _values(a, s, m, worth, i, a.most[i])
        top = np.int64(NEVER)
        for k in range(a.least[i], a.most[i] + 1):
            if a.value[row, k] >= top:
                top = a.value[row, k]
                out[i] = k


@inner
def _optimum(a, s, m, worth, out):  # type: ignore[no-untyped-def]
    """The numbers with the largest sum of values; of several the lexicographically largest in rank."""
    p = a.p[0]
    if _fit(a):
        _wins_best(a, s, m, worth, out)
        return
    before_least, before_most, behind_least = 0, 0, 0
    for at in range(p.admitted):
        before_least += a.least[a.admitted[at]]
        before_most += a.most[a.admitted[at]]
    # beyond the least of all
    slack = p.pool - before_least
    behind, here = 0, 1
    a.best[behind, : slack + 1] = 0
    for back in range(p.admitted):
        at = p.admitted - 1 - back
        i = a.admitted[at]
        least, most = a.least[i], min(a.most[i], a.least[i] + slack)
        before_least -= least
        before_most -= a.most[i]
        row = _values(a, s, m, worth, i, most)
        # within what earlier bidders can leave
        for left in range(max(p.pool - before_most, least + behind_least), p.pool - before_least + 1):
            top, best = np.int64(NEVER), 0
            for k in range(least, min(most, left - behind_least) + 1):
                value = a.value[row, k] + a.best[behind, left - k]
                # of equal ones the most, in favour of higher ranks
                if value >= top:
                    top, best = value, k
            a.best[here, left] = top
            a.take[at, left] = best
        behind_least += least
        behind, here = here, behind
    left = p.pool
    for at in range(p.admitted):
        gets = np.int64(a.take[at, left])
        out[a.admitted[at]] = gets
        left -= gets


@inner
def _pays(a, s, m, worth, i, mine):  # type: ignore[no-untyped-def]
    """The share of its GPUs that a winner keeps: the others' values with it, relative to without it."""
    lost = 0
    for at in range(mine):
        j = a.admitted[a.admitted.size - 1 - at]
        if j != i and a.instead[j] >= 0 and a.instead[j] != a.won[j]:
            lost += worth(s, m, a, j, a.won[j]) - worth(s, m, a, j, a.instead[j])
    return min(1.0, np.exp(lost * 1e-9))


@inner
def sell(a, s, m, pays, reach, worth):  # type: ignore[no-untyped-def]
    """Sell the pool.

    Args:
        a: the auction.
        s: the simulation.
        m: the policy's memory.
        pays: 1: winners pay.
        reach: called as ``reach(s, m, a, i)`` to initialize the i-th bidder: `least` and `most`, 0
            in `granted`, -1 in `won` and `row`.
        worth: called as ``worth(s, m, a, i, k)``: value of k more GPUs to it, in billionths.
    """
    p = a.p[0]
    _admit(a, s, m, reach, -1)
    _optimum(a, s, m, worth, a.won)
    mine = p.admitted
    for at in range(mine):
        i = a.admitted[at]
        a.granted[i] = a.won[i]
    if pays == 0 or _fit(a):
        return
    # the list of bidders admitted without a winner replaces this one, which is saved at the array's end
    for at in range(mine):
        a.admitted[a.admitted.size - 1 - at] = a.admitted[at]
    for each in range(mine):
        i = a.admitted[a.admitted.size - 1 - each]
        if a.won[i] == 0:
            continue
        for at in range(mine):
            a.instead[a.admitted[a.admitted.size - 1 - at]] = -1
        _admit(a, s, m, reach, i)
        _optimum(a, s, m, worth, a.instead)
        share = _pays(a, s, m, worth, i, mine)
        a.granted[i] = max(np.int64(np.floor(share * a.won[i] + 1e-9)), a.least[i])


@inner
def sell_rest(a, s, m, bidders, reach, worth):  # type: ignore[no-untyped-def]
    """Distribute leftover GPUs: to bidders not admitted in rank, then to the others, up to their best number."""
    p = a.p[0]
    left, i = p.pool, 0
    for at in range(p.chosen):
        if at < p.known:
            left -= a.granted[at]
    while i < bidders and left > 0:
        if i < p.waiting and left < p.fewest:
            i = p.waiting
            continue
        reach(s, m, a, i)
        if a.won[i] < 0:
            left -= _add(a, s, m, worth, i, a.least[i], left)
        i += 1
    for i in range(min(p.chosen, p.known)):
        if left > 0 and a.won[i] >= 0:
            left -= _add(a, s, m, worth, i, a.granted[i], left)


@inner
def _add(a, s, m, worth, i, first, left):  # type: ignore[no-untyped-def]
    """Give a bidder its best number of additional GPUs, of several the fewest. Returns the number."""
    top, had = np.int64(NEVER), a.granted[i]
    for k in range(first, min(a.most[i], had + left) + 1):
        value = worth(s, m, a, i, k)
        if value > top:
            top = value
            a.granted[i] = k
    return a.granted[i] - had
