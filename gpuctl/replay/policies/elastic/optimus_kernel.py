"""The compiled round of Optimus: GPUs are assigned one by one by gain, then placed.

With A unfinished jobs and C GPUs, a round costs O(A + C log C) for the assignment, since at most C jobs get GPUs, plus
a search of the nodes per job whose number changes.
"""

from __future__ import annotations

from gpuctl.compiled.bundles import Bundle, floats, ints
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.heap_kernel import sink
from gpuctl.replay.engine.job_life_kernel import launch, settle
from gpuctl.replay.engine.key_kernel import micro
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import find, free_for
from gpuctl.replay.engine.preemption_kernel import preempt
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.reshuffle_kernel import drop, is_there, lift, lower, relocate
from gpuctl.replay.engine.speed_curve_kernel import scale
from gpuctl.replay.engine.state import FINISHED, NEAR, REJECTED, RUNNING, SUSPENDING, WAITING

R_GAINS, R_NONE_LEFT = len(REASONS), len(REASONS) + 1
OPTIMUS_REASONS = ("gets as many GPUs as shorten it most", "jobs before it get the last GPUs")


class Rounds(Bundle):
    """Input and memory of the policy."""

    n = ints()  # jobs in `line`, jobs in `heap`, and whether this instant is a round [3]
    error = floats()  # initial relative error of each estimate of remaining work [jobs]
    least = ints()  # GPUs that each job is given first [jobs]
    most = ints()  # most GPUs that it may have [jobs]
    place = ints()  # position of each job in its input, which breaks ties [jobs]
    level = ints()  # the best level of each number of GPUs [GPUs + 1]
    line = ints()  # jobs that have not ended, in the order of the input [jobs]
    count = ints()  # GPUs assigned to each [jobs]
    left = floats()  # estimated seconds of work left [jobs]
    gain = ints()  # gain of one more GPU, in microseconds [jobs]
    heap = ints()  # jobs by gain, the largest ahead [jobs]


@inner
def queue_new(s, job, m):  # type: ignore[no-untyped-def]
    """Insert a job queued for the first time into the line."""
    k = m.n[0]
    m.n[0] += 1
    while k > 0 and m.place[m.line[k - 1]] > m.place[job]:
        m.line[k] = m.line[k - 1]
        k -= 1
    m.line[k] = job


@inner
def begins(s, number, m):  # type: ignore[no-untyped-def]
    """Handle the timer of rounds."""
    m.n[2] = 1


@inner
def _takes(s, m, j, gpus):  # type: ignore[no-untyped-def]
    """Estimated seconds of a job on a number of GPUs, at best placement."""
    job = s.jobs[j]
    level = m.level[gpus]
    speed = job.speed0 if level == 0 else job.speed1 if level == 1 else job.speed2
    return m.left[j] / (scale(s, j, gpus) / scale(s, j, job.gpus) * speed)


@inner
def _gain(s, m, j):  # type: ignore[no-untyped-def]
    n = m.count[j]
    if n >= min(m.most[j], m.level.size - 1):
        return 0
    return micro(_takes(s, m, j, n) - _takes(s, m, j, n + 1))


@inner
def _ahead(m, a, b):  # type: ignore[no-untyped-def]
    return m.gain[a] > m.gain[b] or (m.gain[a] == m.gain[b] and m.place[a] < m.place[b])


@inner
def _forget_ended(s, m):  # type: ignore[no-untyped-def]
    end = 0
    for k in range(m.n[0]):
        state = s.jobs[m.line[k]].state
        if state != FINISHED and state != REJECTED:
            m.line[end] = m.line[k]
            end += 1
    m.n[0] = end


@inner
def _count_out(s, m):  # type: ignore[no-untyped-def]
    """Assign each job its least in order, then one GPU at a time by gain."""
    left = s.g[0].total
    for k in range(m.n[0]):
        if s.jobs[m.line[k]].state == SUSPENDING:
            left -= s.jobs[m.line[k]].held
    m.n[1] = 0
    for k in range(m.n[0]):
        j = m.line[k]
        m.count[j] = 0
        state = s.jobs[j].state
        if left >= m.least[j] and (state == RUNNING or state == WAITING):
            settle(s, j)
            job = s.jobs[j]
            remains = job.work - job.done
            m.left[j] = max(remains + m.error[j] * remains, job.work / 100.0)
            m.count[j] = m.least[j]
            left -= m.least[j]
            m.gain[j] = _gain(s, m, j)
            m.heap[m.n[1]] = j
            m.n[1] += 1
    for k in range(m.n[1] // 2 - 1, -1, -1):
        sink(m, m.heap, 0, m.n[1], k, m.heap[k], _ahead)
    while left > 0 and m.n[1] > 0:
        j = m.heap[0]
        if m.gain[j] <= 0:
            break
        m.count[j] += 1
        left -= 1
        m.gain[j] = _gain(s, m, j)
        sink(m, m.heap, 0, m.n[1], 0, j, _ahead)


@inner
def _place(s, m):  # type: ignore[no-untyped-def]
    """Jobs whose size is unchanged keep their GPUs; place the rest, smallest first."""
    g = s.g[0]
    size = 0
    for k in range(m.n[0]):
        j = m.line[k]
        job = s.jobs[j]
        if job.state == RUNNING and m.count[j] == 0:
            preempt(s, j, g.mode, R_NONE_LEFT)
        elif (job.state == RUNNING and m.count[j] != job.held) or (job.state == WAITING and m.count[j] > 0):
            if job.state == RUNNING:
                lift(s, j)
            m.heap[size] = j
            size += 1
    # few jobs request many: sort by number of GPUs, stable in the line's order
    at = 0
    gpus = 0
    while at < size:
        least = g.total + 1
        for k in range(size):
            if gpus < m.count[m.heap[k]] < least:
                least = m.count[m.heap[k]]
        gpus = least
        for k in range(size):
            j = m.heap[k]
            if m.count[j] == gpus:
                _put(s, m, j, gpus)
                at += 1


@inner
def _put(s, m, j, gpus):  # type: ignore[no-untyped-def]
    job = s.jobs[j]
    # fewer if it may not use all nodes
    some = min(gpus, free_for(s, job.mask))
    found = some >= m.least[j] and find(s, job.mask, some, NEAR)
    if job.state == WAITING:
        if found:
            launch(s, j, R_GAINS)
    elif not found:
        drop(s, j, R_NONE_LEFT)
    elif is_there(s, j):
        lower(s, j)
    else:
        relocate(s, j, R_GAINS)


@inner
def decide(s, m):  # type: ignore[no-untyped-def]
    """Reassign all GPUs at a round."""
    if m.n[2] == 1:
        m.n[2] = 0
        _forget_ended(s, m)
        _count_out(s, m)
        _place(s, m)


@compiled
def run(s, m, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants."""
    return loop(s, (m,), until, steps, decide=decide, on_submit=queue_new, on_round=begins)
