"""Builds the arrays of a simulation from a workload, a cluster and the models shared by all policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled.bundles import aligned_records, as_records, records
from gpuctl.core.errors import UsageError
from gpuctl.core.notes import literal, note, together
from gpuctl.core.numbers import lasting
from gpuctl.replay.engine.requeue_kernel import WAYS
from gpuctl.replay.engine.state import (
    GLOBAL,
    JOB,
    MODES,
    NAMED_TIMERS,
    NODE,
    PHASE,
    State,
    wanted,
)
from gpuctl.replay.models.node_failures import NodeFailures
from gpuctl.replay.models.resources import ASK, GPUS_ONLY, STOCK, UNBOUND, asks, stocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.preemption_cost import Overhead
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload
    from gpuctl.replay.models.speed import Rates

MOST_CLASSES = 64
HOW_TEXT = {
    "now": "after a checkpoint, at any time",
    "epoch": "at the end of the epoch",
    "abort": "at once; what was done since the last epoch's end is lost",
}
"""Description of each preemption mode, for headings."""
SLICE_S, SWITCH_S = 60.0, 1.0
"""A time slice and the switch between two, which jobs that share GPUs by turns lose: a slice of a minute is what
Tiresias' authors assume for Gandiva (OSDI 2018), which switches in about 0.1 s; the second per switch is assumed."""


@dataclass(frozen=True)
class Settings:
    """Settings shared by all policies of a comparison.

    Attributes:
        rates: the speed model.
        overhead: the overhead model.
        placement: any | consolidate | spread for every policy; None: each policy's own.
        limits: end jobs at their time limits.
        seed: random seed for stochastic policies.
        mode: how every policy preempts, see `MODES`; None: each policy's own way.
        resources: what jobs ask for and nodes have, see `gpuctl.replay.models.resources`.
        slice_s: seconds of a turn of jobs that share GPUs by turns.
        switch_s: and of the switch between two turns, in which none makes progress.
        failures: how nodes fail, and what jobs keep; None: nodes go down as the cluster says.
    """

    rates: Rates
    overhead: Overhead
    placement: str | None = None
    limits: bool = False
    seed: int = 0
    mode: str | None = None
    resources: tuple[str, ...] = GPUS_ONLY
    slice_s: float = SLICE_S
    switch_s: float = SWITCH_S
    failures: NodeFailures | None = None

    def text(self) -> dict[str, Note]:
        """The settings as a report shows them."""
        texts: dict[str, Note] = {}
        if self.resources != GPUS_ONLY:
            all_of_them = together(", ", [literal(name) for name in self.resources])
            texts["resources"] = note("{names}; a job starts where all of them are free", names=all_of_them)
        if self.rates.pairs_text is not None:
            texts["packed jobs"] = self.rates.pairs_text
        if (self.slice_s, self.switch_s) != (SLICE_S, SWITCH_S):
            texts["time slices"] = note(
                "{turn}, and {switch} to switch",
                turn=literal(lasting(self.slice_s)),
                switch=literal(lasting(self.switch_s)),
            )
        if self.failures is not None:
            texts |= self.failures.text
        return {
            **texts,
            "speed": self.rates.text,
            "preemption overhead": self.overhead.text,
            "preemption": literal(HOW_TEXT[self.mode]) if self.mode else note("each policy's own way"),
            "placement": literal(self.placement) if self.placement else note("each policy's own"),
            "time limits": note("enforced") if self.limits else note("not enforced"),
            "seed": note("{seed}", seed=self.seed),
        }


