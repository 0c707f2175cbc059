"""Tetris: the specification's figures and cases worked out on paper, to the second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.policies.tetris.tetris_kernel import alignment
from tests.unit.replay.models.test_resources import jobs, places, replayed, starts

if TYPE_CHECKING:
    from pathlib import Path

ALL = ("gpu", "cpu", "mem")
POOL = "pool = 4\ncpus = 100\nmem_mb = 100\n"
TWO = "".join(f'[[nodes]]\nname = "m{k}"\ngpus = 10\ncpus = 100\nmem_mb = 1000\ngpu_type = "t{k}"\n' for k in (1, 2))


def test_the_node_that_aligns_best(tmp_path: Path) -> None:
    # free (.5, .2, .9) on m1 and (.9, .9, .1) on m2; the task (.4, .1, .05) scores .265 and .455
    path, nodes = tmp_path / "jobs.csv", tmp_path / "servers.toml"
    path.write_text(
        "job_id,submit_time,duration,num_gpus,num_cpus,mem_mb,gpu_type\n"
        "fill1,0,100,5,80,100,t1\nfill2,0,100,1,10,900,t2\ntask,1,10,4,10,50,\n"
    )
    nodes.write_text(TWO)
    work = read_jobs(path, ALL)
    cluster = parse_cluster(str(nodes), work)
    models = Settings(rates("recorded", work, cluster), overhead("none", work, cluster), resources=ALL)
    simulation = Simulation(work, cluster, find("tetris")(), models)
    simulation.advance(until=0.5)
    score = getattr(alignment, "py_func", alignment)
    assert score(simulation.state, 0, 2, 4) == pytest.approx(0.265)
    assert score(simulation.state, 1, 2, 4) == pytest.approx(0.455)
    simulation.run()
    assert simulation.outcome().pieces["node"].to_list() == [0, 1, 1]


def test_remaining_work_is_subtracted(tmp_path: Path) -> None:
    # 4 GPUs free at 10: long aligns with .75, short with .5; their remaining work is 75 and 5 s of the cluster, so
    # epsilon is 1.25 / 80 and the scores are -.42 and .42. Added instead, long would go first; so it does without it
    rows = ["first,0,10,4,,,q,", "long,1,100,3,,,q,", "short,1,10,2,,,q,"]
    assert starts(replayed(jobs(tmp_path, *rows), tmp_path, POOL, "tetris")) == {"first": 0, "short": 10, "long": 20}
    alone = replayed(jobs(tmp_path, *rows), tmp_path, POOL, "tetris", remaining="0")
    assert starts(alone) == {"first": 0, "long": 10, "short": 110}


def test_of_similar_jobs_the_shorter_or_without_it_the_earlier(tmp_path: Path) -> None:
    rows = ["first,0,10,4,,,q,", "a,1,100,2,,,q,", "b,1,10,2,,,q,", "c,1,20,2,,,q,"]
    work = jobs(tmp_path, *rows)
    assert starts(replayed(work, tmp_path, POOL, "tetris")) == {"first": 0, "b": 10, "c": 10, "a": 20}
    alone = starts(replayed(work, tmp_path, POOL, "tetris", remaining="0"))
    assert alone == {"first": 0, "a": 10, "b": 10, "c": 20}


def test_the_fairness_knob(tmp_path: Path) -> None:
    # x holds 2 of 4 GPUs. x1 scores best (.25 - .007 against .125 - .37); of two queues one is looked at with .5: that
    # with the least share, y. Then nobody else waits, and it is x's turn, which finds one GPU where it wants two
    rows = ["x0,0,50,2,,,x,", "w0,0,10,2,,,w,", "x1,1,1,2,,,x,", "y1,1,100,1,,,y,"]
    work = jobs(tmp_path, *rows)
    both = starts(replayed(work, tmp_path, POOL, "tetris", fairness="0.4"))
    assert (both["x1"], both["y1"]) == (10, 11)
    one = starts(replayed(work, tmp_path, POOL, "tetris", fairness="0.5"))
    assert (one["y1"], one["x1"]) == (10, 50)


def test_gangs_go_piece_by_piece_and_back_where_they_do_not_fit(tmp_path: Path) -> None:
    nodes = "[[nodes]]\ncount = 3\ngpus = 4\ncpus = 8\n"
    # a and b leave 2, 3 and 4 GPUs; the largest pieces align best: 4 on the third, then 2 on the second
    rows = ["a,0,10,2,1,,q,", "b,0,20,1,1,,q,", "gang,1,10,6,6,,q,", "late,2,5,4,4,,q,", "c,2,5,1,1,,q,"]
    outcome = replayed(jobs(tmp_path, *rows), tmp_path, nodes, "tetris", remaining="0")
    spots = {(row, node): gpus for row, node, gpus, *_ in places(outcome)}
    assert [spots[0, 0], spots[1, 1], spots[2, 2], spots[2, 1]] == [2, 1, 4, 2]
    # at 2 there are 2 + 1 GPUs: late is rolled back, and c has one of them
    assert starts(outcome) == {"a": 0, "b": 0, "gang": 1, "c": 2, "late": 10}


def test_consolidate_splits_over_no_more_nodes_than_need_be(tmp_path: Path) -> None:
    nodes = "[[nodes]]\ncount = 3\ngpus = 4\ncpus = 8\n"
    rows = [f"{k},0,{end},2,0,,q," for k, end in (("a", 10), ("b", 20), ("c", 30))] + ["gang,1,5,6,0,,q,"]
    # three nodes are needed for a, b and c, since each of them leaves 2 free that align less
    work = jobs(tmp_path, *rows)
    assert starts(replayed(work, tmp_path, nodes, "tetris"))["gang"] == 1
    assert starts(replayed(work, tmp_path, nodes, "tetris", how="consolidate"))["gang"] == 10


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,2,1,,q,")
    with pytest.raises(UsageError, match="--placement spread"):
        replayed(work, tmp_path, POOL, "tetris", how="spread")
    with pytest.raises(UsageError, match="expected less than 1"):
        replayed(work, tmp_path, POOL, "tetris", fairness="1")
