"""Makes the program of the policy ``slurm``: the arrays of its compiled passes, from a configuration and a workload."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.notes import NamedValue, note, untrusted
from gpuctl.replay.engine.running_jobs_kernel import nobody
from gpuctl.replay.engine.state import MODES
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.slurm import slurm_kernel
from gpuctl.replay.policies.slurm.gang_split import fit_requests
from gpuctl.replay.policies.slurm.jobs import jobs_of, parts_of_priority
from gpuctl.replay.policies.slurm.limit_tables import caps_of, needs
from gpuctl.replay.policies.slurm.records_kernel import (
    CAP,
    F_CLASSIC,
    F_NONE,
    F_TREE,
    FIRST,
    JOBX,
    M_CANCEL,
    M_OFF,
    M_REQUEUE,
    M_SUSPEND,
    OWN_REASONS,
    P_NONE,
    P_PARTITION,
    P_QOS,
    SCRIPTED,
    SLURM,
    Slurm,
)
from gpuctl.replay.policies.slurm.setup import grouped
from gpuctl.replay.policies.slurm.usage import next_reset, second_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.running_jobs_kernel import Running
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload
    from gpuctl.replay.policies.slurm.jobs import Jobs
    from gpuctl.replay.policies.slurm.limit_tables import Caps
    from gpuctl.replay.policies.slurm.setup import Setup

_FAIR = {"none": F_NONE, "tree": F_TREE, "classic": F_CLASSIC}
_PREEMPT = {"none": P_NONE, "partition": P_PARTITION, "qos": P_QOS}
_MODE = {"OFF": M_OFF, "REQUEUE": M_REQUEUE, "CANCEL": M_CANCEL, "SUSPEND": M_SUSPEND}
_MOST_RESETS = 4000


class SlurmProgram:
    """Runs the policy on one simulation.

    Attributes:
        reasons: of decisions, after those of all policies.
        notes: assumptions, and settings that are not modelled.
    """

    reasons = OWN_REASONS

    def __init__(self, slurm: Slurm, running: Running, notes: tuple[Note, ...]) -> None:
        self._slurm = slurm
        self._running = running
        self.notes = notes

    def advance(self, state: State, until: float, steps: int) -> int:
        """Advance by a number of instants."""
        return int(slurm_kernel.run(state, self._slurm, self._running, until, steps))

    def copy(self) -> SlurmProgram:
        """Return a copy with its own memory."""
        return SlurmProgram(self._slurm.copy(), self._running.copy(), self.notes)

    def follow(self, passes: Sequence[tuple[float, str]]) -> None:
        """Run passes only at given seconds, to compare with a real scheduler whose passes are known.

        Args:
            passes: seconds, ascending, and the kind of each: ``main`` | ``main_full`` | ``backfill`` | ``priority`` (a
                calculation of usage and priorities).
        """
        self._slurm = self._slurm.replace(
            script_t=np.array([at for at, _ in passes], np.float64),
            script_kind=np.array([SCRIPTED[kind] for _, kind in passes], np.int64),
        )

    def begin_within(self, ended: Ints, ran_s: Floats, ago_s: Floats) -> None:
        """Begin in the middle of a site's operation: jobs age from their submissions on, and users have usage.

        Args:
            ended: jobs of the workload that represent jobs ended before its first instant, for their billing.
            ran_s: how long each ran.
            ago_s: how long before that instant each ended; below 0: after it, without decay until then.
        """
        f = self._slurm
        f.p[0].accrue_always = 1
        second, at = float(f.p[0].second), f.x.assoc[ended]
        # a long job was charged in parts, each decayed since
        held = ran_s if second == 1 else (1 - second**ran_s) / -np.log(second)
        amount = f.x.rate[ended] * held * second**ago_s
        while at.size:
            np.add.at(f.raw, at, amount)
            at = f.parent[at]
            at, amount = at[at >= 0], amount[at >= 0]

    def priorities(self) -> dict[int, int]:
        """Waiting jobs in scheduling order, and their priorities."""
        line = self._slurm.line[: int(self._slurm.p[0].waiting)]
        return {int(j): int(self._slurm.x.prio[j]) for j in line}


def slurm_program(setup: Setup, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> SlurmProgram:
    """The program for one simulation.

    Raises:
        InputError: the configuration's associations are not a tree.
    """
    jobs = jobs_of(setup, workload, cluster, settings)
    caps = caps_of(setup, jobs, workload)
    nodes, more = _nodes(setup, jobs, workload, cluster)
    how = placements(workload, "any", settings.placement)
    if settings.placement is None:
        how[:] = FIRST
    parts = parts_of_priority(setup, jobs, workload, cluster)
    x = _jobs(setup, jobs, caps, workload, parts=parts, how=how)
    x.lln = _least_loaded(setup, jobs)[jobs.part]
    if x.lln.any() and not _knows_cpus(state):
        x.lln = 0
        more.append(
            note(
                "LLN (the least loaded node first) uses CPUs, which are not counted or unknown for some nodes: "
                "nodes are taken by Weight alone"
            )
        )
    ranked = setup.preempt != "none"
    _number_shapes(x, state, with_rank=ranked)
    more += fit_requests(x, nodes, cluster, state)
    _number_shapes(x, state, with_rank=ranked)
    p = _settings(setup, settings, cluster, state)
    running = nobody(jobs.plan, state.nodes.size, max(workload.size, 1))
    notes = (*jobs.notes, *more, *_notes(setup, caps, x, workload))
    return SlurmProgram(
        _bundle(setup, jobs, caps, workload, cluster=cluster, state=state, p=p, x=x, nodes=nodes), running, notes
    )


def _settings(setup: Setup, settings: Settings, cluster: Cluster, state: State) -> Any:
    m, q = setup.multifactor, setup.parameters
    p = records(1, SLURM)
    p.calc_period, p.max_age, p.second = m.calc_period_s, m.max_age_s, second_factor(m.half_life_s)
    p.sched_interval = q.sched_interval_s if q.sched_interval_s > 0 else 1e18
    p.min_interval = max(q.sched_min_interval_us / 1e6, 0.0)
    p.delay = q.batch_sched_delay_s
    p.bf_interval = max(q.bf_interval_s, 1)
    p.bf_window, p.bf_resolution = q.bf_window_min * 60.0, q.bf_resolution_s
    p.bf_min_age, p.bf_min_prio = q.bf_min_age_reserve_s, q.bf_min_prio_reserve
    p.kill_wait, p.requeue_delay = setup.site.kill_wait_s, setup.requeue_delay_s
    p.weight_age, p.weight_fairshare, p.dampening = m.weight_age, m.weight_fairshare, m.dampening
    p.bf_tests, p.bf_user, p.bf_part = q.bf_max_job_test, q.bf_max_job_user, q.bf_max_job_part
    p.bf_user_part, p.bf_assoc, p.bf_starts = q.bf_max_job_user_part, q.bf_max_job_assoc, q.bf_max_job_start
    p.bf_records = q.bf_node_space_size or q.bf_max_job_test
    p.bf_part_reserve = q.bf_job_part_count_reserve
    p.depth, p.part_depth, p.main_starts = q.default_queue_depth, q.partition_job_depth, q.sched_max_job_start
    p.assoc_stop, p.backfill = q.assoc_limit_stop, setup.backfill
    p.preempt, p.youngest, p.reorder = _PREEMPT[setup.preempt], q.preempt_youngest_first, q.preempt_reorder_count
    p.fair_share = _FAIR[setup.fair_share]
    p.accrue_always, p.incr_only = "ACCRUE_ALWAYS" in m.flags, "INCR_ONLY" in m.flags
    p.coarse, p.counts = setup.groups, cluster.pool
    p.mode = MODES[settings.mode] if settings.mode else -1
    p.logged_head, p.stale = -1, 1
    p.main_at = p.again = np.inf
    p.main_last = p.full_last = p.bf_last = -np.inf
    begin = float(state.g[0].now)
    p.tick_last = np.floor(begin / m.calc_period_s) * m.calc_period_s
    p.tick = p.tick_last[0] + m.calc_period_s
    return p


def _jobs(setup: Setup, jobs: Jobs, caps: Caps, workload: Workload, *, parts: dict[str, Floats], how: Ints) -> Any:
    site, n = setup.site, workload.size
    x = records(n, JOBX)
    x.plan, x.rate = jobs.plan, jobs.rate
    for name, values in parts.items():
        x[name] = values
    x.queued, x.accrue = workload.submit, workload.submit
    x.part, x.assoc, x.user, x.qos = jobs.part, jobs.assoc, jobs.user, jobs.qos
    x.tier = np.array([partition.tier for partition in jobs.partitions], np.int64)[jobs.part]
    x.nodes, x.how = jobs.nodes, how
    sole = [site.whole_nodes or partition.oversubscribe == "EXCLUSIVE" for partition in jobs.partitions]
    x.exclusive = np.array(sole, np.int64)[jobs.part]
    x.never = np.array([bool(why) for why in caps.never], np.int64)
    x.min_prio = caps.min_prio
    x.gives_way = -1
    qos = [*(site.qos[name] for name in jobs.qos_names), None]
    usual = site.preemption.mode
    if setup.preempt == "qos":
        x.level = np.append(_levels(setup, jobs.qos_names), 0)[jobs.qos]
        modes = [usual if one is None else one.preempt_mode or usual for one in qos]
        of_job = np.array([_mode(setup, mode) for mode in modes])[jobs.qos]
        rank = np.array([0 if one is None else min(one.priority, 0xFFFF) for one in qos], np.int64)[jobs.qos]
    else:
        modes = [partition.preempt_mode or usual for partition in jobs.partitions]
        of_job = np.array([_mode(setup, mode) for mode in modes])[jobs.part]
        rank = x.tier
    x.mode, x.victim_prio = of_job, rank << 16
    own = [one.preempt_exempt_s if one is not None else None for one in qos]
    usual_s = setup.site.preemption.exempt_s
    exempt = np.array([usual_s if one is None else one for one in own])[jobs.qos]
    x.exempt = exempt if setup.exempt_s is None else setup.exempt_s
    return x


def _mode(setup: Setup, text: str) -> int:
    mode = _MODE[setup.mode or text]
    return M_CANCEL if mode == M_REQUEUE and not setup.site.requeue else mode


def _levels(setup: Setup, names: tuple[str, ...]) -> Ints:
    """Length of the longest chain of preemption below each QOS; a ring counts as one."""
    known: dict[str, int] = {}

    def level(name: str, above: frozenset[str]) -> int:
        if name not in known:
            below = [other for other in setup.site.qos[name].preempts if other in names and other not in above]
            found = max((1 + level(other, above | {other}) for other in below), default=0)
            if not above - {name}:
                known[name] = found
            return found
        return known[name]

    return np.array([level(name, frozenset({name})) for name in names], np.int64)


def _number_shapes(x: Any, state: State, *, with_rank: bool) -> None:
    """Number jobs with equal requests, and those of them with equal plans."""
    masks = np.unique(state.jobs.mask, return_inverse=True)[1].reshape(-1)
    parts = [state.jobs.gpus, masks, x.part, x.nodes, x.how]
    if state.g[0].resources:
        parts += [state.asks.units, state.asks.cpu, state.asks.mem]
    if with_rank:
        parts += [x.tier, x.qos]
    form = np.zeros(x.size, np.int64)
    for part in parts:
        form = _finer(form, part)
    x.form = form
    x.kind = _finer(form, x.plan)


def _finer(group: Ints, values: Any) -> Ints:
    """Number the pairs of a group and a value."""
    found, code = np.unique(np.asarray(values), return_inverse=True)
    pair = np.unique(group * found.size + code.reshape(-1), return_inverse=True)[1]
    return np.asarray(pair, np.int64).reshape(-1)


def _nodes(setup: Setup, jobs: Jobs, workload: Workload, cluster: Cluster) -> tuple[NDArray[np.uint64], list[Note]]:
    """The nodes of each partition, a bit each, and notes on assumptions."""
    count = len(cluster.nodes)
    number = {name: k for k, name in enumerate(cluster.nodes)}
    found = np.zeros((len(jobs.partitions), (count + 63) // 64), np.uint64)
    named = {node.name for node in setup.site.nodes}.union(*(one.nodes for one in setup.site.partitions.values()))
    new = np.array([k for name, k in number.items() if name not in named], np.int64)
    old = np.setdiff1d(np.arange(count), new)
    unlike = new[~np.isin(cluster.gpus[new], cluster.gpus[old])]
    strange, grown = [], False
    for k, partition in enumerate(jobs.partitions):
        members: Ints = np.arange(count)
        if k < len(cluster.queue_nodes) and (own := cluster.queue_nodes[k]) is not None:
            members = np.asarray(own)
        elif setup.given and not partition.all_nodes and not cluster.pool:
            there = [number[name] for name in partition.nodes if name in number]
            if there:
                alike = new[np.isin(cluster.gpus[new], cluster.gpus[there])]
                members, grown = np.concatenate([there, alike, unlike]), bool(new.size)
            elif partition.nodes:
                strange.append(partition.name)
        for member in members.tolist():
            found[k, member >> 6] |= np.uint64(1 << (member & 63))
    notes = []
    if strange:
        notes.append(
            note(
                "the nodes replayed are not the nodes of {strange:,} partition{strange||s} (such as {strange_2}): "
                "these have "
                "all nodes",
                strange=len(strange),
                strange_2=NamedValue("queue", strange[0]),
            )
        )
    if grown:
        notes.append(
            note(
                "{size:,} node{size||s} {size|is not a node|are not nodes} of slurm.conf (such as {nodes}): "
                "each is in the partitions that "
                "have a node with as many GPUs, or in all where none has",
                size=new.size,
                nodes=NamedValue("machine", cluster.nodes[new[0]]),
            )
        )
    return found, notes


def _weights(setup: Setup, cluster: Cluster) -> Ints:
    """``Weight`` of each node: nodes are filled by it, then as they are listed."""
    weights = {node.name: node.weight for node in setup.site.nodes}
    return np.array([weights.get(name, 1) for name in cluster.nodes], np.int64)


def _least_loaded(setup: Setup, jobs: Jobs) -> Ints:
    """Whether jobs of each partition go to the least loaded node (``LLN``, ``CR_LLN``)."""
    everywhere = "CR_LLN" in setup.site.select_parameters
    return np.array([partition.least_loaded or everywhere for partition in jobs.partitions], np.int64)


def _knows_cpus(state: State) -> bool:
    return bool(state.g[0].resources) and bool((state.stock.cpu < UNBOUND).all())


def _resets(setup: Setup, workload: Workload) -> tuple[Floats, list[Note]]:
    """Seconds at which ``PriorityUsageResetPeriod`` clears usage."""
    period = setup.multifactor.reset_period
    if period == "NONE" or setup.fair_share == "none":
        return np.zeros(0), []
    begin = float(workload.submit.min()) if workload.size else 0.0
    if period == "NOW":
        return np.zeros(0), []
    if workload.origin is None:
        return np.zeros(0), [
            note(
                "PriorityUsageResetPeriod={period}: the jobs have no calendar, nothing is reset",
                period=NamedValue("value", period),
            )
        ]
    zero = workload.origin.timestamp()
    found: list[float] = []
    last = zero + begin
    while len(found) < _MOST_RESETS:
        last = next_reset(period, last, last)
        if found and last - zero <= found[-1]:
            break
        found.append(last - zero)
    return np.array(found), []


def _bundle(
    setup: Setup,
    jobs: Jobs,
    caps: Caps,
    workload: Workload,
    *,
    cluster: Cluster,
    state: State,
    p: Any,
    x: Any,
    nodes: NDArray[np.uint64],
) -> Slurm:
    n, node_count, words = workload.size, state.nodes.size, nodes.shape[1]
    kinds = int(x.kind.max(initial=0)) + 1
    # each reservation begins and ends a step; in a pool, running jobs also do
    steps = 2 * min(setup.parameters.bf_max_job_test, n) + 16 + (n if p.counts[0] else 0)
    tree, parts, users = jobs.tree, len(jobs.partitions), len(workload.users) + 1
    size = len(tree.parent)
    names = jobs.qos_names
    beats = np.zeros((len(names) + 1, len(names) + 1), np.int64)
    for a, name in enumerate(names):
        one = setup.site.qos[name]
        beats[a, a] = one.within
        for b, other in enumerate(names):
            beats[a, b] |= other in one.preempts
    rows = sorted(caps.caps, key=caps.caps.__getitem__)
    cap = records(len(rows), CAP)
    cap.jobs, cap.submitted = ([row[k] for row in rows] for k in (0, 1))
    two = (2, node_count)
    weight = _weights(setup, cluster)
    up = np.zeros(words, np.uint64)
    for k in range(node_count):
        up[k >> 6] |= np.uint64(1) << np.uint64(k & 63)
    return Slurm(
        p=p,
        x=x,
        line=n,
        spare=max(n, 3 * node_count) + 1,
        part=parts,
        part_ok=nodes,
        qos_preempts=beats,
        bad=np.full(int(x.form.max(initial=0)) + 1, -1),
        biggest=np.full(int(x.form.max(initial=0)) + 1, -1),
        kinds=kinds,
        kind_ok=(kinds, words),
        alive=kinds,
        gpu=two,
        cpu=two,
        mem=two,
        busy=two,
        sole=two,
        weight=weight,
        by_weight=np.argsort(weight, kind="stable").astype(np.int64),
        up=up,
        ok=words,
        off=words,
        tmp=words,
        step_t=steps,
        step_ok=(steps, words),
        step_took=(steps, 3),
        user_mark=users,
        user_tested=users,
        pair_mark=users * parts,
        pair_tested=users * parts,
        assoc_mark=size,
        assoc_tested=size,
        scope_first=caps.first,
        scope=caps.scope,
        cap_of=caps.cap_of,
        scopes=len(caps.scopes),
        used=(len(caps.scopes), 5),
        caps=cap,
        cap_tres=np.array([row[2:] for row in rows], np.int64).reshape(-1, 5),
        need=needs(jobs, workload),
        active=n,
        raw=size,
        parent=tree.parent,
        shares=tree.shares,
        level_shares=tree.level_shares,
        is_user=tree.is_user,
        fair_parent=tree.fair_parent,
        level_norm=tree.level_norm,
        norm=tree.norm,
        first=tree.first,
        children=tree.children,
        effective=size,
        level=size,
        factor=size,
        norm_usage=size,
        fresh=size,
        resets=_resets(setup, workload)[0],
        script_t=0,
        script_kind=0,
        victims=n,
        victim_key=n,
    )


def _notes(setup: Setup, caps: Caps, x: Any, workload: Workload) -> list[Note]:
    """Settings that are not modelled, one line per kind, and jobs that can never start."""
    found = [untrusted(text) for text in grouped((*setup.site.unmodelled, *caps.unmodelled))]
    found += _resets(setup, workload)[1]
    suspended = int((x.mode == M_SUSPEND).sum())
    if setup.preempt != "none" and suspended:
        found.append(
            note(
                "PreemptMode=SUSPEND of {suspended:,} job{suspended||s}: suspension on the same nodes is not "
                "modelled; they are "
                "queued again and lose no progress",
                suspended=suspended,
            )
        )
    reasons = Counter(why for why in caps.never if why)
    found += [
        note(
            "{count:,} job{count||s} can never start and {count|is|are} turned away: {why}",
            count=count,
            why=NamedValue("text", why),
        )
        for why, count in reasons.items()
    ]
    return found
