"""Jobs of stages from traces: batch tasks of Alibaba's cluster of 2018, and SWF whose jobs name preceding ones.

Alibaba's ``batch_task.csv`` has no header: task_name, instance_num, job_name, task_type, status, start_time, end_time,
plan_cpu, plan_mem; times in seconds. A name such as ``M2_1`` or ``J3_1_2`` means that task 2 follows task 1, and task 3
follows 1 and 2; other names have no dependency. SWF has 18 columns, the 17th the job that must end before; Alea's files
name several there, ``4&5&6``, and have a line of column names. Archives of workflows: `gpuctl.research.dag.workflows`.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.research.dag import workflows
from gpuctl.research.dag.jobs import MOST_TASKS, Job, Stage
from gpuctl.research.dag.trace_tasks import Imported, Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ALIBABA = re.compile(r"[A-Za-z]+(?P<number>[0-9]{1,6})(?P<parents>(?:_[0-9]{1,6})*)")
_ALIBABA_HINT = (
    "expected task_name, instance_num, job_name, task_type, status, start_time, end_time, plan_cpu, plan_mem"
)
_SWF_HINT = "expected 18 numbers a line, as the Standard Workload Format has them"


def read(path: Path) -> Imported:
    """Read a trace by its name: ``.swf``, ``.gwf``, ``.json`` (WfFormat), ``.parquet`` or a folder (WTF), or Alibaba's.

    Raises:
        InputError: it is not what its name says; with the line.
    """
    found = Imported()
    kind = ".parquet" if path.is_dir() else path.suffix.lower()
    hint, read_text = _TEXTS.get(kind, (_ALIBABA_HINT, _alibaba))
    if kind == ".parquet":
        hint, groups = workflows.WTF_HINT, workflows.wtf(path, found)
    else:
        try:
            text = read_whole(path, most=MOST_TABLE, hint=hint).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError("is not UTF-8 text", path=str(path), hint=hint) from error
        groups = read_text(text, str(path), found)
    for name, tasks in groups.items():
        _add(name, tasks, found)
    if not found.jobs:
        raise InputError(f"has {found.rows:,} rows, and no job of them can be used", path=str(path), hint=hint)
    found.jobs.sort(key=lambda job: job.arrival_ms)
    return found


def _add(name: str, tasks: list[Task], found: Imported) -> None:
    why = next((task.why_not for task in tasks if task.why_not), "")
    order = [] if why else _sorted({task.number: task for task in tasks})
    if not why and len({task.number for task in tasks}) < len(tasks):
        why = "of jobs with two tasks of one number"
    elif not why and not order:
        why = "of jobs whose tasks wait for each other"
    if why:
        found.leave_out(why, len(tasks))
        return
    place = {task.number: k for k, task in enumerate(order)}
    stages = []
    for task in order:
        found.raised += task.length_ms < 1
        # a parent that is not in the file has ended
        parents = tuple(sorted({place[p] for p in task.parents if p in place}))
        stages.append(Stage(task.tasks, max(task.length_ms, 1), parents))
    found.jobs.append(Job(name, min(task.begin_ms for task in tasks), tuple(stages)))


def _sorted(tasks: dict[int, Task]) -> list[Task]:
    """Sort by the number of tasks on the longest way to each, then by number; empty if there is a cycle."""
    children: dict[int, list[int]] = {}
    waits_for = {}
    for number, task in tasks.items():
        # a parent that is not in the file has ended
        parents = {parent for parent in task.parents if parent in tasks}
        waits_for[number] = len(parents)
        for parent in parents:
            children.setdefault(parent, []).append(number)
    order: list[Task] = []
    ready = sorted(number for number, parents_left in waits_for.items() if not parents_left)
    while ready:
        order += [tasks[number] for number in ready]
        following = []
        for number in ready:
            for child in children.get(number, ()):
                waits_for[child] -= 1
                if not waits_for[child]:
                    following.append(child)
        ready = sorted(following)
    return order if len(order) == len(tasks) else []


def _alibaba(text: str, path: str, found: Imported) -> dict[str, list[Task]]:
    groups: dict[str, list[Task]] = {}
    loose = 0
    for line, row in _rows(text, path):
        found.rows += 1
        if len(row) < 7:
            raise InputError(f"has {len(row)} columns", path=path, line=line, hint=_ALIBABA_HINT)
        name, _, job, _, status, _, _ = row[:7]
        try:
            count, begin, end = (int(row[k] or 0) for k in (1, 5, 6))
        except ValueError as error:
            raise InputError(f"is not a valid task: {error}", path=path, line=line, hint=_ALIBABA_HINT) from error
        named = _ALIBABA.fullmatch(name)
        parents: tuple[int, ...] = ()
        if named is None:
            # numbers that no name uses
            loose += 1
            number = 10**6 + loose
        else:
            number = int(named["number"])
            parents = tuple(int(word) for word in named["parents"].split("_") if word)
        why = ""
        if status != "Terminated" or begin <= 0 or end < begin:
            why = "of jobs with a task that did not end, or without its times"
        elif not 1 <= count <= MOST_TASKS:
            why = "of jobs with a task without instances"
        groups.setdefault(job, []).append(Task(number, parents, count, 1000 * begin, 1000 * (end - begin), why))
    return groups


def _rows(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    table = csv.reader(io.StringIO(text), strict=True)
    try:
        for row in table:
            if row:
                yield table.line_num, row
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", path=path, line=table.line_num, hint=_ALIBABA_HINT) from error


def _swf(text: str, path: str, found: Imported) -> dict[str, list[Task]]:
    """Read the jobs of a file, grouped by dependency; & separates several preceding jobs."""
    tasks: dict[int, Task] = {}
    for line, row in enumerate(text.splitlines(), 1):
        cells = row.split()
        if not cells or cells[0].startswith(";") or (not tasks and cells[0] in {"id", "job_id"}):
            continue
        found.rows += 1
        try:
            number, submit, run, used, requested = (int(float(cells[k])) for k in (0, 1, 3, 4, 7))
            before = tuple(sorted({int(word) for word in cells[16].split("&")} - {-1, 0}))
            if len(cells) < 18 or any(one < 0 for one in before):
                raise ValueError(f"found {len(cells)} columns, and {cells[16][:40]} as the jobs before it")
        except (ValueError, IndexError, OverflowError) as error:
            raise InputError(f"is not a valid job: {error}", path=path, line=line, hint=_SWF_HINT) from error
        size = requested if requested > 0 else used
        if number in tasks:
            raise InputError(f"job {number} is in the file twice", path=path, line=line, hint=_SWF_HINT)
        why = "of jobs without a run time, a size or a submission" if run < 0 or size < 1 or submit < 0 else ""
        tasks[number] = Task(number, before, max(size, 1), 1000 * submit, 1000 * max(run, 0), why)
    groups: dict[str, list[Task]] = {}
    head = {number: number for number in tasks}

    def of(number: int) -> int:
        while head[number] != number:
            head[number] = number = head[head[number]]
        return number

    for number, task in tasks.items():
        for parent in task.parents:
            if parent in tasks:
                # the job with the smallest number names the group
                one, other = sorted((of(number), of(parent)))
                head[other] = one
    for number, task in tasks.items():
        groups.setdefault(str(of(number)), []).append(task)
    return groups


_TEXTS = {
    ".swf": (_SWF_HINT, _swf),
    ".gwf": (workflows.GWF_HINT, workflows.gwf),
    ".json": (workflows.WFFORMAT_HINT, workflows.wfformat),
}
"""By the end of a file's name: what is expected in it, and what reads it."""
