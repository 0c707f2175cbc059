"""What a replay under the fair scheduler goes by: parameters, yarn-site.xml, allocation file, and what is left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.replay.parties import weights_of
from gpuctl.replay.yarn.fair_file import PREFIX, Allocations
from gpuctl.replay.yarn.fair_tree import flat, full_name, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.replay.model import Cluster, Ints, Workload
    from gpuctl.replay.state import State
    from gpuctl.replay.yarn.fair_tree import Placed
    from gpuctl.replay.yarn.site import Setting

_TRUTHS = {
    "preemption": "preemption",
    "assignmultiple": "multiple",
    "dynamic.max.assign": "dynamic",
    "sizebasedweight": "sized",
    "am.preemption": "master_preemption",
}
_NUMBERS = {
    "preemption.cluster-utilization-threshold": ("utilization", 1.0),
    "waitTimeBeforeKill": ("wait", 1e-3),
    "waitTimeBeforeNextStarvationCheck": ("check", 1e-3),
    "max.assign": ("most", 1.0),
    "update-interval-ms": ("update", 1e-3),
    "reservable-nodes": ("reservable", 1.0),
    "locality.threshold.node": ("node_locality", 1.0),
    "locality.threshold.rack": ("rack_locality", 1.0),
}
_BEAT = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"
INCREMENTS = {"yarn.scheduler.increment-allocation-mb": 1024.0, "yarn.scheduler.increment-allocation-vcores": 1.0}
MULTIPLE = "yarn.scheduler.reservation-threshold.increment-multiple"
_ELSEWHERE = {"allocation.file", "allow-undeclared-pools", "user-as-default-queue"}


@dataclass
class Case:
    """What is replayed, and by what parameters.

    Attributes:
        params: of the policy; those that yarn-site.xml says are written into it.
        given: names of those that were given, which go before the configuration.
        workload: the jobs.
        cluster: the servers.
        state: the simulation.
        whole: MB, CPUs in parts, GPUs of all servers; 0 for what does not count.
        parts: that a CPU is counted in.
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


def from_site(params: dict[str, Any], given: frozenset[str], site: Mapping[str, Setting]) -> list[str]:
    """Take parameters from yarn-site.xml, but for those that were given; returns notes on what is not modelled.

    Raises:
        InputError: a value is none of its kind.
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
            if key == "update" and value <= 0:
                value = 0.5
        else:
            unknown += [] if short in _ELSEWHERE else [name]
            continue
        if key not in given:
            params[key] = value
    names = sorted(
        n for n in site if n.startswith(PREFIX) and n[len(PREFIX) :] not in {*_TRUTHS, *_NUMBERS, *_ELSEWHERE}
    )
    return [f"not modelled: {', '.join(names)} of yarn-site.xml"] if unknown else []


def placed(case: Case, allocations: Allocations | None) -> Placed:
    """The queues of a replay, and that of each job.

    Args:
        case: what is replayed.
        allocations: the allocation file; None without one: a leaf under the root for each queue of the workload.

    Raises:
        UsageError: parameters that do not go with a file, or weights that make no sense.
    """
    names, users = [*case.workload.queues, ""], [*case.workload.users, ""]
    wanted = [names[q] for q in case.workload.queue]
    of_user = [users[u] for u in case.workload.user]
    if allocations is None:
        found = place(_without_file(case, wanted), wanted, of_user, undeclared=True, by_user=False)
        return replace(found, notes=())
    undeclared = case.site.get(PREFIX + "allow-undeclared-pools")
    by_user = case.site.get(PREFIX + "user-as-default-queue")
    return place(
        _changed(case, allocations),
        wanted,
        of_user,
        undeclared=undeclared is None or undeclared.truth(),
        by_user=by_user is None or by_user.truth(),
    )


def _without_file(case: Case, wanted: list[str]) -> Allocations:
    params, workload = case.params, case.workload
    policy = params["policy"] or ("drf" if (case.whole[:2] > 0).any() else "fair")
    used = sorted({name for name in wanted if name})
    weights = weights_of(params, workload, case.cluster, "yarn-fair")
    number = {name: k for k, name in enumerate(workload.queues)}
    quota = np.where(np.isfinite(case.cluster.quota), case.cluster.quota, 0.0)
    found = flat(
        [full_name(name) for name in used],
        np.array([weights[number[name]] for name in used]),
        np.array([quota[number[name]] if params["min_shares"] == "quota" else 0.0 for name in used]),
        policy,
        params["max_apps"] or math.inf,
    )
    return replace(
        found,
        fair_wait=_wait(params["fair_timeout"]),
        min_wait=_wait(params["min_timeout"]),
        threshold=params["threshold"],
    )


def _changed(case: Case, allocations: Allocations) -> Allocations:
    """The allocation file with what was given beside it."""
    params, given = case.params, case.given
    for name in ("weights", "weighted", "min_shares"):
        if name in given:
            raise UsageError(f"yarn-fair: {name} is for replays without an allocation file", hint="change the file")
    own = params["policy"]
    if own:
        queues = tuple(replace(q, policy=own if own != "fifo" or not q.parent else None) for q in allocations.queues)
        allocations = replace(allocations, queues=queues, policy="fair" if own == "fifo" else own)
    changes: dict[str, Any] = {}
    if "fair_timeout" in given:
        changes["fair_wait"] = _wait(params["fair_timeout"])
    if "min_timeout" in given:
        changes["min_wait"] = _wait(params["min_timeout"])
    if "threshold" in given:
        changes["threshold"] = params["threshold"]
    if "max_apps" in given:
        changes["apps"] = params["max_apps"] or math.inf
    return replace(allocations, **changes)


def _wait(seconds: float) -> float:
    return math.inf if seconds < 0 else seconds


def left_out(case: Case, allocations: Allocations) -> list[str]:
    """One line for each kind of what is configured and not modelled."""
    notes = []
    if allocations.left_out:
        some = ", ".join(f"<{tag}> ({count})" for tag, count in sorted(allocations.left_out.items()))
        notes.append(f"not modelled: {some} of the allocation file")
    masters = sum(queue.masters is not None for queue in allocations.queues)
    if masters and case.params["masters"] == "none":
        notes.append(
            f"maxAMShare ({masters} queues) bounds nothing, as no job is a master; masters=first makes the first of "
            "each application one"
        )
    without = sum(queue.most is not None and not queue.most.parts[2] for queue in allocations.queues)
    if without and case.whole[2]:
        notes.append(f"maxResources of {without} queues allow no GPUs (in a form that names none of them, perhaps)")
    if case.params["conf"] and not case.whole[:2].any():
        notes.append(
            "memory and CPUs do not count: what the allocation file says of them bounds nothing, and fair goes by GPUs "
            "(--resources gpu,cpu,mem counts them)"
        )
    if case.cluster.pool:
        notes.append("a pool has no servers: at each heartbeat as many containers as fit are given")
    return notes
