"""Objects of Kubernetes as ``kubectl get -o json`` and ``-w --output-watch-events`` print them: jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.read.json_walk import Shape, documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpuctl.ingest.read.json_stream import Element

_SHAPE = Shape(
    frozenset({"items"}),
    frozenset({"apiVersion", "kind", "metadata", "object", "spec"}),
    re.compile(r'\{\s{0,16}"(?:apiVersion|type|kind)"\s{0,2}:'),
    "objects of Kubernetes, as kubectl prints them",
    "write them again with: kubectl get KIND -A -o json > FILE",
)
_QUANTITY = re.compile(
    r"\+?(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:([eE][+-]?\d{1,2})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?", re.ASCII
)
"""https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""
_SCALE = {None: 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SCALE |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}
_SLACK_S = 2.0
GPU_KEYS = ("volcano.sh/gpu-number",)
_FINISHED = {
    "Succeeded": State.COMPLETED,
    "Failed": State.FAILED,
    "AdmissionChecksRejected": State.KILLED,
    "OutOfSync": State.KILLED,
}
_PHASES = {
    "Pending": State.PENDING,
    "Running": State.RUNNING,
    "Restarting": State.PENDING,
    "Completing": State.RUNNING,
    "Completed": State.COMPLETED,
    "Terminating": State.RUNNING,
    "Terminated": State.KILLED,
    "Aborting": State.RUNNING,
    "Aborted": State.KILLED,
    "Failed": State.FAILED,
}
_OVER = frozenset({"Restarting", "Pending", "Completed", "Terminated", "Aborted", "Failed"})


class Spell(NamedTuple):
    """A time that a job had its GPUs: seconds since 1970; no end: it still runs."""

    start: float
    end: float | None


@dataclass
class JobHistory:
    """One job as its snapshots show it; the last snapshot overrides the earlier ones."""

    job: str
    queue: str | None = None
    name: str | None = None
    user: str | None = None
    submit: float | None = None
    state: State = State.PENDING
    source_state: str | None = None
    gpus: float = 0.0
    cpus: float = 0.0
    mem_mb: float = 0.0
    pods: int = 0
    gpu_type: str | None = None
    priority: int | None = None
    limit_s: float | None = None
    reason: str | None = None
    end: float | None = None
    starts: set[float] = field(default_factory=set)
    ready: set[float] = field(default_factory=set)
    admissions: set[float] = field(default_factory=set)
    stops: set[float] = field(default_factory=set)
    quirks: set[str] = field(default_factory=set)

    def spells(self) -> list[Spell]:
        """The times that it had its GPUs, as its snapshots show them: from each start to the first stop after it."""
        ends = sorted({*self.stops, *([self.end] if self.end is not None else ())})
        found, starts = [], self._starts(ends)
        for start, following in zip_longest(starts, starts[1:]):
            stop = next((end for end in ends if end >= start), following)
            found.append(Spell(start, stop if following is None or stop is None else min(stop, following)))
        return found

    def _starts(self, ends: list[float]) -> list[float]:
        """Its starts: of Kueue, ready pods, and admissions that none follow before a stop.

        Pods that are ready again without a stop did not start anew.
        """
        starts: list[float] = []
        for ready in sorted(self.ready):
            if not starts or any(starts[-1] <= end < ready for end in ends):
                starts.append(ready)
        for admitted in self.admissions:
            ready_at = min((ready for ready in self.ready if ready >= admitted), default=None)
            if ready_at is None or any(admitted < end < ready_at for end in ends):
                starts.append(admitted)
        return sorted({*self.starts, *starts})


def objects(stream: BinaryIO) -> Iterator[tuple[Element, dict[str, Any] | None]]:
    """Yield the objects of lists, and single objects and watch events, with what each was read from.

    Objects of a typed list (``WorkloadList``) need no kind and API version of their own: they are those of the list,
    whether it states them before or after its items.

    Returns:
        elements, and the object; None if it is none.

    Raises:
        InputError: there is nothing in it.
    """
    for around, elements in documents(stream, _SHAPE):
        untyped: list[tuple[Element, dict[str, Any]]] = []
        for element in elements:
            value = element.value
            if isinstance(value, dict) and isinstance(value.get("object"), dict):
                value = value["object"]
            if not isinstance(value, dict):
                yield element, None
            elif isinstance(value.get("kind"), str):
                yield element, value
            elif "kind" in around and "apiVersion" in around:
                yield element, _typed(value, around)
            else:
                untyped.append((element, value))
        for element, value in untyped:
            yield element, _typed(value, around)


