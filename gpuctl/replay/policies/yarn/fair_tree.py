"""The fair scheduler's tree of queues for one replay: from an allocation file, or from the workload's queues alone."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.core.notes import NamedValue, note, together
from gpuctl.replay.policies.yarn.fair_file import Allocations, Amount, QueueConf
from gpuctl.replay.policies.yarn.fair_state import FAIR, POLICIES, QUEUE, UNBOUNDED

if TYPE_CHECKING:
    from typing import Any

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Ints

ROOT = "root"
DEFAULT = "root.default"


@dataclass(frozen=True)
class JobQueues:
    """Queues of the jobs of a workload.

    Attributes:
        allocations: the configuration, and added queues.
        of_job: full name of each job's queue.
        notes: additions and changes, with counts.
    """

    allocations: Allocations
    of_job: tuple[str, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Tree:
    """Queues as arrays, see `gpuctl.replay.policies.yarn.fair_state.Fair`.

    Attributes:
        names: full names; the root is the first.
        queues: records of `QUEUE`.
        children: CSR of the tree.
        least, most: units, shape (queues, 3).
    """

    names: tuple[str, ...]
    queues: Any
    children: Ints
    least: Ints
    most: Ints


def place(
    allocations: Allocations, wanted: list[str], users: list[str], *, undeclared: bool, by_user: bool
) -> JobQueues:
    """Find a queue for each job, as in Hadoop's default placement.

    A queue missing in the file is added under the root, with all queues above it, if undeclared ones are allowed;
    otherwise the job goes to root.default. Jobs without a queue go to one of their user's name, or to root.default.

    Args:
        allocations: the file.
        wanted: each job's queue in the workload, with or without ``root.``; "" none.
        users: each job's user; "" unknown.
        undeclared: ``allow-undeclared-pools``.
        by_user: ``user-as-default-queue``.
    """
    declared = {queue.name: queue for queue in allocations.queues}
    made: dict[str, QueueConf] = {}
    found: dict[tuple[str, str], str] = {}
    count: dict[str, int] = {}
    of_job = []
    for want, user in zip(wanted, users, strict=True):
        key = (want, "" if want else user)
        if key not in found:
            found[key] = _find(declared, made, key, undeclared=undeclared, by_user=by_user)
        of_job.append(found[key])
        if found[key] not in declared or (want and found[key] != full_name(want)):
            count[found[key]] = count.get(found[key], 0) + 1
    queues = (*allocations.queues, *made.values())
    notes = []
    if count:
        some = [
            note("{queue} ({jobs:,} job{jobs||s})", queue=NamedValue("queue", one), jobs=k)
            for one, k in list(count.items())[:5]
        ]
        more = note(" and {more} more", more=len(count) - 5) if len(count) > 5 else note("")
        notes.append(
            note(
                "queues that the allocation file does not declare as they are used: {some}{more}",
                some=together(", ", some),
                more=more,
            )
        )
    return JobQueues(dataclasses.replace(allocations, queues=queues), tuple(of_job), tuple(notes))


def full_name(name: str) -> str:
    """A queue's name from the root on."""
    return name if name == ROOT or name.startswith(ROOT + ".") else f"{ROOT}.{name}"


def holds_queues(queue: QueueConf) -> bool:
    """Whether a queue is a parent: the root always is."""
    return queue.parent or queue.name == ROOT


def _find(
    declared: dict[str, QueueConf], made: dict[str, QueueConf], key: tuple[str, str], *, undeclared: bool, by_user: bool
) -> str:
    want, user = key
    name = full_name(want) if want else f"{ROOT}.{user.replace('.', '_dot_')}" if user and by_user else DEFAULT
    there = declared.get(name, made.get(name))
    if there is not None and not there.parent and name != ROOT:
        return name
    if there is not None or name == ROOT:
        # a parent takes no applications in Hadoop
        return _make(declared, made, f"{name}.default")
    leaf_above = any(above in declared and not declared[above].parent and above != ROOT for above in _above(name))
    if name != DEFAULT and (not undeclared or leaf_above):
        name = DEFAULT
    return _make(declared, made, name)


def _above(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:k]) for k in range(1, len(parts))]


def _make(declared: dict[str, QueueConf], made: dict[str, QueueConf], name: str) -> str:
    if name in declared:
        return name
    for above in _above(name)[1:]:
        if above not in declared:
            made[above] = QueueConf(above, parent=True)
    limit = declared[name.rpartition(".")[0]].child_most if name.rpartition(".")[0] in declared else None
    made.setdefault(name, QueueConf(name, most=limit))
    return name


