"""A GPU is one GPU, whoever is on it: jobs beside each other, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pytest

from gpuctl.replay.contract.conformance import check, random_case, run, violations
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.speed import PACK_SPEED
from gpuctl.replay.results.metrics import summary
from gpuctl.replay.results.shared_gpus import portions
from gpuctl.replay.results.store import write_store
from gpuctl.replay.results.timelines import levels, occupancy
from gpuctl.store.database import Store
from tests.replay_policies import Packer, Slicer
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

P = PACK_SPEED
HEADER = "job_id,submit_time,duration,num_gpus,vc"


def chain(folder: Path) -> tuple[Workload, Cluster]:
    """On two GPUs, at PACK_SPEED while there is company: a to 20, b to 40, c alone on one GPU from then to 50."""
    rows = (f"a,0,{20 * P},2,qa", f"b,0,{40 * P},2,qb", f"c,0,{40 * P + 10},1,qc")
    workload = jobs(folder, *rows, header=HEADER)
    return workload, parse_cluster("1x2", workload)


class Watched(Packer):
    """Writes down what it is told at some seconds."""

    name = "watched"
    always = True
    seen: ClassVar[dict[float, tuple[list[int], list[float]]]] = {}

    def decide(self, view: View) -> None:
        super().decide(view)
        if view.now == 0:
            view.timer(10, 1)
            view.timer(30, 2)
            view.timer(45, 3)
        self.seen[view.now] = [view.queue_used(k) for k in range(3)], [view.attained(k) for k in range(3)]


def busy(outcome: Outcome, cluster: Cluster) -> list[tuple[float, int]]:
    """Second and GPUs busy from then on, where that changes."""
    rows = list(levels(outcome, cluster).select("t_s", "gpus_busy").iter_rows())
    return [row for k, row in enumerate(rows) if k == 0 or row[1] != rows[k - 1][1]]


def test_two_packed_jobs_use_two_gpus_not_four(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", "b,0,100,2")
    outcome, cluster = replay(Packer, workload, "1x2"), parse_cluster("1x2", workload)
    end = pytest.approx(100 / P)
    assert outcome.jobs["end_s"].to_list() == [end, end]
    assert outcome.jobs["gpu_s"].to_list() == [end, end]
    figures = summary(outcome, workload, cluster)
    assert figures["utilization_pct"] == pytest.approx(100)
    assert figures["goodput_pct"] == pytest.approx(100)
    assert figures["idle_gpu_h"] == pytest.approx(0)
    assert levels(outcome, cluster)["gpus_busy"].to_list()[0] == 2
    assert levels(outcome, cluster)["running_jobs"].to_list()[0] == 2
    cells, _ = occupancy(outcome, cluster, np.linspace(0, 100, 3))
    assert cells["busy_pct"].to_list() == [pytest.approx(100)] * 2


def test_a_slice_of_a_gpu_is_half_of_it(tmp_path: Path) -> None:
    class Turns(Packer):
        sliced = True

    workload = jobs(tmp_path, "a,0,60,1", "b,0,60,1")
    outcome = replay(Turns, workload, "1x1")
    # each has the GPU for 60 s and pays for half of the switches
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(61), pytest.approx(61)]
    assert summary(outcome, workload, parse_cluster("1x1", workload))["utilization_pct"] == pytest.approx(100)


def test_the_guest_leaves_first(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", "b,10,30,2")
    outcome, cluster = replay(Packer, workload, "1x2"), parse_cluster("1x2", workload)
    beside = 30 / P
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(20 + beside + 120), pytest.approx(beside)]
    assert outcome.attempts["own_s"].to_list() == [0, None]
    assert [gpus for _, gpus in busy(outcome, cluster)] == [2, 0]


def test_a_chain_of_heirs(tmp_path: Path) -> None:
    workload, cluster = chain(tmp_path)
    outcome = replay(Watched, workload, "1x2")
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(20), pytest.approx(40), pytest.approx(50)]
    # of two GPUs three jobs are on the first one and two on the second; then two and one; then one on one
    third, half = 20 / 3, 20 / 2
    expected = [third + half, third + half + half + 20, third + half + 10]
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(value) for value in expected]
    assert sum(expected) == pytest.approx(2 * 40 + 10)
    assert portions(outcome).tolist() == [pytest.approx(value) for value in expected]
    assert busy(outcome, cluster) == [(0, 2), (pytest.approx(40), 1), (pytest.approx(50), 0)]
    assert outcome.attempts["own_s"].to_list() == [0, pytest.approx(20), pytest.approx(40)]
    assert outcome.attempts["shared"].to_list() == [False, True, True], "nothing is rewritten"
    assert summary(outcome, workload, cluster)["utilization_pct"] == pytest.approx(90)
    # a shared GPU counts for the queue of the job whose it is; attained service in equal parts
    seen = Watched.seen
    assert [seen[t][0] for t in (10.0, 30.0, 45.0)] == [[2, 0, 0], [0, 2, 0], [0, 0, 1]]
    assert seen[10.0][1] == [pytest.approx(v) for v in ((third + half) / 2, (third + half) / 2, third / 2)]


def test_the_store_has_fractions_of_gpus(tmp_path: Path) -> None:
    workload, cluster = chain(tmp_path)
    outcome = replay(Packer, workload, "1x2")
    write_store(tmp_path / "out.duckdb", [outcome], workload, cluster)
    with Store(tmp_path / "out.duckdb") as store:
        rows = store.frame(
            "SELECT job, a.gpus * run_s AS gpu_s, p.gpus * run_s AS placed FROM attempts a JOIN placements p "
            "USING (cluster, job, attempt) ORDER BY job"
        )
        asked = store.frame("SELECT gpus FROM jobs ORDER BY job")["gpus"].to_list()
    assert rows["gpu_s"].to_list() == [pytest.approx(v, abs=1e-3) for v in outcome.jobs["gpu_s"]]
    assert rows["placed"].to_list() == rows["gpu_s"].to_list()
    assert asked == [2, 2, 1]


class Evicting(Packer):
    """b beside a; a is stopped at 10, which takes 20 s, in which b stays beside it; a comes back to idle GPUs."""

    name = "evicting"
    always = True
    preempts = True

    def decide(self, view: View) -> None:
        super().decide(view)
        if view.now == 0:
            view.timer(10)
        if view.now == 10:
            view.preempt(0)


def test_overhead_counts_in_parts_too(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", f"b,0,{15 * P},2")
    outcome = replay(Evicting, workload, "1x2", "const:60")
    # a writes its checkpoint from 10 to 30: half of both GPUs to 15, then all of both; from 30 on it resumes, 40 s
    row = outcome.jobs.row(0, named=True)
    assert outcome.jobs["end_s"][1] == pytest.approx(15)
    assert row["overhead_gpu_s"] == pytest.approx(5 * 1 + 15 * 2 + 40 * 2)
    # 10 s at PACK_SPEED are done, none while the checkpoint was written, b or no b
    assert row["end_s"] == pytest.approx(30 + 40 + 100 - 10 * P)
    assert row["gpu_s"] == pytest.approx(15 + (row["end_s"] - 15) * 2)


def test_a_packer_passes_the_check() -> None:
    assert check(Packer, 25) == []
    assert check(Slicer, 25) == []


def test_the_check_finds_gpus_that_count_twice() -> None:
    case = next(case for case in map(random_case, range(20)) if run(Packer(), *case).attempts["shared"].any())
    outcome = run(Packer(), *case)
    assert violations(outcome, *case) == []
    twice = replace(outcome, attempts=outcome.attempts.with_columns(own_s="start_s"))
    paid = replace(outcome, jobs=outcome.jobs.with_columns(pl.col("gpu_s") * 2))
    assert any("somebody's own" in line for line in violations(twice, *case))
    assert any("GPUs are busy at" in line for line in violations(twice, *case))
    assert any("is charged for" in line for line in violations(paid, *case))
