"""Answers of Prometheus's query API with metrics of GPUs: dcgm-exporter, jobstats, slurm-job-exporter and their like.

``/api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL``, or ``query`` with a range (``…[6h]``) or at an instant. Which
metrics are read: `gpuctl.ingest.telemetry.exporters`.
A row of the ledger is a sample; a series that is not read is one row.
https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.telemetry.answer import blocks
from gpuctl.ingest.telemetry.exporters import gpu_metric
from gpuctl.ingest.telemetry.prometheus import Samples

if TYPE_CHECKING:
    from collections.abc import Mapping

_ERROR = re.compile(rb'\A\s*\{\s*"status"\s*:\s*"error"')


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples and faults of GPUs.

    Raises:
        InputError: the server's answer is an error.
    """
    samples = Samples(sink)
    series, labels_before = None, None
    for block in blocks(stream):
        if block.error:
            raise InputError(f"the server answered: {block.error}", hint="ask for less at a time: a shorter range")
        if block.labels is not labels_before or series is None:
            labels_before = block.labels
            series = samples.series(block.labels)
            if isinstance(series, str):
                samples.refuse(series, 0, block.line_no, _shown(block.labels))
        if block.fault:
            sink.seen()
            sink.reject(block.line_no, block.fault, _shown(block.labels))
        elif not isinstance(series, str):
            samples.add(series, block.rows, block.line_no)
    samples.finish()


def _shown(labels: Mapping[str, str]) -> str:
    return json.dumps(dict(labels))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an answer whose metric is one of a GPU, or an error in its place."""
    del name
    found = gpu_metric(head)
    if found and b'"metric"' in head:
        return f"an answer of Prometheus with {found}"
    return "an error that Prometheus answered" if _ERROR.match(head) and b'"errorType"' in head else None


FORMAT = Format(
    name="gpu-prometheus-answers",
    title="Prometheus: answers with metrics of GPUs (dcgm-exporter, jobstats, nvidia_gpu_exporter …)",
    fills=("gpu_series", "gpu_readings", "gpu_util", "gpu_devices", "gpu_events"),
    file_names=("*.json",),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
