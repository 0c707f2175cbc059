"""Simulates jobs of stages under a policy: the end of each job, and every task."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.jit import interpreted, is_compiled
from gpuctl.compiled.loading import UNCOMPILED
from gpuctl.research.dag import choices_kernel as kernel
from gpuctl.research.dag import loop_kernel as loop
from gpuctl.research.dag.jobs import in_order, work_of
from gpuctl.research.dag.policies import packed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    from numpy.typing import NDArray

    from gpuctl.research.dag.jobs import Job
    from gpuctl.research.dag.policies import Policy

    Ints = NDArray[np.int64]

AT_ONCE = 200
"""Decisions between two progress reports."""
NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Outcome:
    """Outcome of a policy; jobs in the order of the file, times in ms.

    Attributes:
        arrival: of each job.
        start: of its first task.
        end: of its last task.
        moves: tasks that started after an executor had moved.
        busy: ms of tasks.
        decisions: at which an executor was free and a candidate existed.
        log: tasks in order of assignment: start, end, stage over all jobs, executor; empty unless requested.
    """

    arrival: Ints
    start: Ints
    end: Ints
    moves: int
    busy: int
    decisions: int
    log: Ints

    @property
    def completion(self) -> Ints:
        """Return the ms from the arrival to the end of each job."""
        return self.end - self.arrival

    @property
    def p95(self) -> int:
        """Return the completion time that 95 % of jobs do not exceed."""
        return int(np.sort(self.completion)[min(len(self.end) - 1, 95 * len(self.end) // 100)])

    @property
    def makespan(self) -> int:
        """Return the end of the last job."""
        return int(self.end.max())


def initial_state(w: loop.Work, executors: int, delay_ms: int, *, logged: bool = False) -> loop.State:
    """Return the state before the first arrival."""
    jobs = w.arrival.size
    c = np.zeros(loop.COUNTERS, np.int64)
    c[loop.LAST], c[loop.FREE], c[loop.DELAY], c[loop.LOGGED] = jobs, executors, delay_ms, logged
    none = np.full(jobs, loop.NONE)
    return loop.State(
        left=w.tasks.copy(), unfinished=w.tasks.copy(), blocked=w.parents.copy(), rest=w.total.copy(),
        stages=np.diff(w.first), held=jobs, near=jobs, pick=none, begin=none.copy(), end=jobs, active=jobs,
        at=np.full(executors, loop.NONE), until=executors, last=np.full(executors, loop.NONE),
        candidates=jobs, by_rest=jobs, rank=jobs,
        action_stage=2 * jobs, action_amount=2 * jobs, action_cost=2 * jobs,
        log=(int(w.tasks.sum()) if logged else 0, 4), c=c,
    )  # fmt: skip


def no_book() -> kernel.Book:
    """Return an empty book."""
    c = np.zeros(5, np.int64)
    c[kernel.BUDGET] = NO_LIMIT
    return kernel.Book(row=(0, kernel.FEATURES + 3), seen=(0, 3), watch=0, c=c)


def simulate(
    jobs: Sequence[Job], policy: Policy, *, executors: int, delay_ms: int, logged: bool = False,
    slowly: bool | None = None, progress: Callable[[int], None] = lambda _: None,
) -> Outcome:  # fmt: skip
    """Run the jobs under a policy.

    Args:
        jobs: in any order.
        policy: the policy.
        executors: number of executors; each runs one task at a time.
        delay_ms: delay before an executor's first task for another job.
        logged: log all tasks.
        slowly: run as Python, or compiled; None: whichever finishes sooner. The result is the same.
        progress: called with the number of arrived jobs.
    """
    w = work_of(jobs, executors, delay_ms)
    s, copy = initial_state(w, executors, delay_ms, logged=logged), initial_state(w, executors, delay_ms)
    book, rules = no_book(), packed(policy.rules)
    with interpreted(as_python(jobs, policy, executors) if slowly is None else slowly):
        over = False
        while not over:
            book.c[kernel.BUDGET] = AT_ONCE
            over = kernel.play(w, s, copy, rules, policy.kind, book)
            progress(int(s.c[loop.NEXT]))
    order = np.array(in_order(jobs))

    def back(values: Ints) -> Ints:
        found = np.zeros(len(jobs), np.int64)
        found[order] = values
        return found

    return Outcome(
        back(w.arrival), back(s.begin), back(s.end), int(s.c[loop.MOVES]), int((w.tasks * w.task_ms).sum()),
        int(s.c[loop.DECISIONS]), s.log,
    )  # fmt: skip


SOON = 1_500_000
"""Effort of Python in the time that loading compiled code takes; ten times that: making it."""


def as_python(jobs: Sequence[Job], policy: Policy, executors: int) -> bool:
    """Return whether plain Python finishes sooner than loading or compiling the kernels takes."""
    if UNCOMPILED:
        return True
    tasks = sum(stage.tasks for job in jobs for stage in job.stages)
    each = 25 * tasks if policy.kind == kernel.ROLLOUT else (executors + 30) * (1 if policy.rules is None else 4)
    effort = tasks * each
    return effort <= SOON or (effort <= 10 * SOON and not is_compiled(kernel.play))


def write_log(jobs: Sequence[Job], outcomes: Mapping[str, Outcome], file: BinaryIO) -> None:
    """Write every task as CSV, in order of assignment: policy, start, end, job, stage, executor."""
    stages = [(jobs[k].name, v) for k in in_order(jobs) for v in range(len(jobs[k].stages))]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("policy", "start", "end", "job", "stage", "executor"))
    for name, outcome in outcomes.items():
        table.writerows((name, start, end, *stages[v], e) for start, end, v, e in outcome.log.tolist())
    file.write(text.getvalue().encode())
