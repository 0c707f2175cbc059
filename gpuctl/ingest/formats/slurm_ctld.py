"""``slurmctld.log``: what the controller did to jobs and nodes, to the millisecond.

It shows what accounting does not: when a job got its nodes if they had to boot first, which job it was preempted
for, which node failed under it. A row of the ledger is one line; blank lines do not count. Lines about
anything else are counted as loaded; those without a time (``LogTimeFormat`` is iso8601_ms, the default, iso8601, or
rfc5424 with either) are rejected.
"""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO
from zoneinfo import ZoneInfo

from gpuctl.core.line_reader import CUT_OFF, LINE_LIMIT, LINE_TOO_LONG, RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import BATCH_ROWS, Rows
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.timestamps import LocalClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

_CHUNK = 1 << 20
_ALLOCATED = "allocated"
_STAMP = rb"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)?\]"
_STAMPED = re.compile(rb"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\]\n]{0,13}\][^\n]*$", re.MULTILINE)
_JOB = rb"Job(?:Id|ID)=(?:\d+[_+](?:\d+|\[[^\]\n]*\])\((\d+)\)|(\d+)(?:[_+](?:\d+|\[[^\]\n]*\]|\*))?)"
_PREFIX = rb"(?:\[[^\]\n]*\] )?(?:(?:error|debug|debug2|verbose|info): )?"
_HEAD = re.compile(_STAMP + rb" " + _PREFIX)
# what a line holds -> what it may show; the words are looked for first, all of them in one pass over a piece of the log
_JOB_LINES = {
    b"Allocate J": (_ALLOCATED, rb"sched: Allocate %s NodeList=(\S+)"),
    b": Started J": (_ALLOCATED, rb"(?:sched/)?backfill: (?:_start_job: )?Started %s (?:in \S+ )?on (\S+)"),
    b"_allocate_resources J": (_ALLOCATED, rb"sched: _slurm_rpc_allocate_resources %s NodeList=(?!\(null\))(\S+)"),
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
_WORDS = list(_LINES)
_EVENTS = [events[0][0] for events in _LINES.values()]
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
_EPOCH = datetime(1970, 1, 1)
_SPAN = 600_000
_ID = re.compile(r"\d+[_+](?:\d+|\[.*\])\((\d+)\)|(\d+)")


@dataclass
class _Log:
    """What the lines read so far state and is needed for later ones."""

    sink: Sink
    clock: LocalClock
    events: Rows
    downs: Rows
    allocated: dict[str, int] = field(default_factory=dict)
    down: dict[str, tuple[int, str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    second: tuple[bytes, int] = (b"", 0)
    plain: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    plain_rows: int = 0

    def __post_init__(self) -> None:
        """Look up the zone."""
        self.zone = ZoneInfo(self.sink.timezone)

    def take(self, line: bytes, hint: bytes) -> None:
        """Take in one stamped line that holds one of the hints.

        Raises:
            RowError: it describes a job or a node, and its time or a name cannot be read.
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
        if event == _ALLOCATED:
            self._allocate(job, ts)
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

    def _allocate(self, job: str, ts: int) -> None:
        if len(self.allocated) >= _MOST_OPEN:
            self.allocated.pop(next(iter(self.allocated)))
        self.allocated[job] = ts

    def happened(self, job: str, ts: int, *, allocated: bool) -> None:
        """Remember that a job got its nodes, or forget it, because it is done (`ts` in ms since the epoch)."""
        if allocated:
            self._allocate(job, ts)
        else:
            self.allocated.pop(job, None)

    def instants(self, local: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Convert times on the log's own clock.

        The clock is set at full ten minutes, so all times between two of them are identified by one.

        Args:
            local: ms since 1970 on that clock.
            wanted: which of them count.

        Returns:
            ms since the epoch, and which of those wanted are identified by the time alone: not those that the clock
            shows twice or never.
        """
        import numpy as np

        spans, which = np.unique(np.where(wanted, local // _SPAN, 0), return_inverse=True)
        shifts = [self._shift(span * _SPAN) for span in spans.tolist()]
        added = np.array([shift or 0 for shift in shifts], np.int64)
        sure = np.array([shift is not None for shift in shifts], bool)
        return local + added[which], wanted & sure[which]

    def _shift(self, local: int) -> int | None:
        ends = [_EPOCH + timedelta(milliseconds=local + late) for late in (0, _SPAN - 1)]
        offsets = {end.replace(tzinfo=self.zone, fold=fold).utcoffset() for end in ends for fold in (0, 1)}
        offset = offsets.pop()
        return None if offsets or offset is None else -round(offset.total_seconds() * 1000)

    def keep(self, hits: np.ndarray, instants: np.ndarray) -> None:
        """Take in the events of a number of lines at once: numbers of their hints and jobs, ms since the epoch."""
        self.plain.append((hits[0], hits[1], instants))
        self.plain_rows += instants.size
        if self.plain_rows >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Insert what `keep` has taken in."""
        import numpy as np
        import polars as pl

        if not self.plain_rows:
            return
        hints, jobs, instants = (np.concatenate(part) for part in zip(*self.plain, strict=True))
        self.plain, self.plain_rows = [], 0
        rows = pl.DataFrame({"job": pl.Series(jobs).cast(pl.String), "ts": instants, "hint": hints})
        self.sink.insert(
            "job_events",
            rows.select(
                *(pl.lit(self.sink.cluster).alias("cluster"), pl.lit(self.sink.source, pl.Int32).alias("source")),
                "job",
                pl.col("ts").cast(pl.Datetime("ms", "UTC")),
                pl.col("hint").replace_strict(dict(enumerate(_EVENTS)), return_dtype=pl.String).alias("event"),
            ),
        )

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
        """Write what is left; nodes that did not come back are down until the end of what is known."""
        for node, (since, state) in self.down.items():
            self.downs.add(node, since, None, state, self.reasons.get(node))
        self.flush()
        self.events.flush()
        self.downs.flush()


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``job_events`` and ``machine_events``, and join them with the attempts in accounting.

    Events of jobs: held, released, allocated, configured (``since_ts``: when its nodes were allocated, because they had
    to boot), start_reset, preempted (``other_job``: for whom), node_fail (``machine``), requeued, time_limit,
    out_of_memory, completed. A node is down from the line that sets it down, drains or fails it to the one that states
    it is back.

    Args:
        stream: the decompressed log.
        sink: where the rows go; its ``timezone`` is that of stamps without an offset.
    """
    events, downs = Rows(sink, "job_events", _EVENT_KINDS), Rows(sink, "machine_events", _DOWN_KINDS)
    log = _Log(sink, LocalClock(sink.timezone, in_order=True), events, downs)
    for line_no, block, fault, found in _scanned(stream):
        if fault is not None:
            sink.seen()
            sink.reject(line_no, fault, block)
        else:
            _block(line_no, block, found, log)
    log.finish()
    reconcile(sink)


def _scanned(stream: BinaryIO) -> Iterator[tuple[int, bytes, str | None, tuple[np.ndarray, np.ndarray, int, int]]]:
    """Yield pieces of the log with what the scanner found in them; the next one is read and scanned meanwhile."""
    import numpy as np

    from gpuctl.compiled.jit import is_compiled
    from gpuctl.ingest.slurm import ctld_kernel as kernel

    if not is_compiled(kernel.scan):
        logging.getLogger(__name__).warning("compiling the log reader; only the first run on a node does")
    hints, ends = kernel.table(_WORDS)
    blocks = _blocks(stream)

    def one() -> tuple[int, bytes, str | None, tuple[np.ndarray, np.ndarray, int, int]] | None:
        block = next(blocks, None)
        return block and (*block, kernel.scan(np.frombuffer(block[1], np.uint8), hints, ends))

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(one)
        while (block := coming.result()) is not None:
            coming = pool.submit(one)
            yield block


def _block(line_no: int, block: bytes, found: tuple[np.ndarray, np.ndarray, int, int], log: _Log) -> None:
    """Take in whole lines: those without a time are rejected, those with a hint are looked at one by one."""
    sink = log.sink
    hits, bad, lines, blanks = found
    sink.seen(lines - blanks)
    for number, start, end in bad.T.tolist():
        sink.reject(line_no + number, "no time in brackets at the start of the line", block[start:end])
    faults = bad.shape[1]
    instants, plain = log.instants(hits[5], hits[4] >= 0)
    rows = zip(*hits[:5].tolist(), instants.tolist(), plain.tolist(), strict=True)
    for number, start, end, hint, job, ts, is_plain in rows:
        if is_plain:
            log.happened(str(job), ts, allocated=_EVENTS[hint] == _ALLOCATED)
            continue
        line = block[start:end].rstrip(b"\r")
        try:
            log.take(line, _WORDS[hint])
        except RowError as fault:
            faults += 1
            sink.reject(line_no + number, str(fault), line)
    log.keep(hits[3:5, plain], instants[plain])
    sink.loaded(lines - blanks - faults)


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
    sniff=sniff,
    load=load,
)
