"""Whether a replay is done sooner as Python than compiled: what both cost, as measured."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpuctl.compiled.jit import UNCOMPILED

if TYPE_CHECKING:
    from gpuctl.replay.contract.policy import Policy

SAMPLE = 300
LOADING_S = 0.4
"""CPU seconds to import Numba and load one policy's code."""

INTERPRETED_S = {
    "fifo": 0.06, "fifo-skip": 0.06, "sjf": 0.06, "srtf": 0.11, "srsf": 0.11, "las": 0.22, "fair": 0.06, "drf": 0.06,
    "tetris": 0.10, "mesos": 1.56, "random": 0.06, "tiresias": 0.23, "philly": 0.26, "easy": 0.08,
    "conservative": 0.08, "slurm": 0.96, "yarn-cs": 0.06, "yarn-capacity": 0.28, "yarn-fair": 0.42, "pickyman": 0.78,
    "optimus": 0.22, "gandiva": 0.60, "themis": 0.58, "aryl": 0.29, "max-min": 0.3, "ftf": 0.3, "mirage": 0.18,
    "osdec": 0.2, "tree": 0.2,
}  # fmt: skip
"""CPU seconds of a replay of the `SAMPLE` jobs of sample_data/jobs.csv on 4x8 as Python; `benchmarks/first_run.py`."""

OTHERS_S = 1.0
"""The same of policies that were not measured, an assumption."""

COMPILING_S = {"slurm": 14.0, "yarn-capacity": 14.0, "yarn-fair": 12.0, "themis": 11.0}
"""CPU seconds to compile a policy, where much more than `LIST_S`; `benchmarks/first_run.py`."""

LIST_S = 8.0
"""The same of the others: fifo, easy and the like."""


def interpreted_s(kind: type[Policy], jobs: int) -> float:
    """CPU seconds that so many jobs take as Python; queues, too, grow with a load, so it is more than proportional."""
    return INTERPRETED_S.get(kind.name, OTHERS_S) * float(max(jobs / SAMPLE, 1.0) ** 1.5)


def compiling_s(kind: type[Policy]) -> float:
    """CPU seconds to compile what a policy needs."""
    return COMPILING_S.get(kind.name, LIST_S)


def may_interpret(kind: type[Policy], jobs: int, *, compiled: bool | None) -> bool:
    """Whether to begin a replay as Python.

    Args:
        kind: the policy's class.
        jobs: how many.
        compiled: whether code for it lies in the cache; None: not known, and to find out costs more than it may bring.
    """
    if UNCOMPILED:
        return True
    if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in {"", "0"}:
        return False
    return interpreted_s(kind, jobs) <= (LOADING_S if compiled is not False else compiling_s(kind))
