"""Kubernetes: Workloads and ClusterQueues of Kueue, Jobs and Queues of Volcano, nodes (``kubectl get -o json``).

A row of the ledger is an object; several snapshots of one job (``-w --output-watch-events``) are put together. Kueue
keeps only the last transition of each condition, so that one snapshot describes one attempt; Volcano's conditions are a
history. Events in the same file show earlier attempts of Kueue's that were evicted. GPUs are the resources ``*/gpu``;
parts of GPUs (``mig-*``) are not counted. The wait ends when the pods are ready, or with the admission if that is not
stated. Made from the types of both; no dump of a real cluster was seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import (
    ATTEMPTS,
    DUPLICATE_JOB,
    AttemptRow,
    add_queues,
    replace_rows,
    standing,
)
from gpuctl.ingest.traces import kube

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.job_rows import Standing
    from gpuctl.ingest.traces.kube import JobHistory

_KINDS = {
    rb"kueue\.x-k8s\.io/": rb"Workload|ClusterQueue",
    rb"batch\.volcano\.sh/": rb"Job",
    rb"scheduling\.volcano\.sh/": rb"Queue",
    rb"v1\"": rb"Node",
}
"""What is read of each group of the API."""
_SIGNS = tuple(
    (re.compile(rb'"apiVersion"\s*:\s*"' + api), re.compile(rb'"kind"\s*:\s*"(' + kinds + rb')(?:List)?"'))
    for api, kinds in _KINDS.items()
)
_UNTYPED = (
    ("Workload", (b'"podSets"', b'"creationTimestamp"')),
    ("ClusterQueue", (b'"resourceGroups"', b'"nominalQuota"')),
    ("Job", (b'"minAvailable"', b'"tasks"', b'"replicas"')),
    ("Node", (b'"nodeInfo"', b'"allocatable"', b'"capacity"')),
)
"""What objects have whose list states their kind behind its items."""
_YAML = re.compile(
    rb"(?m)^[ \t]*+(?:- )?apiVersion:\s*[\"']?"
    rb"(?:v1|(?:kueue\.x-k8s\.io|(?:batch|scheduling)\.volcano\.sh)/\w+)[\"']?[ \t\r]*+$"
)
_NOT_READ = "an object of an unsupported kind"


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts, queues and nodes.

    Raises:
        InputError: there is nothing in the file.
    """
    jobs: dict[str, tuple[JobHistory, int, bytes]] = {}
    rows: dict[str, int] = {}
    quotas: dict[str, tuple[float, float | None, str | None]] = {}
    machines: dict[str, dict[str, Any]] = {}
    recorded: list[kube.Event] = []
    workloads: dict[str, str] = {}
    for element, found in kube.objects(stream):
        sink.seen()
        try:
            if found is None:
                raise RowError(element.fault or "not an object")
            job = _take(found, quotas, machines)
            if found.get("kind") == "Event":
                recorded += kube.events(found)
        except RowError as bad:
            sink.reject(element.line_no, str(bad), element.raw)
            continue
        if job is None:
            sink.loaded()
            continue
        rows[job.job] = rows.get(job.job, 0) + 1
        jobs[job.job] = _together(jobs, job), element.line_no, element.raw
        if found.get("kind") == "Workload":
            workloads[kube.key_of(found)] = job.job
    _add_events(recorded, workloads, jobs)
    if jobs:
        _write(jobs, rows, sink)
    _write_queues(quotas, {job.queue for job, _, _ in jobs.values() if job.queue}, sink)
    _write_machines(machines, sink)


def _take(
    found: dict[str, Any],
    quotas: dict[str, tuple[float, float | None, str | None]],
    machines: dict[str, dict[str, Any]],
) -> JobHistory | None:
    api, kind = str(found.get("apiVersion")), found.get("kind")
    if kind == "Workload" and api.startswith("kueue.x-k8s.io/"):
        return kube.workload(found)
    if kind == "Job" and api.startswith("batch.volcano.sh/"):
        return kube.volcano_job(found)
    if kind == "ClusterQueue" and api.startswith("kueue.x-k8s.io/"):
        quotas[kube.key_of(found)] = _cluster_queue(found)
    elif kind == "Queue" and api.startswith("scheduling.volcano.sh/"):
        spec = kube.at(found, "spec")
        deserved, capability = (
            _gpus(kube.at(spec, "deserved") or kube.at(spec, "guarantee", "resource")),
            _gpus(kube.at(spec, "capability")),
        )
        quotas[kube.key_of(found)] = deserved or 0.0, capability, kube.text(spec, "parent")
    elif kind == "Node" and api == "v1":
        machines[kube.key_of(found)] = _node(found)
    elif kind != "Event":
        raise RowError(_NOT_READ)
    return None


