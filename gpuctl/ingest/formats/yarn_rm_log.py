"""The log of a YARN ResourceManager, 2.2 to 3.x, with its audit lines and ApplicationSummary lines in it or not.

A row of the ledger is one log record: a line with a date and the lines without one that follow it. Records of no
interest are loaded and store nothing. Most dates carry no zone: see `gpuctl.ingest.yarn.clock`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.yarn import facts as f
from gpuctl.ingest.yarn.audit import read_audit
from gpuctl.ingest.yarn.bulk import MARKS, Bulk
from gpuctl.ingest.yarn.clock import keep_utc
from gpuctl.ingest.yarn.events import NODE_STATES, Happenings
from gpuctl.ingest.yarn.ids import container_id
from gpuctl.ingest.yarn.lines import Hit, read_records
from gpuctl.ingest.yarn.machines import Machine, add_machines
from gpuctl.ingest.yarn.merge import refresh
from gpuctl.ingest.yarn.quotas import note_shares
from gpuctl.ingest.yarn.resources import Resource, read_resource
from gpuctl.ingest.yarn.sniffing import daemon_of
from gpuctl.ingest.yarn.summary import read_summary, take_summary

if TYPE_CHECKING:
    from collections.abc import Callable

_ASSIGNED = re.compile(r"Assigned container (container_\w+) of capacity (?=<)")
_ON_HOST = re.compile(r" on host (\S+?), which has \d+ containers, ")
_CONTAINER = re.compile(r"ContainerId: (container_\w+), NodeId: (\S+?), .*?Resource: (?=<)")
_NM_TOKEN = re.compile(r"Sending NMToken for nodeId : (\S+) for container : (container_\w+)")
_ACCEPTED = re.compile(
    r"Accepted application (application_\w+) from user: (.*?), in queue: (.*?)(?:, currently num .*)?"
)
_LAUNCH = re.compile(
    r"update the launch time for applicationId: (application_\w+), attemptId: \w+?launchTime: (\d{1,13})"
)
_ATTEMPT_END = re.compile(
    r"Updating application attempt (appattempt_\w+) with final state: (\w+), and exit status: (-?\d{1,9})"
)
_REGISTERED = re.compile(r"NodeManager from node (\S+?) ?\(cmPort: .* registered with capability: (?=<)")
_TRANSITION = re.compile(r"(container_\w+) Container Transitioned from ([A-Z]+) to ([A-Z]+)")
_CHANGE = re.compile(r"(app\w+) State change from ([A-Z_]+) to ([A-Z_]+)(?: on event ?= ?(\w+))?")
_NODE = re.compile(r"(\S+) Node Transitioned from ([A-Z]+) to ([A-Z]+)")
_AILING = re.compile(r"Node (\S+) reported UNHEALTHY with details: (.*)")
_PREEMPTED = re.compile(r"(?:Non-)?AM container preempted, .*?containerId=(container_\w+)(?:,.*)?")
_QUEUE = re.compile(r"Initializing (\S+)\s*")
_SHARE = r"(\d(?:\.\d+)?(?:E-\d+)?)"
# Hadoop 2.6 spells it asboluteCapacity
_SHARES = re.compile(rf"^a(?:bs|sb)olute(Capacity|MaxCapacity) = {_SHARE} \[", re.MULTILINE)
_LEAF = re.compile(
    rf"LeafQueue: (\S+) update max app related, .*Abs Cap: ?{_SHARE}, Cap: ?{_SHARE}, MaxCap ?: ?{_SHARE}"
)
_CONTAINER_TIMES = {"RESERVED": f.LAUNCH, "ALLOCATED": f.ALLOCATED, "RUNNING": f.RUNNING}
_CONTAINER_ENDS = frozenset({"COMPLETED", "RELEASED", "EXPIRED", "KILLED"})
_CONTAINER_STATES = frozenset({"NEW", "ACQUIRED", *_CONTAINER_TIMES, *_CONTAINER_ENDS})
_ATTEMPT_TIMES = {"SUBMITTED": f.SUBMIT, "ALLOCATED_SAVING": f.ALLOCATED, "LAUNCHED": f.LAUNCH, "RUNNING": f.RUNNING}
_AT_ONCE = len(MARKS)
_LONGEST_REASON = 2000
_PREEMPTED_EXIT, _PREEMPTED_WORDS = -102, "Container preempted by scheduler"
_OVER = frozenset({"FINAL_SAVING", "FINISHED", "FAILED", "KILLED"})
_FINISHED = {
    "Application Finished - Succeeded": "FINISHED",
    "Application Finished - Failed": "FAILED",
    "Application Finished - Killed": "KILLED",
}


class _Reader:
    """Reads the records of one log into facts."""

    def __init__(self, sink: Sink) -> None:
        self.facts = f.Facts(sink)
        self.machines: dict[str, Machine] = {}
        self.happenings = Happenings(sink)
        self.shares: dict[str, dict[str, float]] = {"Capacity": {}, "MaxCapacity": {}, "bound": {}}
        self._takes = tuple(_TAKES.values())

    def take(self, hit: Hit) -> None:
        if self.facts.many:
            self.facts.flush()
        self._takes[hit.kind](self, hit)

    def transition(self, hit: Hit) -> None:
        words = _matched(_TRANSITION, hit, "Container Transitioned")
        to = words[3]
        if to not in _CONTAINER_STATES:
            raise RowError("an unknown YARN container state (line cut off?)")
        if container_id(words[1]) is None:
            raise RowError(f.NO_ID)
        if to not in _CONTAINER_TIMES and to not in _CONTAINER_ENDS:
            return
        row = self.facts.row("state", words[1])
        if to in _CONTAINER_TIMES:
            f.earliest(row, _CONTAINER_TIMES[to], hit.millis)
        else:
            f.earliest(row, f.END, hit.millis)
            f.least(row, f.STATE, to)

    def change(self, hit: Hit) -> None:
        words = _matched(_CHANGE, hit, "State change")
        entity, before, to, event = words.groups()
        application = entity.startswith("application_")
        if to not in (f.APP_STATES if application else f.ATTEMPT_STATES):
            raise RowError("an unknown YARN state (line cut off?)")
        row = self.facts.row("state", entity)
        f.advance(row, to)
        if event == "RECOVER":  # after a restart: the times were those of an earlier life
            return
        if to in _OVER:
            f.earliest(row, f.END, hit.millis)
        if application and before == "NEW":
            f.earliest(row, f.SUBMIT, hit.millis)
        elif not application and to in _ATTEMPT_TIMES:
            f.earliest(row, _ATTEMPT_TIMES[to], hit.millis)

    def assigned(self, hit: Hit) -> None:
        found = _ASSIGNED.match(hit.text)
        size = read_resource(hit.text, found.end()) if found else None
        on = _ON_HOST.match(hit.text, size[1]) if size else None
        if found is None or size is None or on is None:
            raise RowError("not Assigned container ID of capacity <...> on host HOST, which has N containers")
        used = read_resource(hit.text, on.end())
        free = read_resource(hit.text, used[1] + len(" used and ")) if used else None
        self._container("state", found[1], on[1], size[0])
        machine = f.host(on[1])
        if machine is not None and used is not None and free is not None:
            both = zip(used[0], free[0], strict=True)
            self._machine(machine, Resource(*(a + b for a, b in both)))  # type: ignore[arg-type]

    def assigned_leaf(self, hit: Hit) -> None:
        found = _CONTAINER.search(hit.text)
        if found is None:
            if "container=null" in hit.text:
                return
            raise RowError("assignedContainer without ContainerId, NodeId and Resource")
        size = read_resource(hit.text, found.end())
        self._container("state", found[1], found[2], size[0] if size else None)

    def token(self, hit: Hit) -> None:
        found = _matched(_NM_TOKEN, hit, "Sending NMToken")
        self._container("state", found[2], found[1], None)

    def master(self, hit: Hit) -> None:
        found = _CONTAINER.search(hit.text)
        if found is None:
            return  # an unmanaged application has no master container
        size = read_resource(hit.text, found.end())
        self._container("state", found[1], found[2], size[0] if size else None)
        self.facts.row("state", found[1])[f.IS_MASTER] = True

    def accepted(self, hit: Hit) -> None:
        found = _matched(_ACCEPTED, hit, "Accepted application")
        row = self.facts.row("state", found[1])
        f.least(row, f.USER, found[2])
        f.least(row, f.QUEUE, found[3])

    def attempt_end(self, hit: Hit) -> None:
        found = _matched(_ATTEMPT_END, hit, "Updating application attempt")
        code = int(found[3])
        if code != -1000:  # YARN's word for: not known
            f.least(self.facts.row("state", found[1]), f.EXIT_CODE, code)

    def launch(self, hit: Hit) -> None:
        found = _matched(_LAUNCH, hit, "update the launch time")
        f.earliest(self.facts.row("epoch", found[1]), f.LAUNCH, f.epoch_millis(int(found[2])))

    def registered(self, hit: Hit) -> None:
        found = _REGISTERED.match(hit.text)
        size = read_resource(hit.text, found.end()) if found else None
        if found is None or size is None:
            raise RowError("not NodeManager from node HOST(cmPort: ...) registered with capability: <...>")
        self._machine(found[1], size[0])

    def node(self, hit: Hit) -> None:
        words = _matched(_NODE, hit, "Node Transitioned")
        name = f.host(words[1])
        if name is None or words[3] not in NODE_STATES:
            raise RowError("not HOST:PORT Node Transitioned to a state that YARN has (line cut off?)")
        self.happenings.went(name, words[3], hit.millis)

    def ailing(self, hit: Hit) -> None:
        found = _AILING.fullmatch(hit.text)
        name = f.host(found[1]) if found else None
        if found is not None and name is not None and found[2].strip():
            self.happenings.ails(name, found[2].strip()[:_LONGEST_REASON], hit.millis)

    def active(self, hit: Hit) -> None:
        self.happenings.active(hit.millis)

    def preempted(self, hit: Hit) -> None:
        row = self.facts.row("state", _matched(_PREEMPTED, hit, "container preempted")[1])
        f.least(row, f.EXIT_CODE, _PREEMPTED_EXIT)
        f.least(row, f.REASON, _PREEMPTED_WORDS)

    def queue(self, hit: Hit) -> None:
        """A leaf queue of the Capacity Scheduler; other records begin with the same word, without shares below."""
        found, shares = _QUEUE.fullmatch(hit.text), dict(_SHARES.findall(hit.more))
        if found is None or "Capacity" not in shares:
            return
        for name, share in shares.items():
            self._share(name, found[1], share)

    def leaf(self, hit: Hit) -> None:
        """Hadoop 3 logs the shares of a leaf queue repeatedly; its maximum is a share of its parent's."""
        if " update max app related" not in hit.text:
            return
        _, queue, absolute, _, most = _matched(_LEAF, hit, "LeafQueue").group(0, 1, 2, 3, 4)
        self._share("Capacity", queue, absolute)
        self._share("bound", queue, most)

    def _share(self, name: str, queue: str, text: str) -> None:
        share, known = float(text), self.shares[name]
        if 0 < share <= 1:
            known[queue] = max(known.get(queue, 0), share)

    def audit(self, hit: Hit) -> None:
        fields = read_audit(hit.text)
        operation, job = fields.get("OPERATION"), fields.get("APPID")
        if operation is None or "RESULT" not in fields:
            raise RowError("audit line without OPERATION and RESULT (line cut off?)")
        if operation in _FINISHED and job is not None:
            row = self.facts.row("audit", job)
            f.advance(row, _FINISHED[operation])
            f.earliest(row, f.END, hit.millis)
            if operation.endswith("Failed"):
                f.least(row, f.REASON, fields.get("PERMISSIONS"))
        elif fields["RESULT"] == "SUCCESS" and operation == "Submit Application Request" and job is not None:
            row = self.facts.row("audit", job)
            f.earliest(row, f.SUBMIT, hit.millis)
            f.least(row, f.USER, fields.get("USER"))
            f.least(row, f.QUEUE, fields.get("QUEUENAME"))
        elif fields["RESULT"] == "SUCCESS" and operation.endswith(("Allocated Container", "Released Container")):
            self._audited_container(fields, operation, hit.millis)

    def _audited_container(self, fields: dict[str, str], operation: str, millis: int) -> None:
        row = self.facts.row("audit", fields.get("CONTAINERID", ""))
        f.earliest(row, f.ALLOCATED if "Allocated" in operation else f.END, millis)
        size = read_resource(fields.get("RESOURCE", ""))
        if size is not None:
            _size(row, size[0])

    def summary(self, hit: Hit) -> None:
        take_summary(self.facts, read_summary(hit.text))

    def _container(self, origin: str, container: str, address: str, size: Resource | None) -> None:
        row = self.facts.row(origin, container)
        f.least(row, f.MACHINE, f.host(address))
        if size is not None:
            _size(row, size)

    def _machine(self, name: str, offer: Resource) -> None:
        self.machines.setdefault(name, Machine()).offers(*offer)


