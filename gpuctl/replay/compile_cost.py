"""Decides whether a replay finishes sooner interpreted than compiled.

The policy does not matter: all start interpreted, and a replay that takes longer than expected for its number of jobs
switches to compiled code once it has taken as long as compiling costs (`gpuctl.replay.run.Task.run`).
"""

from __future__ import annotations

import os

from gpuctl.compiled.loading import UNCOMPILED

LOADING_S = 0.4
"""CPU seconds to import Numba and load one policy's code."""

COMPILING_S = 8.0
"""CPU seconds to compile a policy: 8 for most, 11 to 14 for the largest; ``benchmarks/first_run.py`` measures it."""

SAMPLE, SAMPLE_S = 300, 0.2
"""Sample size, and its CPU seconds as Python: 0.06 to 0.3 under most policies, 1.6 under one."""


def interpreted_s(jobs: int) -> float:
    """CPU seconds of a replay as Python; more than proportional to jobs, as queues also grow with the load."""
    return SAMPLE_S * float(max(jobs / SAMPLE, 1.0) ** 1.5)


def may_interpret(jobs: int, *, compiled: bool | None) -> bool:
    """Whether to start a replay as Python.

    Args:
        jobs: how many.
        compiled: whether the cache has code for it; None: not known, as checking costs more than it may save.
    """
    if UNCOMPILED:
        return True
    if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in {"", "0"}:
        return False
    return interpreted_s(jobs) <= (LOADING_S if compiled is not False else COMPILING_S)
