"""``scontrol show job -d``, with or without ``-o``: which GPUs of which node a running job has.

Accounting shows only how many GPUs a job has on all of its nodes together. A row of the ledger is one job record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.durations import slurm_elapsed
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.job_gpus import stated_gpus
from gpuctl.ingest.slurm.site.machines import Rows
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.gres import Gpus, read_gres
from gpuctl.slurm.scontrol import fields, name_of, records
from gpuctl.slurm.timestamps import LocalClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_START = b"JobId="
_SHAPE = re.compile(rb"^JobId=\d+ (?:ArrayJobId=.*? |HetJobId=.*? )?\s*JobName=.*?\sUserId=", re.DOTALL)
_HEAD = re.compile(r"JobId=(\d{1,10})\s")
# the job's name may hold anything; what follows it does not begin before its owner
_AFTER_NAME = re.compile(r"\sUserId=[^\s()]+\(\d+\)\s")
_NODES = re.compile(r"(?:^|\s)Nodes=(\S+) CPU_IDs=(\S*) Mem=\d+ (GRES|GRES_IDX)=(\S*)")
_GOES_ON = frozenset({"RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED"})
_GRES_END = re.compile(r"\sMinCPUsNode=")
KINDS = {
    **{"job": "text", "submit_ts": "s", "start_ts": "s"},
    **{"machine": "text", "gpus": "real", "gpu_indices": "wholes"},
}
"""The columns of ``exact_placements`` that are filled, and their kinds (`gpuctl.ingest.slurm.site.machines.Rows`)."""


class Detail(NamedTuple):
    """The GPUs of one job: times in seconds since the epoch, what it has on each node, and what it has in all."""

    job: str
    submit: int | None
    start: int | None
    machines: dict[str, Gpus]
    gpus: float | None = None

    def rows(self) -> Iterator[tuple[str | int | float | tuple[int, ...] | None, ...]]:
        """Rows of ``exact_placements``: one per node, or the total if the record states no node's GPUs."""
        for machine, held in self.machines.items():
            yield *self[:3], machine, float(held.gpus), held.indices
        if not self.machines and self.gpus is not None:
            yield *self[:3], None, self.gpus, None


def read_detail(text: str, clock: LocalClock) -> Detail:
    """Read one record; ``machines`` is empty if it has no GPUs by node (ended and pending jobs, jobs without GPUs).

    Raises:
        RowError: it is not a job record, or a time, host list or GPU index cannot be read.
    """
    head, after = _HEAD.match(text), _AFTER_NAME.search(text)
    if head is None or after is None:
        raise RowError("no job record: expected JobId=, JobName=, UserId=")
    rest = text[after.start() :]
    found = fields(rest)
    try:
        submit, start = clock.read_or_none(found.get("SubmitTime", "")), _start_reading(found, clock)
        machines = _machines(_gres_part(rest))
    except ValueError as bad:
        raise RowError(str(bad)) from None
    return Detail(
        head[1], submit, start, machines if any(g.gpus for g in machines.values()) else {}, stated_gpus(found)
    )


def _start_reading(found: Mapping[str, str], clock: LocalClock) -> int | None:
    """The start; in an hour that the clock showed twice, the reading that fits the times that the record states.

    Until a job ends, its EndTime is its start and its TimeLimit, thereafter its start and its RunTime. If neither
    states which reading is right, it is the first one.
    """
    start = clock.read_or_none(found.get("StartTime", ""))
    readings = clock.readings(found.get("StartTime", ""))
    if start is None or len(readings) < 2:
        return start
    lasted = slurm_elapsed(found.get("RunTime" if found.get("JobState", "") not in _GOES_ON else "TimeLimit", ""))
    ends = clock.readings(found.get("EndTime", ""))
    return next((begin for begin in readings for end in ends if lasted == end - begin), start)


def _gres_part(text: str) -> str:
    end = _GRES_END.search(text)
    return text[: end.start()] if end else text


def _machines(text: str) -> dict[str, Gpus]:
    """GPUs by node; nodes of one group have the same number, and the same indices."""
    found: dict[str, Gpus] = {}
    for group in _NODES.finditer(text):
        gpus = read_gres(group[4])
        for machine in hosts(group[1]):
            found[name_of(machine, "node name")] = gpus
    return found


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``exact_placements`` and put them in the place of estimates of the same attempts (`reconcile`).

    Of a job without GPUs by node its total is stored, if stated. Records that state neither are counted as loaded, and
    so are those that repeat another one of the file (samples over time), which are stored once; of every record 100
    bytes or so are held in memory.
    """
    clock, rows = LocalClock(sink.timezone), Rows(sink, "exact_placements", KINDS)
    written: set[int] = set()
    for record in records(stream, _START):
        sink.seen()
        try:
            if record.fault:
                raise RowError(record.fault)
            detail = read_detail(record.text, clock)
        except RowError as bad:
            sink.reject(record.line_no, str(bad), record.text)
            continue
        sink.loaded()
        held = tuple(detail.rows())
        digest = hash(held)
        if held and digest not in written:
            written.add(digest)
            for row in held:
                rows.add(*row)
    rows.flush()
    reconcile(sink)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise records that begin with JobId= and JobName=."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    # job completion files have JobId= and UserId= as well, but no state of a living job
    if _SHAPE.match(text) and (b" JobState=" in text or b"\n   JobState=" in text) and b"SubmitTime=" in text:
        return "JobId= records of scontrol" if b"MCS_label=" in text or b"AllocNode:Sid=" in text else None
    return None


FORMAT = Format(
    name="slurm-job-detail",
    title="Slurm: which GPUs a job has (scontrol show job -d, with or without -o)",
    fills=("exact_placements", "placements", "field_sources"),
    file_names=("scontrol_job_detail.txt",),
    order=60,
    parser_version=3,
    sniff=sniff,
    load=load,
)
