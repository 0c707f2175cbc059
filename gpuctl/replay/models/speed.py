"""Speed models: a job's speed by placement, the same for every policy of a comparison.

The work of a job is its recorded run time times its speed on the recorded placement, so that a replay on that placement
takes as long as recorded. See ``docs/how-to/replay.md`` for the sources of the factors.
"""

from __future__ import annotations

import csv
import io
import math
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_whole
from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import number
from gpuctl.replay.models.traits import traits

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload


LEVELS = ("node", "rack", "racks")
"""Levels of a placement: one node, several of one rack, several racks."""

COLUMNS = ("job_class", "gpu_type", "speed", "speed_in_rack", "speed_across_racks")
PAIR_COLUMNS = ("job_class", "beside", "speed")
LEAST, MOST = 1e-6, 1e6
SHOWN = 5
_EXPECTED = (
    "expected a header line job_class,gpu_type,speed and, where wanted, speed_in_rack,speed_across_racks; speeds are "
    "multiples of that at which a job's run time is stated"
)
_EXPECTED_PAIRS = (
    "expected a header line job_class,beside,speed; speeds are those of a job packed with one of the other class, as "
    "multiples of that alone"
)


@dataclass(frozen=True)
class SpeedTable:
    """Speeds by class of jobs, GPU type and placement.

    Attributes:
        name: the file's.
        path: of the file, for messages.
        speeds: by names of class and type, "" for all others: speed on one node, on several of one rack, across
            racks; 1: the speed to which run times refer; 0: it does not run there at all.
    """

    name: str
    path: str
    speeds: dict[tuple[str, str], tuple[float, float, float]]

    def rows(self, workload: Workload, cluster: Cluster) -> tuple[Floats, Ints, Ints]:
        """The table for these jobs and nodes.

        Returns:
            speeds, shape (classes, types, 3); the class of each job and the type of each node there; the last type is
                unknown.

        Raises:
            InputError: it has no speed of a class on a type; the message names them.
        """
        types = (*(cluster.gpu_types or workload.gpu_types), "")
        classes, row = _classes(workload)
        column = np.where(cluster.gpu_type < 0, len(types) - 1, cluster.gpu_type).astype(np.int64)
        table = np.ones((len(classes), len(types), len(LEVELS)))
        missing = []
        for k in np.unique(row).tolist():
            for t in np.unique(column).tolist():
                found = self.speeds.get((classes[k], types[t]), self.speeds.get(("", types[t])))
                if found is None:
                    missing.append(f"{_class(classes[k])} on {_type(types[t])}")
                else:
                    table[k, t] = found
        if missing:
            more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
            raise InputError(
                f"has no speed of {', '.join(missing[:SHOWN])}{more}",
                path=self.path,
                hint="expected a line for each class of jobs on each GPU type of the nodes; one with an empty "
                "job_class holds for all classes without a line of their own, one with an empty gpu_type for nodes "
                "whose type is not known",
            )
        nowhere = [k for k in np.unique(row).tolist() if not table[k, np.unique(column), 0].any()]
        if nowhere:
            raise InputError(
                f"{_class(classes[nowhere[0]])} has speed 0 on all GPU types of {cluster.name}",
                path=self.path,
                hint="expected a speed above 0 on one of them; 0: the class does not run there",
            )
        return table, row, column


@dataclass(frozen=True)
class PairTable:
    """Speeds of jobs packed on the same GPUs, by the classes of both.

    Attributes:
        name: the file's.
        path: of the file, for messages.
        speeds: by class of a job and of its partner, "" for all others: its speed, relative to alone; 0: the two cannot
            be packed.
    """

    name: str
    path: str
    speeds: dict[tuple[str, str], float]

    def rows(self, workload: Workload) -> PairSpeeds:
        """The table for these jobs; pairs of classes that it lacks have `PACK_SPEED`."""
        classes, row = _classes(workload)
        size = len(classes)
        speed, missing = np.full((size, size), PACK_SPEED), np.zeros((size, size), np.bool_)
        present = np.unique(row).tolist()
        for k in present:
            for other in present:
                pairs = ((classes[k], classes[other]), (classes[k], ""), ("", classes[other]), ("", ""))
                found = next((self.speeds[pair] for pair in pairs if pair in self.speeds), None)
                if found is None:
                    missing[k, other] = True
                else:
                    speed[k, other] = found
        mean = np.array([self._mean(name) for name in classes])
        return PairSpeeds(speed, row, mean, int(missing.sum()))

    def _mean(self, name: str) -> float:
        """Mean speed of the lines that name a class on either side, else of those for all others; NaN: no line."""
        for own in (name, ""):
            of = [speed for pair, speed in self.speeds.items() if own in pair]
            if of:
                return math.fsum(of) / len(of)
        return math.nan


@dataclass(frozen=True)
class PairSpeeds:
    """Speeds of jobs packed with another one, relative to alone, by the classes of both.

    Attributes:
        speed: (classes, classes).
        row: (jobs) the class of each job there.
        mean: (classes) mean speed of the lines of a table with the class on either side; NaN: it has none.
        assumed: pairs of classes of these jobs that the table lacks.
    """

    speed: Floats
    row: Ints
    mean: Floats
    assumed: int = 0


def _classes(workload: Workload) -> tuple[tuple[str, ...], Ints]:
    """Names of the classes of jobs, the last one, "", for those without; and the class of each job."""
    classes = (*workload.job_classes, "")
    row = np.full(workload.size, len(classes) - 1) if workload.job_class is None else workload.job_class.copy()
    row[row < 0] = len(classes) - 1
    return classes, row.astype(np.int64)


def _class(name: str) -> str:
    return f"class {name!r}" if name else "jobs without a class"


def _type(name: str) -> str:
    return repr(name) if name else "nodes whose GPU type is not known"


