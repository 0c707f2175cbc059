"""Gavel's rounds (OSDI 2020, section 5): run the jobs with least of their time share on a GPU type so far."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.python_policy import PythonPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.contract.view import View

    Floats = NDArray[np.float64]

ROUND_PARAMETERS = (
    Parameter("round", 360.0, "seconds of a round, Gavel's; it ends sooner if all of its jobs end", least=1.0),
    Parameter("shares_every", 1920.0, "seconds between two computations of the shares, at least; its simulator's"),
    Parameter("by", "speed", "speed: by the jobs' speed on each type; time: all types equal", ("speed", "time")),
    Parameter("seed", 5.0, "seed of the order in which types choose, by time"),
)


class GavelRounds(PythonPolicy):
    """Rounds by shares that a subclass computes, see `shares`."""

    preempts = True
    always = True
    parameters: ClassVar[tuple[Parameter, ...]] = ROUND_PARAMETERS

    def shares(self, view: View, jobs: Sequence[int], speeds: Floats, gpus: Floats) -> Floats:
        """Each job's share of time on each type.

        Args:
            view: of the simulation.
            jobs: waiting and running ones, by number.
            speeds: (jobs, types); 0 if a job may not run there.
            gpus: (jobs) of each gang.

        Returns:
            (jobs, types)
        """
        raise NotImplementedError

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.next = self.reset = -np.inf
        self.new = True
        self.draw = random.Random(int(self.params["seed"]))  # noqa: S311 - no secret
        self.share: dict[int, Floats] = {}
        self.got: dict[int, Floats] = {}
        self.owed: dict[int, Floats] = {}
        self.speeds: dict[int, Floats] = {}
        self.ran: dict[int, float] = {}
        self.plan: dict[int, int] = {}
        self.on: dict[int, int] = {}  # the type that a job was started on last
        self.nodes: dict[int, list[int]] = {}
        for node in range(len(view.nodes)):
            self.nodes.setdefault(view.gpu_type(node), []).append(node)
        self.types = list(self.nodes)
        self.room = np.array([sum(view.nodes[s] for s in some) for some in self.nodes.values()], np.float64)

    def on_submit(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        self.new = True
        speeds = [view.type_speed(job, kind) if self.params["by"] == "speed" else 1.0 for kind in self.types]
        room = [sum(view.nodes[s] for s in self.nodes[kind] if view.suits(job, s)) for kind in self.types]
        self.speeds[job] = np.where(np.array(room) >= view.gpus[job], speeds, 0.0)
        if not self.speeds[job].any():
            view.reject(job, "larger than any GPU type")

    def on_finish(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        self.new = True
        for known in (self.share, self.got, self.owed, self.speeds, self.ran, self.plan, self.on):
            known.pop(job, None)

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        if (view.now >= self.next or not view.running) and (view.waiting or view.running):
            self.new_round(view)
            self.next = view.now + self.params["round"]
            view.timer(self.next)
        # jobs whose GPUs become free only after a suspension start later in the round
        for job in sorted(self.plan, key=lambda job: -view.gpus[job]):
            if job in view.waiting:
                self.put(view, job, self.plan[job])

    def new_round(self, view: View) -> None:
        """Count received time, choose the jobs of the coming round, and stop the others."""
        running = view.running
        jobs = sorted([*running, *view.waiting])
        for job in jobs:
            ran = view.ran(job)
            if job in self.plan and job in self.got:
                self.got[job][self.types.index(self.plan[job])] += ran - self.ran.get(job, 0.0)
            self.ran[job] = ran
        if self.new and view.now >= self.reset + self.params["shares_every"]:
            self.new_shares(view, jobs)
        self.plan = self.chosen(view, [job for job in jobs if job in self.share])
        for job in running:
            if self.on[job] != self.plan.get(job):
                view.preempt(job, "its turn is over")

    def new_shares(self, view: View, jobs: Sequence[int]) -> None:
        """Recompute the shares; deficits of the old ones are kept."""
        half = self.params["round"] / 2
        for job in jobs:
            due = self.share[job] * (view.now - self.reset) - self.got[job] + half if job in self.share else 0.0
            self.owed[job] = self.owed.get(job, np.zeros(len(self.types))) + due
            self.got[job] = np.full(len(self.types), half)
        gpus = np.array([view.gpus[job] for job in jobs], np.float64)
        shares = self.shares(view, jobs, np.array([self.speeds[job] for job in jobs]), gpus)
        self.share, self.reset, self.new = dict(zip(jobs, shares, strict=True)), view.now, False

    def chosen(self, view: View, jobs: Sequence[int]) -> dict[int, int]:
        """The jobs of the coming round, and the type of each."""
        plan: dict[int, int] = {}
        order = list(self.types)
        if self.params["by"] == "time":
            self.draw.shuffle(order)
        else:
            order.sort(key=lambda kind: -sum(self.speeds[job][self.types.index(kind)] for job in jobs))
        for kind in order:
            k = self.types.index(kind)
            room = self.room[k]
            # the job with the least of its share first; of several the one with the largest deficit since submission
            first = {j: (self.share[j][k] / self.got[j][k], self.owed[j][k], self.share[j][k]) for j in jobs}
            for job in sorted(jobs, key=first.__getitem__, reverse=True):
                if job not in plan and view.gpus[job] <= room and self.speeds[job][k] > 0:
                    plan[job] = kind
                    room -= view.gpus[job]
        return plan

    def put(self, view: View, job: int, kind: int) -> bool:
        """Start a job on nodes of a type: on the fullest one that holds it, else on the emptiest ones."""
        free = {s: view.free_on(s) for s in self.nodes[kind] if view.suits(job, s)}
        wanted = view.gpus[job]
        places: dict[int, int] = {}
        one = min((s for s in free if free[s] >= wanted), key=free.__getitem__, default=None)
        for node in [one] if one is not None else sorted(free, key=lambda s: -free[s]):
            some = min(free[node], wanted - sum(places.values()))
            if some:
                places[node] = some
        started = view.start(job, "its turn", nodes=places)
        if started:
            self.on[job] = kind
        return started
