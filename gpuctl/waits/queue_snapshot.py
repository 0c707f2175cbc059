"""Queue and nodes at one instant, from ``squeue --json`` and ``sinfo --json``, as rows of a wait log."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.core.notes import NONE, NamedValue, Note, note, untrusted
from gpuctl.core.states import State
from gpuctl.ingest.slurm.json_fields import number
from gpuctl.ingest.slurm.site.state_json import job_id, node_fields, sinfo_nodes, text, words
from gpuctl.slurm.gres import read_gres
from gpuctl.slurm.tres import tres

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_BYTES = 256 << 20
_HINT = "expected what squeue --json --all --array prints"
_HOLDS = frozenset(("RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING"))
_ONLY_NODES = frozenset(("", "None", "Priority", "Resources", "NodesAvail", "Cleaning"))
"""Reasons of jobs that wait for nothing but nodes."""
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
MOST_TASKS = 100_000
_OFF = frozenset(
    ("DOWN", "MAINT", "MAINTENANCE", "UNKNOWN", "FUTURE", "DYNAMIC_FUTURE", "NOT_RESPONDING", "POWER_DRAIN")
)
"""Words of states of nodes that take no jobs, beside DRAIN… and FAIL…; those that only sleep take some."""
LATER = note("it is to begin later")
CLOCK_S = 60.0
"""Clocks that differ by more get a note."""


@dataclass(frozen=True)
class QueuedJob:
    """A waiting job.

    Attributes:
        job: its id.
        reason: why its wait cannot be forecast; `NONE`: it waits for nodes only.
        starts_s: Slurm's own estimate of its start, since 1970; None: none.
        priority: Slurm's priority; None: unknown.
        more: further tasks of an array, or parts of a heterogeneous job, that it represents.
        row: its row of `Snapshot.jobs`; None: it does not compete for resources.
    """

    job: str
    reason: Note
    starts_s: float | None
    priority: float | None
    more: int
    row: dict[str, Any] | None


@dataclass(frozen=True)
class Snapshot:
    """A queue at one instant; seconds since 1970, UTC.

    Attributes:
        taken_s: time of the snapshot.
        running: jobs that hold nodes, in the columns of `COLUMNS`.
        waiting: waiting jobs, in the order of the queue's list.
        dated: whether the queue states its time; if not, `taken_s` is the newest instant in it.
        gpus: GPUs of all nodes that are up; None: unknown.
        nodes: nodes that are up; None: unknown.
        cut: waiting arrays of which the queue lists only the first tasks.
    """

    taken_s: float
    running: tuple[dict[str, Any], ...]
    waiting: tuple[QueuedJob, ...]
    dated: bool
    gpus: float | None = None
    nodes: int | None = None
    cut: int = 0

    @property
    def jobs(self) -> pl.DataFrame:
        """Return all jobs that hold nodes or wait only for resources, tasks of arrays one by one."""
        found = list(self.running)
        for each in self.waiting:
            if each.row is not None:
                found.append(each.row)
                if each.row["array_job"] is not None:
                    found += [{**each.row, "job": f"{each.job}_+{k}"} for k in range(1, each.more + 1)]
        return pl.DataFrame(found, schema=COLUMNS)


COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("job", "user", "queue"), pl.String),
    **dict.fromkeys(("gpus", "nodes", "time_limit_s"), pl.Float64),
    **dict.fromkeys(("state", "array_job", "het_job"), pl.String),
    **dict.fromkeys(("submit_s", "eligible_s", "start_s", "end_s"), pl.Float64),
}  # fmt: skip


def read_snapshot(data: bytes, path: str, taken_s: float | None = None) -> Snapshot:
    """Parse the output of ``squeue --json``.

    Args:
        data: its text.
        path: its origin, for messages.
        taken_s: its time, if it does not state one.

    Raises:
        InputError: it is not such a text, or it has neither a time nor any instant.
    """
    try:
        document = json.loads(data)
        jobs = document["jobs"]
        if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
            raise ValueError("jobs is not a list of objects")
        updated = number(document.get("last_update"))
        read = [_job(job) for job in jobs]
    except (ValueError, KeyError, TypeError, RecursionError, RowError) as error:
        raise InputError(f"is not a queue: {str(error)[:200]}", path=path, hint=_HINT) from error
    taken = taken_s if taken_s is not None else updated
    if taken is None:
        instants = [s for row, _ in read for s in (row["submit_s"], row["start_s"]) if s is not None]
        if not instants:
            raise InputError("says neither a time nor any job", path=path, hint="name its time with --taken")
        taken = max(instants)
    running = tuple(row for row, raw in read if row["state"] == State.RUNNING)
    pending = [(row, raw) for row, raw in read if row["state"] == State.PENDING]
    cut = sum("..." in text(raw, "array_task_string") for _, raw in pending)
    waiting = tuple(_waiting(pending, float(taken)))
    return Snapshot(float(taken), running, waiting, taken_s is not None or updated is not None, cut=cut)


def _job(job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of a job, and the job itself; the state is empty if it neither holds nodes nor waits."""
    states = {word.upper() for word in words(job, "job_state")}
    # a federated job that another cluster took is revoked here, and may also be listed as pending
    pending = "PENDING" in states and "REVOKED" not in states
    state = State.PENDING if pending else State.RUNNING if states & _HOLDS else ""
    asks = tres(text(job, "tres_req_str") if pending else text(job, "tres_alloc_str") or text(job, "tres_req_str"))
    limit = number(job.get("time_limit"))
    array, het = number(job.get("array_job_id")), number(job.get("het_job_id"))
    nodes = number(job.get("node_count")) or asks.nodes
    submit = _instant(job, "submit_time")
    if submit is None:
        raise ValueError(f"job {job_id(job)} has no submit_time")
    row = {
        "job": job_id(job), "user": text(job, "user_name"), "queue": text(job, "partition"),
        "gpus": asks.gpus, "nodes": None if nodes is None else float(nodes),
        "time_limit_s": None if limit is None else 60.0 * limit, "state": state,
        "array_job": str(array) if array else None, "het_job": str(het) if het else None,
        "submit_s": submit, "eligible_s": _instant(job, "eligible_time"),
        "start_s": None if pending else _instant(job, "start_time"), "end_s": None,
    }  # fmt: skip
    return row, job


