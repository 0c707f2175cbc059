"""Workflows of archives: GWF and WTF of the workflow trace archive, WfFormat of WfCommons.

GWF is a CSV (WorkflowID, JobID, SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies; seconds, dependencies separated
by spaces), as OpenDC reads it. WTF is Parquet below ``tasks/schema-1.0`` (id, workflow_id, ts_submit, runtime, parents;
milliseconds). WfFormat is a JSON object, one workflow, whose tasks name their parents: since 1.5 in its specification,
with the run times in its execution, before in ``workflow.tasks`` (1.0 to 1.2: ``jobs``). A task of WTF and WfFormat is
a stage of one task, whatever number of cores it had.
"""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE
from gpuctl.research.dag.jobs import MOST_MS, MOST_TASKS
from gpuctl.research.dag.trace_tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.research.dag.trace_tasks import Imported

GWF_COLUMNS = ("WorkflowID", "JobID", "SubmitTime", "RunTime", "NProcs", "ReqNProcs", "Dependencies")
GWF_HINT = f"expected a CSV with the columns {', '.join(GWF_COLUMNS)}; the table of 29 columns names no dependencies"
WTF_COLUMNS = ("id", "workflow_id", "ts_submit", "runtime", "parents")
WTF_HINT = f"expected Parquet with the columns {', '.join(WTF_COLUMNS)}, or a folder with tasks/schema-1.0/*.parquet"
WFFORMAT_HINT = "expected an object of WfFormat: workflow.specification.tasks and workflow.execution.tasks (1.5)"
_NO_TIME = "of jobs with a task without a run time"
_NO_SUBMIT = "of jobs without a run time, a size or a submission"


def gwf(text: str, path: str, found: Imported) -> dict[str, list[Task]]:
    """Return the tasks of a GWF, by workflow.

    Raises:
        InputError: it is none; with the line.
    """
    table = csv.reader(io.StringIO(text), strict=True, skipinitialspace=True)
    groups: dict[str, list[Task]] = {}
    header: list[str] | None = None
    try:
        for cells in table:
            row = [cell.strip() for cell in cells]
            if not any(row) or row[0].startswith("#"):
                continue
            if header is None:
                header = row
                missing = [name for name in GWF_COLUMNS if name not in header]
                if missing:
                    raise InputError(f"lacks the columns {', '.join(missing)}", path=path, line=1, hint=GWF_HINT)
                continue
            found.rows += 1
            named = dict(zip(header, row, strict=False))
            try:
                job, number, submit, run, used, asked = (_whole(named[name]) for name in GWF_COLUMNS[:6])
                parents = tuple(_whole(word) for word in named["Dependencies"].split())
            except (KeyError, ValueError, OverflowError) as error:
                raise InputError(
                    f"is not a valid job: {error}", path=path, line=table.line_num, hint=GWF_HINT
                ) from error
            size = asked if asked > 0 else used
            why = _NO_SUBMIT if run < 0 or submit < 0 or not 1 <= size <= MOST_TASKS else ""
            # -1 stands for none
            before = tuple(parent for parent in parents if parent >= 0)
            groups.setdefault(str(job), []).append(
                Task(number, before, max(size, 1), 1000 * max(submit, 0), 1000 * max(run, 0), why)
            )
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", path=path, line=table.line_num, hint=GWF_HINT) from error
    return groups


def _whole(text: str) -> int:
    value = int(float(text))
    if abs(value) * 1000 > MOST_MS:
        raise ValueError(f"{text[:40]} is out of range")
    return value


