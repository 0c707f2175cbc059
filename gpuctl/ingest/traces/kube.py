"""Objects of Kubernetes as ``kubectl get -o json`` and ``-w --output-watch-events`` print them: jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.lines import RowError
from gpuctl.core.states import State
from gpuctl.ingest.read.json_stream import elements
from gpuctl.ingest.read.json_walk import members
from gpuctl.ingest.read.streams import peeked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.ingest.read.json_stream import Element

START = re.compile(r'\{\s{0,16}"(?:apiVersion|type|kind)"\s{0,2}:')
_ITEMS = re.compile(rb'\{\s*(?:"apiVersion"\s*:\s*"[^"]{0,60}"\s*,\s*)?"items"\s*:')
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?", re.ASCII)
_SCALE = {None: 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SCALE |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
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
class Told:
    """What the snapshots of one job say, the last one in front."""

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
        """The times that it had its GPUs, as far as its snapshots tell: each start to the first stop behind it."""
        ends = sorted({*self.stops, *([self.end] if self.end is not None else ())})
        found, starts = [], self._starts(ends)
        for start, following in zip(starts, [*starts[1:], None], strict=True):
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
    """Yield the objects of a list, or of a run of objects or watch events, with what each was read from.

    Returns:
        elements, and the object; None where it is none.

    Raises:
        InputError: there is nothing in it.
    """
    head, again = peeked(stream)
    listed = _ITEMS.match(head.removeprefix(b"\xef\xbb\xbf").lstrip())
    for element in members(again, (b'"items"',), START) if listed else elements(again, START):
        value = element.value
        if listed and (isinstance(value, str) or (element.fault and element.raw.startswith((b'"', b"}")))):
            # past the list: its own kind and metadata
            return
        if isinstance(value, dict) and isinstance(value.get("object"), dict):
            value = value["object"]
        yield element, value if isinstance(value, dict) else None


def text(found: object, *keys: str) -> str | None:
    """The text at a path of keys; None where there is none."""
    value = at(found, *keys)
    return value if isinstance(value, str) and value and value.isprintable() and len(value) < 1000 else None


def at(found: object, *keys: str) -> Any:
    """What is at a path of keys; None where a part of it is missing."""
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
        RowError: it is no time.
    """
    if stamp is None or stamp == "":
        return None
    try:
        found = datetime.fromisoformat(str(stamp).replace("Z", "+00:00"))
    except ValueError:
        raise RowError("a time is not as RFC 3339 has it") from None
    value = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    if not 0 <= value < 7_258_118_400:
        raise RowError("a time is out of range")
    return value


