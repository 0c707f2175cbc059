"""``gpuctl/Replay-v0``: any replay as an environment of Gymnasium, through the contract of policies and `fork`.

At each instant at which a waiting job may fit, the agent names jobs to start, one per step, or advances to the next. It
sees what a policy sees: submitted jobs, and true run times only on request.
"""

from __future__ import annotations

import copy
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np

from gpuctl.compiled import jit
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract import view_kernel as vk
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine.setup import grow
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.engine.state import ENDED, GROW, STEPPED
from gpuctl.replay.inputs.check import check
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import take
from gpuctl.replay.run import Models

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

    Seen = NDArray[np.float32]

OF_JOB, OF_ALL = 6, 6
"""Observed numbers per waiting job, and overall.

Of a job: GPUs over those of the cluster; log(1 + s) / 10 of its wait, of its time limit, 0 if it has none, and of its
true run time, 0 unless requested; whether it may fit; 1. Of all: free GPUs over those of the cluster; log(1 + n) / 10
of the jobs that wait, and that run; sine and cosine of the time of day; GPUs that waiting jobs request, over those of
the cluster, at most `MOST`."""

MOST = 10.0
"""Bound at which observations are cut."""

HOUR_S, DAY_S = 3600.0, 86_400.0
FEW = 1_000
"""Fewer jobs are simulated as Python: compiling takes longer."""


class Agent(PythonPolicy):
    """A policy whose decisions come from outside."""

    name = "agent"
    title = "decided from outside, step by step"
    source = "an environment of Gymnasium"
    oracle = True

    def decide(self, view: View) -> None:
        """Never called: the environment acts through the view."""


