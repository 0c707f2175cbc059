"""Themis: what is free is auctioned among the jobs that fare least fairly, and leased."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.compiled_policy import CompiledPolicy
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.models.traits import in_line
from gpuctl.replay.policies.elastic import common, themis_kernel
from gpuctl.replay.policies.elastic.auction_kernel import SALE, Auction
from gpuctl.replay.policies.elastic.themis_kernel import BIDDER, CONTENTION, THEMIS, THEMIS_REASONS, Book

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


MOST_SUMS = 1 << 30
"""Of an auction's optimum, by bidder and GPUs: their memory is set aside at the start."""


class Themis(CompiledPolicy):
    """Jobs bid for GPUs by finish-time fairness; the least fairly treated are offered them first, for a lease."""

    name = "themis"
    title = "GPUs are leased by auction to the jobs that fare least fairly; winners pay with a part of what they won"
    source = (
        "Mahajan et al., Themis, NSDI 2020: finish-time fairness, an offer to a part of the jobs, auctions with hidden "
        "payments, leftovers; leases of 20 min and the demand form of fairness: the first author's simulator; ties, "
        "one lease a job, restarts in bids, leftovers by rank: ours. The paper's full text was not read"
    )
    oracle = True
    preempts = True
    traits = True
    run: ClassVar[Loop | None] = themis_kernel.run
    reasons = THEMIS_REASONS
    parameters = (
        Parameter("lease", 1200.0, "seconds for which GPUs are won; the first author's simulator", least=1.0),
        Parameter("f", 0.8, "share of the bidders, those that fare best, that is offered leftovers alone", most=1.0),
        Parameter("payments", True, "winners pay with a part of what they won"),
        Parameter("rigid", False, "jobs run on as many GPUs as they ask for or none, and nobody pays"),
        Parameter(
            "contention",
            "none",
            "what a job's time alone is multiplied by: nothing, the mean number of unfinished jobs, or the mean GPUs "
            "that these ask for by all GPUs, at least 1",
            choices=CONTENTION,
        ),
        Parameter(
            "restart", 62.0, "seconds that a job on other GPUs holds them without progress; --overhead in its place"
        ),
    )

    def assumes(self) -> dict[str, str]:
        """See `Policy.assumes`."""
        return {"rates": "traits", "overhead": f"resume:{self.params['restart']!r}"}

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """See `CompiledPolicy.memory`.

        Raises:
            UsageError: a placement is asked for, or the cluster is too large for auctions.
        """
        common.begin(self.name, state, settings)
        given, jobs, gpus = self.params, workload.size, cluster.total_gpus
        if min(jobs, gpus) * gpus > MOST_SUMS:
            raise UsageError(
                f"themis: {gpus:,} GPUs are more than its auctions can sell",
                hint=f"expected at most {math.isqrt(MOST_SUMS):,} with as many jobs; replay a part of the cluster",
            )
        bidders = records(jobs, BIDDER)
        bidders.place = in_line(workload)
        ideal = np.add.reduceat(state.segment_s, workload.segment_start[:-1]) if jobs else np.zeros(0)
        bidders.ideal = np.maximum(ideal, common.INSTANT_S)
        bidders.least = 1 if workload.min_gpus is None else np.minimum(workload.min_gpus, workload.gpus)
        if given["rigid"]:
            bidders.least = workload.gpus
        common.bounds(state, bidders.least.copy(), workload.gpus)
        p = records(1, THEMIS)
        p.lease, p.outside, p.gpus = given["lease"], given["f"], gpus
        p.payments = given["payments"] and not given["rigid"]
        p.contention = CONTENTION.index(given["contention"])
        widest = int(workload.gpus.max(initial=0))
        book = Book(
            p=p,
            bidders=bidders,
            level=common.levels(cluster),
            line=jobs,
            ended=jobs,
            order=jobs,
            rank=jobs,
            mine=len(cluster.servers),
            more=len(cluster.servers),
            racks=int(cluster.rack.max(initial=0)) + 1,
        )
        auction = Auction(
            p=records(1, SALE),
            least=jobs,
            most=jobs,
            # as many again at its end, see `sell`
            admitted=2 * jobs,
            won=jobs,
            instead=jobs,
            kept=jobs,
            row=jobs,
            filled=jobs,
            value=(min(jobs, 2 * gpus) + 1, widest + 1),
            best=(2, gpus + 1),
            take=(min(jobs, gpus) + 1, gpus + 1),
        )
        return book, auction
