"""What a preemption costs: the same for every policy of one comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import literal, note, together
from gpuctl.core.numbers import lasting, unit_of
from gpuctl.core.numbers import size as size_of
from gpuctl.core.suspension_cost import (
    CHECKPOINT_BYTES_PER_GPU,
    MOST_CHECKPOINT_BYTES,
    NODE_RATE,
    START_S,
    STOP_S,
    STORAGE_RATE,
)

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Cluster, Floats, Workload

DEFAULT_S = 62.0
"""Mean of the Tiresias paper's testbed, 13 724 s / 221 preemptions, as Lucid's source quotes it."""

EPOCH_S = 600.0
MOST_EPOCHS = 90
"""Default epochs if a trace has none: of ten minutes, and at most this many."""

_FREE = note("none: preemption is free")

GPUS_A_NODE = 8
"""For a pool, whose nodes are unknown."""

_HINT = (
    "known: none, const[:SECONDS], resume:SECONDS, charge[:SECONDS], helios, lucid, pickyman; any of them "
    "followed by +resize:SECONDS, or resize:SECONDS alone"
)


@dataclass(frozen=True)
class Overhead:
    """Costs of every job, in seconds.

    Attributes:
        text: the model, for headings.
        suspend: time that GPUs are held without progress before they are free.
        resume: the same after a later start.
        move: of a migration or a resize.
        charge: work that a preemption adds to the job; no GPUs are held idle.
        epoch: progress between two checkpoints.
        bytes: of each checkpoint; writing it adds to ``suspend``, reading it to ``resume``.
        link: bytes per second of a job's nodes.
        storage: bytes per second of the storage, shared by all.
    """

    text: Note
    suspend: Floats
    resume: Floats
    move: Floats
    charge: Floats
    epoch: Floats
    bytes: Floats | float = 0.0
    link: Floats | float = NODE_RATE
    storage: float = field(default=math.inf)


def _seconds(text: str, spec: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"--overhead {spec}: not understood", hint=_HINT)
    return seconds


def overhead(spec: str, workload: Workload, cluster: Cluster) -> Overhead:
    """The overhead model of that name.

    Args:
        spec: ``none``; ``const:S``: a third of S seconds to suspend, the rest to resume, GPUs held meanwhile;
            ``resume:S``: GPUs are free at once, and held for S seconds at each later start; ``charge:S``: a preemption
            adds S seconds to the job's work; ``helios`` (7, 30, 60 s for 1, 2 to 8 and more GPUs) and ``lucid`` (40, 60
            s for up to 8 and more) charge as those simulators do; ``pickyman``: what `gpuctl.core.suspension_cost` with
            checkpoints that share the storage's rate during transfers. Each may be followed by ``+resize:S``: a resize
            or migration costs S seconds with GPUs held, overriding the model; ``resize:S`` alone: only that costs.
        workload: the jobs.
        cluster: the nodes: a gang transfers its checkpoint over the links of the fewest nodes it needs.

    Raises:
        UsageError: no such model, or not a number of seconds.
    """
    model, plus, more = spec.rpartition("+")
    if more.startswith("resize:"):
        seconds = _seconds(more.removeprefix("resize:"), spec)
        found = overhead(model if plus else "none", workload, cluster)
        text = note("{time} for a resize or migration", time=literal(lasting(seconds)))
        if plus or found.text != _FREE:
            text = together("; ", [found.text, text])
        return replace(found, text=text, move=np.full(workload.size, seconds))
    name, colon, number = spec.partition(":")
    n = workload.size
    zero = np.zeros(n)
    seconds = DEFAULT_S
    if colon and name not in {"const", "charge", "resume"}:
        raise UsageError(f"--overhead {spec}: not understood", hint=_HINT)
    if colon:
        seconds = _seconds(number, spec)
    total = workload.true_run_time
    epochs = np.clip(np.round(total / EPOCH_S), 1, MOST_EPOCHS)
    if workload.epochs is not None:
        epochs = np.where(np.isnan(workload.epochs), epochs, workload.epochs)
    epoch = total / epochs
    if name == "none":
        return Overhead(_FREE, zero, zero, zero, zero, epoch)
    if name == "resume" and colon:
        resume = np.full(n, seconds)
        text = note("{time} to resume after a preemption", time=literal(lasting(seconds)))
        return Overhead(text, zero, resume, resume, zero, epoch)
    if name == "const":
        text = note(
            "{time} a preemption: {suspend} to suspend, {resume} to resume",
            time=literal(lasting(seconds)),
            suspend=literal(lasting(seconds / 3, unit_of([seconds]))),
            resume=literal(lasting(seconds * 2 / 3, unit_of([seconds]))),
        )
        suspend, resume = np.full(n, seconds / 3), np.full(n, seconds * 2 / 3)
        return Overhead(text, suspend, resume, suspend + resume, zero, epoch)
    if name == "charge":
        charge = np.full(n, seconds)
        text = note("{time} of work added by each preemption", time=literal(lasting(seconds)))
        return Overhead(text, zero, zero, charge, charge, epoch)
    if name == "helios":
        charge = np.where(workload.gpus == 1, 7.0, np.where(workload.gpus <= 8, 30.0, 60.0))
        text = note("work added by each preemption as in Helios: 7, 30, 60 s for 1, 2 to 8, more GPUs")
        return Overhead(text, zero, zero, charge, charge, epoch)
    if name == "lucid":
        charge = np.where(workload.gpus <= 8, 40.0, 60.0)
        text = note("work added by each preemption as in Lucid: 40, 60 s for up to 8, more GPUs")
        return Overhead(text, zero, zero, charge, charge, epoch)
    if name == "pickyman":
        return _pickyman(workload, cluster, epoch)
    raise UsageError(f"unknown overhead model: {spec!r}", hint=_HINT)


def _pickyman(workload: Workload, cluster: Cluster, epoch: Floats) -> Overhead:
    n = workload.size
    size = np.minimum(CHECKPOINT_BYTES_PER_GPU * workload.gpus, MOST_CHECKPOINT_BYTES)
    if workload.checkpoint_bytes is not None:
        size = np.where(np.isnan(workload.checkpoint_bytes), size, workload.checkpoint_bytes)
    biggest = int(cluster.gpus.max()) if len(cluster.nodes) and not cluster.pool else GPUS_A_NODE
    link = NODE_RATE * np.ceil(workload.gpus / biggest)
    text = note(
        "after PickyMan's abstract, with gpuctl's constants: {stop} to stop, {start} to start, checkpoints at "
        "{node}/s for each node and {storage}/s in all",
        stop=literal(lasting(STOP_S)),
        start=literal(lasting(START_S)),
        node=literal(size_of(NODE_RATE)),
        storage=literal(size_of(STORAGE_RATE)),
    )
    stop, start = np.full(n, STOP_S), np.full(n, START_S)
    move = stop + start + 2 * size / link
    return Overhead(text, stop, start, move, np.zeros(n), epoch, size, link, STORAGE_RATE)
