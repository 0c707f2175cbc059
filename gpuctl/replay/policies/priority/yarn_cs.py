"""The baseline that papers call YARN-CS: one strict FIFO queue for each virtual cluster."""

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


class YarnCs(Policy):
    """Each queue starts its jobs strictly in order of submission, up to its quota; nobody is preempted."""

    name = "yarn-cs"
    title = "one strict FIFO queue for each virtual cluster, up to its quota, without preemption"
    source = "the baseline YARN-CS of Tiresias, NSDI 2019; a part of YARN's capacity scheduler, not all of it"
    resources = True
    parameters = (Parameter("borrow", True, "queues may hold more than their quotas while GPUs are free"),)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        order = NonPreemptive(
            FixedRank(np.arange(workload.size, dtype=np.float64)),
            BackfillRule.HEADS_OF_OTHER_QUEUES,
            placements(workload, "consolidate", settings.placement),
            queue_limit=None if self.params["borrow"] else cluster.quota.astype(np.float64),
        )
        return list_program(order, workload, state)
