"""Builds the capacity scheduler's arrays from queues, a workload and the nodes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.policies.yarn.amounts_kernel import MILLI
from gpuctl.replay.policies.yarn.capacity_conf import MOST_COUNT, UNLIMITED, LeafOrParent, named_numbers
from gpuctl.replay.policies.yarn.capacity_tree_kernel import APP, QUEUE, SITE, USER, Tree
from gpuctl.replay.policies.yarn.linked_lists_kernel import empty_lists

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints, Workload

ORDERS = ("fifo", "fair", "fair-sized")
"""Values of the parameter ``ordering_policy``, by the numbers of `LeafOrParent.order`."""


def from_quotas(params: Mapping[str, Any], workload: Workload, cluster: Cluster) -> tuple[LeafOrParent, ...]:
    """Leaves under a root, one for each queue of the workload.

    Their guarantees are proportional to quotas if all have one, else equal; ``guarantees`` changes the weights of some,
    in GPUs if there are quotas; ``maximums`` sets their maxima in percent of the cluster.

    Raises:
        UsageError: an unknown queue, or an invalid number.
    """
    names = [*workload.queues]
    if not names or (workload.queue < 0).any():
        names.append("default" if "default" not in names else "")
    weights = np.ones(len(names))
    quota = np.asarray(cluster.quota, float)[: len(workload.queues)]
    if quota.size == len(names) and np.isfinite(quota).all() and quota.sum() > 0:
        weights[:] = quota
    for name, weight in named_numbers("guarantees", params["guarantees"], 0.0).items():
        weights[_queue_called(name, names, "guarantees")] = weight
    parts = weights / weights.sum()
    maximum = np.ones(len(names))
    for name, percent in named_numbers("maximums", params["maximums"], 0.0, 100.0).items():
        maximum[_queue_called(name, names, "maximums")] = percent / 100.0
    short = next((k for k in range(len(names)) if maximum[k] < parts[k] - 1e-6), None)
    if short is not None:
        raise UsageError(
            f"yarn-capacity: maximums: {names[short]} may have {100 * maximum[short]:g} % of the cluster and is "
            f"guaranteed {100 * parts[short]:g} %"
        )
    leaves = [
        LeafOrParent(
            path=f"root.{name}",
            parent=0,
            capacity=float(part),
            maximum=float(most),
        )
        for name, part, most in zip(names, parts, maximum, strict=True)
    ]
    return (LeafOrParent(path="root", parent=-1, children=tuple(range(1, len(leaves) + 1))), *leaves)


def _queue_called(name: str, names: Sequence[str], parameter: str) -> int:
    if name not in names:
        hint = f"known: {', '.join(names[:8])}"
        raise UsageError(f"yarn-capacity: {parameter}: no queue is called {name}", hint=hint)
    return names.index(name)


def changed(
    queues: Sequence[LeafOrParent], params: Mapping[str, Any], given: Collection[str]
) -> tuple[LeafOrParent, ...]:
    """Apply given parameters to all leaves.

    Args:
        queues: parents before children.
        params: values of parameters.
        given: the names of parameters that override the queues' settings.
    """
    change: dict[str, Any] = {
        attribute: params[name]
        for name, attribute in (
            ("user_limit_factor", "factor"),
            ("minimum_user_limit_percent", "percent"),
            ("maximum_am_resource_percent", "am"),
        )
        if name in given
    }
    for name, attribute in (("maximum_applications", "most_apps"), ("max_parallel_apps", "most_running")):
        if name in given:
            change[attribute] = int(params[name]) or UNLIMITED
    if "ordering_policy" in given:
        change["order"] = ORDERS.index(params["ordering_policy"])
    found: list[LeafOrParent] = []
    for queue in queues:
        now = queue if queue.children else replace(queue, **change)
        if not queue.children and not queue.runs:
            now = replace(now, most_apps=0)
        if not queue.children and "maximum_capacity" in given:
            now = _with_maximum(now, found[queue.parent], params["maximum_capacity"])
        found.append(now)
    return tuple(found)


def _with_maximum(leaf: LeafOrParent, parent: LeafOrParent, factor: float) -> LeafOrParent:
    """Set a leaf's maximum to a multiple of its guarantee; 0: its parent's."""
    if factor == 0:
        return replace(leaf, maximum=parent.maximum, fixed_most={})
    if factor < 1:
        raise UsageError(
            f"yarn-capacity: maximum_capacity={factor:g}: expected 0 or at least 1",
            hint="a maximum below the guarantee",
        )
    if leaf.fixed:
        return replace(leaf, maximum=parent.maximum, fixed_most={r: v * factor for r, v in leaf.fixed.items()})
    return replace(leaf, maximum=min(leaf.capacity * factor, parent.maximum), fixed_most={})


def leaves_of(queues: Sequence[LeafOrParent], workload: Workload) -> Ints:
    """The leaf of each job, by its queue's name: a leaf's name or its whole path.

    Raises:
        InputError: jobs of queues that the tree does not have.
    """
    by_name: dict[str, list[int]] = {}
    for number, queue in enumerate(queues):
        if not queue.children:
            for name in {queue.path, queue.path.removeprefix("root."), queue.name}:
                by_name.setdefault(name, []).append(number)
    used = np.unique(workload.queue)
    leaf = np.zeros(len(workload.queues) + 1, np.int64)
    lacking = []
    for k in used.tolist():
        name = workload.queues[k] if k >= 0 else "default"
        exact = [n for n in by_name.get(name, []) if queues[n].path in {name, f"root.{name}"}]
        there = exact or by_name.get(name, [])
        if len(there) != 1:
            lacking.append(f"{name} (several: {', '.join(queues[n].path for n in there)})" if there else name)
        else:
            leaf[k] = there[0]
    if lacking:
        ends = [queue.path for queue in queues if not queue.children]
        some = ", ".join(lacking[:10]) + (f" and {len(lacking) - 10} more" if len(lacking) > 10 else "")
        raise InputError(
            f"{workload.name}: jobs of queues that the configuration does not have as leaves: {some}",
            hint=f"its leaves are {', '.join(ends[:10])}{' ...' if len(ends) > 10 else ''}",
        )
    return leaf[workload.queue]


def applications(workload: Workload) -> tuple[Ints, Ints]:
    """Number applications in the order of their first job.

    Returns:
        the application of each job, and the first job of each application.
    """
    _, first, code = np.unique(workload.app, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[code.reshape(-1)].astype(np.int64), first[order].astype(np.int64)


def wanted(workload: Workload, cluster: Cluster, params: Mapping[str, Any]) -> tuple[Ints, Ints]:
    """The preferred nodes of each job: those of its recorded placement if ``locality=recorded``."""
    if params["locality"] != "recorded" or not workload.size:
        return np.zeros(workload.size + 1, np.int64), np.zeros(0, np.int64)
    first = workload.segment_start[:-1]
    begin, end = workload.piece_start[first], workload.piece_start[first + 1]
    count = end - begin
    starts = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    inside = np.arange(int(starts[-1])) - np.repeat(starts[:-1], count)
    nodes = workload.piece_node[np.repeat(begin, count) + inside].astype(np.int64)
    if nodes.size and (nodes.max() >= len(cluster.nodes) or nodes.min() < 0):
        raise UsageError(
            "yarn-capacity: locality=recorded: the jobs' recorded nodes are not those of this cluster",
            hint="replay the trace on its own nodes, without --cluster",
        )
    return starts, nodes


def build_tree(  # noqa: PLR0917
    queues: Sequence[LeafOrParent],
    params: Mapping[str, Any],
    workload: Workload,
    cluster: Cluster,
    state: State,
    how: Ints,
) -> Tree:
    """The policy's arrays before the first instant.

    Args:
        queues: parents before children.
        params: of the policy, with settings of the site's files.
        workload: the jobs.
        cluster: the nodes.
        state: the simulation.
        how: placement of gangs over several nodes.
    """
    n, nodes = workload.size, len(cluster.nodes)
    leaf = leaves_of(queues, workload)
    app, heads = applications(workload)
    p = records(1, SITE)
    p.interval, p.phase = params["heartbeat"], params["phase"]
    p.asleep, p.wide = 1, -1
    p.offswitch, p.batch, p.multiple = params["offswitch"], params["batch"], params["multiple"]
    p.delay, p.rack_delay = params["node_locality_delay"], params["rack_locality_additional_delay"]
    p.full_reset, p.look_on = params["rack_locality_full_reset"], params["continue_look"]
    p.am_beat = params["am_heartbeat"]
    p.monitor = params["monitoring_interval"] if params["preemption"] else 0.0
    p.share, p.ignored = params["total_preemption_per_round"], params["max_ignored_over_capacity"]
    p.natural, p.wait = params["natural_termination_factor"], params["max_wait_before_kill"]
    p.next_round = p.again = np.inf
    ask = _asks(workload, state)
    sizes = _sizes(params, ask, state, cluster)
    tree = Tree(
        p=p,
        queues=_queues(queues),
        children=np.array([c for queue in queues for c in queue.children], np.int64),
        apps=_apps(workload, leaf, app, heads, params),
        users=0,
        jobs=n,
        nodes=nodes,
        sizes=sizes,
        fixed=_fixed([queue.fixed for queue in queues]),
        fixed_most=_fixed([queue.fixed_most for queue in queues]),
        ask=ask,
        held=_amounts(nodes),
        want_first=n + 1,
        want=0,
        how=how,
        path=len(queues) + 1,
        bound=_amounts(len(queues) + 1),
        blocked=_amounts(len(queues) + 1),
        marks=n,
        lines=empty_lists(heads.size, len(queues)),
        by_state=empty_lists(heads.size, 3 * len(queues)),
        job_lists=empty_lists(n, 2 * heads.size),
        weight=(len(queues), 3),
        amounts=(8, len(queues), 3),
        **{name: _amounts(len(queues)) for name in ("due", "most", "used", "reserved", "pending", "asking", "limit")},
        am_used=_amounts(len(queues)),
        **{name: _amounts(heads.size) for name in ("app_used", "app_reserved", "app_am", "app_asks")},
        user_used=_amounts(0),
        user_am=_amounts(0),
        user_asks=_amounts(0),
        user_net=_amounts(0),
    )
    tree = _with_users(tree, workload, leaf, heads)
    starts, nodes_wanted = wanted(workload, cluster, params)
    tree = tree.replace(want_first=starts, want=nodes_wanted)
    tree.nodes.app, tree.nodes.seen = -1, -1
    tree.nodes.turn = _turns(cluster.nodes)
    tree.jobs.app, tree.jobs.mark = app, np.nan
    tree.limit[:] = _cluster(state)
    _names(tree, cluster)
    tree.app_am[:, 0] = params["am_mb"]
    tree.app_am[:, 1] = params["am_vcores"] * MILLI
    led = np.flatnonzero(tree.apps.master >= 0)
    tree.app_am[led] = ask[tree.apps.master[led]]
    return tree


def _turns(names: Sequence[str]) -> list[int]:
    """The order in which an application's reservations are visited: that of a Java hash table of NodeIds.

    The order is also arbitrary in Hadoop; with port 8041 and up to 12 nodes it matches recordings.
    """
    buckets = []
    for name in names:
        code = 0
        for letter in name:
            code = (31 * code + ord(letter)) & 0xFFFFFFFF
        code = (493217 * ((493217 * 8501 + code) & 0xFFFFFFFF) + 8041) & 0xFFFFFFFF
        buckets.append((code ^ (code >> 16)) & 15)
    return sorted(range(len(buckets)), key=buckets.__getitem__)


def _amounts(rows: int) -> Ints:
    return np.zeros((rows, 3), np.int64)


def _fixed(given: Sequence[Mapping[int, float]]) -> Ints:
    found = np.full((len(given), 3), -1, np.int64)
    for row, amounts in enumerate(given):
        for resource, value in amounts.items():
            found[row, resource] = int(min(value, MOST_COUNT)) * (MILLI if resource == 1 else 1)
        if amounts:
            # an absolute amount guarantees none of the resources it does not name
            found[row, found[row] < 0] = 0
    return found


def known(state: State) -> tuple[bool, bool]:
    """Whether memory and CPUs count in queues' shares and limits: if known for every node."""
    if not state.g[0].resources:
        return False, False
    return bool((np.asarray(state.stock.mem) < UNBOUND).all()), bool((np.asarray(state.stock.cpu) < UNBOUND).all())


