"""Tenants (queues or users) that share a cluster, and their weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.policy import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload

BY = Parameter("by", "queue", "whose jobs are counted together: those of a queue or of a user", ("queue", "user"))
WEIGHTED = Parameter("weighted", False, "weigh queues by their quotas; those without one count as 1")
WEIGHTS = Parameter("weights", "", "weights of queues or users, NAME:W,NAME:W; others count as 1, or by their quotas")


def share_out(params: Mapping[str, Any], workload: Workload, cluster: Cluster, state: State, policy: str) -> Floats:
    """Count holdings by queue or user, per the parameters `BY`, `WEIGHTED` and `WEIGHTS`; return the weights.

    Returns:
        one weight per tenant; jobs of unknown queue or user form the last one.

    Raises:
        UsageError: a weight of an unknown tenant, or not a number above 0.
    """
    if params["by"] == "user":
        state.jobs.share = np.where(workload.user < 0, len(workload.users), workload.user)
    return weights_of(params, workload, cluster, policy, state.share_used.size)


def weights_of(
    params: Mapping[str, Any], workload: Workload, cluster: Cluster, policy: str, parties: int | None = None
) -> Floats:
    """The weights of queues, or of users if ``by`` is user, per `WEIGHTED` and `WEIGHTS`.

    Returns:
        one weight per tenant, and one for jobs of unknown tenant.

    Raises:
        UsageError: a weight of an unknown tenant, or not a number above 0.
    """
    by = params.get("by", "queue")
    names = workload.users if by == "user" else workload.queues
    weights = np.ones(len(names) + 1 if parties is None else parties)
    if params["weighted"]:
        if by == "user":
            raise UsageError(f"{policy}: weighted uses quotas of queues, not of users", hint="leave by=user out")
        quota = cluster.quota
        weights[: quota.size] = np.where(np.isfinite(quota) & (quota > 0), quota, 1.0)
    for name, weight in named_weights(params["weights"], policy):
        if name not in names:
            there = ", ".join(names[:5]) or "none"
            raise UsageError(f"{policy}: weights: there is no {by} {name!r}", hint=f"known: {there}")
        weights[names.index(name)] = weight
    return weights


def named_weights(text: str, policy: str) -> Iterator[tuple[str, float]]:
    """Names and weights of ``NAME:W,NAME:W``.

    Raises:
        UsageError: a weight that is not a number above 0.
    """
    for part in filter(None, text.split(",")):
        name, _, number = part.rpartition(":")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not 0 < weight < math.inf:
            raise UsageError(f"{policy}: weights={part}: expected NAME:W with a number W above 0")
        yield name.strip(), weight


def shapes(state: State, how: Ints) -> Ints:
    """Number jobs by request and permitted nodes: if one job of a number does not fit, none does."""
    jobs = state.jobs
    parts = [jobs.gpus, how, np.unique(jobs.mask, return_inverse=True)[1].reshape(-1)]
    if state.g[0].resources:
        parts += [state.asks.units, state.asks.cpu, state.asks.mem]
    found = np.zeros(jobs.size, np.int64)
    for part in parts:
        values, code = np.unique(np.asarray(part, np.int64), return_inverse=True)
        found = np.unique(found * values.size + code.reshape(-1), return_inverse=True)[1].reshape(-1)
    return found.astype(np.int64)


def groups(party: Ints, shape: Ints, parties: int) -> tuple[Ints, Ints]:
    """Number the shapes of each tenant, tenant by tenant.

    Returns:
        the group of each job, and the first group of each tenant, shape (tenants + 1,).
    """
    kinds = int(shape.max(initial=0)) + 1
    pairs, group = np.unique(party * kinds + shape, return_inverse=True)
    first = np.searchsorted(pairs, np.arange(parties + 1) * kinds)
    return group.reshape(-1).astype(np.int64), first.astype(np.int64)
