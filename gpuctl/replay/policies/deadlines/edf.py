"""Earliest deadline first, with preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.models.traits import deadline_notes, deadlines, in_line
from gpuctl.replay.order.order import FixedRank, Preemptive, list_program, placements

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Edf(Policy):
    """At every submission and end GPUs go to jobs by deadline; who gets none any more is preempted."""

    name = "edf"
    title = "the earliest deadline first, with preemption; jobs that do not fit are skipped"
    source = "textbook; the baseline of ElasticFlow (ASPLOS 2023), in a plain form"
    oracle = True
    preempts = True
    sets: ClassVar[dict[str, tuple[str, ...]]] = {"overhead": ("restart",)}
    parameters = (
        Parameter(
            "restart", 0.0, "seconds that a job holds its GPUs without progress at each later start; --overhead in its "
            "place",
        ),
    )  # fmt: skip

    def assumes(self) -> dict[str, str]:
        """See `Policy.assumes`."""
        return {"overhead": f"resume:{self.params['restart']!r}"}

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del cluster
        # given deadlines reveal nothing about run times
        self.oracle = workload.deadline is None
        rank = np.empty(workload.size)
        rank[np.lexsort((in_line(workload), deadlines(workload)))] = np.arange(workload.size)
        order = Preemptive(FixedRank(rank), placements(workload, "any", settings.placement))
        program = list_program(order, workload, state)
        program.notes = deadline_notes(workload)
        return program
