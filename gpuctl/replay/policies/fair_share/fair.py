"""Max-min fairness over GPUs, without preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.order.order import BackfillRule, LeastShare, NonPreemptive, list_program, placements

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Fair(Policy):
    """The queue, or user, that holds the fewest GPUs for its weight starts its first job that fits."""

    name = "fair"
    title = "the queue or user that holds the fewest GPUs starts its oldest job that fits (max-min, no preemption)"
    source = "max-min fairness by progressive filling; with GPUs as the only resource the same as DRF (NSDI 2011)"
    resources = True
    parameters = (
        Parameter("by", "queue", "tenants: whose GPUs are counted together", ("queue", "user")),
        Parameter("weighted", False, "weigh queues by their quotas; without quotas all count equally"),
    )

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        by_user = self.params["by"] == "user"
        if by_user:
            state.jobs.share = np.where(workload.user < 0, len(workload.users), workload.user)
        weights = np.ones(state.share_used.size)
        if self.params["weighted"] and not by_user:
            quota = cluster.quota
            weights[: quota.size] = np.where(np.isfinite(quota) & (quota > 0), quota, 1.0)
        how = placements(workload, "any", settings.placement)
        return list_program(NonPreemptive(LeastShare(weights), BackfillRule.ANY_THAT_FITS, how), workload, state)
