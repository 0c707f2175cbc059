"""Speed of a job by number of GPUs."""

from __future__ import annotations

from gpuctl.compiled.jit import inner


@inner
def scale(s, j, gpus):  # type: ignore[no-untyped-def]
    """Speed on a number of GPUs, in the job's own unit: by its curve, else n / (1 + alpha (n - 1))."""
    job = s.jobs[j]
    if job.points > 0:
        return s.curves[job.curve + min(gpus, job.points) - 1]
    return gpus / (1.0 + job.alpha * (gpus - 1))