def _instant(job: dict[str, Any], name: str) -> float | None:
    found = number(job.get(name))
    return float(found) if found else None


def _waiting(pending: Sequence[tuple[dict[str, Any], dict[str, Any]]], taken_s: float) -> Iterable[QueuedJob]:
    parts: dict[str, list[dict[str, Any]]] = {}
    for row, _ in pending:
        if row["het_job"] is not None:
            parts.setdefault(row["het_job"], []).append(row)
    for row, job in pending:
        reason = _reason(text(job, "state_reason"))
        if not reason and (row["eligible_s"] or 0.0) > taken_s + CLOCK_S:
            reason = LATER
        tasks = array_tasks(text(job, "array_task_string")) if number(job.get("array_task_id")) is None else 1
        own, more = row, max(tasks - 1, 0)
        if row["het_job"] is not None:
            all_parts = parts[row["het_job"]]
            more = len(all_parts) - 1
            own = {**row, **{name: _sum(each[name] for each in all_parts) for name in ("gpus", "nodes")}}
            if row is not all_parts[0] and not reason:
                reason = note("a part of a heterogeneous job: it starts with the first part, {job}",
                              job=NamedValue("job", all_parts[0]["job"]))  # fmt: skip
        priority = number(job.get("priority"))
        yield QueuedJob(
            row["job"], reason, _instant(job, "start_time"), None if priority is None else float(priority), more,
            None if reason else own,
        )  # fmt: skip


def _sum(values: Iterable[float | None]) -> float | None:
    document = list(values)
    return None if any(value is None for value in document) else sum(value or 0.0 for value in document)


def _reason(reason: str) -> Note:
    """Return why the wait of a job cannot be forecast, from Slurm's reason."""
    if reason in _ONLY_NODES:
        return NONE
    if reason in {"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue"}:
        return note("it is held, and it is not known until when")
    if reason.startswith("Dependency"):
        return note("it depends on other jobs, and it is not known when these end")
    if reason == "BeginTime":
        return LATER
    if reason.startswith("JobArrayTaskLimit"):
        return note("its array has as many tasks running as it may, and it is not known when these end")
    if reason.startswith(("Assoc", "QOS", "MaxSubmit")) or "Limit" in reason:
        return note("a limit holds it up ({reason}), and limits are not known", reason=untrusted(reason))
    return note("it waits for something other than nodes ({reason})", reason=untrusted(reason))


