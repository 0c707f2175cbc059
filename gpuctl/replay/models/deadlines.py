"""Deadlines of jobs: from the input, or assumed from run times if no job has one."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import note

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Workload

LATE_S = 1e-6
"""Tolerance, in seconds, for meeting a deadline."""


def deadlines(workload: Workload) -> Floats:
    """The deadline of each job in seconds, inf if it has none.

    If no job of the input has one, submission + run time x u, with u from 0.5 to 1.5 by a hash of the job's name:
    the span from which ElasticFlow's generator draws.
    """
    given = workload.deadline
    if given is not None:
        return np.where(np.isnan(given), np.inf, given)
    part = np.fromiter((zlib.crc32(f"{name}:deadline".encode()) % 1001 for name in workload.ids), float, workload.size)
    return np.asarray(workload.submit + workload.true_run_time * (0.5 + part / 1000))


def derived(workload: Workload) -> tuple[Note, ...]:
    """A note if deadlines are assumed."""
    if workload.deadline is not None:
        return ()
    return (
        note(
            "deadlines are assumed, not from the input: submission + run time x u, u from 0.5 to 1.5 by a hash of the "
            "job's name"
        ),
    )
