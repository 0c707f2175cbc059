"""Least attained service first, continuous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.replay.contract.policy import PATIENCE, Parameter, Policy
from gpuctl.replay.order.order import LeastService, Preemptive, Quantum, list_program, placements

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Las(Policy):
    """The jobs with the least attained service run."""

    name = "las"
    title = "the least attained service first; jobs are compared again at every event and every quantum"
    source = "least attained service (foreground-background); attained service as in Tiresias, NSDI 2019"
    preempts = True
    parameters = (
        Parameter("service", "gpu-time", "what counts as service: GPU-seconds or seconds", ("gpu-time", "time")),
        Parameter("quantum", 360.0, "seconds between two comparisons while jobs wait", least=1.0),
        PATIENCE,
    )

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del cluster
        order = Preemptive(
            LeastService(self.params["service"]),
            placements(workload, "any", settings.placement),
            Quantum(self.params["quantum"]),
            patience=int(self.params["patience"]),
        )
        return list_program(order, workload, state)
