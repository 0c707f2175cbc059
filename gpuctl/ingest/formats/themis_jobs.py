"""Jobs as the simulator of Themis takes them (mltiply; Mahajan et al., NSDI'20): a JSON array of objects.

Each is a trial of a search, ``job_group_id``, which is the job's name here. ``time_per_iteration`` is on one GPU; a job
has up to ``max_parallelism``, and with all of them it runs ``total_iterations * time_per_iteration / max_parallelism``
seconds. That is its run time here; what it loses across slots, nodes and racks is not read. Seconds count from a
start of the file's own, and the values are texts.
"""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.core.states import State
from gpuctl.ingest.core.format import RAW_LIMIT, Format, Sink
from gpuctl.ingest.read.json_stream import elements
from gpuctl.ingest.traces.records import JobRecords

_START = re.compile(r'\{\s*"')
_KEYS = ("job_id", "start_time", "total_iterations", "time_per_iteration", "max_parallelism")
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,20})?([eE][+-]?\d{1,2})?", re.ASCII)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs; a row of the ledger is an object, its line that on which it starts.

    Raises:
        InputError: there is nothing in it.
    """
    records = JobRecords(sink)
    for number, element in enumerate(elements(stream, _START), 1):
        sink.seen()
        try:
            if element.fault is not None:
                raise RowError(element.fault)
            records.add(number, _row(element.value), json.dumps(element.value)[:RAW_LIMIT])
        except RowError as bad:
            sink.reject(element.line_no, str(bad), element.raw)
    records.finish()


def _row(found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise RowError("not a JSON object")
    job = str(found.get("job_id", ""))
    if not job or not job.isprintable():
        raise RowError("job_id is no printable text")
    submit, steps, each, most = (_number(found, key) for key in _KEYS[1:])
    if most < 1:
        raise RowError("max_parallelism is less than 1")
    run = steps * each / most
    group = found.get("job_group_id")
    return {
        "job": job, "name": None if group is None else str(group), "submit_ts": submit, "gpus": most,
        "state": State.PENDING.value, "attempts": 0, "run_sum_s": run, "run_last_s": run,
    }  # fmt: skip


def _number(found: dict[str, Any], key: str) -> float:
    text = str(found.get(key, "")).strip()
    if not _NUMBER.fullmatch(text) or float(text) > 1e12:
        raise RowError(f"{key} is not a number, 0 or more")
    return float(text)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an array of objects with the keys that are read."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.partition(b"}")[0]
    fits = text.startswith(b"[") and all(f'"{key}"'.encode() in first for key in _KEYS)
    return "a JSON array of jobs with total_iterations, time_per_iteration and max_parallelism" if fits else None


FORMAT = Format(
    name="themis-jobs",
    title="Themis (mltiply): jobs of a simulator (JSON with time_per_iteration, max_parallelism ...)",
    fills=("jobs", "attempts", "queues"),
    file_names=("nsdi_philly_hyperdrive.json",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    epoch="relative",
)
