"""The compiled checkpoints of a job against failures of nodes: what it saves, writes and loads.

Such a checkpoint is written after each `every` seconds of progress, none at the job's end. Without failures `every` is
infinite, and nothing here has an effect.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner


@inner
def place_after(s, j, seconds):  # type: ignore[no-untyped-def]
    """Checkpoints against failures that a job completes in some seconds, the seconds of work between two, the rest."""
    job = s.jobs[j]
    work = job.every / job.rate
    place = (job.done - job.saved) / job.rate + job.written + seconds
    whole = np.floor(place / (work + job.write) + 1e-9)
    return whole, work, max(place - whole * (work + job.write), 0.0)


@inner
def progress_at(s, j, seconds):  # type: ignore[no-untyped-def]
    """The job's progress in some seconds, if nothing changes."""
    job = s.jobs[j]
    if job.every == np.inf or job.rate <= 0:
        return job.done + seconds * job.rate
    whole, work, rest = place_after(s, j, seconds)
    return job.saved + whole * job.every + min(rest, work) * job.rate


@inner
def progress(s, j, seconds):  # type: ignore[no-untyped-def]
    """Advance a job's work by some seconds, less those in which it writes checkpoints against failures.

    It writes one after each `every` seconds of progress, none at its end.
    """
    job = s.jobs[j]
    if job.every == np.inf or job.rate <= 0:
        job.done += seconds * job.rate
        if job.rate > 0:
            job.fresh += seconds * job.counted
        return
    whole, work, rest = place_after(s, j, seconds)
    done = progress_at(s, j, seconds)
    worked = (done - job.done) / job.rate
    job.wrote += (seconds - worked) * job.counted
    job.fresh = min(rest, work) * job.counted if whole > 0 else job.fresh + worked * job.counted
    job.written = max(rest - work, 0.0)
    job.done = done
    job.saved += whole * job.every


@inner
def writes_before(s, j, target):  # type: ignore[no-untyped-def]
    """Seconds of writes still to come before the job's progress in its segment reaches a target."""
    job = s.jobs[j]
    if job.every == np.inf or job.write <= 0:
        return 0.0
    count = max(np.ceil((target - job.saved) / job.every - 1e-9) - 1, 0.0)
    return max(count * job.write - job.written, 0.0)


@inner
def keep(s, j):  # type: ignore[no-untyped-def]
    """A job gives up its GPUs with the progress that it has: that is saved."""
    job = s.jobs[j]
    job.saved, job.written, job.fresh, job.stalls = job.done, 0.0, 0.0, 0


@inner
def loading(s, j):  # type: ignore[no-untyped-def]
    """Charged but still pending seconds of a start after a failure: they come after any other overhead."""
    return min(max(s.jobs[j].last - s.g[0].now, 0.0), s.g[0].restart)


@inner
def reload_cost(s, j):  # type: ignore[no-untyped-def]
    """Seconds of overhead of a job's start after a failure, charged to its loads; 0 for any other start."""
    job = s.jobs[j]
    if job.reload == 0:
        return 0.0
    job.load += s.g[0].restart * job.counted
    return s.g[0].restart
