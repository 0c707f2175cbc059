"""Gangs that can never start under a policy, since its placement or a quota excludes them even on idle nodes.

Gangs that fit on no nodes at all are found without a policy (`gpuctl.replay.inputs.check`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.replay.engine.placements import PLACEMENTS
from gpuctl.replay.engine.state import CONSOLIDATE, FEWEST, RACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Workload

QUOTA = "its gang is larger than the quota of its queue, which is never exceeded"
PLACED = {
    how: f"no nodes hold its gang as placement {name} asks, however idle they are"
    for name, how in PLACEMENTS.items()
    if how in {CONSOLIDATE, RACK, FEWEST}
}
"""Why a job never starts. Placements not listed take any nodes."""


def never_starts(state: State, program: Program) -> dict[int, str]:
    """Return the jobs that can never start under a policy, by number, and why.

    Args:
        state: of a simulation before its first instant.
        program: of the policy; those with a fixed placement per job have an array ``how``.
    """
    jobs = state.jobs
    over = jobs.least > state.queue_limit[jobs.queue]
    found = dict.fromkeys(np.flatnonzero(over).tolist(), QUOTA)
    how = _placements(program, jobs.size)
    if how is None or state.nodes.size == 1 or state.g[0].resources:
        return found
    several = np.flatnonzero(np.isin(how, tuple(PLACED)) & (jobs.gpus > state.nodes.cap.min()) & ~over)
    requests, which = np.unique(
        np.stack([how[several], jobs.gpus[several], jobs.mask[several].astype(np.int64)]), axis=1, return_inverse=True
    )
    for k, (way, gpus, mask) in enumerate(requests.T.tolist()):
        suits = np.asarray(mask >> state.nodes.cls & 1, np.bool_)
        if not _holds(state.nodes.cap[suits], state.nodes.rack[suits], gpus, way):
            found |= dict.fromkeys(several[which.reshape(-1) == k].tolist(), PLACED[way])
    return found


def never_note(never: Mapping[int, str], workload: Workload) -> tuple[Note, ...]:
    """Return a note per reason: number of jobs, and the first of them."""
    found = []
    for why in dict.fromkeys(never.values()):
        jobs = [job for job, reason in never.items() if reason == why]
        found.append(
            note(
                "{count:,} job{count||s} can never start: {why}; {more|it is|the first is} {first} ({gpus:,} "
                "GPU{gpus||s})",
                count=len(jobs),
                why=literal(why),
                more=len(jobs),
                first=NamedValue("job", workload.ids[jobs[0]]),
                gpus=int(workload.gpus[jobs[0]]),
            )
        )
    return tuple(found)


def _placements(program: Program, size: int) -> NDArray[np.int64] | None:
    for bundle in getattr(program, "memory", ()):
        how: Any = getattr(bundle, "how", None)
        if isinstance(how, np.ndarray) and how.shape == (size,):
            return how
    return None


def _holds(caps: NDArray[np.int64], racks: NDArray[np.int64], gpus: int, how: int) -> bool:
    """Whether idle nodes can hold a gang under a placement, see `gpuctl.replay.engine.placement_kernel.find`."""
    biggest = int(caps.max(initial=0))
    if gpus <= biggest:
        return True
    if how == CONSOLIDATE:
        whole, rest = divmod(gpus, biggest)
        left = np.sort(caps)[::-1][whole:]
        return int((caps == biggest).sum()) >= whole and (rest == 0 or int(left.max(initial=0)) >= rest)
    most = -(-gpus // biggest) if how == FEWEST else caps.size
    return any(int(np.sort(caps[racks == rack])[::-1][:most].sum()) >= gpus for rack in np.unique(racks))
