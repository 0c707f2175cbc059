"""The compiled pass of policies that score waiting jobs at every instant: the lowest score starts first.

With Q waiting jobs an instant costs O(Q) for each job that starts, and nothing where fewer GPUs are free than the
smallest waiting gang asks for.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.key_kernel import micro
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.reasons import R_FIRST, R_SKIPPED, REASONS
from gpuctl.replay.engine.resource_kernel import find_for
from gpuctl.replay.engine.running_jobs_kernel import back_to_now, give, remember, runs, runs_no_more

FIXED, WFP3, UNICEP, QSSF = range(4)
R_BACKFILLED = len(REASONS)
SCORE_REASONS = ("backfilled: planned to end before the first job in order can start",)

SCORES = np.dtype(
    [
        ("rule", "i8"),
        ("skip", "i8"),  # jobs that do not fit are passed over
        ("easy", "i8"),  # jobs behind the first that does not fit are backfilled
        ("rolling", "i8"),  # run times are means of those of jobs that have ended
        ("waiting", "i8"),  # jobs in `line`
        ("smallest", "i8"),  # no waiting job asks for fewer GPUs
        ("passes", "i8"),
    ],
    align=True,
)

SUM = np.dtype([("count", "i8"), ("micros", "i8")])
"""Jobs that have ended, and the microseconds that they ran."""


class Scores(Bundle):
    """What the policy goes by, and the jobs that wait."""

    p = rows(SCORES)  # one record of `SCORES`
    rank = floats()  # the score of each job, if it is fixed; else what its wait is divided by [jobs]
    requested = floats()  # seconds of requested run time [jobs]
    gpus = ints()  # gang of each job [jobs]
    place = ints()  # of each job in its input, which breaks ties [jobs]
    how = ints()  # placement of each job [jobs]
    shape = ints()  # jobs of one number ask for the same: if one does not fit, none does [jobs]
    party = ints()  # jobs of one number block each other [jobs]
    since = floats()  # when each began to wait [jobs]
    line = ints()  # waiting jobs, by number [jobs]
    bad = ints()  # the pass in which a shape was found not to fit [shapes]
    blocked = ints()  # the pass in which a party was blocked [parties]
    waited = ints()  # the pass that found jobs of a party waiting since an earlier instant [parties]
    user = ints()  # sums of each job's user [jobs] …
    user_gang = ints()  # … and of its user and gang, in `ended` [jobs]
    ended = rows(SUM)  # of all jobs, then of those of each user, then of each user and gang


@inner
def score(m, j, now):  # type: ignore[no-untyped-def]
    """The score of a job at an instant, and the class of scores that goes before it: lower is sooner."""
    rule = m.p[0].rule
    if rule == FIXED:
        return 0, m.rank[j]
    if rule == QSSF:
        alone = m.waited[m.party[j]] != m.p[0].passes
        return 0, float(m.gpus[j]) if alone else m.rank[j]
    wait = now - m.since[j]
    if rule == WFP3:
        part = wait / m.requested[j]
        return 0, -(part * part * part) * m.gpus[j]
    if m.gpus[j] > 1:
        return 1, -wait / m.rank[j]
    return (0, -(wait / m.requested[j])) if wait > 0 else (1, 0.0)


@inner
def _first(s, m):  # type: ignore[no-untyped-def]
    """Place in line of the waiting job with the lowest score that may still fit; -1 none."""
    p = m.p[0]
    now = s.g[0].now
    at, best, best_class, best_score = -1, -1, 0, 0.0
    for k in range(p.waiting):
        j = m.line[k]
        if m.blocked[m.party[j]] == p.passes or m.bad[m.shape[j]] == p.passes:
            continue
        group, value = score(m, j, now)
        if best >= 0:
            if group > best_class or (group == best_class and value > best_score):
                continue
            if group == best_class and value == best_score and not _wins_tie(m, j, best):
                continue
        at, best, best_class, best_score = k, j, group, value
    return at


@inner
def _wins_tie(m, a, b):  # type: ignore[no-untyped-def]
    if m.p[0].rule == QSSF and m.gpus[a] != m.gpus[b]:
        return m.gpus[a] < m.gpus[b]
    return m.place[a] < m.place[b]


@inner
def _scan_waiting(s, m):  # type: ignore[no-untyped-def]
    """See who waits, and for which smallest gang."""
    p = m.p[0]
    p.passes += 1
    p.smallest = np.iinfo(np.int64).max
    for k in range(p.waiting):
        j = m.line[k]
        p.smallest = min(p.smallest, m.gpus[j])
        if m.since[j] < s.g[0].now:
            m.waited[m.party[j]] = p.passes


@inner
def _start(s, m, r, at, reason):  # type: ignore[no-untyped-def]
    """Start the job at a place in line on the GPUs in `choice`."""
    p = m.p[0]
    j = m.line[at]
    launch(s, j, reason)
    runs(s, r, j)
    p.waiting -= 1
    for k in range(at, p.waiting):
        m.line[k] = m.line[k + 1]


@inner
def _backfill(s, m, r, head):  # type: ignore[no-untyped-def]
    """Start, in order of submission, jobs that are planned to end before a blocked one can start."""
    g = s.g[0]
    shadow = np.inf
    remember(s, r)
    for k in range(r.n[0]):
        give(s, r.job[k])
        if find_for(s, head, m.how[head]):
            shadow = max(r.end[k], g.now)
            break
    back_to_now(s, r)
    at = 0
    while at < m.p[0].waiting and (g.free > 0 or g.resources == 1):
        j = m.line[at]
        if g.now + r.plan[j] < shadow - 1e-6 and find_for(s, j, m.how[j]):
            _start(s, m, r, at, R_BACKFILLED)
        else:
            at += 1


@inner
def decide(s, m, r):  # type: ignore[no-untyped-def]
    """Start jobs by score; the first that does not fit blocks those of its party, or is passed over."""
    g = s.g[0]
    p = m.p[0]
    if p.waiting == 0 or (g.free < p.smallest and g.resources == 0):
        return
    _scan_waiting(s, m)
    skipped = False
    while g.free >= p.smallest or g.resources == 1:
        at = _first(s, m)
        if at < 0:
            return
        j = m.line[at]
        if find_for(s, j, m.how[j]):
            _start(s, m, r, at, R_SKIPPED if skipped else R_FIRST)
        elif p.skip == 1:
            m.bad[m.shape[j]] = p.passes
            skipped = True
        elif p.easy == 1:
            _backfill(s, m, r, j)
            return
        else:
            m.blocked[m.party[j]] = p.passes


@inner
def _learn(total, seconds):  # type: ignore[no-untyped-def]
    total.count += 1
    total.micros += micro(seconds)


@inner
def _mean(m, j):  # type: ignore[no-untyped-def]
    """Mean run time of ended jobs of a job's user and gang, else of its user, else of all; 0 without any."""
    for k in (m.user_gang[j], m.user[j], 0):
        if m.ended[k].count > 0:
            return m.ended[k].micros / m.ended[k].count / 1e6
    return 0.0


