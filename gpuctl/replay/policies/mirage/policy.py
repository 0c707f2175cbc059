"""Slurm as Mirage's authors simulate it: strict order of age in whole minutes, and backfill each tenth minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.planning import LIMITS_FROM, UNLIMITED, planned
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.mirage import mirage_kernel
from gpuctl.replay.policies.mirage.order import ranks
from gpuctl.replay.policies.mirage.slots_kernel import SLOTS

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Mirage(Policy):
    """Jobs start at whole minutes, in order of age; in each tenth minute a plan by time limits fills the gaps."""

    name = "mirage"
    title = "Slurm as Mirage's authors simulate it: by age in whole minutes, and backfill by limits each tenth minute"
    source = (
        "Ding et al., Mirage, SC'23 (arXiv 2306.14086), and its authors' simulator (zhaozhang/Mirage, src/sim), whose "
        "starts it reproduces"
    )
    plans = True
    run: ClassVar[Loop | None] = mirage_kernel.run
    parameters = (LIMITS_FROM, UNLIMITED)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del state
        limit = np.ceil(planned(workload, settings, self.params["unlimited"]) / 60.0)
        minute = np.ceil(workload.submit / 60.0).astype(np.int64)
        size = workload.size
        memory = mirage_kernel.Memory(
            rank=ranks(workload.ids, minute, workload.gpus, cluster.total_gpus),
            limit=np.maximum(limit, 1).astype(np.int64),
            how=placements(workload, "any", settings.placement),
            line=size,
            run=size,
            nodes=size,
            until=size,
            slots=SLOTS,
            starts=size,
            n=3,
        )
        return CompiledProgram(mirage_kernel.run, (memory,), mirage_kernel.OWN_REASONS)
