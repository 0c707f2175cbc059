"""First in, first out: strictly, or with jobs that do not fit skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.order.order import BackfillRule, FixedRank, NonPreemptive, list_program, placements

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Fifo(Policy):
    """Jobs start in order of submission; the first one that does not fit blocks all others."""

    name = "fifo"
    title = "in order of submission; the first job that does not fit blocks all others"
    source = "textbook; head-of-line blocking as in Tiresias' simulator (--schedule=fifo) and AccaSim"
    resources = True
    past_head: ClassVar[BackfillRule] = BackfillRule.NOBODY

    def requeues(self) -> tuple[str, ...]:
        """See `Policy.requeues`."""
        return "head", "tail"

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del cluster
        rank = np.empty(workload.size)
        rank[np.lexsort((np.arange(workload.size), workload.submit))] = np.arange(workload.size)
        how = placements(workload, "any", settings.placement)
        return list_program(NonPreemptive(FixedRank(rank), self.past_head, how), workload, state)


class FifoSkip(Fifo):
    """Jobs start in order of submission; jobs that do not fit are skipped."""

    name = "fifo-skip"
    title = "in order of submission; jobs that do not fit are skipped, without a reservation for them"
    source = "best effort; Tiresias' simulator (--schedule=fjf), FIFO of Alibaba's gpu-v2020 simulator"
    past_head = BackfillRule.ANY_THAT_FITS
