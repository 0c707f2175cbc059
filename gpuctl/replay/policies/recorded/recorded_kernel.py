"""The compiled replay of recorded starts and placements, which cannot be refused as they did happen."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import job_timer, reject, room
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, find
from gpuctl.replay.engine.reasons import R_RECORDED, R_UNRECORDED
from gpuctl.replay.engine.state import ANY, WAITING


class Record(Bundle):
    """Recorded starts and places, by segment of a job."""

    starts = floats()  # second of each start; NaN: not known
    piece_start = ints()  # its places are ``piece_start[segment]`` to ``piece_start[segment + 1]`` of:
    piece_node = ints()  # nodes
    piece_gpus = ints()  # GPUs there
    due = ints()  # jobs that start at this instant, in order of their events [events]
    n = ints()  # their number, and how many of them have been handled


@inner
def _put(s, j, f):  # type: ignore[no-untyped-def]
    """Choose the recorded places; if unknown, places that fit, or else the nodes with most room."""
    g = s.g[0]
    job = s.jobs[j]
    g.chosen = 0
    for k in range(f.piece_start[job.segment], f.piece_start[job.segment + 1]):
        choose(s, f.piece_node[k], f.piece_gpus[k])
    if g.chosen > 0 or find(s, job.mask, job.gpus, ANY):
        return
    left = job.gpus
    best = 0
    for number in range(s.nodes.size):
        free = s.nodes[number].free
        if s.nodes[number].up == 1 and free > 0 and left > 0:
            choose(s, number, min(left, free))
            left -= min(left, free)
        if s.nodes[number].cap > s.nodes[best].cap:
            best = number
    if left > 0:
        # more than there is: the log has nodes that the cluster lacks
        for k in range(g.chosen):
            if s.choice[k].node == best:
                s.choice[k].gpus += left
                return
        choose(s, best, left)


@inner
def waits(s, j, f):  # type: ignore[no-untyped-def]
    """Schedule a queued job's recorded start, which may be now, or never."""
    if s.jobs[j].state == WAITING:
        at = f.starts[s.jobs[j].segment]
        if at > s.g[0].now:
            job_timer(s, j, at)
        else:
            on_wake(s, j, f)


@inner
def on_wake(s, j, f):  # type: ignore[no-untyped-def]
    """Handle the timer of a job's start."""
    f.due[f.n[0]] = j
    f.n[0] += 1


@inner
def decide(s, f):  # type: ignore[no-untyped-def]
    """Start the jobs due at this instant; true if arrays lack room."""
    while f.n[1] < f.n[0]:
        j = f.due[f.n[1]]
        if s.jobs[j].state == WAITING:
            if np.isnan(f.starts[s.jobs[j].segment]):
                reject(s, j, R_UNRECORDED)
            elif not room(s):
                # a log may oversubscribe GPUs; jobs already started are skipped when this resumes
                return True
            else:
                _put(s, j, f)
                launch(s, j, R_RECORDED)
        f.n[1] += 1
    f.n[:] = 0
    return False


@compiled
def run(s, f, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants. Returns as `step` does."""
    return loop(s, (f,), until, steps, decide=decide, on_submit=waits, on_requeue=waits, on_wake=on_wake)
