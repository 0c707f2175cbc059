"""Dominant resource fairness: figures from the paper and cases worked out on paper, to the second."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.inputs.clusters import parse_cluster
from tests.unit.replay.models.test_resources import jobs, places, replayed, starts

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome

POOL = "pool = {}\ncpus = {}\nmem_mb = {}\n"


def started_at(outcome: Outcome, second: float) -> set[str]:
    return {job for job, start in starts(outcome).items() if start == second}


def test_the_example_of_the_paper(tmp_path: Path) -> None:
    # NSDI 2011, section 4.1: 9 CPUs and 18 GB; tasks of A ask for 1 CPU and 4 GB, those of B for 3 CPUs and 1 GB
    rows = [f"{queue}{k},0,100,0,{ask},{queue},u" for k in range(9) for queue, ask in (("A", "1,4"), ("B", "3,1"))]
    outcome = replayed(jobs(tmp_path, *rows), tmp_path, POOL.format(1, 9, 18), "drf")
    now = started_at(outcome, 0)
    assert now == {"A0", "A1", "A2", "B0", "B1"}
    assert sum(cpus for row, _, _, cpus, _ in places(outcome)[:5]) == 9
    assert sum(mem for row, _, _, _, mem in places(outcome)[:5]) == 14


def test_in_which_order(tmp_path: Path) -> None:
    # dominant shares after each start: A 4/18, B 3/9, A 8/18, B 6/9, A 12/18; then no CPU is left
    rows = [f"{queue}{k},0,100,0,{ask},{queue},u" for k in range(3) for queue, ask in (("A", "1,4"), ("B", "3,1"))]
    outcome = replayed(jobs(tmp_path, *rows), tmp_path, POOL.format(1, 9, 18), "drf")
    log = outcome.decisions.filter(outcome.decisions["decision"] == "start")
    assert log["job"].to_list()[:5] == ["A0", "B0", "A1", "B1", "A2"]
    assert set(log["reason"].to_list()[:5]) == {"its queue or user has the least dominant share"}


def test_weights(tmp_path: Path) -> None:
    # 12 GPUs, jobs of one GPU: twice the weight, twice the GPUs
    rows = [f"{queue}{k},0,100,1,,,{queue},{queue}" for k in range(12) for queue in "ab"]
    work = jobs(tmp_path, *rows)
    for params in ({"weights": "a:2"}, {"weights": "a:1,b:0.5", "by": "user"}):
        now = started_at(replayed(work, tmp_path, POOL.format(12, 1, 1), "drf", **params), 0)
        assert now == {f"a{k}" for k in range(8)} | {f"b{k}" for k in range(4)}
    quotas = POOL.format(12, 1, 1) + "[quotas]\na = 3\nb = 9\n"
    assert (
        len(started_at(replayed(work, tmp_path, quotas, "drf", weighted="true"), 0) & {f"b{k}" for k in range(12)}) == 9
    )


def test_a_gang_waits_skipped_or_with_all_others(tmp_path: Path) -> None:
    # a holds 2 of 4 GPUs to 10; b wants 4 and has the least share; c wants 1 for 20 s, time and again
    rows = ["a,0,10,2,,,a,", "b,1,10,4,,,b,", "c1,2,20,1,,,c,", "c2,2,20,1,,,c,", "c3,2,20,1,,,c,"]
    pool = POOL.format(4, 99, 99)
    assert starts(replayed(jobs(tmp_path, *rows), tmp_path, pool, "drf")) == {
        "a": 0, "c1": 2, "c2": 2, "c3": 10, "b": 30,
    }  # fmt: skip
    assert starts(replayed(jobs(tmp_path, *rows), tmp_path, pool, "drf", strict="true")) == {
        "a": 0, "b": 10, "c1": 20, "c2": 20, "c3": 20,
    }  # fmt: skip


def test_the_first_job_of_a_queue_or_the_first_that_fits(tmp_path: Path) -> None:
    rows = ["a1,0,10,3,,,a,", "b1,1,10,2,,,b,", "b2,1,10,1,,,b,"]
    pool = POOL.format(4, 99, 99)
    assert starts(replayed(jobs(tmp_path, *rows), tmp_path, pool, "drf")) == {"a1": 0, "b1": 10, "b2": 10}
    found = replayed(jobs(tmp_path, *rows), tmp_path, pool, "drf", next="fits")
    assert starts(found) == {"a1": 0, "b2": 1, "b1": 10}


def test_shares_are_those_of_the_nodes_that_are_up(tmp_path: Path) -> None:
    nodes = "[[nodes]]\ngpus = 5\ncpus = 8\n[[nodes]]\nname = 'x'\ngpus = 0\ncpus = 8\n"
    rows = ["a1,0,100,2,0,,a,", "b1,0,100,1,6,,b,", "e1,0,20,2,0,,e,", "a2,10,5,2,0,,a,", "b2,10,5,2,0,,b,"]
    work = jobs(tmp_path, *rows)
    # up: a holds 2 of 5 GPUs (0.4), b 6 of 16 CPUs (0.375): b2 first; with x down b holds 6 of 8 CPUs: a2 first
    up = starts(replayed(work, tmp_path, nodes, "drf"))
    assert (up["b2"], up["a2"]) == (20, 25)
    fallen = nodes + "[[down]]\nnode = 'x'\nfrom_s = 15\nuntil_s = 60\n"
    down = starts(replayed(work, tmp_path, fallen, "drf"))
    assert (down["a2"], down["b2"]) == (20, 25)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"weights": "a:0"}, "expected NAME:W"),
        ({"weights": "a"}, "expected NAME:W"),
        ({"weights": "z:1"}, "there is no queue 'z'"),
        ({"weights": "a:1", "by": "user"}, "there is no user 'a'"),
        ({"weighted": "true", "by": "user"}, "quotas of queues"),
        ({"strict": "true", "next": "fits"}, "strict waits for the first job"),
    ],
)
def test_parameters_that_make_no_sense(tmp_path: Path, params: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        replayed(jobs(tmp_path, "a1,0,1,1,,,a,"), tmp_path, POOL.format(1, 1, 1), "drf", **params)


def test_a_cluster_without_any_gpus(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a1,0,1,0,1,1,a,", "b1,0,1,0,1,1,a,")
    (tmp_path / "p.toml").write_text(POOL.format(1, 1, 1))
    cluster = replace(parse_cluster(str(tmp_path / "p.toml"), work), gpus=np.zeros(1, np.int64))
    from gpuctl.replay.contract.conformance import run
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.preemption_cost import overhead
    from gpuctl.replay.models.speed import rates
    from gpuctl.replay.policies import find

    models = Settings(rates("recorded", work, cluster), overhead("none", work, cluster), resources=("gpu", "cpu"))
    assert starts(run(find("drf")(), work, cluster, models)) == {"a1": 0, "b1": 1}
