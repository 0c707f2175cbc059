"""A compiled policy, see docs/how-to/write-a-policy.md: who has waited longest for what it asks for starts first."""

from __future__ import annotations

import numpy as np

from gpuctl.replay.contract.compiled_policy import (
    FIRST_REASON,
    WAITING,
    Bundle,
    CompiledPolicy,
    compiled,
    find_for,
    floats,
    inner,
    ints,
    launch,
    loop,
    placements,
    shapes,
)
from gpuctl.replay.contract.policy import Parameter

R_LONGEST = FIRST_REASON


class Memory(Bundle):
    """The policy's input, and its memory."""

    head_start = floats()  # seconds that every job counts as having waited when it comes [1]
    how = ints()  # where each gang goes [jobs]
    shape = ints()  # jobs of one number ask for the same: where one does not fit, none does [jobs]
    line = ints()  # jobs that wait, in no order [jobs]
    n = ints()  # how many those are; passes so far [2]
    bad = ints()  # the pass in which a shape was found not to fit [shapes]


@inner
def waits(s, job, m):
    """A job has come into the queue, for the first time or again."""
    if s.jobs[job].state == WAITING:
        m.line[m.n[0]] = job
        m.n[0] += 1


@inner
def first_place(s, m):
    """The place in the line of the job that has waited longest for each GPU and may fit; -1: there is none."""
    best, most = -1, -1.0
    for place in range(m.n[0]):
        job = s.jobs[m.line[place]]
        if m.bad[m.shape[m.line[place]]] == m.n[1]:
            continue
        score = (s.g[0].now - job.queued + m.head_start[0]) / job.gpus
        if score > most or (score == most and m.line[place] < m.line[best]):
            best, most = place, score
    return best


@inner
def decide(s, m):
    """Start those that fit, the one that has waited longest first."""
    m.n[1] += 1
    while s.g[0].free > 0:
        place = first_place(s, m)
        if place < 0:
            return
        job = m.line[place]
        if find_for(s, job, m.how[job]):
            m.n[0] -= 1
            m.line[place] = m.line[m.n[0]]
            launch(s, job, R_LONGEST)
        else:
            m.bad[m.shape[job]] = m.n[1]


@compiled
def run(s, m, until, steps):
    """Go on for so many instants."""
    return loop(s, (m,), until, steps, decide=decide, on_submit=waits, on_requeue=waits)


class LongestWait(CompiledPolicy):
    """Who has waited longest for each of the GPUs that it asks for starts first; what does not fit is skipped."""

    name = "longest-wait"
    title = "the longest wait for each GPU first; jobs that do not fit are skipped"
    source = "an example"
    parameters = (Parameter("head_start", 60.0, "seconds that every job counts as having waited when it comes"),)
    run = run
    reasons = ("has waited longest for each GPU",)

    def memory(self, workload, cluster, settings, state):
        """See `CompiledPolicy.memory`."""
        how = placements(workload, "any", settings.placement)
        shape = shapes(state, how)
        memory = Memory(
            head_start=np.array([self.params["head_start"]]),
            how=how,
            shape=shape,
            line=workload.size,
            n=2,
            bad=int(shape.max(initial=0)) + 1,
        )
        return (memory,)
