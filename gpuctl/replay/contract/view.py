"""What a policy written in Python sees of a simulation, and what it may do.

Jobs, servers, queues and users are numbers. Decisions take effect at once and are checked by the engine: one that
cannot be carried out changes nothing and returns false, and so does one for a job or server that there is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.replay.contract import view_kernel as vk
from gpuctl.replay.contract.arrivals import as_they_come
from gpuctl.replay.contract.gpu_type_view import TypesView, classes_as_they_come
from gpuctl.replay.contract.waiting import Waiting
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.setup import grow
from gpuctl.replay.engine.state import (
    ANY,
    CONSOLIDATE,
    E_FINISHED,
    E_JOB_TIMER,
    E_LEASE,
    E_QUEUED,
    E_RECLAIM,
    E_ROUND,
    E_SERVER_DOWN,
    E_SERVER_UP,
    E_TIMER,
    FEWEST,
    FILL,
    MODES,
    NAMED_TIMERS,
    NO_ROOM,
    RACK,
    RUNNING,
    SPREAD,
    WAITING,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

PLACEMENTS = {"any": ANY, "consolidate": CONSOLIDATE, "spread": SPREAD, "fill": FILL, "rack": RACK, "fewest": FEWEST}
EVENTS = {
    E_QUEUED: "queued",
    E_FINISHED: "finished",
    E_SERVER_DOWN: "server_down",
    E_SERVER_UP: "server_up",
    E_LEASE: "lease",
    E_JOB_TIMER: "wake",
    E_TIMER: "timer",
    E_ROUND: "again",
    E_RECLAIM: "reclaim",
}

Told = TypeVar("Told", int, float)


class OfArrived(dict[int, Told]):
    """Something of each job that has been submitted, by the job's number.

    A dictionary: what it has costs no more to look up than in a list, and of jobs to come it has nothing, not even
    how many they are.
    """

    def __init__(self, view: View) -> None:
        super().__init__()
        self._view = view

    def __missing__(self, job: int) -> Told:
        raise self._view._not_arrived(job)


class View(TypesView):
    """A simulation as a policy sees it: what has happened so far, and jobs that have been submitted.

    Whoever looks at a job that has not been submitted gets an `InputError`; an action on one returns false.

    Attributes:
        now: seconds.
        round: number of the round that this instant is; None: it is none.
        free: free GPUs of all servers.
        waiting: jobs in the queue, the one that was queued first ahead.
        gpus, least, most, submit, limit, queue, user, job_class: of each job that has been submitted, by its number:
            gang size, the fewest and the most GPUs that it can run on, seconds, seconds asked for (inf: none), numbers;
            users and classes are numbered as they first submit, -1: not known.
        servers: GPUs of each server.
        quota: GPUs of the quota of each queue (inf: none).
    """

    def __init__(self, policy: Policy, workload: Workload, cluster: Cluster, state: State) -> None:
        self.now = 0.0
        self.round: int | None = None
        self.free = int(state.g.free[0])
        self.waiting = Waiting(workload.size)
        self.gpus: OfArrived[int] = OfArrived(self)
        self.submit: OfArrived[float] = OfArrived(self)
        self.limit: OfArrived[float] = OfArrived(self)
        self.least: OfArrived[int] = OfArrived(self)
        self.most: OfArrived[int] = OfArrived(self)
        self.queue: OfArrived[int] = OfArrived(self)
        self.user: OfArrived[int] = OfArrived(self)
        self.job_class: OfArrived[int] = OfArrived(self)
        self.servers: list[int] = cluster.gpus.tolist()
        self.quota: list[float] = cluster.quota.tolist()
        self.reasons: list[str] = []
        self._codes: dict[str, int] = {"": 0}
        self._policy = policy
        self._left = self._tries = 0
        self._servers, self._most = len(cluster.servers), cluster.total_gpus
        self._work = workload.segment_s, workload.segment_start
        self._coming, self._come, self._due = _by_submission(workload, state), 0, -math.inf
        self._own = PLACEMENTS["any"]
        self._bind(state)

    # ---- looking

    @property
    def events(self) -> list[tuple[str, int]]:
        """What has happened at this instant: (what, number of the job, server or timer).

        What is queued, finished, server_down, server_up, lease (it has run out), wake (the job's timer), timer,
        reclaim, round, or again (jobs have lost their leases, and their GPUs are free).
        """
        return [("round" if kind == E_ROUND and who else EVENTS[kind], who) for kind, who in self._happened()]

    def _happened(self) -> Iterator[tuple[int, int]]:
        """What has happened at this instant, as the engine has it: numbers of `EVENTS`, and of whom."""
        events, count = self._state.events, int(self._state.g.events[0])
        return zip(events.kind[:count].tolist(), events.who[:count].tolist(), strict=True)

    @property
    def running(self) -> list[int]:
        """Jobs that run, by number."""
        found: list[int] = (self._state.jobs.state == RUNNING).nonzero()[0].tolist()
        return found

    def state(self, job: int) -> str:
        """Waiting, running or other."""
        self._seen(job)
        code = int(self._state.jobs[job].state)
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
        return int(self._state.jobs[job].held)

    def placement(self, job: int) -> dict[int, int]:
        """GPUs that the job is on, by server."""
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
            found[int(piece.server)] = int(piece.gpus)
        return found

    def speed(self, job: int, gpus: int | None = None) -> float:
        """Speed of a job on so many GPUs (None: those that it is on), for that of its gang; 0 on none.

        It is that of the job alone, placed as well as its gang: what its placement, the GPUs' type, and jobs beside it
        do to it comes on top.
        """
        self._seen(job)
        count = self.held(job) if gpus is None else index(gpus)
        return float(vk.speed_on(self._address, index(job), min(count, self._most))) if count > 0 else 0.0

    def host(self, job: int) -> int | None:
        """The job on whose GPUs a job is; None where they are its own, and while it has none."""
        self._seen(job)
        found = int(self._state.jobs[job].host)
        return found if found >= 0 else None

    def beside(self, job: int) -> list[int]:
        """The other jobs on the GPUs of a job's group: the one whose they are first, then the smallest one; [] none."""
        self._seen(job)
        jobs, found = self._state.jobs, []
        at = owner = job if jobs.host[job] < 0 else int(jobs.host[job])
        while at >= 0:
            found.append(at)
            at = int(jobs.guest[at] if at == owner else jobs.next_guest[at])
        return [other for other in found if other != job]

    def free_on(self, server: int) -> int:
        """Free GPUs of a server; 0 where it is down."""
        place = self._state.servers[server]
        return int(place.free) if place.up else 0

    def queue_used(self, queue: int) -> int:
        """GPUs that the jobs of a queue hold: a shared one counts once, for the queue of the job whose it is."""
        return int(self._state.queue_used[queue])

    def remaining(self, job: int) -> float:
        """Seconds of work that the job has before it.

        Raises:
            InputError: the policy does not declare ``oracle``.
        """
        self._may_know(job)
        done, work, _, _ = self._up_to_now(job)
        seconds, first = self._work
        later = float(seconds[int(self._state.jobs.segment[job]) + 1 : first[job + 1]].sum())
        return float(work - done) + later

    def duration(self, job: int) -> float:
        """Seconds of work that the job has in all.

        Raises:
            InputError: the policy does not declare ``oracle``.
        """
        self._may_know(job)
        seconds, first = self._work
        return float(seconds[first[job] : first[job + 1]].sum())

    # ---- deciding

    def start(
        self,
        job: int,
        reason: str = "",
        *,
        gpus: int | None = None,
        placement: str | None = None,
        servers: Mapping[int, int] | None = None,
    ) -> bool:
        """Start a waiting job: where it fits, or on so many GPUs of the servers named. False where that cannot be.

        Args:
            job: its number.
            reason: for the decision log.
            gpus: from `least` to `most`; None: its gang, or as many as `servers` say.
            placement: see `PLACEMENTS`; None: the policy's own.
            servers: GPUs by server.
        """
        self._decide()
        code = self._code(reason)
        if not self._is_job(job):
            return False
        job = index(job)
        wanted = 0 if gpus is None else index(gpus)
        if gpus is not None and not 0 < wanted <= self._most:
            return False
        if servers is not None:
            if gpus is None:
                wanted = min(max(sum(map(index, servers.values())), 0), self._most)
            done = self._choose(job, servers) and self._do(vk.start_chosen, job, wanted, code) >= 0
            self.free = int(self._g_free[0])
        else:
            free = self._do(vk.start, job, wanted, self._how(placement), code)
            done = free >= 0
            if done:
                self.free = free
        if done:
            self.waiting.remove(job)
        return done

    def preempt(self, job: int, reason: str = "", *, mode: str = "now") -> bool:
        """Take a running job's GPUs: ``now`` after a checkpoint, at the end of its ``epoch``, or ``abort`` it.

        Returns:
            Whether its GPUs are free now; otherwise the job is in ``events`` as queued once they are.
        """
        self._decide()
        code = self._code(reason)
        free = self._is_job(job) and self._do(vk.stop_job, index(job), MODES[mode], code) == 1
        if free:
            self.waiting.add(index(job))
            self.free = int(self._g_free[0])
        return free

    def resize(
        self, job: int, gpus: int | Mapping[int, int], reason: str = "", *, placement: str | None = None
    ) -> bool:
        """Let a running job go on with more or fewer GPUs, from `least` to `most`; it costs what a migration costs.

        What it has done is kept. Named servers are all that it has from then on: to grow where it is, name those of
        `placement` with more GPUs. Jobs on its GPUs stay beside it: it keeps the GPUs that they are on. One that is on
        another job's GPUs goes to GPUs of its own.
        """
        return self._move(job, gpus, reason, placement, other_size=True)

    def migrate(self, job: int, servers: Mapping[int, int] | None = None, reason: str = "", *,
                placement: str | None = None) -> bool:  # fmt: skip
        """Let a running job go on elsewhere: on the servers named, or where it would be put now.

        It goes alone: jobs on its GPUs stay, and the largest of them has them from then on.
        """
        to = servers if servers is not None else self.held(job) if self._is_job(job) else 0
        return self._move(job, to, reason, placement, other_size=False)

    def share(self, job: int, host: int, reason: str = "", *, gpus: int | None = None, sliced: bool = False) -> bool:
        """Start a waiting job on GPUs of a running one: packed beside it, or taking turns (``sliced``).

        The host is one that shares nobody else's GPUs. They stay its own, and when it goes those of its largest guest;
        they count for the owner's queue. The GPU-seconds of each count in equal parts for the jobs on it.

        Args:
            job: its number.
            host: whose GPUs they are.
            reason: for the decision log.
            gpus: from `least` to `most`, at most the host's; None: its gang.
            sliced: all jobs on a host's GPUs take turns, or none does.
        """
        self._decide()
        code = self._code(reason)
        wanted = 0 if gpus is None else index(gpus)
        both = self._is_job(job) and self._is_job(host) and (gpus is None or 0 < wanted <= self._most)
        done = both and self._do(vk.share_with, index(job), index(host), wanted, int(bool(sliced)), code) >= 0
        if done:
            self.waiting.remove(index(job))
        return done

    def lease(self, job: int, until: float, reason: str = "") -> bool:
        """Grant a running job its GPUs until then; unless it is granted more at that instant, it loses them."""
        self._decide()
        code = self._code(reason)
        return self._is_job(job) and self._do(vk.lease, index(job), float(until), code) >= 0

    def reserve(self, job: int, at: float, servers: Mapping[int, int], reason: str = "") -> bool:
        """Keep GPUs for a waiting job from then on: no job whose time limit reaches beyond `at` starts on them.

        They are kept until it starts or is rejected, beside what was kept for it before.
        """
        self._decide()
        code, at = self._code(reason), float(at)
        if at != at or not self._is_job(job) or not self._gather(vk.may_keep, index(job), servers):  # noqa: PLR0124 - NaN
            return False
        return self._do(vk.reserve, index(job), at, code) >= 0

    def loan(
        self, server: int, to_class: int, reason: str = "", *, until: float = math.inf, notice: float = 0.0
    ) -> bool:
        """Lend a server that nobody uses to another class of servers, or give it back.

        With a time it comes back by itself: `notice` seconds before it the policy hears ``on_reclaim``, and no more
        jobs start on it but those that may use it in its own class; at that time the others that are still on it lose
        their GPUs, and what they did since their last checkpoint, and ``on_reclaim`` is called again.

        Args:
            server: its number.
            to_class: of `server_class`; that of `home_class` gives it back.
            reason: for the decision log.
            until: second at which it is to be back; inf: until it is given back.
            notice: seconds.

        Returns:
            false, too, where some class of jobs that runs there has speed 0 on the server's GPUs.
        """
        self._decide()
        code = self._code(reason)
        there = 0 <= index(server) < self._servers and index(to_class) in self._type_of_class
        there = there and self._runs_as_there(index(server), index(to_class))
        done = there and self._do(vk.loan, index(server), index(to_class), float(until), float(notice), code) >= 0
        self.free = int(self._g_free[0])
        return done

    def home_class(self, server: int) -> int:
        """Number of the class that a server belongs to while it is not lent."""
        return int(self._state.servers[self._is_server(server)].home)

    def lent_until(self, server: int) -> float | None:
        """Second at which a lent server is to be free of others' jobs, inf where none is set; None: it is not lent."""
        place = self._state.servers[self._is_server(server)]
        back = float(place.back)
        return None if place.cls == place.home and back == math.inf else back

    def server_class(self, server: int) -> int:
        """Number of the class that a server belongs to: servers of one class suit the same jobs."""
        return int(self._state.servers[server].cls)

    def wake(self, job: int, at: float) -> bool:
        """Be asked again at that second because of the job (one such timer a job)."""
        return self._is_job(job) and bool(vk.wake(self._address, index(job), float(at)))

    def timer(self, at: float, number: int = 0) -> bool:
        """Be asked again at that second; there are 64 timers by number."""
        if not 0 <= number < NAMED_TIMERS:
            raise InputError(f"{self._policy.name}: timer {number}: expected 0 to {NAMED_TIMERS - 1}")
        return bool(vk.timer(self._address, index(number), float(at)))

    def reject(self, job: int, reason: str = "") -> bool:
        """Take a waiting job out of the queue for good."""
        self._decide()
        code = self._code(reason)
        done = self._is_job(job) and self._do(vk.refuse, index(job), code) >= 0
        if done:
            self.waiting.remove(index(job))
        return done

    # ---- inside

    def _do(self, action: Callable[..., int], *args: float) -> int:
        """Let the engine do something; where it has no room for what that writes, its arrays grow first."""
        done = action(self._address, *args)
        while done == NO_ROOM:
            grow(self._state)
            done = action(self._address, *args)
        if done >= 0:
            self._left -= 1
        return done

    def _is_job(self, job: int) -> bool:
        return index(job) in self.gpus

    def _up_to_now(self, job: int) -> tuple[float, float, float, float]:
        self._seen(job)
        found: tuple[float, float, float, float] = vk.up_to_now(self._address, index(job))
        return found

    def _bind(self, state: State) -> None:
        self._state = state
        self._address = state.address
        self._g_free = state.g.free
        self._fresh = state.fresh

    def _begin(self, now: float, fresh: int, free: int, jobs: int) -> None:
        self.now, self.free = now, free
        self._left = 3 * jobs + self._servers + 32
        self._tries = self._left * (jobs + 32)
        if now >= self._due:
            self._let_arrive()
        if fresh:
            for job in self._fresh[:fresh].tolist():
                self.waiting.add(job)

    def _let_arrive(self) -> None:
        coming = self._coming
        while self._come < len(coming) and coming[self._come][0] <= self.now:
            submit, job, gpus, least, most, limit, queue, user, job_class = coming[self._come]
            self.submit[job], self.gpus[job], self.limit[job] = submit, gpus, limit
            self.least[job], self.most[job] = least, most
            self.queue[job], self.user[job], self.job_class[job] = queue, user, job_class
            self._come += 1
        self._due = coming[self._come][0] if self._come < len(coming) else math.inf

    def _not_arrived(self, job: int) -> InputError:
        return InputError(
            f"{self._policy.name} asks about job {job} at second {self.now:g}, which has not been submitted",
            hint="a policy knows the jobs in view.gpus, among them all that wait and run; begin() knows none yet",
        )

    def _seen(self, job: int) -> None:
        if not self._is_job(job):
            raise self._not_arrived(job)

    def _decide(self) -> None:
        self._tries -= 1
        if self._left <= 0 or self._tries < 0:
            raise InputError(
                f"{self._policy.name}: more decisions at second {self.now:g} than three for each job that waits or "
                f"runs and one for each server" + ("" if self._left <= 0 else ", most of them in vain"),
                hint="does it start and preempt the same jobs in turns?",
            )

    def _code(self, reason: str) -> int:
        code = self._codes.get(reason)
        if code is None:
            if not isinstance(reason, str):
                raise TypeError(f"reason {reason!r}: expected a text")
            if len(self.reasons) >= 10_000:
                raise InputError(
                    f"{self._policy.name}: more than 10,000 different reasons", hint="leave numbers out of reasons"
                )
            self.reasons.append(reason)
            code = self._codes[reason] = len(REASONS) + len(self.reasons) - 1
        return code

    def _how(self, placement: str | None) -> int:
        return self._own if placement is None else PLACEMENTS[placement]

    def _choose(self, job: int, servers: Mapping[int, int]) -> bool:
        return self._gather(vk.add, job, servers)

    def _gather(self, add: Callable[..., bool], job: int, servers: Mapping[int, int]) -> bool:
        """Choose GPUs of servers for a job; false where one of them cannot be had."""
        vk.clear(self._address)
        for server, gpus in servers.items():
            there = 0 <= index(server) < self._servers and 0 < index(gpus) <= self._most
            if not there or not add(self._address, job, index(server), index(gpus)):
                return False
        return True

    def _move(
        self, job: int, to: int | Mapping[int, int], reason: str, placement: str | None, *, other_size: bool
    ) -> bool:
        self._decide()
        code = self._code(reason)
        if not self._is_job(job):
            return False
        job = index(job)
        if isinstance(to, Mapping):
            ready = self._choose(job, to)
        else:
            how = self._how(placement)
            ready = 0 < index(to) <= self._most and vk.find_for(self._address, job, index(to), how, other_size)
        done = bool(ready) and self._do(vk.move_chosen, job, other_size, code) >= 0
        self.free = int(self._g_free[0])
        return done

    def _may_know(self, job: int) -> None:
        if not self._policy.oracle:
            raise InputError(
                f"{self._policy.name} asks for true run times without saying so",
                hint="set oracle = True in the class; reports then say so",
            )
        self._seen(job)


def _by_submission(workload: Workload, state: State) -> list[tuple[float, int, int, int, int, float, int, int, int]]:
    """Submission, number, gang, least and most GPUs, limit, queue, user and class of each job, by submission."""
    order = np.argsort(workload.submit, kind="stable")
    columns = (
        workload.submit[order],
        order,
        workload.gpus[order],
        np.asarray(state.jobs.least)[order],
        np.asarray(state.jobs.most)[order],
        np.asarray(state.jobs.limit)[order],
        workload.queue[order],
        as_they_come(workload.user[order])[0],
        classes_as_they_come(workload, order),
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))
