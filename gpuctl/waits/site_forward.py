"""All waiting jobs, simulated by a site's own rules: the replay policy ``slurm``, from the present queue.

Running jobs are submitted first and start at once; waiting jobs are submitted at the log's last instant with their age;
jobs of past days follow. Run times are those that `gpuctl.waits.forward` draws. Past usage is charged first. The
configuration sets the order (weights, partitions, tiers), the nodes of partitions, limits, and the two passes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import Note, note
from gpuctl.replay.inputs.check import unplaceable
from gpuctl.replay.inputs.transforms import gather
from gpuctl.replay.models.records import Workload
from gpuctl.replay.policies.slurm.cluster import cluster_of
from gpuctl.replay.policies.slurm.program import SlurmProgram
from gpuctl.replay.run import Models, start_simulation
from gpuctl.slurm.site import read_site
from gpuctl.waits import features, forward
from gpuctl.waits.forward_kernel import HORIZON_S, random, run_of, seeded
from gpuctl.waits.forward_run_kernel import DAY_S, LOOKED_BACK_D, delay

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.replay.engine.simulation import Simulation
    from gpuctl.replay.models.records import Cluster
    from gpuctl.slurm.config import Site
    from gpuctl.waits.forward_kernel import Queue
    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LEAD_S = 1200.0
"""Before the queue is as it is: time for all that runs to start."""
CHARGED_S = 35 * DAY_S
"""What was used longer ago does not count."""
COMING_S = 7 * DAY_S
"""So far ahead jobs come."""
STEPS = 400
"""Instants between two looks at who has started."""


@dataclass(frozen=True)
class Forecasts:
    """Result of the simulations.

    Attributes:
        which: waiting jobs of the log that can be simulated.
        samples: their waits from the log's last instant on, s, in ascending order [jobs, simulations].
        plan: waits if all jobs run to their limits without new submissions [jobs].
        notes: notes on approximations of the configuration or the queue.
    """

    which: Ints
    samples: Floats
    plan: Floats
    notes: tuple[Note, ...]


def of_waiting(
    log: WaitLog, conf: Sequence[Path], order: str, run_curves: Floats | None = None, count: int = forward.SAMPLES
) -> Forecasts:
    """Simulate the waits of all waiting jobs from the log's last instant on, by a site's configuration.

    Args:
        log: of the cluster.
        conf: files and directories of the configuration.
        order: order of the queue in `forward.of_waiting`; unused here.
        run_curves: run times of the log's jobs by trees; None: draw run times from the past alone.
        count: simulations.

    Raises:
        UsageError: the configuration does not exist.
        InputError: it cannot be read, or its nodes fit no waiting job.
    """
    if split := next((path for path in conf if os.pathsep in str(path)), None):
        raise UsageError(f"--slurm-conf {split}: a path with {os.pathsep!r} in it cannot be split")
    queue = forward.at_end(log, order, run_curves)
    runs = np.flatnonzero(log.started & (log.end_s > log.taken_s))
    waits = np.flatnonzero(~log.started & np.isinf(log.leave_s) & (log.ready_s <= log.taken_s))
    waits = waits[features.sizes(log.rows)[waits] > 0]
    whole = _workload(log)
    site = read_site(conf)
    cluster = _cluster(site, log, whole)
    params = {"conf": os.pathsep.join(map(str, conf))}
    large = np.isin(np.arange(log.ready_s.size), unplaceable(whole, cluster))
    notes = [*cluster.notes]
    if site.preemption.by == "qos" and not any(qos.preempts or qos.within for qos in site.qos.values()):
        params["preempt"] = "none"
        notes.append(note("PreemptType is preempt/qos, but no QOS is known that preempts another one: nothing is "
                          "preempted; name the output of sacctmgr -P show qos, too"))  # fmt: skip
    if large[runs].any():
        notes.append(note("{n:,} running job{n||s} {n|has|have} no room on the nodes of their partition: left out",
                          n=int(large[runs].sum())))  # fmt: skip
    runs, waits = runs[~large[runs]], waits[~large[waits]]
    begins = np.full((count + 1, waits.size), HORIZON_S)
    if not waits.size:
        return Forecasts(waits, begins[1:].T, begins[0], tuple(notes))
    late = 0
    for number in range(-1, count):
        world = _World(log, whole, cluster, params, queue, runs, waits, large)
        simulation = world.simulation(number)
        begins[number + 1], late_now = world.run(simulation)
        if number >= 0:
            begins[number + 1] = np.minimum(begins[number + 1] + delay(queue, number + 1), HORIZON_S)
        late = max(late, late_now)
        if number == 0:
            notes += getattr(simulation.program, "notes", ())
    if late:
        notes.append(note("{n:,} running job{n||s} found no room at first in some simulations: which nodes jobs hold "
                          "is not known", n=late))  # fmt: skip
    return Forecasts(waits, np.sort(begins[1:], axis=0).T, begins[0], tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _World:
    """The initial state of all simulations."""

    log: WaitLog
    whole: Workload
    cluster: Cluster
    params: dict[str, str]
    queue: Queue
    runs: Ints
    waits: Ints
    large: NDArray[np.bool_]

    def simulation(self, number: int) -> Simulation:
        """Return one simulation, or the plan, before its first instant."""
        log, now = self.log, self.log.taken_s
        past = np.flatnonzero(log.started & (log.end_s <= now) & (log.end_s > now - CHARGED_S) & ~self.large)
        coming, when = self._coming(number)
        left, limit_left = self._left(number)
        order = np.concatenate([self.waits, self.runs, coming, past])
        kind = np.repeat(np.arange(4), [self.waits.size, self.runs.size, coming.size, past.size])
        limit = features.limits(log.rows)[order]
        run = np.array([self._run(number, int(j), of) for j, of in zip(order.tolist(), kind.tolist(), strict=True)])
        submit = np.concatenate([log.ready_s[self.waits] - now, np.full(self.runs.size, -LEAD_S), when,
                                 np.full(past.size, 2 * HORIZON_S)])  # fmt: skip
        eligible = np.maximum(submit, np.where(kind == 0, 0.0, -np.inf))
        run[kind == 1], limit[kind == 1] = left + LEAD_S, limit_left + LEAD_S
        rows = np.lexsort((np.arange(order.size), submit))
        begin = float(submit.min())
        times = ((each[rows] - begin) for each in (submit, eligible))
        jobs = _gathered(self.whole, order[rows], rows, (*times, run[rows], limit[rows]))
        simulation = start_simulation(jobs, self.cluster, ("slurm", self.params), Models())
        place = np.empty(order.size, np.int64)
        place[rows] = np.arange(order.size)
        assert isinstance(simulation.program, SlurmProgram)  # noqa: S101 - its policy is that
        # running jobs are charged from their start in the simulation on
        until = np.concatenate([log.end_s[past], np.full(self.runs.size, now - LEAD_S)])
        ran = until - log.leave_s[np.concatenate([past, self.runs])]
        charged = place[np.concatenate([np.flatnonzero(kind == k) for k in (3, 1)])]
        simulation.program.begin_within(charged, ran, now + begin - until)
        return simulation

    def run(self, simulation: Simulation) -> tuple[Floats, int]:
        """Return the seconds until each waiting job starts, and the number of running jobs not started by now."""
        first = np.array([float(job) for job in simulation.workload.ids], np.float64)
        waits, runs = (
            np.flatnonzero(first < self.waits.size),
            np.flatnonzero((first >= self.waits.size) & (first < self.waits.size + self.runs.size)),
        )
        now = float(simulation.workload.eligible[waits][0])
        waits = waits[np.argsort(first[waits], kind="stable")]
        while simulation.advance(now + HORIZON_S, STEPS):
            if np.isfinite(simulation.state.jobs.first_start[waits]).all() or simulation.now >= now + HORIZON_S:
                break
        start = simulation.state.jobs.first_start
        late = int((~(start[runs] <= now)).sum())
        begins = np.where(np.isfinite(start[waits]), start[waits] - now, HORIZON_S)
        return np.minimum(begins, HORIZON_S), late

    def _coming(self, number: int) -> tuple[Ints, Floats]:
        """Return past jobs that are submitted again, with times in seconds from now."""
        log, now = self.log, self.log.taken_s
        known = (now - float(log.ready_s[0])) / DAY_S
        if number < 0 or known < 1:
            return np.zeros(0, np.int64), np.zeros(0)
        x, found, when = seeded(number, 3), [], []
        for day in range(int(COMING_S / DAY_S)):
            x = random(x)
            back = 1 + x % max(min(LOOKED_BACK_D, int(known)), 1)
            which = np.flatnonzero(
                (log.ready_s >= now - back * DAY_S) & (log.ready_s < now - (back - 1) * DAY_S) & ~self.large
            )
            which = which[self.queue.per[which] > 0]
            found.append(which)
            when.append(log.ready_s[which] - now + (day + back) * DAY_S)
        return np.concatenate(found), np.concatenate(when)

    def _run(self, number: int, job: int, kind: int) -> float:
        """Return the run time of a job that waits or arrives; other jobs have it already, or never start."""
        limit = float(self.queue.limit[job])
        if kind in {1, 3} or number < 0:
            return limit
        return min(float(run_of(self.queue, job, 0.0, seeded(number, job if kind == 0 else job + 7))), limit)

    def _left(self, number: int) -> tuple[Floats, Floats]:
        """Return the remaining run time of each running job, and the remaining limit."""
        elapsed = self.log.taken_s - self.log.leave_s[self.runs]
        limit = self.queue.limit[self.runs]
        run = (
            limit
            if number < 0
            else np.array(
                [
                    run_of(self.queue, j, e, seeded(number, j))
                    for j, e in zip(self.runs.tolist(), elapsed.tolist(), strict=True)
                ]
            )
        )
        return np.maximum(run - elapsed, 1.0), np.maximum(limit - elapsed, 60.0)


def _cluster(site: Site, log: WaitLog, whole: Workload) -> Cluster:
    """Return the nodes of a configuration; each counts as one if the log counts nodes."""
    if log.unit == "nodes":
        site = replace(site, nodes=tuple(replace(node, gpus=1, gpu_type=None) for node in site.nodes))
    return cluster_of(site, whole)


def _workload(log: WaitLog) -> Workload:
    """Return all jobs of a log in the form of a replay."""
    jobs = log.ready_s.size
    partition = [name.partition(",")[0] for name in log.rows["queue"].to_list()]
    queues, users = dict.fromkeys(partition), dict.fromkeys(log.rows["user"].to_list())
    of_queue = {name: k for k, name in enumerate(queues)}
    of_user = {name: k for k, name in enumerate(users)}
    zero = np.zeros(jobs)
    return Workload(
        name=log.name,
        ids=tuple(map(str, range(jobs))),
        submit=zero,
        eligible=zero,
        gpus=np.ceil(features.sizes(log.rows)).astype(np.int64),
        queue=np.array([of_queue[name] for name in partition], np.int64),
        user=np.array([of_user[name] for name in log.rows["user"].to_list()], np.int64),
        time_limit=features.limits(log.rows),
        gpu_type=np.full(jobs, -1, np.int64),
        app=np.arange(jobs, dtype=np.int64),
        depends=np.zeros((0, 2), np.int64),
        segment_start=np.arange(jobs + 1, dtype=np.int64),
        segment_s=np.ones(jobs),
        segment_fails=np.zeros(jobs, np.bool_),
        recorded_start=np.full(jobs, np.nan),
        piece_start=np.zeros(jobs + 1, np.int64),
        piece_node=np.zeros(0, np.int64),
        piece_gpus=np.zeros(0, np.int64),
        state=("",) * jobs,
        queues=tuple(queues),
        users=tuple(users),
        gpu_types=(),
        origin=None,
    )


def _gathered(whole: Workload, jobs: Ints, names: Ints, times: tuple[Floats, ...]) -> Workload:
    """Select jobs, possibly repeatedly, with new names and times: submission, eligible, run time, limit."""
    submit, eligible, run, limit = times
    return replace(
        gather(whole, jobs), ids=tuple(map(str, names.tolist())), app=np.arange(jobs.size, dtype=np.int64),
        submit=submit, eligible=eligible, segment_s=run, time_limit=limit,
    )  # fmt: skip
