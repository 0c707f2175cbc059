"""The compiled slots: waiting, starts and evictions of deferrable jobs, and the rules for starts.

In each slot, in this order: runs end; jobs arrive as their windows open; the leftover capacity becomes known, and jobs
are evicted until the others fit; each waiting job that fits is offered to the rule, earliest closing window first; jobs
whose window has closed leave.
"""

from __future__ import annotations

import math

from gpuctl.compiled.bundles import Bundle, floats, ints
from gpuctl.compiled.jit import compiled, inner

WAITING, RUNNING, DONE, MISSED, FAILED = 1, 2, 3, 4, 5
"""States of a job; 0: its window has not opened."""

SLOT, LINE, RUNS, COME, PLACE, DECIDING, LOST, EVICTED, WAITING_GPUS, TOTAL, SEASON, RULE, WHOM = range(13)
COUNTERS = 13
"""Counters: the slot; jobs waiting, running and arrived; position in the line; whether the slot has begun; GPU-slots
lost, and evictions; GPUs of the jobs that waited before this slot's decisions; the cluster's GPUs; slots of a day; the
rule, and its choice of evictions."""

ASAP, LATEST, QUANTILE, CLAIRVOYANT, NET, EXTERNAL = range(6)
"""Rules. `EXTERNAL`: the caller decides."""

NEWEST, SMALLEST_LOSS = 0, 1

FEATURES = 14
LARGE = 1 << 40
"""Spare GPUs if a run has no later slot."""


class Slots(Bundle):
    """Capacity, jobs, and their progress; simulations share the first arrays."""

    leftover = ints()  # GPUs that on-demand jobs leave, by slot [slots]
    past = ints(2)  # of a slot's leftover and that of the days before, `forecasts.QUANTILES` [quantiles, slots]
    own = ints()  # the same for the rule's quantile [slots]
    earliest = ints()  # slot in which the window opens [jobs]
    latest = ints()  # last slot in which it may start
    gpus = ints()
    slots = ints()  # slots of its run
    by_earliest = ints()  # jobs by earliest, then row
    rank = ints()  # place by latest, then row
    state = ints()  # see the names above; by job
    start = ints()  # slot of the last start; -1: none
    evictions = ints()
    load = ints()  # GPUs that running jobs hold, by slot [slots]
    line = ints()  # jobs that wait, by rank
    run = ints()  # jobs that run, in no order
    c = ints()  # the counters above, in that order [COUNTERS]
    w = floats(2)  # weights of the net [features, hidden]
    b = floats()  # [hidden]
    v = floats()  # [hidden]
    v0 = floats()  # bias of its answer [1]
    f = floats()  # features of the offered job [FEATURES]


@inner
def _enter(s, j):  # type: ignore[no-untyped-def]
    at = s.c[LINE]
    while at > 0 and s.rank[s.line[at - 1]] > s.rank[j]:
        s.line[at] = s.line[at - 1]
        at -= 1
    s.line[at] = j
    s.c[LINE] += 1
    s.state[j] = WAITING


@inner
def _leave_line(s, at):  # type: ignore[no-untyped-def]
    s.c[LINE] -= 1
    for k in range(at, s.c[LINE]):
        s.line[k] = s.line[k + 1]


@inner
def _end_runs(s, h):  # type: ignore[no-untyped-def]
    count = 0
    for k in range(s.c[RUNS]):
        j = s.run[k]
        if s.start[j] + s.slots[j] == h:
            s.state[j] = DONE
        else:
            s.run[count] = j
            count += 1
    s.c[RUNS] = count


@inner
def _sooner_evicted(s, h, j, than):  # type: ignore[no-untyped-def]
    if s.c[WHOM] == NEWEST:
        a, b = -s.start[j], -s.start[than]
    else:
        a, b = s.gpus[j] * (h - s.start[j]), s.gpus[than] * (h - s.start[than])
    return a < b or (a == b and j > than)


@inner
def _evict(s, h):  # type: ignore[no-untyped-def]
    while s.load[h] > s.leftover[h]:
        at = 0
        for k in range(1, s.c[RUNS]):
            if _sooner_evicted(s, h, s.run[k], s.run[at]):
                at = k
        j = s.run[at]
        s.c[RUNS] -= 1
        s.run[at] = s.run[s.c[RUNS]]
        for x in range(h, s.start[j] + s.slots[j]):
            s.load[x] -= s.gpus[j]
        s.c[LOST] += s.gpus[j] * (h - s.start[j])
        s.c[EVICTED] += 1
        s.evictions[j] += 1
        s.start[j] = -1
        if h <= s.latest[j]:
            _enter(s, j)
        else:
            s.state[j] = FAILED


@inner
def _begin(s, h):  # type: ignore[no-untyped-def]
    while s.c[COME] < s.by_earliest.size and s.earliest[s.by_earliest[s.c[COME]]] == h:
        _enter(s, s.by_earliest[s.c[COME]])
        s.c[COME] += 1
    _evict(s, h)
    s.c[WAITING_GPUS] = 0
    for k in range(s.c[LINE]):
        s.c[WAITING_GPUS] += s.gpus[s.line[k]]
    s.c[PLACE], s.c[DECIDING] = 0, 1


