"""Leftover capacity by slot and deferrable jobs with their windows, and the files that hold them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.core.storable_text import storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

CAPACITY, JOBS, ABOUT = "capacity.csv", "jobs.csv", "about.json"
SLOT_S, DAY_S = 1800, 86_400
SEASON = DAY_S // SLOT_S
"""Slots per day if no file sets the length of a slot."""

CAPACITY_COLUMNS = ("slot", "on_demand", "leftover")
JOBS_COLUMNS = ("job", "earliest", "latest", "gpus", "slots")
MOST = 10**9
MOST_SLOTS = 2_000_000


@dataclass(frozen=True)
class Case:
    """Capacity and jobs; slots count from 0.

    Attributes:
        leftover: GPUs that on-demand jobs leave free, by slot [slots].
        ids: names of the jobs.
        earliest: slot in which the window of each job opens [jobs].
        latest: last slot in which the job may start.
        gpus: GPUs of the job.
        slots: run time of the job, in slots.
        total: GPUs of the cluster.
        season: slots per day.
        slot_s: length of a slot, s.
        on_demand: GPUs of on-demand jobs, by slot; None: unknown.
        about: counts of the conversion, by name.
    """

    leftover: Ints
    ids: tuple[str, ...]
    earliest: Ints
    latest: Ints
    gpus: Ints
    slots: Ints
    total: int
    season: int = SEASON
    slot_s: float = SLOT_S
    on_demand: Ints | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def horizon(self) -> int:
        """Number of slots."""
        return int(self.leftover.size)

    @property
    def work(self) -> Ints:
        """GPU-slots of each job [jobs]."""
        return self.gpus * self.slots


def read_case(capacity: Path, jobs: Path | None, season: int | None) -> Case:
    """Read a case.

    Args:
        capacity: a folder that `write_case` wrote, or a CSV with the columns ``slot,leftover`` (and ``on_demand``).
        jobs: a CSV with the columns ``job,earliest,latest,gpus,slots``; None: the folder's.
        season: slots per day; None: as the folder records, else `SEASON`.

    Raises:
        InputError: a file cannot be read or has an invalid value; with line, found and expected.
    """
    about: Mapping[str, Any] = {}
    if capacity.is_dir():
        about = _about(capacity / ABOUT)
        jobs = capacity / JOBS if jobs is None else jobs
        capacity = capacity / CAPACITY
    if jobs is None:
        raise InputError("is a file of capacity alone", path=str(capacity), hint="add --jobs JOBS.csv")
    leftover, on_demand = _read_capacity(capacity)
    ids, columns = _read_jobs(jobs, leftover.size)
    slot_s = float(about.get("slot_s", SLOT_S))
    own = max(1, round(DAY_S / slot_s)) if about else SEASON
    total = int(about["gpus"]) if "gpus" in about else _total(leftover, on_demand)
    return Case(leftover, ids, *columns, total, season or own, slot_s, on_demand, about)


def _total(leftover: Ints, on_demand: Ints | None) -> int:
    """GPUs of a cluster: the least sum of leftover and on-demand GPUs over all slots, at least the largest leftover."""
    both = leftover if on_demand is None else leftover + on_demand
    return int(max(both.max() if on_demand is None else both.min(), leftover.max(), 1))


def _about(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(read_whole(path, most=MOST_TABLE, hint="expected JSON"))
    except ValueError as error:
        raise InputError(f"is not JSON: {error}", path=str(path), hint="convert the trace again") from None
    numbers = {"slot_s": (1, DAY_S), "gpus": (1, MOST)}
    good = isinstance(found, dict) and all(
        isinstance(found.get(name), (int, float)) and low <= found[name] <= high
        for name, (low, high) in numbers.items()
    )
    if not good:
        raise InputError(
            "expected slot_s (seconds, 1 to 86400) and gpus (at least 1)",
            path=str(path),
            hint="convert the trace again",
        )
    return dict(found)


def _rows(path: Path, needed: Sequence[str], what: str) -> list[tuple[int, dict[str, str]]]:
    """The lines of a CSV with their numbers."""
    hint = f"expected {what}: a header line with the columns {','.join(needed)}"
    data = read_whole(path, most=MOST_TABLE, hint=hint)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8 text", path=str(path), line=line, hint=hint) from None
    reader = csv.reader(io.StringIO(text))
    try:
        header = [name.strip() for name in next(reader, [])]
        missing = [name for name in needed if name not in header]
        if missing or len(set(header)) < len(header):
            found = ",".join(header)[:200] or "nothing"
            raise InputError(
                f"lacks the columns {', '.join(missing)}" if missing else f"has a column twice; found {found}",
                path=str(path), line=1, hint=hint,
            )  # fmt: skip
        rows = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"has {len(cells)} cells, expected {len(header)}", path=str(path), line=reader.line_num, hint=hint
                )
            rows.append((reader.line_num, dict(zip(header, (cell.strip() for cell in cells), strict=True))))
    except csv.Error as error:
        raise InputError(f"is not a CSV file: {error}", path=str(path), line=reader.line_num, hint=hint) from None
    return rows


def _whole(path: Path, line: int, name: str, text: str, least: int) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 12 and least <= int(text) <= MOST:
        return int(text)
    raise InputError(
        f"{name} is {storable(text)[:40]!r}, expected a whole number from {least:,} to {MOST:,}", path=str(path),
        line=line, hint="slots count from 0",
    )  # fmt: skip


def _read_capacity(path: Path) -> tuple[Ints, Ints | None]:
    rows = _rows(path, ("slot", "leftover"), "leftover capacity")
    if not 0 < len(rows) <= MOST_SLOTS:
        raise InputError(
            f"has {len(rows):,} slots, expected 1 to {MOST_SLOTS:,}", path=str(path), hint="one line per slot"
        )
    leftover = np.empty(len(rows), np.int64)
    on_demand = np.empty(len(rows), np.int64)
    known = True
    for k, (line, row) in enumerate(rows):
        if row["slot"] != str(k):
            raise InputError(
                f"slot is {storable(row['slot'])[:40]!r}, expected {k}", path=str(path), line=line,
                hint="slots count from 0, in order, one line per slot",
            )  # fmt: skip
        leftover[k] = _whole(path, line, "leftover", row["leftover"], 0)
        known = known and bool(row.get("on_demand"))
        on_demand[k] = _whole(path, line, "on_demand", row["on_demand"], 0) if row.get("on_demand") else 0
    return leftover, on_demand if known else None


def _read_jobs(path: Path, horizon: int) -> tuple[tuple[str, ...], tuple[Ints, Ints, Ints, Ints]]:
    rows = _rows(path, JOBS_COLUMNS, "deferrable jobs")
    if len(rows) > MOST_SLOTS:
        raise InputError(f"has {len(rows):,} jobs, expected at most {MOST_SLOTS:,}", path=str(path))
    found = np.empty((4, len(rows)), np.int64)
    lines: dict[str, int] = {}
    for k, (line, row) in enumerate(rows):
        name = row["job"]
        if not name or name in lines:
            was = f"repeats the name in line {lines[name]}" if name else "is empty"
            raise InputError(f"the name of a job {was}", path=str(path), line=line, hint="each job has its own name")
        lines[name] = line
        gpus, slots = (_whole(path, line, name, row[name], 1) for name in ("gpus", "slots"))
        earliest = _whole(path, line, "earliest", row["earliest"], 0)
        latest = _whole(path, line, "latest", row["latest"], earliest)
        if latest + slots > horizon:
            raise InputError(
                f"latest is {latest}: the run ends with slot {latest + slots - 1}, of {horizon:,} slots of capacity",
                path=str(path), line=line, hint=f"latest must be at most {horizon:,} - slots",
            )  # fmt: skip
        found[:, k] = earliest, latest, gpus, slots
    return tuple(lines), (found[0], found[1], found[2], found[3])


def write_case(case: Case, folder: Path) -> tuple[Path, ...]:
    """Write `CAPACITY`, `JOBS` and `ABOUT` into a folder; create the folder if needed."""
    from gpuctl.core.file_io import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    on_demand = case.on_demand if case.on_demand is not None else [""] * case.horizon
    capacity = zip(range(case.horizon), on_demand, case.leftover.tolist(), strict=True)
    jobs = zip(case.ids, *(each.tolist() for each in (case.earliest, case.latest, case.gpus, case.slots)), strict=True)
    texts = {
        CAPACITY: _table(CAPACITY_COLUMNS, capacity),
        JOBS: _table(JOBS_COLUMNS, jobs),
        ABOUT: json.dumps({**case.about, "slot_s": case.slot_s, "gpus": case.total}, indent=1) + "\n",
    }
    for name, text in texts.items():
        data = text.encode()
        write_atomically(folder / name, lambda file, data=data: file.write(data))  # type: ignore[misc]
    return tuple(folder / name for name in texts)


def _table(header: Sequence[str], rows: Any) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
