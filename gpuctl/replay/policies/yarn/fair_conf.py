"""Settings of a replay under the fair scheduler: parameters, yarn-site.xml, allocation file, and omissions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import listed, note
from gpuctl.replay.contract.tenants import named_weights, weights_of
from gpuctl.replay.policies.yarn.fair_file import PREFIX, Allocations, Amount
from gpuctl.replay.policies.yarn.fair_tree import flat, full_name, holds_queues, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints, Workload
    from gpuctl.replay.policies.yarn.fair_tree import JobQueues
    from gpuctl.replay.policies.yarn.site import Setting

_TRUTHS = {
    "preemption": "preemption",
    "assignmultiple": "assign_multiple",
    "dynamic.max.assign": "dynamic_max_assign",
    "sizebasedweight": "size_based_weight",
    "am.preemption": "am_preemption",
}
_NUMBERS = {
    "preemption.cluster-utilization-threshold": ("cluster_utilization_threshold", 1.0),
    "waitTimeBeforeKill": ("wait_before_kill", 1e-3),
    "waitTimeBeforeNextStarvationCheck": ("wait_before_next_starvation_check", 1e-3),
    "max.assign": ("max_assign", 1.0),
    "update-interval-ms": ("update_interval", 1e-3),
    "reservable-nodes": ("reservable_nodes", 1.0),
    "locality.threshold.node": ("locality_threshold_node", 1.0),
    "locality.threshold.rack": ("locality_threshold_rack", 1.0),
}
_BEAT = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"
INCREMENTS = {"yarn.scheduler.increment-allocation-mb": 1024.0, "yarn.scheduler.increment-allocation-vcores": 1.0}
MULTIPLE = "yarn.scheduler.reservation-threshold.increment-multiple"
_ELSEWHERE = {"allocation.file", "allow-undeclared-pools", "user-as-default-queue"}
_OF_FILE = {
    "scheduling_policy",
    "weighted",
    "weights",
    "min_shares",
    "max_running_apps",
    "min_share_preemption_timeout",
    "fair_share_preemption_timeout",
    "fair_share_preemption_threshold",
    "max_am_share",
}
"""Parameters that an allocation file sets per queue."""
_PARTS = ("fair_share_preemption_threshold", "max_am_share", "reservable_nodes", "locality_threshold_node",
          "locality_threshold_rack")  # fmt: skip
"""Parameters that are shares: at most 1."""


@dataclass
class Case:
    """The replay and its parameters.

    Attributes:
        params: of the policy, updated from yarn-site.xml.
        given: names of given parameters, which override the configuration.
        workload: the jobs.
        cluster: the nodes.
        state: the simulation.
        whole: MB, CPUs in parts, GPUs of all nodes; 0 if not counted.
        parts: units per CPU.
        site: properties of yarn-site.xml.
    """

    params: dict[str, Any]
    given: frozenset[str]
    workload: Workload
    cluster: Cluster
    state: State
    whole: Ints
    parts: int
    site: Mapping[str, Setting] = field(default_factory=dict)


def from_site(params: dict[str, Any], given: frozenset[str], site: Mapping[str, Setting]) -> list[Note]:
    """Take parameters from yarn-site.xml, except given ones; returns notes on unmodelled settings.

    Raises:
        InputError: a value is invalid.
    """
    unknown = []
    for name, setting in site.items():
        if name == _BEAT and "heartbeat" not in given:
            params["heartbeat"] = setting.number(least=1) / 1000.0
        if not name.startswith(PREFIX):
            continue
        short = name[len(PREFIX) :]
        if short in _TRUTHS:
            value: float | bool = setting.truth()
            key = _TRUTHS[short]
        elif short in _NUMBERS:
            key, factor = _NUMBERS[short]
            value = setting.number() * factor
            if key == "update_interval" and value <= 0:
                value = 0.5
        else:
            unknown += [] if short in _ELSEWHERE else [name]
            continue
        if key not in given:
            params[key] = value
    return (
        [note("not modelled: {unknown} of yarn-site.xml", unknown=listed("text", sorted(unknown)))] if unknown else []
    )


def check_parts(params: Mapping[str, Any], given: frozenset[str]) -> None:
    """Check that given shares are valid.

    Raises:
        UsageError: a share is above 1.
    """
    for name in _PARTS:
        if name in given and params[name] > 1:
            raise UsageError(f"yarn-fair: {name}={params[name]:g}: expected at most 1, which is all")


def placed(case: Case, allocations: Allocations | None) -> JobQueues:
    """The queues of a replay, and that of each job.

    Args:
        case: what is replayed.
        allocations: the allocation file; None without one: a leaf under the root for each queue of the workload.

    Raises:
        UsageError: invalid weights.
    """
    names, users = [*case.workload.queues, ""], [*case.workload.users, ""]
    wanted = [names[q] for q in case.workload.queue]
    of_user = [users[u] for u in case.workload.user]
    if allocations is None:
        found = place(_without_file(case, wanted), wanted, of_user, undeclared=True, by_user=False)
        return replace(found, notes=())
    undeclared = case.site.get(PREFIX + "allow-undeclared-pools")
    by_user = case.site.get(PREFIX + "user-as-default-queue")
    found = place(
        allocations,
        wanted,
        of_user,
        undeclared=undeclared is None or undeclared.truth(),
        by_user=by_user is None or by_user.truth(),
    )
    return replace(found, allocations=_changed(case, found.allocations))


def _without_file(case: Case, wanted: list[str]) -> Allocations:
    params, workload = case.params, case.workload
    policy = params["scheduling_policy"] or ("drf" if (case.whole[:2] > 0).any() else "fair")
    used = sorted({name for name in wanted if name})
    weights = weights_of(params, workload, case.cluster, "yarn-fair")
    number = {name: k for k, name in enumerate(workload.queues)}
    quota = _quotas(case) if params["min_shares"] == "quota" else {}
    names = [full_name(name) for name in used]
    found = flat(
        names,
        np.array([weights[number[name]] for name in used]),
        np.array([quota.get(name, 0.0) for name in names]),
        policy,
        params["max_running_apps"] or math.inf,
    )
    return replace(
        found,
        masters=params["max_am_share"],
        fair_wait=_wait(params["fair_share_preemption_timeout"]),
        min_wait=_wait(params["min_share_preemption_timeout"]),
        threshold=params["fair_share_preemption_threshold"],
    )


def _quotas(case: Case) -> dict[str, float]:
    """GPUs of the queues that have a quota, by full name."""
    pairs = zip(case.workload.queues, case.cluster.quota, strict=False)
    return {full_name(name): float(quota) for name, quota in pairs if np.isfinite(quota) and quota > 0}


def _changed(case: Case, allocations: Allocations) -> Allocations:
    """The allocation file with given parameters, which override its settings of queues."""
    params, given = case.params, case.given
    queues = list(allocations.queues)
    defaults: dict[str, Any] = {}
    policy = params["scheduling_policy"]
    if policy:
        # under fifo there are no queues
        queues = [replace(q, policy=policy if policy != "fifo" or not holds_queues(q) else None) for q in queues]
        defaults["policy"] = "fair" if policy == "fifo" else policy
    if "min_share_preemption_timeout" in given:
        queues = [replace(q, min_wait=None) for q in queues]
        defaults["min_wait"] = _wait(params["min_share_preemption_timeout"])
    if "fair_share_preemption_timeout" in given:
        queues = [replace(q, fair_wait=None) for q in queues]
        defaults["fair_wait"] = _wait(params["fair_share_preemption_timeout"])
    if "fair_share_preemption_threshold" in given:
        queues = [replace(q, threshold=None) for q in queues]
        defaults["threshold"] = params["fair_share_preemption_threshold"]
    if "max_running_apps" in given:
        most = params["max_running_apps"] or math.inf
        queues = [q if holds_queues(q) else replace(q, apps=most) for q in queues]
    if "max_am_share" in given:
        queues = [q if holds_queues(q) else replace(q, masters=params["max_am_share"]) for q in queues]
    if "min_shares" in given:
        quota = _quotas(case) if params["min_shares"] == "quota" else {}
        least = {name: Amount((0.0, 0.0, gpus)) for name, gpus in quota.items()}
        queues = [replace(q, least=least.get(q.name)) for q in queues]
    weights = _weights(case, [q.name for q in queues])
    queues = [replace(q, weight=weights.get(q.name, q.weight)) for q in queues]
    return replace(allocations, queues=tuple(queues), **defaults)


def _weights(case: Case, there: list[str]) -> dict[str, float]:
    """Weights given in addition to an allocation file, by full name."""
    found = _quotas(case) if case.params["weighted"] else {}
    for name, weight in named_weights(case.params["weights"], "yarn-fair"):
        if full_name(name) not in there:
            raise UsageError(
                f"yarn-fair: weights: there is no queue {name!r}", hint=f"known: {', '.join(there[:10]) or 'none'}"
            )
        found[full_name(name)] = weight
    return found


def _wait(seconds: float) -> float:
    return math.inf if seconds < 0 else seconds


def shown(case: Case, *, file: bool) -> dict[str, Any]:
    """The parameters for the outcome: those that the allocation file sets per queue are not defaults."""
    return {
        name: "file" if file and name in _OF_FILE and name not in case.given else value
        for name, value in case.params.items()
    }


def left_out(case: Case, allocations: Allocations) -> list[Note]:
    """One line per kind of configured but unmodelled setting."""
    notes = []
    if allocations.left_out:
        some = listed("text", (f"<{tag}> ({count})" for tag, count in sorted(allocations.left_out.items())))
        notes.append(note("not modelled: {some} of the allocation file", some=some))
    masters = sum(queue.masters is not None for queue in allocations.queues)
    if masters and case.params["masters"] == "none":
        notes.append(
            note(
                "maxAMShare ({masters:,} queue{masters||s}) bounds nothing, as no job is a master; masters=first "
                "makes the "
                "first of each application one",
                masters=masters,
            )
        )
    without = sum(queue.most is not None and not queue.most.parts[2] for queue in allocations.queues)
    if without and case.whole[2]:
        notes.append(
            note(
                "maxResources of {without:,} queue{without||s} {without|allows|allow} no GPUs (in a form that names "
                "none of them, perhaps)",
                without=without,
            )
        )
    if case.params["conf"] and not case.whole[:2].any():
        notes.append(
            note(
                "memory and CPUs do not count: the allocation file's limits on them have no effect, and fair uses "
                "GPUs (--resources gpu,cpu,mem counts them)"
            )
        )
    if case.cluster.pool:
        notes.append(note("a pool has no nodes: at each heartbeat as many containers as fit are given"))
    return notes
