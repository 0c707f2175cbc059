"""The compiled replay of recorded starts and placements, which nothing can refuse: the log says that they happened."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import job_timer, reject, room
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, find
from gpuctl.replay.engine.reasons import R_RECORDED, R_UNRECORDED
from gpuctl.replay.engine.state import ANY, E_JOB_TIMER, E_QUEUED, WAITING


@inner
def _put(s, j, piece_start, piece_server, piece_gpus):  # type: ignore[no-untyped-def]
    """Choose the recorded places; where none are known, where it fits, and else where there is most room."""
    g = s.g[0]
    job = s.jobs[j]
    g.chosen = 0
    for k in range(piece_start[job.segment], piece_start[job.segment + 1]):
        choose(s, piece_server[k], piece_gpus[k])
    if g.chosen > 0 or find(s, job.mask, job.gpus, ANY):
        return
    left = job.gpus
    best = 0
    for number in range(s.servers.size):
        free = s.servers[number].free
        if s.servers[number].up == 1 and free > 0 and left > 0:
            choose(s, number, min(left, free))
            left -= min(left, free)
        if s.servers[number].cap > s.servers[best].cap:
            best = number
    if left > 0:
        # more than there is: the log knows servers that the cluster lacks
        for k in range(g.chosen):
            if s.choice[k].server == best:
                s.choice[k].gpus += left
                return
        choose(s, best, left)


@inner
def decide(s, starts, piece_start, piece_server, piece_gpus):  # type: ignore[no-untyped-def]
    """Start what starts at this instant; true where there is no room for it yet."""
    g = s.g[0]
    for k in range(g.events):
        j = s.events[k].who
        if s.events[k].kind == E_QUEUED and s.jobs[j].state == WAITING:
            at = starts[s.jobs[j].segment]
            if np.isnan(at):
                reject(s, j, R_UNRECORDED)
                continue
            if at > g.now:
                job_timer(s, j, at)
                continue
        elif s.events[k].kind != E_JOB_TIMER:
            continue
        if s.jobs[j].state == WAITING:
            if not room(s):
                # a log may put more on GPUs than there are; whoever has started does not wait when this goes on
                return True
            _put(s, j, piece_start, piece_server, piece_gpus)
            launch(s, j, R_RECORDED)
    return False


@compiled
def run(s, starts, piece_start, piece_server, piece_gpus, until, steps):  # type: ignore[no-untyped-def]
    """Go on for so many instants. Returns as `step` does."""
    return loop(s, decide, (starts, piece_start, piece_server, piece_gpus), until, steps)