def _typed(item: dict[str, Any], of_list: Mapping[str, Any]) -> dict[str, Any]:
    """An item with the kind and the API version that its list states for all of its items."""
    kind = str(of_list.get("kind") or "").removesuffix("List")
    return {**item, "kind": kind, "apiVersion": item.get("apiVersion") or of_list.get("apiVersion")}


def text(found: object, *keys: str) -> str | None:
    """The text at a path of keys; None if there is none."""
    value = at(found, *keys)
    return value if isinstance(value, str) and value and value.isprintable() and len(value) < 1000 else None


def at(found: object, *keys: str) -> Any:
    """What is at a path of keys; None if a part of it is missing."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def listed(found: object, *keys: str) -> list[dict[str, Any]]:
    """The objects of a list at a path of keys."""
    value = at(found, *keys)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def seconds(stamp: object) -> float | None:
    """An RFC 3339 time as seconds since 1970.

    Raises:
        RowError: it is not a time.
    """
    if stamp is None or stamp == "":
        return None
    try:
        found = datetime.fromisoformat(str(stamp).replace("Z", "+00:00"))
    except ValueError:
        raise RowError("a time is not as RFC 3339 has it") from None
    value = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    if not 0 <= value < LATEST_S:
        raise RowError("a time is out of range")
    return value


def quantity(value: object) -> float:
    """A quantity of a resource as a number.

    Raises:
        RowError: it is none.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18:
        return float(value)
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise RowError("a quantity cannot be read")
    found = float(match[1] + (match[2] or "")) * _SCALE[match[3]]
    if found >= 1e18:
        raise RowError("a quantity is out of range")
    return found


def _pairs(found: object, key: str) -> dict[str, Any]:
    value = at(found, key) or {}
    if not isinstance(value, dict):
        raise RowError(f"{key} is no object")
    return {name: one for name, one in value.items() if one is not None}


def is_gpu(key: str) -> bool:
    """Whether a resource is a whole GPU."""
    return key.endswith("/gpu") or key in GPU_KEYS


def requests(spec: object) -> tuple[float, float, float, bool]:
    """GPUs, CPUs and MiB that a pod asks for, and whether parts of GPUs are among them.

    Of each these are the sum of its containers, or the most that one of its init containers asks for, if that is more:
    they run one after the other, before the containers do.

    Raises:
        RowError: a quantity cannot be read.
    """
    containers = [_container_requests(one) for one in listed(spec, "containers")]
    before = [_container_requests(one) for one in listed(spec, "initContainers")]
    gpus, cpus, mem, parts = (
        max([sum(one[k] for one in containers), *(one[k] for one in before)], default=0.0) for k in range(4)
    )
    return gpus, cpus, mem, parts > 0


def _container_requests(container: object) -> tuple[float, float, float, float]:
    """GPUs, CPUs, MiB and parts of GPUs that a container asks for; a limit without a request is a request, too."""
    resources = at(container, "resources")
    gpus = cpus = mem = parts = 0.0
    for key, value in {**_pairs(resources, "limits"), **_pairs(resources, "requests")}.items():
        if is_gpu(key):
            gpus += quantity(value)
        elif "/mig-" in key:
            parts += quantity(value)
        elif key == "cpu":
            cpus += quantity(value)
        elif key == "memory":
            mem += quantity(value) / 2**20
    return gpus, cpus, mem, parts


def _add_pods(job: JobHistory, count: object, spec: object) -> None:
    """Add so many pods of one specification to what a job asks for; without a number it is one."""
    number = count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**31 else 1
    gpus, cpus, mem, parts = requests(spec)
    job.pods += number
    job.gpus += number * gpus
    job.cpus += number * cpus
    job.mem_mb += number * mem
    job.quirks |= {"mig_not_counted"} if parts else set()


