"""The compiled slot of ElasticFlow: who can be guaranteed, the fewest GPUs that suffice for that, and the leftovers.

Free GPUs of coming slots are kept as runs of slots with equally many. With G guaranteed jobs there are at most G + 1
runs, and a slot costs O(G x levels x G) for their shares, as often as jobs are to be admitted, and O(C log J) for
leftovers.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.heap_kernel import sink
from gpuctl.replay.engine.instant_kernel import reject
from gpuctl.replay.engine.job_life_kernel import launch, settle
from gpuctl.replay.engine.key_kernel import micro
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import find
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.reshuffle_kernel import drop, lift, relocate
from gpuctl.replay.engine.speed_curve_kernel import scale
from gpuctl.replay.engine.state import FINISHED, NEAR, REJECTED, RUNNING, SUSPENDING, WAITING

R_SHARE, R_NONE, R_DECLINED = (len(REASONS) + k for k in range(3))
ELASTICFLOW_REASONS = (
    "its share of this slot, and of what is left over",
    "others need its GPUs for their deadlines",
    "its deadline cannot be guaranteed beside those of jobs that were admitted before",
)
ONLY_WHO_CAN_BE, ALL, BEST_EFFORT = 1, 0, 2
LATE_S = 1e-6

ELASTICFLOW = np.dtype(
    [
        ("slot", "f8"),  # seconds
        ("admit", "i8"),
        ("grow", "i8"),  # leftovers go to all; otherwise only to jobs that have nothing
        ("due", "i8"),  # this instant begins a slot
        ("line", "i8"),  # jobs in `line`
        ("new", "i8"),  # jobs in `new`
        ("sure", "i8"),  # jobs in `sure`
        ("runs", "i8"),  # runs of slots
    ],
    align=True,
)


class ElasticFlow(Bundle):
    """What the policy goes by, and what it remembers."""

    p = rows(ELASTICFLOW)  # one record of `ELASTICFLOW`
    deadline = floats()  # second; inf: none [jobs]
    rank = ints()  # of each job by deadline and line [jobs]
    most = ints()  # GPUs that it may have [jobs]
    rest = floats()  # seconds of later segments, by segment
    line = ints()  # jobs that have not ended [jobs]
    new = ints()  # submitted since the last slot, by number [jobs]
    sure = ints()  # guaranteed jobs, by `rank` [jobs]
    begin = ints()  # first slot of each run, from now on [jobs + 2] …
    free = ints()  # … and GPUs that are free in each of its slots
    count = ints()  # GPUs that a job is to have in this slot [jobs]
    gain = ints()  # what its next level brings for each GPU, millionths; the largest: it has nothing [jobs]
    heap = ints()  # jobs by gain [jobs]


@inner
def submit(s, j, m):  # type: ignore[no-untyped-def]
    """A job is submitted: it is looked at when the next slot begins."""
    p = m.p[0]
    k = p.new
    while k > 0 and m.new[k - 1] > j:
        m.new[k] = m.new[k - 1]
        k -= 1
    m.new[k] = j
    p.new += 1


@inner
def begins(s, number, m):  # type: ignore[no-untyped-def]
    """A slot begins."""
    m.p[0].due = 1


@inner
def _next_level(s, m, j, gpus):  # type: ignore[no-untyped-def]
    """The number of GPUs after this one that a job can use: 1, 2, 4 … as long as it gets faster; 0: no more."""
    if gpus == 0:
        return 1
    more = 2 * gpus
    return more if more <= m.most[j] and scale(s, j, more) > scale(s, j, gpus) else 0


@inner
def _level_within(gpus, ceiling):  # type: ignore[no-untyped-def]
    """The largest power of two up to both."""
    level = ceiling
    while level > gpus:
        level //= 2
    return level


@inner
def _left(s, m, j):  # type: ignore[no-untyped-def]
    job = s.jobs[j]
    return job.work - job.done + m.rest[job.segment]


@inner
def _last_slot(s, m, j, ceiling, slots):  # type: ignore[no-untyped-def]
    """How many slots a job needs under a ceiling, in what is free; 0: they do not suffice."""
    slot = m.p[0].slot
    job = s.jobs[j]
    one = scale(s, j, job.gpus)
    pause = max(job.last - s.g[0].now, 0.0) if job.state == RUNNING else 0.0
    left = _left(s, m, j) - LATE_S
    if scale(s, j, ceiling) / one * (slots * slot - pause) < left:
        return 0
    for k in range(m.p[0].runs):
        first = m.begin[k]
        if first >= slots:
            break
        last = min(m.begin[k + 1], slots)
        level = _level_within(m.free[k], ceiling)
        if level == 0 or last * slot <= pause:
            continue
        speed = scale(s, j, level) / one
        since = max(first * slot, pause)
        done = speed * (last * slot - since)
        if done >= left:
            return max(np.int64(np.ceil((since + left / speed) / slot - 1e-12)), first + 1)
        left -= done
    return 0


@inner
def _take(m, ceiling, slots):  # type: ignore[no-untyped-def]
    """Take so many slots of a job's share off what is free; returns its GPUs in the first one."""
    p = m.p[0]
    now = _level_within(m.free[0], ceiling)
    for k in range(p.runs):
        if m.begin[k] >= slots:
            break
        if m.begin[k + 1] > slots:
            for at in range(p.runs, k, -1):
                m.begin[at + 1] = m.begin[at]
                m.free[at] = m.free[at - 1]
            m.begin[k + 1] = slots
            p.runs += 1
        m.free[k] -= _level_within(m.free[k], ceiling)
    return now