def _add_events(
    recorded: list[kube.Event], workloads: dict[str, str], jobs: dict[str, tuple[JobHistory, int, bytes]]
) -> None:
    """Add attempts that only events show to the jobs of the same file."""
    of: dict[str, list[kube.Event]] = {}
    for event in recorded:
        of.setdefault(event.workload, []).append(event)
    for workload, some in of.items():
        if workload in workloads:
            kube.add_earlier(jobs[workloads[workload]][0], some)


def _together(jobs: dict[str, tuple[JobHistory, int, bytes]], job: JobHistory) -> JobHistory:
    """The later snapshot, with the starts and stops of those before it."""
    if job.job in jobs:
        before = jobs[job.job][0]
        job.starts |= before.starts
        job.ready |= before.ready
        job.admissions |= before.admissions
        job.stops |= before.stops
        job.gpu_type = job.gpu_type or before.gpu_type
    return job


def _cluster_queue(found: dict[str, Any]) -> tuple[float, float | None, str | None]:
    quota = borrow = 0.0
    unlimited = False
    for group in kube.listed(found, "spec", "resourceGroups"):
        for flavor in kube.listed(group, "flavors"):
            for resource in kube.listed(flavor, "resources"):
                if kube.is_gpu(str(resource.get("name"))):
                    quota += kube.quantity(resource.get("nominalQuota", 0))
                    limit = resource.get("borrowingLimit")
                    unlimited |= limit is None
                    borrow += 0.0 if limit is None else kube.quantity(limit)
    cohort = kube.text(found, "spec", "cohort") or kube.text(found, "spec", "cohortName")
    # without a cohort there is nobody to borrow from
    limit_gpus = quota if cohort is None else float("inf") if unlimited else quota + borrow
    return quota, limit_gpus, cohort


def _gpus(resources: object) -> float | None:
    if not isinstance(resources, dict):
        return None
    counts = [kube.quantity(value) for key, value in resources.items() if kube.is_gpu(str(key))]
    return sum(counts) if counts else None


def _node(found: dict[str, Any]) -> dict[str, Any]:
    capacity = kube.at(found, "status", "capacity")
    capacity = capacity if isinstance(capacity, dict) else {}
    labels = kube.at(found, "metadata", "labels")
    labels = labels if isinstance(labels, dict) else {}
    rack = next((kube.text(labels, key) for key in ("topology.kubernetes.io/rack", "cloud.provider.com/topology-rack")
                 if key in labels), None)  # fmt: skip
    return {
        "machine": kube.key_of(found),
        "gpus_labelled": int(_gpus(capacity) or 0),
        "gpu_type": kube.text(labels, "nvidia.com/gpu.product") or kube.text(labels, "amd.com/gpu.product-name"),
        "cpus": int(kube.quantity(capacity["cpu"])) if "cpu" in capacity else None,
        "mem_mb": int(kube.quantity(capacity["memory"]) / 2**20) if "memory" in capacity else None,
        "rack": rack,
    }