class Replay(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """Choose which waiting jobs start now.

    Observation: one row with `OF_JOB` numbers for each of the first `most` waiting jobs, then `OF_ALL`. Actions: 0
    advances to the next instant, k starts the k-th waiting job; one that does not fit stays, and may not be named again
    at this instant. If nothing runs and no job is to come, advancing starts the first waiting job. Reward: minus the
    hours that jobs have waited since the previous step, over the number of jobs; an episode sums to minus the mean wait
    in hours.

    Args:
        jobs: a CSV as for `gpuctl replay`, or a workload; None: made-up jobs.
        cluster: nodes, as for `gpuctl replay --cluster`.
        most: waiting jobs that are observed.
        window: jobs of an episode, consecutive ones drawn at random; None: all.
        run_times: whether true run times are observed, as by an oracle policy.
        placement: where gangs go: any, consolidate, spread.
        overhead: cost of a resumption, as for ``--overhead``.
        made: number of made-up jobs.
        seed: of made-up jobs.

    Raises:
        UsageError: an invalid cluster, placement or cost.
        InputError: the jobs cannot be read, or do not fit on the nodes.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        jobs: str | Path | Workload | None = None,
        cluster: str | Cluster = "4x8",
        *,
        most: int = 16,
        window: int | None = None,
        run_times: bool = False,
        placement: str | None = None,
        overhead: str | None = None,
        made: int = 100,
        seed: int = 0,
    ) -> None:
        found = synthetic_day(made, seed) if jobs is None else jobs
        self.workload = read_jobs(found) if isinstance(found, (str, Path)) else found
        self.cluster = parse_cluster(cluster, self.workload) if isinstance(cluster, str) else cluster
        check(self.workload, self.cluster)
        if window is not None and not 1 <= window <= self.workload.size:
            raise UsageError(f"window {window}: expected 1 to {self.workload.size} jobs")
        self.most, self.window, self.run_times = most, window, run_times
        self._models = Models(placement=placement, overhead=overhead)
        self._begun: tuple[int, Simulation] | None = None
        self._simulation: Simulation | None = None
        size = most * OF_JOB + OF_ALL
        self.observation_space = gymnasium.spaces.Box(-1.0, MOST, (size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(most + 1)

    # ---- Gymnasium's

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode at the job ``options={"first": NUMBER}`` or, with a window, at a random one."""
        super().reset(seed=seed)
        last = self.workload.size - (self.window or self.workload.size)
        wanted = (options or {}).get("first")
        first = int(self.np_random.integers(last + 1)) if wanted is None else int(wanted)
        if not 0 <= first <= last:
            raise UsageError(f"first {first}: expected 0 to {last}")
        if self._begun is None or self._begun[0] != first:
            self._begun = first, self._new(first)
        # the first episode's start is kept, and each episode is a fork of it
        self._simulation = self._begun[1].fork()
        self._open, self._waited = False, 0.0
        self._tried: set[int] = set()
        self._until = float(self._view.now)
        with jit.interpreted(self._simulation.interpreted):
            self._next()
        return self._seen(), {"first": first}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Start a waiting job, or advance."""
        self._waited = 0.0
        shown = self._shown()
        k = int(action) - 1
        with jit.interpreted(self._of.interpreted):
            if self._open and 0 <= k < len(shown) and shown[k] not in self._tried:
                if not self._view.start(shown[k], "the agent's choice"):
                    self._tried.add(shown[k])
                if not self._may_fit():
                    self._next()
            elif self._open:
                self._next()
        over = not self._open
        return self._seen(), -self._waited / HOUR_S / self._of.workload.size, over, False, {"now_s": self._view.now}

    def action_masks(self) -> NDArray[np.bool_]:
        """Mask of valid actions: advancing, and jobs that may fit."""
        found = np.zeros(self.most + 1, bool)
        found[0] = True
        for k, job in enumerate(self._shown()):
            found[k + 1] = self._fits(job)
        return found

    # ---- other features of a replay

    def fork(self) -> Replay:
        """An independent copy of the episode at the same instant, for search."""
        twin = copy.copy(self)
        twin._simulation = self._of.fork()
        twin._tried = set(self._tried)
        if twin._view._state is not twin._of.state:
            twin._view._bind(twin._of.state)
        return twin

    def outcome(self) -> Outcome:
        """The outcome so far, as of any policy."""
        return self._of.outcome()

    # ---- inside

    @property
    def _of(self) -> Simulation:
        if self._simulation is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        return self._simulation

    @property
    def _view(self) -> View:
        program: Any = self._of.program
        found: View = program._view
        return found

    def _new(self, first: int) -> Simulation:
        some = self.workload
        if self.window is not None:
            some = take(some, np.arange(first, first + self.window))
        return Simulation(
            some, self.cluster, Agent(), self._models.settings(some, self.cluster), interpreted=some.size < FEW
        )

    def _next(self) -> None:
        """Advance to the next instant at which a waiting job may fit; `_open` holds whether there is one."""
        simulation, view = self._of, self._view
        if view._state is not simulation.state:
            view._bind(simulation.state)
        if self._open:
            self._close()
        while True:
            status, now, fresh, free, jobs, changes = vk.next_decision(simulation.state.address, math.inf, 1000, 1, 0)
            if status == GROW:
                grow(simulation.state)
            elif status == ENDED:
                return
            elif status == STEPPED and fresh >= 0:
                self._waited += len(view.waiting) * (now - self._until)
                self._until = now
                view._begin(now, fresh, free, jobs, changes)
                self._tried.clear()
                self._open = True
                if self._may_fit():
                    return
                self._close()

    def _close(self) -> None:
        """End the instant. If nothing else would ever happen, start the first waiting job that fits."""
        view = self._view
        if view._come == len(view._coming) and not view.running:
            for job in view.waiting:
                if view.start(job, "nothing else would happen"):
                    break
        view._do(vk.decided)
        self._open = False

    def _shown(self) -> list[int]:
        return [job for _, job in zip(range(self.most), self._view.waiting, strict=False)]

    def _fits(self, job: int) -> bool:
        return job not in self._tried and self._view.gpus[job] <= self._view.free

    def _may_fit(self) -> bool:
        return any(self._fits(job) for job in self._shown())

    def _seen(self) -> Seen:
        view, total = self._view, float(self.cluster.total_gpus)
        rows = np.zeros((self.most, OF_JOB))
        for k, job in enumerate(self._shown() if self._open else ()):
            limit = view.limit[job]
            rows[k] = (
                view.gpus[job] / total, math.log1p(max(view.now - view.submit[job], 0)) / 10,
                math.log1p(limit) / 10 if math.isfinite(limit) else 0.0,
                math.log1p(view.duration(job)) / 10 if self.run_times else 0.0, float(self._fits(job)), 1.0,
            )  # fmt: skip
        angle = 2 * math.pi * (view.now % DAY_S) / DAY_S
        requested = sum(view.gpus[job] for job in view.waiting)
        of_all = (
            view.free / total, math.log1p(len(view.waiting)) / 10, math.log1p(len(view.running)) / 10,
            math.sin(angle), math.cos(angle), requested / total,
        )  # fmt: skip
        found: Seen = np.clip(np.concatenate([rows.ravel(), of_all]), -1.0, MOST).astype(np.float32)
        return found


def synthetic_day(jobs: int, seed: int) -> Workload:
    """Jobs of a synthetic day: more by day than by night, most of them small and short."""
    draw = np.random.Generator(np.random.PCG64(seed))
    mean_s = 600.0
    even = np.cumsum(draw.exponential(mean_s, jobs))
    submit = np.sort(np.maximum(even + 3600 * 4 * np.sin(2 * np.pi * even / DAY_S) / np.pi, 0)).astype(int)
    run = np.maximum(draw.lognormal(8, 1.2, jobs), 10).astype(int)
    gpus = draw.choice([1, 1, 2, 4, 8], jobs)
    limit = run * draw.integers(1, 5, jobs)
    rows = zip(submit.tolist(), run.tolist(), gpus.tolist(), limit.tolist(), strict=True)
    lines = [f"made{k},{','.join(map(str, row))}" for k, row in enumerate(rows)]
    with tempfile.TemporaryDirectory(prefix="gpuctl-") as folder:
        path = Path(folder) / "made-up.csv"
        path.write_text("\n".join(["job_id,submit_time,duration,num_gpus,requested_time", *lines]) + "\n", "utf-8")
        return read_jobs(path)
