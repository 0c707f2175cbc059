"""Compiled limits of QOS and associations: usage per scope, and whether another job fits.

A scope is the set of jobs that a limit counts: a QOS, a user in a QOS, an association with all below it ... A job
belongs to several scopes; its limits in each are fixed when the simulation is built.
"""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.slurm.records_kernel import NO_LIMIT


@inner
def within(f, j):  # type: ignore[no-untyped-def]
    """Whether limits let a job start now."""
    for k in range(f.scope_first[j], f.scope_first[j + 1]):
        cap = f.cap_of[k]
        if cap < 0:
            continue
        scope = f.scope[k]
        if f.scopes[scope].jobs >= f.caps[cap].jobs:
            return False
        for resource in range(f.need.shape[1]):
            limit = f.cap_tres[cap, resource]
            if limit < NO_LIMIT and f.used[scope, resource] + f.need[j, resource] > limit:
                return False
    return True


@inner
def use(f, j, sign):  # type: ignore[no-untyped-def]
    """Count a started job (1), or one that released its resources (-1)."""
    for k in range(f.scope_first[j], f.scope_first[j + 1]):
        scope = f.scope[k]
        f.scopes[scope].jobs += sign
        for resource in range(f.need.shape[1]):
            f.used[scope, resource] += sign * f.need[j, resource]


@inner
def may_submit(f, j):  # type: ignore[no-untyped-def]
    """Whether limits let a job be submitted."""
    for k in range(f.scope_first[j], f.scope_first[j + 1]):
        cap = f.cap_of[k]
        if cap >= 0 and f.scopes[f.scope[k]].submitted >= f.caps[cap].submitted:
            return False
    return True


@inner
def submitted(f, j, sign):  # type: ignore[no-untyped-def]
    """Count a submitted job (1), or an ended one (-1)."""
    f.x[j].counted += sign
    for k in range(f.scope_first[j], f.scope_first[j + 1]):
        f.scopes[f.scope[k]].submitted += sign
