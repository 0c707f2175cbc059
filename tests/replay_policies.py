"""Policies that do what the built-in ones do not: packers, time-slicers, and one that tries whatever there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.replay.contract.python_policy import PythonPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.contract.view import View


class Packer(PythonPolicy):
    """First come, first served; what does not fit goes beside a running job."""

    name = "packer"
    sliced: ClassVar[bool] = False
    most: ClassVar[int] = 2

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in view.waiting:
            if not view.start(job, "free"):
                self.pack(view, job)

    def pack(self, view: View, job: int) -> None:
        """Put it beside the first running job that takes it."""
        for host in view.running:
            if view.share(job, host, "no room", sliced=self.sliced):
                return


class Slicer(Packer):
    """The same by turns; jobs that run for long are stopped where others wait, whoever is on their GPUs.

    A turn is twice as long as the one before: what stopping costs does not eat up all of it.
    """

    name = "slicer"
    sliced = True
    preempts = True

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in view.running:
            if len(view.waiting) and view.ran(job) > 20 * 2 ** self.stops.get(job, 0):
                self.stops[job] = self.stops.get(job, 0) + 1
                view.preempt(job, "its turn is over")
        super().decide(view)

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.stops: dict[int, int] = {}


ODD: tuple[Any, ...] = (-1, -(2**31), 2**31, 2**63 - 1, 2**70, 10**6)
TIMES: tuple[float, ...] = (float("nan"), float("inf"), float("-inf"), -1.0, 1e300, 0.0)


class Hostile(PythonPolicy):
    """Calls everything that there is to call, with whatever comes to mind; after a while it lets jobs end."""

    name = "hostile"
    always = True
    seed: ClassVar[int] = 0
    calls: ClassVar[int] = 40
    moods: ClassVar[int] = 12

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.draw = np.random.Generator(np.random.PCG64(self.seed))
        self.asked = 0

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        self.asked += 1
        if self.asked <= self.moods:
            # one more than it may decide at one instant would end the replay
            for _ in range(min(self.calls, view._left - len(view.waiting) - 2)):
                self.acts(view)[int(self.draw.integers(12))]()
        for job in view.waiting:
            if not view.start(job, "free"):
                for number in range(view._nodes):
                    if view.node_class(number) != view.node_class(0):
                        view.loan(number, view.node_class(0))
                if self.asked < 20 * self.moods:
                    view.wake(job, view.now + 7)
                break

    def job(self, view: View) -> int:
        """A job, or none."""
        if self.draw.random() < 0.1:
            return int(ODD[int(self.draw.integers(len(ODD)))])
        some = (list(view.waiting), view.running, range(len(view.gpus)))[int(self.draw.integers(3))]
        return int(self.draw.choice(some)) if len(some) else 0

    def at(self, view: View) -> float:
        """A second, or something else."""
        if self.draw.random() < 0.2:
            return TIMES[int(self.draw.integers(len(TIMES)))]
        return view.now + float(self.draw.integers(0, 9))

    def places(self, view: View) -> dict[int, int]:
        """GPUs by node; sometimes of hundreds of nodes, sometimes of none that there is."""
        draw, count = self.draw, len(view.nodes)
        kind = int(draw.integers(4))
        if kind == 0:
            return dict.fromkeys(range(count), 1)
        if kind == 1:
            return {k: view.free_on(k) for k in range(count) if view.free_on(k)}
        if kind == 2:
            return {int(draw.integers(count)): int(draw.integers(0, 9)) for _ in range(3)}
        return {ODD[int(draw.integers(len(ODD)))]: ODD[int(draw.integers(len(ODD)))], 0: 1}

    def acts(self, view: View) -> tuple[Callable[[], object], ...]:
        """All that it may do."""
        draw = self.draw
        way = ("any", "consolidate", "spread", "fill", "rack", "fewest")[int(draw.integers(6))]
        mode = ("now", "epoch", "abort")[int(draw.integers(3))]
        gpus = ODD[int(draw.integers(len(ODD)))] if draw.random() < 0.1 else int(draw.integers(0, 9))
        return (
            lambda: view.start(self.job(view), "start", placement=way),
            lambda: view.start(self.job(view), "start", nodes=self.places(view)),
            lambda: view.preempt(self.job(view), "stop", mode=mode),
            lambda: view.resize(self.job(view), gpus, placement=way),
            lambda: view.resize(self.job(view), self.places(view)),
            lambda: view.migrate(self.job(view), placement=way),
            lambda: view.share(self.job(view), self.job(view), gpus=gpus or None, sliced=bool(draw.integers(2))),
            lambda: view.lease(self.job(view), self.at(view)),
            lambda: view.reserve(self.job(view), self.at(view), self.places(view)),
            lambda: view.loan(
                int(draw.integers(-2, len(view.nodes) + 2)),
                int(draw.integers(-2, 3)),
                until=self.at(view),
                notice=float(draw.integers(-1, 9)),
            ),
            lambda: (view.wake(self.job(view), self.at(view)), view.timer(self.at(view), int(draw.integers(64)))),
            lambda: view.reject(self.job(view), "no") if draw.random() < 0.1 else view.events,
        )


class Keeper(PythonPolicy):
    """Keeps GPUs of all nodes for whoever does not start, moves those that run, and asks for it all again."""

    name = "keeper"

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        everywhere = dict.fromkeys(range(len(view.nodes)), 1)
        for job in view.waiting:
            if not view.start(job, placement="spread"):
                for _ in range(3):
                    view.reserve(job, view.now + 50, everywhere)
        for job in view.running:
            if view.ran(job) < 60:
                view.migrate(job, placement="spread")


class Crowd(Packer):
    """Puts everybody beside the first job that runs, and now and then throws that one out."""

    name = "crowd"
    preempts = True

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        if view.running and view.now % 5 == 0:
            view.preempt(view.running[0], mode="abort")
        super().decide(view)


class Measures(PythonPolicy):
    """Puts jobs anywhere, and moves each to where jobs of its class have come forward fastest, as far as it has seen.

    It is told no speeds; it sees that a rate is what the table says, that it is 0 while nothing comes forward, and that
    no job is faster than on the fastest type.
    """

    name = "measures"
    always = True

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.seen: dict[tuple[int, int], float] = {}
        self.moved: set[int] = set()

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in list(view.waiting):
            if view.rate(job) != 0:
                raise AssertionError(f"{job} waits and comes forward")
            view.start(job, placement="spread")
        for job in view.running:
            rate, place = view.rate(job), view.placement(job)
            types = {view.gpu_type(node) for node in place}
            if rate < 0:
                raise AssertionError(f"{job} comes forward by {rate}")
            if rate > 0 and len(types) == 1:
                self.seen[view.job_class[job], min(types)] = rate
            self.improve(view, job, rate)

    def improve(self, view: View, job: int, rate: float) -> None:
        """Move a job to a node of a type on which one of its class was faster."""
        better = [t for (kind, t), seen in self.seen.items() if kind == view.job_class[job] and seen > rate]
        for node in range(len(view.nodes)):
            fits = view.free_on(node) >= view.gpus[job] and view.suits(job, node)
            if job not in self.moved and fits and view.gpu_type(node) in better:
                if view.migrate(job, {node: view.gpus[job]}, "faster there"):
                    self.moved.add(job)
                return


class Restless(PythonPolicy):
    """Puts jobs on each other's GPUs, packed and by turns, and moves and resizes hosts and guests as it draws."""

    name = "restless"
    always = True
    every = 4.0
    preempts = True

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.draw = np.random.Generator(np.random.PCG64(7))

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        if view.round is not None and view.round < 40:
            for job in view.running:
                self.stir(view, job)
        self.hosts: list[int] | None = None
        for job in list(view.waiting):
            gpus = int(self.draw.integers(view.least[job], view.most[job] + 1))
            if view.start(job, gpus=gpus) or view.start(job) or self.put(view, job, gpus):
                # what a refusal leaves is as it was
                self.hosts = None

    def put(self, view: View, job: int, gpus: int) -> bool:
        """On some running job's GPUs; returns whether it got there."""
        if self.hosts is None:
            self.hosts = [host for host in view.running if len(view.colocated(host)) < 3]
        hosts = self.hosts
        sliced = bool(self.draw.integers(2))
        for host in self.draw.permutation(hosts).tolist():
            if view.share(job, host, "", gpus=gpus, sliced=sliced) or view.share(job, host, "", sliced=sliced):
                if view.host(job) != host or job not in view.colocated(host):
                    raise AssertionError(f"{job} is not beside {host}")
                return True
        return False

    def stir(self, view: View, job: int) -> None:
        """Move, resize or stop one."""
        what, gpus = int(self.draw.integers(8)), int(self.draw.integers(view.least[job], view.most[job] + 1))
        before = view.colocated(job)
        if what < 2 and view.migrate(job, placement="spread" if what else None) and view.colocated(job):
            raise AssertionError(f"{job} moved, and has company")
        if what in {2, 3}:
            guest = view.host(job) is not None
            if view.resize(job, gpus) and view.colocated(job) != ([] if guest else before):
                raise AssertionError(f"{job} was resized, and its company is another")
        if what == 4 and view.held(job) < view.most[job]:
            more = {s: n + (view.free_on(s) > 0) for s, n in view.placement(job).items()}
            if sum(more.values()) <= view.most[job]:
                view.resize(job, more)
        if what == 5 and self.draw.integers(3) == 0:
            view.preempt(job)