def array_tasks(text: str) -> int:
    """Return the number of tasks in a text such as ``0-9:2,12%4``; 1 for none."""
    count = 0
    for part in text.partition("%")[0].split(","):
        found = _TASKS.fullmatch(part.strip())
        if found is not None:
            first, last, step = (int(word) if word else None for word in found.groups())
            count += 1 if last is None else max((last - (first or 0)) // max(step or 1, 1) + 1, 0)
    return min(max(count, 1), MOST_TASKS)


def read_nodes(data: bytes, path: str) -> tuple[float, int]:
    """Return the GPUs of all nodes that are up, and the number of these nodes, from the output of ``sinfo --json``.

    Raises:
        InputError: it is not such a text.
    """
    try:
        document = json.loads(data)
        rows = (
            document["nodes"]
            if "nodes" in document
            else [node for row in document["sinfo"] for node in sinfo_nodes(row)]
        )
        nodes = {text(node, "name"): node for node in rows}
        gpus, up = 0.0, 0
        for node in nodes.values():
            state = "+".join([*words(node, "state"), *words(node, "state_flags")]).upper().split("+")
            if any(word.rstrip("*~#!%$@^-") in _OFF or word.startswith(("DRAIN", "FAIL")) for word in state):
                continue
            fields = node_fields(node)
            up += 1
            gpus += (
                read_gres(fields["Gres"]).gpus if fields.get("Gres") else tres(fields.get("CfgTRES", "")).gpus or 0.0
            )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, RowError) as error:
        hint = "expected what sinfo --json prints"
        raise InputError(f"is not a list of nodes: {str(error)[:200]}", path=path, hint=hint) from error
    return gpus, up


def merged(accounting: pl.DataFrame, snapshot: Snapshot, zone: str, name: str) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Merge accounting with the current queue, which decides which jobs run and wait.

    Args:
        accounting: jobs, as `gpuctl.waits.queue_log.log_of` takes them.
        snapshot: of the same cluster.
        zone: IANA zone of the clock of the accounting's times.
        name: of the cluster.

    Returns:
        the jobs, with times by the accounting's clock, and notes on the merge.

    Raises:
        InputError: the clocks of both differ.
    """
    now = on_clock(snapshot, zone)
    if accounting["gpus"].is_null().all():
        # in a log without GPUs, nodes are counted
        now = now.with_columns(gpus=pl.lit(None, pl.Float64))
    ids = [*now["job"].to_list(), *(each.job for each in snapshot.waiting)]
    taken = _shifted(pl.Series([snapshot.taken_s]), zone)[0]
    both = accounting.join(now.select("job", queued_s="submit_s"), on="job").drop_nulls(["submit_s", "queued_s"])
    off = (both["submit_s"] - both["queued_s"]).median() if both.height else 0.0
    newest = accounting.select(pl.max_horizontal(pl.col("submit_s", "start_s", "end_s").fill_nan(None).max())).item()
    late = float(newest or 0.0) - float(taken)
    if abs(float(off or 0.0)) > CLOCK_S or late > CLOCK_S:  # type: ignore[arg-type]
        document = (
            f"the same jobs were submitted {abs(float(off)):.0f} s apart by accounting and by the queue"  # type: ignore[arg-type]
            if abs(float(off or 0.0)) > CLOCK_S  # type: ignore[arg-type]
            else f"accounting goes on for {late:.0f} s after the queue was taken"
        )
        raise InputError(
            f"{name}: clocks differ: {document}", hint="name the zone of the accounting's times with --timezone"
        )
    known = pl.col("job").is_in(ids)
    open_ = pl.col("end_s").fill_nan(None).is_null()
    gone = accounting.filter(~known & open_)
    notes = []
    if gone.height:
        notes.append(
            note("{n:,} job{n||s} that run or wait by accounting are not in the queue: left out.", n=gone.height)
        )
    if late < -86_400:
        notes.append(note("Accounting ends {h:,} hour{h||s} before the queue was taken: what ran since is not known.",
                          h=round(-late / 3600)))  # fmt: skip
    if not snapshot.dated:
        notes.append(note("The queue does not say when it was so: its newest instant is taken."))
    kept = accounting.filter(~known & ~open_)
    columns = [c for c in COLUMNS if c in kept.columns]
    types = {c: COLUMNS[c] for c in columns}
    return pl.concat([kept.select(columns).cast(types), now.select(columns)]), tuple(notes)  # type: ignore[arg-type]


def on_clock(snapshot: Snapshot, zone: str) -> pl.DataFrame:
    """Return the jobs of a queue, by the clock of a zone."""
    jobs = snapshot.jobs
    return jobs.with_columns(_shifted(jobs[c], zone).alias(c) for c in ("submit_s", "eligible_s", "start_s", "end_s"))


def snapshot_time(snapshot: Snapshot, zone: str) -> float:
    """Return the time of a queue, by the clock of a zone."""
    return float(_shifted(pl.Series([snapshot.taken_s]), zone)[0])


def _shifted(seconds: pl.Series, zone: str) -> pl.Series:
    """Convert seconds since 1970 in UTC to seconds since 1970 by the clock of a zone."""
    at = (seconds.cast(pl.Float64) * 1e6).cast(pl.Int64).cast(pl.Datetime("us", "UTC"))
    wall = at.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    return wall.cast(pl.Int64) / 1e6
