"""The compiled loops of the replay: when gangs of a size would have fitted, and when a higher priority waited."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner


@compiled
def highest_waiting(intervals, first, last, priority):  # type: ignore[no-untyped-def]
    """The highest priority that waits on each interval; -inf where none does.

    Args:
        intervals: how many there are.
        first: interval in which each wait begins, the waits in descending order of priority.
        last: interval before which each wait ends.
        priority: of each wait.
    """
    highest = np.full(intervals, -np.inf)
    # the next interval, from each one on, that no wait has been put on yet
    following = np.arange(intervals + 1)
    for wait in range(first.size):
        at = first[wait]
        while True:
            free = at
            while following[free] != free:
                free = following[free]
            while following[at] != free and following[at] != at:
                following[at], at = free, following[at]
            if free >= last[wait]:
                break
            highest[free] = priority[wait]
            following[free] = free + 1
            at = free + 1
    return highest


@compiled
def seconds_behind(times, wanted, highest, start, end, priority):  # type: ignore[no-untyped-def]
    """Seconds of each wait on the intervals that are `wanted` and on which a higher priority waited.

    Args:
        times: beginnings of the intervals, seconds.
        wanted: of each interval, whether it counts.
        highest: of each interval, the highest priority that waits.
        start: seconds, one element a wait; not before the first interval.
        end: seconds.
        priority: of each wait; NaN where it is not known.
    """
    found = np.zeros(start.size)
    for wait in range(start.size):
        k = np.searchsorted(times, start[wait], side="right") - 1
        while k < times.size and times[k] < end[wait]:
            if wanted[k] and highest[k] > priority[wait]:
                until = times[k + 1] if k + 1 < times.size else end[wait]
                found[wait] += min(until, end[wait]) - max(times[k], start[wait])
            k += 1
    return found


@compiled
def free_and_fitting(intervals, rack, k, before, after, at_first, demands):  # type: ignore[no-untyped-def]
    """Follow the free GPUs of every server, rack by rack.

    Args:
        intervals: how many there are.
        rack: of each change, ascending.
        k: interval that each change begins, ascending within a rack.
        before: free GPUs of the server before each change.
        after: free GPUs of the server after it.
        at_first: (racks, sizes): servers of each rack with 0, 1, 2 … GPUs, all free.
        demands: gang sizes, each at least 1.

    Returns:
        by how much the free GPUs change at each interval; (demands, intervals): by how much the number of racks changes
        in which the fewest servers that can hold such a gang are free.
    """
    racks, sizes = at_first.shape
    largest = sizes - 1
    vacant = np.zeros(intervals)
    fitting = np.zeros((demands.size, intervals), np.int32)
    fits = np.zeros(demands.size, np.int32)
    position = 0
    for number in range(racks):
        free = at_first[number].copy()
        for size in range(sizes):
            vacant[0] += size * free[size]
        for d in range(demands.size):
            fits[d] = _fits(free, demands[d], largest)
            fitting[d, 0] += fits[d]
        while position < rack.size and rack[position] == number:
            here = k[position]
            while position < rack.size and rack[position] == number and k[position] == here:
                free[before[position]] -= 1
                free[after[position]] += 1
                if here < intervals:
                    vacant[here] += after[position] - before[position]
                position += 1
            if here >= intervals:
                continue
            for d in range(demands.size):
                now = _fits(free, demands[d], largest)
                if now != fits[d]:
                    fitting[d, here] += now - fits[d]
                    fits[d] = now
    return vacant, fitting


@inner
def _fits(free, demand, largest):  # type: ignore[no-untyped-def]
    """Whether (1 or 0) so many GPUs are free on the fewest servers that can hold them; free: servers by free GPUs."""
    left = (demand + largest - 1) // largest
    for size in range(largest, 0, -1):
        taken = min(free[size], left)
        demand -= taken * size
        left -= taken
        if demand <= 0:
            return 1
        if left == 0:
            return 0
    return 0


@compiled
def count_waiting(  # type: ignore[no-untyped-def]
    times, used, widest, total, held, placeable, queued, start, gpus, size, asked_bin, wanted_bin, relax, trim, counts
):
    """Add the seconds of one queue's waits to `counts`, by what was in use and what the queue held.

    Args:
        times: beginnings of the intervals, seconds.
        used: GPUs in use on each.
        widest: the most GPUs that are free in one rack.
        total: GPUs in all.
        held: GPUs that the queue held.
        placeable: (sizes, intervals): whether the fewest servers of one rack that can hold a gang are free.
        queued: seconds, one element a wait.
        start: seconds.
        gpus: size of each gang.
        size: its row in `placeable`.
        asked_bin: bin of used + gpus; the last one is for all that is larger.
        wanted_bin: bin of held + gpus, likewise.
        relax: seconds of waiting after which any servers of one rack will do, and after which any servers at all.
        trim: seconds at either end of a wait that are the scheduler's way from pass to pass.
        counts: (4, asked bins, wanted bins), changed in place: seconds with too few GPUs free; with enough, but not on
            the fewest servers of one rack; with those free, too; and, trimmed, with a placement free that the gang
            would accept after so long a wait.
    """
    last_asked, last_wanted = asked_bin.size - 1, wanted_bin.size - 1
    for wait in range(queued.size):
        k = np.searchsorted(times, queued[wait], side="right") - 1
        demand = gpus[wait]
        while k < times.size and times[k] < start[wait]:
            begin = max(times[k], queued[wait])
            end = min(times[k + 1], start[wait]) if k + 1 < times.size else start[wait]
            a = asked_bin[min(int(used[k]) + demand, last_asked)]
            h = wanted_bin[min(int(held[k]) + demand, last_wanted)]
            kind = 0
            accepted = False
            if total - used[k] >= demand:
                waited = begin - queued[wait]
                kind = 2 if placeable[size[wait], k] else 1
                accepted = kind == 2 or waited >= relax[1] or (waited >= relax[0] and widest[k] >= demand)
            counts[kind, a, h] += end - begin
            if accepted:
                counts[3, a, h] += max(0.0, min(end, start[wait] - trim) - max(begin, queued[wait] + trim))
            k += 1


@compiled
def widest_rack(intervals, rack, k, before, after, vacant):  # type: ignore[no-untyped-def]
    """The most GPUs that are free in one rack, on every interval.

    Args:
        intervals: how many there are.
        rack: of each change of a server's free GPUs, ascending.
        k: interval that each change begins, ascending within a rack.
        before: free GPUs of the server before each change.
        after: free GPUs of the server after it.
        vacant: GPUs of each rack, all free at first.
    """
    widest = np.zeros(intervals)
    position = 0
    for number in range(vacant.size):
        free = vacant[number]
        at = 0
        while at < intervals:
            while position < rack.size and rack[position] == number and k[position] <= at:
                free += after[position] - before[position]
                position += 1
            until = intervals
            if position < rack.size and rack[position] == number:
                until = min(intervals, k[position])
            for interval in range(at, until):
                widest[interval] = max(widest[interval], free)
            at = until
        while position < rack.size and rack[position] == number:
            position += 1
    return widest
