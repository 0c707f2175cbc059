"""Compiled: jobs that oversubscribe a node's GPUs and take turns there.

The policy decides each job's remaining speed and counted GPUs; this module applies them.
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
    """Set a running job's share of its speed and its counted GPUs from now on."""
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
    """Resize a running job to the GPUs in `choice` on its node, at no cost."""
    job = s.jobs[j]
    settle(s, j)
    cancel(s, j)
    start, last, counted = job.start, job.last, job.counted
    give_back(s, j, A_RESIZED)
    gpus = take(s, j, 0)
    note(s, D_RESIZE, j, gpus, job.row, reason)
    job.state, job.start, job.last = RUNNING, start, last
    # the rest of a migration's cost was charged for the former GPUs
    held, job.counted = job.counted, counted
    charge_for(s, j, held)
    job.rate = rate_of(s, j)
    plan_end(s, j)
