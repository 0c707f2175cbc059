"""Max-min fairness by rounds, as Gavel (OSDI 2020) has it, written against the policy contract alone."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from gpuctl.replay.policy import Parameter, PythonPolicy


def fair_shares(speeds, gpus, room):
    """Shares of time on each GPU type for which the job that fares worst fares best.

    Args:
        speeds: (jobs, types); 0 where the job may not run.
        gpus: (jobs) of each gang.
        room: (types) GPUs of each type.

    Returns:
        (jobs, types), and the least that any job gets: its speed for its speed on an equal part of all types, times its
        GPUs.
    """
    jobs, types = speeds.shape
    worth = gpus[:, None] * speeds / (speeds @ room / room.sum())[:, None]
    at = np.arange(jobs * types)
    job, kind = at // types, at % types
    # rows: what each job gets is at least z; its shares are at most 1; each type has so many GPUs
    row = np.concatenate([job, np.arange(jobs), jobs + job, 2 * jobs + kind])
    column = np.concatenate([at, np.full(jobs, at.size), at, at])
    value = np.concatenate([-worth.ravel(), np.ones(jobs), np.ones(at.size), gpus[job]])
    bounds = np.concatenate([np.zeros(jobs), np.ones(jobs), room])
    # beyond the worst off, more is better than less
    aim = np.append(-1e-4 * worth.ravel() / max(worth.sum(), 1e-9), -1.0)
    most = [(0, 1 if speed > 0 else 0) for speed in speeds.ravel()] + [(0, None)]
    found = linprog(aim, A_ub=coo_array((value, (row, column))).tocsr(), b_ub=bounds, bounds=most, method="highs")
    return found.x[:-1].reshape(jobs, types), found.x[-1]


class MaxMinFairness(PythonPolicy):
    """Each round the jobs run that have had least of their share of time on a GPU type, the shares from an LP."""

    name = "gavel-max-min"
    title = "rounds in which jobs get max-min fair shares of time on each GPU type"
    source = "Gavel, OSDI 2020; priorities as in its simulator"
    preempts = True
    always = True
    parameters = (
        Parameter("round", 360.0, "seconds of a round", least=1.0),
        Parameter("shares_every", 1920.0, "seconds between two computations of the shares, at least"),
        Parameter("by", "speed", "speed: by how fast jobs are on each type; time: all types alike", ("speed", "time")),
    )

    def begin(self, view):
        self.next = self.reset = -np.inf
        self.new, self.turn = True, 0
        self.share, self.got, self.plan, self.ran, self.left = {}, {}, {}, {}, {}
        # -1: the type is not known
        self.types = sorted({view.gpu_type(server) for server in range(len(view.servers))})

    def decide(self, view):
        self.new |= any(what == "queued" and who not in self.left or what == "finished" for what, who in view.events)
        if view.now >= self.next and (len(view.waiting) or view.running):
            self.new_round(view)
            self.next = view.now + self.params["round"]
            view.timer(self.next)
        # those whose GPUs have only now become free come later in the round
        for job in sorted(self.plan, key=lambda job: -view.gpus.get(job, 0)):
            if job in view.waiting:
                self.put(view, job, self.plan[job])

    def new_round(self, view):
        jobs = [*view.running, *view.waiting]
        for job in jobs:
            self.left[job] = True
            if job in self.plan:
                self.got[job, self.plan[job]] += view.ran(job) - self.ran.get(job, 0.0)
            self.ran[job] = view.ran(job)
        if self.new and view.now >= self.reset + self.params["shares_every"]:
            self.new_shares(view, jobs)
        self.plan = self.chosen(view, [job for job in jobs if job in self.share])
        for job in view.running:
            if {view.gpu_type(server) for server in view.placement(job)} != {self.plan.get(job)}:
                view.preempt(job, "its turn is over")

    def new_shares(self, view, jobs):
        speeds = np.array([[self.speed(view, job, kind) for kind in self.types] for job in jobs])
        room = [sum(gpus for s, gpus in enumerate(view.servers) if view.gpu_type(s) == kind) for kind in self.types]
        shares, _ = fair_shares(speeds, np.array([view.gpus[job] for job in jobs]), np.array(room))
        self.share = dict(zip(jobs, shares))
        half = self.params["round"] / 2
        self.got = {(job, kind): half for job in jobs for kind in self.types}
        self.reset, self.new = view.now, False

    def speed(self, view, job, kind):
        if not any(view.gpu_type(s) == kind and view.suits(job, s) for s in range(len(view.servers))):
            return 0.0
        return view.type_speed(job, kind) if self.params["by"] == "speed" else 1.0

    def chosen(self, view, jobs):
        plan = {}
        # the fastest type chooses first; where all are alike, each in turn
        order = sorted(range(len(self.types)), key=lambda k: -sum(self.speed(view, job, self.types[k]) for job in jobs))
        self.turn = self.turn + 1 if self.params["by"] == "time" else 0
        for k in order[self.turn % len(order) :] + order[: self.turn % len(order)]:
            kind = self.types[k]
            all_time = sum(self.got[job, kind] for job in self.share if (job, kind) in self.got)
            room = sum(gpus for s, gpus in enumerate(view.servers) if view.gpu_type(s) == kind)
            urgent = {job: self.share[job][k] / (self.got[job, kind] / all_time) for job in jobs}
            for job in sorted(jobs, key=lambda job: (-urgent[job], job)):
                if job not in plan and view.gpus[job] <= room and self.speed(view, job, kind) > 0:
                    plan[job] = kind
                    room -= view.gpus[job]
        return plan

    def put(self, view, job, kind):
        free = {s: view.free_on(s) for s in range(len(view.servers)) if view.gpu_type(s) == kind and view.suits(job, s)}
        wanted, places = view.gpus[job], {}
        one = min((s for s in free if free[s] >= wanted), key=free.get, default=None)
        order = [one] if one is not None else sorted(free, key=lambda s: -free[s])
        for server in order:
            some = min(free[server], wanted - sum(places.values()))
            if some:
                places[server] = some
        return view.start(job, "its turn", servers=places)