class Borrows(PythonPolicy):
    """Lends idle nodes to the class of some waiting job, for a while; of those wanted back it clears some."""

    name = "borrows"
    always = True
    preempts = True

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.draw = np.random.Generator(np.random.PCG64(3))

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in list(view.waiting):
            _ = view.start(job) or (view.now < 2000 and self.borrow(view, job) and view.start(job))
        for number in range(len(view.nodes)):
            if view.lent_until(number) == float("inf"):
                view.loan(number, view.home_class(number), "given back")

    def borrow(self, view: View, job: int) -> bool:
        """Lend what is idle to a class that suits the job."""
        classes = {view.node_class(k) for k in range(len(view.nodes)) if view.suits(job, k)}
        for number in range(len(view.nodes)):
            until = view.now + float(self.draw.integers(5, 40)) if self.draw.integers(5) else float("inf")
            notice = float(self.draw.choice([0, 3, 100]))
            to = int(self.draw.choice(sorted(classes))) if classes else 0
            at_home = view.home_class(number) == view.node_class(number) != to
            if at_home and view.loan(number, to, "somebody waits", until=until, notice=notice):
                assert view.lent_until(number) == until
        return True

    def on_reclaim(self, view: View, node: int) -> None:
        """See `PythonPolicy.on_reclaim`."""
        until = view.lent_until(node)
        assert until is None or until > view.now
        for job in view.running:
            if until is not None and node in view.placement(job) and self.draw.integers(2):
                view.preempt(job, "its server is wanted back")
