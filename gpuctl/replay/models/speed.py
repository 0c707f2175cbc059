"""Speed models: a job's speed by placement, the same for every policy of a comparison.

The work of a job is its recorded run time times its speed on the recorded placement, so that a replay on that placement
takes as long as recorded. See ``docs/how-to/replay.md`` for the sources of the factors.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import number
from gpuctl.replay.models.traits import traits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload
    from gpuctl.replay.models.speed_table import PairTable, SpeedTable

SENSITIVE_PCT = 40
"""Share of jobs assumed to be slowed down by a spread placement, chosen by a hash of the job's name."""

SPREAD_SPEED = 0.5
"""Speed over several nodes of one rack, relative to a single node: median of Gavel's table for V100, 2 GPUs."""

RACK_EXPONENT = 1.3
"""Exponent of `SPREAD_SPEED` for placements across racks."""

ALPHA = 0.08
"""n GPUs are n / (1 + ALPHA (n - 1)) times as fast as one: Gavel's table, medium class."""

PACK_SPEED = 0.69
"""Speed of a job packed with another on the same GPU: Gavel's table for V100, median."""


@dataclass(frozen=True)
class TypeSpeeds:
    """Speeds of each class of jobs by GPU type.

    Attributes:
        speed: (classes, types, 3) by placement as in `Rates.speed`.
        node: (nodes) number of each node's type in `speed`.
    """

    speed: Floats
    node: Ints


@dataclass(frozen=True)
class Rates:
    """Speeds of every job, relative to its speed on the recorded placement.

    Attributes:
        text: the model, for headings.
        speed: (jobs, 3) on one node, on several of one rack, across racks.
        alpha: (jobs) loss of scaling with GPUs.
        pack: (jobs) packed with another job on the same GPUs.
        types: factors by class of jobs and GPU type; a gang has that of its slowest type; None: types do not matter.
        row: (jobs) the class of each job there and in `pairs`.
        pairs: (classes, classes) speed of a job packed with another, relative to alone; None: `pack`.
        pairs_text: the model of pairs, for headings.
        by_traits: whether they use `gpuctl.replay.models.traits`.
        by_fewest: the first speed is for the fewest nodes of one rack that can hold the gang, rather than for one node.
    """

    text: Note
    speed: Floats
    alpha: Floats
    pack: Floats
    types: TypeSpeeds | None = None
    row: Ints | None = None
    pairs: Floats | None = None
    pairs_text: Note | None = None
    by_traits: bool = False
    by_fewest: bool = False

    @property
    def best(self) -> Floats:
        """The highest speed of each job, shape (jobs,)."""
        best = self.speed.max(axis=1)
        if self.types is None or self.row is None:
            return np.asarray(best)
        there = self.types.speed[:, np.unique(self.types.node)]
        return np.asarray((self.speed[:, None, :] * there[self.row]).max(axis=(1, 2)))

    @property
    def alike(self) -> NDArray[np.bool_]:
        """Whether each job runs at speed 1 on any placement, shape (jobs,)."""
        return np.asarray((self.speed == 1).all(axis=1) & (self.types is None))


@dataclass(frozen=True)
class SpreadSpeeds:
    """Speeds of gangs by size and number of nodes, relative to the fewest nodes in one rack.

    Attributes:
        text: their source, for headings.
        most: GPUs of the largest gang of each size class, ascending; the last class has all larger gangs.
        speed: (classes, 2) on more nodes than the fewest, in one rack; and over several racks.
    """

    text: Note
    most: tuple[int, ...]
    speed: tuple[tuple[float, float], ...]


def rates(
    model: str | SpeedTable | SpreadSpeeds, workload: Workload, cluster: Cluster, pairs: PairTable | None = None
) -> Rates:
    """The speed model: ``recorded`` (placement does not matter), ``locality``, ``traits``, or a table.

    ``linear`` and ``scaling`` extend ``recorded`` to other numbers of GPUs, in proportion or by the job's alpha.
    ``traits`` uses each job's sensitivity to placement and its scaling from `gpuctl.replay.models.traits`; a table,
    classes of jobs and GPU types.

    Args:
        model: its name, the table, or speeds by size and nodes.
        workload: the jobs.
        cluster: the nodes.
        pairs: speeds of packed jobs by the classes of both; None: `PACK_SPEED`.

    Raises:
        UsageError: no such model.
        InputError: a table has no speed of a class on a type, or packed with another class, or 0 where a job of the
            class ran.
    """
    if isinstance(model, SpreadSpeeds):
        found = _by_spread(model, workload, cluster)
    else:
        found = _named(model, workload, cluster) if isinstance(model, str) else _by_type(model, workload, cluster)
    if pairs is None:
        return found
    speed, row = pairs.rows(workload)
    text = note(
        "by class of both as in {table}; with several jobs these are multiplied", table=NamedValue("path", pairs.name)
    )
    return replace(found, pairs=speed, row=row, pairs_text=text)


