"""Max-min fairness by rounds, as Gavel (OSDI 2020) has it, written against the policy contract alone."""

import random

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.python_policy import PythonPolicy


def fair_shares(speeds, gpus, room):
    """Shares of time on each GPU type for which the job that fares worst fares best, then the next one, and so on.

    Args:
        speeds: (jobs, types); 0 where the job may not run.
        gpus, room: (jobs) of each gang, and (types) of each type.

    Returns:
        (jobs, types), as even over the types as can be; and of each job the GPUs' worth that it gets, for an equal part
    """
    worth = gpus[:, None] * speeds / (speeds @ room / room.sum())[:, None]
    level, rises = np.zeros(len(gpus)), np.ones(len(gpus), bool)
    while rises.any():
        _, most, stuck = best(worth, gpus, room, level, rises)
        level[rises] = most
        # those that keep the others down have a price in the program's dual
        rises &= ~stuck if (rises & stuck).any() else False
    return best(worth, gpus, room, level, rises)[0], level


def best(worth, gpus, room, level, rises):
    """The most that all jobs that rise can get, where the others get their level; without any, the evenest shares."""
    jobs, types = worth.shape
    at = np.arange(jobs * types)
    job, kind = at // types, at % types
    runs = np.flatnonzero(worth.ravel() > 0)
    # rows: what each job gets; its shares are at most 1; each type has so many GPUs
    row = [job, np.arange(jobs), jobs + job, 2 * jobs + kind]
    column = [at, np.full(jobs, at.size), at, at]
    value = [-worth.ravel(), rises, np.ones(at.size), gpus[job]]
    bounds = [np.where(rises, 0, -level * (1 - 1e-6)), np.ones(jobs), room]
    if not rises.any():
        # and: each share is at least so much of the type's part
        row += 2 * [2 * jobs + types + np.arange(runs.size)]
        column += [runs, np.full(runs.size, at.size)]
        value += [-np.ones(runs.size), (room[kind] * level[job] / gpus[job])[runs]]
        bounds += [np.zeros(runs.size)]
    row, column, value = map(np.concatenate, (row, column, value))
    limits = [(0, 1 if some > 0 else 0) for some in worth.ravel()] + [(0, None)]
    rows = coo_array((value, (row, column))).tocsr()
    found = linprog([0] * at.size + [-1], A_ub=rows, b_ub=np.concatenate(bounds), bounds=limits, method="highs")
    return found.x[:-1].reshape(jobs, types), found.x[-1], found.ineqlin.marginals[:jobs] < -1e-9


class MaxMinFairness(PythonPolicy):
    """Each round the jobs run that have had least of their share of time on a GPU type, the shares from an LP."""

    name = "gavel-max-min"
    title = "rounds in which jobs get max-min fair shares of time on each GPU type"
    source = "Gavel, OSDI 2020; rounds and priorities as in its simulator"
    preempts = True
    always = True
    parameters = (
        Parameter("round", 360.0, "seconds of a round; it ends sooner where all of its jobs do", least=1.0),
        Parameter("shares_every", 1920.0, "seconds between two computations of the shares, at least"),
        Parameter("by", "speed", "speed: by how fast jobs are on each type; time: all types alike", ("speed", "time")),
        Parameter("seed", 5.0, "of the order in which types choose, by time"),
    )

    def begin(self, view):
        self.next = self.reset = -np.inf
        self.new, self.draw = True, random.Random(int(self.params["seed"]))
        self.share, self.got, self.owed, self.plan, self.ran, self.speeds, self.servers = {}, {}, {}, {}, {}, {}, {}
        for server in range(len(view.servers)):
            self.servers.setdefault(view.gpu_type(server), []).append(server)
        self.types = list(self.servers)
        self.room = np.array([sum(view.servers[s] for s in some) for some in self.servers.values()])

    def on_submit(self, view, job):
        self.new = True
        told = [view.type_speed(job, kind) if self.params["by"] == "speed" else 1.0 for kind in self.types]
        room = [sum(view.servers[s] for s in self.servers[kind] if view.suits(job, s)) for kind in self.types]
        self.speeds[job] = np.where(np.array(room) >= view.gpus[job], told, 0.0)
        if not self.speeds[job].any():
            view.reject(job, "larger than any GPU type")

    def on_finish(self, view, job):
        self.new = True

    def decide(self, view):
        if (view.now >= self.next or not view.running) and (view.waiting or view.running):
            self.new_round(view)
            self.next = view.now + self.params["round"]
            view.timer(self.next)
        # those whose GPUs become free only after a suspension come later in the round
        for job in sorted(self.plan, key=lambda job: -view.gpus[job]):
            if job in view.waiting:
                self.put(view, job, self.plan[job])

    def new_round(self, view):
        jobs = sorted([*view.running, *view.waiting])
        for job in jobs:
            if job in self.plan:
                self.got[job][self.types.index(self.plan[job])] += view.ran(job) - self.ran.get(job, 0.0)
            self.ran[job] = view.ran(job)
        if self.new and view.now >= self.reset + self.params["shares_every"]:
            self.new_shares(view, jobs)
        self.plan = self.chosen(view, [job for job in jobs if job in self.share])
        for job in view.running:
            if {view.gpu_type(server) for server in view.placement(job)} != {self.plan.get(job)}:
                view.preempt(job, "its turn is over")

    def new_shares(self, view, jobs):
        half = self.params["round"] / 2
        for job in jobs:
            due = self.share[job] * (view.now - self.reset) - self.got[job] + half if job in self.share else 0.0
            self.owed[job] = self.owed.get(job, np.zeros(len(self.types))) + due
            self.got[job] = np.full(len(self.types), half)
        gpus = np.array([view.gpus[job] for job in jobs])
        shares, _ = fair_shares(np.array([self.speeds[job] for job in jobs]), gpus, self.room)
        self.share, self.reset, self.new = dict(zip(jobs, shares)), view.now, False

    def chosen(self, view, jobs):
        plan, order = {}, list(self.types)
        if self.params["by"] == "time":
            self.draw.shuffle(order)
        else:
            order.sort(key=lambda kind: -sum(self.speeds[job][self.types.index(kind)] for job in jobs))
        for kind in order:
            k = self.types.index(kind)
            room = self.room[k]
            # the job that has had least of its share first; of several the one that is owed most since it came
            first = {job: (self.share[job][k] / self.got[job][k], self.owed[job][k], self.share[job][k]) for job in jobs}
            for job in sorted(jobs, key=first.get, reverse=True):
                if job not in plan and view.gpus[job] <= room and self.speeds[job][k] > 0:
                    plan[job] = kind
                    room -= view.gpus[job]
        return plan

    def put(self, view, job, kind):
        free = {s: view.free_on(s) for s in self.servers[kind] if view.suits(job, s)}
        wanted, places = view.gpus[job], {}
        one = min((s for s in free if free[s] >= wanted), key=free.get, default=None)
        for server in [one] if one is not None else sorted(free, key=lambda s: -free[s]):
            some = min(free[server], wanted - sum(places.values()))
            if some:
                places[server] = some
        return view.start(job, "its turn", servers=places)
