"""The log of a YARN NodeManager: which containers ran on its node, from when to when, and how they ended.

A row of the ledger is one log record, as in `gpuctl.ingest.formats.yarn_rm_log`. The node is the one that the
NodeManager registered as, in this file; one that has no registration in it shows the times and exit codes alone.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.yarn import facts as f
from gpuctl.ingest.yarn.audit import read_audit
from gpuctl.ingest.yarn.clock import keep_utc
from gpuctl.ingest.yarn.lines import Hit, read_records
from gpuctl.ingest.yarn.machines import Machine, add_machines
from gpuctl.ingest.yarn.merge import refresh
from gpuctl.ingest.yarn.resources import read_resource
from gpuctl.ingest.yarn.sniffing import daemon_of

if TYPE_CHECKING:
    from collections.abc import Callable

_TRANSITION = re.compile(r"Container (container_\w+) transitioned from ([A-Z_]+) to ([A-Z_]+)")
_EXIT = re.compile(r"Exit code from container (container_\w+) is ?: (-?\d{1,9})")
_REGISTERED = re.compile(r"Registered with ResourceManager as (\S+) with total resource of (?=<)")
_SUCCEEDED = re.compile(r"Container (container_\w+) succeeded ?")
_OTHER = re.compile(r"Container (?!container_\w+ (?:transitioned|succeeded))")
_GONE = frozenset(
    {
        *(
            "EXITED_WITH_SUCCESS",
            "EXITED_WITH_FAILURE",
            "CONTAINER_CLEANEDUP_AFTER_KILL",
            "KILLED_BY_CONTAINER_SCHEDULER",
        ),
        *("LOCALIZATION_FAILED", "DONE"),
    }
)


class _Reader:
    """Reads the records of one log into facts."""

    def __init__(self, sink: Sink) -> None:
        self.facts = f.Facts(sink)
        self.machines: dict[str, Machine] = {}
        self._machine: str | None = None
        self._homeless: set[str] = set()
        self._takes = tuple(_TAKES.values())

    def take(self, hit: Hit) -> None:
        if self.facts.many:
            self.facts.flush()
        self._takes[hit.kind](self, hit)

    def container(self, hit: Hit) -> None:
        if _OTHER.match(hit.text):
            return
        succeeded = _SUCCEEDED.fullmatch(hit.text)
        if succeeded is not None:
            f.least(self._row(succeeded[1]), f.EXIT_CODE, 0)
            return
        found = _TRANSITION.fullmatch(hit.text)
        if found is None:
            raise RowError("not Container ID transitioned from STATE to STATE (line cut off, or two in one?)")
        row, to = self._row(found[1]), found[3]
        if to == "RUNNING":
            f.earliest(row, f.RUNNING, hit.millis)
        elif to in _GONE:
            f.earliest(row, f.END, hit.millis)

    def exited(self, hit: Hit) -> None:
        found = _EXIT.fullmatch(hit.text)
        if found is None:
            raise RowError("not Exit code from container ID is : N")
        f.least(self._row(found[1]), f.EXIT_CODE, int(found[2]))

    def registered(self, hit: Hit) -> None:
        found = _REGISTERED.match(hit.text)
        size = read_resource(hit.text, found.end()) if found else None
        name = f.host(found[1]) if found else None
        if name is None or size is None:
            raise RowError("not Registered with ResourceManager as HOST:PORT with total resource of <...>")
        self._machine = name
        self.machines.setdefault(name, Machine()).offers(*size[0])

    def audit(self, hit: Hit) -> None:
        fields = read_audit(hit.text)
        if "OPERATION" not in fields or "RESULT" not in fields:
            raise RowError("audit line without OPERATION and RESULT (line cut off?)")
        if fields["OPERATION"] == "Start Container Request" and fields["RESULT"] == "SUCCESS":
            row = self._row(fields.get("CONTAINERID", ""))
            f.earliest(row, f.ALLOCATED, hit.millis)

    def _row(self, container: str) -> f.Row:
        row = self.facts.row("nm", container)
        if self._machine is None:
            self._homeless.add(container)
        f.least(row, f.MACHINE, self._machine)
        return row

    def place(self) -> int:
        """Give the containers of before the first registration their node; returns how many are left without one."""
        if len(self.machines) == 1:
            for container in self._homeless:
                f.least(self.facts.row("nm", container), f.MACHINE, self._machine)
            self._homeless.clear()
        return len(self._homeless)


_TAKES: dict[bytes, Callable[[_Reader, Hit], None]] = {
    b"Container container_": _Reader.container,
    b"Exit code from container ": _Reader.exited,
    b"Registered with ResourceManager as ": _Reader.registered,
    b"USER=": _Reader.audit,
}


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a NodeManager's log into facts, and make jobs, attempts, containers and placements of all facts so far.

    A container's start request stands for its allocation if no log of the ResourceManager shows that.
    """
    reader = _Reader(sink)
    zoned = read_records(stream, sink, tuple(_TAKES), reader.take)
    homeless = reader.place()
    reader.facts.flush()
    if homeless:
        logging.getLogger(__name__).warning(
            "%d containers of a NodeManager's log that does not state its node (its start is in another "
            "file): their nodes are known only if another source states them",
            homeless,
        )
    sink.after(add_machines, reader.machines)
    if zoned:
        sink.after(keep_utc)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise dated records of loggers of a NodeManager."""
    return "records of a NodeManager" if daemon_of(head) == "nodemanager" else None


FORMAT = Format(
    name="yarn-nm-log",
    title="YARN: log of a NodeManager",
    fills=("jobs", "attempts", "containers", "placements", "machines"),
    file_names=("yarn-*-nodemanager-*.log", "hadoop-*-nodemanager-*.log"),
    order=20,
    parser_version=3,
    sniff=sniff,
    load=load,
    alone=True,
    settle=refresh,
)
