"""The starts and placements as they are in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.policies.recorded import recorded_kernel

if TYPE_CHECKING:
    from types import ModuleType

    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class RecordedProgram:
    """Starts every segment when and where the trace says."""

    def __init__(self, workload: Workload) -> None:
        self._starts = workload.recorded_start.astype(np.float64)
        self._pieces = tuple(
            np.ascontiguousarray(a, np.int64)
            for a in (workload.piece_start, workload.piece_server, workload.piece_gpus)
        )

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants."""
        return int(recorded_kernel.run(state, self._starts, *self._pieces, until, steps))

    def copy(self) -> RecordedProgram:
        """The same: it has no memory."""
        return self


class Recorded(Policy):
    """Every attempt starts as recorded, whatever the cluster says of its free GPUs."""

    name = "recorded"
    title = "every attempt starts when and where the trace says; what a replay can be held against"
    source = "the trace itself"
    oracle = True
    kernel: ClassVar[ModuleType | None] = recorded_kernel

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: the workload tells no starts.
        """
        del cluster, settings
        if workload.size and not np.isfinite(workload.recorded_start).any():
            raise UsageError(
                f"recorded: {workload.name} tells no starts (a job file has none, and scaled load has none any more)",
                hint="replay a trace store, or drop this policy",
            )
        jobs = state.jobs
        # as recorded: no speed but the recorded one, no cost but what the recorded times hold already
        jobs.speed0 = jobs.speed1 = jobs.speed2 = 1.0
        jobs.suspend = jobs.resume = jobs.move = jobs.charge = 0.0
        state.g.typed = 0
        state.g.stops = 1
        state.g.limits = 0
        first = workload.recorded_start[workload.segment_start[:-1]]
        arrive = np.fmin(workload.eligible, first)
        order = np.lexsort((np.arange(workload.size), arrive))
        state.arrivals[:] = order
        state.arrive_t[:] = arrive[order]
        # servers that were down in the log ran what they ran
        state.machine_t[:] = np.inf
        return RecordedProgram(workload)