@inner
def _share(s, m, j):  # type: ignore[no-untyped-def]
    """Give a job the least share by which it meets its deadline; whether there is one."""
    slots = np.int64(np.floor((m.deadline[j] - s.g[0].now + LATE_S) / m.p[0].slot))
    m.count[j] = 0
    ceiling = 1
    while slots > 0 and ceiling > 0:
        last = _last_slot(s, m, j, ceiling, slots)
        if last > 0:
            m.count[j] = _take(m, ceiling, last)
            return True
        ceiling = _next_level(s, m, j, ceiling)
    return False


@inner
def _shares(s, m, total):  # type: ignore[no-untyped-def]
    """Give all guaranteed jobs their shares, by deadline; whether all have one."""
    p = m.p[0]
    p.runs = 1
    m.begin[0], m.begin[1] = 0, np.iinfo(np.int64).max
    m.free[0] = total
    found = True
    for k in range(p.sure):
        found = _share(s, m, m.sure[k]) and found
    return found


@inner
def _insert(s, m, j):  # type: ignore[no-untyped-def]
    p = m.p[0]
    k = p.sure
    while k > 0 and m.rank[m.sure[k - 1]] > m.rank[j]:
        m.sure[k] = m.sure[k - 1]
        k -= 1
    m.sure[k] = j
    p.sure += 1


@inner
def _remove(m, j):  # type: ignore[no-untyped-def]
    p = m.p[0]
    at = 0
    while m.sure[at] != j:
        at += 1
    p.sure -= 1
    for k in range(at, p.sure):
        m.sure[k] = m.sure[k + 1]


@inner
def _admit(s, m, total):  # type: ignore[no-untyped-def]
    """Look at the jobs that were submitted since the last slot, one after the other."""
    p = m.p[0]
    for k in range(p.new):
        j = m.new[k]
        if s.jobs[j].state != WAITING:
            continue
        m.line[p.line] = j
        p.line += 1
        if m.deadline[j] == np.inf:
            continue
        _insert(s, m, j)
        if p.admit == ALL or _shares(s, m, total):
            continue
        _remove(m, j)
        if p.admit == ONLY_WHO_CAN_BE:
            p.line -= 1
            reject(s, j, R_DECLINED)
    p.new = 0


