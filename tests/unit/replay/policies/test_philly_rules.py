"""When gangs of `philly` give up locality, on which nodes its jobs are put, and whom it moves: worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.notes import note
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.speed import SpreadSpeeds
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome

SPLIT = ("a,0,1000,3", "b,0,1000,3", "gang,10,100,2")
"""On two nodes of four GPUs: one is free on each when the gang comes."""


def replayed(folder: Path, jobs: tuple[str, ...], rules: dict[str, str], **models: Any) -> Outcome:
    (folder / "jobs.csv").write_text("\n".join(["job_id,submit_time,duration,num_gpus", *jobs]))
    workload = read_jobs(folder / "jobs.csv")
    [outcome] = replay(workload, parse_cluster("2x4", workload), [("philly", rules)], **models)
    assert (outcome.jobs["state"] == "finished").all()
    return outcome


def start(outcome: Outcome, job: str = "gang") -> float:
    return float(outcome.jobs.filter(outcome.jobs["job"] == job)["start_s"].item())


def slowed(speed: float) -> SpreadSpeeds:
    return SpreadSpeeds(note("by hand"), (4, 8), ((speed, speed),) * 3)


@pytest.mark.parametrize(
    ("rules", "at"),
    [
        ({"relax": "never"}, 1000),
        ({"relax": "time", "relax_after": "0"}, 10),
        ({"relax": "time", "relax_after": "60"}, 70),  # any nodes of the one rack
        ({"relax": "retry"}, 1090),  # it gathers for 150 s and rests for 120 s: 10, 280, 550, 820, 1090
    ],
)
def test_a_gang_gives_up_locality_when_its_rule_reports_it(tmp_path: Path, rules: dict[str, str], at: float) -> None:
    assert start(replayed(tmp_path, SPLIT, rules)) == at


def test_the_adaptive_rule_waits_as_long_as_spreading_would_cost(tmp_path: Path) -> None:
    # no job has ended: an hour is expected; at 0.99 of its speed that is 36.4 s more
    found = replayed(tmp_path, SPLIT, {"relax": "adaptive"}, rates=slowed(0.99))
    assert start(found) == pytest.approx(10 + 3600 * (1 / 0.99 - 1), abs=2)
    assert found.jobs["run_s"].to_list()[-1] == pytest.approx(100 / 0.99)
    # at half of it the loss is an hour, and a node is free before
    assert start(replayed(tmp_path, SPLIT, {"relax": "adaptive"}, rates=slowed(0.5))) == 1000


def test_the_adaptive_rule_learns_how_long_locality_takes(tmp_path: Path) -> None:
    # a gang has waited 990 s for locality and got it. The next one, whose own wait counts as if it ended now, expects
    # 990 / 2 = 495 s; it would lose the 100 s that the other one ran
    later = ("c,2000,1000,3", "d,2000,1000,3", "again,2010,100,2")
    found = replayed(tmp_path, (*SPLIT, *later), {"relax": "adaptive"}, rates=slowed(0.5))
    assert start(found) == 1000
    assert start(found, "again") == 2010


def test_a_job_has_a_node_of_its_own(tmp_path: Path) -> None:
    found = replayed(tmp_path, ("a,0,100,1", "b,0,200,1", "c,5,50,1"), {"dedicate": "server", "acquire": "0"})
    assert [start(found, job) for job in "abc"][:2] == [0, 0]
    assert start(found, "c") >= 100


def test_small_jobs_share_no_node_with_gangs(tmp_path: Path) -> None:
    jobs = ("s,0,100,1", "g,0,100,3", "t,1,100,1")
    together = replayed(tmp_path, jobs, {})
    assert together.pieces["node"].to_list()[:2] == [0, 0]
    apart = replayed(tmp_path, jobs, {"dedicate": "small"})
    assert apart.pieces["node"].to_list() == [0, 1, 0]


def test_a_job_is_moved_for_a_gang_once_the_wait_is_worth_it(tmp_path: Path) -> None:
    # three and two GPUs are in use, one is free on the first node and two on the second when the gang comes
    jobs = ("a,0,5000,3", "r,0,50,1", "q,0,5000,1", "p,0,5000,1", "gang,100,100,3")
    rules = {"relax": "never", "defragment": "true"}
    found = replayed(tmp_path, jobs, rules, overhead="resize:60")
    # moving q costs 60 GPU-seconds, as much as the gang's three GPUs wait in 20 s; looked for once a minute
    assert start(found) == 160
    moved = found.attempts.filter(found.attempts["end"] == "migrated")
    assert moved["job"].to_list() == [2]
    assert found.jobs["run_s"].to_list()[2] == pytest.approx(5060)
    # 600 s are worth 200 s of the gang; ten times that is asked for
    assert start(replayed(tmp_path, jobs, {**rules, "worth": "10"}, overhead="resize:60")) == 340
    assert start(replayed(tmp_path, jobs, {"relax": "never"})) == 5000


@pytest.mark.parametrize("names", ["abc", "cab", "bca"])
def test_what_queues_are_called_changes_nothing(tmp_path: Path, names: str) -> None:
    # when the long jobs end two queues begin to gather at the same instant: the one that came first goes first
    called = dict(zip("xyz", names, strict=True))
    rows = [
        f"{job},{submit},{seconds},{gpus},{called[queue]}"
        for job, submit, seconds, gpus, queue in (
            ("long1", 0, 1000, 4, "x"), ("long2", 0, 1500, 4, "x"), ("second", 10, 300, 6, "y"),
            ("third", 20, 300, 6, "z"),
        )
    ]  # fmt: skip
    (tmp_path / "jobs.csv").write_text("\n".join(["job_id,submit_time,duration,num_gpus,vc", *rows]))
    workload = read_jobs(tmp_path / "jobs.csv")
    cluster = replace(parse_cluster("2x4", workload), quota=np.full(3, 8.0))
    [outcome] = replay(workload, cluster, [("philly", {"acquire": "100000"})])
    assert start(outcome, "second") < start(outcome, "third")
