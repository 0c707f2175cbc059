"""The compiled end of the queue: where an interrupted job joins if it counts as a new arrival.

Orders by submission are ranks that are known beforehand; `fail` sets such a job's submission to now, and its rank
follows here.
"""

from __future__ import annotations

from gpuctl.compiled.jit import inner

OWN, HEAD, TAIL = range(3)
"""How interrupted jobs queue again: as the policy has it, with their first submission, as new arrivals."""
WAYS = ("own", "head", "tail")


@inner
def joins_tail(s, j):  # type: ignore[no-untyped-def]
    """Whether a job that queues now was interrupted by a failure and counts as a new arrival."""
    job = s.jobs[j]
    return s.g[0].requeue == TAIL and job.failures > 0 and job.submit == s.g[0].now


@inner
def last_rank(s):  # type: ignore[no-untyped-def]
    """The rank by submission of the last job submitted so far."""
    count = 0
    for k in range(s.jobs.size):
        if s.jobs[k].submit <= s.g[0].now:
            count += 1
    return count - 1


@inner
def to_tail(s, rank, j):  # type: ignore[no-untyped-def]
    """Give a job the last rank by submission so far; those that it leaves behind move up by one."""
    last, old = last_rank(s), rank[j]
    for k in range(rank.size):
        if old < rank[k] <= last:
            rank[k] -= 1
    rank[j] = last
