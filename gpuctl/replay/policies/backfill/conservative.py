"""Conservative backfilling: every waiting job has a reservation, and none is delayed by a job behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.contract.planning import (
    LIMITS_FROM,
    ORDER,
    QUOTAS,
    UNLIMITED,
    counts,
    enforce_quotas,
    most_running,
    planned,
    ranks,
)
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.engine.running_jobs_kernel import nobody
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.backfill import conservative_kernel
from gpuctl.replay.policies.backfill.profile_kernel import profile
from gpuctl.replay.policies.backfill.reservation_kernel import CONSERVATIVE, Reservations

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class ConservativeProgram(CompiledProgram):
    """Runs the policy on one simulation."""

    def reserved(self) -> dict[int, float]:
        """The reserved second per waiting job; inf: it fits on no nodes that are up."""
        known = self.memory[0]
        return {int(j): float(known.at[j]) for j in known.line[: int(known.p[0].waiting)]}


class Conservative(Policy):
    """Every waiting job has a reservation; jobs go ahead of others only where they delay none."""

    name = "conservative"
    title = "conservative backfilling: every waiting job has a reservation by time limits, which none behind it delays"
    source = (
        "Mu'alem and Feitelson, TPDS 2001, section 2: a reservation at submission, compressed in queue order whenever "
        "a job ends early"
    )
    plans = True
    resources = True
    run: ClassVar[Loop | None] = conservative_kernel.run
    parameters = (ORDER, QUOTAS, LIMITS_FROM, UNLIMITED)

    def requeues(self) -> tuple[str, ...]:
        """See `Policy.requeues`; jobs with reservations move up before an interrupted job has one again."""
        return ("tail",) if self.params["order"] == "submit" else ()

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        plan = planned(workload, settings, self.params["unlimited"])
        how = placements(workload, "any", settings.placement)
        quotas = self.params["quotas"]
        if quotas:
            enforce_quotas(cluster, state)
        n, nodes = workload.size, state.nodes.size
        p = records(1, CONSERVATIVE)
        p.counts = counts(state, how, quotas=quotas)
        p.quotas = quotas
        # no reservation yet: the first instant makes all from the present nodes
        p.stale = 1
        p.freed_from, p.freed_to = np.inf, -np.inf
        p.next = p.bell = np.inf
        several = settings.resources != GPUS_ONLY
        units = state.asks.units if several else workload.gpus
        pieces = np.zeros(n, np.int64) if p.counts[0] else np.minimum(units, nodes)
        size, gang = np.unique(workload.gpus, return_inverse=True)
        first = np.append(0, np.cumsum(pieces))
        known = Reservations(
            p=p,
            how=how,
            rank=ranks(workload, plan, self.params["order"]),
            line=n,
            at=np.full(n, np.inf),
            first=first[:-1],
            pieces=n,
            node=int(first[-1]),
            gpus=int(first[-1]),
            need=int(first[-1]) if several else 0,
            least=nodes,
            step=n,
            ahead=np.full(n, -1),
            behind=np.full(n, -1),
            place=n,
            look=n,
            block=n // 64 + 1,
            far=np.full(size.size, -1),
            size=size,
            gang=gang.reshape(-1),
            gpus_of=workload.gpus,
            fewest=np.full(size.size, np.inf),
            last=np.full(size.size, -np.inf),
            room=np.full(size.size, np.inf),
            until=np.full(size.size, -np.inf),
            most_s=np.full(size.size, -np.inf),
            turns=size.size,
            members=n,
            plans=n,
            group=size.size + 1,
        )
        p.cpu = nodes + (state.queue_limit.size if quotas else 0)
        columns = 0 if p.counts[0] else int(p.cpu[0]) + (2 * nodes if several else 0)
        running = nobody(plan, nodes, most_running(workload, cluster))
        memory = known, profile(n, columns), running
        return ConservativeProgram(conservative_kernel.run, memory, conservative_kernel.OWN_REASONS)
