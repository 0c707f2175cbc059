"""What a policy is told, when, and in what order: small cases by hand, and hooks that do what `decide` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.conformance import random_case, run
from gpuctl.replay.contract.hooks import HOOKS
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.policies import find
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from gpuctl.replay.contract.view import View


class Told(PythonPolicy):
    """First come, first served, by `decide`; writes down what it hears."""

    name = "told"
    heard: ClassVar[list[tuple[float, str, int]]] = []

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.heard.clear()

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        self.heard.append((view.now, "decide", len(view.waiting)))
        for job in view.waiting:
            view.start(job)


def _write_down(name: str) -> object:
    def hook(self: Told, view: View, number: int) -> None:
        self.heard.append((view.now, name, number))

    return hook


def telling(*names: str, **more: object) -> type[Told]:
    """A policy with these hooks."""
    return type("TellingThese", (Told,), {name: _write_down(name) for name in names} | more)


def test_ends_are_first_then_nodes_then_submissions(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,10,1", "b,0,10,1", "c,0,10,2", "d,10,5,1", "e,20,1,1")
    down = np.array([[0.0, 15.0, 20.0]])
    replay(telling(*(set(HOOKS) - {"on_round"})), workload, "1x2", down=down)
    assert Told.heard == [
        (0, "on_submit", 0), (0, "on_submit", 1), (0, "on_submit", 2), (0, "decide", 3),
        (10, "on_finish", 0), (10, "on_finish", 1), (10, "on_submit", 3), (10, "decide", 2),
        (15, "on_requeue", 2), (15, "on_node_down", 0), (15, "decide", 2),
        (20, "on_node_up", 0), (20, "on_submit", 4), (20, "decide", 3),
        (21, "on_finish", 4), (21, "decide", 1), (25, "on_finish", 3), (25, "decide", 1), (35, "on_finish", 2),
    ]  # fmt: skip


def test_rounds_are_at_whole_multiples_while_jobs_wait_or_run(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,5,20,1", "b,100,10,1", "c,117,13,1")
    replay(telling("on_round", every=10.0), workload, "1x1")
    rounds = [(t, n) for t, what, n in Told.heard if what == "on_round"]
    # a ends at 25, b is submitted at a multiple and ends at one, at which nobody is left
    assert rounds == [(10, 1), (20, 2), (100, 10), (120, 12)]
    decided = [t for t, what, _ in Told.heard if what == "decide"]
    assert decided == [5, 10, 20, 100, 117, 120]


@pytest.mark.parametrize("every", [0.1, 1 / 3, 7.7])
def test_no_multiple_is_missed_or_told_twice(tmp_path: Path, every: float) -> None:
    replay(telling("on_round", every=every), jobs(tmp_path, f"a,{3 * every},{200.5 * every},1"), "1x1")
    assert [n for _, what, n in Told.heard if what == "on_round"] == list(range(3, 204))


class Leases(Told):
    """A lease of four seconds, renewed once."""

    def decide(self, view: View) -> None:
        super().decide(view)
        for job in view.running:
            if view.ran(job) == 0:
                view.lease(job, view.now + 4)

    def on_lease_end(self, view: View, job: int) -> None:
        """See `PythonPolicy.on_lease_end`."""
        self.heard.append((view.now, "on_lease_end", view.held(job)))
        if view.now < 5:
            view.lease(job, view.now + 4)


def test_a_job_whose_lease_is_not_renewed_is_queued_at_the_same_second(tmp_path: Path) -> None:
    replay(type("LeasesToo", (Leases,), {"on_requeue": _write_down("on_requeue")}), jobs(tmp_path, "a,0,11,1"), "1x1")
    assert Told.heard == [
        (0, "decide", 1), (4, "on_lease_end", 1),
        (8, "on_lease_end", 1), (8, "on_requeue", 0), (8, "decide", 1),
    ]  # fmt: skip


class Timers(PythonPolicy):
    """Only timers: a job starts a second after it has come, and two seconds after it has failed."""

    name = "timers"

    def on_submit(self, view: View, job: int) -> None:
        """See `PythonPolicy.on_submit`."""
        view.wake(job, view.now + 1)

    def on_wake(self, view: View, job: int) -> None:
        """See `PythonPolicy.on_wake`."""
        assert view.start(job)
        view.timer(view.now + 2, 7)

    def on_timer(self, view: View, number: int) -> None:
        """See `PythonPolicy.on_timer`."""
        assert number == 7
        for job in view.running:
            assert not view.preempt(job, mode="epoch") or view.start(job)


def test_hooks_alone_are_a_policy(tmp_path: Path) -> None:
    outcome = replay(Timers, jobs(tmp_path, "a,0,10,1"), "1x1")
    assert outcome.jobs["start_s"].to_list() == [1]
    assert outcome.instants == 4, "submission, wake, timer, end"


class ByHooks(PythonPolicy):
    """`fifo-skip` without `decide`: looks whenever a job has come or GPUs are free."""

    name = "by-hooks"

    def look(self, view: View, number: int) -> None:
        """Start what fits."""
        del number
        for job in view.waiting:
            view.start(job, "free")

    on_submit = on_requeue = on_finish = on_node_up = look


class ByDecide(PythonPolicy):
    """The same, by `decide`."""

    name = "by-decide"

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in view.waiting:
            view.start(job, "free")


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_hooks_and_decide_do_the_same(seed: int) -> None:
    one, two = (run(kind(), *random_case(seed)) for kind in (ByHooks, ByDecide))
    assert one.decisions.write_ndjson() == two.decisions.write_ndjson()
    assert one.instants == two.instants


def test_a_fork_tells_the_twin(tmp_path: Path) -> None:
    class Counts(ByHooks):
        every = 5.0

        def begin(self, view: View) -> None:
            self.count = 0

        def on_round(self, view: View, number: int) -> None:
            self.count += 1

    workload, cluster, shared = random_case(1)
    one = Simulation(workload, cluster, Counts(), shared)
    one.advance(steps=3)
    two = one.fork()
    one.run()
    two.run()
    assert one.outcome().decisions.equals(two.outcome().decisions)
    assert one.program._policy.count == two.program._policy.count > 0  # type: ignore[attr-defined]


def test_a_policy_without_anything_is_refused(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,10,1")
    for body, said in (
        ({}, "neither decide"),
        ({"on_round": _write_down("on_round")}, "every = 0"),
        ({"decide": _write_down("decide"), "every": -1.0}, "every = -1"),
    ):
        with pytest.raises(InputError, match=said):
            replay(type("Nothing", (PythonPolicy,), {"name": "nothing", **body}), workload, "1x1")


def test_a_fault_in_a_hook_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "from gpuctl.replay.contract.python_policy import PythonPolicy\n"
        "class Bad(PythonPolicy):\n"
        "    name = 'bad'\n"
        "    def on_submit(self, view, job):\n"
        "        return 1 / 0\n"
    )
    with pytest.raises(InputError) as caught:
        replay(find(f"{file}:Bad"), jobs(tmp_path, "a,0,10,1"), "1x1")
    assert (caught.value.path, caught.value.line) == (str(file), 5)


def test_the_example_that_makes_room_stops_nobody_without_progress(tmp_path: Path) -> None:
    # a has run longest, and is the oldest whenever the GPU is free: each of the others could stop it at once
    rows = ["a,0,50000,1", "b,100,4000,1", *(f"c{k},{3800 + 4000 * k},4000,1" for k in range(5))]
    kind = find(f"{Path(__file__).parents[4] / 'docs' / 'examples' / 'my_policies.py'}:MakeRoom")
    done = replay(kind, jobs(tmp_path, *rows), "1x1")
    attempts = done.attempts.filter(done.attempts["end"] == "preempted")
    assert attempts.height > 0
    assert (attempts["end_s"] - attempts["start_s"]).min() >= 3600  # type: ignore[operator]
    assert done.jobs["preemptions"].max() == 1
