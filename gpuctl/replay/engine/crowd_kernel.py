"""Compiled: jobs that ask more GPUs of a node than it has, and take turns there.

What that leaves of a job's speed, and how many of its GPUs count for it, is its policy's affair; here it is kept.
"""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.job_life_kernel import (
    change_rate,
    charge_for,
    give_back,
    note,
    plan_end,
    rate_of,
    settle,
    take,
)
from gpuctl.replay.engine.state import A_RESIZED, D_RESIZE, RUNNING


@inner
def set_turn(s, j, pace, counted):  # type: ignore[no-untyped-def]
    """Let a running job go on at so much of its speed, and so many GPUs count for it, from now on."""
    g = s.g[0]
    job = s.jobs[j]
    if pace == job.pace and counted == job.counted:
        return
    if g.turns >= s.turns.size:
        raise IndexError("no room for a turn")
    if pace == job.pace:
        settle(s, j)
    else:
        job.pace = pace
        change_rate(s, j)
    charge_for(s, j, counted)
    turn = s.turns[g.turns]
    g.turns += 1
    turn.t, turn.row, turn.counted, turn.pace = g.now, job.row, counted, pace


@inner
def resize_in_place(s, j, reason):  # type: ignore[no-untyped-def]
    """Let a running job go on with the GPUs in `choice`, on the node that it is on: it costs nothing."""
    job = s.jobs[j]
    settle(s, j)
    cancel(s, j)
    start, last, counted = job.start, job.last, job.counted
    give_back(s, j, A_RESIZED)
    gpus = take(s, j, 0)
    note(s, D_RESIZE, j, gpus, job.row, reason)
    job.state, job.start, job.last = RUNNING, start, last
    # what is to come of a migration's cost was charged for as many GPUs as before
    held, job.counted = job.counted, counted
    charge_for(s, j, held)
    job.rate = rate_of(s, j)
    plan_end(s, j)
