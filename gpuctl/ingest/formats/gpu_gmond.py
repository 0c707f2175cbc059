"""Ganglia's gmond (port 8649): the latest value of each metric of each node, as XML.

The time of a value is LOCALTIME of its cluster less TN. A value older than four times TMAX is stale. A row of the
ledger is a metric of a GPU. https://github.com/ganglia/gmond_python_modules/tree/master/gpu/nvidia
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO
from xml.etree import ElementTree as ET

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.telemetry.recorder import MOST, Device, Identity, Recorder, pci_of, uuid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_METRICS = {"util": ("util", {"%", ""}), "fb_memory": ("mem_mb", {"MB", "MiB", ""}),
            "power_usage_report": ("power_w", {"W", "watts", ""})}  # fmt: skip
_NAMES = {"uuid", "pci_id"}
_METRIC = re.compile(r"gpu(\d{1,3})_(\w+)", re.ASCII)
_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,12})?", re.ASCII)
_MOST_BYTES = 64 << 20
_STALE = 4


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the samples and names of GPUs.

    Raises:
        InputError: it is no XML, or has entities.
    """
    data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES or b"<!ENTITY" in data:
        raise InputError(f"not an answer of gmond: entities, or more than {_MOST_BYTES >> 20} MiB")
    try:
        tree = ET.fromstring(data)  # noqa: S314 - entities are refused above
    except ET.ParseError as error:
        raise InputError(f"cannot be read to its end as XML: {error}") from error
    recorder = Recorder(sink, node_clock=False)
    for cluster in tree.iter("CLUSTER"):
        now = _number(cluster.get("LOCALTIME"))
        for host in cluster.iter("HOST"):
            _host(host, now, sink, recorder)
    recorder.finish()


def _host(host: ET.Element, now: float | None, sink: Sink, recorder: Recorder) -> None:
    import polars as pl

    machine = host.get("NAME")
    names: dict[int, dict[str, str]] = {}
    rows: list[tuple[int, int, str, float]] = []
    for metric in host.iter("METRIC"):
        found = _METRIC.fullmatch(metric.get("NAME") or "")
        if found is None or found[2] not in {*_METRICS, *_NAMES}:
            continue
        sink.seen()
        gpu, value = int(found[1]), metric.get("VAL") or ""
        if found[2] in _NAMES:
            names.setdefault(gpu, {})[found[2]] = value
            sink.loaded()
            continue
        column, units = _METRICS[found[2]]
        why = _fault(metric.attrib, column, units, now)
        if why:
            sink.reject(1, why, ET.tostring(metric)[:400])
            continue
        rows.append((gpu, int(((now or 0) - float(metric.get("TN") or 0)) * 1e6), column, float(value)))
        sink.loaded()
    for gpu, known in names.items():
        recorder.device(Device(machine, gpu, uuid_of(known.get("uuid")), pci_of(known.get("pci_id"))))
    for gpu, ts, column, number in rows:
        series = recorder.number(Identity("ganglia", machine, gpu))
        recorder.add(pl.DataFrame({"ts": [ts], "series": [series], column: [number]}))


def _fault(metric: Mapping[str, str], column: str, units: set[str], now: float | None) -> str | None:
    """Why a metric is no sample; None: it is one."""
    number, age, most = _number(metric.get("VAL")), _number(metric.get("TN")), _number(metric.get("TMAX"))
    if now is None or age is None:
        return "no time: LOCALTIME of the cluster or TN of the metric is not a number"
    if most and age > _STALE * most:
        return "stale: older than four times TMAX"
    if metric.get("UNITS", "") not in units:
        return f"not in {' or '.join(sorted(units - {''}))}"
    if number is None or not 0 <= number <= MOST[column]:
        return "a value that cannot be right"
    return None


def _number(text: str | None) -> float | None:
    return float(text) if text and _NUMBER.fullmatch(text) else None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise gmond's answer, if it has a GPU."""
    del name
    return "element GANGLIA_XML with metrics of GPUs" if b"<GANGLIA_XML" in head and b'"gpu0_' in head else None


FORMAT = Format(
    name="gpu-gmond",
    title="Ganglia: gmond's XML with metrics of GPUs",
    fills=("gpu_series", "gpu_readings", "gpu_util", "gpu_devices"),
    file_names=("gmond.xml",),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    many=True,
    verified="documentation",
)