def key_of(found: dict[str, Any]) -> str:
    """Namespace and name of an object.

    Raises:
        RowError: it has none.
    """
    name = text(found, "metadata", "name")
    if name is None:
        raise RowError("an object without a name")
    space = text(found, "metadata", "namespace")
    return f"{space}/{name}" if space else name


def workload(found: dict[str, Any]) -> JobHistory:
    """Read a Workload of Kueue as a job.

    Raises:
        RowError: it is not what a Workload looks like.
    """
    space, owners = text(found, "metadata", "namespace"), listed(found, "metadata", "ownerReferences")
    owners.sort(key=lambda one: one.get("controller") is not True)
    owner = text(owners[0], "name") if owners else None
    job = JobHistory(f"{space}/{owner}" if owner and space else key_of(found))
    job.name = text(owners[0], "kind") if owners else None
    local = text(found, "spec", "queueName")
    job.queue = text(found, "status", "admission", "clusterQueue") or (f"{space}/{local}" if local else None)
    job.submit = seconds(at(found, "metadata", "creationTimestamp"))
    priority = at(found, "spec", "priority")
    job.priority = priority if isinstance(priority, int) and abs(priority) < 2**62 else None
    # of a workload that was admitted in part, fewer pods run than it asked for
    assigned = {str(one.get("name")): one for one in listed(found, "status", "admission", "podSetAssignments")}
    for pods in listed(found, "spec", "podSets"):
        count = at(assigned.get(str(pods.get("name"))), "count")
        _add_pods(job, at(pods, "count") if count is None else count, at(pods, "template", "spec"))
    flavors = {
        flavor
        for one in listed(found, "status", "admission", "podSetAssignments")
        for key, flavor in _pairs(one, "flavors").items()
        if is_gpu(str(key)) and isinstance(flavor, str)
    }
    job.gpu_type = "|".join(sorted(flavors)) or None
    most = at(found, "spec", "maximumExecutionTimeSeconds")
    job.limit_s = float(most) if isinstance(most, int) and 0 < most < 1e12 else None
    _conditions(job, found)
    return job


def _conditions(job: JobHistory, found: dict[str, Any]) -> None:
    """Read a Workload's conditions: one a type, the last transition of each, in any order."""
    by_type: dict[str, dict[str, Any]] = {}
    for one in sorted(listed(found, "status", "conditions"), key=lambda one: str(one.get("lastTransitionTime") or "")):
        by_type[str(one.get("type"))] = one
    since = {name: seconds(one.get("lastTransitionTime")) for name, one in by_type.items()}
    holds = {name for name, one in by_type.items() if str(one.get("status")) == "True"}
    ready = since.get("PodsReady") if "PodsReady" in holds else None
    admitted = since.get("Admitted") if "Admitted" in holds else None
    if ready is not None:
        job.ready.add(ready)
    elif admitted is not None:
        job.admissions.add(admitted)
    # A condition that is false was true until its transition. What is evicted has its quota until it is not admitted.
    stop = since.get("Admitted") if "Admitted" in by_type else since.get("Evicted")
    if stop is not None and "Admitted" not in holds and ("Admitted" in by_type or "Evicted" in holds):
        job.stops.add(stop)
    for name in ("Preempted", "Evicted"):
        job.reason = job.reason or (text(by_type.get(name), "reason") if name in holds else None)
    if "Finished" in holds:
        reason = text(by_type["Finished"], "reason")
        success = "success" in (text(by_type["Finished"], "message") or "").lower()
        job.state = _FINISHED.get(reason or "", State.COMPLETED if success else State.UNKNOWN)
        job.source_state, job.end = f"Finished {reason or ''}".strip(), since["Finished"]
    elif "Admitted" in holds:
        job.state, job.source_state = State.RUNNING, "Evicted" if "Evicted" in holds else "Admitted"
    else:
        job.state, job.source_state = State.PENDING, "QuotaReserved" if "QuotaReserved" in holds else "Pending"
    count = at(found, "status", "requeueState", "count")
    evicted_before = "Evicted" in by_type and not ("Evicted" in holds and "Admitted" in holds)
    if (isinstance(count, int) and count > 0) or evicted_before:
        job.quirks.add("earlier_attempts_lost")


