"""The compiled early detection of failures of the `philly` policy: a first run on one GPU, and fewer retries.

The time until a failure shows on one GPU (`solo`) belongs to the replay, not to the policy's knowledge: it learns it
when the attempt ends.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.instant_kernel import job_timer
from gpuctl.replay.engine.job_life_kernel import finish, launch, note, plan_end, settle, stop
from gpuctl.replay.engine.placement_kernel import choose
from gpuctl.replay.engine.reasons import R_ALONE, R_ALONE_DONE, R_NO_RETRY
from gpuctl.replay.engine.state import A_FAILED, A_LEASE, D_GIVE_UP, D_LEASE_END

NOT, IN_LINE, ALONE = range(3)
"""Stages of a job: no first run, waiting for it, or in it."""

PRERUN = np.dtype(
    [
        ("first", "f8"),  # seconds of the first run; 0: there is none
        ("pool", "i8"),  # number of the pool's node; -1 none
        ("head", "i8"),  # jobs in `line` from here …
        ("tail", "i8"),  # … to here wait
    ],
    align=True,
)


class Prerun(Bundle):
    """Memory of first runs and retries."""

    p = rows(PRERUN)  # one record of `PRERUN`
    stage = ints()  # of each job
    line = ints()  # jobs in order of arrival at the pool
    solo = floats()  # seconds until each segment's failure shows on one GPU; inf: it does not
    ends = ints()  # 1: the policy considers this segment's failure permanent


@inner
def first_alone(s, j, c):  # type: ignore[no-untyped-def]
    """Put a queued job in the pool's line if it first runs on one GPU."""
    p = c.p[0]
    if p.first <= 0 or s.jobs[j].gpus < 2:
        return False
    c.stage[j] = IN_LINE
    c.line[p.tail] = j
    p.tail += 1
    return True


@inner
def no_retry(s, j, c):  # type: ignore[no-untyped-def]
    """End a job whose attempt has just failed for a permanent reason; true if ended."""
    job = s.jobs[j]
    if s.attempts[job.row].how != A_FAILED or c.ends[job.segment - 1] == 0:
        return False
    s.g[0].waiting -= 1
    note(s, D_GIVE_UP, j, job.gpus, -1, R_NO_RETRY)
    finish(s, j)
    return True


@inner
def left_pool(s, j, c):  # type: ignore[no-untyped-def]
    """Whether the attempt that just ended was the job's first run; if so, credit its queue."""
    if c.stage[j] != ALONE:
        return False
    c.stage[j] = NOT
    s.queue_used[s.jobs[j].queue] += 1
    s.share_used[s.jobs[j].share] += 1
    cancel(s, s.jobs.size + j)
    return True


@inner
def passed(s, j, c):  # type: ignore[no-untyped-def]
    """Remove a job from the pool after its first run; that work is repeated on its gang."""
    job = s.jobs[j]
    settle(s, j)
    job.overhead += (s.g[0].now - job.start) * job.counted
    job.done = 0.0
    note(s, D_LEASE_END, j, job.held, job.row, R_ALONE_DONE)
    stop(s, j, A_LEASE)
    left_pool(s, j, c)


@inner
def run_alone(s, c):  # type: ignore[no-untyped-def]
    """Start jobs in line on the pool's free GPUs, which do not count for quotas."""
    p = c.p[0]
    while p.head < p.tail and s.nodes[p.pool].free > 0:
        j = c.line[p.head]
        p.head += 1
        job = s.jobs[j]
        s.g[0].chosen = 0
        choose(s, p.pool, 1)
        launch(s, j, R_ALONE)
        c.stage[j] = ALONE
        s.queue_used[job.queue] -= 1
        s.share_used[job.share] -= 1
        solo = c.solo[job.segment]
        job.rate = job.work / solo if solo <= p.first else 0.0
        plan_end(s, j)
        job_timer(s, j, s.g[0].now + p.first)
