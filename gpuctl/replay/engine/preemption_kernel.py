"""The effect of a preemption on a job: its cost, its end, and whether it would pay."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.checkpoint_kernel import progress
from gpuctl.replay.engine.event_heap_kernel import schedule
from gpuctl.replay.engine.job_life_kernel import (
    early,
    note,
    rate_of,
    set_phase,
    settle,
    stop,
    time_is_up,
    transfer,
    unspent,
)
from gpuctl.replay.engine.requeue_kernel import TAIL
from gpuctl.replay.engine.state import (
    A_DOWN,
    A_PREEMPTED,
    ABORT,
    C_SUSPENDED,
    D_DOWN,
    D_PREEMPT,
    D_SUSPENDED,
    EPOCH,
    NOW,
    SUSPENDING,
)


@inner
def unsaved(s, j):  # type: ignore[no-untyped-def]
    """Seconds of progress since the last end of an epoch, as last settled; 0 for a job without epochs."""
    job = s.jobs[j]
    if job.epoch == np.inf:
        return 0.0
    begun = job.done - np.floor(job.done / job.epoch + 1e-9) * job.epoch
    return begun if begun > 1e-9 * job.epoch else 0.0


@inner
def drop_progress(s, j):  # type: ignore[no-untyped-def]
    """Drop the progress since the last checkpoint."""
    job = s.jobs[j]
    saved = 0.0 if job.epoch == np.inf else np.floor(job.done / job.epoch + 1e-9) * job.epoch
    if s.g[0].failing == 1:
        saved = max(saved, job.saved)
    saved = min(saved, job.done)
    # a job that was writing its checkpoint made no progress
    rate = job.rate if job.rate > 0 else rate_of(s, j)
    if rate > 0:
        job.lost += (job.done - saved) / rate * job.counted
    job.done = saved
    set_phase(s, j)
    if saved == 0:
        job.anew = job.ran


@inner
def left_after(s, j, mode):  # type: ignore[no-untyped-def]
    """Remaining seconds of a running job's segment if it were preempted now."""
    job = s.jobs[j]
    done = job.done + max(0.0, s.g[0].now - job.last) * job.rate
    if mode == ABORT and job.epoch == np.inf:
        done = 0.0
    elif mode == ABORT:
        done = np.floor(done / job.epoch + 1e-9) * job.epoch
    elif mode == EPOCH and job.epoch < np.inf:
        done = np.ceil(done / job.epoch - 1e-9) * job.epoch
    return job.work - done + job.charge


@inner
def must_go_on(s, j, mode):  # type: ignore[no-untyped-def]
    """Whether a running job keeps its GPUs because its turns, including this one, have not paid for themselves yet."""
    job = s.jobs[j]
    patience = s.g[0].patience
    if patience == 0 or job.turns < patience or job.goal_of != job.segment:
        return False
    return left_after(s, j, mode) > job.goal + 1e-6


@inner
def goal_at(s, j, mode):  # type: ignore[no-untyped-def]
    """The second from which a protected job may be preempted again; inf: not before it ends.

    That is when it reaches its goal; with `ABORT`, the end of the epoch that reaches it, which saves the progress; with
    `EPOCH`, the start of that epoch, as a preemption waits for its end.
    """
    job = s.jobs[j]
    done = job.work + job.charge - job.goal
    if mode != NOW and job.epoch < np.inf:
        done = (np.ceil(done / job.epoch - 1e-9) - (mode == EPOCH)) * job.epoch
    if job.rate <= 0 or done >= job.work or (mode == ABORT and job.epoch == np.inf):
        return np.inf
    now = s.g[0].now
    return max(max(job.last, now) + (done - job.done - max(0.0, now - job.last) * job.rate) / job.rate, now + 0.001)


@inner
def count_turn(s, j, mode):  # type: ignore[no-untyped-def]
    """Count a turn that a preemption ends now; after `patience` turns, check whether they were worth their cost.

    They were if together they reduced the work left by more than their switches cost. If not, each later turn of the
    job lasts until it has, and has also done a tenth of the job's earlier work: such turns grow, so they end.
    """
    job = s.jobs[j]
    patience = s.g[0].patience
    cost = max(job.suspend + job.resume + job.charge + 2.0 * job.bytes / job.link, 0.001)
    left = left_after(s, j, mode)
    if job.goal_of != job.segment and job.turns < patience:
        job.turns = 0
        job.goal = job.work - patience * cost
    job.goal_of = job.segment
    if job.turns < patience:
        job.turns += 1
        if job.turns < patience:
            return
        if left <= job.goal + 1e-6:
            job.turns = 0
            job.goal = left - patience * cost
            return
    job.goal = left - max(cost, 0.1 * max(job.work - left, 0.0))


