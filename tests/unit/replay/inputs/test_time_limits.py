"""What policies that plan ahead take for time limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.estimates import plan_limits, steps
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import take

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Workload


@pytest.fixture
def work(tmp_path: Path) -> Workload:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,submit_time,duration,num_gpus,requested_time\n"
        "a,0,100,1,300\nb,1,1000,1,\nc,2,10000,2,20000\nd,3,400000,1,\n"
    )
    return read_jobs(path)


def same(found: object, expected: list[float]) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.array(expected))


def test_asked_is_as_it_is(work: Workload) -> None:
    assert plan_limits(work, "asked") is work
    same(work.planned_time, [300, np.nan, 20000, np.nan])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("true", [100, 1000, 10000, 400000]),
        ("factor:3", [300, 3000, 30000, 1200000]),
        ("steps", [1800, 3600, 28800, 864000]),
        ("asked,steps", [300, 3600, 20000, 864000]),
        ("asked, factor:2", [300, 2000, 20000, 800000]),
        ("error:0", [100, 1000, 10000, 400000]),
    ],
)
def test_ways(work: Workload, how: str, expected: list[float]) -> None:
    found = plan_limits(work, how)
    same(found.planned_time, expected)
    # what jobs are ended at stays
    same(found.time_limit, [300, np.nan, 20000, np.nan])
    same(take(found, np.array([1, 3])).planned_time, [expected[1], expected[3]])


def test_errors_are_those_of_run_times(work: Workload) -> None:
    from gpuctl.replay.inputs.estimates import with_estimates

    same(plan_limits(work, "error:0.4").planned_time, with_estimates(work, "error:0.4").run_time.tolist())


def test_steps_are_at_least_twice_the_run_time() -> None:
    seconds = np.random.default_rng(1).uniform(1, 1e6, 500)
    found = steps(seconds)
    assert (found >= 2 * seconds).all()
    assert set(found[found <= 172800]) <= {1800, 3600, 7200, 14400, 28800, 86400, 172800}
    assert (found[found > 172800] % 172800 == 0).all()
    same(steps(np.array([900.0, 900.5, 86400.0, 86401.0])), [1800, 3600, 172800, 345600])


def test_predictions_and_their_upper_ends(work: Workload, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("job,run_time_s,upper_s\na,120,240\nc,9000,\nz,1,1\n")
    same(plan_limits(work, str(path)).planned_time, [120, np.nan, 9000, np.nan])
    found = plan_limits(work, f"{path}:upper_s,asked,true")
    same(found.planned_time, [240, 1000, 20000, 400000])
    assert f"{path}:upper_s for 1, asked for 1, true for 2" in found.notes[-1]
    assert "2 have none" in plan_limits(work, str(path)).notes[-1]
    limits = tmp_path / "l.csv"
    limits.write_text("job,run_time_s,time_limit_s\na,1,7\n")
    same(plan_limits(work, f"{limits},true").planned_time, [7, 1000, 10000, 400000])


@pytest.mark.parametrize(
    "how", ["", "factor", "factor:0", "factor:inf", "error:4", "error:x", "guess", "no.csv", "no.csv:x"]
)
def test_unsupported_input(work: Workload, how: str) -> None:
    with pytest.raises(UsageError, match="not understood"):
        plan_limits(work, how)


@pytest.mark.parametrize(
    ("text", "said"),
    [("job,x\na,1\n", "lacks a column"), ("job,run_time_s\nq,1\n", "for none of the jobs"), ("", "is not a valid CSV")],
)
def test_files_that_report_nothing(work: Workload, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        plan_limits(work, str(path))


def test_jobs_with_several_attempts_are_planned_for_the_longest() -> None:
    from dataclasses import replace

    from tests.unit.replay.outcomes import make_workload

    one = make_workload([0, 1], [50, 70], [1, 1])
    two = replace(
        one,
        segment_start=np.array([0, 2, 3]),
        segment_s=np.array([50.0, 90.0, 70.0]),
        segment_fails=np.array([True, False, False]),
    )
    same(plan_limits(two, "true").planned_time, [90, 70])


def test_no_limits_at_all_is_an_error() -> None:
    from gpuctl.replay.run import replay
    from tests.unit.replay.outcomes import make_cluster, make_workload

    none = make_workload([0, 1], [50, 70], [1, 1])
    with pytest.raises(UsageError, match="easy plans with time limits, and no job of by hand has one"):
        replay(none, make_cluster(1, 4), [("fifo", {}), ("easy", {})])
    some = plan_limits(none, "true")
    [first, second] = replay(some, make_cluster(1, 4), [("fifo", {}), ("easy", {})])
    assert (first.notes, second.notes) == ((), ())


def test_jobs_without_a_limit_are_reported(work: Workload) -> None:
    from gpuctl.replay.inputs.clusters import parse_cluster
    from gpuctl.replay.run import replay

    fifo, easy = replay(work, parse_cluster("1x4", work), [("fifo", {}), ("easy", {})])
    assert fifo.notes == ()
    assert "2 of 4 jobs have no time limit" in easy.notes[-1]


def test_a_policy_can_be_compared_with_itself_under_other_limits(work: Workload, tmp_path: Path) -> None:
    from gpuctl.replay.inputs.clusters import parse_cluster
    from gpuctl.replay.run import replay

    predicted = tmp_path / "predicted.csv"
    predicted.write_text("job,time_limit_s\nd,500000\n")
    how = f"{predicted},asked,factor:2"
    cluster = parse_cluster("1x4", work)
    own, same_limits = replay(work, cluster, [("easy", {}), ("other=easy", {"limits_from": how})])
    assert same_limits.params["limits_from"] == how
    assert "of 4 jobs: " in same_limits.notes[0]
    assert "factor:2 for 1" in same_limits.notes[0]
    assert not any("factor" in note for note in own.notes)
    # limits of one policy are what the same limits of all are
    [all_of_them] = replay(plan_limits(work, how), cluster, [("easy", {})])
    assert all_of_them.jobs.equals(same_limits.jobs)


def test_limits_decide_what_goes_ahead() -> None:
    from dataclasses import replace

    from gpuctl.replay.run import replay
    from tests.unit.replay.outcomes import make_cluster, make_workload

    # the first asks for 300 s and ends after 100: the third may run before the second unless limits are true
    jobs = replace(make_workload([0, 1, 2], [100, 100, 150], [3, 4, 1]), planned=np.array([300.0, 100.0, 150.0]))
    runs = [("easy", {}), ("true=easy", {"limits_from": "true"})]
    starts = [outcome.jobs["start_s"].to_list() for outcome in replay(jobs, make_cluster(1, 4), runs)]
    assert starts == [[0, 152, 2], [0, 100, 200]]


def test_limits_of_one_policy_that_make_no_sense_are_found_before_anything_runs(work: Workload) -> None:
    from gpuctl.replay.inputs.clusters import parse_cluster
    from gpuctl.replay.run import replay

    told: list[str] = []
    with pytest.raises(UsageError, match="trues: not understood"):
        replay(work, parse_cluster("1x4", work), [("fifo", {}), ("easy", {"limits_from": "trues"})], notify=told.append)
    assert told == []


def test_a_policy_may_follow_the_limits_requested_where_all_others_follow_others(work: Workload) -> None:
    true = plan_limits(work, "true")
    same(plan_limits(true, "asked").planned_time, [300, np.nan, 20000, np.nan])
    same(true.planned_time, [100, 1000, 10000, 400000])
