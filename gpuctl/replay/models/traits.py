"""Traits and deadlines of jobs that few logs record: scaling, use of GPUs, elasticity, when a job is due.

Missing values are derived from a hash of the job's name, independent of other jobs: assumed, not measured. Results list
which values are assumed.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import literal, note, together

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Ints, Workload


TRAITS = ("eff_rack", "eff_cross", "alpha", "w_min", "w_max", "fungible", "util", "mem", "grow")
"""Columns of a CSV of jobs."""

EFFICIENCIES = ((10, 0.70, 0.50), (20, 0.72, 0.52), (30, 0.75, 0.56), (40, 0.80, 0.64), (100, 0.98, 0.96))
"""Per share of jobs in percent: speed over nodes of a rack, and over racks. VGG19, VGG16, VGG11, AlexNet and the rest
(ResNets, Inceptions, GoogLeNet) among the models of the simulator by Themis' first author."""

ALPHAS = ((25, 0.02), (75, 0.08), (100, 0.20))
UTILS = (0.2, 0.35, 0.5, 0.7, 0.9)
MEMS = (0.2, 0.35, 0.5, 0.8)
ELASTIC_FROM, ELASTIC_PCT, FUNGIBLE_PCT, GROW_PCT = 4, 50, 21, 20


@dataclass(frozen=True)
class Traits:
    """Traits of every job.

    Attributes:
        eff_rack: speed over several nodes of one rack, relative to one node.
        eff_cross: the same over several racks.
        alpha: n GPUs are n / (1 + alpha (n - 1)) times as fast as one.
        w_min: the fewest GPUs that it may run on.
        w_max: the most.
        fungible: whether it runs on GPUs of inference nodes.
        util: share of its GPUs' computing that it uses.
        mem: share of their memory.
        grow: whether it takes idle GPUs.
        derived: which values are not from the input, by name.
    """

    eff_rack: Floats
    eff_cross: Floats
    alpha: Floats
    w_min: Ints
    w_max: Ints
    fungible: NDArray[np.bool_]
    util: Floats
    mem: Floats
    grow: NDArray[np.bool_]
    derived: dict[str, NDArray[np.bool_]]

    def notes(self) -> tuple[Note, ...]:
        """Number of assumed values by trait; empty if none is."""
        counts = {name: int(mask.sum()) for name, mask in self.derived.items() if mask.any()}
        if not counts:
            return ()
        each = [note("{name} ({k:,})", name=literal(name), k=k) for name, k in counts.items()]
        return (
            note(
                "assumed from a hash of the jobs' names, not measured, by number of jobs: {each}; see replay_traits",
                each=together(", ", each),
            ),
        )


def hashed(names: tuple[str, ...], tag: str = "") -> Ints:
    """A number from 0 to 99 for each name, the same on every machine."""
    end = f":{tag}".encode() if tag else b""
    return np.fromiter((zlib.crc32(name.encode() + end) % 100 for name in names), np.int64, len(names))


def _stepped(number: Ints, steps: tuple[tuple[float, ...], ...], column: int) -> Floats:
    """Row of the first step above each number."""
    row = np.searchsorted([step[0] for step in steps], number, side="right")
    return np.array([step[column] for step in steps])[row]


def traits(workload: Workload) -> Traits:
    """Traits of each job from the input, derived if missing."""
    ids, gpus = workload.ids, workload.gpus
    derived: dict[str, NDArray[np.bool_]] = {}

    def filled(name: str, otherwise: Floats | Ints | NDArray[np.bool_], own: Floats | Ints | None = None) -> Floats:
        listed = workload.traits.get(name)
        if listed is None:
            listed = np.full(workload.size, np.nan) if own is None else own.astype(np.float64)
        derived[name] = np.isnan(listed)
        return np.where(derived[name], otherwise, listed)

    model = hashed(ids)
    elastic = (gpus >= ELASTIC_FROM) & (hashed(ids, "elastic") < ELASTIC_PCT)
    # the same range applies to policies that resize jobs
    w_min = filled("w_min", gpus, workload.min_gpus).astype(np.int64)
    w_max = filled("w_max", np.where(elastic, 2 * gpus, gpus), workload.max_gpus).astype(np.int64)
    return Traits(
        eff_rack=filled("eff_rack", _stepped(model, EFFICIENCIES, 1)),
        eff_cross=filled("eff_cross", _stepped(model, EFFICIENCIES, 2)),
        alpha=filled("alpha", _stepped(hashed(ids, "alpha"), ALPHAS, 1)),
        w_min=w_min,
        w_max=w_max,
        fungible=filled("fungible", (w_max > w_min) | (hashed(ids, "fungible") < FUNGIBLE_PCT)) > 0,
        util=filled("util", np.array(UTILS)[hashed(ids, "util") // 20]),
        mem=filled("mem", np.array(MEMS)[hashed(ids, "mem") // 25]),
        grow=filled("grow", hashed(ids, "grow") < GROW_PCT) > 0,
        derived=derived,
    )


def in_line(workload: Workload) -> Ints:
    """The position of each job in its input, which breaks ties; if unknown, the order of submission."""
    if workload.line is None:
        return np.arange(workload.size, dtype=np.int64)
    place = np.empty(workload.size, np.int64)
    place[np.argsort(workload.line, kind="stable")] = np.arange(workload.size)
    return place


LATE_S = 1e-6
"""Tolerance, in seconds, for meeting a deadline."""


def deadlines(workload: Workload) -> Floats:
    """The deadline of each job in seconds, inf if it has none.

    If no job of the input has one, submission + run time x u, with u from 0.5 to 1.5 by a hash of the job's name:
    the span from which ElasticFlow's generator draws.
    """
    given = workload.deadline
    if given is not None:
        return np.where(np.isnan(given), np.inf, given)
    part = np.fromiter((zlib.crc32(f"{name}:deadline".encode()) % 1001 for name in workload.ids), float, workload.size)
    return np.asarray(workload.submit + workload.true_run_time * (0.5 + part / 1000))


def deadline_notes(workload: Workload) -> tuple[Note, ...]:
    """A note if deadlines are assumed, or if some are over before their jobs are submitted."""
    if workload.deadline is not None:
        late = int((workload.deadline <= workload.submit).sum())
        text = note(
            "{late:,} job{late||s} {late|is|are} due at or before {late|its|their} submission, which no policy can "
            "meet",
            late=late,
        )
        return (text,) if late else ()
    return (
        note(
            "deadlines are assumed, not from the input: submission + run time x u, u from 0.5 to 1.5 by a hash of the "
            "job's name"
        ),
    )