def _named(name: str, workload: Workload, cluster: Cluster) -> Rates:
    n = workload.size
    alpha, pack = np.full(n, ALPHA), np.full(n, PACK_SPEED)
    if name in {"linear", "scaling"}:
        texts = (
            note("recorded run times on the gang, wherever a job is put; as many times as fast as it has GPUs")
            if name == "linear"
            else note(
                "recorded run times on the gang, wherever a job is put; on other numbers of GPUs as its alpha says"
            )
        )
        scaling = np.zeros(n) if name == "linear" else traits(workload).alpha
        return Rates(texts, np.ones((n, 3)), scaling, pack)
    if name == "recorded" or (cluster.pool and name != "traits"):
        text = note("recorded run times, wherever a job is put")
        return Rates(text, np.ones((n, 3)), alpha, pack)
    if name == "traits":
        return _by_traits(workload, cluster)
    if name != "locality":
        raise UsageError(f"unknown speed model: {name!r}", hint="known: recorded, locality, traits, linear, scaling")
    sensitive = np.fromiter((zlib.crc32(i.encode()) % 100 < SENSITIVE_PCT for i in workload.ids), bool, n)
    at = np.array([1.0, SPREAD_SPEED, SPREAD_SPEED**RACK_EXPONENT])
    speed = np.where(sensitive[:, None], at[None, :], 1.0)
    level = recorded_level(workload, cluster)
    speed = speed / speed[np.arange(n), level][:, None]
    text = note(
        "{share} % of the jobs (by a hash of their names) run at {spread} of their speed over several nodes and at "
        "{racks} over several racks; assumed, not measured",
        share=SENSITIVE_PCT,
        spread=literal(number(SPREAD_SPEED)),
        racks=literal(number(SPREAD_SPEED**RACK_EXPONENT)),
    )
    return Rates(text, speed, alpha, pack)


def best_level(gpus: Ints, cluster: Cluster) -> Ints:
    """The best level of a number of GPUs in an empty cluster: 0 one node, 1 one rack, 2 several.

    Lendable nodes do not count: jobs are as fast as under policies that borrow none.
    """
    own = slice(len(cluster.nodes) - cluster.on_loan)
    rack = np.bincount(np.maximum(cluster.rack[own], 0), cluster.gpus[own])
    node = int(cluster.gpus[own].max(initial=0))
    return np.where(gpus <= node, 0, np.where(gpus <= rack.max(initial=0), 1, 2)).astype(np.int64)


def _by_traits(workload: Workload, cluster: Cluster) -> Rates:
    known = traits(workload)
    speed = np.stack([np.ones(workload.size), known.eff_rack, known.eff_cross], axis=1)
    speed /= speed[np.arange(workload.size), best_level(workload.gpus, cluster)][:, None]
    text = note(
        "each job at its own efficiency over the nodes of a rack and over racks (eff_rack, eff_cross), and on other "
        "numbers of GPUs as its alpha says; run times are those on its gang, placed as well as this cluster can"
    )
    return Rates(text, speed, known.alpha, np.full(workload.size, PACK_SPEED), by_traits=True)


def _by_spread(model: SpreadSpeeds, workload: Workload, cluster: Cluster) -> Rates:
    n = workload.size
    of_class = np.asarray(model.speed)[np.searchsorted(model.most, workload.gpus)]
    speed = np.concatenate([np.ones((n, 1)), np.where(workload.gpus[:, None] > 1, of_class, 1.0)], axis=1)
    level = recorded_level(workload, cluster, by_fewest=True)
    speed /= speed[np.arange(n), level][:, None]
    return Rates(model.text, speed, np.full(n, ALPHA), np.full(n, PACK_SPEED), by_fewest=True)


def _by_type(table: SpeedTable, workload: Workload, cluster: Cluster) -> Rates:
    speed, row, node = table.rows(workload, cluster)
    n = workload.size
    level = recorded_level(workload, cluster)
    own = np.ones(n)
    first = workload.segment_start[:-1]
    at, end = workload.piece_start[first], workload.piece_start[first + 1]
    for job in np.flatnonzero(end > at).tolist():
        own[job] = speed[row[job], node[workload.piece_node[at[job] : end[job]]], level[job]].min()
    if not own.all():
        first_one = workload.ids[int(np.argmin(own))]
        raise InputError(
            f"job {first_one!r} ran on GPUs on which its class has speed 0",
            path=table.path,
            hint="expected a speed above 0",
        )
    text = note(
        "by class of jobs and GPU type as in {table}, a gang as fast as on the slowest of its types; run times "
        "are those on the recorded nodes, or at speed 1 where these are not known",
        table=NamedValue("path", table.name),
    )
    types = TypeSpeeds(speed, node)
    return Rates(text, np.ones((n, 3)) / own[:, None], np.full(n, ALPHA), np.full(n, PACK_SPEED), types, row)


def recorded_level(workload: Workload, cluster: Cluster, *, by_fewest: bool = False) -> Ints:
    """Recorded level of each job: 0 one node, 1 several of one rack, 2 several racks.

    With `by_fewest`, 0 is the fewest nodes of one rack that can hold the gang, and 1 more than these. The first segment
    of a job counts. A job without a recorded placement counts as consolidated: on one node if one can hold it, else in
    one rack (with `by_fewest`, on the fewest nodes).
    """
    biggest = int(cluster.gpus.max()) if cluster.gpus.size else 0
    level = np.where((workload.gpus <= biggest) | by_fewest, 0, 1)
    fewest = -(-workload.gpus // max(biggest, 1)) if by_fewest else np.ones(workload.size, np.int64)
    first = workload.segment_start[:-1]
    at, end = workload.piece_start[first], workload.piece_start[first + 1]
    known = (end > at) & (workload.piece_node.size > 0)
    if not known.any():
        return level.astype(np.int64)
    rack = cluster.rack[workload.piece_node]
    starts = at[known]
    # pieces of first segments: compare the smallest and the largest rack of each
    owner = np.repeat(np.flatnonzero(known), (end - at)[known])
    index = np.concatenate([np.arange(a, b) for a, b in zip(starts, end[known], strict=True)]) if owner.size else owner
    low, high = np.full(workload.size, np.iinfo(np.int64).max), np.full(workload.size, -1)
    np.minimum.at(low, owner, rack[index])
    np.maximum.at(high, owner, rack[index])
    several = (end - at) > fewest
    # different racks are level 2, even on few nodes
    several |= known & (low < high) & (high >= 0)
    level = np.where(known, np.where(several, np.where(low == high, 1, 2), 0), level)
    return level.astype(np.int64)
