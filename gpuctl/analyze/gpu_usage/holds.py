"""Holdings of GPUs over time, and the job of each series of samples."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.store.database import Store

Device = tuple[int, str | None]
"""A GPU of a node: NVML index, and the id of the MIG instance (None: the whole GPU)."""

_ATTEMPTS = """
    SELECT a.job, a.attempt, epoch_us(a.start_ts) AS start_us, epoch_us(coalesce(a.released_ts, a.end_ts)) AS end_us,
           a.gpus, a.gpus_by_type, a.state, j.array_job, j.array_task, j.het_job, j.het_offset
    FROM attempts AS a JOIN jobs AS j ON j.cluster = a.cluster AND j.job = a.job
    WHERE a.cluster = $cluster AND a.start_ts IS NOT NULL AND ($job IS NULL OR a.job = $job)
    ORDER BY a.job, a.attempt
"""
_PLACEMENTS = """
    SELECT job, attempt, machine, gpus, gpu_indices FROM placements
    WHERE cluster = $cluster AND ($job IS NULL OR job = $job)
    ORDER BY job, attempt, machine
"""
_DEVICES = """
    SELECT DISTINCT machine, gpu, uuid, pci_bus_id, minor, instance FROM gpu_devices WHERE cluster = $cluster
    ORDER BY ALL
"""
_NUMBERING = "SELECT machine, idx, minor FROM gpu_numbering WHERE cluster = $cluster ORDER BY source, machine, idx"
_TYPED = re.compile(r"=(\d+)")


class Attempt(NamedTuple):
    """An attempt that held GPUs or ran; times are microseconds since 1970."""

    job: str
    attempt: int
    start: int
    end: int | None
    gpus: float
    state: str


class NodeHold(NamedTuple):
    """GPUs of a node that an attempt held.

    Attributes:
        attempt: position in `Holds.attempts`.
        machine: the node.
        number: number of GPUs.
        devices: their indices; None: unknown.
        how: index, node (all of the node's), or empty if they are unknown.
    """

    attempt: int
    machine: str
    number: int
    devices: tuple[Device, ...] | None
    how: str


@dataclass
class Inventory:
    """The names of the GPUs of each node, from all sources."""

    by_uuid: dict[str, tuple[str | None, int, str | None]] = field(default_factory=dict)
    by_pci: dict[tuple[str, str], int] = field(default_factory=dict)
    minors: dict[str, dict[int, int]] = field(default_factory=dict)
    """Node -> minor number -> NVML index."""
    instances: dict[str, list[Device]] = field(default_factory=dict)
    indices: dict[str, set[int]] = field(default_factory=dict)
    files: dict[str, dict[int, int]] = field(default_factory=dict)
    """Node -> number of the scheduler -> minor number (gres.conf)."""
    any_files: bool = False

    def of_number(self, machine: str, idx: int) -> Device | None:
        """Return the GPU behind the scheduler's number; None: no source states it, and several are possible."""
        parts = self.instances.get(machine)
        if parts:
            return parts[idx] if idx < len(parts) else None
        minors = self.minors.get(machine, {})
        if all(minor == gpu for minor, gpu in minors.items()):
            return idx, None
        if machine in self.files:
            gpu = minors.get(self.files[machine].get(idx, -1))
            return None if gpu is None else (gpu, None)
        return (idx, None) if self.any_files else None


@dataclass
class Holds:
    """All attempts of a cluster, and their holdings."""

    attempts: list[Attempt]
    on_nodes: list[NodeHold]
    by_label: dict[str, list[int]]
    """A job's id in any of its forms -> its attempts, by start."""
    inventory: Inventory
    machine_gpus: dict[str, int]


def read(store: Store, cluster: str, job: str | None = None) -> Holds:
    """Read the holdings from an open store: all of a cluster's, or those of one job."""
    own = {"cluster": cluster}
    chosen = {"cluster": cluster, "job": job}
    inventory = _inventory(store, own)
    sizes = dict(store.execute("SELECT machine, gpus FROM machines WHERE cluster = $cluster", own).fetchall())
    attempts: list[Attempt] = []
    labels: dict[str, list[int]] = {}
    numbers: dict[tuple[str, int], int] = {}
    for row in store.execute(_ATTEMPTS, chosen).fetchall():
        job, attempt, start, end, gpus, by_type, state, array, task, het, offset = row
        numbers[job, attempt] = len(attempts)
        forms = {job, f"{array}_{task}" if array and task else job, f"{het}+{offset}" if het else job}
        for form in forms:
            labels.setdefault(form, []).append(len(attempts))
        counted = sum(int(n) for n in _TYPED.findall(by_type)) if by_type else 0
        running = state in {"running", "suspended"}
        attempts.append(Attempt(job, attempt, start, None if running else end, counted or gpus or 0, state))
    for of_job in labels.values():
        of_job.sort(key=lambda at: attempts[at].start)
    found = Holds(attempts, [], labels, inventory, sizes)
    for job, attempt, *placed in store.execute(_PLACEMENTS, chosen).fetchall():
        at = numbers.get((job, attempt))
        hold = None if at is None else _on_node(found, at, tuple(placed))
        if hold is not None:
            found.on_nodes.append(hold)
    return found


def _on_node(holds: Holds, at: int, placed: tuple[str, float, list[int] | None]) -> NodeHold | None:
    machine, gpus, indices = placed
    inventory = holds.inventory
    parts = inventory.instances.get(machine, [])
    # for a MIG instance, gpus is the fraction of a GPU
    count = len(indices) if indices else round(holds.attempts[at].gpus if parts else gpus)
    if not count:
        return None
    found = None if indices is None else [inventory.of_number(machine, idx) for idx in indices]
    if found and None not in found:
        return NodeHold(at, machine, count, tuple(device for device in found if device), "index")
    whole = parts or [(gpu, None) for gpu in sorted(inventory.indices.get(machine, ()))]
    size = len(parts) or holds.machine_gpus.get(machine) or len(whole)
    if size and count >= size:
        return NodeHold(at, machine, count, tuple(whole) or tuple((gpu, None) for gpu in range(size)), "node")
    return NodeHold(at, machine, count, None, "")


def _inventory(store: Store, own: dict[str, Any]) -> Inventory:
    found = Inventory()
    instances: dict[str, set[Device]] = {}
    for machine, gpu, uuid, pci, minor, instance in store.execute(_DEVICES, own).fetchall():
        if gpu is None:
            continue
        if uuid:
            found.by_uuid[uuid.upper()] = machine, gpu, instance if uuid.upper().startswith("MIG-") else None
        if machine is None:
            continue
        if pci:
            found.by_pci[machine, pci] = gpu
        if minor is not None:
            found.minors.setdefault(machine, {})[minor] = gpu
        if instance is not None:
            instances.setdefault(machine, set()).add((gpu, instance))
        found.indices.setdefault(machine, set()).add(gpu)
    found.instances = {machine: sorted(some, key=_order) for machine, some in instances.items()}
    for machine, idx, minor in store.execute(_NUMBERING, own).fetchall():
        found.files.setdefault(machine, {})[idx] = minor
    sources = "SELECT count(*) FROM sources WHERE cluster = $cluster AND format = 'slurm-gres-conf'"
    found.any_files = bool(store.value(sources, own))
    return found


def _order(device: Device) -> tuple[int, int, str]:
    text = device[1] or ""
    return device[0], int(text) if text.isdecimal() else 0, text


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return names of nodes by their first part, if only one node has it."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.partition(".")[0], []).append(name)
    return {short: some[0] for short, some in found.items() if len(some) == 1}
