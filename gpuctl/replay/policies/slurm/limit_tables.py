"""Limits of partitions, QOS and associations as tables that the compiled scheduler looks up.

If a limit is set more than once, the first of these counts: the partition's QOS, the job's QOS (the other way round
with its flag ``OverPartQOS``), the association, for group limits also the accounts above it (SchedMD's page *Resource
Limits*). A request beyond what a single job may have keeps the job out for good.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.policies.slurm.records_kernel import BILLING, CPU, GPU, MEM, NO_LIMIT, NODE, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from gpuctl.replay.models.records import Ints, Workload
    from gpuctl.replay.policies.slurm.jobs import Jobs
    from gpuctl.replay.policies.slurm.setup import Setup
    from gpuctl.slurm.limits import Limits

_SCALE = {"cpu": 1000.0}


@dataclass
class Caps:
    """Scopes, and the limits that hold for jobs in them.

    Attributes:
        scopes: number of each scope.
        caps: limits on jobs, submitted jobs and resources, by number.
        first: the scopes of job ``j`` are ``scope[first[j]:first[j + 1]]``.
        scope: numbers of scopes.
        cap_of: the limits there; -1 none.
        never: the reason why a job never starts; "" if it may.
        min_prio: ``MinPrioThreshold`` of each job; 0 none.
        unmodelled: configured limits that are ignored.
    """

    scopes: dict[Hashable, int] = field(default_factory=dict)
    caps: dict[tuple[int, ...], int] = field(default_factory=dict)
    first: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    scope: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    cap_of: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    never: list[str] = field(default_factory=list)
    min_prio: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    unmodelled: list[tuple[str, str]] = field(default_factory=list)


def needs(jobs: Jobs, workload: Workload) -> Ints:
    """The request of each job, shape (jobs, 5): GPUs, thousandths of a CPU, MiB, nodes, billing."""
    found = np.zeros((workload.size, len(RESOURCES)), np.int64)
    found[:, GPU] = workload.gpus
    found[:, CPU] = np.rint(jobs.cpus * 1000)
    found[:, MEM] = np.ceil(jobs.mem)
    found[:, NODE] = jobs.least_nodes
    found[:, BILLING] = jobs.billing
    return found


def caps_of(setup: Setup, jobs: Jobs, workload: Workload) -> Caps:
    """The limits of every job."""
    found = Caps()
    need, limit_s = needs(jobs, workload), workload.planned_time
    known: dict[tuple[int, ...], tuple[list[tuple[int, int]], _Own]] = {}
    first, pairs = [0], []
    min_prio = np.zeros(workload.size, np.int64)
    names = {name: k for k, name in enumerate(jobs.qos_names)}
    accounts = {name: k for k, name in enumerate(dict.fromkeys(jobs.account))}
    for j in range(workload.size):
        key = (
            int(jobs.part[j]), int(jobs.qos[j]), int(jobs.assoc[j]), int(jobs.user[j]), accounts[jobs.account[j]]
        )  # fmt: skip
        if key not in known:
            known[key] = _of_kind(found, setup, jobs, key, names)
        scopes, own = known[key]
        pairs += scopes
        first.append(len(pairs))
        min_prio[j] = own.min_prio
        found.never.append(_never(setup, jobs, own, j, need=need[j], limit_s=limit_s[j]))
    found.first = np.array(first, np.int64)
    found.scope = np.array([scope for scope, _ in pairs], np.int64)
    found.cap_of = np.array([cap for _, cap in pairs], np.int64)
    found.min_prio = min_prio
    _list_unmodelled(found, setup)
    return found


@dataclass
class _Own:
    """Largest request of a single job of a kind."""

    tres: dict[str, float] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)
    wall_min: float | None = None
    min_prio: int = 0
    free_of_partition: bool = False


def _of_kind(
    found: Caps, setup: Setup, jobs: Jobs, key: tuple[int, ...], names: Mapping[str, int]
) -> tuple[list[tuple[int, int]], _Own]:
    """Scopes and limits of all jobs of one partition, QOS, association, user and account."""
    part, qos, assoc, user, account = key
    site, own = setup.site, _Own()
    pairs: list[tuple[int, int]] = []
    if not site.limits_hold:
        return pairs, own
    seen: set[str] = set()
    for name in _ordered(setup, jobs, part, qos):
        limits = site.qos[name].limits
        number = names[name]
        groups = (
            (("qos", number), limits.grp_jobs, limits.grp_submit, limits.grp_tres, "grp"),
            (("user", number, user), limits.max_jobs_user, limits.max_submit_user, limits.max_tres_user, "user"),
            (
                ("account", number, account), limits.max_jobs_account, limits.max_submit_account,
                limits.max_tres_account, "account",
            ),
        )  # fmt: skip
        for scope, most, submits, tres, kind in groups:
            pairs.append((_scope(found, scope), _cap(found, seen, kind, jobs=most, submits=submits, tres=tres)))
        _one_job(own, limits, seen)
        own.free_of_partition |= "PartitionTimeLimit" in site.qos[name].flags
    at, below = assoc, True
    while at >= 0:
        limits = jobs.tree.associations[at].limits
        # group limits of all accounts above apply, each in its own scope; a limit of a QOS replaces all of them
        known = set(seen)
        cap = _cap(found, known, "grp", jobs=limits.grp_jobs, submits=limits.grp_submit, tres=limits.grp_tres)
        pairs.append((_scope(found, ("assoc", at)), cap))
        if below:
            own_cap = _cap(found, set(seen), "user", jobs=limits.max_jobs, submits=limits.max_submit, tres={})
            pairs.append((_scope(found, ("assoc", at)), own_cap))
            _one_job(own, limits, seen)
        at, below = int(jobs.tree.parent[at]), False
    # a scope counts once per job, with its tightest limit: two entries of one scope become one
    merged: dict[int, list[int]] = {}
    for scope_number, cap in pairs:
        merged.setdefault(scope_number, []).append(cap)
    return [(number, _tightest(found, of)) for number, of in merged.items()], own


def _ordered(setup: Setup, jobs: Jobs, part: int, qos: int) -> list[str]:
    """The QOS whose limits apply to a job, in order of precedence."""
    site = setup.site
    mine = jobs.qos_names[qos] if qos >= 0 else None
    of_part = jobs.partitions[part].qos
    of_part = of_part if of_part in site.qos else None
    if mine is None or of_part is None or mine == of_part:
        return [name for name in (of_part or mine,) if name is not None]
    return [mine, of_part] if "OverPartQOS" in site.qos[mine].flags else [of_part, mine]


def _scope(found: Caps, key: Hashable) -> int:
    return found.scopes.setdefault(key, len(found.scopes))


def _cap(
    found: Caps, seen: set[str], kind: str, *, jobs: int | None, submits: int | None, tres: Mapping[str, float]
) -> int:
    """Number a row of limits, without those already set, and mark them as set."""
    row = [NO_LIMIT] * (2 + len(RESOURCES))
    for place, (name, value) in enumerate((("jobs", jobs), ("submit", submits))):
        if value is not None and f"{kind} {name}" not in seen:
            seen.add(f"{kind} {name}")
            row[place] = value
    for column, name in enumerate(RESOURCES):
        if name in tres and f"{kind} {name}" not in seen:
            seen.add(f"{kind} {name}")
            row[2 + column] = int(tres[name] * _SCALE.get(name, 1.0))
    if all(value == NO_LIMIT for value in row):
        return -1
    return found.caps.setdefault(tuple(row), len(found.caps))


def _tightest(found: Caps, numbers: list[int]) -> int:
    rows = {number: row for row, number in found.caps.items()}
    some = [rows[number] for number in numbers if number >= 0]
    if not some:
        return -1
    row = tuple(min(column) for column in zip(*some, strict=True))
    return found.caps.setdefault(row, len(found.caps))


def _one_job(own: _Own, limits: Limits, seen: set[str]) -> None:
    """Limits of a single job, if not already set."""
    for name, most in limits.max_tres.items():
        if f"job {name}" not in seen:
            seen.add(f"job {name}")
            own.tres[name] = most
    for name, least in limits.min_tres.items():
        own.least.setdefault(name, least)
    if own.wall_min is None:
        own.wall_min = limits.max_wall_min
    if not own.min_prio and limits.min_priority:
        own.min_prio = limits.min_priority


def _never(setup: Setup, jobs: Jobs, own: _Own, j: int, *, need: Ints, limit_s: float) -> str:
    """Why a job can never start; "" if it can."""
    partition = jobs.partitions[jobs.part[j]]
    for column, name in enumerate(RESOURCES):
        amount = need[column] / _SCALE.get(name, 1.0)
        if amount > own.tres.get(name, np.inf):
            return f"{name} of one job"
        if amount < own.least.get(name, -np.inf):
            return f"least {name} of one job"
    limit = jobs.plan[j]
    if partition.max_time_min is not None and limit_s > partition.max_time_min * 60 and not own.free_of_partition:
        return f"MaxTime of partition {partition.name}"
    if own.wall_min is not None and limit > own.wall_min * 60:
        return "MaxWall"
    if partition.max_nodes is not None and jobs.least_nodes[j] > partition.max_nodes:
        return f"MaxNodes of partition {partition.name}"
    if partition.state in {"DOWN", "INACTIVE", "DRAIN"}:
        return f"State={partition.state} of partition {partition.name}"
    account = jobs.account[j]
    qos = jobs.qos_names[jobs.qos[j]] if jobs.qos[j] >= 0 else ""
    if setup.given and setup.site.associations:
        if partition.allow_accounts is not None and account not in partition.allow_accounts:
            return f"AllowAccounts of partition {partition.name}"
        if account in partition.deny_accounts:
            return f"DenyAccounts of partition {partition.name}"
    if qos and partition.allow_qos is not None and qos not in partition.allow_qos:
        return f"AllowQos of partition {partition.name}"
    if qos in partition.deny_qos:
        return f"DenyQos of partition {partition.name}"
    return ""


def _list_unmodelled(found: Caps, setup: Setup) -> None:
    site = setup.site
    if not site.limits_hold:
        return
    owners = [(f"QOS {name}", one.limits) for name, one in site.qos.items()]
    owners += [(f"association {row.user or row.account}", row.limits) for row in site.associations]
    for who, limits in owners:
        if limits.grp_wall_min is not None:
            found.unmodelled.append((who, f"GrpWall={limits.grp_wall_min:g} min is not modelled"))
        if limits.max_tres_node:
            found.unmodelled.append((who, "MaxTRESPerNode is not modelled"))
        for tres in (limits.grp_tres, limits.max_tres, limits.max_tres_user, limits.max_tres_account, limits.min_tres):
            found.unmodelled += [(who, f"a limit of {name} is not modelled") for name in tres if name not in RESOURCES]
    for name, one in site.qos.items():
        if "NoReserve" in one.flags:
            found.unmodelled.append((f"QOS {name}", "flag NoReserve is not modelled"))