def build(workload: Workload, cluster: Cluster, settings: Settings) -> State:
    """A simulation before its first instant.

    Raises:
        UsageError: the cluster has more than 64 kinds of nodes.
    """
    n, count = workload.size, len(cluster.nodes)
    classes, masks = _classes(workload, cluster)
    kinds = int(classes.max()) + 1 if count else 1
    masks &= _running(settings.rates, classes)
    jobs = _jobs(workload, settings, masks)
    nodes = records(count, NODE)
    nodes.cap = nodes.free = cluster.gpus
    nodes.cls = nodes.home = classes
    nodes.back = np.inf
    nodes.rack = np.maximum(cluster.rack, 0)
    nodes.up = 1
    nodes.reserved_for = -1
    biggest = int(cluster.gpus.max()) if count else 0
    words = (count + 63) // 64
    bits = np.zeros((kinds, biggest + 1, words), np.uint64)
    counts = np.zeros((kinds, biggest + 1), np.int64)
    number = np.arange(count)
    np.bitwise_or.at(bits, (classes, cluster.gpus, number >> 6), np.uint64(1) << (number & 63).astype(np.uint64))
    np.add.at(counts, (classes, cluster.gpus), 1)
    class_free = np.bincount(classes, cluster.gpus, kinds).astype(np.int64)
    class_cap = np.zeros(kinds, np.int64)
    np.maximum.at(class_cap, classes, cluster.gpus)
    rack_free = np.zeros((kinds, max(len(cluster.racks), 1)), np.int64)
    np.add.at(rack_free, (classes, np.maximum(cluster.rack, 0)), cluster.gpus)
    g = records(1, GLOBAL)
    g.total = g.free = cluster.total_gpus
    g.left = n
    _set_rules(g, settings)
    types, pairs = settings.rates.types, settings.rates.pairs
    g.typed, g.paired = int(types is not None), int(pairs is not None)
    g.whole = biggest if settings.rates.by_fewest else 0
    nodes.kind, nodes.type = cluster.gpu_type, 0 if types is None else types.node
    g.now = min(0.0, float(workload.submit.min())) if n else 0.0
    order = np.lexsort((np.arange(n), workload.eligible))
    # one more of each: jobs of unknown queue or user form their own tenant
    queues, users = len(workload.queues) + 1, len(workload.users) + 1
    heap_size = 3 * n + NAMED_TIMERS + 2 + count
    machine = _machine_events(cluster)
    g.at_once = int(np.unique(machine[0], return_counts=True)[1].max(initial=0))
    first, children = _children(workload)
    more = settings.resources != GPUS_ONLY
    ask, stock = (asks(workload, settings.resources), stocks(cluster, settings.resources)) if more else (None, None)
    if ask is not None and stock is not None:
        g.resources = 1
        g.cpu, g.mem = (stock[name][stock[name] < UNBOUND].sum() for name in ("cpu", "mem"))
        # a piece of a job without GPUs holds at least half a CPU; if CPUs are unbounded it is never split
        g.splits = 2 * (int(g.cpu[0]) // 1000 + 1)
    held = n + 2 * cluster.total_gpus + int(g.splits[0]) + 1024
    return State(
        g=g,
        jobs=jobs,
        nodes=nodes,
        heap_t=heap_size,
        heap_c=heap_size,
        heap_node=heap_size,
        node_at=np.full(heap_size, -1),
        arrivals=order.astype(np.int64),
        arrive_t=workload.eligible[order].astype(np.float64),
        machine_t=machine[0],
        machine_node=machine[1],
        machine_up=machine[2],
        bits=bits,
        count=counts,
        class_free=class_free,
        class_cap=class_cap,
        rack_free=rack_free,
        queue_used=queues,
        queue_limit=np.full(queues, np.inf),
        share_used=max(queues, users),
        segment_s=workload.segment_s.astype(np.float64),
        segment_fails=workload.segment_fails.astype(np.int64),
        child_first=first,
        children=children,
        choice=max(count, 1),
        order=max(count, 1),
        attempts=n + 1024,
        pieces=held,
        log=2 * n + 1024,
        # a step reports each job's queueing, end, lease and timer at most once, and earlier lost leases
        events=5 * n + int(g.at_once[0]) + NAMED_TIMERS + 16,
        fresh=n,
        moving=n,
        asks=records(1, ASK) if ask is None else ask,
        stock=records(1, STOCK) if stock is None else stock,
        need=max(count, 1) if more else 1,
        needs=held if more else 1,
        share_need=max(queues, users) if more else 1,
        by_type=np.ones((1, 1, 1)) if types is None else types.speed.astype(np.float64),
        by_pair=np.ones((1, 1)) if pairs is None else pairs.astype(np.float64),
        curves=np.concatenate([np.ones(1), *workload.curves]),
        phases=_phases(workload, jobs),
        turns=0,
    )


def _set_rules(g: Any, settings: Settings) -> None:
    g.limits = int(settings.limits)
    g.slice, g.switch = settings.slice_s, settings.switch_s
    g.mode = MODES[settings.mode or "now"]
    g.storage = settings.overhead.storage
    if settings.failures is not None:
        g.failing, g.detect, g.restart = 1, settings.failures.detect, settings.failures.restart
        g.requeue = WAYS.index(settings.failures.requeue)


def _jobs(workload: Workload, settings: Settings, masks: NDArray[np.uint64]) -> Any:
    jobs = aligned_records(workload.size, JOB)
    jobs.submit = workload.submit
    first = workload.segment_start[:-1]
    jobs.segment = first
    jobs.last_segment = workload.segment_start[1:] - 1
    jobs.work = workload.segment_s[first]
    jobs.tenth, jobs.t10 = 0.1 * workload.true_run_time, np.nan
    jobs.gpus = jobs.least = jobs.most = workload.gpus
    if workload.min_gpus is not None:
        jobs.least = workload.min_gpus
    if workload.max_gpus is not None:
        jobs.most = workload.max_gpus
    jobs.queue = np.where(workload.queue < 0, len(workload.queues), workload.queue)
    jobs.share = jobs.queue
    jobs.limit = np.where(np.isnan(workload.time_limit), np.inf, workload.time_limit)
    jobs.mask = masks
    jobs.ready = np.nan
    jobs.first_start = np.nan
    jobs.start = np.nan
    jobs.end = np.nan
    jobs.lease = np.inf
    jobs.host = jobs.guest = jobs.next_guest = -1
    jobs.row = jobs.goal_of = -1
    jobs.speed0, jobs.speed1, jobs.speed2 = settings.rates.speed.T
    if settings.rates.row is not None:
        jobs.row_of_speeds = settings.rates.row
    jobs.alpha, jobs.pack = settings.rates.alpha, settings.rates.pack
    jobs.pace = 1.0
    if workload.curve is not None:
        sizes = np.array([0, *(curve.size for curve in workload.curves)])
        jobs.points = sizes[workload.curve + 1]
        jobs.curve = np.cumsum(sizes)[workload.curve] + 1
    cost = settings.overhead
    jobs.suspend, jobs.resume, jobs.move, jobs.charge = cost.suspend, cost.resume, cost.move, cost.charge
    jobs.epoch = cost.epoch
    jobs.bytes, jobs.link = cost.bytes, cost.link
    jobs.every = np.inf
    if settings.failures is not None:
        jobs.every, jobs.write = settings.failures.every, settings.failures.write
    if workload.depends.size:
        jobs.parents = np.bincount(workload.depends[:, 0], minlength=workload.size)
        if workload.think is not None:
            jobs.think = np.where(jobs.parents > 0, workload.think, 0.0)
            jobs.parents += jobs.think > 0
    return jobs


def _phases(workload: Workload, jobs: Any) -> Any:
    """The rows of `State.phases`; sets each job's first row."""
    jobs.change = np.inf
    number = workload.phase
    some = np.flatnonzero(number >= 0).tolist() if number is not None else []
    if number is None or not some:
        return records(1, PHASE)
    sizes = [curve.size for curve in workload.curves]
    first = np.cumsum([1, *sizes])
    work = workload.true_run_time
    found: list[tuple[float, int, int]] = []
    for job in some:
        phases = workload.phases[number[job]]
        jobs.phases[job], jobs.first_phase[job] = 1, len(found)
        ends = [*(part * work[job] for part, _ in phases[1:]), np.inf]
        found += [(end, int(first[curve]), sizes[curve]) for end, (_, curve) in zip(ends, phases, strict=True)]
        jobs.change[job] = ends[0]
    return as_records(np.array(found, PHASE))


def _classes(workload: Workload, cluster: Cluster) -> tuple[Ints, NDArray[np.uint64]]:
    """Number the kinds of nodes that jobs distinguish, and the kinds that suit each job."""
    count = len(cluster.nodes)
    allowed = [s for s in cluster.queue_nodes if s is not None]
    member = np.zeros((count, 1 + len(allowed)), np.int64)
    member[:, 0] = cluster.gpu_type
    for k, nodes in enumerate(allowed, 1):
        member[nodes, k] = 1
    kinds, classes = np.unique(member, axis=0, return_inverse=True)
    if len(kinds) > MOST_CLASSES:
        raise UsageError(
            f"{len(kinds)} kinds of nodes by GPU type and by the queues that may use them; at most {MOST_CLASSES} "
            "are supported",
            hint="replay fewer queues at a time, or give a simpler cluster with --cluster",
        )
    column = {}
    k = 0
    for queue, of_queue in enumerate(cluster.queue_nodes):
        if of_queue is not None:
            k += 1
            column[queue] = k
    types = max(len(workload.gpu_types), 1)
    table = np.zeros((len(workload.queues) + 1, types + 1), np.uint64)
    for queue in range(table.shape[0]):
        for gpu_type in range(-1, types):
            fits = (kinds[:, 0] == gpu_type) | (kinds[:, 0] < 0) if gpu_type >= 0 else np.ones(len(kinds), bool)
            if queue in column:
                fits &= kinds[:, column[queue]] == 1
            table[queue, gpu_type] = np.bitwise_or.reduce(
                np.where(fits, np.uint64(1) << np.arange(len(kinds), dtype=np.uint64), np.uint64(0))
            )
    return classes.reshape(-1).astype(np.int64), table[workload.queue, workload.gpu_type]


def _running(rates: Rates, classes: Ints) -> NDArray[np.uint64]:
    """The kinds of nodes on whose GPUs each job can run; shape (jobs,), or (1,) if types do not matter."""
    if rates.types is None or rates.row is None:
        return np.full(1, ~np.uint64(0))
    runs = rates.types.speed[:, rates.types.node, 0] > 0
    masks = np.zeros(runs.shape[0], np.uint64)
    for node in range(runs.shape[1]):
        masks |= np.where(runs[:, node], np.uint64(1) << np.uint64(classes[node]), np.uint64(0))
    return np.asarray(masks[rates.row])


def _machine_events(cluster: Cluster) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    down = cluster.down
    if down is None or not len(down):
        return np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64)
    t = np.concatenate([down[:, 1], down[:, 2]])
    node = np.concatenate([down[:, 0], down[:, 0]]).astype(np.int64)
    up = np.repeat(np.array([0, 1], np.int64), len(down))
    finite = np.isfinite(t)
    t, node, up = t[finite], node[finite], up[finite]
    # at one instant, nodes come up before others go down
    order = np.lexsort((node, 1 - up, t))
    return t[order], node[order], up[order]


