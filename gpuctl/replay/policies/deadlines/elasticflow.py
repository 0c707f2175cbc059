"""ElasticFlow (ASPLOS 2023): jobs whose deadlines can be guaranteed, on the fewest GPUs that suffice, and leftovers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.contract.compiled_policy import CompiledPolicy
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.models.traits import deadline_notes, deadlines, in_line
from gpuctl.replay.order.order import rest_of
from gpuctl.replay.policies.deadlines import elasticflow_kernel
from gpuctl.replay.policies.elastic import common

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

ADMIT = {
    "1": elasticflow_kernel.ONLY_WHO_CAN_BE,
    "0": elasticflow_kernel.ALL,
    "2": elasticflow_kernel.BEST_EFFORT,
}


class ElasticFlow(CompiledPolicy):
    """In slots, guaranteed jobs get the least that meets their deadlines, and what is left goes where it gains most."""

    name = "elasticflow"
    title = "in slots, the fewest GPUs that meet each guaranteed deadline, leftovers by gain; others are declined"
    source = (
        "Gu et al., ElasticFlow, ASPLOS 2023, and its authors' code (pkusys/ElasticFlow, Apache-2.0): admission by "
        "minimum satisfactory share, progressive filling, leftovers by largest gain; the order of ties, restarts and "
        "slots from second 0: ours"
    )
    oracle = True
    preempts = True
    traits = True
    sets: ClassVar[dict[str, tuple[str, ...]]] = {"overhead": ("restart",)}
    run: ClassVar[Loop | None] = elasticflow_kernel.run
    reasons = elasticflow_kernel.ELASTICFLOW_REASONS
    parameters = (
        Parameter("slot", 60.0, "seconds from one decision to the next", least=1.0),
        Parameter(
            "admit",
            "1",
            "1: jobs whose deadlines cannot be guaranteed are declined; 0: all are taken; 2: such jobs run as best "
            "effort",
            tuple(ADMIT),
        ),
        Parameter("grow", True, "leftovers also go to jobs that have GPUs; otherwise only to those that have none"),
        Parameter(
            "restart", 0.0, "seconds that a job on another number of GPUs holds them without progress, except at "
            "its first start",
        ),
    )  # fmt: skip

    def assumes(self) -> dict[str, str]:
        """See `Policy.assumes`."""
        return {"rates": "scaling", "overhead": f"resume:{self.params['restart']!r}"}

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """See `CompiledPolicy.memory`.

        Raises:
            UsageError: a placement is asked for.
        """
        common.begin(self.name, state, settings)
        self.every = self.params["slot"]
        size = workload.size
        most = np.full(size, cluster.total_gpus) if workload.max_gpus is None else workload.max_gpus
        common.bounds(state, np.ones(size, np.int64), most)
        by = deadlines(workload)
        rank = np.empty(size, np.int64)
        rank[np.lexsort((in_line(workload), by))] = np.arange(size)
        p = records(1, elasticflow_kernel.ELASTICFLOW)
        p.slot, p.admit, p.grow = self.params["slot"], ADMIT[self.params["admit"]], self.params["grow"]
        jobs = state.jobs
        jobs.move = jobs.resume = self.params["restart"]
        jobs.suspend = jobs.charge = 0.0
        memory = elasticflow_kernel.ElasticFlow(
            p=p,
            deadline=by,
            rank=rank,
            most=most,
            rest=rest_of(workload),
            line=size,
            new=size,
            sure=size,
            begin=size + 3,
            free=size + 3,
            count=size,
            gain=size,
            heap=size,
        )
        return (memory,)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        memory = self.memory(workload, cluster, settings, state)
        state.g.span = self.every
        return CompiledProgram(elasticflow_kernel.run, memory, self.reasons, deadline_notes(workload))
