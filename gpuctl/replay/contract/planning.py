"""Helpers of policies that plan with time limits: planned seconds, orders, and whether counting GPUs suffices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.engine.state import ANY, FILL, SPREAD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload

ORDERS = ("submit", "limit", "gpus")
UNLIMITED = Parameter(
    "unlimited",
    31_536_000.0,
    "seconds that a job without a time limit is planned for; a year, as Slurm's backfill plugin has it "
    "(backfill.c, YEAR_MINUTES)",
    least=1.0,
)
ORDER = Parameter("order", "submit", "order of the queue: by submission, shortest time limit, fewest GPUs", ORDERS)
LIMITS_FROM = Parameter(
    "limits_from",
    "",
    "source of its time limits, in the form of --limits-from; empty: that option's value",
)
QUOTAS = Parameter("quotas", False, "queues hold no more GPUs than their quotas; planned for like GPUs")


def planned(workload: Workload, settings: Settings, unlimited: float) -> Floats:
    """Seconds that each job is planned for: its time limit, or `unlimited` if it has none."""
    plan = np.where(np.isnan(workload.planned_time), unlimited, workload.planned_time)
    if settings.limits:
        # no job runs past the limit that ends it
        plan = np.fmin(plan, workload.time_limit)
    return plan


def ranks(workload: Workload, plan: Floats, order: str) -> Ints:
    """Position of each job in an order, 0 to jobs - 1; ties go by submission, then by row."""
    n = workload.size
    first = {"submit": np.zeros(n), "limit": plan, "gpus": workload.gpus}[order]
    rank = np.empty(n, np.int64)
    rank[np.lexsort((np.arange(n), workload.submit, first))] = np.arange(n)
    return rank


def kinds(state: State, how: NDArray[np.int64], *, by_queue: bool) -> NDArray[np.int64]:
    """Number the groups of jobs that are identical for placement."""
    jobs = state.jobs
    parts = [jobs.gpus.astype(np.int64), how, np.unique(jobs.mask, return_inverse=True)[1].reshape(-1)]
    if state.g[0].resources == 1:
        parts += [state.asks.cpu, state.asks.mem]
    if by_queue:
        parts.append(jobs.queue.astype(np.int64))
    return np.unique(np.stack(parts), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def counts(state: State, how: NDArray[np.int64], *, quotas: bool) -> bool:
    """Whether the number of free GPUs alone decides if a job can be placed.

    It does in a pool, and if all GPUs are equivalent, unless CPUs or memory count.
    """
    anywhere = state.nodes.size == 1 or bool(np.isin(how, (ANY, FILL, SPREAD)).all())
    alike = len(state.class_free) == 1 and bool((state.jobs.mask & np.uint64(1)).all())
    return anywhere and alike and not quotas and state.g[0].resources == 0


def most_running(workload: Workload, cluster: Cluster) -> int:
    """Most jobs that can run at a time: one per GPU, plus all that request none."""
    return min(cluster.total_gpus + int((workload.gpus == 0).sum()), max(workload.size, 1))


def enforce_quotas(cluster: Cluster, state: State) -> None:
    """Enforce quotas as hard limits of the engine's queues."""
    state.queue_limit[: cluster.quota.size] = cluster.quota[: state.queue_limit.size]