def _asks(workload: Workload, state: State) -> Ints:
    found = _amounts(workload.size)
    found[:, 2] = workload.gpus
    for r, (counts, name) in enumerate(zip(known(state), ("mem", "cpu"), strict=True)):
        if counts:
            found[:, r] = state.asks[name]
    return found


def _cluster(state: State) -> Ints:
    found = np.zeros(3, np.int64)
    found[2] = int(state.nodes.cap.sum())
    for r, (counts, name) in enumerate(zip(known(state), ("mem", "cpu"), strict=True)):
        if counts:
            found[r] = np.asarray(state.stock[name]).sum()
    return found


def _sizes(params: Mapping[str, Any], ask: Ints, state: State, cluster: Cluster) -> Ints:
    """The cluster, the smallest container and the largest one; all requests are multiples of the smallest."""
    sizes = _amounts(3)
    sizes[0] = _cluster(state)
    for resource, value in ((0, params["minimum_mb"]), (1, params["minimum_vcores"] * MILLI)):
        asked = ask[ask[:, resource] > 0, resource]
        if sizes[0, resource] and asked.size:
            # Hadoop rounds requests up to its multiples; here nothing is rounded
            sizes[1, resource] = math.gcd(int(value), int(np.gcd.reduce(asked)))
    if not sizes[1].any():
        sizes[1, 2] = 1
    sizes[2, 2] = params["maximum_gpus"] or cluster.gpus.max(initial=0)
    memory, cpus = known(state)
    if memory:
        sizes[2, 0] = params["maximum_mb"] or np.asarray(state.stock.mem).max(initial=0)
    if cpus:
        sizes[2, 1] = params["maximum_vcores"] * MILLI or np.asarray(state.stock.cpu).max(initial=0)
    return sizes


