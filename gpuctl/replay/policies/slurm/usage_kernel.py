"""Compiled usage of a stretch of run time; see `gpuctl.replay.policies.slurm.usage`."""

from __future__ import annotations

from gpuctl.compiled.jit import inner


@inner
def decayed_amount(run_s, rate, second_factor):  # type: ignore[no-untyped-def]
    """Return the usage of a stretch of run time: ``run_s * rate``, decayed by the whole stretch at once as in Slurm."""
    return run_s * second_factor**run_s * rate


@inner
def charge(usage, parent, association, amount):  # type: ignore[no-untyped-def]
    """Add an amount to an association and to all above it, the root included; in place."""
    at = association
    while at >= 0:
        usage[at] += amount
        at = parent[at]
