"""The view of a simulation for a policy written in Python, and its actions.

Jobs, nodes, queues and users are numbers. Decisions take effect at once and are checked by the engine: one that cannot
be carried out, or names an unknown job or node, changes nothing and returns false.
"""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.replay.contract import view_kernel as vk
from gpuctl.replay.contract.actions import Actions
from gpuctl.replay.contract.arrived import ByNumber, OfArrived, by_submission
from gpuctl.replay.contract.gpu_type_view import TypesView
from gpuctl.replay.contract.job_info_view import JobInfoView
from gpuctl.replay.contract.waiting import WaitingJobs
from gpuctl.replay.engine.state import (
    ANY,
    E_FINISHED,
    E_JOB_TIMER,
    E_LEASE,
    E_NODE_DOWN,
    E_NODE_UP,
    E_QUEUED,
    E_RECLAIM,
    E_ROUND,
    E_TIMER,
    RUNNING,
    WAITING,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

EVENTS = {
    E_QUEUED: "queued",
    E_FINISHED: "finished",
    E_NODE_DOWN: "node_down",
    E_NODE_UP: "node_up",
    E_LEASE: "lease",
    E_JOB_TIMER: "wake",
    E_TIMER: "timer",
    E_ROUND: "again",
    E_RECLAIM: "reclaim",
}

_GIVEN = frozenset(
    (
        "now", "round", "free", "waiting", "gpus", "submit", "limit", "least", "most", "queue", "user", "job_class",
        "nodes", "quota", "types", "time_slice",
    )
)  # fmt: skip
"""Attributes that a policy reads and cannot write."""


class View(Actions, JobInfoView, TypesView):
    """A simulation as a policy sees it: events so far, and submitted jobs.

    Reading a job that has not been submitted raises `InputError`; an action on one returns false.

    Attributes:
        now: seconds.
        round: number of this instant's round; None: it is no round.
        free: free GPUs of all nodes.
        waiting: jobs in the queue, in order of queueing.
        gpus, least, most, submit, limit, queue, user, job_class: of each submitted job, by number:
            gang size, the fewest and the most GPUs that it can run on, seconds, requested seconds (inf: none), numbers;
            users and classes are numbered as they first submit, -1: not known.
        nodes: GPUs of each node, 0 while it is down.
        quota: GPUs of the quota of each queue (inf: none; also for -1, jobs without a queue).

    All are read-only.
    """

    def __init__(self, policy: Policy, workload: Workload, cluster: Cluster, state: State) -> None:
        self.now = 0.0
        self.round: int | None = None
        self.free = int(state.g.free[0])
        self.waiting = WaitingJobs(workload.size)
        self.gpus: OfArrived[int] = OfArrived(self)
        self.submit: OfArrived[float] = OfArrived(self)
        self.limit: OfArrived[float] = OfArrived(self)
        self.least: OfArrived[int] = OfArrived(self)
        self.most: OfArrived[int] = OfArrived(self)
        self.queue: OfArrived[int] = OfArrived(self)
        self.user: OfArrived[int] = OfArrived(self)
        self.job_class: OfArrived[int] = OfArrived(self)
        self._there: list[int] = cluster.gpus.tolist()
        self._changes = 0
        self.nodes = ByNumber.of(self._there, "node", policy.name)
        self.quota = ByNumber.of(cluster.quota.tolist(), "queue", policy.name, math.inf)
        self.reasons: list[str] = []
        self._codes: dict[str, int] = {"": 0}
        self._policy = policy
        self._left = self._tries = 0
        self._begun = False
        self._nodes, self._most = len(cluster.nodes), cluster.total_gpus
        self._work = workload.segment_s, workload.segment_start
        self._coming, self._come, self._due = by_submission(workload, state), 0, -math.inf
        self._own = ANY
        self._bind(state)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _GIVEN and "_made" in self.__dict__:
            raise self._only_looks(f"view.{name}")
        super().__setattr__(name, value)

    # ---- looking

    @property
    def events(self) -> list[tuple[str, int]]:
        """Events of this instant: (event, number of the job, node or timer).

        Events are queued, finished, node_down, node_up, lease (it has expired), wake (the job's timer), timer, reclaim,
        round, and again (jobs have lost their leases, and their GPUs are free).
        """
        return [("round" if kind == E_ROUND and who else EVENTS[kind], who) for kind, who in self._happened()]

    def _happened(self) -> Iterator[tuple[int, int]]:
        """Events of this instant as engine numbers: of `EVENTS`, and of the job, node or timer."""
        events, count = self._state.events, int(self._state.g.events[0])
        return zip(events.kind[:count].tolist(), events.who[:count].tolist(), strict=True)

    @property
    def running(self) -> list[int]:
        """Jobs that run, by number."""
        if self._running is None:
            self.__dict__["_running"] = (self._state.jobs.state == RUNNING).nonzero()[0].tolist()
        return [*self._running]  # type: ignore[misc]  # set above

    def state(self, job: int) -> str:
        """Waiting, running or other."""
        self._seen(job)
        code = self._job_state[job]
        return {WAITING: "waiting", RUNNING: "running"}.get(code, "other")

    def attained(self, job: int) -> float:
        """GPU-seconds that the job has had so far; of a GPU that it shares, an equal part."""
        return float(self._up_to_now(job)[2])

    def ran(self, job: int) -> float:
        """Seconds that the job has been on GPUs so far."""
        return float(self._up_to_now(job)[3])

    def held(self, job: int) -> int:
        """GPUs that the job is on now, shared ones as well."""
        self._seen(job)
        return int(self._job_held[job])

    def placement(self, job: int) -> dict[int, int]:
        """GPUs that the job is on, by node."""
        self._seen(job)
        s = self._state
        of = s.jobs[job]
        if of.held == 0:
            return {}
        row = s.attempts[of.row]
        first = int(row.first)
        # one element after the other: arrays of a field take NumPy ten times as long
        found = {}
        for k in range(first, first + int(row.pieces)):
            piece = s.pieces[k]
            found[int(piece.node)] = int(piece.gpus)
        return found

    def speed(self, job: int, gpus: int | None = None) -> float:
        """Speed of a job on a number of GPUs (None: its present ones), relative to its gang; 0 on none.

        The job counts as alone and as well placed as its gang; placement, GPU type and co-located jobs are not
        included.
        """
        self._seen(job)
        count = self.held(job) if gpus is None else index(gpus)
        return float(vk.speed_on(self._address, index(job), min(count, self._most))) if count > 0 else 0.0

    def host(self, job: int) -> int | None:
        """The owner of a job's GPUs; None if it owns them or has none."""
        self._seen(job)
        found = int(self._job_host[job])
        return found if found >= 0 else None

    def colocated(self, job: int) -> list[int]:
        """The other jobs on the GPUs of a job's group: their owner first, then guests by size; [] none."""
        self._seen(job)
        owner = job if self._job_host[job] < 0 else self._job_host[job]
        if not self._job_sharers[owner]:
            return []
        found, at = [owner], self._job_guest[owner]
        while at >= 0:
            found.append(at)
            at = self._job_next[at]
        return [other for other in found if other != job]

    def free_on(self, node: int) -> int:
        """Free GPUs of a node; 0 if it is down."""
        place = self._state.nodes[self._is_node(node)]
        return int(place.free) if place.up else 0

    def up(self, node: int) -> bool:
        """Whether a node is up."""
        return bool(self._state.nodes[self._is_node(node)].up)

    def queue_used(self, queue: int) -> int:
        """GPUs that the jobs of a queue hold: a shared one counts once, for its owner's queue."""
        if not -1 <= index(queue) < len(self.quota):
            raise InputError(
                f"{self._policy.name}: queue {queue}: expected 0 to {len(self.quota) - 1}, or -1 for jobs without one"
            )
        return int(self._state.queue_used[queue])

    def remaining(self, job: int) -> float:
        """Remaining work of the job, in seconds.

        Raises:
            InputError: the policy does not declare ``oracle``.
        """
        self._may_know(job)
        done, work, _, _ = self._up_to_now(job)
        seconds, first = self._work
        later = float(seconds[int(self._state.jobs.segment[job]) + 1 : first[job + 1]].sum())
        return float(work - done) + later

    def duration(self, job: int) -> float:
        """Total work of the job, in seconds.

        Raises:
            InputError: the policy does not declare ``oracle``.
        """
        self._may_know(job)
        seconds, first = self._work
        return float(seconds[first[job] : first[job + 1]].sum())

    def home_class(self, node: int) -> int:
        """Number of the class that a node belongs to while it is not lent."""
        return int(self._state.nodes[self._is_node(node)].home)

    def lent_until(self, node: int) -> float | None:
        """Second at which a lent node must be free of other jobs, inf if none is set; None: it is not lent."""
        place = self._state.nodes[self._is_node(node)]
        back = float(place.back)
        return None if place.cls == place.home and back == math.inf else back

    def node_class(self, node: int) -> int:
        """Number of the class that a node belongs to: nodes of one class suit the same jobs."""
        return int(self._state.nodes[self._is_node(node)].cls)

    # ---- inside

    def _is_job(self, job: int) -> bool:
        return index(job) in self.gpus

    def _up_to_now(self, job: int) -> tuple[float, float, float, float]:
        self._seen(job)
        found: tuple[float, float, float, float] = vk.up_to_now(self._address, index(job))
        return found

    def _bind(self, state: State) -> None:
        self._state = state
        self._running: list[int] | None = None
        self._address = state.address
        self._g_free = state.g.free
        self._fresh = state.fresh
        # fields of single jobs; NumPy's access takes ten times as long
        jobs = state.jobs
        self._job_state, self._job_held, self._job_host, self._job_guest, self._job_next, self._job_sharers = (
            memoryview(np.asarray(field).view(np.ndarray))  # type: ignore[arg-type]
            for field in (jobs.state, jobs.held, jobs.host, jobs.guest, jobs.next_guest, jobs.sharers)
        )

    def _begin(self, now: float, fresh: int, free: int, jobs: int, changes: int) -> None:
        # bypasses `__setattr__`, which is for policies and slower
        own, left = self.__dict__, 3 * jobs + self._nodes + 32
        own["_running"] = None
        own["now"], own["free"], own["_left"], own["_tries"], own["_begun"] = now, free, left, left * (jobs + 32), True
        if changes != self._changes:
            up = self._state.nodes.up.tolist()
            there = [gpus if is_up else 0 for gpus, is_up in zip(self._there, up, strict=True)]
            own["nodes"], own["_changes"] = ByNumber.of(there, "node", self._policy.name), changes
        if now >= self._due:
            self._let_arrive()
        if fresh:
            for job in self._fresh[:fresh].tolist():
                self.waiting._add(job)

    def _let_arrive(self) -> None:
        coming = self._coming
        while self._come < len(coming) and coming[self._come][0] <= self.now:
            submit, job, gpus, least, most, limit, queue, user, job_class = coming[self._come]
            put_int, put_float = dict[int, int].__setitem__, dict[int, float].__setitem__
            put_float(self.submit, job, submit)
            put_float(self.limit, job, limit)
            put_int(self.gpus, job, gpus)
            put_int(self.least, job, least)
            put_int(self.most, job, most)
            put_int(self.queue, job, queue)
            put_int(self.user, job, user)
            put_int(self.job_class, job, job_class)
            self._come += 1
        self._due = coming[self._come][0] if self._come < len(coming) else math.inf

    def _not_arrived(self, job: int) -> InputError:
        return InputError(
            f"{self._policy.name} reads job {job} at second {self.now:g}, which has not been submitted",
            hint="a policy knows the jobs in view.gpus, among them all that wait and run; begin() knows none yet",
        )

    def _only_looks(self, what: str) -> InputError:
        return InputError(
            f"{self._policy.name} writes to {what} at second {self.now:g}",
            hint="a policy reads the view and acts through its methods; its own memory belongs into attributes "
            "of its own (self.…)",
        )

    def _seen(self, job: int) -> None:
        if not self._is_job(job):
            raise self._not_arrived(job)

    def _may_know(self, job: int) -> None:
        if not self._policy.oracle:
            raise InputError(
                f"{self._policy.name} reads true run times without declaring it",
                hint="set oracle = True in the class; reports then show it",
            )
        self._seen(job)
