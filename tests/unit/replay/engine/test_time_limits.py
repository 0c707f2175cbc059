"""``--limits``: a limit is of the time on GPUs since a job last began from zero, and a job cut there is counted so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.results.metrics import summary
from tests.unit.replay.engine.test_engine import jobs

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

HEADER = "job_id,submit_time,duration,num_gpus,requested_time"
SHORT = ("b1,400,10,1,600", "b2,800,10,1,600")


def under_limits(
    policy: Any, workload: Workload, spec: str = "1x1", suspend_s: float = 0.0, down: Any = None
) -> tuple[Outcome, Cluster]:
    cluster = replace(parse_cluster(spec, workload), down=down)
    cost = replace(overhead("none", workload, cluster), suspend=np.full(workload.size, suspend_s))
    settings = Settings(rates("recorded", workload, cluster), cost, limits=True)
    simulation = Simulation(workload, cluster, policy, settings)
    simulation.run()
    return simulation.outcome(), cluster


@pytest.mark.parametrize("name", ["fifo-skip", "srtf", "las"])
def test_a_limit_counts_all_turns_of_a_job_that_keeps_its_work(tmp_path: Path, name: str) -> None:
    workload = jobs(tmp_path, "a,0,1000,1,500", *SHORT, header=HEADER)
    outcome, _ = under_limits(find(name)(), workload)
    job = outcome.jobs.row(0, named=True)
    assert (job["state"], job["run_s"], job["gpu_s"]) == ("cut", 500, 500)


class OnceAway(PythonPolicy):
    """Lets a job go on elsewhere, on as many GPUs."""

    name = "once-away"
    preempts = True

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in view.waiting:
            view.start(job, nodes={0: 1}) or view.migrate(0, {1: 1})


def test_a_limit_counts_on_through_a_migration(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,1000,1,500", "b,300,1000,1,500", header=HEADER)
    outcome, _ = under_limits(OnceAway(), workload, "2x1")
    assert outcome.attempts.filter(outcome.attempts["job"] == 0)["end_s"].to_list() == [300, 500]


class Abort(PythonPolicy):
    """Stops a job for each that comes."""

    name = "abort"
    preempts = True
    mode = "abort"

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        for job in list(view.waiting)[::-1]:
            view.start(job) or (view.preempt(view.running[0], mode=self.mode) and view.start(job))


def test_a_job_that_begins_from_zero_has_its_whole_limit(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,1000,1,500", SHORT[0], header=HEADER)
    outcome, _ = under_limits(Abort(), workload)
    # 400 s are lost, and from second 410 on it has 500 s again
    assert outcome.jobs.row(0, named=True)["end_s"] == 910
    outcome, _ = under_limits(find("fifo")(), workload, down=np.array([[0.0, 300.0, 310.0]]))
    assert outcome.jobs.row(0, named=True)["end_s"] == 810


def test_the_next_attempt_of_a_failed_job_has_a_limit_of_its_own(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,1000,1,500", header=HEADER)
    workload = replace(
        workload, segment_start=np.array([0, 2]), segment_s=np.array([400.0, 450.0]),
        segment_fails=np.array([True, False]), recorded_start=np.full(2, np.nan), piece_start=np.zeros(3, np.int64),
    )  # fmt: skip
    outcome, _ = under_limits(find("fifo")(), workload)
    assert outcome.jobs.row(0, named=True)["state"] == "finished"


def test_no_suspension_reaches_beyond_a_limit(tmp_path: Path) -> None:
    # to write its checkpoint takes 30 s, of which it has 20
    workload = jobs(tmp_path, "a,0,1000,1,500", "b,480,10,1,600", header=HEADER)
    outcome, _ = under_limits(find("srtf")(), workload, suspend_s=30.0)
    assert outcome.jobs["end_s"].to_list() == [500, 510]


def test_jobs_that_were_cut_are_no_finished_work(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,1000,1,500", "b,0,100,1,600", header=HEADER)
    outcome, cluster = under_limits(find("fifo")(), workload)
    found = summary(outcome, workload, cluster)
    assert (found["jobs_finished"], found["jobs_cut"]) == (1, 1)
    assert found["work_finished_gpu_h"] == pytest.approx(100 / 3600)
    # b waits for 500 s; a's wait counts, its slowdown does not
    assert (found["wait_mean_s"], found["slowdown_mean"]) == (250, 6)
    assert found["makespan_s"] == 600
