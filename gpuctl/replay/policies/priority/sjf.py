"""Shortest job first, without preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.order.order import BackfillRule, FixedRank, NonPreemptive, list_program, placements

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Sjf(Policy):
    """The waiting job with the shortest run time starts first."""

    name = "sjf"
    title = "the shortest run time first, without preemption"
    source = "textbook; AccaSim ShortestJobFirst (skip=false), SJF of Alibaba's gpu-v2020 simulator (skip=true)"
    oracle = True
    predicts = True
    resources = True
    parameters = (
        Parameter("skip", False, "skip jobs that do not fit; otherwise the first of them blocks all others"),
        Parameter(
            "by",
            "duration",
            "measure of length: the true run time, that times GPUs, the GPUs alone, or the requested run time",
            ("duration", "gpu-time", "gpus", "limit"),
        ),
    )

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del cluster
        total = workload.run_time
        limit = np.where(np.isnan(workload.planned_time), np.inf, workload.planned_time)
        rank = {"duration": total, "gpu-time": total * workload.gpus, "gpus": workload.gpus, "limit": limit}
        how = placements(workload, "any", settings.placement)
        ranks = FixedRank(np.asarray(rank[self.params["by"]], np.float64))
        past_head = BackfillRule.ANY_THAT_FITS if self.params["skip"] else BackfillRule.NOBODY
        return list_program(NonPreemptive(ranks, past_head, how), workload, state)
