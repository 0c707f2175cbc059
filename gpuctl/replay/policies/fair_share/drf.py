"""Dominant resource fairness, without preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.contract.tenants import BY, WEIGHTED, WEIGHTS, groups, shapes, share_out
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.order.order import placements
from gpuctl.replay.order.waiting_kernel import empty
from gpuctl.replay.policies.fair_share import drf_kernel

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Drf(Policy):
    """At every event the queue or user with the least dominant share starts its next job, until none fits."""

    name = "drf"
    title = "the queue or user with the least dominant share of GPUs, CPUs and memory starts its next job"
    source = (
        "Ghodsi et al., Dominant Resource Fairness, NSDI 2011: progressive filling at each arrival and end, weights "
        "(section 4.3); gangs start whole, a queue whose job does not fit is skipped unless strict: ours"
    )
    resources = True
    run: ClassVar[Loop | None] = drf_kernel.run
    parameters = (
        BY,
        WEIGHTED,
        WEIGHTS,
        Parameter(
            "next",
            "first",
            "which job a queue or user starts: only its first one, or the first one that fits",
            ("first", "fits"),
        ),
        Parameter(
            "strict",
            False,
            "the tenant with the least share blocks all others until its first job fits; otherwise it is skipped, and "
            "large gangs may wait long",
        ),
    )

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: invalid weights, or strict with next=fits.
        """
        if self.params["strict"] and self.params["next"] == "fits":
            raise UsageError("drf: strict waits for the first job, next=fits for another", hint="choose one of them")
        weights = share_out(self.params, workload, cluster, state, self.name)
        how = placements(workload, "any", settings.placement)
        shape = shapes(state, how)
        party = np.asarray(state.jobs.share, np.int64)
        count = weights.size
        by_shape = self.params["next"] == "fits"
        group, first = groups(party, shape, count) if by_shape else (party, np.arange(count + 1))
        queue = empty(group, int(first[-1]))
        queue.key[:] = np.arange(workload.size)
        p = records(1, drf_kernel.DRF)
        p.strict, p.any_job = self.params["strict"], by_shape
        shares = drf_kernel.Shares(
            p=p,
            weights=weights,
            how=how,
            shape=shape,
            bad=np.full(int(shape.max(initial=0)) + 1, -1),
            first=first,
            party=count,
            share=count,
            job=count,
        )
        return CompiledProgram(drf_kernel.run, (queue, shares), drf_kernel.DRF_REASONS)
