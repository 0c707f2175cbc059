"""Aryl (Lyra): nodes on loan from an inference cluster, and elastic jobs that take what is idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.compiled_policy import CompiledPolicy
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.models.inference import with_loans
from gpuctl.replay.models.traits import in_line, traits
from gpuctl.replay.policies.elastic import aryl_kernel, common
from gpuctl.replay.policies.elastic.borrowing_kernel import (
    ARYL,
    ELASTIC,
    FUNGIBLE,
    HOST,
    MEMBER,
    RIGID,
    SHARE,
    Borrowing,
)

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints, Workload


class Aryl(CompiledPolicy):
    """Every `interval` seconds nodes are lent or returned, and elastic jobs get flexible workers."""

    name = "aryl"
    title = "idle inference nodes on loan, returned at the least cost of preemption; elastic jobs use idle GPUs"
    source = (
        "Li et al., Aryl, arXiv 2022 (Lyra, EuroSys 2023): loans, the cost of returning a node, two phases and the "
        "knapsack; the counting of inference GPUs, all ties, the load and the cost of changes: recalled or ours. "
        "The paper's full text was not read"
    )
    oracle = True
    preempts = True
    traits = True
    sets: ClassVar[dict[str, tuple[str, ...]]] = {"overhead": ("pre", "resize")}
    run: ClassVar[Loop | None] = aryl_kernel.run
    reasons = aryl_kernel.ARYL_REASONS
    tallies: ClassVar[dict[str, str]] = {
        "nodes_reclaimed": "reclaimed", "reclaim_preemptions": "thrown", "scale_ins": "scaled_in",
    }  # fmt: skip
    parameters = (
        Parameter(
            "ratio", 3.0, "GPUs of an inference node that do the work of one for training; of a node, whole ones "
            "count", least=1.0, most=1000.0,
        ),
        Parameter("interval", 300.0, "seconds between two decisions on loans and flexible workers", least=1.0),
        Parameter("pre", 63.0, "seconds that a preempted job holds its GPUs without progress; overridden by "
                  "--overhead"),
        Parameter("resize", 15.0, "the same for a job that continues on other GPUs; overridden by --overhead"),
        Parameter("loan", True, "borrow nodes of --inference"),
        Parameter("elastic", True, "give jobs more GPUs than their gang, up to w_max"),
        Parameter("linear", True, "job speed is proportional to GPUs; otherwise by the job's alpha; "
                  "if no option sets the speeds"),
    )  # fmt: skip

    def assumes(self) -> dict[str, str]:
        """See `Policy.assumes`."""
        speeds = "linear" if self.params["linear"] else "scaling"
        return {"rates": speeds, "overhead": f"resume:{self.params['pre']!r}+resize:{self.params['resize']!r}"}

    def extended(self, cluster: Cluster) -> Cluster:
        """See `Policy.extended`.

        Raises:
            UsageError: nodes cannot be lent to a pool, or none is worth a whole GPU.
        """
        if cluster.inference is None or cluster.on_loan:
            return cluster
        gpus = np.floor(cluster.inference.gpus / self.params["ratio"] + 1e-9).astype(np.int64)
        if not gpus.all():
            raise UsageError(
                f"aryl: ratio={self.params['ratio']:g}: a node of {cluster.inference.gpus.min()} GPUs counts as none",
                hint="a smaller ratio, or larger nodes in --inference",
            )
        return with_loans(cluster, gpus)

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """See `CompiledPolicy.memory`.

        Raises:
            UsageError: a placement is set.
        """
        common.begin(self.name, state, settings)
        given = self.params
        self.every = given["interval"]
        known = traits(workload)
        total = int(cluster.gpus.sum())
        least, most = (known.w_min, known.w_max) if given["elastic"] else (workload.gpus, workload.gpus)
        common.bounds(state, least, most)
        elastic = known.w_max > known.w_min
        members = records(workload.size, MEMBER)
        members.place, members.least, members.most, members.first = in_line(workload), least, most, -1
        members.kind = np.where(most > least, ELASTIC, np.where(known.fungible | elastic, FUNGIBLE, RIGID))
        every = np.bitwise_or.reduce(np.uint64(1) << state.nodes.cls.astype(np.uint64))
        plain = bool((state.jobs.mask & every == every).all() and (state.nodes.up == 1).all()) and cluster.down is None
        request = np.stack([least, members.kind, state.jobs.mask.astype(np.int64)], axis=1)
        _, shape = np.unique(request, axis=0, return_inverse=True)
        members.request = shape.reshape(-1)
        many = np.bincount(members.request, minlength=1)
        p = records(1, ARYL)
        p.interval, p.loan, p.elastic, p.plain = given["interval"], given["loan"], given["elastic"], plain
        p.training, p.tick = len(cluster.nodes) - cluster.on_loan, -1
        shares = records(total + 1, SHARE)
        shares.next = np.append(np.arange(1, total + 1), -1)
        groups, items = _most_groups(least, most, total)
        load = cluster.inference if cluster.on_loan else None
        memory = Borrowing(
            p=p,
            hosts=records(len(cluster.nodes), HOST),
            members=members,
            shares=shares,
            line=workload.size,
            changed=workload.size,
            load_t=np.zeros(1) if load is None else load.time_s,
            load_free=np.zeros(1, np.int64) if load is None else load.free,
            load_period=np.full(1, np.inf if load is None else load.period_s),
            heap=workload.size,
            first=np.append(0, np.cumsum(many)),
            size=many.size,
            group=groups,
            items=groups,
            counts=groups,
            values=(groups, items),
            best=(groups + 1, total + 1),
        )
        return (memory,)


def _most_groups(least: Ints, most: Ints, total: int) -> tuple[int, int]:
    """Most elastic jobs that can run at a time, and most choices of flexible workers of one, including none."""
    elastic = most > least
    if not elastic.any():
        return 1, 1
    running = min(int(elastic.sum()), total // max(int(least[elastic].min()), 1) + 1)
    return running, int(min((most - least)[elastic].max(), total)) + 1
