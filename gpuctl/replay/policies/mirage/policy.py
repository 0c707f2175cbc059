"""Slurm as Mirage's authors simulate it: strict order of age in whole minutes, and backfill each tenth minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.planning import LIMITS_FROM, UNLIMITED, planned
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.mirage import mirage_kernel
from gpuctl.replay.policies.mirage.slots_kernel import SLOTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints, Workload


def ranks(ids: Sequence[str], minute: Ints, nodes: Ints, size: int) -> Ints:
    """Position of each job in the queue, 0 first.

    Priority is 100 x nodes / size at submission plus 7000 / (7 x 1440) per minute since, without bound: in whole
    numbers ``3600 x nodes - 25 x size x minute``, whose order is constant. Ties go by submission, then by the jobs'
    names as text.

    Args:
        ids: names of the jobs.
        minute: of submission.
        nodes: requested by each.
        size: nodes of the cluster.
    """
    text = np.empty(len(ids), np.int64)
    text[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    rank = np.empty(len(ids), np.int64)
    rank[np.lexsort((text, minute, 25 * size * minute - 3600 * nodes))] = np.arange(len(ids))
    return rank


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
