"""Jobs in random order, as a baseline for other orders."""

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


class Random(Policy):
    """Every job draws a number at submission; the waiting job with the lowest starts first."""

    name = "random"
    title = "in random order, drawn once for every job from --seed"
    source = "baseline"
    resources = True
    parameters = (Parameter("skip", True, "skip jobs that do not fit"),)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del cluster
        rank = np.random.Generator(np.random.PCG64(settings.seed)).random(workload.size)
        how = placements(workload, "any", settings.placement)
        past_head = BackfillRule.ANY_THAT_FITS if self.params["skip"] else BackfillRule.NOBODY
        return list_program(NonPreemptive(FixedRank(rank), past_head, how), workload, state)