def _queues(queues: Sequence[LeafOrParent]) -> Any:
    found = records(len(queues), QUEUE)
    at = 0
    for row, queue in enumerate(queues):
        one = found[row]
        one.parent, one.first, one.count, one.leaf = queue.parent, at, len(queue.children), not queue.children
        at += len(queue.children)
        one.capacity, one.maximum = queue.capacity, queue.maximum
        one.priority, one.respects = queue.priority, queue.respects
        one.percent, one.factor, one.am = queue.percent, queue.factor, queue.am
        one.most_apps, one.most_running = queue.most_apps, queue.most_running
        own = queue.most_apps if queue.factor < 0 else int(queue.most_apps * (queue.percent / 100.0) * queue.factor)
        one.most_of_user = min(own, queue.most_apps) if queue.most_apps < UNLIMITED else UNLIMITED
        one.order, one.no_preemption = queue.order, queue.no_preemption
    return found


def _apps(workload: Workload, leaf: Ints, app: Ints, heads: Ints, params: Mapping[str, Any]) -> Any:
    several = np.unique(np.stack([app, leaf], axis=1), axis=0) if workload.size else np.zeros((0, 2), np.int64)
    if len(several) > heads.size:
        twice = int(np.flatnonzero(np.bincount(several[:, 0]) > 1)[0])
        raise InputError(
            f"{workload.name}: the application of job {workload.ids[int(heads[twice])]!r} is in two queues"
        )
    found = records(heads.size, APP)
    found.queue = leaf[heads]
    found.left = np.bincount(app, minlength=heads.size)
    found.master, found.up = -1, 1
    if params["masters"]:
        for j in reversed([j for j, name in enumerate(workload.ids) if name.endswith(params["masters"])]):
            found.master[app[j]], found.up[app[j]] = j, 0
    given = _priorities(params["priorities"], workload)
    users = workload.user[heads]
    found.priority = [given.get(int(u), 0.0) for u in users]
    return found


