"""All hooks, and all that a policy may ask to be kept to, held against what became of the jobs.

`Witness` starts jobs, grants leases, reserves GPUs, sets timers and lends nodes as it draws, and writes down what it
asked for and what it was told. What it should have been told follows from the outcome.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_types
from gpuctl.replay.contract.hooks import HOOKS
from gpuctl.replay.contract.python_policy import PythonPolicy
from tests.example_counts import examples

if TYPE_CHECKING:
    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

MOST_LEASES = 4
"""Of a job; it then runs to its end."""


class Witness(PythonPolicy):
    """First come, first served, who does not fit is skipped; promises at random."""

    name = "witness"
    every = 5.0

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.draw = np.random.Generator(np.random.PCG64(11))
        self.told: list[tuple[float, str, int]] = []
        self.leases: list[tuple[int, float, float]] = []
        self.kept: dict[int, tuple[int, int, float]] = {}
        self.wakes: dict[int, float] = {}
        self.timers: dict[int, float] = {}
        self.loans: list[tuple[int, float, float, float]] = []

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for number in range(len(view.nodes)):
            self.lend(view, number)
        for job in list(view.waiting):
            if not self.start(view, job):
                self.ask(view, job)

    def start(self, view: View, job: int) -> bool:
        """Start a job where it fits, and see that it takes nothing that is kept from it; with a lease or without."""
        free = [view.free_on(number) for number in range(len(view.nodes))]
        if not view.start(job, "fits", placement="spread" if self.draw.integers(2) else None):
            return False
        for number, gpus in view.placement(job).items():
            for_job, kept, at = self.kept.get(number, (job, 0, 0.0))
            if for_job != job and view.now + view.limit[job] > at:
                assert gpus <= free[number] - kept, f"{job} takes GPUs of node {number} that are kept for {for_job}"
        self.kept = {number: told for number, told in self.kept.items() if told[0] != job}
        if self.draw.integers(2):
            self.grant(view, job)
        return True

    def grant(self, view: View, job: int) -> None:
        """Some more seconds, now and then."""
        until = view.now + float(self.draw.integers(1, 9))
        if sum(job == other for other, _, _ in self.leases) < MOST_LEASES and view.lease(job, until):
            self.leases.append((job, view.now, until))

    def ask(self, view: View, job: int) -> None:
        """Keep GPUs for a job that has to wait, and be asked again."""
        at = view.now + float(self.draw.integers(1, 30))
        places = {int(number): 1 for number in self.draw.integers(0, len(view.nodes), 2)}
        if self.draw.integers(2) and view.reserve(job, at, places):
            self.kept |= {number: (job, gpus, at) for number, gpus in places.items()}
        if self.draw.integers(2) and view.wake(job, at):
            self.wakes[job] = at
        number = int(self.draw.integers(64))
        if self.draw.integers(2) and view.timer(at, number):
            self.timers[number] = at

    def lend(self, view: View, number: int) -> None:
        """Lend an idle node for a while, a few times."""
        classes = sorted({view.node_class(other) for other in range(len(view.nodes))} - {view.node_class(number)})
        if not classes or view.lent_until(number) is not None or len(self.loans) > 20 or self.draw.integers(3):
            return
        until, notice = view.now + float(self.draw.integers(5, 30)), float(self.draw.integers(0, 4))
        if view.loan(number, int(self.draw.choice(classes)), until=until, notice=notice):
            self.loans.append((number, view.now, until, notice))


def _hook(name: str) -> object:
    def told(self: Witness, view: View, who: int) -> None:
        self.told.append((view.now, name, who))
        if name == "on_lease_end" and self.draw.integers(2):
            self.grant(view, who)
        if name in {"on_wake", "on_timer"}:
            asked = (self.wakes if name == "on_wake" else self.timers).pop(who)
            assert asked == view.now, f"{name} {who} at {view.now}, asked for at {asked}"

    return told


for _name in HOOKS:
    setattr(Witness, _name, _hook(_name))


def expected(witness: Witness, outcome: Outcome, workload: Workload, cluster: Cluster) -> dict[str, Counter]:
    """What the outcome says that each hook had to tell: how often what, by second and number."""
    last = max(t for t, _, _ in witness.told)
    jobs, attempts = outcome.jobs, outcome.attempts
    finished = jobs["end_s"].to_list()
    rows = list(zip(attempts["job"], attempts["start_s"], attempts["end_s"], attempts["end"], strict=True))
    ends_of = {job: [end for other, _, end, _ in rows if other == job] for job in range(workload.size)}
    down = [] if cluster.down is None else cluster.down.tolist()
    lease_ends = Counter(
        (until, job)
        for job, granted, until in witness.leases
        # who ends, fails or loses a node at that very second has no lease any more
        if any(j == job and s <= granted and (e > until or (e, why) == (until, "lease")) for j, s, e, why in rows)
    )
    return {
        "on_submit": Counter((_queued(workload, finished, job), job) for job in range(workload.size)),
        "on_finish": Counter((end, job) for job, end in enumerate(finished)),
        "on_requeue": Counter((end, job) for job, ends in ends_of.items() for end in ends[:-1]),
        "on_lease_end": lease_ends,
        "on_node_down": Counter((begin, int(node)) for node, begin, _ in down if begin <= last),
        "on_node_up": Counter((until, int(node)) for node, _, until in down if until <= last),
    }


def held_too_long(witness: Witness, outcome: Outcome) -> list[tuple[int, float, float]]:
    """Jobs that kept their GPUs after their last lease had run out: number, end of that lease, end of the attempt."""
    until_of: dict[tuple[int, float], float] = {}
    rows = outcome.attempts.select("job", "start_s", "end_s").rows()
    for job, granted, until in witness.leases:
        start = max(start for other, start, _ in rows if other == job and start <= granted)
        until_of[job, start] = until
    return [(job, until_of[job, s], end) for job, s, end in rows if end > until_of.get((job, s), np.inf)]


def _queued(workload: Workload, finished: list[float], job: int) -> float:
    """Second at which a job comes into the queue: eligible, and all that it depends on ended."""
    before = [finished[other] for after, other in workload.depends.tolist() if after == job]
    think = 0.0 if workload.think is None else float(workload.think[job])
    return max([float(workload.eligible[job]), *(end + think for end in before)])


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_hooks_tell_what_happens_and_promises_are_kept(seed: int) -> None:
    case = random_case(seed) if seed % 3 else with_types(seed, random_case(seed))
    witness = Witness()
    outcome = run(witness, *case)
    assert violations(outcome, *case) == []
    told = {name: Counter((t, who) for t, what, who in witness.told if what == name) for name in HOOKS}
    wanted = expected(witness, outcome, case[0], case[1])
    assert {name: told[name] for name in wanted} == wanted
    assert held_too_long(witness, outcome) == []
    last = max(t for t, _, _ in witness.told)
    finished = outcome.jobs["end_s"].to_list()
    assert all(at >= min(last, finished[job]) for job, at in witness.wakes.items()), "a wake that nobody heard"
    assert all(at >= last for at in witness.timers.values()), "a timer that nobody heard"
    for number, _, until, notice in witness.loans:
        heard = [t for t, who in told["on_reclaim"] if who == number]
        assert {at for at in (until - notice, until) if at <= last} <= set(heard)
    assert [n * Witness.every for _, n in told["on_round"]] == [t for t, _ in told["on_round"]]
