"""The examples after Kueue and Lucid: by hand, on random cases, and 10,000 jobs in a few seconds."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.compiled.loading import UNCOMPILED
from gpuctl.replay.contract.conformance import foresight, random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_pairs
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import PACK_SPEED, rates
from gpuctl.replay.policies import find
from tests.unit.replay.engine.test_engine import jobs

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Outcome, Workload

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
COHORT, PACKER = f"{EXAMPLES / 'cohort.py'}:Cohort", f"{EXAMPLES / 'packer.py'}:PredictAndPack"
HEADER = "job_id,submit_time,duration,num_gpus,vc,priority"


def replayed(policy: str, workload: Workload, spec: str, quota: float = 4, cost: str = "none") -> Outcome:
    cluster = parse_cluster(spec, workload)
    cluster = replace(cluster, quota=np.full(len(workload.queues), quota))
    settings = Settings(rates("recorded", workload, cluster), overhead(cost, workload, cluster))
    simulation = Simulation(workload, cluster, find(policy)({}), settings)
    simulation.run()
    return simulation.outcome()


def starts(outcome: Outcome) -> list[float]:
    return outcome.jobs["start_s"].to_list()


def test_a_queue_borrows_and_its_lender_takes_its_own_back(tmp_path: Path) -> None:
    # a borrows b's 4 GPUs until b wants 2 of them: the younger of those that can give 2 goes
    rows = ("a1,0,100,4,a,0", "a2,0,100,2,a,0", "a3,5,100,2,a,0", "b1,10,50,2,b,0")
    outcome = replayed(COHORT, jobs(tmp_path, *rows, header=HEADER), "1x8")
    assert starts(outcome) == [0, 0, 5, 10]
    assert outcome.jobs["preemptions"].to_list() == [0, 0, 1, 0]
    # it goes on with its 5 s done as soon as two GPUs are free
    assert outcome.jobs["end_s"].to_list()[2] == pytest.approx(60 + 95)


def test_who_borrows_takes_nothing_from_others(tmp_path: Path) -> None:
    rows = ("a1,0,100,4,a,0", "b1,0,100,4,b,0", "a2,10,10,1,a,9")
    outcome = replayed(COHORT, jobs(tmp_path, *rows, header=HEADER), "1x8")
    # a2 would borrow from b, which uses all that it has; in its own queue a1 is less urgent and gives way
    assert outcome.jobs["preemptions"].to_list() == [1, 0, 0]
    assert starts(outcome)[2] == 10


def test_of_two_that_wait_the_more_urgent_is_first(tmp_path: Path) -> None:
    rows = ("a1,0,100,8,a,5", "a2,1,10,8,a,0", "a3,2,10,8,a,5")
    outcome = replayed(COHORT, jobs(tmp_path, *rows, header=HEADER), "1x8", quota=8)
    assert starts(outcome) == [0, 110, 100]


@pytest.mark.parametrize("cost", ["const:30", "pickyman"])
def test_victims_that_are_written_out_are_waited_for(tmp_path: Path, cost: str) -> None:
    rows = ("a1,0,100,4,a,0", "a2,0,100,4,a,0", "b1,10,50,4,b,0", "b2,11,50,1,b,0")
    outcome = replayed(COHORT, jobs(tmp_path, *rows, header=HEADER), "1x8", cost=cost)
    assert (outcome.jobs["state"] == "finished").all()
    assert outcome.jobs["preemptions"].sum() == 1


def test_pairs_share_gpus_and_run_times_are_learned(tmp_path: Path) -> None:
    # u's first job took 10 s and v's 100 s: of the two that wait, u's is taken for the shorter one
    header = "job_id,submit_time,duration,num_gpus,user"
    rows = ("u1,0,10,1,u", "v1,10,100,1,v", "x1,110,50,1,x", "x2,110,50,1,x", "v2,111,5,1,v", "u2,112,5,1,u")
    outcome = replayed(PACKER, jobs(tmp_path, *rows, header=header), "1x1")
    shared = outcome.attempts.filter("shared")["job"].to_list()
    assert shared[0] == 3
    assert starts(outcome)[3] == 110
    assert outcome.jobs["end_s"][3] == pytest.approx(110 + 50 / PACK_SPEED)
    assert starts(outcome)[5] < starts(outcome)[4] or starts(outcome)[4] == starts(outcome)[5]
    decisions = outcome.decisions.filter(outcome.decisions["decision"].is_in(["start", "share"]))["job"].to_list()
    assert decisions.index("u2") < decisions.index("v2")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", [COHORT, PACKER])
def test_the_examples_break_no_invariant(policy: str, seed: int) -> None:
    case = random_case(seed)
    if policy == PACKER and seed % 2:
        case = with_pairs(seed, case)
    workload, cluster, settings = case
    # the cohort lends no more than its queues have together
    size = np.full(len(workload.queues), float(cluster.total_gpus))
    case = workload, replace(cluster, quota=size), settings
    outcome = run(find(policy)({}), *case)
    assert violations(outcome, *case) == []
    assert foresight(lambda: find(policy)({}), case, outcome, seed) == []


@pytest.mark.skipif(UNCOMPILED, reason="nothing runs compiled")
@pytest.mark.parametrize("policy", [COHORT, PACKER])
def test_ten_thousand_jobs_take_less_than_five_seconds(tmp_path: Path, policy: str) -> None:
    draw, at, rows = random.Random(1), 0.0, []
    for k in range(10_000):
        at += draw.expovariate(1 / 70)
        took, gpus = max(1.0, draw.lognormvariate(7, 1.5)), draw.choice([1, 1, 1, 2, 4, 8])
        rows.append(f"j{k},{at:.0f},{took:.0f},{gpus},{draw.choice('abcd')},{draw.choice([0, 0, 0, 10])}")
    # compiled code is loaded by the first of them
    replayed(policy, jobs(tmp_path, *rows[:50], header=HEADER), "16x8", quota=32)
    workload = jobs(tmp_path, *rows, header=HEADER)
    begin = time.process_time()
    outcome = replayed(policy, workload, "16x8", quota=32)
    assert time.process_time() - begin < 5
    assert (outcome.jobs["state"] == "finished").all()
    # it had to decide: jobs waited, and some were preempted or packed
    assert outcome.jobs["wait_s"].mean() > 60
    assert outcome.jobs["preemptions"].sum() > 100 or outcome.attempts["shared"].sum() > 100


@pytest.mark.parametrize("path", [COHORT, PACKER])
def test_they_are_short(path: str) -> None:
    assert len(Path(path.rpartition(":")[0]).read_text().splitlines()) < 60
