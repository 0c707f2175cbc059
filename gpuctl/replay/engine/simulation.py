"""A running simulation: advance, inspect and fork it, and collect its outcome."""

from __future__ import annotations

import copy
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import polars as pl

from gpuctl.compiled import jit
from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.engine.never import never_note, never_starts
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.setup import build, grow
from gpuctl.replay.engine.state import (
    A_RUNNING,
    A_TIMEOUT,
    DECISIONS,
    ENDED,
    ENDS,
    FINISHED,
    GROW,
    HELD,
    LOG,
    REJECTED,
    RUNNING,
    STEPPED,
    SUSPENDING,
    WAITING,
)
from gpuctl.replay.inputs.estimates import own_limits
from gpuctl.replay.models.decision_log import DecisionLog
from gpuctl.replay.models.inference import as_lent, loan_counts, loan_notes
from gpuctl.replay.models.node_failures import DAY_S
from gpuctl.replay.models.records import Outcome
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.models.traits import traits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.replay.engine.program import Program, Scheduler
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.node_failures import Outages
    from gpuctl.replay.models.records import Cluster, Workload

MOST_DECISIONS = 2_000
"""Decisions per job after which a replay counts as stuck."""

STANDS_STILL = 40_000
"""Instants at the same second after which simulated time counts as stuck."""

UNDECIDED = 20_000_000
"""Consecutive instants without a decision after which a replay counts as polling too often."""

MANY_LINES = 500_000
"""Decisions from which on memory is returned, at the cost of a hundredth of a second."""

STEPS = 20_000
"""Instants between two checks of the clock, the progress bar and Ctrl-C."""

SLOW_STEPS = 200
"""The same of loops that run as Python."""

BATCH = 100_000
"""Attempts numbered per batch."""


