"""Compiled: a job's speed by GPU type, and its observed progress."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.state import RUNNING, SUSPENDING


@inner
def type_speed(s, j):  # type: ignore[no-untyped-def]
    """Speed of a job on its GPU types and placement: that of the slowest type."""
    job = s.jobs[j]
    row = s.attempts[job.row]
    slowest = np.inf
    for k in range(row.first, row.first + row.pieces):
        slowest = min(slowest, s.by_type[job.row_of_speeds, s.nodes[s.pieces[k].node].type, job.level])
    return slowest


@inner
def packed_speed(s, j, host):  # type: ignore[no-untyped-def]
    """Speed of a job packed with the others on a host's GPUs, relative to alone: the product over the others."""
    row = s.jobs[j].row_of_speeds
    speed = 1.0
    if host != j:
        speed *= s.by_pair[row, s.jobs[host].row_of_speeds]
    at = s.jobs[host].guest
    while at >= 0:
        if at != j:
            speed *= s.by_pair[row, s.jobs[at].row_of_speeds]
        at = s.jobs[at].next_guest
    return speed


@inner
def may_pack(s, j, host):  # type: ignore[no-untyped-def]
    """Whether a job can be packed with the jobs on a host's GPUs: no pair has speed 0."""
    row, other = s.jobs[j].row_of_speeds, s.jobs[host].row_of_speeds
    fits = s.by_pair[row, other] > 0 and s.by_pair[other, row] > 0
    at = s.jobs[host].guest
    while at >= 0:
        other = s.jobs[at].row_of_speeds
        fits = fits and s.by_pair[row, other] > 0 and s.by_pair[other, row] > 0
        at = s.jobs[at].next_guest
    return fits


@inner
def rate_now(s, j):  # type: ignore[no-untyped-def]
    """A job's present progress, in reference seconds per second: 0 without GPUs or during a checkpoint transfer."""
    job = s.jobs[j]
    now = s.g[0].now
    if job.last > now or (job.state != RUNNING and job.state != SUSPENDING):
        return 0.0
    if job.state == SUSPENDING and s.node_at[j] >= 0 and now >= s.heap_t[s.node_at[j]] - job.stopping:
        return 0.0
    return job.rate
