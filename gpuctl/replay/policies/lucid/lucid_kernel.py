"""The compiled pass of Lucid: each waiting job, in order, goes on the GPUs of a running one, or on free ones.

A pair that could not be packed never can, until one of them starts or runs alone again, and a gang that did not fit
does not, until GPUs are given back: only what is new is looked at. With Q waiting jobs an instant costs O(Q).
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.gpu_type_kernel import may_pack
from gpuctl.replay.engine.instant_kernel import job_timer
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, find, suits
from gpuctl.replay.engine.preemption_kernel import preempt
from gpuctl.replay.engine.reasons import R_FIRST, REASONS
from gpuctl.replay.engine.sharing_kernel import lay_out, share
from gpuctl.replay.engine.state import ABORT, RUNNING, WAITING

R_PACKED, R_PROFILED, R_STOPPED = (len(REASONS) + k for k in range(3))
LUCID_REASONS = (
    "packed: the first running job that leaves it enough",
    "runs in the profiler first",
    "its time in the profiler is over",
)

LUCID = np.dtype(
    [
        ("share", "i8"),  # jobs may be packed; otherwise the first that does not fit blocks all others
        ("budget", "f8"),  # most that the scores of a pair may sum to
        ("ratio", "f8"),  # most that a guest's priority may be, for its host's
        ("most", "i8"),  # larger gangs are never packed
        ("profilers", "i8"),  # nodes, the last ones, on which jobs run first …
        ("factor", "i8"),  # … that ask for at most so many GPUs a profiler
        ("seconds", "f8"),  # … for so long
        ("line", "i8"),  # jobs in `line`
        ("hosts", "i8"),  # jobs in `hosts`
        ("fresh", "i8"),  # where those begin that have come since the last pass began …
        ("next", "i8"),  # … and since this one did
        ("starts", "i8"),
        ("freed", "i8"),  # how often GPUs have been given back
    ],
    align=True,
)


class Lucid(Bundle):
    """What the policy goes by, and what it remembers."""

    p = rows(LUCID)  # one record of `LUCID`
    how = ints()  # placement of each job [jobs]
    shape = ints()  # jobs of one number ask for the same [jobs]
    priority = floats()  # predicted GPU-seconds of each job: less is sooner [jobs]
    rank = ints()  # its place by priority, submission and line [jobs]
    early = ints()  # its place by GPUs, submission and line, in the profiler's queue [jobs]
    score = floats()  # how much it slows others down, 0 to 2 [jobs]
    mem = floats()  # part of a GPU's memory [jobs]
    line = ints()  # waiting jobs by `rank` [jobs]
    seen = ints()  # 1: a pass has looked at it since it began to wait [jobs]
    bad = ints()  # by shape, `freed` when it was found not to fit [shapes]
    partner = ints()  # the job on the same GPUs; -1 none [jobs]
    started = ints()  # number of its start [jobs]
    hosts = ints()  # jobs that run alone, new ones last [jobs]
    stage = ints()  # 1: in the profiler's queue, 2: there [jobs]
    queue = ints()  # jobs in the profiler's queue, by `early`; their number last [jobs + 1]


@inner
def _insert(line, size, rank, j):  # type: ignore[no-untyped-def]
    k = size
    while k > 0 and rank[line[k - 1]] > rank[j]:
        line[k] = line[k - 1]
        k -= 1
    line[k] = j


@inner
def _waits(m, j):  # type: ignore[no-untyped-def]
    """A job is in the main queue."""
    _insert(m.line, m.p[0].line, m.rank, j)
    m.p[0].line += 1
    m.seen[j] = 0
    m.stage[j] = 0


@inner
def handle_submission(s, j, m):  # type: ignore[no-untyped-def]
    """A job is submitted: to the profiler if it is small enough, else to the main queue."""
    p = m.p[0]
    if p.profilers > 0 and s.jobs[j].gpus <= p.profilers * p.factor:
        size = m.queue[m.queue.size - 1]
        _insert(m.queue, size, m.early, j)
        m.queue[m.queue.size - 1] = size + 1
        m.stage[j] = 1
    else:
        _waits(m, j)


@inner
def _runs_alone(s, m, j):  # type: ignore[no-untyped-def]
    """A job may be packed from now on."""
    p = m.p[0]
    if p.share == 1 and s.jobs[j].gpus <= p.most:
        m.hosts[p.hosts] = j
        p.hosts += 1


@inner
def _no_host(m, at):  # type: ignore[no-untyped-def]
    """Take the job at a place out of those that may be packed."""
    p = m.p[0]
    p.hosts -= 1
    p.fresh -= at < p.fresh
    p.next -= at < p.next
    for k in range(at, p.hosts):
        m.hosts[k] = m.hosts[k + 1]


@inner
def ends(s, j, m):  # type: ignore[no-untyped-def]
    """A job runs no more: its partner runs alone again."""
    p = m.p[0]
    p.freed += 1
    m.stage[j] = 0
    other = m.partner[j]
    if other >= 0:
        m.partner[j] = m.partner[other] = -1
        if s.jobs[other].state == RUNNING:
            _runs_alone(s, m, other)
        return
    for k in range(p.hosts):
        if m.hosts[k] == j:
            _no_host(m, k)
            return


@inner
def on_requeue(s, j, m):  # type: ignore[no-untyped-def]
    """A job waits again, after a failure."""
    ends(s, j, m)
    if s.jobs[j].state == WAITING:
        _waits(m, j)


@inner
def freed(s, node, m):  # type: ignore[no-untyped-def]
    """A node is there again."""
    m.p[0].freed += 1


@inner
def on_wake(s, j, m):  # type: ignore[no-untyped-def]
    """A job's time in the profiler is over."""
    if m.stage[j] == 2 and s.jobs[j].state == RUNNING:
        preempt(s, j, ABORT, R_STOPPED)
        m.p[0].freed += 1
        _waits(m, j)


