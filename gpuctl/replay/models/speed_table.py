"""Speeds of classes of jobs on GPU types, and packed in pairs, from small CSVs of the user."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_whole

if TYPE_CHECKING:
    from pathlib import Path

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

    def rows(self, workload: Workload) -> tuple[Floats, Ints]:
        """The table for these jobs: speeds, shape (classes, classes), and the class of each job there.

        Raises:
            InputError: it has no speed of a pair; the message names them.
        """
        classes, row = _classes(workload)
        table = np.ones((len(classes), len(classes)))
        missing = []
        present = np.unique(row).tolist()
        for k in present:
            for other in present:
                pairs = ((classes[k], classes[other]), (classes[k], ""), ("", classes[other]), ("", ""))
                found = next((self.speeds[pair] for pair in pairs if pair in self.speeds), None)
                if found is None:
                    missing.append(f"{_class(classes[k])} beside {_class(classes[other])}")
                else:
                    table[k, other] = found
        if missing:
            more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
            raise InputError(
                f"has no speed of {', '.join(missing[:SHOWN])}{more}",
                path=self.path,
                hint="expected a line for each pair of classes of jobs; an empty cell stands for all classes without "
                "a line of their own",
            )
        return table, row


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
