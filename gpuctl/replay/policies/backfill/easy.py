"""EASY backfilling: the first job that cannot start has a reservation, and others may go ahead unless they delay it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.planning import (
    LIMITS_FROM,
    ORDER,
    QUOTAS,
    UNLIMITED,
    counts,
    enforce_quotas,
    kinds,
    most_running,
    planned,
    ranks,
)
from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.engine.running_jobs_kernel import nobody
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.backfill import easy_kernel
from gpuctl.replay.policies.backfill.line_kernel import line

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class EasyProgram(CompiledProgram):
    """Runs the policy on one simulation."""

    def reserved(self) -> dict[int, float]:
        """The reserved second of the first waiting job, by job, if it cannot start."""
        p = self.memory[2].p[0]
        return {int(p.head): float(p.at)} if p.head >= 0 else {}


class Easy(Policy):
    """Jobs start in order; after the first one that cannot, others start unless they delay it."""

    name = "easy"
    title = "EASY backfilling: in order of submission; the first job that cannot start has a reservation by time limits"
    source = (
        "Lifka 1995 (the Argonne scheduler for the SP); Mu'alem and Feitelson, TPDS 2001, section 2; exact on pyss "
        "(EasyBackfillScheduler)"
    )
    plans = True
    resources = True
    run: ClassVar[Loop | None] = easy_kernel.run
    parameters = (
        ORDER,
        Parameter(
            "backfill",
            "queue",
            "order in which jobs behind the reserved one are tried: that of the queue, shortest time limit, fewest "
            "GPUs",
            ("queue", "limit", "gpus"),
        ),
        Parameter(
            "passes",
            "instant",
            "one pass for all events of an instant, or one per submission and then per end, as pyss "
            "does (if counting GPUs is enough: a pool, or interchangeable GPUs)",
            ("instant", "event"),
        ),
        QUOTAS,
        LIMITS_FROM,
        UNLIMITED,
    )

    def requeues(self) -> tuple[str, ...]:
        """See `Policy.requeues`."""
        return ("head", "tail") if self.params["order"] == "submit" else ()

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        plan = planned(workload, settings, self.params["unlimited"])
        how = placements(workload, "any", settings.placement)
        quotas = self.params["quotas"]
        if quotas:
            enforce_quotas(cluster, state)
        group = kinds(state, how, by_queue=quotas)
        queue = line(ranks(workload, plan, self.params["order"]), group)
        behind = queue
        if self.params["backfill"] != "queue":
            behind = line(ranks(workload, plan, self.params["backfill"]), group)
        p = records(1, easy_kernel.EASY)
        p.counts = counts(state, how, quotas=quotas)
        p.each = self.params["passes"] == "event"
        if p.each[0] and not p.counts[0]:
            raise UsageError(
                "easy: passes=event counts GPUs only, and here their places, types, quotas, CPUs or memory matter",
                hint="replay GPUs alone on a pool (--cluster pool:512) with quotas=false, or leave passes=event out",
            )
        p.head = p.logged_head = -1
        p.at = np.inf
        nodes, groups = state.nodes.size, int(group.max(initial=0)) + 1
        easy = easy_kernel.Easy(
            p=p,
            how=how,
            then=nodes,
            reserved_gpus=nodes,
            then_need=nodes,
            reserved_need=nodes,
            mine_node=nodes,
            mine_gpus=nodes,
            mine_need=nodes,
            next=groups,
            out=groups,
            late=groups,
        )
        running = nobody(plan, nodes, most_running(workload, cluster))
        return EasyProgram(easy_kernel.run, (queue, behind, easy, running), easy_kernel.OWN_REASONS)
