"""The starts and placements of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.policies.recorded import recorded_kernel

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Recorded(Policy):
    """Every attempt starts as recorded, regardless of free GPUs."""

    name = "recorded"
    title = "every attempt starts when and where the trace records; a reference for replays"
    source = "the trace itself"
    oracle = True
    run: ClassVar[Loop | None] = recorded_kernel.run

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: the workload has no recorded starts.
        """
        del cluster, settings
        if workload.size and not np.isfinite(workload.recorded_start).any():
            raise UsageError(
                f"recorded: {workload.name} has no recorded starts (job files and scaled loads have none)",
                hint="replay a trace store, or drop this policy",
            )
        jobs = state.jobs
        # as recorded: no speed other than the recorded one, no cost beyond the recorded times
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
        # recorded jobs ran even on nodes that the log shows as down
        state.machine_t[:] = np.inf
        record = recorded_kernel.Record(
            starts=workload.recorded_start,
            piece_start=workload.piece_start,
            piece_node=workload.piece_node,
            piece_gpus=workload.piece_gpus,
            due=2 * workload.size + 64,
            n=2,
        )
        return CompiledProgram(recorded_kernel.run, (record,))
