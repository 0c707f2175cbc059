"""The scheduler of the Philly clusters, as the ATC 2019 analysis describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.contract.policy import PATIENCE, Parameter, Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.order.waiting_kernel import empty
from gpuctl.replay.policies.philly import philly_kernel, prerun

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Philly(Policy):
    """Queues within their quotas go first, gangs are gathered on few servers, and ask for less locality each time."""

    name = "philly"
    title = "quotas for virtual clusters, idle GPUs lent and taken back, gangs gathered with less and less locality"
    source = (
        "Jeon et al., ATC 2019 (arXiv 1901.05758), section 2; its constants are recalled, not checked, and the "
        "number of "
        "attempts a level is ours"
    )
    preempts = True
    run: ClassVar[Loop | None] = philly_kernel.run
    parameters = (
        Parameter("acquire", 150.0, "seconds that GPUs are held while a gang is gathered; 0: never held"),
        Parameter("backoff", 120.0, "seconds from a failed attempt to the next one"),
        Parameter("tries", 3.0, "failed attempts after which a gang asks for less locality: fewest servers of one "
                  "rack, "
                  "one rack, anywhere", least=1.0),
        Parameter("busy", 0.9, "share of all GPUs in use from which on lent GPUs are taken back", most=1.0),
        Parameter("borrow", True, "queues may use idle GPUs beyond their quotas"),
        PATIENCE,
        *prerun.PARAMETERS,
    )  # fmt: skip

    def asks_why(self) -> bool:
        """See `Policy.asks_why`."""
        return bool(self.params["prerun"] > 0 or self.params["retry"] > 0)

    def extended(self, cluster: Cluster) -> Cluster:
        """See `Policy.extended`."""
        return prerun.set_apart(cluster, self.params)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del settings
        state.g.patience = int(self.params["patience"])
        levels = philly_kernel.LEVELS
        jobs = state.jobs
        kinds, kind = np.unique(np.stack([jobs.gpus.astype(np.uint64), jobs.mask]), axis=1, return_inverse=True)
        kind = kind.reshape(-1)
        pairs, pair = np.unique(np.stack([jobs.queue, kind]), axis=1, return_inverse=True)
        pair = pair.reshape(-1)
        queue = empty(pair * levels, pairs.shape[1] * levels)
        rank = np.empty(workload.size)
        rank[np.lexsort((np.arange(workload.size), workload.submit))] = np.arange(workload.size)
        queue.key[:] = rank
        queues = state.queue_used.size
        p = records(1, philly_kernel.PHILLY)
        p.acquire, p.backoff, p.busy = self.params["acquire"], self.params["backoff"], self.params["busy"]
        p.tries, p.borrow = int(self.params["tries"]), self.params["borrow"]
        quota = np.full(queues, np.inf)
        quota[: cluster.quota.size] = cluster.quota[:queues]
        gangs = philly_kernel.Gangs(
            p=p,
            quota=quota,
            level=workload.size,
            tries=workload.size,
            queue_of=np.repeat(pairs[0], levels),
            kind_of=(pairs[1][:, None] * levels + np.arange(levels)).reshape(-1),
            bad=np.full(kinds.shape[1] * levels, -1),
            first=np.full(queues, -1),
            gatherer=np.full(queues, -1),
            hold=(queues, state.servers.size),
            held=queues,
            since=queues,
            lent=workload.size + cluster.total_gpus + 64,
        )
        catcher, notes = prerun.catcher(workload, cluster, state, self.params)
        return CompiledProgram(philly_kernel.run, (queue, gangs, catcher), notes=notes)
