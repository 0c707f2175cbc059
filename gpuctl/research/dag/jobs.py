"""Jobs of stages: reads, checks and writes the CSV of ``gpuctl dag``."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.research.dag.loop_kernel import Work
from gpuctl.research.learn.repeated_runs import u

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import BinaryIO


NEEDED = ("job", "arrival_ms", "stage", "tasks", "task_ms", "parents")
MOST_MS = 10**14
"""Of an arrival, and of a task: three thousand years."""
MOST_TASKS = 10**7
"""Of all stages together."""
_HINT = f"expected a header line with the columns {', '.join(NEEDED)}; parents: smaller stage numbers, with spaces"


@dataclass(frozen=True)
class Stage:
    """Identical tasks.

    Attributes:
        tasks: number of tasks.
        task_ms: time that each takes.
        parents: stages of the same job, with smaller numbers, that must end before.
    """

    tasks: int
    task_ms: int
    parents: tuple[int, ...] = ()


@dataclass(frozen=True)
class Job:
    """A job of stages.

    Attributes:
        name: its name.
        arrival_ms: arrival in ms.
        stages: stages, by number.
    """

    name: str
    arrival_ms: int
    stages: tuple[Stage, ...]


def read(path: Path) -> list[Job]:
    """Read jobs, in the order in which the file first names them.

    Raises:
        InputError: it is not such a table, or a value is invalid; with the line.
    """
    try:
        text = read_whole(path, most=MOST_TABLE, hint=_HINT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", path=str(path), hint=_HINT) from error
    rows = csv.DictReader(io.StringIO(text), strict=True)
    try:
        missing = [column for column in NEEDED if column not in (rows.fieldnames or ())]
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", path=str(path), line=1, hint=_HINT) from error
    if missing:
        raise InputError(f"lacks the columns {', '.join(missing)}", path=str(path), line=1, hint=_HINT)
    found: dict[str, tuple[int, dict[int, Stage], int]] = {}
    total = 0
    try:
        for row in rows:
            total += _add(row, found, rows.line_num)
            if total > MOST_TASKS:
                raise ValueError(f"there are more than {MOST_TASKS:,} tasks")
    except (ValueError, TypeError, csv.Error) as error:
        raise InputError(f"is not a valid stage: {error}", path=str(path), line=rows.line_num, hint=_HINT) from error
    if not found:
        raise InputError("has a header but no stages", path=str(path), hint=_HINT)
    return [_job(name, *each, str(path)) for name, each in found.items()]


def _add(row: dict[str, str], found: dict[str, tuple[int, dict[int, Stage], int]], line: int) -> int:
    """Add the stage of a row; return its tasks."""
    name = row["job"]
    if not name:
        raise ValueError("job is empty")
    arrival = _number(row, "arrival_ms", 0, MOST_MS)
    number = _number(row, "stage", 0, MOST_TASKS)
    tasks = _number(row, "tasks", 1, MOST_TASKS)
    parents = tuple(int(word) for word in row["parents"].split())
    if any(not 0 <= parent < number for parent in parents) or len(set(parents)) < len(parents):
        raise ValueError(f"parents are {row['parents'][:60]!r}, expected different numbers from 0 to {number - 1}")
    first, stages, _ = found.setdefault(name, (arrival, {}, line))
    if first != arrival:
        raise ValueError(f"job {name[:60]} came at {first} in an earlier line, and at {arrival} here")
    if number in stages:
        raise ValueError(f"job {name[:60]} has a stage {number} already")
    stages[number] = Stage(tasks, _number(row, "task_ms", 1, MOST_MS), parents)
    return tasks


def _number(row: dict[str, str], column: str, least: int, most: int) -> int:
    value = int(row[column])
    if not least <= value <= most:
        raise ValueError(f"{column} is {value}, not from {least} to {most}")
    return value


def _job(name: str, arrival: int, stages: dict[int, Stage], line: int, path: str) -> Job:
    absent = next((v for v in range(len(stages)) if v not in stages), None)
    if absent is not None:
        raise InputError(f"job {name[:60]} has no stage {absent}", path=path, line=line, hint="number them 0, 1, 2 …")
    return Job(name, arrival, tuple(stages[v] for v in range(len(stages))))


def write(jobs: Iterable[Job], file: BinaryIO) -> None:
    """Write jobs as the CSV that `read` reads."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(NEEDED)
    for job in jobs:
        for v, stage in enumerate(job.stages):
            parents = " ".join(map(str, stage.parents))
            table.writerow((job.name, job.arrival_ms, v, stage.tasks, stage.task_ms, parents))
    file.write(text.getvalue().encode())


