"""Mesos: an allocator that offers resources, and frameworks that accept or decline them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.contract.tenants import BY, WEIGHTED, WEIGHTS, shapes, share_out
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.order.order import placements
from gpuctl.replay.order.waiting_kernel import empty
from gpuctl.replay.policies.fair_share import mesos_kernel

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

MOST_FILTERS = 50_000_000
"""Most frameworks times agents: two gigabytes of filters."""


class Mesos(Policy):
    """In each cycle the tenant with the least dominant share is offered free resources, and accepts or declines."""

    name = "mesos"
    title = "free resources are offered to the queue or user with the least dominant share, which accepts or declines"
    source = (
        "Hindman et al., Mesos, NSDI 2011; filters as in the allocator of Apache Mesos (RefusedOfferFilter, "
        "refuse_seconds 5, allocation_interval 1 s, REVIVE, offer_timeout); queues or users as frameworks: ours"
    )
    resources = True
    run: ClassVar[Loop | None] = mesos_kernel.run
    parameters = (
        BY,
        WEIGHTED,
        WEIGHTS,
        Parameter("cycle", 1.0, "seconds between allocations (allocation_interval)", least=0.001),
        Parameter("filter", 5.0, "seconds for which a declined offer is not repeated (refuse_seconds)"),
        Parameter(
            "revive", 30.0, "seconds after which a waiting framework clears its filters (REVIVE); assumed", least=0.001
        ),
        Parameter("min_offer", 0.0, "free GPUs below which a node that is not idle is not offered"),
        Parameter("hold", False, "keep offers in which the first job does not fit, to gather more; otherwise decline"),
        Parameter(
            "offer_timeout",
            30.0,
            "with hold: seconds after which a held offer is rescinded",
            least=0.001,
        ),
    )

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: invalid weights, or too many filters (frameworks times nodes).
        """
        weights = share_out(self.params, workload, cluster, state, self.name)
        nodes = state.nodes.size
        if weights.size * nodes > MOST_FILTERS:
            raise UsageError(
                f"mesos: {weights.size:,} frameworks times {nodes:,} nodes: more filters than memory holds",
                hint="by=queue has fewer frameworks than by=user",
            )
        how = placements(workload, "any", settings.placement)
        shape = shapes(state, how)
        queue = empty(np.asarray(state.jobs.share, np.int64), weights.size)
        queue.key[:] = np.arange(workload.size)
        p = records(1, mesos_kernel.MESOS)
        p.cycle, p.filter, p.revive = self.params["cycle"], self.params["filter"], self.params["revive"]
        p.hold, p.least = self.params["hold"], int(np.ceil(self.params["min_offer"]))
        p.resort = 1
        p.timeout = self.params["offer_timeout"] if self.params["hold"] else 0.0
        frameworks = records(weights.size, mesos_kernel.FRAMEWORK)
        frameworks.weight, frameworks.due, frameworks.revive = weights, np.inf, np.inf
        agents = records(nodes, mesos_kernel.AGENT)
        agents.offered, agents.owner = -np.inf, -1
        filters = records(weights.size * nodes, mesos_kernel.FILTER)
        filters.until = -np.inf
        offers = mesos_kernel.Offers(
            p=p,
            frameworks=frameworks,
            agents=agents,
            filters=filters,
            order=np.arange(weights.size),
            how=how,
            shape=shape,
            bad=np.full(int(shape.max(initial=0)) + 1, -1),
        )
        return CompiledProgram(mesos_kernel.run, (queue, offers), mesos_kernel.MESOS_REASONS)