class Simulation:
    """One policy running on one workload and one cluster.

    Args:
        workload: the jobs; see ``gpuctl.replay.inputs.check`` for requirements.
        cluster: the nodes.
        policy: the policy.
        settings: shared by all policies of a comparison.
        label: the policy's name in its outcome; None: its own name.
        interpreted: run its loops as Python at first; results are the same.

    Raises:
        UsageError: CPUs or memory count, and the policy does not support them.
    """

    def __init__(
        self, workload: Workload, cluster: Cluster, policy: Scheduler, settings: Settings, label: str | None = None, *,
        interpreted: bool = False,
    ) -> None:  # fmt: skip
        self.label = label or policy.name
        first_note = len(workload.notes)
        self.workload = workload = own_limits(workload, policy.params)
        self.notes = workload.notes[first_note:]
        self.cluster = cluster = policy.extended(cluster)
        self.outages: Outages | None = None
        if settings.failures is not None:
            if policy.name == "recorded":
                raise UsageError(
                    "recorded: jobs run where and when the trace recorded them: no node fails",
                    hint="omit --failures or this policy",
                )
            way = settings.failures.requeue
            if way != "own" and way not in policy.requeues():
                raise UsageError(
                    f"{policy.name}: has an order of its own for interrupted jobs, so --requeue {way} does not apply",
                    hint="omit --requeue, or compare fifo, fifo-skip, easy and slurm, which queue by submission "
                    "(conservative: tail)",
                )
            # nodes go down, which ones is not known yet
            self.cluster = cluster = replace(cluster, down=np.zeros((0, 3)))
            self.outages = settings.failures.outages(self._first)
        self.policy = policy
        self.settings = settings
        if settings.resources != GPUS_ONLY and not policy.resources:
            raise UsageError(
                f"{policy.name} counts GPUs alone: it cannot be replayed with --resources",
                hint="gpuctl policies lists the policies that support it",
            )
        self.state: State = build(workload, cluster, settings)
        with jit.interpreted(interpreted):
            self.program: Program = policy.program(workload, cluster, settings, self.state)
        self.interpreted = interpreted and not getattr(self.program, "slow_as_python", False)
        self.never = never_starts(self.state, self.program)
        self.wall_s = 0.0
        self.loaded_gpu_s: float | None = None
        self._started = -1
        if self.outages is not None:
            self._draw_on(self.outages)

    @property
    def now(self) -> float:
        """The simulation's present instant, in seconds."""
        return float(self.state.g[0].now)

    @property
    def _first(self) -> float:
        """The first submission, in seconds."""
        return float(self.workload.submit.min()) if self.workload.size else 0.0

    @property
    def left(self) -> int:
        """Jobs that have neither ended nor been rejected."""
        return int(self.state.g[0].left)

    def advance(self, until: float = np.inf, steps: int = STEPS) -> bool:
        """Advance by a number of instants, up to `until`; false once there are none left."""
        begin = time.perf_counter()
        drawn = np.inf if self.outages is None else self.outages.drawn_to
        with jit.interpreted(self.interpreted):
            status = self.program.advance(
                self.state, float(min(until, drawn)), min(steps, SLOW_STEPS) if self.interpreted else steps
            )
        if status == GROW:
            grow(self.state)
        if status == ENDED and self.outages is not None and drawn < until and self._draw_on(self.outages):
            status = STEPPED
        self.wall_s += time.perf_counter() - begin
        return status != ENDED

    def _draw_on(self, outages: Outages) -> bool:
        """Draw the failures of the time to come; false if the replay has ended or will never change."""
        s, g = self.state, self.state.g[0]
        begin = outages.drawn_to
        changes = g.running > 0 or g.heap > 0 or g.arrival < s.arrivals.size
        moves = changes or g.machine < s.machine_t.size
        if not g.left or not (changes or g.waiting) or (not moves and self._started == int(g.attempts)):
            # All jobs have ended, those left depend on rejected ones, or nothing runs, arrives or is repaired, and
            # nothing has started since the last time.
            return False
        self._started = int(g.attempts)
        events = outages.until(begin + max(DAY_S, (begin - self._first) / 2))
        t, node, up = zip(*events, strict=True) if events else ((), (), ())
        left = slice(int(g.machine), None)
        s.put(
            machine_t=np.concatenate([s.machine_t[left], np.array(t, np.float64)]),
            machine_node=np.concatenate([s.machine_node[left], np.array(node, np.int64)]),
            machine_up=np.concatenate([s.machine_up[left], np.array(up, np.int64)]),
        )
        g.machine = 0
        if s.machine_t.size:
            # a node that is back at once is two lines in the log
            g.at_once = max(int(g.at_once), 2 * int(np.unique(s.machine_t, return_counts=True)[1].max()))
        grow(s)
        return True

    def run(self, progress: Callable[[int, int, float], None] | None = None) -> None:
        """Run to the end.

        Args:
            progress: called from time to time with the number of ended jobs, of all jobs, and the present second.

        Raises:
            InputError: it would not end: too many decisions, none at all, or time stands still.
        """
        size = self.workload.size
        most = MOST_DECISIONS * size + 1_000_000
        moved, decided = (self.now, 0), (self.now, 0, 0)
        compiler_there = True
        for until in (float(self.workload.submit.max(initial=0.0)), np.inf):
            while self.advance(until):
                instants, log = int(self.state.g[0].instants), int(self.state.g[0].log)
                if log > MANY_LINES and compiler_there and not self.interpreted:
                    jit.release_compiler_memory()
                    compiler_there = False
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
                        f"{UNDECIDED:,} instants in a row since second {decided[0]:g} without a decision",
                        "jobs run very long for such short intervals: a longer quantum, interval or cycle may help",
                    )
                if progress is not None:
                    progress(size - self.left, size, self.now)
            if until < np.inf:
                self.loaded_gpu_s = self._work_done(until)

    def _work_done(self, at: float) -> float:
        """GPU-seconds of work done by a second between the last instant and the next."""
        s = self.state
        jobs = s.jobs
        done, states = jobs.done.copy(), jobs.state.copy()
        on = np.flatnonzero((states == RUNNING) | (states == SUSPENDING))
        until = np.full(on.size, at)
        # no progress while a checkpoint is written
        node = s.node_at[on]
        stops = (states[on] == SUSPENDING) & (node >= 0)
        until[stops] = np.minimum(at, s.heap_t[node[stops]] - jobs.stopping[on[stops]])
        done[on] += np.maximum(until - jobs.last[on], 0.0) * jobs.rate[on]
        whole = np.cumsum(np.concatenate([[0.0], self.workload.segment_s]))
        first, later = self.workload.segment_start[:-1], self.workload.segment_start[1:]
        left = jobs.work - done + whole[later] - whole[jobs.segment + 1]
        return float((np.maximum(whole[later] - whole[first] - left, 0.0) * jobs.gpus).sum())

    def _stop(self, what: str, hint: str) -> NoReturn:
        if self.outages is not None:
            hint = "jobs that take longer than their nodes last never end: more checkpoints (--checkpoint 3600), or a "
            hint += "lower rate of failures"
        raise InputError(
            f"{self.policy.name}: {what} by second {self.now:g}, and {self.left} of {self.workload.size} jobs have not "
            "ended",
            hint=hint,
        )

    def fork(self) -> Simulation:
        """An independent copy of the simulation at the same instant.

        Arrays of state are copied; workload, cluster and settings are shared.
        """
        twin = object.__new__(Simulation)
        twin.workload, twin.cluster = self.workload, self.cluster
        twin.policy, twin.settings = self.policy, self.settings
        twin.label, twin.notes, twin.interpreted = self.label, self.notes, self.interpreted
        twin.never = self.never
        twin.state = self.state.copy()
        twin.program = self.program.copy()
        twin.outages, twin._started = copy.deepcopy(self.outages), self._started
        twin.wall_s, twin.loaded_gpu_s = 0.0, self.loaded_gpu_s
        return twin

    def outcome(self, *, last: bool = False) -> Outcome:
        """The outcome so far.

        Args:
            last: the simulation is not used again. Its arrays are released as they become tables, so that millions of
                attempts are not in memory twice.
        """
        by_traits = self.policy.traits or self.settings.rates.by_traits
        down = self._down()
        # one by one, the largest last
        jobs = self._jobs()
        if last:
            self._give_up(*(self.state.fields.keys() - {"g", "attempts", "pieces", "needs", "log", "turns"}))
        log, pieces, turns = self._log(), self._pieces(), self._turns()
        loans = log.loans() if self.cluster.on_loan else None
        if last:
            self._give_up("pieces", "needs", "turns")
        return Outcome(
            policy=self.label,
            params=self.policy.shown_params(),
            oracle=self.policy.oracle and not (self.policy.predicts and self.workload.predicted is not None),
            settings={**self.settings.text(), **self.policy.own_models},
            jobs=jobs,
            attempts=self._attempts(last=last),
            pieces=pieces,
            log=log,
            end_s=self.now,
            wall_s=self.wall_s,
            instants=int(self.state.g[0].instants),
            notes=(
                *self.notes,
                *getattr(self.program, "notes", ()),
                *never_note(self.never, self.workload),
                *(traits(self.workload).notes() if by_traits else ()),
                *(() if loans is None else loan_notes(self.cluster, loans, self.now)),
            ),
            kind=self.policy.name,
            turns=turns,
            by_traits=by_traits,
            cluster=self._used(down, loans),
            counts={
                **getattr(self.program, "counts", {}),
                **({} if loans is None else loan_counts(self.cluster, loans, self.now)),
                **({} if self.outages is None else {"injected": int(self.state.g[0].injected)}),
            },
            loaded_gpu_s=self.loaded_gpu_s,
            never=self.never,
        )

    def _down(self) -> NDArray[np.float64] | None:
        """When nodes were down in a replay in which they fail, as `Cluster.down` has it."""
        if self.outages is None:
            return None
        s, count = self.state, int(self.state.g[0].attempts)
        rows = s.attempts[:count]
        owner = np.repeat(np.arange(count), rows.pieces)
        places = s.pieces[
            rows.first[owner] + np.arange(owner.size) - np.repeat(np.cumsum(rows.pieces) - rows.pieces, rows.pieces)
        ]
        ends = np.where(np.isnan(rows.end), np.inf, rows.end)

        def emptied(node: int, since: float) -> float:
            on = owner[places.node == node]
            held = on[(rows.start[on] < since) & (ends[on] > since)]
            return max(since, float(ends[held].max(initial=since)))

        return self.outages.seen(self.now, emptied)

    def _used(self, down: NDArray[np.float64] | None, loans: list[tuple[float, int, bool]] | None) -> Cluster:
        """The nodes, down when they failed or were not on loan."""
        cluster = self.cluster if down is None else replace(self.cluster, down=down)
        return cluster if loans is None else as_lent(cluster, loans)

    def _jobs(self) -> pl.DataFrame:
        s, w = self.state, self.workload
        jobs, now = s.jobs, self.now
        held = np.isin(jobs.state, (RUNNING, SUSPENDING))
        # counters that the engine updates at a job's events, brought up to the end
        since = np.where(held, now - jobs.seen, 0.0)
        ran = jobs.ran + since
        until = np.where(np.isnan(jobs.end), np.maximum(now, w.submit), jobs.end)
        words = np.full(jobs.size, "running", object)
        for code, word in ((HELD, "held"), (WAITING, "waiting"), (FINISHED, "finished"), (REJECTED, "rejected")):
            words[jobs.state == code] = word
        ended = np.flatnonzero((jobs.state == FINISHED) & (jobs.row >= 0))
        words[ended[s.attempts.how[jobs.row[ended]] == A_TIMEOUT]] = "cut"
        nodes = np.where(jobs.row >= 0, s.attempts.pieces[np.maximum(jobs.row, 0)], 0)
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
                "overhead_gpu_s": jobs.overhead + jobs.wrote + jobs.stalled,
                "lost_gpu_s": jobs.lost.copy(),
                "preemptions": jobs.preempts.astype(np.int64),
                "attempts": jobs.attempts.astype(np.int64),
                "max_gpus": jobs.peak.astype(np.int64),
                "changes": jobs.changes.astype(np.int64),
                "t10_s": jobs.t10 - w.submit,
                "least_gpus": jobs.least.astype(np.int64),
                "most_gpus": jobs.most.astype(np.int64),
                "nodes": nodes.astype(np.int64),
                "state": pl.Series(words.tolist(), dtype=pl.String),
            }
        ).with_columns(pl.col("start_s", "end_s", "jct_s", "t10_s").fill_nan(None), **self._of_failures(jobs))

    def _of_failures(self, jobs: Any) -> dict[str, pl.Series]:
        """What failures of nodes cost each job."""
        if self.outages is None:
            return {}
        names = {"wrote": "checkpoint_gpu_s", "load": "load_gpu_s", "stalled": "stalled_gpu_s", "undone": "lost_s"}
        found = {name: pl.Series(jobs[field].copy()) for field, name in names.items()}
        return found | {"interruptions": pl.Series(jobs.failures.astype(np.int64))}

    def _give_up(self, *names: str) -> None:
        self.state.put(**{name: (0,) * self.state.fields[name][1] for name in names})

    def _attempts(self, *, last: bool) -> pl.DataFrame:
        count = int(self.state.g[0].attempts)
        rows = _owner(self.state.attempts)
        number = self._numbers(rows["job"][:count])
        if last:
            self._give_up("attempts")
        columns = {
            name: np.empty(count, rows.dtype[name]) for name in ("job", "start", "end", "gpus", "own", "group", "how")
        }
        for begin in reversed(range(0, count, BATCH)):
            for name, column in columns.items():
                column[begin : begin + BATCH] = rows[name][begin : min(begin + BATCH, count)]
            if last:
                # other holders, such as a policy, keep them unchanged
                with suppress(ValueError):
                    rows.resize(begin)
        end, own, how = columns.pop("end"), columns.pop("own"), columns.pop("how")
        end[how == A_RUNNING] = np.nan
        shared = own != columns["start"]
        own[np.isinf(own)] = np.nan
        # each is copied and freed before the next
        return pl.DataFrame(
            [
                pl.Series("job", columns.pop("job")),
                pl.Series("attempt", number),
                pl.Series("start_s", columns.pop("start")),
                pl.Series("end_s", end, nan_to_null=True),
                pl.Series("end", ENDS, dtype=pl.Enum(ENDS)).gather(how.astype(np.uint32)),
                pl.Series("gpus", columns.pop("gpus")),
                pl.Series("shared", shared),
                pl.Series("own_s", own, nan_to_null=True),
                pl.Series("group", columns.pop("group")),
            ]
        )

    def _numbers(self, jobs: NDArray[np.int32]) -> NDArray[np.int32]:
        """The number of each attempt among those of its job."""
        number = np.empty(jobs.size, np.int32)
        tried = np.zeros(max(self.workload.size, 1), np.int32)
        for begin in range(0, jobs.size, BATCH):
            job = jobs[begin : begin + BATCH]
            order = np.argsort(job, kind="stable")
            at = np.arange(job.size)
            first = np.flatnonzero(np.append(True, np.diff(job[order]) != 0))
            # attempts of the same job before it in this batch, and in earlier batches
            number[begin + order] = at - np.repeat(first, np.diff(np.append(first, job.size))) + tried[job[order]]
            tried += np.bincount(job, minlength=tried.size).astype(np.int32)
        return number

    def _pieces(self) -> pl.DataFrame:
        s = self.state
        rows = s.attempts[: int(s.g[0].attempts)]
        owner = np.repeat(np.arange(rows.size, dtype=np.int32), rows.pieces)
        after = np.cumsum(rows.pieces)
        # pieces of one attempt are adjacent, those of the next mostly follow
        at: Any = slice(0, owner.size)
        if (rows.first != after - rows.pieces).any():
            at = np.repeat(rows.first - after + rows.pieces, rows.pieces) + np.arange(owner.size)
        pieces = s.pieces[at]
        frame = pl.DataFrame({"row": owner, "node": pieces.node.copy(), "gpus": pieces.gpus.copy()})
        if not s.g[0].resources:
            return frame
        needs = s.needs[at]
        return frame.with_columns(cpus=pl.Series(needs.cpu / 1000.0), mem_mb=pl.Series(needs.mem.astype(np.int64)))

    def _turns(self) -> pl.DataFrame | None:
        s = self.state
        if not s.g[0].turns:
            return None
        rows = s.turns[: int(s.g[0].turns)]
        return pl.DataFrame(
            {"row": rows.row.astype(np.int32), "t_s": rows.t, "counted": rows.counted, "pace": rows.pace}
        )

    def _log(self) -> DecisionLog:
        s = self.state
        lines = s.log[: int(s.g[0].log)].view(LOG, np.ndarray)
        placed = (lines["job"] >= 0) & (lines["row"] >= 0)
        spread = np.zeros(lines.size, np.int32)
        spread[placed] = s.attempts.pieces[lines["row"][placed]]
        reasons = (*REASONS, *getattr(self.program, "reasons", ()))
        return DecisionLog(lines, spread, DECISIONS, reasons, tuple(self.workload.ids), tuple(self.cluster.nodes))


def _owner(array: Any) -> np.ndarray[Any, Any]:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    owner: np.ndarray[Any, Any] = array
    return owner