@inner
def ends(s, j, m, r):  # type: ignore[no-untyped-def]
    """A job has ended; how long it ran is known from now on."""
    runs_no_more(r, j)
    if m.p[0].rolling == 1:
        _learn(m.ended[0], s.jobs[j].ran)
        _learn(m.ended[m.user[j]], s.jobs[j].ran)
        _learn(m.ended[m.user_gang[j]], s.jobs[j].ran)


@inner
def waits(s, j, m, r):  # type: ignore[no-untyped-def]
    """A job waits, for the first time or again: it takes its place in line."""
    p = m.p[0]
    runs_no_more(r, j)
    if p.rolling == 1 and s.jobs[j].attempts == 0:
        m.rank[j] = _mean(m, j) * m.gpus[j]
    m.since[j] = s.jobs[j].queued
    k = p.waiting
    p.waiting += 1
    while k > 0 and m.line[k - 1] > j:
        m.line[k] = m.line[k - 1]
        k -= 1
    m.line[k] = j
    p.smallest = min(p.smallest, m.gpus[j])


@compiled
def run(s, m, r, until, steps):  # type: ignore[no-untyped-def]
    """Go on for so many instants, or to the end. Returns as `step` does."""
    return loop(s, (m, r), until, steps, decide=decide, on_submit=waits, on_requeue=waits, on_finish=ends)
