"""Compiled: Pollux' genetic search for one option of each job, over the same options as the exact choice.

As its authors' NSGA-II, of which only the best first objective decides: a population from the last round, crossover at
one job, and mutations back to the present, to nothing and into free GPUs. Theirs is a matrix of jobs by nodes; these
numbers of GPUs always pack, so that one number a job is enough, and no two jobs on several nodes meet on one.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, array_of, ints, rows
from gpuctl.compiled.jit import inner

POPULATION = 100
GENERATIONS = 100
BACK = 0.1
"""Chance that a job of a child is back at its present option."""
GROW = 0.5
"""Chance that a job takes more of what is free, when its turn comes."""
CODES = 65
"""Codes of a group: numbers of GPUs that a job may have, 0 to 64."""
_MODULUS = 2147483647

SEARCH = np.dtype(
    [
        ("on", "i8"),  # whether to search
        ("draw", "i8"),  # state of the random numbers, 1 to 2^31 - 2
        ("last", "i8"),  # individuals of the last population
    ],
    align=True,
)


class Search(Bundle):
    """Populations; a row is an individual. Those after the first `POPULATION` are the children of a generation."""

    p = rows(SEARCH)  # one record of `SEARCH`
    kept = array_of("i4", 2)  # what each job has in the last population: group x CODES + GPUs, 0 none [rows, jobs]
    option = array_of("i4", 2)  # of each list, from its first one on [rows, lists]
    cost = ints()  # sum of each individual [rows]
    order = ints()  # individuals, the cheapest first [rows]
    now = array_of("i4")  # the present option of each list, from its first one on; -1: its job has no GPUs [lists]
    nothing = array_of("i4")  # its option without GPUs [lists]
    free = ints()  # GPUs of each group, for a trial [groups]


@inner
def _below(m, n):  # type: ignore[no-untyped-def]
    """A random number from 0 to n - 1, by Lehmer's generator (Park and Miller 1993)."""
    p = m.p[0]
    p.draw = p.draw * 48271 % _MODULUS
    return p.draw % n


@inner
def _chance(m, of):  # type: ignore[no-untyped-def]
    p = m.p[0]
    p.draw = p.draw * 48271 % _MODULUS
    return p.draw < of * _MODULUS


@inner
def _code(c, o):  # type: ignore[no-untyped-def]
    return c.group[o] * CODES + c.gpus[o] if c.group[o] >= 0 else 0


@inner
def _take(m, c, o):  # type: ignore[no-untyped-def]
    if c.group[o] >= 0:
        m.free[c.group[o]] -= c.gpus[o]


@inner
def _repair(m, c, lists, row):  # type: ignore[no-untyped-def]
    """Let jobs that no longer fit have the most GPUs of their group that do, in their order; sets what is free."""
    for t in range(m.free.size):
        m.free[t] = c.room[t]
    for e in range(lists):
        o = c.first[e] + m.option[row, e]
        t = c.group[o]
        if t >= 0 and c.gpus[o] > m.free[t]:
            best = c.first[e] + m.nothing[e]
            for other in range(c.first[e], c.first[e + 1]):
                if c.group[other] == t and c.gpus[other] <= m.free[t] and c.gpus[other] > c.gpus[best]:
                    best = other
            m.option[row, e] = best - c.first[e]
            o = best
        _take(m, c, o)


@inner
def _grow(m, c, lists, row):  # type: ignore[no-untyped-def]
    """Let jobs have some of what is free, from a random one on."""
    start = _below(m, lists)
    for k in range(lists):
        e = (start + k) % lists
        if not _chance(m, GROW):
            continue
        now = c.first[e] + m.option[row, e]
        fits, chosen = 0, now
        for o in range(c.first[e], c.first[e + 1]):
            t = c.group[o]
            if t < 0 or (t == c.group[now] and c.gpus[o] <= c.gpus[now]):
                continue
            held = c.gpus[now] if t == c.group[now] else 0
            if c.gpus[o] - held <= m.free[t]:
                # each of those that fit is as likely
                fits += 1
                if _below(m, fits) == 0:
                    chosen = o
        if chosen != now:
            if c.group[now] >= 0:
                m.free[c.group[now]] += c.gpus[now]
            _take(m, c, chosen)
            m.option[row, e] = chosen - c.first[e]


@inner
def _weigh(m, c, lists, row):  # type: ignore[no-untyped-def]
    total = 0
    for e in range(lists):
        total += c.cost[c.first[e] + m.option[row, e]]
    m.cost[row] = total


@inner
def _begin(m, c, lists, owner):  # type: ignore[no-untyped-def]
    """Make the first individuals: what jobs have now, and the last population without those that ended."""
    p = m.p[0]
    for e in range(lists):
        for o in range(c.first[e], c.first[e + 1]):
            if c.group[o] < 0:
                m.nothing[e] = o - c.first[e]
        if m.now[e] < 0:
            m.now[e] = m.nothing[e]
        m.option[0, e] = m.now[e]
        for k in range(p.last):
            wanted = m.kept[k, owner[e]]
            m.option[k + 1, e] = m.nothing[e]
            for o in range(c.first[e], c.first[e + 1]):
                if wanted > 0 and _code(c, o) == wanted:
                    m.option[k + 1, e] = o - c.first[e]


@inner
def _better_of_two(m, size):  # type: ignore[no-untyped-def]
    one, other = m.order[_below(m, size)], m.order[_below(m, size)]
    return other if m.cost[other] < m.cost[one] else one


@inner
def _child(m, c, lists, size, row):  # type: ignore[no-untyped-def]
    """Make a child of two parents."""
    mother, father = _better_of_two(m, size), _better_of_two(m, size)
    point = _below(m, lists)
    for e in range(lists):
        m.option[row, e] = m.option[mother if e < point else father, e]
        if _chance(m, BACK):
            m.option[row, e] = m.now[e]
        elif _chance(m, 1.0 / lists):
            m.option[row, e] = m.nothing[e]
    _repair(m, c, lists, row)
    _grow(m, c, lists, row)
    _weigh(m, c, lists, row)


@inner
def _rank(m, many):  # type: ignore[no-untyped-def]
    """Order individuals by cost, those that were there first ahead; the rows of the others are free for children."""
    for k in range(many):
        row = m.order[k]
        at = k
        while at > 0 and m.cost[m.order[at - 1]] > m.cost[row]:
            m.order[at] = m.order[at - 1]
            at -= 1
        m.order[at] = row


@inner
def search(m, c, lists, owner):  # type: ignore[no-untyped-def]
    """Put the option found for each list, of one job each, into `Choice.best`; `Search.now` must be set."""
    p = m.p[0]
    _begin(m, c, lists, owner)
    size = min(p.last + 1, POPULATION)
    for row in range(2 * POPULATION):
        m.order[row] = row
    for row in range(size):
        _repair(m, c, lists, row)
        _weigh(m, c, lists, row)
    _rank(m, size)
    for _ in range(GENERATIONS):
        for k in range(POPULATION):
            _child(m, c, lists, size, m.order[size + k])
        _rank(m, size + POPULATION)
        size = min(size + POPULATION, POPULATION)
    p.last = POPULATION - 1
    for e in range(lists):
        c.best[e] = c.first[e] + m.option[m.order[0], e]
        for k in range(p.last):
            m.kept[k, owner[e]] = _code(c, c.first[e] + m.option[m.order[k], e])
