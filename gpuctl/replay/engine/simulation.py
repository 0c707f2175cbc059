"""A running simulation: advance it, look at it, fork it, and say at the end what came out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import polars as pl

from gpuctl.compiled import jit
from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.setup import build, grow
from gpuctl.replay.engine.state import (
    A_RUNNING,
    DECISIONS,
    ENDED,
    ENDS,
    FINISHED,
    GROW,
    HELD,
    REJECTED,
    RUNNING,
    SUSPENDING,
    WAITING,
)
from gpuctl.replay.inputs.time_limits import own
from gpuctl.replay.models.records import Outcome
from gpuctl.replay.models.resources import GPUS_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.engine.program import Program, Scheduler
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

MOST_DECISIONS = 2_000
"""Decisions a job after which a replay is taken to make no progress."""

STANDS_STILL = 40_000
"""Instants at one and the same second after which simulated time is taken to stand still."""

UNDECIDED = 20_000_000
"""Instants in a row at which nothing is decided, after which a replay is taken to look too often."""

STEPS = 20_000
"""Instants between two looks at the clock, the progress bar and Ctrl-C."""


SLOW_STEPS = 200
"""The same of loops that run as Python."""


class Simulation:
    """One policy at work on one workload and one cluster.

    Args:
        workload: the jobs; see ``gpuctl.replay.inputs.check`` for what is asked of them.
        cluster: the servers.
        policy: the policy.
        settings: what holds for every policy of a comparison.
        label: what the policy is called in its outcome; None: its name.
        interpreted: run its loops as Python, to begin with; what comes out is the same.

    Raises:
        UsageError: CPUs or memory count, and the policy cannot go by them.
    """

    def __init__(
        self, workload: Workload, cluster: Cluster, policy: Scheduler, settings: Settings, label: str | None = None, *,
        interpreted: bool = False,
    ) -> None:  # fmt: skip
        self.label = label or policy.name
        told = len(workload.notes)
        self.workload = workload = own(workload, policy.params)
        self.notes = workload.notes[told:]
        self.cluster = cluster
        self.policy = policy
        self.settings = settings
        if settings.resources != GPUS_ONLY and not policy.resources:
            raise UsageError(
                f"{policy.name} goes by GPUs alone: it cannot be replayed with --resources",
                hint="gpuctl policies says which policies can",
            )
        self.state: State = build(workload, cluster, settings)
        self.interpreted = interpreted
        with jit.interpreted(interpreted):
            self.program: Program = policy.program(workload, cluster, settings, self.state)
        self.wall_s = 0.0

    @property
    def now(self) -> float:
        """The instant that the simulation has come to, seconds."""
        return float(self.state.g[0].now)

    @property
    def left(self) -> int:
        """Jobs that have neither ended nor been rejected."""
        return int(self.state.g[0].left)

    def advance(self, until: float = np.inf, steps: int = STEPS) -> bool:
        """Go on for so many instants, none of them after `until`; false once there are no more."""
        begin = time.perf_counter()
        with jit.interpreted(self.interpreted):
            status = self.program.advance(
                self.state, float(until), min(steps, SLOW_STEPS) if self.interpreted else steps
            )
        if status == GROW:
            grow(self.state)
        self.wall_s += time.perf_counter() - begin
        return status != ENDED

    def run(self, progress: Callable[[int, int, float], None] | None = None) -> None:
        """Go on to the end.

        Args:
            progress: told from time to time how many jobs have ended, of how many, and the second that the simulation
                has come to.

        Raises:
            InputError: it would not end: too many decisions, none at all, or time stands still.
        """
        size = self.workload.size
        most = MOST_DECISIONS * size + 1_000_000
        moved, decided = (self.now, 0), (self.now, 0, 0)
        while self.advance():
            instants, log = int(self.state.g[0].instants), int(self.state.g[0].log)
            if log > most:
                self._stop(
                    f"more than {MOST_DECISIONS} decisions a job",
                    "jobs that take turns too often, or gangs that are gathered again and again: a longer quantum, "
                    "interval or backoff, or less overhead may help",
                )
            if log > decided[2]:
                decided = (self.now, instants, log)
            if self.now > moved[0]:
                moved = (self.now, instants)
            elif instants - moved[1] >= STANDS_STILL:
                self._stop(
                    f"{instants - moved[1]:,} instants at one and the same second",
                    "time stands still: does the policy set timers for now, again and again?",
                )
            if instants - decided[1] >= UNDECIDED:
                self._stop(
                    f"{UNDECIDED:,} looks in a row since second {decided[0]:g} without a decision",
                    "jobs run very long for such short intervals: a longer quantum, interval or cycle may help",
                )
            if progress is not None:
                progress(size - self.left, size, self.now)

    def _stop(self, what: str, hint: str) -> NoReturn:
        raise InputError(
            f"{self.policy.name}: {what} by second {self.now:g}, and {self.left} of {self.workload.size} jobs have not "
            "ended",
            hint=hint,
        )

    def fork(self) -> Simulation:
        """The same simulation at the same instant, which goes its own way from here on.

        Arrays of what was and will be are copied; workload, cluster and settings are shared.
        """
        twin = object.__new__(Simulation)
        twin.workload, twin.cluster = self.workload, self.cluster
        twin.policy, twin.settings = self.policy, self.settings
        twin.label, twin.notes, twin.interpreted = self.label, self.notes, self.interpreted
        twin.state = self.state.copy()
        twin.program = self.program.copy()
        twin.wall_s = 0.0
        return twin

    def outcome(self) -> Outcome:
        """What has come out so far."""
        return Outcome(
            policy=self.label,
            params=dict(self.policy.params),
            oracle=self.policy.oracle and not (self.policy.predicts and self.workload.predicted is not None),
            settings=self.settings.text(),
            jobs=self._jobs(),
            attempts=self._attempts(),
            pieces=self._pieces(),
            decisions=self._decisions(),
            end_s=self.now,
            wall_s=self.wall_s,
            instants=int(self.state.g[0].instants),
            notes=(*self.notes, *getattr(self.program, "notes", ())),
            kind=self.policy.name,
        )

    def _jobs(self) -> pl.DataFrame:
        s, w = self.state, self.workload
        jobs, now = s.jobs, self.now
        held = np.isin(jobs.state, (RUNNING, SUSPENDING))
        # what the engine counts when something happens to a job, brought up to the end
        since = np.where(held, now - jobs.seen, 0.0)
        ran = jobs.ran + since
        until = np.where(np.isnan(jobs.end), np.maximum(now, w.submit), jobs.end)
        words = np.full(jobs.size, "running", object)
        for code, word in ((HELD, "held"), (WAITING, "waiting"), (FINISHED, "finished"), (REJECTED, "rejected")):
            words[jobs.state == code] = word
        servers = np.where(jobs.row >= 0, s.attempts.pieces[np.maximum(jobs.row, 0)], 0)
        names = np.array([*w.queues, ""], object)
        users = np.array([*w.users, ""], object)
        total = np.add.reduceat(w.segment_s, w.segment_start[:-1]) if w.size else np.zeros(0)
        return pl.DataFrame(
            {
                "job": pl.Series(w.ids, dtype=pl.String),
                "queue": pl.Series(names[w.queue].tolist(), dtype=pl.String),
                "user": pl.Series(users[w.user].tolist(), dtype=pl.String),
                "gpus": w.gpus,
                "submit_s": w.submit,
                "eligible_s": np.where(np.isnan(jobs.ready), w.eligible, jobs.ready),
                "start_s": jobs.first_start.copy(),
                "end_s": jobs.end.copy(),
                "wait_s": until - w.submit - ran,
                "jct_s": jobs.end - w.submit,
                "run_s": ran,
                "work_s": total,
                "gpu_s": jobs.attained + since * jobs.counted,
                "overhead_gpu_s": jobs.overhead.copy(),
                "lost_gpu_s": jobs.lost.copy(),
                "preemptions": jobs.preempts.astype(np.int64),
                "attempts": jobs.attempts.astype(np.int64),
                "servers": servers.astype(np.int64),
                "state": pl.Series(words.tolist(), dtype=pl.String),
            }
        ).with_columns(pl.col("start_s", "end_s", "jct_s").fill_nan(None))

    def _attempts(self) -> pl.DataFrame:
        s = self.state
        rows = s.attempts[: int(s.g[0].attempts)]
        number = np.zeros(rows.size, np.int64)
        order = np.argsort(rows.job, kind="stable")
        job = rows.job[order]
        starts = np.flatnonzero(np.append(True, job[1:] != job[:-1])) if rows.size else np.zeros(0, np.int64)
        sizes = np.diff(np.append(starts, rows.size))
        number[order] = np.arange(rows.size) - np.repeat(starts, sizes)
        return pl.DataFrame(
            {
                "job": rows.job.astype(np.int64),
                "attempt": number,
                "start_s": rows.start.copy(),
                "end_s": np.where(rows.how == A_RUNNING, np.nan, rows.end),
                "end": _words(ENDS, rows.how),
                "gpus": rows.gpus.astype(np.int64),
                "shared": rows.group != np.arange(rows.size),
                "own_s": np.where(np.isinf(rows.own), np.nan, rows.own),
                "group": rows.group.astype(np.int64),
            }
        ).with_columns(pl.col("end_s", "own_s").fill_nan(None))

    def _pieces(self) -> pl.DataFrame:
        s = self.state
        rows = s.attempts[: int(s.g[0].attempts)]
        count = rows.pieces.astype(np.int64)
        owner = np.repeat(np.arange(rows.size), count)
        inside = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
        pieces = s.pieces[np.repeat(rows.first, count) + inside]
        frame = pl.DataFrame(
            {"row": owner, "server": pieces.server.astype(np.int64), "gpus": pieces.gpus.astype(np.int64)}
        )
        if not s.g[0].resources:
            return frame
        needs = s.needs[np.repeat(rows.first, count) + inside]
        return frame.with_columns(cpus=pl.Series(needs.cpu / 1000.0), mem_mb=pl.Series(needs.mem.astype(np.int64)))

    def _decisions(self) -> pl.DataFrame:
        s, w = self.state, self.workload
        log = s.log[: int(s.g[0].log)]
        names = pl.Series(w.ids, dtype=pl.String)
        job = pl.Series(np.where(log.job < 0, 0, log.job))
        server_event = log.job < 0
        row = np.where(server_event | (log.row < 0), 0, log.row)
        count = s.attempts.pieces[row] if s.attempts.size else row
        reasons = (*REASONS, *getattr(self.program, "reasons", ()))
        return pl.DataFrame(
            {
                "t_s": log.t.copy(),
                "decision": _words(DECISIONS, log.what),
                "job": names.gather(job) if w.size else pl.Series([], dtype=pl.String),
                "gpus": log.gpus.astype(np.int64),
                "servers": np.where(server_event | (log.row < 0), 0, count).astype(np.int64),
                "reason": _words(reasons, log.reason),
                "server": pl.Series(np.where(server_event, log.row, -1)),
            }
        ).with_columns(
            pl.when(pl.col("server") < 0).then(pl.col("job")).alias("job"),
            pl.col("server").replace_strict(
                pl.Series(range(-1, len(self.cluster.servers))), pl.Series([None, *self.cluster.servers])
            ),
        )


def _words(words: tuple[str, ...], codes: Any) -> pl.Series:
    return pl.Series(words, dtype=pl.String).gather(pl.Series(codes.astype(np.int64)))
