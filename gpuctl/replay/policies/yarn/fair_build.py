"""Builds the fair scheduler of one replay: configuration, queues, applications and nodes as flat arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.core.notes import note
from gpuctl.replay.contract.tenants import shapes
from gpuctl.replay.engine.placements import placement_number
from gpuctl.replay.engine.state import ABORT
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.policies.yarn import fair_kernel
from gpuctl.replay.policies.yarn.fair_conf import (
    INCREMENTS,
    MULTIPLE,
    Case,
    check_parts,
    from_site,
    left_out,
    placed,
    shown,
)
from gpuctl.replay.policies.yarn.fair_file import read_conf
from gpuctl.replay.policies.yarn.fair_state import APP, CPU, FAIR_REASONS, GPU, MEM, NODE, PARAMS, TASK, UNBOUNDED, Fair
from gpuctl.replay.policies.yarn.fair_tree import tree
from gpuctl.replay.policies.yarn.linked_lists_kernel import empty_lists, fill

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gpuctl.core.notes import Note
    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints, Workload
    from gpuctl.replay.policies.yarn.fair_tree import JobQueues, Tree

GRID = float(1 << 20)
"""Heartbeats are at multiples of 1 / GRID seconds, so that sums of times are exact."""


class FairProgram:
    """Runs the policy on one simulation.

    Attributes:
        reasons: of decisions, after those of all policies.
        notes: settings that are not modelled, and assumptions.
        queues: full names of the queues, in the order of the arrays of `own`.
        own: the kernel's memory.
    """

    reasons = FAIR_REASONS

    def __init__(self, own: Fair, queues: tuple[str, ...], notes: tuple[Note, ...]) -> None:
        self.own = own
        self.queues = queues
        self.notes = notes

    def advance(self, state: State, until: float, steps: int) -> int:
        """Advance by a number of instants."""
        return int(fair_kernel.run(state, self.own, until, steps))

    def copy(self) -> FairProgram:
        """Return a copy with its own memory."""
        return FairProgram(self.own.copy(), self.queues, self.notes)


def fair_program(policy: Policy, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> FairProgram:
    """Make the scheduler for a simulation.

    Args:
        policy: with its parameters, which are updated from the configuration.
        workload: the jobs.
        cluster: the nodes.
        settings: of the comparison.
        state: the simulation.

    Raises:
        UsageError: invalid parameters or configuration.
        InputError: a configuration file is not what it should be.
    """
    if settings.placement == "spread":
        raise UsageError("yarn-fair: a container is on one node: gangs cannot be spread", hint="leave --placement out")
    whole, parts = _cluster(state)
    given: frozenset[str] = getattr(policy, "given", frozenset())
    # values that an earlier simulation of the policy took from its files do not count as given
    params: dict[str, Any] = {
        p.name: policy.params[p.name] if p.name in given else p.default for p in policy.parameters
    }
    check_parts(params, given)
    case = Case(params, given, workload, cluster, state, whole, parts)
    notes: list[Note] = []
    allocations = None
    if params["conf"]:
        allocations, case.site = read_conf(params["conf"])
        notes += from_site(params, given, case.site)
        if allocations is None:
            notes.append(
                note("no allocation file (fair-scheduler.xml) is given: queues of the workload are under the root")
            )
    policy.params = shown(case, file=allocations is not None)
    if settings.mode is None:
        # YARN kills: progress since the last checkpoint is lost
        state.g.mode = ABORT
    state.g.patience = int(params["patience"])
    places = placed(case, allocations)
    found = tree(places.allocations, whole, parts)
    own = _arrays(case, found, places)
    own.p.how = placement_number(settings.placement or "any")
    notes += [*places.notes, *left_out(case, places.allocations)]
    if not _holds_min(own):
        notes.append(note("minResources of all queues together are more than the nodes have"))
    if params["preemption"] and not np.isfinite([found.queues.fair_wait, found.queues.min_wait]).any():
        notes.append(
            note(
                "preemption is on, and nothing is preempted: no queue has a time-out "
                "(fair_share_preemption_timeout, min_share_preemption_timeout)"
            )
        )
    return FairProgram(own, found.names, tuple(notes))


def _cluster(state: State) -> tuple[Ints, int]:
    """Total of all nodes, in MB, parts of CPUs, GPUs, 0 if not counted; and the parts of a CPU."""
    whole = np.zeros(3, np.int64)
    whole[GPU] = state.g[0].total
    parts = 1
    if state.g[0].resources:
        stock, asks = state.stock, state.asks
        known = stock.cpu[stock.cpu < UNBOUND]
        parts = 1 if not (asks.cpu % 1000).any() and not (known % 1000).any() else 1000
        whole[CPU] = known.sum() // (1000 // parts)
        whole[MEM] = stock.mem[stock.mem < UNBOUND].sum()
    return whole, parts


def _holds_min(own: Fair) -> bool:
    top = np.flatnonzero(own.queues.parent == 0)
    return bool((own.q_min[top].sum(axis=0) <= own.cluster).all())


def _applications(workload: Workload, places: JobQueues, found: Tree) -> tuple[Any, Ints]:
    """Applications in order of submission, and each job's; one with jobs in two queues becomes two."""
    number = {name: k for k, name in enumerate(found.names)}
    queue = np.array([number[name] for name in places.of_job], np.int64)
    n = workload.size
    _, key = np.unique(workload.app * len(found.names) + queue, return_inverse=True)
    key = key.reshape(-1)
    count = int(key.max(initial=-1)) + 1
    first = np.full(count, n, np.int64)
    np.minimum.at(first, key, np.arange(n))
    start = np.full(count, np.inf)
    np.minimum.at(start, key, workload.eligible)
    order = np.lexsort((first, start))
    place_of = np.empty(count, np.int64)
    place_of[order] = np.arange(count)
    app = place_of[key].astype(np.int64)
    apps = records(max(count, 1), APP)
    apps.queue[:count] = queue[first[order]]
    user = np.where(workload.user < 0, len(workload.users), workload.user)
    apps.user[:count] = user[first[order]]
    apps.start[:count] = start[order]
    apps.left[:count] = np.bincount(app, minlength=count)
    apps.master = apps.level = -1
    apps.weight = 1.0
    apps.opens = np.inf
    apps.fed = apps.start
    apps.full = -10
    return apps, app