def read_speeds(path: Path) -> SpeedTable:
    """Read a CSV of speeds by class of jobs and GPU type.

    The columns are ``job_class,gpu_type,speed`` and optionally ``speed_in_rack`` and ``speed_across_racks``. If the
    latter are empty, a gang on several nodes runs as fast as on one; if only the last is, across racks as fast as in
    one rack.

    Raises:
        InputError: a column is missing, a speed is not a number from 0.000001 to 1 000 000, or a pair comes twice.
    """
    speeds: dict[tuple[str, str], tuple[float, float, float]] = {}
    for line, row in _rows(path, COLUMNS, _EXPECTED):
        pair = row["job_class"], row["gpu_type"]
        _once(pair in speeds, f"{_class(pair[0])} on {_type(pair[1])}", path, line)
        one = _speed(row, "speed", None, path, line)
        if one == 0:
            speeds[pair] = 0.0, 0.0, 0.0
            continue
        several = _speed(row, "speed_in_rack", one, path, line)
        speeds[pair] = one, several, _speed(row, "speed_across_racks", several, path, line)
    return SpeedTable(path.name, str(path), speeds)


def read_pairs(path: Path) -> PairTable:
    """Read a CSV of speeds of packed jobs, with the columns ``job_class,beside,speed``.

    Raises:
        InputError: a column is missing, a speed is not a number from 0 to 1 000 000, or a pair comes twice.
    """
    speeds: dict[tuple[str, str], float] = {}
    for line, row in _rows(path, PAIR_COLUMNS, _EXPECTED_PAIRS):
        pair = row["job_class"], row["beside"]
        _once(pair in speeds, f"{_class(pair[0])} beside {_class(pair[1])}", path, line)
        speeds[pair] = _speed(row, "speed", None, path, line)
    return PairTable(path.name, str(path), speeds)


def parse_time_slice(text: str) -> tuple[float, float]:
    """Seconds of a turn and of the switch between two, as ``60:1``; without a colon a switch takes none.

    Raises:
        UsageError: the text is not of this form.
    """
    turn, _, switch = text.partition(":")
    try:
        found = float(turn), float(switch or 0)
    except ValueError:
        found = math.nan, math.nan
    if not (LEAST <= found[0] <= MOST and 0 <= found[1] <= MOST):
        raise UsageError(f"--time-slice {text[:60]}: expected seconds of a turn and of a switch, as 60:1")
    return found


def _once(again: bool, what: str, path: Path, line: int) -> None:
    if again:
        raise InputError(f"{what} has a second line", path=str(path), line=line, hint="keep one of them")


def _rows(path: Path, columns: tuple[str, ...], expected: str) -> list[tuple[int, dict[str, str]]]:
    """The lines of a table with their numbers; the first three columns are required."""
    rows = csv.reader(io.StringIO(_text(path, expected)))
    try:
        lines = [(rows.line_num, [cell.strip() for cell in cells]) for cells in rows if any(map(str.strip, cells))]
    except csv.Error as error:
        raise InputError(f"is not a valid CSV: {error}", path=str(path), line=rows.line_num, hint=expected) from error
    if not lines:
        raise InputError("is empty", path=str(path), hint=expected)
    header = lines[0][1]
    if [name for name in columns[:3] if header.count(name) != 1] + [c for c in header if c not in columns]:
        found = ",".join(header)[:100]
        raise InputError(f"the header is {found!r}", path=str(path), line=lines[0][0], hint=expected)
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise InputError(
                f"has {len(cells)} cells, the header has {len(header)}", path=str(path), line=line, hint=expected
            )
    if len(lines) == 1:
        raise InputError("has a header but no speeds", path=str(path), hint=expected)
    return [(line, dict(zip(header, cells, strict=True))) for line, cells in lines[1:]]


def _text(path: Path, expected: str) -> str:
    try:
        return read_whole(path, hint=expected).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text: byte {error.object[error.start]:#04x}", path=str(path), hint=expected
        ) from error


def _speed(row: dict[str, str], column: str, otherwise: float | None, path: Path, line: int) -> float:
    text = row.get(column, "")
    if not text and otherwise is not None:
        return otherwise
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not LEAST <= speed <= MOST and not (speed == 0 and column == "speed"):
        raise InputError(
            f"{column} is {text[:60]!r}, expected a number from {LEAST:g} to {MOST:g}", path=str(path), line=line,
            hint="1 is the speed at which run times are stated, or alone; 0 as speed: not on the type, or not "
            "beside it",
        )  # fmt: skip
    return speed


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
        pairs_mean: (classes) mean speed of the pairs that the user's table has of each; NaN: it has none.
        pairs_assumed: pairs of classes that it lacks, which have `PACK_SPEED`.
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
    pairs_mean: Floats | None = None
    pairs_assumed: int = 0
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
        InputError: a table has no speed of a class on a type, or 0 where a job of the class ran.
    """
    if isinstance(model, SpreadSpeeds):
        found = _by_spread(model, workload, cluster)
    else:
        found = _named(model, workload, cluster) if isinstance(model, str) else _by_type(model, workload, cluster)
    if pairs is None:
        return found
    table = pairs.rows(workload)
    lacks = note(
        "; {n:,} pair{n||s} of classes that it lacks {n|is|are} assumed: {speed} of the speed alone",
        n=table.assumed,
        speed=PACK_SPEED,
    )
    text = note(
        "by class of both as in {table}{lacks}; with several jobs these are multiplied",
        table=NamedValue("path", pairs.name),
        lacks=lacks if table.assumed else note(""),
    )
    return replace(
        found, pairs=table.speed, row=table.row, pairs_mean=table.mean, pairs_assumed=table.assumed, pairs_text=text
    )


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
