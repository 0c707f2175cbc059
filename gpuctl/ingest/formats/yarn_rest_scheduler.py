"""``/ws/v1/cluster/scheduler`` of a YARN ResourceManager: the tree of queues, with their guaranteed GPUs if stated.

Read are the Capacity Scheduler and the Fair Scheduler. A row of the ledger is one queue.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.yarn.dumps import whole
from gpuctl.ingest.yarn.merge import refresh
from gpuctl.ingest.yarn.quotas import note_shares
from gpuctl.ingest.yarn.resources import as_list, is_gpu, number_of, text_of

_INFO = re.compile(rb'"schedulerInfo"\s*:')
_DEEPEST = 100
_GUARANTEES = ("effectiveMinResource", "steadyFairResources")


class Queue(NamedTuple):
    """One queue: its full path, its parent's, its guaranteed GPUs (None: not stated).

    Where they are not stated, ``share`` is what it is guaranteed of all nodes without a node label, 0 to 1 (None: not
    stated either, as by the Fair Scheduler, or it has no such share). ``most`` is the share that it may have at most;
    ``limit_gpus`` the same in GPUs, if stated so (Fair Scheduler). ``by_label`` has the same two shares of the nodes of
    each node label: label, guaranteed, at most.
    """

    path: str
    parent: str | None
    quota_gpus: float | None
    share: float | None = None
    most: float | None = None
    limit_gpus: float | None = None
    by_label: tuple[tuple[str, float | None, float | None], ...] = ()


def read_queues(document: object) -> tuple[list[Queue], list[tuple[str, str]]]:
    """Read the tree of queues.

    Returns:
        queues; and (why, what) of those that cannot be read.

    Raises:
        InputError: there is no scheduler in it.
    """
    scheduler = document.get("scheduler") if isinstance(document, dict) else None
    info = scheduler.get("schedulerInfo") if isinstance(scheduler, dict) else None
    if not isinstance(info, dict):
        raise InputError("no scheduler in it; expected {scheduler: {schedulerInfo: ...}}")
    found: list[Queue] = []
    faults: list[tuple[str, str]] = []
    todo: list[tuple[Any, str | None, int]] = [(info.get("rootQueue", info), None, 0)]
    while todo:
        node, parent, depth = todo.pop()
        name = text_of(node.get("queuePath")) or text_of(node.get("queueName")) if isinstance(node, dict) else None
        if name is None and parent is None and isinstance(node, dict) and "queues" not in node:
            continue  # the FIFO scheduler has no queues
        if name is None or not name.isprintable():
            faults.append(("no printable queue name", repr(node)[:500]))
            continue
        if depth > _DEEPEST:
            faults.append(("queues nested too deep", name))
            continue
        path = name if parent is None or name.startswith(f"{parent}.") else f"{parent}.{name}"
        gpus = _guaranteed(node)
        share = _share(node, parent, "capacity") if gpus is None else None
        limit = _gpus_in(node.get("maxResources")) if "steadyFairResources" in node else None
        labels = _by_label(node) if gpus is None else ()
        found.append(Queue(path, parent, gpus, share, _share(node, parent, "maxCapacity"), limit, labels))
        todo += [(child, path, depth + 1) for child in reversed(_children(node))]
    return found, faults


def _children(node: dict[str, Any]) -> list[Any]:
    inside = node.get("queues") or node.get("childQueues")
    return as_list(inside.get("queue") if isinstance(inside, dict) else inside)


def _guaranteed(node: dict[str, Any]) -> float | None:
    """GPUs that a queue is guaranteed, over all partitions; None if its GPUs are not stated."""
    by_partition = [_gpus_in(part.get("effectiveMinResource")) for part in _partitions(node)]
    known = [gpus for gpus in by_partition if gpus is not None]
    if known:
        return sum(known)
    return next((gpus for key in _GUARANTEES if (gpus := _gpus_in(node.get(key))) is not None), None)


def _share(node: dict[str, Any], parent: str | None, name: str) -> float | None:
    """The Capacity Scheduler's ``capacity`` or ``maxCapacity`` as a fraction of all.

    The root, which has all, comes without the absolute one.
    """
    absolute = f"absolute{name[0].upper()}{name[1:]}"
    return _fraction(node.get(absolute if parent is not None else name))


def _by_label(node: dict[str, Any]) -> tuple[tuple[str, float | None, float | None], ...]:
    """Shares of the nodes of each node label: label, guaranteed, at most."""
    return tuple(
        (label, _fraction(part.get("absoluteCapacity")), _fraction(part.get("absoluteMaxCapacity")))
        for part in _partitions(node)
        if (label := text_of(part.get("partitionName"))) is not None
    )


def _partitions(node: dict[str, Any]) -> list[dict[str, Any]]:
    """What a queue has of the nodes of each node label, and of those without one."""
    capacities = node.get("capacities")
    parts = as_list(capacities.get("queueCapacitiesByPartition")) if isinstance(capacities, dict) else []
    return [part for part in parts if isinstance(part, dict)]


def _fraction(percent: object) -> float | None:
    """A share in percent as a fraction; None if it is none."""
    found = number_of(percent)
    return found / 100 if found is not None and 0 < found <= 100 else None


def _gpus_in(resource: object) -> float | None:
    if not isinstance(resource, dict):
        return None
    informations = resource.get("resourceInformations")
    rows = as_list(informations.get("resourceInformation") if isinstance(informations, dict) else None)
    amounts = [
        number_of(row.get("value"))
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("name"), str) and is_gpu(row["name"])
    ]
    known = [amount for amount in [*amounts, number_of(resource.get("GPUs"))] if amount is not None]
    return sum(known) if known else None


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the queues into ``queues``: full path, parent, ``quota_gpus`` if stated (``configured``), ``limit_gpus``.

    Of several dumps that differ, the greatest quota counts. Where only shares are stated (2.10), the quota is that of
    the GPUs of all nodes known, now or when a source describes nodes later; so is the limit always, since a dump
    counts only the nodes that were up. Jobs whose source gives
    only the last part of a queue's path are given the path.

    Raises:
        InputError: it is not valid JSON, or no scheduler's.
    """
    queues, faults = read_queues(whole(stream))
    sink.seen(len(queues) + len(faults))
    for reason, raw in faults:
        sink.reject(1, reason, raw)
    sink.loaded(len(queues))
    _write(sink, queues)
    note_shares(sink, {queue.path: queue.share for queue in queues if queue.share is not None}, "capacity")
    note_shares(sink, {queue.path: queue.most for queue in queues if queue.most is not None}, "limit")
    for label in sorted({one[0] for queue in queues for one in queue.by_label}):
        of_label = {queue.path: one for queue in queues for one in queue.by_label if one[0] == label}
        note_shares(sink, {path: one[1] for path, one in of_label.items() if one[1] is not None}, "capacity", label)
        note_shares(sink, {path: one[2] for path, one in of_label.items() if one[2] is not None}, "limit", label)