def volcano_job(found: dict[str, Any]) -> JobHistory:
    """What a Job of Volcano states: its conditions are a history.

    Raises:
        RowError: it is not what such a Job looks like.
    """
    job = JobHistory(key_of(found))
    job.queue = text(found, "spec", "queue") or "default"
    job.submit = seconds(at(found, "metadata", "creationTimestamp"))
    for task in listed(found, "spec", "tasks"):
        _add_pods(job, at(task, "replicas"), at(task, "template", "spec"))
    phase = text(found, "status", "state", "phase") or "Pending"
    job.state, job.source_state = _PHASES.get(phase, State.UNKNOWN), phase
    job.reason = text(found, "status", "state", "reason")
    _read_transitions(job, found)
    last = seconds(at(found, "status", "state", "lastTransitionTime"))
    if not job.starts and last is not None and phase == "Running":
        job.starts.add(last)
    if phase in {"Completed", "Terminated", "Aborted", "Failed"}:
        job.end = max([*job.stops, *([last] if last is not None else [])], default=None)
    return job


def _read_transitions(job: JobHistory, found: dict[str, Any]) -> None:
    """Read the starts and stops of a Job's conditions, which may be listed in any order."""
    known: list[tuple[float, bool, str]] = []
    for one in listed(found, "status", "conditions"):
        stamp, phase = seconds(one.get("lastTransitionTime")), one.get("status") or one.get("phase")
        if stamp is not None and isinstance(phase, str):
            # within one second per job is pending before it runs
            known.append((stamp, phase != "Pending", phase))
    running = False
    for stamp, _, phase in sorted(known, key=lambda one: one[:2]):
        if phase == "Running":
            if not running:
                job.starts.add(stamp)
            running = True
        elif running and phase in _OVER:
            job.stops.add(stamp)
            running = False


class Event(NamedTuple):
    """That a Workload was admitted or evicted, as an event tells: of which, and when (seconds since 1970)."""

    workload: str
    evicted: bool
    ts: float


def events(found: dict[str, Any]) -> list[Event]:
    """Read an event of Kueue about a Workload; of a repeated one, its first and last time; of others, nothing.

    Its reasons are ``Admitted`` and ``EvictedDueTo…``; of ``v1`` and of ``events.k8s.io/v1``.

    Raises:
        RowError: a time cannot be read.
    """
    about = at(found, "involvedObject") or at(found, "regarding")
    reason, name = text(found, "reason") or "", text(about, "name")
    evicted = reason.startswith("EvictedDueTo")
    if text(about, "kind") != "Workload" or name is None or not (evicted or reason == "Admitted"):
        return []
    space = text(about, "namespace")
    stamps = [found.get(key) for key in ("firstTimestamp", "deprecatedFirstTimestamp")]
    stamps += [found.get(key) for key in ("lastTimestamp", "deprecatedLastTimestamp")]
    times = {time for stamp in stamps if (time := seconds(stamp)) is not None}
    if not times:
        times = {time for time in (seconds(found.get("eventTime")),) if time is not None}
    return [Event(f"{space}/{name}" if space else name, evicted, time) for time in sorted(times)]


def add_earlier(job: JobHistory, recorded: list[Event]) -> None:
    """Add the attempts of a job that events show to have ended in an eviction and its own conditions do not show.

    Args:
        job: as its snapshots show it.
        recorded: all events of its Workload.
    """
    admitted: float | None = None
    for one in sorted(recorded, key=lambda event: (event.ts, event.evicted)):
        if not one.evicted:
            admitted = one.ts
            continue
        if admitted is not None:
            # clocks of events and conditions differ by a second
            known = job.starts | job.ready | job.admissions
            if not any(admitted - _SLACK_S <= start < one.ts for start in known):
                job.admissions.add(admitted)
            if not any(admitted <= stop <= one.ts + _SLACK_S for stop in job.stops):
                job.stops.add(one.ts)
        admitted = None
