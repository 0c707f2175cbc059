"""PickyMan: preempt the cheapest jobs if another job gains more than they lose."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.contract.policy import PATIENCE, Parameter, Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.engine.state import EPOCH
from gpuctl.replay.order.order import placements, rest_of
from gpuctl.replay.policies.pickyman import pickyman_kernel
from gpuctl.replay.policies.pickyman.lookahead_kernel import PICKY, Picky

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class PickyMan(Policy):
    """Waiting jobs in order of predicted GPU-time and age; victims are chosen by their present cost of preemption."""

    name = "pickyman"
    title = "the least predicted GPU-time first, aged by waiting; preempts if a short job gains more than others lose"
    source = (
        "reconstructed from the published abstract of PickyMan (Chen et al., IPCCC 2022, "
        "doi 10.1109/IPCCC55026.2022.9894345): an ordered division of the running jobs, by a greedy algorithm, with "
        "predicted run times and overheads; the order, the scores and all constants are ours"
    )
    oracle = True
    predicts = True
    preempts = True
    run: ClassVar[Loop | None] = pickyman_kernel.run
    parameters = (
        Parameter("age", 4 * 3600.0, "seconds of waiting that double a job's priority", least=1.0),
        Parameter("every", 60.0, "seconds between passes over running jobs while jobs wait, but at most 1000 in "
                  "an epoch: near the end of its epoch a job is cheap to preempt; 0: only when something happens",
                  above=0.001),
        Parameter("most", 3.0, "preemptions after which a job is protected"),
        Parameter("depth", 100.0, "waiting jobs, in order, for which preemptions are considered"),
        PATIENCE,
    )  # fmt: skip

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`; by default, victims finish their epochs first."""
        del cluster
        n, nodes = workload.size, state.nodes.size
        state.g.patience = int(self.params["patience"])
        if settings.mode is None:
            state.g.mode = EPOCH
        how = placements(workload, "any", settings.placement)
        kinds, kind = np.unique(
            np.stack([state.jobs.gpus.astype(np.uint64), state.jobs.mask, how.astype(np.uint64)]),
            axis=1,
            return_inverse=True,
        )
        most = int(state.g[0].total) + nodes + 64
        p = records(1, PICKY)
        p.age, p.every, p.most = self.params["age"], self.params["every"], int(self.params["most"])
        p.depth = int(self.params["depth"])
        p.near = NEAR
        ints = {
            name: np.zeros(n + 64, np.int64)
            for name in ("wait", "run", "picked", "leaving", "victims", "claim_job", "claim_first")
        }
        floats = {name: np.zeros(n) for name in ("key", "end", "loss", "delay")}
        picky = Picky(
            p=p,
            bias=workload.run_time - workload.true_run_time,
            rest=rest_of(workload),
            how=how,
            kind=kind.reshape(-1).astype(np.int64),
            bad=np.full(kinds.shape[1], -1),
            natural=kinds.shape[1],
            natural_of=np.full(kinds.shape[1], -1),
            claim_node=most,
            claim_gpus=most,
            claimed=nodes,
            sim=nodes,
            ends=2 * n + 64,
            ends_gpus=2 * n + 64,
            **ints,
            **floats,
        )
        return CompiledProgram(pickyman_kernel.run, (picky,))


NEAR = 0.1
"""Share of an epoch before its end that the decision log calls near."""
