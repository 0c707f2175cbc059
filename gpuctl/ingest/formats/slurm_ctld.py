"""``slurmctld.log``: what the controller did to jobs and machines, to the millisecond.

It tells what accounting does not: when a job got its machines where they had to boot first, which job it was preempted
for, which machine failed under it. A row of the ledger is one line; blank lines are none. Lines about
anything else are counted as loaded; those without a time (``LogTimeFormat`` is iso8601_ms, the default, iso8601, or
rfc5424 with either) are rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.base import Format, Sink
from gpuctl.ingest.lines import CUT_OFF, LINE_LIMIT, LINE_TOO_LONG, RowError
from gpuctl.ingest.slurmsite.conf import hosts
from gpuctl.ingest.slurmsite.machines import Rows
from gpuctl.ingest.slurmsite.reconcile import reconcile
from gpuctl.ingest.slurmsite.stamps import LocalClock

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 20
_STAMP = rb"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)?\]"
_STAMPED = re.compile(rb"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\]\n]{0,13}\][^\n]*$", re.MULTILINE)
_JOB = rb"Job(?:Id|ID)=(?:\d+[_+](?:\d+|\[[^\]\n]*\])\((\d+)\)|(\d+)(?:[_+](?:\d+|\[[^\]\n]*\]|\*))?)"
_PREFIX = rb"(?:\[[^\]\n]*\] )?(?:(?:error|debug|debug2|verbose|info): )?"
_HEAD = re.compile(_STAMP + rb" " + _PREFIX)
# what a line holds -> what it may tell; the words are looked for first, all of them in one pass over a piece of the log
_JOB_LINES = {
    b"Allocate J": ("allocated", rb"sched: Allocate %s NodeList=(\S+)"),
    b": Started J": ("allocated", rb"(?:sched/)?backfill: (?:_start_job: )?Started %s (?:in \S+ )?on (\S+)"),
    b"_allocate_resources J": ("allocated", rb"sched: _slurm_rpc_allocate_resources %s NodeList=(?!\(null\))(\S+)"),
    b"Configuration for J": ("configured", rb"(?:job_time_limit: )?Configuration for %s (?:is )?complete"),
    b"Resetting J": ("start_reset", rb"(?:\w+: )?Resetting %s start time for node power up"),
    b" to reclaim resources for J": (
        "preempted",
        rb"(?:slurm_job_preempt: )?preempted %s has been \w+ to reclaim resources for Job(?:Id|ID)=(\S+)",
    ),
    b" had to be killed": ("preempted", rb"(?:slurm_job_preempt: )?preempted %s had to be killed"),
    b"Requeuing J": ("requeued", rb"Requeuing %s(?:\s|$)"),
    b": requeue J": ("requeued", rb"_job_complete: requeue %s per user/system request"),
    b"requeue job J": ("node_fail", rb"requeue job %s due to failure of node (\S+)"),
    b"Killing J": ("node_fail", rb"Killing %s on failed node (\S+)"),
    b" done": ("completed", rb"_?job_complete: %s done"),
    b"Time limit exhausted for J": ("time_limit", rb"Time limit exhausted for %s"),
    b" OOM failure": ("out_of_memory", rb"_?job_complete: %s OOM failure"),
    b"_hold_job_rec: ": ("held", rb"sched: _hold_job_rec: hold on %s by"),
    b"_release_job_rec: ": ("released", rb"sched: _release_job_rec: release hold on %s by"),
}
_MACHINE_LINES = {
    b" state set to ": (
        ("up", rb"update_node: node (\S+) state set to (?:IDLE|RESUME|UNDRAIN)"),
        ("down", rb"update_node: node (\S+) state set to (DOWN|DRAINING|DRAINED|DRAIN|FAILING|FAIL|POWER_DOWN\w*)"),
        ("down", rb"drain_nodes: node (\S+) state set to (DRAIN)"),
    ),
    b" state to ": (("down", rb"Setting node (\S+) state to (DRAIN|DOWN|INVAL)\b"),),
    b", setting DOWN": (("down", rb"[Nn]odes? (\S+) not responding, setting (DOWN)"),),
    b" returned to service": (("up", rb"(?:node_did_resp: )?[Nn]ode (\S+) returned to service"),),
    b" reason set to: ": (("reason", rb"update_node: node (\S+) reason set to: ([^\r\n]*)"),),
}
_LINES = {
    **{hint: ((event, re.compile(what % _JOB)),) for hint, (event, what) in _JOB_LINES.items()},
    **{hint: tuple((k, re.compile(what)) for k, what in whats) for hint, whats in _MACHINE_LINES.items()},
}
_HINTS = re.compile(b"|".join(re.escape(hint) for hint in _LINES))
_OWN = re.compile(
    rb"^" + _STAMP + rb" " + _PREFIX + rb"(?:slurmctld version |sched: Allocate Job|sched/backfill: |backfill: Started|"
    rb"_slurm_rpc_submit_batch|_slurm_rpc_kill_job|_?job_complete: Job|cleanup_completing: Job|"
    rb"Running as primary controller|SchedulerParameters=|update_node: node |node_did_resp: )",
    re.MULTILINE,
)
_EVENT_KINDS = {
    **{"job": "text", "ts": "ms", "event": "text", "since_ts": "ms"},
    **{"other_job": "text", "machine": "text"},
}
_DOWN_KINDS = {"machine": "text", "from_ts": "ms", "to_ts": "ms", "state": "text", "reason": "text"}
_MOST_OPEN = 2_000_000
_MOST_REASON = 1000
_ID = re.compile(r"\d+[_+](?:\d+|\[.*\])\((\d+)\)|(\d+)")


@dataclass
class _Log:
    """What the lines so far have said and is needed for later ones."""

    sink: Sink
    clock: LocalClock
    events: Rows
    downs: Rows
    allocated: dict[str, int] = field(default_factory=dict)
    down: dict[str, tuple[int, str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    second: tuple[bytes, int] = (b"", 0)

    def take(self, line: bytes, hint: bytes) -> None:
        """Take in one stamped line that holds one of the hints.

        Raises:
            RowError: it tells of a job or a machine, and its time or a name cannot be read.
        """
        head = _HEAD.match(line)
        if head is None:
            return
        for event, pattern in _LINES[hint]:
            found = pattern.match(line, head.end())
            if found is None:
                continue
            if hint in _JOB_LINES:
                self._job(event, found, self._ms(head))
            else:
                self._machines(event, found, self._ms(head))
            return

    def _job(self, event: str, found: re.Match[bytes], ts: int) -> None:
        job = (found[1] or found[2]).decode("ascii")
        rest = found[3].decode("utf-8", "replace") if found.re.groups > 2 else ""
        since, other, machine = None, None, None
        if event == "allocated":
            if len(self.allocated) >= _MOST_OPEN:
                self.allocated.pop(next(iter(self.allocated)))
            self.allocated[job] = ts
        elif event in {"configured", "start_reset"}:
            since = self.allocated.get(job)
        elif event == "preempted":
            match = _ID.match(rest)
            other = (match[1] or match[2]) if match else None
        elif event == "node_fail":
            machine = rest
        else:
            self.allocated.pop(job, None)
        self.events.add(job, ts, event, since, other, machine)

    def _machines(self, event: str, found: re.Match[bytes], ts: int) -> None:
        for node in hosts(found[1].decode("utf-8", "replace").rstrip(",")):
            if event == "reason":
                self.reasons[node] = found[2].decode("utf-8", "replace")[:_MOST_REASON]
                continue
            since = self.down.pop(node, None)
            if since is not None:
                reason = self.reasons.get(node) if event == "down" else self.reasons.pop(node, None)
                self.downs.add(node, since[0], max(ts, since[0]), since[1], reason)
            if event == "down":
                self.down[node] = ts, found[2].decode("ascii")

    def _ms(self, head: re.Match[bytes]) -> int:
        text = head[1] + (head[3] or b"")
        if text != self.second[0]:
            try:
                self.second = text, self.clock.read(text.decode("ascii")) * 1000
            except ValueError as bad:
                raise RowError(str(bad)) from None
        return self.second[1] + int((head[2] or b"0").ljust(3, b"0")[:3])

    def finish(self) -> None:
        """Write what is left; machines that did not come back are down until the end of what is known."""
        for node, (since, state) in self.down.items():
            self.downs.add(node, since, None, state, self.reasons.get(node))
        self.events.flush()
        self.downs.flush()


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``job_events`` and ``machine_events``, and put them beside the attempts that accounting knows.

    Events of jobs: held, released, allocated, configured (``since_ts``: when its machines were allocated,
    for they had to boot), start_reset, preempted (``other_job``: for whom), node_fail (``machine``), requeued,
    time_limit, out_of_memory, completed. A machine is down from the line that sets it down, drains or fails it to
    the one that says it is back.

    Args:
        stream: the decompressed log.
        sink: where the rows go; its ``timezone`` is that of stamps without an offset.
    """
    events, downs = Rows(sink, "job_events", _EVENT_KINDS), Rows(sink, "machine_events", _DOWN_KINDS)
    log = _Log(sink, LocalClock(sink.timezone, in_order=True), events, downs)
    for line_no, block, fault in _blocks(stream):
        if fault is not None:
            sink.seen()
            sink.reject(line_no, fault, block)
        else:
            _block(line_no, block, log)
    log.finish()
    reconcile(sink)


