"""Maps a workload's jobs to a site's configuration: partition, association, QOS, plan, parts of priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import NamedValue, note
from gpuctl.replay.contract.planning import planned
from gpuctl.replay.policies.slurm import priority
from gpuctl.replay.policies.slurm.fairshare import Tree, build_tree
from gpuctl.replay.policies.slurm.usage import billable
from gpuctl.slurm.associations import Association
from gpuctl.slurm.partitions import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload
    from gpuctl.replay.policies.slurm.setup import Setup

UNKNOWN = "?"
"""The account of jobs without one, if accounts have shares, and the partition of jobs without a queue."""


@dataclass(frozen=True)
class Jobs:
    """Arrays over jobs, and what their numbers mean.

    Attributes:
        partitions: by number.
        part: each job's partition.
        tree: associations with their shares.
        assoc: each job's association.
        user: its user; the last number means none.
        account: name of its account.
        qos: number of its QOS in ``qos_names``; -1 none.
        qos_names: of the configuration.
        plan: seconds that it is planned for.
        nodes: nodes that it requests; 0: as many as needed.
        least_nodes: least nodes that it needs.
        cpus: CPUs that it requests; 0 if unknown.
        mem: MiB; 0 if unknown.
        billing: its billing per second, without its QOS' ``UsageFactor``.
        rate: billing with that factor.
        notes: assumptions.
    """

    partitions: tuple[Partition, ...]
    part: Ints
    tree: Tree
    assoc: Ints
    user: Ints
    account: tuple[str, ...]
    qos: Ints
    qos_names: tuple[str, ...]
    plan: Floats
    nodes: Ints
    least_nodes: Ints
    cpus: Floats
    mem: Floats
    billing: Floats
    rate: Floats
    notes: tuple[Note, ...]


def jobs_of(setup: Setup, workload: Workload, cluster: Cluster, settings: Settings) -> Jobs:
    """Look up each job in the configuration.

    Raises:
        InputError: the associations are not a tree.
    """
    site, n = setup.site, workload.size
    notes: list[Note] = []
    partitions = tuple(site.partitions.get(name, Partition(name, all_nodes=True)) for name in workload.queues)
    strange = [name for name in workload.queues if name not in site.partitions]
    if strange:
        notes.append(
            note(
                "{strange:,} queue{strange||s} {strange|is not a partition|are not partitions} of slurm.conf (such as "
                "{strange_2}): all nodes, no limits",
                strange=len(strange),
                strange_2=NamedValue("queue", strange[0]),
            )
        )
    partitions = (*partitions, Partition(UNKNOWN, all_nodes=True))
    part = np.where(workload.queue < 0, len(workload.queues), workload.queue).astype(np.int64)
    biggest = max(int(cluster.gpus.max(initial=1)), 1)
    nodes = np.zeros(n, np.int64) if workload.min_nodes is None or cluster.pool else workload.min_nodes.copy()
    least = np.where(nodes > 0, nodes, np.maximum(-(-workload.gpus // biggest), 1))
    cpus = np.zeros(n) if workload.cpus is None else np.nan_to_num(workload.cpus)
    mem = np.zeros(n) if workload.mem_mb is None else np.nan_to_num(workload.mem_mb)
    user = np.where(workload.user < 0, len(workload.users), workload.user).astype(np.int64)
    tree, assoc, account, more = _associations(setup, workload)
    notes += more
    qos, qos_names, more = _qos(setup, workload, tree, assoc)
    notes += more
    billing, more = _billing(setup, workload, partitions, part, cpus=cpus, mem=mem, nodes=least)
    notes += more
    usage = np.array([site.qos[name].usage_factor for name in qos_names] + [1.0])
    plan = _plan(setup, workload, settings, partitions, part)
    return Jobs(
        partitions, part, tree, assoc, user, account, qos, qos_names, plan, nodes, least, cpus, mem, billing,
        billing * usage[qos], tuple(notes),
    )  # fmt: skip


def _plan(
    setup: Setup, workload: Workload, settings: Settings, partitions: tuple[Partition, ...], part: Ints
) -> Floats:
    """Planned seconds of jobs: at most their partition's ``MaxTime``, by default its ``DefaultTime``."""
    plan = planned(workload, settings, np.nan)
    most = np.array([np.inf if p.max_time_min is None else p.max_time_min * 60 for p in partitions])[part]
    usual = np.array([np.nan if p.default_time_min is None else p.default_time_min * 60 for p in partitions])[part]
    plan = np.where(np.isnan(plan), usual, plan)
    plan = np.where(np.isnan(plan), most, plan)
    return np.where(np.isfinite(plan), np.minimum(plan, most), setup.unlimited_s)