@inner
def preempt(s, j, mode, reason):  # type: ignore[no-untyped-def]
    """Take a running job's GPUs: after its suspension, at the end of its epoch, or at once with loss of progress.

    Returns:
        Whether the GPUs are free now. Also false if the job continues: it ends with its epoch or by its time limit, or
            `must_go_on`; and if one of its nodes has failed, which is not noticed yet.
    """
    g = s.g[0]
    job = s.jobs[j]
    settle(s, j)
    if job.stalls == 1 or must_go_on(s, j, mode):
        return False
    wait = 0.0
    begun = unsaved(s, j)
    if mode == EPOCH and job.rate > 0 and begun > 0:
        if job.done + job.epoch - begun >= job.work - 1e-9:
            # it will have ended by then
            return False
        wait = max(job.last - g.now, 0.0) + (job.epoch - begun) / job.rate
    if g.limits == 1 and mode != ABORT and wait + job.suspend > 0 and g.now + wait + job.suspend >= job.due:
        # its time limit ends it before
        return False
    if wait == 0:
        unspent(s, j)
    if g.patience > 0:
        count_turn(s, j, mode)
    job.preempts += 1
    note(s, D_PREEMPT, j, job.held, job.row, reason)
    if mode == ABORT:
        drop_progress(s, j)
        stop(s, j, A_PREEMPTED)
        return True
    job.stopping = job.suspend + transfer(s, j, g.now + wait)
    if wait + job.stopping <= 0:
        job.work += job.charge
        stop(s, j, A_PREEMPTED)
        return True
    job.state = SUSPENDING
    if wait <= 0:
        job.rate = 0.0
    job.overhead += job.stopping * job.counted
    schedule(s, j, g.now + wait + job.stopping, C_SUSPENDED)
    return False


@inner
def _stop_interrupted(s, j):  # type: ignore[no-untyped-def]
    """Requeue a job whose node has failed, with its first submission or as a new arrival."""
    if s.g[0].requeue == TAIL:
        s.jobs[j].submit = s.g[0].now
    stop(s, j, A_DOWN)


@inner
def suspended(s, j):  # type: ignore[no-untyped-def]
    """The job has been suspended: its GPUs are free, and it waits."""
    job = s.jobs[j]
    if job.rate > 0:
        # progress went on to the end of the epoch, not through the writing of the checkpoint
        job.ran += s.g[0].now - job.seen
        job.attained += (s.g[0].now - job.seen) * job.counted
        progress(s, j, max(0.0, s.g[0].now - job.stopping - job.last))
        job.done = min(job.done, job.work)
        job.last = s.g[0].now - job.stopping
        early(s, j)
        job.last = s.g[0].now
        job.seen = s.g[0].now
    else:
        settle(s, j)
    if s.g[0].limits == 1 and job.ran - job.anew >= job.limit:
        # writing its checkpoint used up its time limit
        time_is_up(s, j)
        return
    if job.stalls == 1:
        _stop_interrupted(s, j)
        return
    job.work += job.charge
    note(s, D_SUSPENDED, j, job.held, job.row, 0)
    stop(s, j, A_PREEMPTED)


@inner
def throw_out(s, j, what, how):  # type: ignore[no-untyped-def]
    """Take a job's GPUs at once without a decision of the policy; progress since the last checkpoint is lost."""
    job = s.jobs[j]
    settle(s, j)
    unspent(s, j)
    drop_progress(s, j)
    note(s, what, j, job.held, job.row, 0)
    stop(s, j, how)


@inner
def fail(s, j):  # type: ignore[no-untyped-def]
    """A node of the job fails: the job goes back to its last checkpoint, and queues again once that is noticed."""
    g = s.g[0]
    job = s.jobs[j]
    if job.stalls == 1:
        # another node of a gang that has stopped already
        return
    settle(s, j)
    unspent(s, j)
    job.lost += job.fresh
    job.undone += job.done - job.saved
    job.done, job.written, job.fresh = job.saved, 0.0, 0.0
    set_phase(s, j)
    if job.saved == 0:
        job.anew = job.ran
    job.failures += 1
    job.reload = 1
    note(s, D_DOWN, j, job.held, job.row, 0)
    if g.detect <= 0:
        _stop_interrupted(s, j)
        return
    job.state = SUSPENDING
    job.rate = 0.0
    job.stalls = 1
    job.stopping = g.detect
    schedule(s, j, g.now + g.detect, C_SUSPENDED)