def _priorities(text: str, workload: Workload) -> dict[int, float]:
    given = named_numbers("priorities", text)
    lacking = next((name for name in given if name not in workload.users), None)
    if lacking is not None:
        raise UsageError(
            f"yarn-capacity: priorities: no user is called {lacking}",
            hint=f"known: {', '.join(workload.users[:8])}",
        )
    return {workload.users.index(name): value for name, value in given.items()}


def _with_users(tree: Tree, workload: Workload, leaf: Ints, heads: Ints) -> Tree:
    pairs = np.stack([leaf[heads], workload.user[heads]], axis=1)
    kinds, code = np.unique(pairs, axis=0, return_inverse=True)
    users = records(len(kinds), USER)
    users.queue = kinds[:, 0] if len(kinds) else 0
    tree.apps.user = code.reshape(-1)
    every = np.arange(tree.queues.size)
    tree.queues.users = np.searchsorted(users.queue, every, "left")
    tree.queues.users_end = np.searchsorted(users.queue, every, "right")
    tables = ("user_used", "user_am", "user_asks", "user_net")
    return tree.replace(users=users, **{name: _amounts(len(kinds)) for name in tables})


def _names(tree: Tree, cluster: Cluster) -> None:
    """Number of nodes and racks that each application prefers, plus one for any: its unique locations."""
    tree.apps.names = 1
    counts = np.diff(tree.want_first)
    if not counts.any():
        return
    owner = np.repeat(tree.jobs.app, counts)
    hosts = np.unique(np.stack([owner, tree.want], axis=1), axis=0)
    racks = np.unique(np.stack([owner, np.asarray(cluster.rack)[tree.want]], axis=1), axis=0)
    size = tree.apps.size
    tree.apps.names += np.bincount(hosts[:, 0], minlength=size) + np.bincount(racks[:, 0], minlength=size)


def too_large(tree: Tree) -> Any:
    """Mask of jobs larger than the maximum of a queue above them, shape (jobs,)."""
    unit = np.array([1, MILLI, 1])
    cap = np.asarray(tree.sizes[0])
    most = np.floor(cap // unit * np.asarray(tree.queues.maximum)[:, None] + 1e-9).astype(np.int64) * unit
    most = np.where(tree.fixed_most >= 0, np.minimum(tree.fixed_most, cap), most)
    for q in range(1, len(most)):
        most[q] = np.minimum(most[q], most[int(tree.queues.parent[q])])
    return (tree.ask > most[tree.apps.queue[tree.jobs.app]])[:, cap > 0].any(axis=1)