def _write(found: dict[str, tuple[JobHistory, int, bytes]], rows: dict[str, int], sink: Sink) -> None:
    import polars as pl

    jobs: list[dict[str, Any]] = []
    attempts: list[AttemptRow] = []
    for one, _, _ in found.values():
        spells = one.spells()
        run = [s.end - s.start for s in spells if s.end is not None]
        quirks = {"start_is_admission"} if any(s.start in one.admissions - one.ready for s in spells) else set()
        start, end = (spells[0].start if spells else None), one.end
        wait = None if start is None or one.submit is None or start < one.submit else start - one.submit
        jobs.append({
            "job": one.job, "queue": one.queue, "user": one.user, "name": one.name, "submit_ts": one.submit,
            "start_ts": start, "end_ts": end, "state": one.state.value, "source_state": one.source_state,
            "gpus": one.gpus, "gpu_type": one.gpu_type, "cpus": _ceil(one.cpus), "mem_mb": _ceil(one.mem_mb),
            "time_limit_s": None if one.limit_s is None else int(one.limit_s), "priority": one.priority,
            "reason": one.reason, "attempts": len(spells), "wait_s": wait,
            "run_span_s": None if start is None or end is None else max(0.0, end - start),
            "run_sum_s": sum(run) if run else None, "run_last_s": run[-1] if run else None,
            "quirks": sorted((one.quirks | quirks) - ({"earlier_attempts_lost"} if len(spells) > 1 else set())),
        })  # fmt: skip
        queued = one.submit
        for number, spell in enumerate(spells):
            last = number == len(spells) - 1
            state = one.state if last else State.PREEMPTED
            waited = None if queued is None or spell.start < queued else spell.start - queued
            ran = None if spell.end is None else spell.end - spell.start
            attempts.append(
                AttemptRow(
                    one.job,
                    number,
                    _whole(queued),
                    _whole(spell.start),
                    _whole(spell.end),
                    _whole(spell.end),
                    state.value,
                    one.gpus,
                    0,
                    waited,
                    ran,
                    ("nodes_unknown",),
                )
            )
            queued = spell.end
    times = dict.fromkeys(("submit_ts", "start_ts", "end_ts"), pl.Float64)
    kinds: dict[str, Any] = {
        **dict.fromkeys(("queue", "user", "name", "source_state", "gpu_type", "reason"), pl.String), **times,
        **dict.fromkeys(("wait_s", "run_span_s", "run_sum_s", "run_last_s"), pl.Float64),
        **dict.fromkeys(("cpus", "mem_mb", "time_limit_s", "priority"), pl.Int64), "quirks": pl.List(pl.String),
    }  # fmt: skip
    micros = [(pl.col(n) * 1_000_000).round().cast(pl.Int64).cast(pl.Datetime("us", "UTC")) for n in times]
    frame = pl.DataFrame(jobs, schema_overrides=kinds).with_columns(micros)
    fresh = frame.filter(_count(found, rows, standing(sink, frame), sink))
    new = set(fresh["job"])
    attempts = [row for row in attempts if row.job in new]
    if new:
        sink.insert("jobs", fresh)
    if attempts:
        sink.insert(ATTEMPTS.table, ATTEMPTS.arrow(attempts, sink))


def _count(
    found: dict[str, tuple[JobHistory, int, bytes]], rows: dict[str, int], stand: Standing, sink: Sink
) -> pl.Series:
    """Count the snapshots of jobs, and return which jobs are new."""
    for (name, (_, line, raw)), new, same in zip(found.items(), stand.new, stand.same, strict=True):
        if new:
            sink.loaded(rows[name])
        elif same:
            sink.already_stored(rows[name])
        else:
            for _ in range(rows[name]):
                sink.reject(line, DUPLICATE_JOB, raw)
    return stand.new


def _ceil(value: float) -> int | None:
    return -int(-value // 1) or None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _write_queues(quotas: dict[str, tuple[float, float | None, str | None]], others: set[str], sink: Sink) -> None:
    import polars as pl

    if quotas:
        columns = {
            "queue": list(quotas),
            "quota_gpus": [quota for quota, _, _ in quotas.values()],
            "limit_gpus": pl.Series([limit for _, limit, _ in quotas.values()], dtype=pl.Float64),
            "parent": pl.Series([parent for _, _, parent in quotas.values()], dtype=pl.String),
        }
        replace_rows(sink, "queues", pl.DataFrame(columns).with_columns(quota_source=pl.lit("configured")))
    add_queues(sink, others)


def _write_machines(machines: dict[str, dict[str, Any]], sink: Sink) -> None:
    import polars as pl

    if not machines:
        return
    kinds = {"gpu_type": pl.String, "rack": pl.String, "cpus": pl.Int64, "mem_mb": pl.Int64, "gpus_labelled": pl.Int64}
    replace_rows(sink, "machines", pl.DataFrame(list(machines.values()), schema_overrides=kinds))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an object, a list or watch events of Kubernetes, of a kind that is read; keys in any order."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"{", b"[")) or b'"metadata"' not in text:
        return None
    kinds = {kind.decode() for api, sign in _SIGNS if api.search(text) for kind in sign.findall(text)}
    kinds = kinds or {kind for kind, keys in _UNTYPED if all(key in text for key in keys)}
    return f"objects of Kubernetes: {', '.join(sorted(kinds))}" if kinds else None


def passes_over(name: str, head: bytes) -> str | None:
    """Recognise the YAML of the same objects."""
    del name
    if head.lstrip().startswith((b"{", b"[")) or not _YAML.search(head):
        return None
    return "objects of Kubernetes as YAML, which is not read; print the same as JSON: kubectl get ... -o json"


FORMAT = Format(
    name="kube-objects",
    title="Kubernetes: jobs and queues of Kueue and Volcano, nodes (kubectl get -A -o json)",
    fills=("jobs", "attempts", "queues", "machines"),
    file_names=("workloads.json", "clusterqueues.json", "jobs.json", "nodes.json"),
    order=20,
    zoned=True,
    sniff=sniff,
    passes_over=passes_over,
    load=load,
    verified="documentation",
)
