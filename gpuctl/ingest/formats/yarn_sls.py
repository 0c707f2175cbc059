"""Input of YARN's Scheduler Load Simulator (SLS): JSON objects of jobs with their containers, one after another.

A row of the ledger is a job; ``job.count`` makes several of one object. Seconds count from the start of the simulation.
The jobs have not run: they are input of a replay, which gives a job all of its containers at once, for as long as the
longest of those that hold GPUs takes (the longest of all, if none does); SLS itself starts them one by one as
containers come free. A container holds the GPUs of ``container.yarn.io/gpu``, none if it has no such key. Its cores and
memory are in ``container.vcores`` and ``container.memory-mb``; without them, in SLS's own settings, and unknown here.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.ranges import LARGEST
from gpuctl.ingest.read.json_stream import elements
from gpuctl.ingest.traces.records import JobRecords
from gpuctl.ingest.yarn.resources import is_gpu, number_of, text_of

_START = re.compile(r'\{\s{0,40}"(?:am\.type|job\.[a-z.]{2,20})"\s{0,4}:')
_SIGNS = (b'"job.tasks"', b'"job.start.ms"')
_MOST_COPIES = 100_000


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs.

    Raises:
        InputError: there is nothing in the file.
    """
    records = JobRecords(sink)
    number = 0
    for element in elements(stream, _START):
        raw = element.raw.decode("utf-8", "replace")
        try:
            if not isinstance(element.value, dict):
                raise RowError(element.fault or "not an object")
            rows = _rows(element.value, number)
        except RowError as bad:
            sink.seen()
            sink.reject(element.line_no, str(bad), raw)
            continue
        sink.seen(len(rows))
        for row in rows:
            number += 1
            records.add(number, row, raw)
    records.finish()


def _rows(job: dict[str, Any], before: int) -> list[dict[str, Any]]:
    """The rows of an object.

    Args:
        job: the object.
        before: jobs before it, which number the ones without an id.
    """
    tasks = job.get("job.tasks")
    if not isinstance(tasks, list) or not tasks:
        raise RowError("no job.tasks")
    submit = _number(job, "job.start.ms", None) / 1000
    copies = int(max(_number(job, "job.count", 1.0), 1.0))
    if submit > LATEST_S or copies > _MOST_COPIES:
        raise RowError(f"job.start.ms is over 200 years, or job.count over {_MOST_COPIES:,}")
    shapes = [_container(task) for task in tasks]
    gpus = sum(count * each for count, each, *_ in shapes)
    run = max(seconds for _, each, _, _, seconds in shapes if each > 0 or gpus == 0)
    # of containers without their own cores, SLS's settings have the number
    cores = [count * each if each is not None else None for count, _, each, _, _ in shapes]
    memory = [count * each if each is not None else None for count, _, _, each, _ in shapes]
    if gpus > LARGEST:
        raise RowError("the number of GPUs is out of range")
    name = text_of(job.get("job.id"))
    row: dict[str, Any] = {
        "queue": text_of(job.get("job.queue.name")), "user": text_of(job.get("job.user")),
        "submit_ts": submit, "gpus": float(gpus), "cpus": _total(cores), "mem_mb": _total(memory),
        "run_sum_s": run, "run_last_s": run, "quirks": [], "state": State.PENDING.value, "attempts": 0,
    }  # fmt: skip
    if copies == 1:
        return [{"job": name or f"job_{before + 1}", **row}]
    return [{"job": f"{name}-{k}" if name else f"job_{before + k}", **row} for k in range(1, copies + 1)]


def _container(task: object) -> tuple[int, float, float | None, float | None, float]:
    """Return how many there are of a container, its GPUs, cores and memory, and its length in seconds."""
    if not isinstance(task, dict):
        raise RowError("a task of a job is no object")
    count = int(max(_number(task, "count", 1.0), 1.0))
    gpus = sum(
        _number(task, key, 0.0) for key in task if isinstance(key, str) and is_gpu(key.removeprefix("container."))
    )
    # as SLS looks for it
    length = next((_number(task, key, None) for key in ("container.duration.ms", "duration.ms") if key in task), None)
    if length is None:
        length = _number(task, "container.end.ms", None) - _number(task, "container.start.ms", None)
    if length <= 0:
        raise RowError("a container takes no time: SLS expects more than 0 ms")
    vcores = _number(task, "container.vcores", 0.0) or None
    return count, gpus, vcores, _number(task, "container.memory-mb", 0.0) or None, length / 1000


def _total(values: list[float | None]) -> int | None:
    known = [value for value in values if value is not None]
    return int(sum(known)) if len(known) == len(values) and sum(known) < LARGEST else None


def _number(found: dict[str, Any], key: str, otherwise: float | None) -> float:
    value = number_of(found[key]) if key in found else otherwise
    if value is None or not 0 <= value < 1e17:
        raise RowError(f"{key} is not a number, 0 or more")
    return value


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an object with tasks and a start."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return (
        "jobs with job.start.ms and job.tasks"
        if text.startswith((b"{", b"[")) and all(sign in text for sign in _SIGNS)
        else None
    )


FORMAT = Format(
    name="yarn-sls",
    title="YARN: input of its Scheduler Load Simulator (SLS)",
    fills=("jobs", "attempts", "queues"),
    file_names=("sls-jobs.json", "inputsls.json"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    epoch="relative",
    verified="documentation",
)
