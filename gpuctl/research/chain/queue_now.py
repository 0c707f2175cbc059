"""The output of ``squeue --json``, in the form of the simulator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.slurm.json_fields import number
from gpuctl.ingest.slurm.site.state_json import text, words
from gpuctl.replay.policies.mirage.slots_kernel import SLOTS
from gpuctl.research.chain import episode_kernel as kernel
from gpuctl.research.chain.episode import Pair
from gpuctl.research.chain.log import UNLIMITED_S
from gpuctl.waits.queue_snapshot import array_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

_HINT = "expected the output of squeue --json --all --array"
MOST_BYTES = 256 << 20
_MOST_ID, _MOST_NODES, _MOST_MIN, _MOST_S = 2**62, 10**6, 10**9, 10**11
HOLDS_NODES = frozenset({"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING"})
_WAITS_FOR = ("Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "BeginTime", "JobArrayTaskLimit")


@dataclass(frozen=True)
class QueuedJob:
    """One job in the output of squeue; seconds since 1970.

    Attributes:
        job: its id.
        name: its name.
        user: its user's name.
        partition: its partition.
        comment: text of ``sbatch --comment``.
        states: words such as RUNNING, COMPLETING.
        reason: why it waits.
        nodes: nodes held, or minimum requested.
        limit_s: its time limit; None: none.
        submit_s: its submission.
        start_s: its start; None: not started.
        end_s: its end; None: not ended.
        exit_code: exit code of its script; None: unknown.
        tasks: pending tasks of an array, which share one record; else 1.
        cut: whether more tasks are pending than squeue lists.
    """

    job: str
    name: str
    user: str
    partition: str
    comment: str
    states: frozenset[str]
    reason: str
    nodes: int
    limit_s: int | None
    submit_s: int
    start_s: int | None
    end_s: int | None
    exit_code: int | None
    tasks: int = 1
    cut: bool = False

    @property
    def pending(self) -> bool:
        """Whether it waits."""
        return "PENDING" in self.states

    @property
    def holds(self) -> bool:
        """Whether it holds nodes."""
        return bool(self.states & HOLDS_NODES)

    @property
    def eligible(self) -> bool:
        """Whether it waits only for nodes."""
        return self.pending and self.reason not in _WAITS_FOR


def read_queue(data: bytes, path: str) -> list[QueuedJob]:
    """Read the output of ``squeue --json``.

    Raises:
        InputError: it is no such text.
    """
    try:
        document = json.loads(data)
        jobs = document["jobs"]
        if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
            raise ValueError("jobs is not a list of objects")
        return [_job(job) for job in jobs]
    except (ValueError, KeyError, TypeError, RecursionError, RowError) as error:
        raise InputError(f"is not a queue: {str(error)[:200]}", path=path, hint=_HINT) from error


def _job(job: dict[str, Any]) -> QueuedJob:
    states = frozenset(word.upper() for word in words(job, "job_state"))
    if "REVOKED" in states:
        # a federated job that another cluster took; this cluster may also list it as pending
        states -= {"PENDING"}
    start, end = _instant(job, "start_time"), _instant(job, "end_time")
    pending = "PENDING" in states
    limit_min = _counted(job, "time_limit", _MOST_MIN)
    over = not pending and not states & HOLDS_NODES
    identity = _counted(job, "job_id", _MOST_ID)
    submit = _instant(job, "submit_time")
    if identity is None or submit is None:
        raise ValueError("a job has no job_id or submit_time")
    code = job.get("exit_code")
    status = number(code.get("return_code") if isinstance(code, dict) else code)
    return QueuedJob(
        job=str(identity),
        name=text(job, "name"),
        user=text(job, "user_name"),
        partition=text(job, "partition"),
        comment=text(job, "comment") or text(job, "comment", "job"),
        states=states,
        reason=text(job, "state_reason"),
        nodes=max(_counted(job, "node_count", _MOST_NODES) or 1, 1),
        limit_s=None if limit_min is None else 60 * limit_min,
        submit_s=submit,
        start_s=None if pending else start,
        end_s=end if over else None,
        exit_code=status,
        tasks=array_tasks(text(job, "array_task_string")) if number(job.get("array_task_id")) is None else 1,
        cut=pending and "..." in text(job, "array_task_string"),
    )


def _instant(job: dict[str, Any], name: str) -> int | None:
    return _counted(job, name, _MOST_S) or None


def _counted(job: dict[str, Any], name: str, most: int) -> int | None:
    """A number from 0 to a limit: later sums use 64 bits."""
    found = number(job.get(name))
    if found is not None and not 0 <= found <= most:
        raise ValueError(f"{name} of a job is {str(found)[:30]}, expected 0 to {most:,}")
    return found


def when(data: bytes) -> int | None:
    """Time of a queue in seconds since 1970, if recorded (Slurm 23.02 and later)."""
    try:
        document = json.loads(data)
        return _instant(document, "last_update") if isinstance(document, dict) else None
    except (ValueError, RecursionError, RowError):
        return None


@dataclass(frozen=True)
class Now:
    """The cluster at an instant, as an episode from the oldest submission.

    Attributes:
        arrays: arrays of the episode that describe the jobs.
        running: numbers of jobs that hold nodes, with minutes of start and of limit.
        waiting: numbers of pending jobs, in order.
        users: users of all jobs, P and S last.
        now: the minute.
        p_end: the minute of P's end by its limit.
        size: nodes.
        left_out: jobs that wait for more than nodes, counted by reason.
    """

    arrays: dict[str, np.ndarray[Any, np.dtype[np.int64]]]
    running: list[tuple[int, int, int]]
    waiting: list[int]
    users: tuple[str, ...]
    now: int
    p_end: int
    size: int
    left_out: dict[str, int]

    def episode(self, **own: Any) -> kernel.Episode:
        """The cluster now, S not yet submitted."""
        jobs = self.arrays["minute"].size
        c = np.zeros(kernel.COUNTERS, np.int64)
        c[kernel.SIZE] = self.size
        each = dict.fromkeys(("line", "run", "start", "end", "until", "held", "begins"), jobs)
        e = kernel.Episode(**{**self.arrays, **own}, **each, slots=SLOTS, waits=kernel.LAST_WAITS, c=c)
        for k, (j, start, until) in enumerate(self.running):
            e.run[k], e.start[k], e.end[k], e.until[k] = j, start, until, until
            e.held[k] = self.arrays["nodes"][j]
        e.line[: len(self.waiting)] = self.waiting
        c[kernel.RUNNING], c[kernel.WAITING], c[kernel.NOW] = len(self.running), len(self.waiting), self.now
        c[kernel.FREE] = max(self.size - int(e.held[: len(self.running)].sum()), 0)
        c[kernel.NEXT] = jobs - 2
        c[kernel.S_START] = kernel.NEVER
        c[kernel.P_START] = self.now
        return e


def now_of(jobs: Sequence[QueuedJob], p: QueuedJob, pair: Pair, size: int, second: int) -> Now:
    """Treat P's partition as a cluster of `size` nodes.

    Raises:
        InputError: P does not run, or jobs hold more nodes than exist.
    """
    if p.start_s is None or not p.holds:
        raise InputError(f"job {p.job} does not run: {', '.join(sorted(p.states))}", hint="try again once it runs")
    here = [job for job in jobs if p.partition in job.partition.split(",") and job.job != p.job]
    runs = [job for job in here if job.holds and job.start_s is not None]
    eligible = sorted((job for job in here if job.eligible), key=lambda job: (job.submit_s, job.job))
    waits = [job for job in eligible for _ in range(job.tasks)]
    left_out: dict[str, int] = {}
    for job in here:
        if job.pending and not job.eligible:
            left_out[job.reason] = left_out.get(job.reason, 0) + job.tasks
    held = sum(job.nodes for job in runs) + p.nodes
    large = max((job.nodes for job in waits), default=0)
    if max(held, large) > size:
        raise InputError(
            f"partition {p.partition}: {held} nodes are held and {large} requested by one job, more than {size} nodes",
            hint="name the nodes of the partition with --nodes",
        )
    ordered = [*runs, *waits]
    first = min([job.submit_s for job in ordered] + [p.start_s, second]) // 60
    limit = [max(-(-(UNLIMITED_S if job.limit_s is None else job.limit_s) // 60), 1) for job in ordered]
    minute = [job.submit_s // 60 - first for job in ordered]
    now = second // 60 - first
    p_start = p.start_s // 60 - first
    arrays = {
        "minute": np.array([*minute, p_start, kernel.FAR], np.int64),
        "nodes": np.array([job.nodes for job in ordered] + [pair.nodes] * 2, np.int64),
        "limit": np.array([*limit, pair.limit_min, pair.limit_min], np.int64),
    }
    arrays["ticks"] = arrays["limit"].copy()
    arrays["key"] = 3600 * arrays["nodes"] - 25 * size * np.append(arrays["minute"][:-1], 0)
    # the kernel keeps the queue ordered by key
    waiting = sorted(range(len(runs), len(ordered)), key=lambda j: (-int(arrays["key"][j]), j))
    until = [max(job.start_s // 60 - first + limit[k], now + 1) for k, job in enumerate(runs)]  # type: ignore[operator]
    running = [(k, job.start_s // 60 - first, until[k]) for k, job in enumerate(runs)]  # type: ignore[operator]
    p_end = p_start + pair.limit_min
    running.append((len(ordered), p_start, max(p_end, now + 1)))
    return Now(arrays, running, waiting, (*(job.user for job in ordered), "", ""), now, p_end, size, left_out)
