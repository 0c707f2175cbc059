"""Compiled loops over associations and running jobs; see `gpuctl.replay.policies.slurm.usage`."""

from __future__ import annotations

from gpuctl.compiled.jit import compiled, inner


@inner
def decayed_amount(run_s, rate, second_factor):  # type: ignore[no-untyped-def]
    """Return what a stretch of run time counts: ``run_s * rate``, decayed by the whole stretch at once as in Slurm."""
    return run_s * second_factor**run_s * rate


@inner
def charge(usage, parent, association, amount):  # type: ignore[no-untyped-def]
    """Add an amount to an association and to all above it, the root included; in place."""
    at = association
    while at >= 0:
        usage[at] += amount
        at = parent[at]


@compiled
def charge_running(usage, parent, associations, starts, rates, since, until, second_factor):  # type: ignore[no-untyped-def]
    """Charge running jobs for what they ran from ``since`` (or their start, if later) to ``until``; in place."""
    for job in range(len(associations)):
        run_s = until - max(starts[job], since)
        if run_s > 0:
            charge(usage, parent, associations[job], decayed_amount(run_s, rates[job], second_factor))


@compiled
def charge_end(usage, parent, association, run_s, rate, second_factor):  # type: ignore[no-untyped-def]
    """Charge one job for its last ``run_s`` seconds; in place."""
    charge(usage, parent, association, decayed_amount(run_s, rate, second_factor))
