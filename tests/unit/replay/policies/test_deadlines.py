"""Deadlines of jobs, and the policies that go by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import bootstrap, scale_load
from gpuctl.replay.models.traits import deadline_notes, deadlines
from gpuctl.replay.results.tables import result
from gpuctl.replay.run import replay
from tests.elasticflow_reference import Elastic
from tests.elasticflow_reference import replay as slow
from tests.unit.replay.policies.test_scores import simulation

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "job_id,submit_time,duration,num_gpus,deadline"


def test_edf_by_hand(tmp_path: Path) -> None:
    # b takes all at 10, a goes on at 30; c has no deadline and comes last, though it fits beside a
    rows = [HEAD, "a,0,100,3,500", "b,10,20,4,40", "c,12,10,1,"]
    one = simulation(tmp_path / "jobs.csv", "edf", "pool:4", rows)
    one.run()
    jobs = one.outcome().jobs
    assert jobs["start_s"].to_list() == [0, 10, 30]
    assert jobs["end_s"].to_list() == [120, 30, 40]
    assert jobs["preemptions"].to_list() == [1, 0, 0]
    assert one.policy.oracle is False


ELASTIC = "job_id,submit_time,duration,num_gpus,max_gpus,alpha,deadline"


def elastic(path: Path, rows: list[str], **params: str) -> tuple[list[float | None], dict[str, Any]]:
    """Ends of jobs under elasticflow on four GPUs, and its row of deadlines."""
    path.write_text("\n".join([ELASTIC, *rows]))
    workload = read_jobs(path)
    policy = ("elasticflow", params)
    nodes = parse_cluster("pool:4", workload)
    outcomes = replay(workload, nodes, [policy], own_speeds=True, processes=1)
    found = next(t for t in result(outcomes, workload, nodes).tables if t.name == "replay_deadlines")
    return outcomes[0].jobs["end_s"].to_list(), found.frame.row(0, named=True)


def test_shares_and_leftovers(tmp_path: Path) -> None:
    # b's ceiling is 2, a's is 1; a's next level costs the one GPU left: both on 2
    rows = ["a,0,600,1,4,0,600", "b,0,600,1,4,0,300"]
    ends, row = elastic(tmp_path / "jobs.csv", rows)
    assert ends == [300, 300]
    assert row == {"policy": "elasticflow", "deadlines": 2, "deadlines_met": 2, "met_pct": 100, "deadlines_missed": 0,
                   "ended_late": 0, "declined": 0, "late_mean_s": None, "late_p95_s": None}  # fmt: skip
    # without leftovers for those that have some: a on 1 until 300, then it needs 1 for the 300 s left
    assert elastic(tmp_path / "jobs.csv", rows, grow="false")[0] == [600, 300]


def test_a_deadline_that_others_leave_no_room_for_is_declined(tmp_path: Path) -> None:
    # at 60 c would take 4 GPUs for 3 slots, and b's 480 s left would have one; d gets the GPU that is left
    rows = ["a,0,600,1,4,0,600", "b,0,600,1,4,0,300", "c,30,600,1,4,0,240", "d,30,600,1,4,0,"]
    ends, row = elastic(tmp_path / "jobs.csv", rows)
    assert ends == [420, 300, None, 450]
    assert (row["deadlines"], row["deadlines_met"], row["deadlines_missed"], row["declined"]) == (3, 2, 1, 1)
    ends, _ = elastic(tmp_path / "jobs.csv", rows, admit="2")
    assert None not in ends


def test_more_than_the_gang_where_the_deadline_needs_it(tmp_path: Path) -> None:
    # speeds of a 5/8, 1, 10/7: 8 slots need a ceiling of 4 until 300, then 2; b has 2 from 300 on
    rows = ["a,0,600,2,4,.25,500", "b,0,300,1,2,.25,"]
    assert elastic(tmp_path / "jobs.csv", rows)[0] == pytest.approx([471.429, 487.5], abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_as_the_slow_reference_does(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    jobs = []
    for k in range(40):
        submit, seconds = int(draw.integers(0, 2000)), int(draw.integers(1, 900))
        gang, alpha = int(draw.choice([1, 1, 2, 4])), float(draw.choice([0, 0.1, 0.3]))
        jobs.append(Elastic(k, submit, seconds, gang, 4, alpha, submit + seconds * 3 + 60))
    rows = [f"j{j.line},{j.submit},{j.left},{j.gang},{j.most},{j.alpha},{j.deadline}" for j in jobs]
    ends, row = elastic(tmp_path / "jobs.csv", rows)
    jobs.sort(key=lambda job: (job.submit, job.line))
    wanted = slow(jobs, 4)
    assert ends == [None if end is None else pytest.approx(end, abs=1e-6) for end in wanted]
    late = [end - job.deadline for end, job in zip(wanted, jobs, strict=True) if end and end > job.deadline + 1e-6]
    assert row["declined"] == wanted.count(None) > 0
    assert row["ended_late"] == len(late)
    assert row["late_mean_s"] == (pytest.approx(np.mean(late)) if late else None)


def test_deadlines_move_with_submissions(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, "a,100,10,1,160", "b,300,10,1,"]))
    workload = read_jobs(path)
    assert deadlines(workload).tolist() == [160, np.inf]
    assert deadline_notes(workload) == ()
    assert deadlines(scale_load(workload, 2)).tolist() == [110, np.inf]
    again = bootstrap(workload, 10, 1)
    left = deadlines(again) - again.submit
    assert set(left.tolist()) <= {60, np.inf}


@pytest.mark.parametrize("policy", ["fifo", "edf", "elasticflow"])
def test_a_deadline_before_submission_is_missed_and_stated(policy: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, "a,100,10,1,100", "b,100,10,1,40", "c,100,10,1,900"]))
    workload = read_jobs(path)
    nodes = parse_cluster("pool:4", workload)
    outcomes = replay(workload, nodes, [(policy, {})], own_speeds=True, processes=1)
    table = next(t for t in result(outcomes, workload, nodes).tables if t.name == "replay_deadlines")
    row = table.frame.row(0, named=True)
    assert (row["deadlines_met"], row["deadlines_missed"]) == (1, 2)
    assert "2 jobs are due at or before their submission" in str(table.notes[0])


def test_the_summary_counts_deadlines_of_the_input(tmp_path: Path) -> None:
    # under elasticflow b cannot be guaranteed beside a, which was admitted before
    rows = ["a,0,600,4,4,0,660", "b,1,600,4,4,0,700", "c,2,60,1,1,0,"]
    (tmp_path / "jobs.csv").write_text("\n".join([ELASTIC, *rows]))
    found = {}
    for name, head in (("given", ELASTIC), ("none", ELASTIC.replace("deadline", "other"))):
        (tmp_path / "jobs.csv").write_text("\n".join([head, *rows]))
        workload = read_jobs(tmp_path / "jobs.csv")
        nodes = parse_cluster("pool:4", workload)
        outcomes = replay(workload, nodes, [("fifo", {}), ("elasticflow", {})], own_speeds=True, processes=1)
        table = next(t for t in result(outcomes, workload, nodes).tables if t.name == "replay_summary")
        found[name] = table.frame.select("^deadlines.*$").rows()
    assert found["given"] == [(2, 1, 1, 0), (2, 1, 1, 1)]
    # deadlines that a policy assumes are in its own table alone
    assert found["none"] == [(None, None, None, None)] * 2


def test_assumed_deadlines(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD.removesuffix(",deadline"), *(f"j{k},5,1000,1" for k in range(50))]))
    workload = read_jobs(path)
    left = deadlines(workload) - 5
    assert left.min() >= 500
    assert left.max() <= 1500
    assert np.unique(left).size > 40
    # crc32(b"j0:deadline") is 3 631 553 727
    assert left[0] == pytest.approx(500 + 3631553727 % 1001)
    assert len(deadline_notes(workload)) == 1