def _billing(
    setup: Setup,
    workload: Workload,
    partitions: tuple[Partition, ...],
    part: Ints,
    *,
    cpus: Floats,
    mem: Floats,
    nodes: Ints,
) -> tuple[Floats, list[Note]]:
    """Billing of jobs per second (``TRESBillingWeights``); by GPUs if CPUs are billed and a job's are unknown."""
    most = "MAX_TRES" in setup.multifactor.flags
    found = np.zeros(workload.size)
    silent = 0
    known: dict[tuple[float, ...], float] = {}
    for j in range(workload.size):
        weights = partitions[part[j]].billing
        key = (float(part[j]), cpus[j], mem[j], float(nodes[j]), float(workload.gpus[j]))
        if key not in known:
            tres = {"cpu": cpus[j], "mem": mem[j], "node": float(nodes[j]), "gres/gpu": float(workload.gpus[j])}
            by_cpu = weights is None and cpus[j] > 0 and setup.given
            known[key] = (
                float(workload.gpus[j]) if weights is None and not by_cpu else billable(tres, weights, max_tres=most)
            )
        silent += weights is None and setup.given and cpus[j] == 0
        found[j] = known[key]
    if silent and setup.fair_share != "none":
        how = note("which --resources gpu,cpu,mem reads where a file states them")
        return found, [note("jobs whose GPUs are billed in place of CPUs, {how}: {silent:,}", how=how, silent=silent)]
    return found, []


def _associations(setup: Setup, workload: Workload) -> tuple[Tree, Ints, tuple[str, ...], list[Note]]:
    """The tree of shares, each job's association in it, and the name of its account."""
    rows = list(setup.site.associations)
    listed = bool(rows)
    if not rows:
        rows.append(Association("root"))
    accounts = {row.account for row in rows if row.user is None}
    places = {(row.account, row.user, row.partition) for row in rows}
    of_user: dict[str | None, str] = {}
    for row in rows:
        if row.user is not None:
            of_user.setdefault(row.user, row.account)
    names: list[str] = []
    keys: list[tuple[str, str]] = []
    added_users, added_accounts = set(), set()
    for j in range(workload.size):
        user = workload.users[workload.user[j]] if workload.user[j] >= 0 else UNKNOWN
        own = account = ""
        if workload.account is not None and workload.account[j] >= 0:
            own = account = workload.accounts[workload.account[j]]
        elif listed:
            account = of_user.get(user, "root")
        elif setup.by == "account" and workload.queue[j] >= 0:
            account = workload.queues[workload.queue[j]]
        if not listed and setup.by == "user":
            account = "root"
        account = account or UNKNOWN
        queue = workload.queues[workload.queue[j]] if workload.queue[j] >= 0 else None
        if account not in accounts:
            rows.append(Association(account, None, "root"))
            accounts.add(account)
            added_accounts.add(account)
        if (account, user, None) not in places and (account, user, queue) not in places:
            rows.append(Association(account, user))
            places.add((account, user, None))
            added_users.add(user)
        # limits of accounts use the job's own, even if users have shares without accounts
        names.append(own or account)
        keys.append((account, user))
    tree = build_tree(rows)
    assoc = np.array(
        [
            tree.index(account, user, workload.queues[q] if q >= 0 else None)
            for (account, user), q in zip(keys, workload.queue.tolist(), strict=True)
        ],
        np.int64,
    )
    notes = []
    if listed and added_users:
        notes.append(
            note(
                "{added_users:,} user{added_users||s} (and {added_accounts:,} account{added_accounts||s}) have no "
                "association: each is given 1 share",
                added_users=len(added_users),
                added_accounts=len(added_accounts),
            )
        )
    if not listed and setup.fair_share != "none":
        whose = note("user") if setup.by == "user" else note("account, and of each user in it")
        notes.append(note("no associations are given: the shares of each {whose} are equal", whose=whose))
    return tree, assoc, tuple(names), notes