def flat(names: list[str], weights: Floats, least: Floats, policy: str, apps: float) -> Allocations:
    """Allocations without a file: a leaf under the root for each name.

    Args:
        names: full names.
        weights: of each.
        least: GPUs of its minimum.
        policy: of all queues: fair or drf; fifo applies to leaves under a fair root.
        apps: most running in each.
    """
    queues = [
        QueueConf(
            name,
            weight=float(weight),
            least=Amount((0.0, 0.0, float(gpus))),
            apps=apps,
            policy=policy,
        )
        for name, weight, gpus in zip(names, weights, least, strict=True)
    ]
    return Allocations(tuple(queues), policy="fair" if policy == "fifo" else policy, masters=-1.0)


def tree(allocations: Allocations, cluster: Ints, parts: int) -> Tree:
    """Build the arrays of queues, with inherited settings.

    Args:
        allocations: with a queue for every job.
        cluster: MB, CPUs in parts, GPUs of all nodes; 0 if not counted.
        parts: units per CPU.

    Raises:
        UsageError: a queue uses drf under one that uses fair.
    """
    by_name = {ROOT: QueueConf(ROOT, parent=True)}
    for queue in allocations.queues:
        for above in _above(queue.name)[1:]:
            by_name.setdefault(above, QueueConf(above, parent=True))
        by_name[queue.name] = queue
    order = _in_order(by_name)
    number = {name: k for k, name in enumerate(order)}
    found = records(len(order), QUEUE)
    least, most = np.zeros((len(order), 3), np.int64), np.full((len(order), 3), UNBOUNDED)
    children: list[int] = []
    ranks = {name: k for k, name in enumerate(sorted(order))}
    for k, name in enumerate(order):
        queue, record = by_name[name], found[k]
        above = name.rpartition(".")[0]
        record.parent = number[above] if above else -1
        under = [number[other] for other in order if other.rpartition(".")[0] == name] if name != ROOT else [
            number[other] for other in order if other.count(".") == 1
        ]  # fmt: skip
        record.first, record.count = len(children), len(under)
        children += under
        record.policy = POLICIES.index(queue.policy or allocations.policy)
        if above and POLICIES[record.policy] == "drf" and found[record.parent].policy == FAIR:
            raise UsageError(
                f"queue {name} uses drf under {above}, which uses fair: Hadoop refuses that",
                hint="use drf for the root, or fair for this queue",
            )
        _fill(record, queue, allocations, found[record.parent] if above else None)
        record.rank = ranks[name]
        least[k] = _units(queue.least, cluster, parts, 0)
        most[k] = np.maximum(_units(queue.most or allocations.most, cluster, parts, UNBOUNDED), least[k])
    return Tree(tuple(order), found, np.array(children, np.int64), least, most)


def _in_order(by_name: dict[str, QueueConf]) -> list[str]:
    """The root, then its children, then theirs: parents come before children."""
    return sorted(by_name, key=lambda name: (name.count("."), name != ROOT))


def _fill(record: Any, queue: QueueConf, allocations: Allocations, above: Any) -> None:
    def own(value: float | None, inherited: str, default: float) -> float:
        if value is not None:
            return value
        return default if above is None else float(above[inherited])

    # Hadoop keeps weights in single precision
    record.weight = float(np.float32(queue.weight))
    apps = allocations.apps if queue.apps is None else queue.apps
    record.most = UNBOUNDED if math.isinf(apps) else int(apps)
    masters = allocations.masters if queue.masters is None else queue.masters
    record.masters = float(np.float32(masters)) if masters > -0.9999 else -1.0
    record.min_wait = own(queue.min_wait, "min_wait", allocations.min_wait)
    record.fair_wait = own(queue.fair_wait, "fair_wait", allocations.fair_wait)
    record.threshold = float(np.float32(own(queue.threshold, "threshold", allocations.threshold)))
    record.victims = int(queue.victims and (above is None or bool(above.victims)))


def _units(amount: Amount | None, cluster: Ints, parts: int, missing: int) -> Ints:
    found = np.full(3, missing, np.int64)
    if amount is None:
        return found
    for r in range(3):
        if cluster[r] == 0:
            continue
        value = amount.parts[r]
        if amount.relative:
            found[r] = int(float(cluster[r]) * value)
        elif not math.isinf(value):
            found[r] = min(int(value) * (parts if r == 1 else 1), UNBOUNDED)
    return found
