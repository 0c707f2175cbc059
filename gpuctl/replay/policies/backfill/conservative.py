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
from gpuctl.replay.engine.running_jobs_kernel import nobody
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.backfill import conservative_kernel
from gpuctl.replay.policies.backfill.profile_kernel import profile
from gpuctl.replay.policies.backfill.reservation_kernel import CONSERVATIVE, Reservations

if TYPE_CHECKING:
    from types import ModuleType

    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.running_jobs_kernel import Running
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload
    from gpuctl.replay.policies.backfill.profile_kernel import Profile


class ConservativeProgram:
    """Runs the policy on one simulation.

    Attributes:
        reasons: what the decision log says, after those of all policies.
    """

    reasons = conservative_kernel.OWN_REASONS

    def __init__(self, known: Reservations, free: Profile, running: Running) -> None:
        self._known = known
        self._free = free
        self._running = running

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants."""
        return int(conservative_kernel.run(state, self._known, self._free, self._running, until, steps))

    def copy(self) -> ConservativeProgram:
        """The same with a memory of its own."""
        return ConservativeProgram(self._known.copy(), self._free.copy(), self._running.copy())

    def reserved(self) -> dict[int, float]:
        """The second for which GPUs are reserved, by waiting job; inf: it fits on no servers that are up."""
        line = self._known.line[: int(self._known.p[0].waiting)]
        return {int(j): float(self._known.at[j]) for j in line}


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
    kernel: ClassVar[ModuleType | None] = conservative_kernel
    parameters = (ORDER, QUOTAS, LIMITS_FROM, UNLIMITED)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        plan = planned(workload, settings, self.params["unlimited"])
        how = placements(workload, "any", settings.placement)
        quotas = self.params["quotas"]
        if quotas:
            enforce_quotas(cluster, state)
        n, servers = workload.size, state.servers.size
        p = records(1, CONSERVATIVE)
        p.counts = counts(state, how, quotas=quotas)
        p.quotas = quotas
        # no reservation yet: the first instant makes all anew, from the servers there are
        p.stale = 1
        p.freed_from, p.freed_to = np.inf, -np.inf
        p.next = p.bell = np.inf
        several = settings.resources != GPUS_ONLY
        units = state.asks.units if several else workload.gpus
        pieces = np.zeros(n, np.int64) if p.counts[0] else np.minimum(units, servers)
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
            server=int(first[-1]),
            gpus=int(first[-1]),
            need=int(first[-1]) if several else 0,
            least=servers,
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
        p.cpu = servers + (state.queue_limit.size if quotas else 0)
        columns = 0 if p.counts[0] else int(p.cpu[0]) + (2 * servers if several else 0)
        running = nobody(plan, servers, most_running(workload, cluster))
        return ConservativeProgram(known, profile(n, columns), running)