@inner
def _may_share(s, m, j, host):  # type: ignore[no-untyped-def]
    p = m.p[0]
    if s.jobs[host].gpus != s.jobs[j].gpus or m.mem[j] + m.mem[host] >= 1.0:
        return False
    if m.score[j] + m.score[host] > p.budget or m.priority[j] > p.ratio * m.priority[host]:
        return False
    if s.g[0].paired == 1 and not may_pack(s, j, host):
        return False
    row = s.attempts[s.jobs[host].row]
    for k in range(row.first, row.first + row.pieces):
        if not suits(s, s.pieces[k].node, s.jobs[j].mask):
            return False
    return True


@inner
def _host_for(s, m, j):  # type: ignore[no-untyped-def]
    """Place in `hosts` of the first running job, by start, beside which a job may run; -1 none."""
    p = m.p[0]
    best = -1
    for k in range(p.fresh if m.seen[j] == 1 else 0, p.hosts):
        host = m.hosts[k]
        if (best < 0 or m.started[host] < m.started[m.hosts[best]]) and _may_share(s, m, j, host):
            best = k
    return best


@inner
def _note_start(m, j):  # type: ignore[no-untyped-def]
    p = m.p[0]
    m.started[j] = p.starts
    p.starts += 1


@inner
def _try(s, m, j):  # type: ignore[no-untyped-def]
    """Start a job beside another one, or on free GPUs; whether it has."""
    p = m.p[0]
    if p.share == 1 and s.jobs[j].gpus <= p.most:
        at = _host_for(s, m, j)
        if at >= 0:
            host = m.hosts[at]
            lay_out(s, host, s.jobs[j].gpus)
            share(s, j, host, 0, R_PACKED)
            m.partner[j], m.partner[host] = host, j
            _no_host(m, at)
            _note_start(m, j)
            return True
    if m.bad[m.shape[j]] == p.freed:
        return False
    if not find(s, s.jobs[j].mask, s.jobs[j].gpus, m.how[j]):
        m.bad[m.shape[j]] = p.freed
        return False
    launch(s, j, R_FIRST)
    _note_start(m, j)
    _runs_alone(s, m, j)
    return True


@inner
def _pass(s, m):  # type: ignore[no-untyped-def]
    """Go through the queue once; who starts may be the host of one behind it."""
    p = m.p[0]
    p.next = p.hosts
    kept = 0
    blocked = False
    for k in range(p.line):
        j = m.line[k]
        if not blocked and _try(s, m, j):
            continue
        blocked = blocked or p.share == 0
        m.seen[j] = 1
        m.line[kept] = j
        kept += 1
    p.line = kept
    p.fresh = p.next


@inner
def _find_profiler(s, m, gpus):  # type: ignore[no-untyped-def]
    """Choose profilers for a gang: the fullest that holds it, else whole ones and then the freest."""
    g = s.g[0]
    g.chosen = 0
    first = s.nodes.size - m.p[0].profilers
    best = -1
    for node in range(first, s.nodes.size):
        there = s.nodes[node]
        if there.up == 1 and there.free >= gpus and (best < 0 or there.free < s.nodes[best].free):
            best = node
    if best >= 0:
        choose(s, best, gpus)
        return True
    left = gpus
    for node in range(first, s.nodes.size):
        there = s.nodes[node]
        if there.up == 1 and 0 < there.cap <= left and there.free == there.cap:
            choose(s, node, there.cap)
            left -= there.cap
    if left > 0:
        rest = -1
        for node in range(first, s.nodes.size):
            there = s.nodes[node]
            whole = there.free == there.cap and there.cap <= gpus
            if there.up == 1 and not whole and there.free >= left and (rest < 0 or there.free > s.nodes[rest].free):
                rest = node
        if rest < 0:
            g.chosen = 0
            return False
        choose(s, rest, left)
    return True


@inner
def _profile(s, m):  # type: ignore[no-untyped-def]
    """Start jobs in the profilers, the fewest GPUs first; the first that does not fit blocks all others."""
    last = m.queue.size - 1
    at = 0
    while at < m.queue[last] and _find_profiler(s, m, s.jobs[m.queue[at]].gpus):
        j = m.queue[at]
        launch(s, j, R_PROFILED)
        job_timer(s, j, s.g[0].now + m.p[0].seconds)
        m.stage[j] = 2
        at += 1
    if at > 0:
        for k in range(at, m.queue[last]):
            m.queue[k - at] = m.queue[k]
        m.queue[last] -= at


@inner
def decide(s, m):  # type: ignore[no-untyped-def]
    """One pass at this instant."""
    if m.p[0].profilers > 0:
        _profile(s, m)
    if m.p[0].line > 0:
        _pass(s, m)


@compiled
def run(s, m, until, steps):  # type: ignore[no-untyped-def]
    """Go on for so many instants."""
    return loop(
        s, (m,), until, steps, decide=decide, on_submit=handle_submission, on_requeue=on_requeue, on_finish=ends,
        on_wake=on_wake, on_node_up=freed,
    )  # fmt: skip
