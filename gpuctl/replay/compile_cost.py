"""Whether a replay is done sooner as Python than compiled.

Which policy it is does not matter: all of them begin alike, and one that takes longer than its number of jobs lets
expect goes on compiled as soon as it has taken as long as that costs (`gpuctl.replay.run.Task.run`).
"""

from __future__ import annotations

import os

from gpuctl.compiled.loading import UNCOMPILED

LOADING_S = 0.4
"""CPU seconds to import Numba and load one policy's code."""

COMPILING_S = 8.0
"""CPU seconds to compile a policy: 8 for most, 11 to 14 for the largest; ``benchmarks/first_run.py`` measures it."""

SAMPLE, SAMPLE_S = 300, 0.2
"""So many jobs, and the CPU seconds that they take as Python: 0.06 to 0.3 under most policies, 1.6 under one."""


def interpreted_s(jobs: int) -> float:
    """CPU seconds that so many jobs take as Python; queues, too, grow with a load, so it is more than proportional."""
    return SAMPLE_S * float(max(jobs / SAMPLE, 1.0) ** 1.5)


def may_interpret(jobs: int, *, compiled: bool | None) -> bool:
    """Whether to begin a replay as Python.

    Args:
        jobs: how many.
        compiled: whether code for it lies in the cache; None: not known, and to find out costs more than it may bring.
    """
    if UNCOMPILED:
        return True
    if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in {"", "0"}:
        return False
    return interpreted_s(jobs) <= (LOADING_S if compiled is not False else COMPILING_S)
