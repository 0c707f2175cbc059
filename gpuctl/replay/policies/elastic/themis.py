"""Themis: free GPUs are auctioned among the jobs with the worst fairness, and leased."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.compiled_policy import CompiledPolicy
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.engine.state import INSTANT_S
from gpuctl.replay.models.traits import in_line
from gpuctl.replay.policies.elastic import common, themis_kernel
from gpuctl.replay.policies.elastic.auction_kernel import SALE, Auction
from gpuctl.replay.policies.elastic.themis_app_kernel import THEMIS_REASONS
from gpuctl.replay.policies.elastic.themis_state import BIDDER, CONTENTION, PART, THEMIS, Book

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


MOST_SUMS = 1 << 30
"""Most sums of an auction's optimum, by bidder and GPUs; their memory is allocated at the start."""


class Themis(CompiledPolicy):
    """Jobs bid for GPUs by finish-time fairness; the least fairly treated are offered them first, for a lease."""

    name = "themis"
    title = "GPUs are leased by auction to the jobs that fare least fairly; winners pay with a part of their GPUs"
    source = (
        "Mahajan et al., Themis, NSDI 2020: finish-time fairness, an offer to a part of the jobs, auctions with hidden "
        "payments, leftovers; leases of 20 min and the demand form of fairness: the first author's simulator; ties, "
        "one lease per job, restarts in bids, leftovers by rank: ours. The paper's full text was not read"
    )
    oracle = True
    preempts = True
    traits = True
    sets: ClassVar[dict[str, tuple[str, ...]]] = {"overhead": ("restart",)}
    run: ClassVar[Loop | None] = themis_kernel.run
    reasons = THEMIS_REASONS
    parameters = (
        Parameter("lease", 1200.0, "seconds for which GPUs are won; the first author's simulator", least=1.0),
        Parameter("f", 0.8, "share of the bidders, the best off, that are only offered leftovers", most=1.0),
        Parameter("payments", True, "winners pay with a part of their GPUs"),
        Parameter("rigid", False, "jobs run on exactly as many GPUs as they request, and there are no payments"),
        Parameter(
            "contention",
            "none",
            "factor of a job's time alone: none, the mean number of unfinished jobs, or the mean GPUs "
            "that these request over all GPUs, at least 1",
            choices=CONTENTION,
        ),
        Parameter(
            "restart", 62.0, "seconds that a job on new GPUs holds them without progress; overridden by --overhead"
        ),
    )

    def assumes(self) -> dict[str, str]:
        """See `Policy.assumes`."""
        return {"rates": "traits", "overhead": f"resume:{self.params['restart']!r}"}

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """See `CompiledPolicy.memory`.

        Raises:
            UsageError: a placement is set, or the cluster is too large for auctions.
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
        if workload.beyond is not None:
            # it does not know which jobs a search kills
            bidders.beyond = workload.beyond
            ideal += workload.beyond
        bidders.ideal = np.maximum(ideal, INSTANT_S)
        bidders.least = 1 if workload.min_gpus is None else np.minimum(workload.min_gpus, workload.gpus)
        if given["rigid"]:
            bidders.least = workload.gpus
        apps = _join(workload, bidders)
        common.bounds(state, bidders.least.copy(), workload.gpus)
        p = records(1, THEMIS)
        p.lease, p.outside, p.gpus = given["lease"], given["f"], gpus
        p.payments = given["payments"] and not given["rigid"]
        p.apps = apps
        p.contention = CONTENTION.index(given["contention"])
        widest = int(workload.gpus.max(initial=0))
        if apps:
            widest = max(widest, min(gpus, int(np.bincount(bidders.head, weights=workload.gpus).max())))
        book = Book(
            p=p,
            bidders=bidders,
            level=common.levels(cluster),
            line=jobs,
            ended=jobs,
            order=jobs,
            rank=jobs,
            mine=len(cluster.nodes),
            more=len(cluster.nodes),
            racks=int(cluster.rack.max(initial=0)) + 1,
            gone=jobs if apps else 0,
            carried=records(gpus if apps else 0, PART),
            parts=records(gpus if apps else 0, PART),
            whole=len(cluster.nodes),
            turn=jobs if apps else 0,
        )
        auction = Auction(
            p=records(1, SALE),
            least=jobs,
            most=jobs,
            # as many again at its end, see `sell`
            admitted=2 * jobs,
            won=jobs,
            instead=jobs,
            granted=jobs,
            row=jobs,
            filled=jobs,
            value=(min(jobs, 2 * gpus) + 1, widest + 1),
            best=(2, gpus + 1),
            take=(min(jobs, gpus) + 1, gpus + 1),
        )
        return book, auction


def _join(workload: Workload, bidders: Any) -> int:
    """Link the bidders of each app. Returns the number of apps with several jobs.

    Raises:
        UsageError: jobs of one app start on more than one GPU, or need different ones.
    """
    jobs = np.arange(workload.size)
    _, app, many = np.unique(workload.app, return_inverse=True, return_counts=True)
    # the first job in the input represents its app
    head = np.full(len(many), workload.size)
    line = np.argsort(bidders.place, kind="stable")
    first = np.unique(app[line], return_index=True)[1]
    head = line[first] if workload.size else head
    bidders.head = head[app]
    bidders.several = many[app] > 1
    bidders.next, bidders.first, bidders.until = -1, -1, np.inf
    bidders.alone = bidders.ideal
    together = many[app] > 1
    if bool((bidders.least[together] > 1).any()):
        raise UsageError(
            "themis: jobs of an app of several jobs run on any number of GPUs up to their gangs",
            hint="leave out themis.rigid and the column min_gpus, or the column app",
        )
    if bool((workload.gpu_type != workload.gpu_type[bidders.head])[jobs[together]].any()):
        raise UsageError(
            "themis: all jobs of an app must be able to run on the same GPUs",
            hint="leave out the column gpu_type, or give the jobs of each type their own app",
        )
    return int((many > 1).sum())
