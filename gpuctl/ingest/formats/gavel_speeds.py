"""Steps a second of jobs in Gavel's simulator (``simulation_throughputs.json``), by which its jobs get run times.

``{GPU type: {"('job type', number of GPUs)": {"null": steps per second alone, "('other', 1)": [both, packed]}}}``. Only
the speed alone is read, on GPUs that are together (types without ``_unconsolidated``); a row of the ledger is one of
these. A job's work is in steps: with its speed on V100s, or where there is none on the fastest type, its run time is
known, and it has the quirk ``run_time_of_steps`` in place of ``work_in_steps``.
"""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traces import gavel

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 64 << 20
_CHUNK = 1 << 20
_APART = "_unconsolidated"
_HINT = "expected an object of GPU types, each with the speeds of jobs, as Gavel's simulator reads"


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read speeds into ``trace_parts``.

    Raises:
        InputError: it is not such an object, or too large.
    """
    rows = []
    for number, (gpu_type, key, speed) in enumerate(_speeds(_document(stream)), 1):
        sink.seen()
        try:
            rows.append((*_key(key), gpu_type, _speed(speed)))
        except RowError as bad:
            sink.reject(number, f"{gpu_type}: {bad}", f"{key}: {json.dumps(speed)[:200]}")
    if rows:
        gavel.insert_speeds(sink, rows)
        sink.loaded(len(rows))


def _document(stream: BinaryIO) -> dict[str, Any]:
    data = bytearray()
    while piece := stream.read(_CHUNK):
        data += piece
        if len(data) > MOST:
            raise InputError(f"speeds of more than {MOST >> 20} MiB", hint=_HINT)
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {str(error)[:200]}", hint="is the copy complete?") from error
    if not isinstance(found, dict):
        raise InputError("is not a JSON object", hint=_HINT)
    return found


def _speeds(found: dict[str, Any]) -> Iterator[tuple[str, str, object]]:
    for gpu_type, jobs in found.items():
        if gpu_type.endswith(_APART):
            continue
        if not isinstance(jobs, dict):
            raise InputError(f"{gpu_type[:100]} is no object", hint=_HINT)
        yield from ((gpu_type, key, speed) for key, speed in jobs.items())


def _key(text: str) -> tuple[str, float]:
    """The job type and the number of GPUs of ``('ResNet-18 (batch size 16)', 1)``."""
    try:
        found = ast.literal_eval(text) if len(text) < 500 else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, tuple) or len(found) != 2 or [type(one) for one in found] != [str, int] or found[1] < 1:
        raise RowError("not ('job type', number of GPUs)")
    return found[0], float(found[1])


def _speed(speed: object) -> float:
    alone = speed.get("null") if isinstance(speed, dict) else None
    if isinstance(alone, bool) or not isinstance(alone, int | float) or not 0 <= alone < 1e12:
        raise RowError("null is not a number of steps per second")
    return float(alone)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an object of GPU types whose first entry holds only the speed."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = b"".join(text[:400].split())
    fits = first.startswith(b'{"') and b'":{"(\'' in first and b'":{"null":' in first
    return "JSON of GPU types with the speeds of jobs alone (null) and packed" if fits else None


FORMAT = Format(
    name="gavel-speeds",
    title="Gavel: steps per second by type of job and GPU (simulation_throughputs.json)",
    fills=("trace_parts", "jobs"),
    file_names=("simulation_throughputs.json",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    conclude=gavel.conclude,
    epoch="relative",
)