@inner
def _close(s, h):  # type: ignore[no-untyped-def]
    """Drop jobs whose windows have closed."""
    count = 0
    for k in range(s.c[LINE]):
        j = s.line[k]
        if s.latest[j] <= h:
            s.state[j] = FAILED if s.evictions[j] > 0 else MISSED
        else:
            s.line[count] = j
            count += 1
    s.c[LINE] = count


@inner
def _start(s, h, j, at):  # type: ignore[no-untyped-def]
    _leave_line(s, at)
    s.state[j], s.start[j] = RUNNING, h
    s.run[s.c[RUNS]] = j
    s.c[RUNS] += 1
    for x in range(h, h + s.slots[j]):
        s.load[x] += s.gpus[j]


@inner
def _day_before(s, h, x):  # type: ignore[no-untyped-def]
    """The last slot up to `h` at the same time of day as `x`; negative: none."""
    return x - (x - h + s.c[SEASON] - 1) // s.c[SEASON] * s.c[SEASON]


@inner
def _least_spare(s, h, j, of):  # type: ignore[no-untyped-def]
    """Forecast of the fewest GPUs left in a later slot of a run of `j` from `h` on."""
    least = LARGE
    for x in range(h + 1, h + s.slots[j]):
        y = _day_before(s, h, x)
        least = min(least, (of[y] if y >= 0 else s.leftover[h]) - s.load[x] - s.gpus[j])
    return least


@inner
def _survives(s, h, j):  # type: ignore[no-untyped-def]
    for x in range(h + 1, h + s.slots[j]):
        if s.leftover[x] - s.load[x] < s.gpus[j]:
            return False
    return True


@inner
def fill_features(s, h, j):  # type: ignore[no-untyped-def]
    """Write the features of the net."""
    total, season = float(s.c[TOTAL]), s.c[SEASON]
    for k in range(3):
        s.f[k] = 4.0 * min(float(_least_spare(s, h, j, s.past[k])), total) / total
    middle = _least_spare(s, h, j, s.past[1])
    s.f[3] = 4.0 * (s.leftover[h] - s.load[h] - s.gpus[j]) / total
    s.f[4] = (s.latest[j] - h) / max(1, s.latest[j] - s.earliest[j])
    s.f[5] = min(2.0, (s.latest[j] - h) / 24.0)
    s.f[6] = s.slots[j] / 24.0
    s.f[7] = s.gpus[j] / 16.0
    s.f[8] = 4.0 * (s.leftover[h] - s.past[1][h - season]) / total if h >= season else 0.0
    s.f[9] = 8.0 * (s.leftover[h] - s.leftover[h - 1]) / total if h > 0 else 0.0
    s.f[10] = math.sin(2.0 * math.pi * (h % season) / season)
    s.f[11] = math.cos(2.0 * math.pi * (h % season) / season)
    s.f[12] = s.c[WAITING_GPUS] / total
    s.f[13] = 1.0 if middle >= 0 else -1.0
    return middle


@inner
def _net_starts(s, h, j):  # type: ignore[no-untyped-def]
    middle = fill_features(s, h, j)
    found = s.v0[0] + (1.0 if middle >= 0 or h == s.latest[j] else -1.0)
    for k in range(s.b.size):
        x = s.b[k]
        for i in range(FEATURES):
            x += s.f[i] * s.w[i, k]
        found += s.v[k] * x / (1.0 + abs(x))
    return found > 0.0


@inner
def starts(s, h, j):  # type: ignore[no-untyped-def]
    """Whether the rule starts a fitting job now."""
    rule = s.c[RULE]
    if rule == LATEST:
        return h == s.latest[j]
    if rule == QUANTILE:
        return h == s.latest[j] or _least_spare(s, h, j, s.own) >= 0
    if rule == CLAIRVOYANT:
        return _survives(s, h, j)
    if rule == NET:
        return _net_starts(s, h, j)
    return True


@compiled
def advance(s, answer):  # type: ignore[no-untyped-def]
    """Run to the end or, with the rule `EXTERNAL`, to the next offered job.

    Args:
        s: capacity and jobs.
        answer: to the last offer: 1 start, 0 wait; -1: there was none.

    Returns:
        the offered job; -1: all slots are over.
    """
    end = s.leftover.size
    while s.c[SLOT] < end:
        h = s.c[SLOT]
        if s.c[DECIDING] == 0:
            _end_runs(s, h)
            _begin(s, h)
        while s.c[PLACE] < s.c[LINE]:
            j = s.line[s.c[PLACE]]
            if s.load[h] + s.gpus[j] > s.leftover[h]:
                s.c[PLACE] += 1
                continue
            if s.c[RULE] == EXTERNAL and answer < 0:
                return j
            begins = answer == 1 if s.c[RULE] == EXTERNAL else starts(s, h, j)
            answer = -1
            if begins:
                _start(s, h, j, s.c[PLACE])
            else:
                s.c[PLACE] += 1
        _close(s, h)
        s.c[SLOT], s.c[DECIDING] = h + 1, 0
    _end_runs(s, end)
    return -1