def in_order(jobs: Sequence[Job]) -> list[int]:
    """Return indices of the jobs by arrival, then in file order, as the loop needs them."""
    return sorted(range(len(jobs)), key=lambda k: (jobs[k].arrival_ms, k))


def work_of(jobs: Sequence[Job], executors: int, delay_ms: int) -> Work:
    """Return the jobs as arrays, in the order of `in_order`.

    Raises:
        InputError: sums of their times exceed 64 bits.
    """
    ordered = [jobs[k] for k in in_order(jobs)]
    stages = [stage for job in ordered for stage in job.stages]
    total = [sum(s.tasks * s.task_ms for s in job.stages) for job in ordered]
    last = ordered[-1].arrival_ms + sum(total) + delay_ms * sum(s.tasks for s in stages)
    if last * max(len(jobs), executors + 1) >= 1 << 62:
        raise InputError("the jobs' times add up to more than this simulation counts to", hint="give times in seconds")
    first = np.cumsum([0, *(len(job.stages) for job in ordered)])
    kids: list[list[int]] = [[] for _ in stages]
    path = [0] * len(stages)
    for job, begin in zip(ordered, first.tolist(), strict=False):
        for v, stage in enumerate(job.stages):
            for parent in stage.parents:
                kids[begin + parent].append(begin + v)
    for v in range(len(stages) - 1, -1, -1):
        path[v] = stages[v].task_ms + max((path[kid] for kid in kids[v]), default=0)
    return Work(
        arrival=np.array([job.arrival_ms for job in ordered]),
        first=first,
        total=np.array(total),
        job=np.repeat(np.arange(len(ordered)), np.diff(first)),
        tasks=np.array([s.tasks for s in stages]),
        task_ms=np.array([s.task_ms for s in stages]),
        path=np.array(path),
        parents=np.array([len(s.parents) for s in stages]),
        kids_at=np.cumsum([0, *map(len, kids)]),
        kids=np.array([kid for each in kids for kid in each], np.int64),
    )


def generate(seed: int, jobs: int, executors: int, load: float) -> list[Job]:
    """Generate jobs of 2 to 8 stages with log-normal sizes and random arrivals.

    Args:
        seed: the same one gives the same jobs.
        jobs: number of jobs.
        executors: executors that the load refers to.
        load: work that arrives per second / work that the executors do per second.
    """
    shapes = [_stages(seed, i) for i in range(jobs)]
    work = sum(stage.tasks * stage.task_ms for stages in shapes for stage in stages) / jobs
    made, t = [], 0.0
    for i, stages in enumerate(shapes):
        t -= math.log(u(seed, i, "gap")) * work / executors / load
        made.append(Job(f"g{i}", math.floor(t), stages))
    return made


def _stages(seed: int, i: int) -> tuple[Stage, ...]:
    normal = math.sqrt(-2 * math.log(u(seed, i, "s1"))) * math.cos(2 * math.pi * u(seed, i, "s2"))
    size = math.exp(0.9 * normal)
    found = []
    for v in range(2 + math.floor(7 * u(seed, i, "k"))):
        place = f"{i}.{v}"
        tasks = min(max(round(8 * size * math.exp(2.4 * (u(seed, place, "n") - 0.5))), 1), 60)
        task_ms = 100 * max(2, round(30 * math.exp(2 * (u(seed, place, "d") - 0.5))))
        parents = tuple(p for p in range(v) if u(seed, f"{place}.{p}", "p") < 1.3 / max(1, v))
        found.append(Stage(tasks, task_ms, parents))
    return tuple(found)