@inner
def _forget_ended(s, m):  # type: ignore[no-untyped-def]
    p = m.p[0]
    kept = 0
    for k in range(p.line):
        state = s.jobs[m.line[k]].state
        if state != FINISHED and state != REJECTED:
            m.line[kept] = m.line[k]
            kept += 1
    p.line = kept
    kept = 0
    for k in range(p.sure):
        if s.jobs[m.sure[k]].state != FINISHED:
            m.sure[kept] = m.sure[k]
            kept += 1
    p.sure = kept


@inner
def _ahead(m, a, b):  # type: ignore[no-untyped-def]
    return m.gain[a] > m.gain[b] or (m.gain[a] == m.gain[b] and m.rank[a] < m.rank[b])


@inner
def _next_gain(s, m, j, left):  # type: ignore[no-untyped-def]
    """See what a job's next level would bring; whether it can have it."""
    now = m.count[j]
    more = _next_level(s, m, j, now)
    if more == 0 or more - now > left or (now > 0 and m.p[0].grow == 0):
        return False
    m.gain[j] = np.iinfo(np.int64).max
    if now > 0:
        one = scale(s, j, s.jobs[j].gpus)
        faster = scale(s, j, more) / one - scale(s, j, now) / one
        m.gain[j] = micro(faster / (scale(s, j, 1) / one) / (more - now))
    return True


@inner
def _leftovers(s, m, left):  # type: ignore[no-untyped-def]
    """Give what is left to jobs that have nothing, then to those that gain most by it."""
    size = 0
    for k in range(m.p[0].line):
        if _next_gain(s, m, m.line[k], left):
            m.heap[size] = m.line[k]
            size += 1
    for k in range(size // 2 - 1, -1, -1):
        sink(m, m.heap, 0, size, k, m.heap[k], _ahead)
    while size > 0 and left > 0:
        j = m.heap[0]
        more = _next_level(s, m, j, m.count[j])
        if more - m.count[j] <= left:
            left -= more - m.count[j]
            m.count[j] = more
            if _next_gain(s, m, j, left):
                sink(m, m.heap, 0, size, 0, j, _ahead)
                continue
        size -= 1
        if size > 0:
            sink(m, m.heap, 0, size, 0, m.heap[size], _ahead)


@inner
def _apply(s, m):  # type: ignore[no-untyped-def]
    """Let jobs have their GPUs; who keeps the number keeps the places."""
    size = 0
    for k in range(m.p[0].line):
        j = m.line[k]
        job = s.jobs[j]
        if job.state == RUNNING and m.count[j] != job.held:
            lift(s, j)
            if m.count[j] == 0:
                drop(s, j, R_NONE)
        if m.count[j] > 0 and m.count[j] != job.held:
            m.heap[size] = j
            size += 1
    for k in range(size):
        j = m.heap[k]
        found = find(s, s.jobs[j].mask, m.count[j], NEAR)
        if s.jobs[j].state == WAITING:
            if found:
                launch(s, j, R_SHARE)
        elif found:
            relocate(s, j, R_SHARE)
        else:
            drop(s, j, R_NONE)


@inner
def decide(s, m):  # type: ignore[no-untyped-def]
    """When a slot begins, all GPUs are given out again."""
    p = m.p[0]
    if p.due == 0:
        return
    p.due = 0
    _forget_ended(s, m)
    total = s.g[0].total
    for k in range(p.line):
        settle(s, m.line[k])
        m.count[m.line[k]] = 0
        if s.jobs[m.line[k]].state == SUSPENDING:
            total -= s.jobs[m.line[k]].held
    _admit(s, m, total)
    for k in range(p.line):
        m.count[m.line[k]] = 0
    _shares(s, m, total)
    for k in range(p.line):
        total -= m.count[m.line[k]]
    _leftovers(s, m, total)
    _apply(s, m)


@compiled
def run(s, m, until, steps):  # type: ignore[no-untyped-def]
    """Go on for so many instants."""
    return loop(s, (m,), until, steps, decide=decide, on_submit=submit, on_round=begins)
