"""Batsim's workloads: a JSON object with ``jobs`` and ``profiles``. Seconds count from the start of the simulation.

Only a delay profile shows how long a job runs; the work of others is in operations and bytes. A job without
``walltime`` has no limit, and one whose limit is below its delay is killed at the limit. Processors are CPUs
unless ``--swf-unit`` states what they are.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.core.format import RAW_LIMIT, Format, Sink
from gpuctl.ingest.core.ranges import LARGEST
from gpuctl.ingest.traces.processors import unit_of
from gpuctl.ingest.traces.records import JobRecords
from gpuctl.ingest.traces.requests import count

if TYPE_CHECKING:
    from gpuctl.ingest.traces.processors import Unit

MOST = 512 << 20
"""Bytes of a workload: jobs come before their profiles, so that all of it is held."""
_CHUNK = 1 << 20
_PROFILES = re.compile(
    rb'"profiles"\s*:\s*\{\s*"[^"]{0,200}"\s*:\s*\{[^{}]{0,2000}"type"\s*:\s*"(?:\w{1,60}Profile|delay|parallel\w{0,40}|composed|smpi\w{0,20})"'
)
"""Profiles may come before the jobs, and be many."""
_DELAYS = frozenset({"DelayProfile", "delay"})


def load(stream: BinaryIO, sink: Sink, unit: Unit = "core") -> None:
    """Read jobs; a row of the ledger is a job.

    Args:
        stream: the file.
        sink: takes the rows.
        unit: what a processor is.

    Raises:
        InputError: it is not such an object, or too large.
    """
    found = _document(stream)
    jobs, profiles = found.get("jobs"), found.get("profiles")
    if not isinstance(jobs, list) or not isinstance(profiles, dict):
        raise InputError(
            "no jobs or no profiles in it", hint="expected an object with jobs and profiles, as Batsim reads"
        )
    records = JobRecords(sink)
    for number, job in enumerate(jobs, 1):
        sink.seen()
        try:
            records.add(number, _row(job, profiles, unit), json.dumps(job)[:RAW_LIMIT])
        except RowError as bad:
            sink.reject(number, str(bad), json.dumps(job)[:RAW_LIMIT])
    records.finish()


def _document(stream: BinaryIO) -> dict[str, Any]:
    data = bytearray()
    while piece := stream.read(_CHUNK):
        data += piece
        if len(data) > MOST:
            raise InputError(f"a workload of more than {MOST >> 20} MiB", hint="split it into several files")
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {str(error)[:200]}", hint="is the copy complete?") from error
    if not isinstance(found, dict):
        raise InputError("is not a JSON object", hint="expected an object with jobs and profiles, as Batsim reads")
    return found


def _row(job: object, profiles: dict[str, Any], unit: Unit) -> dict[str, Any]:
    if not isinstance(job, dict):
        raise RowError("a job is no object")
    name = job.get("id")
    if isinstance(name, bool) or not isinstance(name, int | str) or not str(name).isprintable() or not str(name):
        raise RowError("id is neither a number nor a printable text")
    submit, size = count(job, "subtime", 1e18), count(job, "res", LARGEST)
    if submit > LATEST_S:
        raise RowError("subtime is over 200 years")
    profile_name = job.get("profile")
    if isinstance(profile_name, bool) or not isinstance(profile_name, int | str):
        raise RowError("profile is neither a number nor a text")
    profile = profiles.get(str(profile_name))
    if not isinstance(profile, dict):
        raise RowError("its profile is not among the profiles")
    # -1 is no limit, too
    limit = None if job.get("walltime") is None or job["walltime"] == -1 else count(job, "walltime")
    run = count(profile, "delay") if str(profile.get("type")) in _DELAYS else None
    quirks = [] if run is not None else ["no_run_time"]
    if run is not None and limit is not None and limit < run:
        run, quirks = limit, ["killed_at_limit"]
    return {
        "job": str(name), "submit_ts": submit, "cpus": int(size) if unit == "core" else None,
        "gpus": float(size) if unit == "gpu" else 0.0, "nodes": int(size) if unit == "node" else None,
        "name": str(profile_name),
        "time_limit_s": None if limit is None else round(limit), "run_sum_s": run, "run_last_s": run, "quirks": quirks,
        "state": State.PENDING.value, "attempts": 0,
    }  # fmt: skip


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an object with ``jobs`` that have a ``subtime``, a ``res`` and a ``profile``, or its profiles."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{"):
        return None
    if all(key in text for key in (b'"subtime"', b'"res"', b'"profile"', b'"jobs"')):
        return "JSON with jobs of subtime, res and profile"
    return "JSON with profiles of Batsim" if _PROFILES.search(text) else None


FORMAT = Format(
    name="batsim-workload",
    title="Batsim: workload (JSON with jobs and profiles)",
    fills=("jobs", "attempts", "queues"),
    file_names=("workload.json",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    epoch="relative",
)


def with_unit(unit: str) -> Format:
    """The same format, for files whose processors are something else.

    Raises:
        UsageError: there is no such unit.
    """
    return replace(FORMAT, load=partial(load, unit=unit_of(unit)))
