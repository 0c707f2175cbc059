"""CPUs and memory in addition to GPUs: which count in a replay, requests of jobs, and capacities of nodes.

By default jobs request GPUs only. If CPUs or memory count (``gpu,cpu``, ``gpu,mem``, ``gpu,cpu,mem``), a job starts
only where all of them are free, and jobs without GPUs are also replayed. A job without a recorded request requests
none, unless the user gives a default per GPU; an unknown capacity of a node is unbounded. Both are counted and noted.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import literal, note
from gpuctl.core.numbers import number

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Cluster, Floats, Workload

GPUS_ONLY = ("gpu",)
RESOURCES = ("gpu", "cpu", "mem")
ASK = np.dtype([("units", "i8"), ("cpu", "i8"), ("mem", "i8")])
"""A gang's request besides GPUs: equal units that it can be split into, thousandths of a CPU, MB."""
STOCK = np.dtype([("cpu", "i8"), ("mem", "i8"), ("cpu_free", "i8"), ("mem_free", "i8"), ("room", "i8")])
"""A node's capacity besides GPUs; ``room`` is scratch of a search: units of a gang that fit there now."""
UNBOUND = 1 << 60
"""Unknown CPUs or memory of a node: unbounded."""
_MILLI = 1000
_MOST = float(1 << 50)
_FIELDS = {"cpu": ("cpus", "CPUs"), "mem": ("mem_mb", "memory")}


def parse_resources(text: str) -> tuple[str, ...]:
    """Read which resources count: ``gpu``, alone or with ``cpu`` and ``mem``, in any order.

    Raises:
        UsageError: it is none of these.
    """
    found = [word.strip() for word in text.lower().split(",")]
    if "gpu" not in found or len(set(found)) < len(found) or not set(found) <= set(RESOURCES):
        raise UsageError(f"--resources {text}: not understood", hint="expected gpu; gpu,cpu; gpu,mem; or gpu,cpu,mem")
    return tuple(word for word in RESOURCES if word in found)


def parse_per_gpu(text: str) -> tuple[float, float]:
    """Read a default per GPU, ``CPUS,GB``; returns CPUs and MB.

    Raises:
        UsageError: it is not a pair of numbers of at least 0.
    """
    try:
        cpus, gb = (float(part) for part in text.split(","))
    except ValueError:
        cpus = gb = math.nan
    if not (0 <= cpus <= 1e6 and 0 <= gb <= 1e6):
        raise UsageError(f"--per-gpu {text}: not understood", hint="expected CPUS,GB: 6,50 is 6 CPUs and 50 GB per GPU")
    return cpus, gb * 1024


def fill_in_requests(
    workload: Workload, cluster: Cluster, resources: tuple[str, ...], per_gpu: tuple[float, float] | None
) -> tuple[Workload, Cluster]:
    """Fill in missing requests of jobs by the user's default, and note what is unknown.

    Args:
        workload: the jobs.
        cluster: the nodes.
        resources: what counts.
        per_gpu: CPUs and MB per GPU of jobs without a request.

    Raises:
        UsageError: a counted resource is known for no node, or a default is given for one that does not count.
    """
    if resources == GPUS_ONLY:
        if per_gpu is not None:
            raise UsageError("--per-gpu: CPUs and memory do not count", hint="add --resources gpu,cpu,mem")
        return workload, cluster
    notes: list[Note] = []
    lacks: list[Note] = []
    given = dict(zip(("cpu", "mem"), per_gpu or (0.0, 0.0), strict=True))
    for name in resources[1:]:
        attribute, word = _FIELDS[name]
        there = _known(getattr(cluster, attribute), len(cluster.nodes))
        if np.isnan(there).all():
            raise UsageError(
                f"--resources {','.join(resources)}: the {word} of no node of {cluster.name} are known",
                hint="give nodes in a TOML file: --cluster FILE.toml, with cpus = 64 and mem_mb = 512000 "
                "under [[nodes]]",
            )
        if np.isnan(there).any():
            lacks.append(
                note(
                    "the {word} of {value:,} node{value||s} are not known and bound nothing there",
                    word=literal(word),
                    value=np.isnan(there).sum(),
                )
            )
        requested = _known(getattr(workload, attribute), workload.size)
        silent = np.isnan(requested)
        if per_gpu is not None:
            filled = silent & (workload.gpus > 0)
            requested = np.where(filled, workload.gpus * given[name], requested)
            size = literal(number(given[name] if name == "cpu" else given[name] / 1024))
            unit = note("{n} CPUs per GPU", n=size) if name == "cpu" else note("{n} GB per GPU", n=size)
            if filled.any():
                notes.append(
                    note(
                        "{filled:,} job{filled||s} {filled|does|do} not state {word}: assumed, {unit} (--per-gpu)",
                        filled=filled.sum(),
                        word=literal(word),
                        unit=unit,
                    )
                )
            silent &= ~filled
        if silent.any():
            notes.append(
                note(
                    "{silent:,} of {size:,} job{size||s} {silent|does|do} not state {word}: {silent|it asks|they ask} "
                    "for none",
                    silent=silent.sum(),
                    size=workload.size,
                    word=literal(word),
                )
            )
        workload = _asking(workload, name, requested)
    workload = dataclasses.replace(workload, notes=(*workload.notes, *notes))
    return workload, dataclasses.replace(cluster, notes=(*cluster.notes, *lacks))


