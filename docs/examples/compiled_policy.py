"""A compiled policy (docs/how-to/write-a-policy.md): the job that has waited longest per requested GPU starts first."""

from __future__ import annotations

import numpy as np

from gpuctl.plugins import (
    FIRST_REASON,
    WAITING,
    Bundle,
    CompiledPolicy,
    Parameter,
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

R_LONGEST = FIRST_REASON


class Memory(Bundle):
    """The policy's input, and its memory."""

    head_start = floats()  # seconds of waiting credited to each job at submission [1]
    how = ints()  # how each gang is placed [jobs]
    shape = ints()  # jobs with the same number have the same request: if one does not fit, none does [jobs]
    line = ints()  # waiting jobs, unordered [jobs]
    n = ints()  # number of waiting jobs; passes so far [2]
    bad = ints()  # last pass in which a shape did not fit [shapes]


@inner
def waits(s, job, m):
    """Record a job that has entered the queue, for the first time or again."""
    if s.jobs[job].state == WAITING:
        m.line[m.n[0]] = job
        m.n[0] += 1


@inner
def first_place(s, m):
    """Position in the line of the job that has waited longest per GPU and may fit, or -1."""
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
    """Start the jobs that fit, longest wait per GPU first."""
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
    """Advance by at most this many instants."""
    return loop(s, (m,), until, steps, decide=decide, on_submit=waits, on_requeue=waits)


class LongestWait(CompiledPolicy):
    """The job that has waited longest per requested GPU starts first; jobs that do not fit are skipped."""

    name = "longest-wait"
    title = "longest wait per GPU first; jobs that do not fit are skipped"
    source = "an example"
    parameters = (Parameter("head_start", 60.0, "seconds of waiting credited to each job at submission"),)
    run = run
    reasons = ("longest wait per GPU",)

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
