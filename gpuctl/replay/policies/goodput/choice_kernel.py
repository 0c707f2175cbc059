"""Compiled: one option for each of several jobs, so that the sum of costs is least and every group of GPUs suffices.

Exact, ties included: of the choices with the least sum the lexicographically first one, jobs in their order, options in
the order of their list. Prices for the GPUs of each group (a Lagrangian relaxation) give a bound; an option that costs
more than its job's best by more than the gap between the bound and a known choice is in no best choice. What is left
goes into a dynamic program over the free GPUs of each group.

Jobs with the same options share one list of them, and only the dynamic program looks at jobs one by one: `narrow`
decides all lists that it can, `join` how many jobs of the others are sure to get GPUs or none; the caller puts those
between into `core`, in their order, and `exactly` decides them.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, array_of, floats, ints
from gpuctl.compiled.jit import inner

NO_COST = 1 << 60
CYCLES = 3
"""Times that the prices of several groups are adjusted one after the other."""


class Choice(Bundle):
    """Lists of options, and jobs that have them; those of list e are ``first[e]`` to ``first[e + 1]``."""

    first = ints()  # [lists + 1]
    jobs_of = ints()  # how many jobs have each list [lists]
    best = ints()  # the option of all jobs of a list; -1: several are open [lists]
    # of a list with several open options: how many jobs, its first ones, may have other than its last …
    most = ints()
    sure = ints()  # … and how many have `take`, after `join` …
    take = ints()  # … its only open option but the last, -1: more are open …
    twin = ints()  # … and the first list whose open options differ as much; jobs of both count there
    group = array_of("i4")  # of each option; -1: no GPUs [options]
    gpus = array_of("i4")  # [options]
    cost = ints()  # [options]
    open = array_of("i1")  # whether it may be in a best choice [options]
    many = ints()  # jobs that have each option in the best choice known [options]
    room = ints()  # GPUs of each group [groups]
    used = ints()  # GPUs that a choice takes of each group [groups]
    price = floats()  # of a GPU of each group; the next choice begins with these [groups]
    slope = floats()  # prices of a group's GPUs at which lists want more of them … [options]
    weight = ints()  # … and how many more [options]
    core = ints()  # the list of each job that is left to decide [jobs]
    pick = ints()  # the option chosen for each of these [jobs]


@inner
def _reduced(c, o):  # type: ignore[no-untyped-def]
    """Cost of an option with the prices of its GPUs."""
    if c.group[o] < 0:
        return float(c.cost[o])
    return c.cost[o] + c.price[c.group[o]] * c.gpus[o]


@inner
def _fits(c):  # type: ignore[no-untyped-def]
    for t in range(c.room.size):
        if c.used[t] > c.room[t]:
            return False
    return True


@inner
def _are_free(c):  # type: ignore[no-untyped-def]
    """All prices are 0."""
    for t in range(c.price.size):
        if c.price[t] > 0:
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
def _segments(c, lists, t):  # type: ignore[no-untyped-def]
    """List the prices of a group's GPUs at which each list wants more of them, and how many more; returns how many.

    The other prices are as they are. A list takes options on the lower hull of GPUs and costs, which begins at the
    cheapest option without GPUs of the group; the slope of a side is the price at which its end is as good.
    """
    size = 0
    for e in range(lists):
        gpus, cost = 0, np.inf
        for o in range(c.first[e], c.first[e + 1]):
            if c.group[o] != t:
                cost = min(cost, _reduced(c, o))
        while True:
            best, steepest = -1, 0.0
            for o in range(c.first[e], c.first[e + 1]):
                if c.group[o] == t and c.gpus[o] > gpus:
                    slope = (cost - c.cost[o]) / (c.gpus[o] - gpus)
                    if slope > steepest:
                        best, steepest = o, slope
            if best < 0:
                break
            c.slope[size] = steepest
            c.weight[size] = (c.gpus[best] - gpus) * c.jobs_of[e]
            size += 1
            gpus, cost = c.gpus[best], float(c.cost[best])
    return size


@inner
def _swap(c, i, k):  # type: ignore[no-untyped-def]
    c.slope[i], c.slope[k] = c.slope[k], c.slope[i]
    c.weight[i], c.weight[k] = c.weight[k], c.weight[i]


@inner
def _threshold(c, size, room):  # type: ignore[no-untyped-def]
    """The least price above which lists want no more GPUs than there are; 0: there are enough."""
    first, last = 0, size
    while first < last:
        # those above the pivot come first, then those at it
        pivot = c.slope[(first + last) // 2]
        above, same, at = first, last, first
        more, equal = 0, 0
        while at < same:
            if c.slope[at] > pivot:
                more += c.weight[at]
                _swap(c, at, above)
                above += 1
                at += 1
            elif c.slope[at] < pivot:
                same -= 1
                _swap(c, at, same)
            else:
                equal += c.weight[at]
                at += 1
        if more > room:
            last = above
        elif more + equal > room:
            return pivot
        else:
            room -= more + equal
            first = same
    return 0.0


@inner
def _prices(c, lists):  # type: ignore[no-untyped-def]
    """Adjust prices; returns the bound of the sum of costs, with the options at these prices in `best`."""
    groups = c.room.size
    for _ in range(CYCLES if groups > 1 else 1):
        for t in range(groups):
            # just above, so that who is indifferent takes less
            c.price[t] = _threshold(c, _segments(c, lists, t), c.room[t]) * (1.0 + 1e-9)
    return _at_prices(c, lists)


@inner
def _move(c, jobs, now, then):  # type: ignore[no-untyped-def]
    """Give so many jobs another option of their list."""
    c.many[now] -= jobs
    c.many[then] += jobs
    if c.group[now] >= 0:
        c.used[c.group[now]] -= jobs * c.gpus[now]
    if c.group[then] >= 0:
        c.used[c.group[then]] += jobs * c.gpus[then]


@inner
def _some_fit(c, group, gpus):  # type: ignore[no-untyped-def]
    """How many times so many GPUs of a group are free."""
    return (c.room[group] - c.used[group]) // gpus if group >= 0 and gpus > 0 else NO_COST


@inner
def _repair(c, lists):  # type: ignore[no-untyped-def]
    """Let jobs have less until all fits, where it costs least for a GPU."""
    for t in range(c.room.size):
        while c.used[t] > c.room[t]:
            now, then, least = -1, -1, 0.0
            for e in range(lists):
                for i in range(c.first[e], c.first[e + 1]):
                    if c.group[i] != t or c.many[i] == 0:
                        continue
                    for o in range(c.first[e], c.first[e + 1]):
                        other = c.group[o]
                        less = c.gpus[i] - (c.gpus[o] if other == t else 0)
                        if less > 0 and (other == t or _some_fit(c, other, c.gpus[o]) > 0):
                            loss = (c.cost[o] - c.cost[i]) / less
                            if then < 0 or loss < least:
                                now, then, least = i, o, loss
            less = c.gpus[now] - (c.gpus[then] if c.group[then] == t else 0)
            jobs = min(c.many[now], (c.used[t] - c.room[t] + less - 1) // less)
            if c.group[then] != t:
                jobs = min(jobs, _some_fit(c, c.group[then], c.gpus[then]))
            _move(c, jobs, now, then)


@inner
def _full(c):  # type: ignore[no-untyped-def]
    """No GPU is free: at prices from 0 on an option that costs less takes more, so that nobody can have one."""
    for t in range(c.room.size):
        if c.used[t] < c.room[t]:
            return False
    return True


@inner
def _improve(c, lists):  # type: ignore[no-untyped-def]
    """Let jobs have cheaper options while some fit; returns the sum of costs."""
    again = not _full(c)
    while again:
        again = False
        for e in range(lists):
            for now in range(c.first[e], c.first[e + 1]):
                if c.many[now] == 0:
                    continue
                then, jobs = now, 0
                for o in range(c.first[e], c.first[e + 1]):
                    held = c.gpus[now] if c.group[now] == c.group[o] else 0
                    fit = _some_fit(c, c.group[o], c.gpus[o] - held)
                    if c.cost[o] < c.cost[then] and fit > 0:
                        then, jobs = o, min(fit, c.many[now])
                if jobs > 0:
                    _move(c, jobs, now, then)
                    again = True
    total = 0
    for o in range(c.first[lists]):
        total += c.many[o] * c.cost[o]
    return total


@inner
def _prune(c, lists, gap):  # type: ignore[no-untyped-def]
    """Close the options that are in no best choice."""
    c.used[:] = 0
    for e in range(lists):
        least = np.inf
        for o in range(c.first[e], c.first[e + 1]):
            least = min(least, _reduced(c, o))
        best = -2
        for o in range(c.first[e], c.first[e + 1]):
            c.open[o] = _reduced(c, o) - least <= gap
            if c.open[o] == 1:
                best = o if best == -2 else -1
        c.best[e] = best
        if best >= 0 and c.group[best] >= 0:
            c.used[c.group[best]] += c.jobs_of[e] * c.gpus[best]
    left = 0
    for t in range(c.room.size):
        left += c.room[t] - c.used[t]
    for e in range(lists):
        c.most[e] = c.jobs_of[e]
        last = c.first[e + 1] - 1
        if c.best[e] < 0 and c.group[last] < 0:
            # of jobs that share a list the first ones get what there is
            c.most[e] = min(c.jobs_of[e], left)
            if left == 0:
                c.best[e] = last


@inner
def _bounds(c, e, t):  # type: ignore[no-untyped-def]
    """The fewest and the most GPUs of a group that a job of an open list may have."""
    least, most = NO_COST, 0
    for o in range(c.first[e], c.first[e + 1]):
        if c.open[o] == 1:
            gpus = c.gpus[o] if c.group[o] == t else 0
            least, most = min(least, gpus), max(most, gpus)
    return least, most


@inner
def _spans(c, core, room, low, least):  # type: ignore[no-untyped-def]
    """By job of the core and group, its fewest GPUs, and the fewest that those before it may leave beyond these.

    Only GPUs beyond everybody's fewest are states; what nobody can use is cut off.

    Returns:
        the states of the dynamic program: one for each number of free GPUs in each group.
    """
    groups = c.room.size
    most, taken = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for i in range(core):
        for t in range(groups):
            low[i, t] = most[t]
            fewest, own = _bounds(c, c.core[i], t)
            least[i, t] = fewest
            taken[t] += fewest
            most[t] += own - fewest
    states = 1
    for t in range(groups):
        room[t] = min(c.room[t] - c.used[t] - taken[t], most[t])
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
def exactly(c, core):  # type: ignore[no-untyped-def]
    """Pick an open option for each job of the core: costs to go from its last job back, then the first best option."""
    groups = c.room.size
    room, low = np.zeros(groups, np.int64), np.zeros((core, groups), np.int64)
    fewest = np.zeros((core, groups), np.int64)
    states = _spans(c, core, room, low, fewest)
    table = np.full((core + 1, states), NO_COST)
    table[core, :] = 0
    for i in range(core - 1, -1, -1):
        e = c.core[i]
        # states are numbered with the first group's GPUs running fastest; below this nobody looks
        least, size = 0, 1
        for t in range(groups):
            least += low[i, t] * size
            size *= room[t] + 1
        for o in range(c.first[e], c.first[e + 1]):
            if c.open[o] == 0:
                continue
            group = c.group[o]
            if group < 0:
                _add(table, i, least, states, c.cost[o], 0)
                continue
            step = 1
            for t in range(group):
                step *= room[t] + 1
            block = step * (room[group] + 1)
            gpus = c.gpus[o] - fewest[i, group]
            for begin in range(least // block * block, states, block):
                _add(table, i, max(begin + gpus * step, least), begin + block, c.cost[o], gpus * step)
    state = states - 1
    for i in range(core):
        e = c.core[i]
        for o in range(c.first[e], c.first[e + 1]):
            if c.open[o] == 0:
                continue
            shift = 0
            if c.group[o] >= 0:
                step = 1
                for t in range(c.group[o]):
                    step *= room[t] + 1
                gpus = c.gpus[o] - fewest[i, c.group[o]]
                if state // step % (room[c.group[o]] + 1) < gpus:
                    continue
                shift = gpus * step
            if c.cost[o] + table[i + 1, state - shift] == table[i, state]:
                c.pick[i] = o
                state -= shift
                break


@inner
def narrow(c, lists):  # type: ignore[no-untyped-def]
    """Find the option of all jobs of a list where it can be only one, else which are open.

    A list shared by jobs must end with an option that always fits; any other must have one.
    """
    bound = _prices(c, lists)
    if _are_free(c) and _fits(c):
        return
    c.many[: c.first[lists]] = 0
    for e in range(lists):
        c.many[c.best[e]] = c.jobs_of[e]
    _repair(c, lists)
    total = _improve(c, lists)
    _prune(c, lists, total - bound + 1e-9 * abs(total) + 1e-6)


@inner
def _find_twins(c, alone, lists):  # type: ignore[no-untyped-def]
    for e in range(lists):
        c.twin[e], c.take[e], c.sure[e] = e, -1, 0
        last = c.first[e + 1] - 1
        if e < alone or c.best[e] >= 0 or c.open[last] == 0 or c.group[last] >= 0:
            continue
        some = 0
        for o in range(c.first[e], last):
            if c.open[o] == 1:
                c.take[e] = o
                some += 1
        take = c.take[e]
        if some > 1 or c.cost[take] > c.cost[last]:
            c.take[e] = -1
            continue
        for f in range(alone, e):
            other = c.take[f]
            if c.twin[f] != f or other < 0 or c.group[other] != c.group[take] or c.gpus[other] != c.gpus[take]:
                continue
            if c.cost[other] - c.cost[c.first[f + 1] - 1] == c.cost[take] - c.cost[last]:
                c.twin[e] = f
                break


@inner
def join(c, alone, lists):  # type: ignore[no-untyped-def]
    """Bound how many jobs get GPUs of those that wait for the same: lists from `alone` on, nothing as the last option.

    Where their open options are one number of GPUs and nothing, the first ones get GPUs: as many as there are for sure
    when all others take the most that they may, and no more than there are when these take the least.
    """
    _find_twins(c, alone, lists)
    for f in range(alone, lists):
        if c.twin[f] != f or c.take[f] < 0:
            continue
        t, gpus = c.group[c.take[f]], c.gpus[c.take[f]]
        jobs, low, high = 0, 0, 0
        for e in range(lists):
            if c.best[e] >= 0:
                continue
            if c.twin[e] == f:
                jobs += c.jobs_of[e]
            else:
                least, most = _bounds(c, e, t)
                # those of a list that are not among the first ones have nothing
                low += least * c.most[e]
                high += most * c.most[e]
        left = c.room[t] - c.used[t]
        c.sure[f] = min(jobs, max(left - high, 0) // gpus)
        c.most[f] = min(jobs, max(left - low, 0) // gpus)
    for f in range(alone, lists):
        if c.twin[f] == f and c.take[f] >= 0:
            c.used[c.group[c.take[f]]] += c.sure[f] * c.gpus[c.take[f]]