_QUEUE_MARK = b"Initializing "
_TAKES: dict[bytes, Callable[[_Reader, Hit], None]] = {
    **dict(
        zip(
            MARKS,
            (_Reader.transition, _Reader.change, _Reader.assigned, _Reader.audit, _Reader.token),
            strict=True,
        )
    ),
    b"appId=": _Reader.summary,
    b"assignedContainer application=": _Reader.assigned_leaf,
    b"Storing attempt: ": _Reader.master,
    b"Accepted application ": _Reader.accepted,
    b"Updating application attempt ": _Reader.attempt_end,
    b"update the launch time for ": _Reader.launch,
    b"NodeManager from node ": _Reader.registered,
    b"\t Node Transitioned from ": _Reader.node,
    b"Node ": _Reader.ailing,
    _QUEUE_MARK: _Reader.queue,
    b"LeafQueue: ": _Reader.leaf,
    b"Transitioning to active state": _Reader.active,
    b"Non-AM container preempted, ": _Reader.preempted,
    b"AM container preempted, ": _Reader.preempted,
}


def _matched(pattern: re.Pattern[str], hit: Hit, what: str) -> re.Match[str]:
    found = pattern.fullmatch(hit.text)
    if found is None:
        raise RowError(f"{what} line that does not continue as expected (line cut off, or two in one?)")
    return found


