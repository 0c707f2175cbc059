"""PickyMan's decisions on cases worked out by hand: one job of 6000 s, in ten epochs, and what comes meanwhile.

The overhead is that of `gpuctl.core.suspension_cost`: 2 s to stop, 20 s to start, and a checkpoint of 0.5 GB at 1 GB/s.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.estimates import with_estimates
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.records import Outcome
from gpuctl.replay.run import replay

HEAD = "job_id,submit_time,duration,num_gpus\n"
LONG = "long,0,6000,1\n"


def run(
    tmp_path: Path, rows: str, nodes: str = "1x1", mode: str | None = None, estimates: str = "given", **params: str
) -> Outcome:
    path = tmp_path / "jobs.csv"
    path.write_text(HEAD + rows)
    work = with_estimates(read_jobs(path), estimates)
    [outcome] = replay(
        work, parse_cluster(nodes, work), [("pickyman", params)], overhead="pickyman", mode=mode, processes=1
    )
    return outcome


def times(outcome: Outcome) -> dict[str, tuple[float, float]]:
    return {row[0]: (row[1], row[2]) for row in outcome.jobs.select("job", "start_s", "end_s").iter_rows()}


def test_a_short_job_has_a_long_one_preempted_at_the_end_of_its_epoch(tmp_path: Path) -> None:
    found = run(tmp_path, LONG + "short,1500,60,1\n")
    assert times(found) == {"long": (0, 1862.5 + 20.5 + 4200), "short": (1802.5, 1862.5)}
    assert found.jobs["overhead_gpu_s"].to_list() == [23, 0]
    reasons = found.decisions.filter(found.decisions["decision"] == "preempt")["reason"].to_list()
    assert reasons == ["gives way to a shorter job, which gains more than it loses"]


def test_near_the_end_of_an_epoch_the_log_reports_it(tmp_path: Path) -> None:
    found = run(tmp_path, LONG + "short,1790,60,1\n")
    assert times(found)["short"] == (1802.5, 1862.5)
    reasons = found.decisions.filter(found.decisions["decision"] == "preempt")["reason"].to_list()
    assert reasons == ["gives way to a shorter job: its epoch is about to end"]


@pytest.mark.parametrize(("duration", "start"), [(4150, 1802.5), (4200, 6000)])
def test_only_where_the_gain_is_larger_than_the_loss(tmp_path: Path, duration: int, start: float) -> None:
    # it would wait from 1802.5 to 6000, 4197.5 s; the other one loses 23 s and waits as long as it runs
    found = run(tmp_path, LONG + f"other,1500,{duration},1\n", every="0")
    assert times(found)["other"][0] == start


def test_abort_frees_at_once_and_loses_the_epoch(tmp_path: Path) -> None:
    found = run(tmp_path, LONG + "short,1500,60,1\n", mode="abort")
    assert times(found) == {"long": (0, 1560 + 20.5 + 4800), "short": (1500, 1560)}
    assert found.jobs["lost_gpu_s"].to_list() == [300, 0]


def test_now_needs_no_end_of_an_epoch(tmp_path: Path) -> None:
    found = run(tmp_path, LONG + "short,1500,60,1\n", mode="now")
    assert times(found)["short"] == (1502.5, 1562.5)


def test_a_job_runs_an_epoch_before_it_may_be_preempted(tmp_path: Path) -> None:
    # looked at again each minute: at 600 s its first epoch is over
    found = run(tmp_path, LONG + "short,300,60,1\n")
    assert times(found)["short"] == (602.5, 662.5)


def test_three_preemptions_are_enough(tmp_path: Path) -> None:
    shorts = "".join(f"s{k},{700 + 1300 * k},30,1\n" for k in range(4))
    found = run(tmp_path, "long,0,30000,1\n" + shorts)
    assert found.jobs.filter(found.jobs["job"] == "long")["preemptions"].to_list() == [3]
    assert times(found)["s3"][0] == times(found)["long"][1]


def test_the_cheapest_set_of_victims_that_makes_room_is_taken(tmp_path: Path) -> None:
    # a gang of 2 on two nodes of 2: b's node alone would do, so would one of a and c with nothing else there
    rows = "a,0,42000,1\nc,0,42000,1\nb,0,42000,2\nq,700,60,2\n"
    found = run(tmp_path, rows, nodes="2x2")
    preempted = found.decisions.filter(found.decisions["decision"] == "preempt")["job"].to_list()
    assert preempted == ["b"]
    assert times(found)["q"][0] == 1200 + 2 + 1.0


def test_a_wrong_prediction_is_what_decides(tmp_path: Path) -> None:
    path = tmp_path / "told.csv"
    path.write_text("job,run_time_s\nlong,1700\nshort,60\n")
    found = run(tmp_path, LONG + "short,1500,60,1\n", estimates=str(path), every="0")
    # it is thought to end in 200 s: too soon to be worth a suspension, and nobody looks again
    assert times(found)["short"][0] == 6000
    assert not found.oracle


def test_checkpoints_share_the_storage(tmp_path: Path) -> None:
    # 16 jobs are suspended at one instant, each at 1 GB/s of 10 GB/s: the last ones are written more slowly
    rows = "".join(f"j{k},0,42000,1\n" for k in range(16)) + "gang,700,60,16\n"
    found = run(tmp_path, rows, nodes="pool:16")
    ends = found.decisions.filter(found.decisions["decision"] == "suspended")["t_s"].to_list()
    assert min(ends) == pytest.approx(1202.5)
    assert max(ends) == pytest.approx(1202 + 0.5 * 1.6)
    assert times(found)["gang"][0] == pytest.approx(max(ends))


@pytest.mark.parametrize(
    ("age", "duration", "first"),
    [
        ("100", 4900, "old"),
        ("100", 5100, "young"),
        ("14400", 4900, "young"),
        (None, 1050, "old"),
        (None, 1060, "young"),
    ],
)
def test_a_job_that_has_waited_longer_is_first_where_its_key_is_smaller(
    tmp_path: Path, age: str | None, duration: int, first: str
) -> None:
    # at 1000 s `old` has waited 900 s and `young` 100 s. With age=100 their keys are duration / 10 and 1000 / 2 = 500;
    # with age=14400, the default, they are duration / 1.0625 and 1000 / 1.00694 = 993
    rows = f"now,0,1000,1\nold,100,{duration},1\nyoung,900,1000,1\n"
    found = times(run(tmp_path, rows, most="0", **({"age": age} if age else {})))
    assert min(("old", "young"), key=lambda job: found[job][0]) == first
    assert found[first][0] == 1000


@pytest.mark.parametrize(("duration", "first"), [(4000, "other"), (4500, "long")])
def test_time_that_a_job_has_run_is_no_waiting(tmp_path: Path, duration: int, first: str) -> None:
    # at 1862.5 s `long`, suspended at 1802.5 s, has waited 60 s and has 4200 s to go: with age=60, key 4200 / 2 = 2100.
    # `other` has waited 59.5 s: its key is duration / 1.99, 2008 or 2259
    rows = LONG + f"short,1500,60,1\nother,1803,{duration},1\n"
    found = run(tmp_path, rows, age="60")
    starts = found.decisions.filter(found.decisions["t_s"] == 1862.5)
    assert first in starts["job"].to_list()
    assert (times(found)["other"][0] == 1862.5) == (first == "other")
