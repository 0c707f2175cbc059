"""Jobs that run on more or fewer GPUs than their gang: figures on paper, and work that is kept through every resize."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.conformance import foresight, random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_bounds, with_types
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.policies import find
from tests.unit.replay.engine.test_engine import jobs
from tests.unit.replay.engine.test_engine import replay as replayed

if TYPE_CHECKING:
    from gpuctl.replay.contract.view import View

HEADER = "job_id,submit_time,duration,num_gpus,min_gpus,max_gpus"


class Steps(PythonPolicy):
    """Starts the job on one GPU, and resizes it every ten seconds."""

    name = "steps"
    every = 10.0

    def on_submit(self, view: View, job: int) -> None:
        """See `PythonPolicy.on_submit`."""
        assert (view.least[job], view.gpus[job], view.most[job]) == (1, 2, 4)
        assert not view.start(job, gpus=0)
        assert not view.start(job, gpus=5)
        assert not view.start(job, gpus=2, nodes={0: 3})
        assert [view.speed(job, n) for n in (0, 1, 2, 3, 4)] == pytest.approx([0, 0.6, 1, 1.3, 1.4])
        assert view.start(job, gpus=1)

    def on_round(self, view: View, number: int) -> None:
        """See `PythonPolicy.on_round`."""
        assert not view.resize(0, 5)
        if number in {1, 2}:
            assert view.resize(0, {0: 2 * number})


def test_work_is_kept_through_resizes_and_a_curve_is_followed(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,30,2,1,4", header=HEADER)
    workload = replace(workload, curve=np.array([0]), curves=(np.array([3.0, 5.0, 6.5, 7.0]),))
    outcome = replayed(Steps, workload, "1x8")
    # 10 s at 0.6 and 10 s at 1 are 16 s of 30; the rest at 1.4
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(20 + 14 / 1.4)]
    assert outcome.attempts["gpus"].to_list() == [1, 2, 4]
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(10 + 20 + 4 * 10)]


@pytest.mark.parametrize(
    ("row", "said"),
    [("a,0,30,2,3,4", "min_gpus is above"), ("a,0,30,2,1,1", "max_gpus is below"), ("a,0,30,2,0,2", "at least 1")],
)
def test_bounds_that_cannot_be_are_reported(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        jobs(tmp_path, row, header=HEADER)


class Restless(PythonPolicy):
    """Starts jobs on whatever it draws, and resizes those that run, absurd sizes among them."""

    name = "restless"
    every = 3.0

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        self.draw = np.random.Generator(np.random.PCG64(0))

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in view.waiting:
            _ = view.start(job, gpus=int(self.draw.integers(-1, 20))) or view.start(job)

    def on_round(self, view: View, number: int) -> None:
        """See `PythonPolicy.on_round`."""
        for job in view.running if number < 30 else ():
            view.resize(job, int(self.draw.integers(-1, 20)))


@pytest.mark.parametrize("seed", range(40))
def test_elastic_jobs_break_no_invariant(seed: int) -> None:
    workload, cluster, shared = random_case(seed)
    workload, cluster, shared = with_bounds(seed, (workload, cluster, shared))
    outcome = run(Restless(), workload, cluster, shared)
    assert violations(outcome, workload, cluster, shared) == []


EXAMPLE = f"{Path(__file__).parents[4] / 'docs' / 'examples' / 'elastic.py'}:GrowAndShrink"
CURVED = f"{HEADER},speed_curve"


def test_the_example_shrinks_for_who_waits_and_grows_into_what_is_idle(tmp_path: Path) -> None:
    # a alone has all GPUs from its gang's 2 on; it gives up 2 for b, and later one for c
    rows = ("a,0,100,2,1,4,1;2;3;4", "b,20,30,3,2,3,1;2;3", "c,25,10,1,,,")
    workload = jobs(tmp_path, *rows, header=CURVED)
    assert workload.curve is not None
    assert workload.curve.tolist() == [1, 0, -1]
    outcome = replayed(lambda: find(EXAMPLE)({"grow_every": "10"}), workload, "1x4")
    assert outcome.decisions.filter(~outcome.decisions["decision"].is_in(["finish"])).select(
        "t_s", "job", "decision", "gpus"
    ).rows()[:6] == [
        (0, "a", "start", 2),
        (0, "a", "resize", 4),
        (20, "a", "resize", 2),
        (20, "b", "start", 2),
        (25, "a", "resize", 1),
        (25, "c", "start", 1),
    ]
    # c has ended at 35, and at 40 a, which gains more than b, grows; 20 · 2 + 5 + 15 / 2 s of its 100 are done by then;
    # b is done at 20 + 30 / (2 / 3), when at 65 a does the rest on all
    assert outcome.jobs["end_s"].to_list()[1:] == [65, 35]
    done = 20 * 2 + 5 + 15 / 2 + 25
    assert outcome.jobs["end_s"][0] == pytest.approx(70 + (100 - done - 5) / 2)


@pytest.mark.parametrize("seed", range(20))
def test_the_example_breaks_no_invariant(seed: int) -> None:
    case = with_bounds(seed, with_types(seed, random_case(seed)) if seed % 2 else random_case(seed))
    params = {"grow_every": "7"}
    outcome = run(find(EXAMPLE)(params), *case)
    assert violations(outcome, *case) == []
    assert foresight(lambda: find(EXAMPLE)(params), case, outcome, seed) == []


@pytest.mark.parametrize(
    "curve",
    [
        "1;two",
        "1;;2",
        "1|2",
        "0.2:1;2",
        "1|0.5:2|0.4:3",
        "1|1.5:2",
        "1|x:2",
        "1|0.5:",
        "0;1",
        "1;-2",
        "nan",
        "inf",
        "1;1e9",
        ";",
    ],
)
def test_a_curve_that_is_none_is_reported_with_its_line(tmp_path: Path, curve: str) -> None:
    with pytest.raises(InputError, match=r"speed_curve is not a list of speeds from .* in 1 row: line 3 \(job 'b', "):
        jobs(tmp_path, "a,0,30,2,1,4,1;2", f"b,0,30,2,1,4,{curve}", header=CURVED)


class OnTwo(PythonPolicy):
    """Starts jobs on two GPUs, and writes down how fast they are there."""

    name = "on-two"
    always = True
    heard: ClassVar[list[tuple[float, float, float]]] = []

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in view.waiting:
            view.start(job, gpus=2)
        for job in view.running:
            self.heard.append((view.now, view.speed(job, 2), view.rate(job)))
        view.timer(view.now + 10)


def test_speeds_change_as_a_job_comes_forward(tmp_path: Path) -> None:
    # on two GPUs: the first 20 s of work at speed 1, the next 30 s at 1.5, the rest at 2
    OnTwo.heard.clear()
    workload = jobs(tmp_path, "a,0,100,1,1,2,1;1|0.2:1;1.5|0.5:1;2", header=CURVED)
    outcome = replayed(OnTwo, workload, "1x2")
    assert outcome.jobs["end_s"].to_list() == [20 + 30 / 1.5 + 50 / 2]
    assert OnTwo.heard[:6] == [(0, 1, 1), (10, 1, 1), (20, 1.5, 1.5), (30, 1.5, 1.5), (40, 2, 2), (50, 2, 2)]


def test_a_job_on_its_gang_is_as_fast_as_its_run_time_says(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2,1,2,1;1.2|0.3:1;1.9", "b,0,50,2,2,2,1;1.2", header=CURVED)
    outcome = replayed(find("fifo"), workload, "1x2")
    assert outcome.jobs["end_s"].to_list() == [100, 150]


class Throws(PythonPolicy):
    """Starts a job on two GPUs, throws it out once, without a checkpoint, and starts it again."""

    name = "throws"
    preempts = True

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        view.timer(30)

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in view.waiting:
            view.start(job, gpus=2)

    def on_timer(self, view: View, number: int) -> None:
        """See `PythonPolicy.on_timer`."""
        view.preempt(0, mode="abort")
        view.start(0, gpus=2)


def test_a_job_that_restarts_has_its_first_speeds_again(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,1,1,2,1;1|0.2:1;2", header=CURVED)
    outcome = replayed(Throws, workload, "1x2")
    assert outcome.jobs["end_s"].to_list() == [30 + 20 + 80 / 2]
