"""``dcgmi stats -v -j JOB``: means and highest values of each GPU of a group while a job ran; a file a node.

The group may hold GPUs of other jobs: a job with fewer GPUs than a summary has no figure of it. "SM Utilization" is
field 203, the time in which a kernel ran. Times are local, as ctime writes them. A row of the ledger is a GPU.
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.telemetry.node_names import origin_of
from gpuctl.ingest.telemetry.recorder import MOST
from gpuctl.ingest.telemetry.tables import LocalStamps

_JOB = re.compile(r"statistics for job: (\S{1,64}?)\.?\s*$", re.MULTILINE)
_GPU = re.compile(r"^\| GPU ID: (\d{1,4}) *\|", re.MULTILINE)
_SUMMARY = re.compile(r"^\| Summary *\|", re.MULTILINE)
_LINE = re.compile(r"^\| ([^|]+?) *\| ([^|]*?) *\|$", re.MULTILINE)
_AVERAGE = re.compile(r"Avg: (\d{1,12}(?:\.\d{1,9})?)(?:,|$)", re.ASCII)
_WHOLE = re.compile(r"\d{1,16}", re.ASCII)
_MOST = 16 << 20


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the figures of a job on a node.

    Raises:
        InputError: it names no job, has no GPU (-v), or is too large.
    """
    text = stream.read(_MOST + 1).decode("utf-8", "replace").replace("\r\n", "\n")
    job = _JOB.search(text)
    starts = [found.start() for found in _GPU.finditer(text)]
    if len(text) > _MOST or job is None:
        raise InputError("no line with the job of these statistics", hint="keep all that dcgmi stats -v -j JOB prints")
    if not starts:
        what = "a summary of all GPUs" if _SUMMARY.search(text) else "no GPU"
        raise InputError(f"has {what}", hint="record it with -v: dcgmi stats -v -j JOB")
    stamps = LocalStamps(sink.timezone)
    machine, name = origin_of(stream, sink).machine, _number_of(job[1], sink)
    rows = []
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
        sink.seen()
        row, why = _gpu(text[begin:end], stamps)
        if why:
            sink.reject(text.count("\n", 0, begin) + 1, why, text[begin : begin + 400])
            continue
        rows.append(row | {"job": name, "machine": machine, "origin": "dcgmi"})
        sink.loaded()
    _insert(rows, sink)


def _insert(rows: list[dict[str, Any]], sink: Sink) -> None:
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys(("job", "machine", "gpu", "origin"), pl.String)
    kinds |= dict.fromkeys(("util_mean", "mem_max_mb", "run_s"), pl.Float64) | {"start_ts": pl.Int64}
    frame = pl.DataFrame(rows, schema=kinds)
    sink.insert("job_gpu_summary", frame.with_columns(pl.col("start_ts").cast(pl.Datetime("us", "UTC"))))


def _gpu(block: str, stamps: LocalStamps) -> tuple[dict[str, Any], str | None]:
    """A row of ``job_gpu_summary``, and why it is none."""
    import polars as pl

    found = dict(_LINE.findall(block))
    times = stamps.utc(
        pl.Series([found.get("Start Time"), found.get("End Time")], dtype=pl.String), "%a %b %d %H:%M:%S %Y"
    )
    start, end = times.to_list()
    if start is None or end is None or end < start:
        return {}, "no start and end that can be read: cut off, or still running"
    average, memory = _AVERAGE.search(found.get("SM Utilization (%)", "")), found.get("Max GPU Memory Used (bytes)", "")
    util = float(average[1]) if average else None
    mem = int(memory) / 2**20 if _WHOLE.fullmatch(memory) else None
    if (util or 0) > MOST["util"] or (mem or 0) > MOST["mem_mb"]:
        return {}, "a figure that cannot be right"
    number = _GPU.match(block)
    gpu = number[1] if number else None
    return {"gpu": gpu, "util_mean": util, "mem_max_mb": mem, "run_s": (end - start) / 1e6, "start_ts": start}, None


def _number_of(label: str, sink: Sink) -> str:
    """The job of a name as the prolog writes it: a raw id, or ARRAY_TASK."""
    array, _, task = label.partition("_")
    if not (array.isdecimal() and task.isdecimal()):
        return label
    sql = "SELECT job FROM jobs WHERE cluster = $c AND array_job = $a AND array_task = $t"
    jobs = sink.query(sql, {"c": sink.cluster, "a": array, "t": task})["job"].to_list()
    return jobs[0] if len(jobs) == 1 else label


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first line and the frame."""
    del name
    there = b"retrieved statistics for job:" in head and (b"| GPU ID: " in head or b"| Summary" in head)
    return "statistics of a job by dcgmi stats" if there else None


FORMAT = Format(
    name="gpu-dcgmi-stats",
    title="dcgmi stats -v -j JOB",
    fills=("job_gpu_summary",),
    file_names=("dcgmi-stats-JOB.NODE.txt",),
    order=45,
    clock="wall",
    sniff=sniff,
    load=load,
    many=True,
    verified="documentation",
)
