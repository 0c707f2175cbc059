"""Metrics of GPUs as text: a scrape of an exporter, ``/federate``, ``promtool tsdb dump`` and ``dump-openmetrics``.

A scrape has no time: it is in the file's name (``gpu01.20261031T020700Z.prom``).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.telemetry.exporters import metric_of
from gpuctl.ingest.telemetry.text_formats import load as load_lines

_STAMP = re.compile(r"(\d{8})T?(\d{6})Z", re.ASCII)
_NAMES = re.compile(rb'^(?:\{__name__="([\w:]+)"|([A-Za-z_][\w:]*)\{)', re.MULTILINE)
_TYPES = re.compile(rb"^# (?:TYPE|HELP) ([\w:]+) ", re.MULTILINE)
_FAMILIES = ("DCGM_", "dcgm_", "nvidia_smi_", "nvidia_gpu_", "slurm_job_", "gpu_", "amd_gpu_", "ceems_")


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read lines of metrics.

    Raises:
        InputError: nothing in it has a time.
    """
    name = getattr(stream, "name", "") or ""
    found = _STAMP.search(str(name).rpartition("/")[2])
    scraped = None
    if found:
        scraped = (
            int(datetime.strptime(found[1] + found[2], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()) * 1_000_000
        )
    load_lines(stream, sink, scraped)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a metric of a GPU among the lines."""
    del name
    if head.lstrip()[:1] == b"{" and not head.lstrip().startswith(b"{__name__="):
        return None
    names = [(a or b).decode() for a, b in _NAMES.findall(head)] + [n.decode() for n in _TYPES.findall(head)]
    known = next((n for n in names if metric_of(n) and n.startswith(_FAMILIES)), None)
    return f"lines of metrics, {known} among them" if known else None


FORMAT = Format(
    name="gpu-prometheus-text",
    title="Prometheus: metrics of GPUs as text (a scrape, /federate, promtool tsdb dump)",
    fills=("gpu_series", "gpu_readings", "gpu_util", "gpu_devices", "gpu_events"),
    file_names=("*.prom", "*.txt"),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
