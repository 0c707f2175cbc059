"""Answers of Prometheus's query API with counters of received bytes, over a range of time.

``/api/v1/query_range?query=container_network_receive_bytes_total{...}`` or ``/api/v1/query?query=...[1h]``. A series is
called after its labels, the first of `NAMES` that it has, and after its interface if the answer has several of
that name. Series of the other direction, and results of rate() or sum(), which no longer show what they count, are
rejected. A row of the ledger is a sample; a series that cannot be read is one row.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.telemetry.exporters import gpu_metric
from gpuctl.ingest.traffic.samples import Feed, job_name, micros, name_of, number
from gpuctl.ingest.yarn.dumps import items

if TYPE_CHECKING:
    from gpuctl.ingest.yarn.dumps import Item

COUNTERS = frozenset(
    {
        "container_network_receive_bytes_total",
        "node_network_receive_bytes_total",
        "node_mountstats_nfs_total_read_bytes_total",
    }
)
"""Of cAdvisor, and of node_exporter's collectors netdev and mountstats."""
NAMES = ("job_id", "jobid", "slurm_job_id", "pod", "pod_name", "container", "name", "id", "instance")
"""Labels that name what was counted, the most telling first; ``job`` is Prometheus's own and names what it scrapes."""
PARTS = ("interface", "device", "mountpoint", "export")
"""Labels that show several series of one such thing apart."""
_MARKS = ("metric",)
_HEAD = re.compile(rb'"resultType"|"result"\s*:\s*\[')
_VALUES_FIRST = re.compile(rb'"result"\s*:\s*\[\s*\{\s*"values"\s*:\s*\[\s*\[')


class _Owner(NamedTuple):
    """What a series is of: its name without interface, and all of its labels."""

    name: str
    labels: tuple[tuple[str, str], ...]


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples of counters into ``traffic``."""
    feed = Feed(sink, cumulative=True)
    owners: dict[str, _Owner] = {}
    for item in items(stream, ("result",), _MARKS):
        try:
            job, samples = _series(item, owners)
        except RowError as bad:
            sink.seen()
            sink.reject(item.line_no, str(bad), item.raw or repr(item.value))
            continue
        for sample in samples:
            _add(feed, sink, item.line_no, job, sample)
    feed.finish(name_of(stream))
    _shorten(sink, owners)


def _series(item: Item, owners: dict[str, _Owner]) -> tuple[str, list[Any]]:
    value = item.value
    if value is None:
        raise RowError(item.fault or "")
    labels = value.get("metric")
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        raise RowError('no labels ("metric") that are texts')
    metric = labels.get("__name__")
    if metric is None:
        raise RowError(
            "no name of a metric: a result of rate(), sum() and their like; query the counter itself, e.g. "
            "container_network_receive_bytes_total{...}"
        )
    if metric not in COUNTERS:
        raise RowError(f"not a counter of received bytes; expected one of {', '.join(sorted(COUNTERS))}")
    samples = value.get("values")
    if not isinstance(samples, list):
        raise RowError('no samples over time ("values"); ask /api/v1/query_range, or query with a range: ...[1h]')
    owner = next((labels[name] for name in NAMES if labels.get(name)), None)
    if owner is None:
        raise RowError(f"no label that names what was counted; expected one of {', '.join(NAMES)}")
    parts = tuple(labels[name] for name in PARTS if labels.get(name))
    job = job_name("/".join((owner, *parts)))
    found = _Owner(owner, tuple(sorted(labels.items())))
    if owners.setdefault(job, found) != found:
        raise RowError("a second series of this name; narrow the query down to one of them")
    return job, samples


def _add(feed: Feed, sink: Sink, line_no: int, job: str, sample: Any) -> None:
    try:
        if not isinstance(sample, list) or len(sample) != 2:
            raise RowError("a sample is not [time, value]")
        feed.add(line_no, repr(sample), job, micros(str(sample[0]), "time"), number(str(sample[1]), "value"))
    except RowError as bad:
        sink.seen()
        sink.reject(line_no, str(bad), repr(sample))


def _shorten(sink: Sink, owners: dict[str, _Owner]) -> None:
    """Leave the interface out of the names of what has only one."""
    often = Counter(owner.name for owner in owners.values())
    alone = {job: owner.name for job, owner in owners.items() if often[owner.name] == 1 and job != owner.name}
    if alone:
        sink.execute(
            """
            UPDATE traffic SET job = short.owner
            FROM (SELECT unnest($jobs::VARCHAR[]) AS job, unnest($owners::VARCHAR[]) AS owner) AS short
            WHERE traffic.cluster = $cluster AND traffic.source = $source AND traffic.job = short.job
            """,
            {
                "cluster": sink.cluster,
                "source": sink.source,
                "jobs": list(alone),
                "owners": list(alone.values()),
            },
        )


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an answer of the query API."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{") and ((b'"metric"' in text and _HEAD.search(text)) or _VALUES_FIRST.search(text)):
        # an answer belongs to the format that knows its metric
        return None if gpu_metric(head) else 'an answer with results that have a "metric"'
    return None


FORMAT = Format(
    name="traffic-prometheus",
    title="Traffic counters as Prometheus's query API answers (node_exporter, cAdvisor)",
    fills=("traffic",),
    file_names=("*.json",),
    order=40,
    zoned=True,
    sniff=sniff,
    load=load,
)
