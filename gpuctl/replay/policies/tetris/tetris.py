"""Tetris: packing by several resources, with little remaining work and few resources held going first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.contract.tenants import BY, WEIGHTED, WEIGHTS, groups, shapes, share_out
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.engine.state import CONSOLIDATE
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.order.order import placements, rest_of
from gpuctl.replay.order.waiting_kernel import empty
from gpuctl.replay.policies.tetris import tetris_kernel

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload


class Tetris(Policy):
    """Match the job and the node with the best score, repeatedly, until nothing fits."""

    name = "tetris"
    title = "the job whose demands align best with a node's free resources, less its remaining work; no preemption"
    source = (
        "Grandl et al., Multi-Resource Packing for Cluster Schedulers, SIGCOMM 2014; its constants are recalled, not "
        "checked; gangs piece by piece: ours. Neither network nor disk, remote input or barriers"
    )
    oracle = True
    predicts = True
    resources = True
    run: ClassVar[Loop | None] = tetris_kernel.run
    parameters = (
        BY,
        WEIGHTED,
        WEIGHTS,
        Parameter(
            "remaining",
            1.0,
            "weight of the remaining work: times mean alignment by mean work of what fits, it is subtracted; 0: "
            "packing alone",
        ),
        Parameter(
            "fairness",
            0.25,
            "share of the queues or users with waiting jobs that is ignored: those with the largest dominant "
            "shares; below 1",
        ),
    )

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: a placement that leaves no choice, invalid weights, or fairness of 1 or more.
        """
        if settings.placement == "spread":
            raise UsageError("tetris chooses nodes by alignment: it does not go with --placement spread")
        if self.params["fairness"] >= 1:
            raise UsageError(f"tetris: fairness={self.params['fairness']:g}: expected less than 1")
        weights = share_out(self.params, workload, cluster, state, self.name)
        how = placements(workload, "any", settings.placement)
        shape, parties = shapes(state, how), weights.size
        group, first = groups(np.asarray(state.jobs.share, np.int64), shape, parties)
        nodes = state.nodes.size
        p = records(1, tetris_kernel.TETRIS)
        p.weight, p.fairness = self.params["remaining"], self.params["fairness"]
        p.whole, p.parties = bool((how == CONSOLIDATE).any()), parties
        group_rows = records(int(first[-1]), tetris_kernel.GROUP)
        group_rows.kind[group] = shape
        kinds = _shapes(state, shape)
        if not p.weight[0]:
            # then ties go by submission
            kinds.demand = 0.0
        seen = records(nodes, tetris_kernel.SEEN)
        seen.free = -1
        packing = tetris_kernel.Packing(
            p=p,
            shapes=kinds,
            groups=group_rows,
            first=first,
            weights=weights,
            order=np.arange(parties),
            share=parties,
            waiting=parties,
            seen=seen,
            room=nodes,
            rest=rest_of(workload),
            bias=workload.run_time - workload.true_run_time,
        )
        return CompiledProgram(
            tetris_kernel.run, (empty(group, group_rows.size), packing), tetris_kernel.TETRIS_REASONS
        )


def _shapes(state: State, shape: Ints) -> Any:
    """One record per shape, with a representative job."""
    _, one = np.unique(shape, return_index=True)
    found = records(one.size, tetris_kernel.SHAPE)
    found.job, found.stale = one, 1
    found.demand = _part(state.jobs.gpus[one], state.nodes.cap)
    if state.g[0].resources:
        for name in ("cpu", "mem"):
            found.demand += _part(state.asks[name][one], state.stock[name])
    return found


def _part(requested: Ints, there: Ints) -> Floats:
    """Requests as shares of the total of all nodes, if known."""
    total = float(there[there < UNBOUND].sum())
    return requested / total if total > 0 else np.zeros(requested.size)