def _wanted(params: Mapping[str, Any], workload: Workload) -> tuple[Ints, Ints]:
    """CSR of the nodes of each job's first recorded segment, if preferred."""
    if params["locality"] == "none":
        return np.zeros(workload.size + 1, np.int64), np.zeros(0, np.int64)
    begin = workload.piece_start[workload.segment_start[:-1]]
    end = workload.piece_start[workload.segment_start[:-1] + 1]
    first = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int64)
    rows = np.repeat(begin, end - begin) + np.arange(first[-1]) - np.repeat(first[:-1], end - begin)
    return first, workload.piece_node[rows].astype(np.int64)


def _parameters(case: Case) -> Any:
    params, whole = case.params, case.whole
    p = records(1, PARAMS)
    p.beat, p.tick, p.master = params["heartbeat"], params["update_interval"], params["am_heartbeat"]
    p.due = np.inf
    p.preempts, p.utilization = params["preemption"], float(np.float32(params["cluster_utilization_threshold"]))
    p.wait = params["wait_before_kill"]
    p.check = p.wait + params["wait_before_next_starvation_check"]
    p.multiple, p.dynamic, p.most = (
        params["assign_multiple"],
        params["dynamic_max_assign"],
        int(params["max_assign"]),
    )
    if case.cluster.pool:
        p.multiple, p.dynamic, p.most = 1, 0, -1
    p.node_share = float(np.float32(params["locality_threshold_node"]))
    p.rack_share = float(np.float32(params["locality_threshold_rack"]))
    p.reservable = float(np.float32(params["reservable_nodes"]))
    p.sized = params["size_based_weight"]
    p.single = int(whole[GPU] > 0)
    p.by = MEM if whole[MEM] > 0 else GPU if whole[GPU] > 0 else CPU
    p.masters = params["masters"] == "first"
    p.spare_masters = not params["am_preemption"]
    mem, cpu = (case.site[name].number(least=0) if name in case.site else d for name, d in INCREMENTS.items())
    factor = case.site[MULTIPLE].number(least=0) if MULTIPLE in case.site else 2.0
    p.least_mem, p.least_cpu = int(mem * factor), int(cpu * factor) * case.parts
    p.active = 1
    return p


def _nodes(params: Mapping[str, Any], count: int) -> Any:
    nodes = records(max(count, 1), NODE)
    beat = params["heartbeat"]
    nodes.offset[:count] = np.rint(np.arange(count) / max(count, 1) * beat * GRID) / GRID
    nodes.beaten = -np.inf
    nodes.flag = 1
    nodes.job = nodes.app = -1
    return nodes


def _needs(state: State, parts: int) -> Ints:
    need = np.zeros((state.jobs.size, 3), np.int64)
    need[:, GPU] = state.jobs.gpus
    if state.g[0].resources:
        need[:, MEM] = state.asks.mem
        need[:, CPU] = state.asks.cpu // (1000 // parts)
    return need


def _one_of(shape: Ints) -> Ints:
    """The first job of each shape; jobs -> shapes."""
    found = np.zeros(int(shape.max(initial=0)) + 1, np.int64)
    kinds, first = np.unique(shape, return_index=True)
    found[kinds] = first
    return found


