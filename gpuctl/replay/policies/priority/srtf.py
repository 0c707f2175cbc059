"""Shortest remaining time, or GPU-time, first, with preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.order.order import LeastRemaining, Preemptive, list_program, placements

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Srtf(Policy):
    """Of all jobs, running and waiting, those with the shortest remaining time run."""

    name = "srtf"
    title = "the shortest remaining run time first; running jobs with a longer one are preempted"
    source = "textbook; Tiresias' simulator (--schedule=shortest), Helios and Lucid (srtf, with their overheads)"
    oracle = True
    predicts = True
    preempts = True
    parameters = (
        Parameter(
            "ties",
            "list",
            "which of two equal jobs goes first: the one earlier in the list at the last pass, or the waiting one",
            ("list", "waiting"),
        ),
    )
    by_gpus: ClassVar[bool] = False

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del cluster
        ranks = LeastRemaining(
            weight=workload.gpus.astype(np.float64) if self.by_gpus else None,
            waiting_first=self.params["ties"] == "waiting",
        )
        how = placements(workload, "any", settings.placement)
        return list_program(Preemptive(ranks, how), workload, state)


class Srsf(Srtf):
    """Of all jobs, those with the least remaining service, in GPU-seconds, run."""

    name = "srsf"
    title = "the least remaining GPU-time (run time times GPUs) first; running jobs with more are preempted"
    source = "shortest remaining service first; Tiresias' simulator (--schedule=shortest-gpu)"
    by_gpus = True