def quantity(value: object) -> float:
    """A quantity of a resource as a number.

    Raises:
        RowError: it is none.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18:
        return float(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise RowError("a quantity cannot be read")
    return float(match[1]) * _SCALE[match[2]]


def _pairs(found: object, key: str) -> dict[str, Any]:
    value = at(found, key) or {}
    if not isinstance(value, dict):
        raise RowError(f"{key} is no object")
    return value


def is_gpu(key: str) -> bool:
    """Whether a resource is a whole GPU."""
    return key.endswith("/gpu") or key in GPU_KEYS


def requests(spec: object) -> tuple[float, float, float, bool]:
    """GPUs, CPUs and MiB that the containers of a pod ask for, and whether parts of GPUs are among them.

    Raises:
        RowError: a quantity cannot be read.
    """
    gpus = cpus = mem = 0.0
    parts = False
    for container in listed(spec, "containers"):
        resources = at(container, "resources")
        asked = {**_pairs(resources, "limits"), **_pairs(resources, "requests")}
        for key, value in asked.items():
            if is_gpu(key):
                gpus += quantity(value)
            elif "/mig-" in key:
                parts = True
            elif key == "cpu":
                cpus += quantity(value)
            elif key == "memory":
                mem += quantity(value) / 2**20
    return gpus, cpus, mem, parts


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


def workload(found: dict[str, Any]) -> Told:
    """What a Workload of Kueue says of its job.

    Raises:
        RowError: it is not what a Workload looks like.
    """
    space, owners = text(found, "metadata", "namespace"), listed(found, "metadata", "ownerReferences")
    owner = text(owners[0], "name") if owners else None
    told = Told(f"{space}/{owner}" if owner and space else key_of(found))
    told.name = text(owners[0], "kind") if owners else None
    local = text(found, "spec", "queueName")
    told.queue = text(found, "status", "admission", "clusterQueue") or (f"{space}/{local}" if local else None)
    told.submit = seconds(at(found, "metadata", "creationTimestamp"))
    priority = at(found, "spec", "priority")
    told.priority = priority if isinstance(priority, int) and abs(priority) < 2**62 else None
    for pods in listed(found, "spec", "podSets"):
        count = at(pods, "count")
        count = count if isinstance(count, int) and 0 <= count < 2**31 else 1
        gpus, cpus, mem, parts = requests(at(pods, "template", "spec"))
        told.pods += count
        told.gpus, told.cpus, told.mem_mb = (
            told.gpus + count * gpus,
            told.cpus + count * cpus,
            told.mem_mb + count * mem,
        )
        told.quirks |= {"mig_not_counted"} if parts else set()
    flavors = {
        flavor
        for one in listed(found, "status", "admission", "podSetAssignments")
        for key, flavor in _pairs(one, "flavors").items()
        if is_gpu(str(key)) and isinstance(flavor, str)
    }
    told.gpu_type = "|".join(sorted(flavors)) or None
    most = at(found, "spec", "maximumExecutionTimeSeconds")
    told.limit_s = float(most) if isinstance(most, int) and 0 < most < 1e12 else None
    _conditions(told, found)
    return told


def _conditions(told: Told, found: dict[str, Any]) -> None:
    """Read a Workload's conditions: one a type, the last transition of each."""
    by_type = {str(one.get("type")): one for one in listed(found, "status", "conditions")}
    since = {name: seconds(one.get("lastTransitionTime")) for name, one in by_type.items()}
    holds = {name for name, one in by_type.items() if one.get("status") == "True"}
    ready = since.get("PodsReady") if "PodsReady" in holds else None
    admitted = since.get("Admitted") if "Admitted" in holds else None
    if ready is not None:
        told.ready.add(ready)
    elif admitted is not None:
        told.admissions.add(admitted)
    # a condition that is false was true until its transition
    for name in ("Admitted", "Evicted"):
        stamp = since.get(name)
        if stamp is not None and (name == "Evicted") == (name in holds):
            told.stops.add(stamp)
    for name in ("Preempted", "Evicted"):
        told.reason = told.reason or (text(by_type.get(name), "reason") if name in holds else None)
    if "Finished" in holds:
        reason = text(by_type["Finished"], "reason")
        success = "success" in (text(by_type["Finished"], "message") or "").lower()
        told.state = _FINISHED.get(reason or "", State.COMPLETED if success else State.UNKNOWN)
        told.source_state, told.end = f"Finished {reason or ''}".strip(), since["Finished"]
    elif "Admitted" in holds and "Evicted" not in holds:
        told.state, told.source_state = State.RUNNING, "Admitted"
    else:
        told.state, told.source_state = State.PENDING, "QuotaReserved" if "QuotaReserved" in holds else "Pending"
    count = at(found, "status", "requeueState", "count")
    if isinstance(count, int) and count > 0:
        told.quirks.add("earlier_attempts_lost")


def volcano_job(found: dict[str, Any]) -> Told:
    """What a Job of Volcano says: its conditions are a history.

    Raises:
        RowError: it is not what such a Job looks like.
    """
    told = Told(key_of(found))
    told.queue = text(found, "spec", "queue") or "default"
    told.submit = seconds(at(found, "metadata", "creationTimestamp"))
    for task in listed(found, "spec", "tasks"):
        count = at(task, "replicas")
        count = count if isinstance(count, int) and 0 <= count < 2**31 else 1
        gpus, cpus, mem, parts = requests(at(task, "template", "spec"))
        told.pods += count
        told.gpus, told.cpus, told.mem_mb = (
            told.gpus + count * gpus,
            told.cpus + count * cpus,
            told.mem_mb + count * mem,
        )
        told.quirks |= {"mig_not_counted"} if parts else set()
    phase = text(found, "status", "state", "phase") or "Pending"
    told.state, told.source_state = _PHASES.get(phase, State.UNKNOWN), phase
    told.reason = text(found, "status", "state", "reason")
    running = False
    for one in listed(found, "status", "conditions"):
        stamp, state = seconds(one.get("lastTransitionTime")), one.get("status") or one.get("phase")
        if stamp is None:
            continue
        if state == "Running":
            if not running:
                told.starts.add(stamp)
            running = True
        elif running and isinstance(state, str) and state in _OVER:
            told.stops.add(stamp)
            running = False
    last = seconds(at(found, "status", "state", "lastTransitionTime"))
    if phase in {"Completed", "Terminated", "Aborted", "Failed"}:
        told.end = max([*told.stops, *([last] if last is not None else [])], default=None)
    return told
