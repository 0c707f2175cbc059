"""Ganglia: RRD files of ``gpuN_util`` and its like, as ``rrdtool fetch``, ``xport`` or ``dump`` prints them.

Node and metric are in the path alone: ``…/HOST/gpu0_util.fetch.txt``. A row's time is the end of its step, its value
the mean over it: the sample stands in the middle. https://oss.oetiker.ch/rrdtool/doc/rrdfetch.en.html,
https://github.com/ganglia/gmond_python_modules/tree/master/gpu/nvidia
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Place, Sink
from gpuctl.ingest.telemetry.node_names import origin_of
from gpuctl.ingest.telemetry.recorder import Identity, Recorder, cleaned, fault

_METRICS = {"util": "util", "fb_memory": "mem_mb", "power_usage_report": "power_w"}
_PATH = re.compile(r"(?:^|[/!])gpu(\d{1,3})_(\w+?)(?:\.[\w.]*)?$", re.ASCII)
_FETCH = re.compile(rb"^\s*(\d{9,11}): +(\S+)\s*$", re.MULTILINE)
_XPORT = re.compile(rb"<row>\s*<t>(\d{9,11})</t>\s*<v>\s*([^<\s]+)\s*</v>\s*</row>")
_DUMP = re.compile(rb"<!--[^>]*/ (\d{9,11}) -->\s*<row>\s*<v>\s*([^<\s]+)\s*</v>\s*</row>")
_MOST = 64 << 20


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the samples of one metric of one GPU; a row of the ledger is a step.

    Raises:
        InputError: the path has no node or metric, or nothing in the file is a step.
    """
    import polars as pl

    place = getattr(stream, "place", None)
    path = place.path if place is not None else str(getattr(stream, "name", ""))
    found = _PATH.search(path)
    machine = origin_of(stream, sink).machine
    if found and machine and machine in path[found.start() :]:
        # of a store without nodes: Ganglia's folder is the node
        machine = re.split(r"[/!]", path[: found.start()])[-1] or None
    if found is None or found[2] not in _METRICS or machine is None:
        raise InputError(
            "the path has no node and no metric gpuN_util, gpuN_fb_memory or gpuN_power_usage_report",
            hint="keep Ganglia's folders: HOST/gpu0_util.fetch.txt",
        )
    data = stream.read(_MOST)
    rows = next((some for form in (_FETCH, _XPORT, _DUMP) if (some := form.findall(data))), [])
    if not rows or stream.read(1):
        raise InputError("no step of an RRD that can be read" if not rows else f"more than {_MOST >> 20} MiB of steps")
    steps = pl.DataFrame(
        {"end": [int(end) for end, _ in rows], "text": [value.decode("ascii", "replace") for _, value in rows]}
    )
    # of several archives the finest that covers a time
    steps = steps.with_columns(step=pl.col("end").diff().fill_null(strategy="backward")).filter(pl.col("step") > 0)
    lost = len(rows) - steps.height
    steps = steps.sort("step", maintain_order=True).unique("end", keep="first", maintain_order=True).sort("end")
    column = _METRICS[found[2]]
    value = cleaned(column, pl.col("text").str.strip_prefix("-").str.strip_prefix("+").cast(pl.Float64, strict=False))
    steps = steps.with_columns(ts=pl.col("end") * 1_000_000 - pl.col("step") * 500_000, value=value)
    recorder = Recorder(sink, node_clock=False)
    number = recorder.number(Identity("ganglia", machine, int(found[1])))
    sink.seen(len(rows))
    bad = steps.filter(fault(column, pl.col("value")))
    for end, text in bad.select("end", "text").iter_rows():
        sink.reject(1, f"{found[2]} cannot be right", f"{end}: {text}")
    good = steps.filter(~fault(column, pl.col("value")))
    recorder.add(good.select("ts", pl.lit(number).alias("series"), pl.col("value").alias(column)))
    recorder.finish()
    for _ in range(lost + steps.height - bad.height - good.height):
        sink.reject(1, "a step of another archive, which a finer one covers", "")
    sink.loaded(good.height)
    rest = len(rows) - lost - steps.height
    if rest:
        sink.already_stored(rest)


def claims(place: Place, head: bytes) -> str | None:
    """Recognise the metric in the path, and the first step."""
    found = _PATH.search(place.path)
    if found and found[2] in _METRICS and any(form.search(head) for form in (_FETCH, _XPORT, _DUMP)):
        return f"steps of an RRD of gpu{found[1]}_{found[2]}"
    return None


def of_which(place: Place) -> tuple[str, int | None, str]:
    """The GPU and metric: two idle GPUs have files with the same bytes."""
    return "", None, place.path


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the same by the file's name."""
    return claims(Place(name, name), head)


FORMAT = Format(
    name="gpu-ganglia",
    title="Ganglia: RRDs of GPUs (rrdtool fetch, xport, dump)",
    fills=("gpu_series", "gpu_readings", "gpu_util"),
    file_names=("HOST/gpu0_util.fetch.txt", "HOST/gpu0_util.xml"),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    claims=claims,
    many=True,
    whose=of_which,
    verified="documentation",
)