def _write(sink: Sink, queues: list[Queue]) -> None:
    import polars as pl

    by_path = {queue.path: queue for queue in queues}
    rows = [by_path[path] for path in sorted(by_path)]
    columns = {
        "queue": pl.Series([row.path for row in rows], dtype=pl.String),
        "parent": pl.Series([row.parent for row in rows], dtype=pl.String),
        "quota_gpus": pl.Series([row.quota_gpus for row in rows], dtype=pl.Float64),
        "limit_gpus": pl.Series([row.limit_gpus for row in rows], dtype=pl.Float64),
        "quota_source": pl.Series([None if row.quota_gpus is None else "configured" for row in rows], dtype=pl.String),
    }
    sink.execute(
        """
        UPDATE queues SET parent = coalesce(queues.parent, stated.parent),
                          quota_gpus = CASE WHEN by_dump THEN greatest(queues.quota_gpus, stated.quota) ELSE quota END,
                          limit_gpus = CASE WHEN by_dump THEN greatest(queues.limit_gpus, stated.most) ELSE most END,
                          quota_source = coalesce(CASE WHEN by_dump THEN queues.quota_source END, stated.quota_source)
        FROM (SELECT unnest($queue::VARCHAR[]) AS queue, unnest($parent::VARCHAR[]) AS parent,
                     unnest($quota_gpus::DOUBLE[]) AS quota, unnest($limit_gpus::DOUBLE[]) AS most,
                     unnest($quota_source::VARCHAR[]) AS quota_source) AS stated,
             -- facts of a log no longer count once a dump names the queue
             (SELECT queue, parent IS NOT NULL OR queue = 'root' AS by_dump
              FROM queues WHERE cluster = $cluster) AS known
        WHERE queues.cluster = $cluster AND queues.queue = stated.queue AND known.queue = stated.queue
        """,
        {"cluster": sink.cluster, **{name: cells.to_list() for name, cells in columns.items()}},
    )
    known = sink.query("SELECT queue FROM queues WHERE cluster = $cluster", {"cluster": sink.cluster})[
        "queue"
    ].to_list()
    fresh = pl.DataFrame(columns).filter(~pl.col("queue").is_in(known))
    if fresh.height:
        sink.insert("queues", fresh)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a scheduler's state."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return '"schedulerInfo"' if text.startswith(b"{") and _INFO.search(text) else None


FORMAT = Format(
    name="yarn-rest-scheduler",
    title="YARN: queues as a ResourceManager's REST interface shows them (/ws/v1/cluster/scheduler)",
    fills=("queues",),
    file_names=("*scheduler*.json",),
    order=10,
    sniff=sniff,
    load=load,
    settle=refresh,
)
