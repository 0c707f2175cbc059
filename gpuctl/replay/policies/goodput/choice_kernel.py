"""Compiled: one option for each of several jobs, so that the sum of costs is least and every group of GPUs suffices.

Exact, ties included: of the choices with the least sum the lexicographically first one, jobs in their order, options in
the order of their list. Prices for the GPUs of each group (a Lagrangian relaxation) give a bound; an option that costs
more than its job's best by more than the gap between the bound and a known choice is in no best choice. What is left
goes into a dynamic program over the free GPUs of each group. Jobs with the same options share one list of them.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, array_of, floats, ints
from gpuctl.compiled.jit import inner

NO_COST = 1 << 60
CYCLES = 3
"""Times that the prices of several groups are adjusted one after the other."""
HALVINGS = 40


class Choice(Bundle):
    """Lists of options, and jobs that have them; those of list e are ``first[e]`` to ``first[e + 1]``."""

    first = ints()  # [lists + 1]
    jobs_of = ints()  # how many jobs have each list [lists]
    best = ints()  # the option that is best for now, or the only open one, -1: several are [lists]
    which = ints()  # the list of each job [jobs]
    group = array_of("i4")  # of each option; -1: no GPUs [options]
    gpus = array_of("i4")  # [options]
    cost = ints()  # [options]
    open = array_of("i1")  # whether it may be in a best choice [options]
    pick = ints()  # the option chosen for each job [jobs]
    room = ints()  # GPUs of each group [groups]
    used = ints()  # GPUs that a choice takes of each group [groups]
    price = floats()  # of a GPU of each group; the next choice begins with these [groups]
    core = ints()  # jobs with several open options [jobs]


@inner
def _reduced(c, o):  # type: ignore[no-untyped-def]
    """Cost of an option with the prices of its GPUs."""
    if c.group[o] < 0:
        return float(c.cost[o])
    return c.cost[o] + c.price[c.group[o]] * c.gpus[o]


@inner
def _take(c, k, o):  # type: ignore[no-untyped-def]
    c.pick[k] = o
    if c.group[o] >= 0:
        c.used[c.group[o]] += c.gpus[o]


@inner
def _fits(c):  # type: ignore[no-untyped-def]
    for t in range(c.room.size):
        if c.used[t] > c.room[t]:
            return False
    return True


@inner
def _at_prices(c, lists):  # type: ignore[no-untyped-def]
    """Find the cheapest option of each list, the first of several; returns the bound that follows."""
    c.used[:] = 0
    total = 0.0
    for e in range(lists):
        best, least = c.first[e], _reduced(c, c.first[e])
        for o in range(best + 1, c.first[e + 1]):
            reduced = _reduced(c, o)
            if reduced < least:
                best, least = o, reduced
        c.best[e] = best
        if c.group[best] >= 0:
            c.used[c.group[best]] += c.jobs_of[e] * c.gpus[best]
        total += c.jobs_of[e] * least
    for t in range(c.room.size):
        total -= c.price[t] * c.room[t]
    return total


@inner
def _set_price(c, lists, t):  # type: ignore[no-untyped-def]
    """The least price of a group's GPUs at which they suffice, the other prices as they are."""
    before = c.price[t]
    low, high = 0.0, before
    c.price[t] = high
    _at_prices(c, lists)
    if c.used[t] <= c.room[t]:
        # look a little below first: prices change little from one round to the next
        c.price[t] = 0.9 * before
        _at_prices(c, lists)
        if c.used[t] > c.room[t]:
            low = c.price[t]
        else:
            high = c.price[t]
    while c.used[t] > c.room[t] and high < NO_COST:
        low = high
        high = max(1.1 * high, 1.0) if low == before else 4.0 * high
        c.price[t] = high
        _at_prices(c, lists)
    for _ in range(HALVINGS):
        if high - low <= 1e-6 * high:
            break
        c.price[t] = 0.5 * (low + high)
        _at_prices(c, lists)
        if c.used[t] > c.room[t]:
            low = c.price[t]
        else:
            high = c.price[t]
    c.price[t] = high


@inner
def _prices(c, lists):  # type: ignore[no-untyped-def]
    """Adjust prices; returns the bound of the sum of costs, with the options at these prices in `best`."""
    groups = c.room.size
    for _ in range(CYCLES if groups > 1 else 1):
        for t in range(groups):
            _set_price(c, lists, t)
    return _at_prices(c, lists)


@inner
def _pick_best(c, jobs):  # type: ignore[no-untyped-def]
    c.used[:] = 0
    for k in range(jobs):
        _take(c, k, c.best[c.which[k]])


@inner
def _repair(c, jobs):  # type: ignore[no-untyped-def]
    """Let jobs have less until all fits, where it costs least for a GPU."""
    for t in range(c.room.size):
        while c.used[t] > c.room[t]:
            job, option, least = -1, -1, 0.0
            for k in range(jobs):
                now = c.pick[k]
                if c.group[now] != t:
                    continue
                for o in range(c.first[c.which[k]], c.first[c.which[k] + 1]):
                    other = c.group[o]
                    less = c.gpus[now] - (c.gpus[o] if other == t else 0)
                    fits = other < 0 or other == t or c.used[other] + c.gpus[o] <= c.room[other]
                    if less > 0 and fits:
                        loss = (c.cost[o] - c.cost[now]) / less
                        if option < 0 or loss < least:
                            job, option, least = k, o, loss
            c.used[t] -= c.gpus[c.pick[job]]
            _take(c, job, option)


