"""How many GPUs a job has in all, as slurmctld states it in ``scontrol show job`` and ``squeue --json``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.slurm.tres import gres, tres

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMES = {"TresPerJob": None, "TresPerNode": "NumNodes", "Gres": "NumNodes", "TresPerTask": "NumTasks"}
"""What is requested, and the field that it is multiplied by; ``Gres`` is TresPerNode as Slurm called it until 18.08."""
_WHOLE = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?", re.ASCII)


def stated_gpus(found: Mapping[str, str]) -> float | None:
    """GPUs of a job on all of its nodes together; None if its record does not state them.

    ``JOB_GRES`` (since 20.11, with ``-d``) is what the job was allocated, ``(null)`` nothing. Without it a job that
    requests no GPU may still hold some (``--exclusive``), so that only a positive number counts.

    Args:
        found: fields by the names that ``scontrol show job`` gives them.
    """
    if "JOB_GRES" in found:
        held = found["JOB_GRES"]
        return 0.0 if held == "(null)" else gres(held).gpus
    for name in ("AllocTRES", "TRES", "ReqTRES"):
        gpus = tres(found.get(name, "")).gpus
        if gpus:
            return gpus
    for name, each in _TIMES.items():
        one = gres(found.get(name, "")).gpus
        times = 1 if each is None else _number(found.get(each, ""))
        if one and times:
            return one * times
    return None


def _number(text: str) -> int | None:
    """A number of nodes or tasks; ``2-2`` is 2, ``2-4`` is not known yet."""
    found = _WHOLE.fullmatch(text)
    return int(found[1]) if found and found[2] in {None, found[1]} else None
