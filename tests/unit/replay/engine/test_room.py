"""No policy writes past the end of an array, whatever it does; arrays grow when they must."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.conformance import random_case
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine import setup
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.engine.state import HELD, REJECTED, State, wanted
from gpuctl.replay.policies import BUILT_IN, find
from tests import replay_hostile
from tests.replay_policies import Crowd, Packer
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.contract.view import View

NAMES = [name for name in BUILT_IN if name != "recorded"]
GROWING = ("log", "attempts", "pieces", "events", "turns")


class Reserves(PythonPolicy):
    name = "reserves"

    def decide(self, view: View) -> None:
        for job in view.waiting:
            if not view.start(job):
                for _ in range(10):
                    assert view.reserve(job, view.now + 1, dict.fromkeys(range(400), 1))


def test_hundreds_of_nodes_are_reserved_at_once(tmp_path: Path) -> None:
    outcome = replay(Reserves, jobs(tmp_path, "a,0,100,400", "b,1,100,400"), "400x1")
    assert outcome.decisions["decision"].to_list().count("reserve") == 4000
    assert outcome.jobs["end_s"].to_list() == [100, 200]


def test_hundreds_of_nodes_blink_at_once(tmp_path: Path) -> None:
    # at each of four seconds all of them come up and go down again; one job, so that the arrays are short
    times = np.array([[s, 10.0 * k, 10.0 * (k + 1)] for k in range(1, 5) for s in range(400)], float)
    outcome = replay(find("fifo"), jobs(tmp_path, "a,0,5,1", "b,12,5,1"), "400x1", down=times)
    assert outcome.decisions["decision"].value_counts().sort("decision").rows() == [
        ("finish", 2), ("node_down", 1600), ("node_up", 1600), ("start", 2)
    ]  # fmt: skip
    assert outcome.jobs["start_s"].to_list() == [0, 50]


def _cut(state: State) -> None:
    """Leave no more room than is promised."""
    sizes = wanted(state.g[0], state.nodes.size)
    cut = {name: getattr(state, name)[:size].copy() for name, size in zip(GROWING, sizes, strict=True)}
    # a step starts with the events of the instant before forgotten: what it may tell is a number of its own
    del cut["events"]
    if state.g[0].resources:
        cut["needs"] = state.needs[: sizes[2]].copy()
    state.put(**cut)


@pytest.mark.parametrize("name", [*NAMES, "packer", "crowd"])
def test_promised_columns_suffice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every instant the arrays have just the room that `wanted` says; one line more would be an IndexError.

    What small cases write would fit into the 64 that it adds for good measure, so those are not counted on here.
    """

    def exactly(array: Any, needed: int) -> Any:
        longer = np.zeros(max(needed, array.size), array.dtype).view(np.recarray)
        longer[: array.size] = array
        return longer

    monkeypatch.setattr(setup, "_longer", exactly)
    own: dict[str, type[Policy]] = {"packer": Packer, "crowd": Crowd}
    kind = own.get(name) or find(name)
    # of the first twelve those that come nearest to it
    for seed in (1, 2, 5, 8, 9, 11):
        case = random_case(seed, resources=kind.resources and seed % 2 == 1)
        simulation = Simulation(case[0], case[1], kind(), case[2])
        g, more = simulation.state.g[0], True
        while more:
            _cut(simulation.state)
            before, ran, left = [int(g[k]) for k in GROWING[:3]], int(g.running), simulation.left
            more = simulation.advance(steps=1)
            # what the step may write, and what the pass may; a job that was rejected waited before it
            jobs_there = int(g.waiting + g.running) + left - simulation.left
            some = ran + 4 * jobs_there + len(case[1].nodes) + int(g.at_once)
            written = [int(g[k]) - b for k, b in zip(GROWING[:3], before, strict=True)]
            assert written[0] <= some
            assert written[1] <= 4 * jobs_there
            assert written[2] <= 2 * int(case[1].total_gpus) + int(g.splits) + 4 * jobs_there
        # what a rejected job was to come before is never submitted
        states = simulation.state.jobs["state"]
        after = {job for job, first in case[0].depends.tolist() if states[first] in {HELD, REJECTED}}
        assert simulation.left == int((states == HELD).sum())
        assert {job for job, state in enumerate(states.tolist()) if state == HELD} <= after


class Astray(PythonPolicy):
    """Names jobs, nodes and seconds that there are not."""

    name = "astray"

    def decide(self, view: View) -> None:
        nan, inf = float("nan"), float("inf")
        for job in (-1, 2, 2**31, 2**63, 2**70):
            assert not view.start(job)
            assert not view.preempt(job)
            assert not view.resize(job, 1)
            assert not view.migrate(job)
            assert not view.share(0, job)
            assert not view.share(job, 0)
            assert not view.lease(job, view.now + 1)
            assert not view.reserve(job, 5.0, {0: 1})
            assert not view.wake(job, view.now + 1)
            assert not view.reject(job)
            assert not view.reserve(0, 5.0, {job: 1})
            assert not view.start(0, nodes={job: 1})
            assert not view.loan(job, 0)
            assert not view.loan(0, job)
        for gpus in (-1, 0, 2, 2**31, 2**63, 2**70):
            assert not view.reserve(0, 5.0, {0: gpus})
            assert not view.start(0, nodes={0: gpus})
        for at in (nan, -inf, -1):
            assert not view.wake(0, at)
            assert not view.timer(at)
        assert not view.reserve(0, nan, {0: 1})
        assert view.wake(0, inf)
        assert view.timer(inf)
        assert view.start(0)
        assert not view.lease(0, nan)
        assert view.lease(0, inf)
        assert not view.resize(0, 2**70)
        for job in list(view.waiting):
            view.reject(job)


def test_what_there_is_not_is_refused(tmp_path: Path) -> None:
    outcome = replay(Astray, jobs(tmp_path, "a,0,5,1", "b,0,5,1"), "2x1")
    assert outcome.jobs["end_s"].to_list() == [5, None]
    assert outcome.decisions["decision"].to_list() == ["start", "lease", "reject", "finish"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("view.start(0.5)", r"own\.py:6: Own failed at second 0"),
        ("view.start(0, 3)", r"own\.py:6: Own failed at second 0"),
        ("view.attained(7)", "Own reads job 7 at second 0, which has not been submitted"),
        ("view.ran(-1)", "Own reads job -1 at second 0, which has not been submitted"),
    ],
)
def test_what_makes_no_sense_is_the_policys_fault(call: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from gpuctl.replay.contract.python_policy import PythonPolicy\n\n\nclass Own(PythonPolicy):\n"
        f"    def decide(self, view):\n        {call}\n"
    )
    with pytest.raises(InputError, match=said):
        replay(find(f"{file}:Own"), jobs(tmp_path, "a,0,5,1"), "pool:4")


@pytest.mark.timeout(1200)  # the checked code is compiled here
def test_a_policy_that_tries_everything_breaks_nothing(root: Path) -> None:
    """Uncompiled, and compiled with every index looked at: nothing is written where it should not be."""
    broken: list[str] = []
    digests = replay_hostile.tried(broken)
    assert broken == []
    for how in ("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"):
        # the compiler adds the looks at indices, whether LLVM then makes the code fast or not
        environ = dict(os.environ, PYTHONPATH=str(root), NUMBA_OPT="0") | {how: "1"}
        command = [sys.executable, replay_hostile.__file__]
        found = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=1100)
        assert found.returncode == 0, found.stderr
        assert found.stdout.split() == digests, how
