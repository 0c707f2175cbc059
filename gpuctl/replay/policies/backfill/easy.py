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
from gpuctl.replay.engine.running_jobs_kernel import nobody
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.backfill import easy_kernel
from gpuctl.replay.policies.backfill.line_kernel import line

if TYPE_CHECKING:
    from types import ModuleType

    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.running_jobs_kernel import Running
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload
    from gpuctl.replay.policies.backfill.line_kernel import Line


class EasyProgram:
    """Runs the policy on one simulation.

    Attributes:
        reasons: what the decision log says, after those of all policies.
    """

    reasons = easy_kernel.OWN_REASONS

    def __init__(self, queue: Line, behind: Line, easy: easy_kernel.Easy, running: Running) -> None:
        self._queue = queue
        self._behind = behind
        self._easy = easy
        self._running = running

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants."""
        return int(easy_kernel.run(state, self._queue, self._behind, self._easy, self._running, until, steps))

    def copy(self) -> EasyProgram:
        """The same with a memory of its own."""
        queue = self._queue.copy()
        behind = queue if self._behind is self._queue else self._behind.copy()
        return EasyProgram(queue, behind, self._easy.copy(), self._running.copy())

    def reserved(self) -> dict[int, float]:
        """The second for which GPUs are reserved, by job: of the one that waits first, if any cannot start."""
        p = self._easy.p[0]
        return {int(p.head): float(p.at)} if p.head >= 0 else {}


class Easy(Policy):
    """Jobs start in order; behind the first one that cannot, others start unless they delay it."""

    name = "easy"
    title = "EASY backfilling: in order of submission; the first job that cannot start has a reservation by time limits"
    source = (
        "Lifka 1995 (the Argonne scheduler for the SP); Mu'alem and Feitelson, TPDS 2001, section 2; exact on pyss "
        "(EasyBackfillScheduler)"
    )
    plans = True
    resources = True
    kernel: ClassVar[ModuleType | None] = easy_kernel
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
            "one pass for all that happens at an instant, or one for each submission and then for each end, as pyss "
            "has it (where counting GPUs is enough: a pool, or any GPUs will do)",
            ("instant", "event"),
        ),
        QUOTAS,
        LIMITS_FROM,
        UNLIMITED,
    )

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
        p.head = p.told = -1
        p.at = np.inf
        servers, groups = state.servers.size, int(group.max(initial=0)) + 1
        easy = easy_kernel.Easy(
            p=p,
            how=how,
            then=servers,
            kept=servers,
            then_need=servers,
            kept_need=servers,
            mine_server=servers,
            mine_gpus=servers,
            mine_need=servers,
            next=groups,
            out=groups,
            late=groups,
        )
        return EasyProgram(queue, behind, easy, nobody(plan, servers, most_running(workload, cluster)))