@inner
def _improve(c, jobs):  # type: ignore[no-untyped-def]
    """Let jobs have cheaper options while some fit; returns the sum of costs."""
    again = True
    while again:
        again = False
        for k in range(jobs):
            now = c.pick[k]
            best = now
            for o in range(c.first[c.which[k]], c.first[c.which[k] + 1]):
                t = c.group[o]
                held = c.gpus[now] if c.group[now] == t else 0
                if c.cost[o] < c.cost[best] and (t < 0 or c.used[t] - held + c.gpus[o] <= c.room[t]):
                    best = o
            if best != now:
                if c.group[now] >= 0:
                    c.used[c.group[now]] -= c.gpus[now]
                _take(c, k, best)
                again = True
    total = 0
    for k in range(jobs):
        total += c.cost[c.pick[k]]
    return total


@inner
def _prune(c, lists, jobs, gap):  # type: ignore[no-untyped-def]
    """Close the options that are in no best choice; returns how many jobs have several open ones, in `core`."""
    for e in range(lists):
        least = np.inf
        for o in range(c.first[e], c.first[e + 1]):
            least = min(least, _reduced(c, o))
        c.best[e] = -2
        for o in range(c.first[e], c.first[e + 1]):
            c.open[o] = _reduced(c, o) - least <= gap
            if c.open[o] == 1:
                c.best[e] = o if c.best[e] == -2 else -1
    c.used[:] = 0
    for k in range(jobs):
        if c.best[c.which[k]] >= 0:
            _take(c, k, c.best[c.which[k]])
    left = 0
    for t in range(c.room.size):
        left += c.room[t] - c.used[t]
    core = 0
    for k in range(jobs):
        e = c.which[k]
        last = c.first[e + 1] - 1
        if c.best[e] >= 0:
            continue
        if c.group[last] < 0:
            # of jobs that share a list the first ones get what there is
            c.best[e] -= 1
            if -1 - c.best[e] > left:
                c.pick[k] = last
                continue
        c.core[core] = k
        core += 1
    return core


@inner
def _spans(c, core, room, low):  # type: ignore[no-untyped-def]
    """By job of the core and group, the fewest GPUs that those before it may leave; what nobody can use is cut off.

    Returns:
        the states of the dynamic program: one for each number of free GPUs in each group.
    """
    groups = c.room.size
    most = np.zeros(groups, np.int64)
    for i in range(core):
        for t in range(groups):
            low[i, t] = most[t]
            own = 0
            for o in range(c.first[c.which[c.core[i]]], c.first[c.which[c.core[i]] + 1]):
                if c.open[o] == 1 and c.group[o] == t:
                    own = max(own, c.gpus[o])
            most[t] += own
    states = 1
    for t in range(groups):
        room[t] = min(c.room[t] - c.used[t], most[t])
        states *= room[t] + 1
    for i in range(core):
        for t in range(groups):
            low[i, t] = max(room[t] - low[i, t], 0)
    return states


@inner
def _add(table, i, first, last, cost, shift):  # type: ignore[no-untyped-def]
    for at in range(first, last):
        total = cost + table[i + 1, at - shift]
        table[i, at] = min(table[i, at], total)


@inner
def _exactly(c, core):  # type: ignore[no-untyped-def]
    """Choose among the open options of the core: costs to go from its last job back, then the first best option."""
    groups = c.room.size
    room, low = np.zeros(groups, np.int64), np.zeros((core, groups), np.int64)
    states = _spans(c, core, room, low)
    table = np.full((core + 1, states), NO_COST)
    table[core, :] = 0
    for i in range(core - 1, -1, -1):
        k = c.core[i]
        # states are numbered with the first group's GPUs running fastest; below this nobody looks
        least, size = 0, 1
        for t in range(groups):
            least += low[i, t] * size
            size *= room[t] + 1
        for o in range(c.first[c.which[k]], c.first[c.which[k] + 1]):
            if c.open[o] == 0:
                continue
            group, gpus = c.group[o], c.gpus[o]
            if group < 0:
                _add(table, i, least, states, c.cost[o], 0)
                continue
            step = 1
            for t in range(group):
                step *= room[t] + 1
            block = step * (room[group] + 1)
            for begin in range(least // block * block, states, block):
                _add(table, i, max(begin + gpus * step, least), begin + block, c.cost[o], gpus * step)
    state = states - 1
    for i in range(core):
        k = c.core[i]
        for o in range(c.first[c.which[k]], c.first[c.which[k] + 1]):
            if c.open[o] == 0:
                continue
            shift = 0
            if c.group[o] >= 0:
                step = 1
                for t in range(c.group[o]):
                    step *= room[t] + 1
                if state // step % (room[c.group[o]] + 1) < c.gpus[o]:
                    continue
                shift = c.gpus[o] * step
            if c.cost[o] + table[i + 1, state - shift] == table[i, state]:
                c.pick[k] = o
                state -= shift
                break


@inner
def choose(c, lists, jobs):  # type: ignore[no-untyped-def]
    """Pick an option for each of so many jobs; one without GPUs, or some other that always fits, must be among them."""
    prices = c.price.copy()
    c.price[:] = 0.0
    _at_prices(c, lists)
    if _fits(c):
        _pick_best(c, jobs)
        return
    for t in range(prices.size):
        c.price[t] = prices[t]
    bound = _prices(c, lists)
    _pick_best(c, jobs)
    _repair(c, jobs)
    total = _improve(c, jobs)
    core = _prune(c, lists, jobs, total - bound + 1e-9 * abs(total) + 1e-6)
    if core > 0:
        _exactly(c, core)