def _children(workload: Workload) -> tuple[Ints, NDArray[np.int64]]:
    if not workload.depends.size:
        return np.zeros(workload.size + 1, np.int64), np.zeros(0, np.int64)
    order = np.lexsort((workload.depends[:, 0], workload.depends[:, 1]))
    after, before = workload.depends[order].T
    first = np.searchsorted(before, np.arange(workload.size + 1))
    return first.astype(np.int64), after.astype(np.int64)


def grow(state: State) -> None:
    """Give a simulation more room for attempts, pieces, decisions and events; its address stays."""
    log, attempts, pieces, events, turns = (int(size) for size in wanted(state.g[0], state.nodes.size))
    state.put(
        attempts=_longer(state.attempts, attempts),
        pieces=_longer(state.pieces, pieces),
        needs=_longer(state.needs, pieces) if state.g[0].resources else state.needs,
        log=_longer(state.log, log),
        events=_longer(state.events, events),
        turns=_longer(state.turns, turns),
    )


def _longer(array: Any, needed: int) -> Any:
    if needed <= array.size:
        return array
    longer = records(max(needed, array.size * 3 // 2), array.dtype)
    # as bytes: NumPy copies records field by field
    longer.view(np.ndarray).view(np.uint8)[: array.nbytes] = array.view(np.ndarray).view(np.uint8)
    return longer