def asks(workload: Workload, resources: tuple[str, ...]) -> Any:
    """The request of each job, records of `ASK`; 0 if not counted or unknown.

    Raises:
        InputError: a job requests more than supported.
    """
    found = records(workload.size, ASK)
    cpu = _requested(workload.cpus, workload.size) if "cpu" in resources else np.zeros(workload.size)
    mem = _requested(workload.mem_mb, workload.size) if "mem" in resources else np.zeros(workload.size)
    units = np.where(workload.gpus > 0, workload.gpus, np.maximum(np.ceil(cpu), 1))
    most = np.maximum(cpu * _MILLI, mem) * units
    if not (most <= _MOST * 1000).all():
        job = workload.ids[int(np.argmax(most))]
        raise InputError(f"{workload.name}: job {job!r} asks for more CPUs or memory than a job can have")
    found.units, found.cpu, found.mem = units, np.rint(cpu * _MILLI), np.ceil(mem)
    return found


def stocks(cluster: Cluster, resources: tuple[str, ...]) -> Any:
    """The capacity of each node besides GPUs, records of `STOCK`; unknown is unbounded."""
    count = len(cluster.nodes)
    found = records(count, STOCK)
    for name in ("cpu", "mem"):
        attribute, factor = _FIELDS[name][0], _MILLI if name == "cpu" else 1
        there = _known(getattr(cluster, attribute), count) if name in resources else np.full(count, np.nan)
        amount = np.where(np.isnan(there), UNBOUND, np.floor(np.nan_to_num(there) * factor + 1e-6)).astype(np.int64)
        found[name] = found[f"{name}_free"] = amount
    return found


def capacity(gpus: int, ask: Any, stock: Any, cluster: Cluster) -> NDArray[np.int64]:
    """Units of a job's gang that each empty node holds, regardless of permissions; shape (nodes,).

    Args:
        gpus: of the job.
        ask: one record of `asks`.
        stock: of `stocks`.
        cluster: the nodes.
    """
    units = cluster.gpus.copy() if gpus > 0 else np.full(len(cluster.nodes), ask.units, np.int64)
    for name in ("cpu", "mem"):
        wanted, there = int(ask[name]), stock[name]
        if wanted:
            fits = np.minimum(there, wanted) * ask.units // wanted
            units = np.minimum(units, np.where(there < wanted, fits, units))
    return units


def _asking(workload: Workload, name: str, requested: Floats) -> Workload:
    if name == "cpu":
        return dataclasses.replace(workload, cpus=requested)
    return dataclasses.replace(workload, mem_mb=requested)


def _known(values: Floats | None, size: int) -> Floats:
    return np.full(size, np.nan) if values is None else values


def _requested(values: Floats | None, size: int) -> Floats:
    return np.nan_to_num(_known(values, size))