def wtf(path: Path, found: Imported) -> dict[str, list[Task]]:
    """Return the tasks of a trace in WTF, by workflow.

    Args:
        path: a Parquet file of tasks, or a folder of the archive.
        found: takes the number of rows.

    Raises:
        InputError: it is none, or too large.
    """
    import polars as pl

    files = (
        [path] if path.is_file() else sorted(path.glob("**/tasks/schema-*/*.parquet")) or sorted(path.glob("*.parquet"))
    )
    if not files:
        raise InputError("has no tasks/schema-1.0/*.parquet", path=str(path), hint=WTF_HINT)
    if sum(file.stat().st_size for file in files) > MOST_TABLE:
        raise InputError(f"has more than {MOST_TABLE >> 20} MiB of tasks", path=str(path), hint=WTF_HINT)
    groups: dict[str, list[Task]] = {}
    for file in files:
        try:
            frame = pl.read_parquet(file, columns=list(WTF_COLUMNS), glob=False)
            plain = frame.select(
                pl.col("id", "workflow_id", "runtime").cast(pl.Int64),
                # a number of ms, or a timestamp
                (pl.col("ts_submit").cast(pl.Datetime("ms")) if frame.schema["ts_submit"].is_temporal() else
                 pl.col("ts_submit")).cast(pl.Int64),
                pl.col("parents").cast(pl.List(pl.Int64)),
            )  # fmt: skip
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"cannot be read: {str(error)[:200]}", path=str(file), hint=WTF_HINT) from error
        found.rows += plain.height
        for number, job, run, submit, parents in plain.iter_rows():
            if number is None or job is None:
                raise InputError("has a task without id or workflow_id", path=str(file), hint=WTF_HINT)
            bad = run is None or submit is None or not 0 <= run <= MOST_MS or not 0 <= submit <= MOST_MS
            groups.setdefault(str(job), []).append(
                Task(
                    number,
                    tuple(parent for parent in parents or () if parent is not None and parent != -1),
                    1,
                    0 if bad else submit,
                    0 if bad else run,
                    _NO_SUBMIT if bad else "",
                )
            )
    return groups


def wfformat(text: str, path: str, found: Imported) -> dict[str, list[Task]]:
    """Return the tasks of a workflow in WfFormat, which arrives at 0.

    Raises:
        InputError: it is none.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {str(error)[:200]}", path=path, hint=WFFORMAT_HINT) from error
    workflow = whole.get("workflow") if isinstance(whole, dict) else None
    workflow = workflow if isinstance(workflow, dict) else {}
    specification, execution = workflow.get("specification"), workflow.get("execution")
    if isinstance(specification, dict):
        tasks = _objects(specification.get("tasks"), path)
        timed = _objects(execution.get("tasks"), path) if isinstance(execution, dict) else []
    else:
        tasks = timed = _objects(workflow.get("tasks", workflow.get("jobs")), path)
    found.rows = len(tasks)
    numbers: dict[str, int] = {}
    for number, task in enumerate(tasks, 1):
        numbers.setdefault(_name(task), number)
    for number, task in enumerate(tasks, 1):
        # before 1.5, parents are named by name or by id
        numbers.setdefault(str(task.get("name")), number)
    lengths = {_name(task): _length(task) for task in timed}
    group = []
    for task in tasks:
        parents = task.get("parents", [])
        unknown = [p for p in parents if str(p) not in numbers] if isinstance(parents, list) else [parents]
        if unknown:
            raise InputError(
                f"task {_name(task)[:80]} names the parent {str(unknown[0])[:80]}, which is no task",
                path=path,
                hint=WFFORMAT_HINT,
            )
        length = lengths.get(_name(task))
        why = _NO_TIME if length is None else ""
        before = tuple(numbers[str(parent)] for parent in parents)
        group.append(Task(numbers[_name(task)], before, 1, 0, length or 0, why))
    return {str(whole.get("name") or "workflow"): group}


def _objects(tasks: object, path: str) -> list[dict[str, Any]]:
    if not isinstance(tasks, list) or not tasks or not all(isinstance(task, dict) for task in tasks):
        raise InputError("has no tasks", path=path, hint=WFFORMAT_HINT)
    return tasks


def _name(task: dict[str, Any]) -> str:
    return str(task.get("id") or task.get("name"))


def _length(task: dict[str, Any]) -> int | None:
    """The run time in ms."""
    value = task.get("runtimeInSeconds", task.get("runtime"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(1000 * value) if 0 <= 1000 * value <= MOST_MS else None