def _size(row: f.Row, size: Resource) -> None:
    f.least(row, f.MEM, size.mem_mb)
    f.least(row, f.CPUS, size.cpus)
    f.least(row, f.GPUS, size.gpus)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a ResourceManager's log into facts, and make jobs, attempts, containers and placements of all facts so far.

    What is read: state changes of applications and attempts, transitions and assignments of containers, audit lines,
    ApplicationSummary lines, launch times, exit codes of attempts, preemptions, what NodeManagers register with, the
    states that they go into, and what shares of all the leaf queues of the Capacity Scheduler have.
    """
    reader = _Reader(sink)
    bulk = Bulk(sink, reader.machines)
    marks = tuple(_TAKES)
    queues = frozenset({marks.index(_QUEUE_MARK)})
    zoned = read_records(stream, sink, marks, reader.take, take_many=bulk.take, many=_AT_ONCE, with_more=queues)
    bulk.flush()
    reader.facts.flush()
    reader.happenings.flush()
    sink.after(add_machines, reader.machines)
    if zoned:
        sink.after(keep_utc)
    note_shares(sink, reader.shares["Capacity"], "log_capacity")
    note_shares(sink, reader.shares["MaxCapacity"], "log_limit")
    note_shares(sink, reader.shares["bound"], "log_bound")


def sniff(name: str, head: bytes) -> str | None:
    """Recognise dated records of loggers of the ResourceManager."""
    return "records of a ResourceManager" if daemon_of(head) == "resourcemanager" else None


FORMAT = Format(
    name="yarn-rm-log",
    title="YARN: log of a ResourceManager, with audit and summary lines",
    fills=("jobs", "attempts", "containers", "placements", "machines", "machine_events", "queues"),
    file_names=("yarn-*-resourcemanager-*.log", "hadoop-*-resourcemanager-*.log"),
    order=20,
    parser_version=5,
    sniff=sniff,
    load=load,
    alone=True,
    settle=refresh,
)
