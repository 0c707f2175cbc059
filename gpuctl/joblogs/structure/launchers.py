"""Launchers' messages about a process that died: final evidence of a failure, and of the rank that failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format

if TYPE_CHECKING:
    from collections.abc import Sequence

_RANK = re.compile(r"\s*rank\s{0,10}: (\d{1,7}) \(local_rank: \d{1,7}\)")
_TASK = re.compile(r"srun: error: [^:\n]{1,200}: task (\d{1,7}): (?:Exited|Killed|Segm|Abort|Bus|Float|Ill|Term|Out)")
_NOTICED = re.compile(r"mpi(?:run|exec)(?:\.\w+)? noticed that process rank (\d{1,7}) ")
_NAMED = re.compile(r"\s*Process name: +\[\[\d+,\d+\],(\d{1,7})\]")
_WITHIN = 12


def _blamed(pattern: re.Pattern[str], lines: Sequence[str], at: int) -> Ending | None:
    for place in range(at, min(at + _WITHIN, len(lines))):
        found = pattern.match(lines[place])
        if found:
            return Ending(at, at, place, None, rank=int(found[1]))
    return None


def torchrun(lines: Sequence[str], at: int) -> Ending | None:
    """Read the summary of torchrun: the rank that failed first."""
    return _blamed(_RANK, lines, at)


def srun(lines: Sequence[str], at: int) -> Ending | None:
    """Read srun's message about a task that died."""
    return _blamed(_TASK, lines, at)


def mpirun(lines: Sequence[str], at: int) -> Ending | None:
    """Read mpirun's message about a process that died."""
    return _blamed(_NOTICED, lines, at) or _blamed(_NAMED, lines, at)


FORMATS = (
    Format(
        "torchrun",
        (rb"^Root Cause \(first observed failure\):",),
        torchrun,
        "Root Cause (first observed failure):",
        "pytorch.org: torch.distributed.elastic.multiprocessing.errors",
    ),
    Format(
        "srun",
        (rb"^srun: error: [^:\n]{1,200}: task \d{1,7}: ",),
        srun,
        "srun: error: gpu3: task 5: Exited with exit code 1",
        "slurm.schedmd.com/srun.html",
    ),
    Format(
        "mpirun",
        (rb"^mpi(?:run|exec)\S{0,20} (?:noticed that process rank |detected that one or more processes exited)",),
        mpirun,
        "mpirun noticed that process rank 2 with PID 0 on node gpu3 exited on signal 9 (Killed).",
        "docs.open-mpi.org: mpirun(1)",
    ),
)
