"""Selects jobs of a workload by a filter; all others count as never submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import note
from gpuctl.replay.inputs.transforms import instant, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.job_filter import JobFilter, Name
    from gpuctl.replay.models.records import Ints, Workload


def choose(workload: Workload, wanted: JobFilter) -> Workload:
    """Return the jobs that match a filter, with a note that the load of the others is missing.

    Args:
        workload: the jobs.
        wanted: the filter; a job for which the workload lacks a filtered field does not match.

    Raises:
        UsageError: a name that no job has, an invalid time, or no match.
    """
    of: dict[Name, tuple[Ints | None, Sequence[str]]] = {
        "user": (workload.user, workload.users),
        "queue": (workload.queue, workload.queues),
        "account": (workload.account, workload.accounts),
    }
    wanted.check({kind: _there(numbers, names) for kind, (numbers, names) in of.items()})
    selected = np.ones(workload.size, bool)
    for kind, names in wanted.names.items():
        numbers, known = of[kind]
        if names and numbers is not None:
            selected &= np.isin(numbers, [k for k, name in enumerate(known) if name in names])
    if wanted.state:
        if not any(workload.state):
            raise UsageError("--state: these jobs have no final states", hint="leave it out")
        selected &= np.isin(np.array(workload.state, object), list(wanted.state))
    if wanted.gpus is not None:
        selected &= (workload.gpus >= wanted.gpus[0]) & (workload.gpus <= wanted.gpus[1])
    if wanted.since is not None:
        selected &= workload.submit >= instant(workload, wanted.since)
    if wanted.until is not None:
        selected &= workload.submit < instant(workload, wanted.until)
    jobs = np.flatnonzero(selected)
    if not jobs.size:
        wanted.refuse_empty(workload.size)
    text = note("the filter keeps {selected:,} of {of:,} job{of||s}", selected=jobs.size, of=workload.size)
    alone = note("{text}; they are replayed alone, without the load of other jobs", text=text)
    return take(workload, jobs, alone)


def _there(numbers: Ints | None, names: Sequence[str]) -> set[str]:
    """The names that occur among jobs."""
    return set() if numbers is None else {names[k] for k in np.unique(numbers).tolist() if k >= 0}
