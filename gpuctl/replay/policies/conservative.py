"""Conservative backfilling: every waiting job has a reservation, and none is delayed by a job behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay import conservative_kernel
from gpuctl.replay.listprogram import placements
from gpuctl.replay.planning import LIMITS_FROM, ORDER, QUOTAS, UNLIMITED, counts, enforce_quotas, planned, ranks
from gpuctl.replay.policy import Policy
from gpuctl.replay.profile_kernel import profile
from gpuctl.replay.reservation_kernel import CONSERVATIVE, Reservations
from gpuctl.replay.running_kernel import nobody
from gpuctl.replay.state import records

if TYPE_CHECKING:
    from gpuctl.replay.build import Settings
    from gpuctl.replay.model import Cluster, Workload
    from gpuctl.replay.policy import Program
    from gpuctl.replay.profile_kernel import Profile
    from gpuctl.replay.running_kernel import Running
    from gpuctl.replay.state import State


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
        pieces = np.zeros(n, np.int64) if p.counts[0] else np.minimum(workload.gpus, servers)
        kind = np.unique(np.stack([workload.gpus, plan]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        first = np.append(0, np.cumsum(pieces))
        known = Reservations(
            p=p,
            how=how,
            rank=ranks(workload, plan, self.params["order"]),
            line=np.zeros(n, np.int64),
            at=np.full(n, np.inf),
            first=first[:-1],
            pieces=np.zeros(n, np.int64),
            server=np.zeros(int(first[-1]), np.int64),
            gpus=np.zeros(int(first[-1]), np.int64),
            least=np.zeros(servers, np.int64),
            kind=kind,
            known=np.zeros(kind.max(initial=0) + 1),
            known_at=np.zeros(kind.max(initial=0) + 1),
            known_round=np.zeros(kind.max(initial=0) + 1, np.int64),
            known_moves=np.zeros(kind.max(initial=0) + 1, np.int64),
            low_move=np.zeros(n, np.int64),
            low_from=np.zeros(n),
        )
        columns = 1 if p.counts[0] else 1 + servers + (state.queue_limit.size if quotas else 0)
        return ConservativeProgram(known, profile(n, columns), nobody(plan, servers, cluster.total_gpus))