def _qos(setup: Setup, workload: Workload, tree: Tree, assoc: Ints) -> tuple[Ints, tuple[str, ...], list[Note]]:
    """Each job's QOS: its own, its association's default, or ``normal``; and the names of all."""
    site = setup.site
    number = {name: k for k, name in enumerate(site.qos)}
    found = np.full(workload.size, -1, np.int64)
    strange: set[str] = set()
    for j in range(workload.size):
        name = None
        if workload.qos is not None and workload.qos[j] >= 0:
            name = workload.qos_names[workload.qos[j]]
            if site.qos and name not in number:
                strange.add(name)
                name = None
        if name is None:
            name = tree.associations[assoc[j]].default_qos or "normal"
        found[j] = number.get(name, -1)
    notes = []
    if strange:
        notes.append(
            note(
                "{strange} QOS of the jobs are in no file, such as {strange_2}: they have none",
                strange=len(strange),
                strange_2=NamedValue("name", min(strange)),
            )
        )
    return found, tuple(number), notes


def parts_of_priority(setup: Setup, jobs: Jobs, workload: Workload, cluster: Cluster) -> dict[str, Floats]:
    """The parts of priorities that do not change: association, size, partition, QOS, TRES, nice.

    See `gpuctl.replay.policies.slurm.priority` for the formulas; age and fair-share are computed over time.
    """
    site, settings, n = setup.site, setup.multifactor, workload.size
    flags = settings.flags
    nothing = np.zeros(n)
    if setup.given and site.multifactor is None and not settings.weight_age:
        # priority/basic: first come, first served
        return dict.fromkeys(("assoc_part", "job_size", "partition_part", "qos_part", "tres", "nice"), nothing)
    all_cpus = 0.0 if cluster.cpus is None else float(np.nansum(cluster.cpus))
    if site.nodes and {node.name for node in site.nodes} == set(cluster.nodes):
        all_cpus = float(sum(node.cpus for node in site.nodes))
    given = np.array([one.priority or 0 for one in jobs.tree.associations], np.int64)
    factors = np.array([p.job_factor for p in jobs.partitions[:-1]] + [0], np.int64)
    most = max((p.job_factor for p in site.partitions.values()), default=0)
    qos = np.array([site.qos[name].priority for name in jobs.qos_names] + [0], np.int64)
    size = nothing
    if n:
        size = priority.size_factor(
            jobs.least_nodes,
            jobs.cpus.astype(np.int64) if all_cpus else np.zeros(n, np.int64),
            np.maximum(jobs.plan / 60.0, 1.0),
            all_nodes=max(len(cluster.nodes), 1),
            all_cpus=int(max(all_cpus, 1)),
            settings=settings,
        )
    found = {
        "assoc_part": settings.weight_assoc
        * priority.normalized(given[jobs.assoc], int(given.max()), as_they_are="NO_NORMAL_ASSOC" in flags),
        "job_size": settings.weight_job_size * size,
        "partition_part": settings.weight_partition
        * priority.normalized(factors[jobs.part], most, as_they_are="NO_NORMAL_PART" in flags),
        "qos_part": settings.weight_qos
        * priority.normalized(qos[jobs.qos], int(qos.max()), as_they_are="NO_NORMAL_QOS" in flags),
        "tres": _tres(settings.weight_tres, jobs, workload, cluster, "NO_NORMAL_TRES" in flags),
        "nice": nothing if workload.nice is None else workload.nice.astype(np.float64),
    }
    return {name: np.asarray(values, np.float64) for name, values in found.items()}


def _tres(weights: Mapping[str, float], jobs: Jobs, workload: Workload, cluster: Cluster, as_they_are: bool) -> Floats:
    """``PriorityWeightTRES``: shares of each partition's CPUs, memory, nodes and GPUs."""
    n = workload.size
    requested = {
        "cpu": jobs.cpus,
        "mem": jobs.mem,
        "node": jobs.least_nodes.astype(float),
        "gres/gpu": workload.gpus.astype(float),
        "billing": jobs.billing,
    }
    has = {
        "cpu": 0.0 if cluster.cpus is None else float(np.nansum(cluster.cpus)),
        "mem": 0.0 if cluster.mem_mb is None else float(np.nansum(cluster.mem_mb)),
        "node": float(len(cluster.nodes)),
        "gres/gpu": float(cluster.total_gpus),
    }
    total = np.zeros(n)
    for name, weight in weights.items():
        if name in requested:
            there = np.array([p.tres.get(name, has.get(name, 0.0)) for p in jobs.partitions])[jobs.part]
            total = total + priority.tres_factor(requested[name], there, as_they_are=as_they_are) * weight
    return total