def _big(state: State, shape: Ints) -> Ints:
    """Whether no suitable node holds a job; 1 or 0 per job."""
    if not state.jobs.size:
        return np.zeros(0, np.int64)
    kinds, at, of = np.unique(shape, return_index=True, return_inverse=True)
    most = np.zeros(kinds.size, np.int64)
    for k, j in enumerate(at):
        most[k] = _most_units(state, int(j))
    units = state.jobs.gpus if not state.g[0].resources else state.asks.units
    return np.asarray(units > most[of.reshape(-1)], np.int64)


def _most_units(state: State, j: int) -> int:
    """Most units of a job's gang on an empty suitable node."""
    job, nodes = state.jobs[j], state.nodes
    suits = (np.uint64(job.mask) >> nodes.cls.astype(np.uint64)) & np.uint64(1) == 1
    if not state.g[0].resources:
        return int(nodes.cap[suits].max(initial=0))
    ask, stock = state.asks[j], state.stock
    room = nodes.cap.copy() if job.gpus > 0 else np.full(nodes.size, ask.units, np.int64)
    for there, wanted in ((stock.cpu, int(ask.cpu)), (stock.mem, int(ask.mem))):
        if wanted:
            room = np.where(there < wanted, np.minimum(room, np.minimum(there, wanted) * ask.units // wanted), room)
    return int(room[suits].max(initial=0))


def _arrays(case: Case, found: Tree, places: JobQueues) -> Fair:
    workload, state, whole = case.workload, case.state, case.whole
    apps, app = _applications(workload, places, found)
    n, node_count, count = workload.size, len(case.cluster.nodes), len(found.names)
    p = _parameters(case)
    p.limited = bool((found.most < UNBOUNDED).any())
    tasks = records(n, TASK)
    tasks.app = app
    shape = shapes(state, np.zeros(n, np.int64))
    tasks.kind = shape
    tasks.big = _big(state, shape)
    if p.masters[0]:
        first = np.full(apps.size, n, np.int64)
        np.minimum.at(first, app, np.arange(n))
        # a gang that is its own application is no master
        apps.master = np.where(apps.left > 1, first, -1)
    users = len(workload.users) + 1
    most_of = np.full(users, UNBOUNDED)
    limit = places.allocations
    for k, name in enumerate(workload.users):
        value = limit.of_users.get(name, limit.user_apps)
        most_of[k] = UNBOUNDED if math.isinf(value) else int(value)
    want_first, wants = _wanted(case.params, workload)
    nodes = _nodes(case.params, node_count)
    entries = 2 * node_count + n + 64
    entry_lists = empty_lists(entries, nodes.size + 1)
    fill(entry_lists, nodes.size, entries)
    pieces = int(whole[GPU]) + int(state.g[0].splits) + 64

    def amounts(rows: int) -> Ints:
        return np.zeros((max(rows, 1), 3), np.int64)

    return Fair(
        p=p,
        cluster=whole,
        unit=np.array([1000 // case.parts], np.int64),
        queues=found.queues,
        children=found.children,
        order=max(found.children.size, 1),
        q_min=found.least,
        q_max=found.most,
        q_used=amounts(count),
        q_asks=amounts(count),
        q_demand=amounts(count),
        q_fair=amounts(count),
        q_app=amounts(count),
        q_masters=amounts(count),
        q_rate=(count, 3),
        apps=apps,
        lines=empty_lists(apps.size, count),
        members=empty_lists(apps.size, count + 1),
        a_used=amounts(apps.size),
        a_asks=amounts(apps.size),
        a_demand=amounts(apps.size),
        a_marked=amounts(apps.size),
        a_lack=amounts(apps.size),
        a_low=amounts(apps.size),
        a_picked=amounts(10),
        tasks=tasks,
        job_lists=empty_lists(n, 2 * apps.size),
        j_need=_needs(state, case.parts),
        want_first=want_first,
        wants=wants,
        nodes=nodes,
        n_taken=amounts(node_count),
        entry_app=entries,
        e_left=amounts(entries),
        entry_lists=entry_lists,
        live=2 * n + 64,
        live_row=2 * n + 64,
        touched=apps.size,
        users=users,
        user_most=most_of,
        hungry=apps.size + 1,
        search=np.arange(node_count),
        turn=(apps.size, 1),
        part=pieces,
        part_first=node_count + 1,
        part_at=node_count + 1,
        picked=pieces,
        share=(2, 3),
        fair=(2, 3),
        sorted=(2, 3),
        some=3,
        bad=np.full(int(shape.max(initial=0)) + 1, -1),
        gangs=int(shape.max(initial=0)) + 1,
        one_of=_one_of(shape),
    )
