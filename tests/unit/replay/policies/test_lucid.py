"""Lucid: who is packed beside whom, worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates, read_pairs
from gpuctl.replay.policies.lucid.lucid import scores
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

HEAD = "job_id,submit_time,duration,num_gpus,job_class,sharescore,mem,predicted_time"
PAIRS = "job_class,beside,speed\n,,1\n"


def jobs_of(folder: Path, rows: list[str], pairs: str, cluster: str = "1x8", **params: str) -> pl.DataFrame:
    path, table = folder / "jobs.csv", folder / "pairs.csv"
    path.write_text("\n".join([HEAD, *rows]))
    table.write_text(pairs)
    workload = read_jobs(path)
    nodes = parse_cluster(cluster, workload)
    return replay(workload, nodes, [("lucid", params)], pairs=read_pairs(table), processes=1)[0].jobs


def test_a_guest_at_a_time_and_a_partner_that_is_alone_again(tmp_path: Path) -> None:
    rows = ["a,0,1000,8,a,1,.4,1000", "b,100,300,8,b,1,.4,300", "c,150,100,8,c,0,.1,100"]
    jobs = jobs_of(tmp_path, rows, PAIRS + "a,b,.9\nb,a,.8\n")
    assert jobs["start_s"].to_list() == [0, 100, 475]
    assert jobs["end_s"].to_list() == pytest.approx([1037.5, 475, 575])
    assert jobs["gpu_s"].to_list() == pytest.approx([6400, 1500, 400])


def test_ratio_and_budget(tmp_path: Path) -> None:
    rows = ["a,0,1000,2,a,0,.1,100", "b,10,500,2,b,0,.1,300", "c,20,400,2,c,2,.1,100", "d,30,400,2,d,1,.1,90"]
    jobs = jobs_of(tmp_path, rows, PAIRS + "c,a,.5\na,c,.9\n")
    assert jobs["end_s"].to_list() == pytest.approx([1080, 510, 820, 430])


def test_profilers_stop_jobs_that_are_not_done_in_time(tmp_path: Path) -> None:
    # p is done there at 150, q is stopped at 200 and loses all; r is too large for the profiler
    rows = ["p,0,150,4,a,2,.1,1", "q,0,300,4,a,2,.1,2", "r,0,50,8,a,2,.1,3"]
    jobs = jobs_of(tmp_path, rows, PAIRS, "2x8", profilers="1")
    assert jobs["start_s"].to_list() == [0, 0, 0]
    assert jobs["end_s"].to_list() == [150, 500, 50]
    assert jobs["preemptions"].to_list() == [0, 1, 0]


def test_a_pair_speed_that_is_assumed_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, "a,0,1000,8,a,1,.4,1000", "b,100,100,8,b,1,.4,100"]))
    workload = read_jobs(path)
    nodes = parse_cluster("1x8", workload)
    assumed = "two jobs on the same GPUs run at 0.69 of their speed each: assumed"
    packed, alone = replay(workload, nodes, [("lucid", {}), ("alone=lucid", {"share": "false"})], processes=1)
    assert packed.jobs["end_s"].to_list() == pytest.approx([1000 + 0.31 * 100 / 0.69, 100 + 100 / 0.69])
    assert sum(str(each).startswith(assumed) for each in packed.notes) == 1
    assert not any(str(each).startswith(assumed) for each in alone.notes)
    (tmp_path / "pairs.csv").write_text(PAIRS)
    (given,) = replay(workload, nodes, [("lucid", {})], pairs=read_pairs(tmp_path / "pairs.csv"), processes=1)
    assert not any(str(each).startswith(assumed) for each in given.notes)


def test_pairs_that_a_table_lacks_run_at_the_assumed_speed(tmp_path: Path) -> None:
    path, table = tmp_path / "jobs.csv", tmp_path / "pairs.csv"
    path.write_text("\n".join([HEAD, "a,0,1000,8,a,1,.4,1000", "b,100,300,8,b,1,.4,300"]))
    table.write_text("job_class,beside,speed\na,a,.9\na,b,.8\n")
    workload = read_jobs(path)
    nodes = parse_cluster("1x8", workload)
    (one,) = replay(workload, nodes, [("lucid", {})], pairs=read_pairs(table), processes=1)
    # b runs at 0.69 beside a, a at 0.8 beside b: b ends 300 / 0.69 s after 100
    took = 300 / 0.69
    assert one.jobs["end_s"].to_list() == pytest.approx([100 + took + 900 - 0.8 * took, 100 + took])
    assert [str(each) for each in one.notes if "pairs of classes" in str(each)] == [
        "derived, not from --pair-speeds: the speed of 2 pairs of classes that the table lacks, 0.69 of that alone"
    ]
    assert "2 pairs of classes that it lacks are assumed: 0.69" in str(one.settings["packed jobs"])


def test_scores_are_means_of_the_lines_that_name_a_class(tmp_path: Path) -> None:
    # b: .9 and .92, which is 1, though no job is of class x; without a line of its own c is scored by util: .9 is 2
    rows = [f"{HEAD},util", *(f"{name},0,100,8,{name},,.1,100,.9" for name in ("b", "c"))]
    (tmp_path / "jobs.csv").write_text("\n".join(rows))
    (tmp_path / "pairs.csv").write_text("job_class,beside,speed\nb,x,.9\nx,b,.92\n")
    workload = read_jobs(tmp_path / "jobs.csv")
    cluster = parse_cluster("1x8", workload)
    speeds = rates("recorded", workload, cluster, read_pairs(tmp_path / "pairs.csv"))
    settings = Settings(speeds, overhead("none", workload, cluster))
    assert scores(workload, settings).tolist() == [1, 2]


def test_without_sharing_the_first_that_does_not_fit_blocks(tmp_path: Path) -> None:
    rows = ["a,0,100,5,a,0,.1,1", "b,1,10,8,a,0,.1,1", "c,2,10,1,a,0,.1,10000"]
    assert jobs_of(tmp_path, rows, PAIRS, share="false")["start_s"].to_list() == [0, 100, 110]
    assert jobs_of(tmp_path, rows, PAIRS)["start_s"].to_list() == [0, 100, 2]


def test_scores_from_pair_speeds(tmp_path: Path) -> None:
    # means of lines with a class on either side: a .8, which is 2; b .9, which is 1: b1 waits for a1, b2 joins b1
    rows = [f"{name},{k},100,8,{name[0]},,.1,100" for k, name in enumerate(("a1", "b1", "b2"))]
    jobs = jobs_of(tmp_path, rows, "job_class,beside,speed\na,a,.7\na,b,.8\nb,a,.9\nb,b,1\n")
    assert jobs["start_s"].to_list() == [0, 100, 100]


def test_a_score_is_0_1_or_2(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sharescore is not 0, 1 or 2 in 1 row"):
        jobs_of(tmp_path, ["a,0,1,1,a,3,.1,1"], PAIRS)