def _block(line_no: int, block: bytes, log: _Log) -> None:
    """Take in whole lines: those without a time are rejected, those with a hint are looked at one by one."""
    sink = log.sink
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    good = len(_STAMPED.findall(block))
    bad: set[int] = set()
    blank = 0
    if good < lines:
        for number, line in enumerate(block.split(b"\n")[:lines]):
            if not line.strip():
                blank += 1
            elif not _STAMPED.fullmatch(line):
                bad.add(number)
                sink.seen()
                sink.reject(line_no + number, "no time in brackets at the start of the line", line)
    sink.seen(lines - blank - len(bad))
    faults = 0
    end = -1
    for hint in _HINTS.finditer(block):
        if hint.start() < end:
            continue
        start = block.rfind(b"\n", 0, hint.start()) + 1
        end = block.find(b"\n", hint.start())
        end = len(block) if end < 0 else end
        line = block[start:end].rstrip(b"\r")
        try:
            log.take(line, hint[0])
        except RowError as fault:
            faults += 1
            sink.reject(line_no + block.count(b"\n", 0, start), str(fault), line)
    sink.loaded(lines - blank - len(bad) - faults)


def _blocks(stream: BinaryIO) -> Iterator[tuple[int, bytes, str | None]]:
    """Yield pieces of whole lines, about 1 MiB each, with the number of their first line; a bad line comes alone."""
    rest, number, skipping = b"", 1, False
    while chunk := stream.read(_CHUNK):
        data, rest = rest + chunk, b""
        if skipping:
            # the middle of a line that has been rejected
            end = data.find(b"\n")
            if end < 0:
                continue
            data, skipping, number = data[end + 1 :], False, number + 1
        cut = data.rfind(b"\n") + 1
        whole, rest = data[:cut], data[cut:]
        if whole:
            yield number, whole, None
            number += whole.count(b"\n")
        if len(rest) > LINE_LIMIT:
            yield number, rest[:LINE_LIMIT], LINE_TOO_LONG
            rest, skipping = b"", True
    if rest:
        yield number, rest, CUT_OFF if getattr(stream, "truncated", False) else None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise stamped lines that only the controller writes."""
    del name
    if not _STAMPED.search(head):
        return None
    return "stamped lines of slurmctld" if _OWN.search(head) else None


FORMAT = Format(
    name="slurm-ctld",
    title="Slurm: the controller's log (slurmctld.log)",
    fills=("job_events", "machine_events"),
    file_names=("slurmctld.log",),
    order=55,
    timezone="UTC",
    clock="utc",
    parser_version=1,
    sniff=sniff,
    load=load,
)
