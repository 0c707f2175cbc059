"""Themis with apps of several jobs: as its slow reference does, and that on cases worked out by hand."""

from __future__ import annotations

import csv
import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import find
from gpuctl.replay.run import replay
from tests.app_reference import AppThemis
from tests.elastic_cases import CLUSTERS, agrees, nodes_of, random_jobs, simulated, slow
from tests.elastic_reference import Job
from tests.themis_reference import Themis

if TYPE_CHECKING:
    from pathlib import Path


def jobs_of(*rows: tuple[float, float, int, int, float]) -> list[Job]:
    """Submission, work, gang, app and the part of its work at which its search kills it."""
    return [
        Job(k, f"j{k}", submit, work, gang, app=app, stop=stop)
        for k, (submit, work, gang, app, stop) in enumerate(rows)
    ]


def told(jobs: list[Job]) -> list[tuple[float | None, float | None, float, int, int]]:
    """Start, end, GPU-seconds, preemptions and changes."""
    return [(job.start, job.end, round(job.gpu_s, 6), job.preemptions, job.changes) for job in jobs]


HAND: dict[str, tuple[list[Job], dict[str, Any], list[tuple[float, float, float, int, int]]]] = {
    # one node of 4 GPUs. At 400 the first has 600 s left, the second 500: nothing changes. At 800 the second has
    # more, at 1200 the first again (200 to 100): a restart, and it ends at 1200 + 62 + 200; so does the second then
    "most work left first": (
        jobs_of((0, 1000, 4, 0, 1), (0, 500, 4, 0, 1)),
        {"lease": 400},
        [(0, 1462, 4 * 1062, 1, 0), (800, 1624, 4 * 562, 1, 0)],
    ),
    # the second has more work left: 3 GPUs, and 1 for the first. Killed at 120, it leaves its app 2 GPUs that the
    # first can use: 1000 - 120 / 3 = 960 s are left, after a restart
    "killed": (
        jobs_of((0, 1000, 3, 0, 1), (0, 1200, 3, 0, 0.1)),
        {},
        [(0, 120 + 62 + 960, 120 + 3 * 1022, 0, 1), (0, 120, 360, 0, 0)],
    ),
    # the app of two has all 4 GPUs when another comes at 100. At 200 its first job is killed; what it had goes to
    # the second job at once, not to the one that waits, which has to wait for the lease's end
    "what a killed job had stays its app's": (
        jobs_of((0, 1000, 4, 0, 0.2), (0, 900, 4, 0, 1), (100, 10, 1, -1, 1)),
        {"lease": 1000, "payments": 0, "restart": 0},
        [(0, 200, 800, 0, 0), (200, 1102.5, 3600, 0, 2), (1000, 1010, 10, 0, 0)],
    ),
}


@pytest.mark.parametrize("name", HAND)
def test_apps_worked_out_by_hand(name: str) -> None:
    jobs, params, expected = HAND[name]
    got = told(AppThemis([4], [0], jobs, **params).run())
    assert [pytest.approx(row) for row in expected] == got


def test_remaining_work_of_an_app_by_its_gpus() -> None:
    slow = AppThemis([16], [0], jobs_of((0, 100, 8, 0, 1), (0, 90, 8, 0, 1)))
    # on 9 the second has one GPU for 100 s, then 8; on 8 it waits; on 4 both go half as fast
    expected = {16: 100, 9: 100 + (90 - 100 / 8), 8: 190, 4: 380}
    assert {n: slow.lasts(slow.jobs, n, 0) for n in expected} == pytest.approx(expected)


def test_more_gpus_are_worth_less_only_where_dividing_them_is_clumsy() -> None:
    draw = np.random.default_rng(0)
    longer = []
    for _ in range(300):
        jobs = jobs_of(*((0, int(draw.integers(1, 100)), int(draw.integers(1, 7)), 0, 1) for _ in range(3)))
        slow = AppThemis([24], [0], jobs)
        ends = [slow.lasts(jobs, n, 0) for n in range(1, sum(job.gang for job in jobs) + 1)]
        assert ends[-1] == pytest.approx(min(ends)) == max(job.work for job in jobs)
        assert ends[0] == pytest.approx(max(ends)) == sum(job.work * job.gang for job in jobs)
        longer += [b / a for a, b in itertools.pairwise(ends) if b > a + 1e-9]
    # a shorter job that begins sooner leaves the rest less to fill up with: an anomaly of lists
    assert len(longer) < 10
    assert max(longer, default=1.0) < 1.2


# of 0 to 7 those that take the slow reference little; all clusters are among them
@pytest.mark.parametrize("seed", [0, *range(3, 8)])
def test_an_app_of_one_job_is_that_job(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cluster, per_rack = CLUSTERS[seed % len(CLUSTERS)]
    sizes = [int(part.split("x")[1]) for part in cluster.split("+") for _ in range(int(part.split("x")[0]))]
    rows = [
        (float(draw.choice([0, 100, draw.integers(3000)])), float(draw.integers(1, 5000)), int(draw.integers(1, 7)))
        for _ in range(20)
    ]
    params: dict[str, Any] = {
        "lease": float(draw.choice([60, 250, 1200])), "f": float(draw.choice([0, 0.8])),
        "contention": str(draw.choice(["none", "count", "demand"])),
    }  # fmt: skip
    racks = [k // per_rack for k in range(len(sizes))]
    both = [
        told(
            kind(
                sizes, racks, [Job(k, f"j{k}", *row, 0.08, (1.0, 0.9, 0.5)) for k, row in enumerate(rows)], **params
            ).run()
        )
        for kind in (Themis, AppThemis)
    ]
    assert both[0] == both[1]


def with_apps(path: Path, draw: np.random.Generator) -> None:
    """Let most of a file's jobs belong to one of a few apps, as they come or all at once."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    together = draw.random() < 0.5
    for row in rows:
        app = int(draw.integers(0, 6))
        row["app"] = f"a{app}" if app else ""
        row["stop_fraction"] = str(draw.choice([0.1, 0.25, 0.5])) if draw.random() < 0.3 else ""
        if app and together:
            row["submit_time"] = str(100.0 * app)
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)


@pytest.mark.parametrize("seed", [*range(1, 12), 13, 14])
def test_as_the_slow_reference_does(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    path = tmp_path / "jobs.csv"
    cluster, per_rack = CLUSTERS[seed % len(CLUSTERS)]
    random_jobs(path, draw, most=6)
    with_apps(path, draw)
    params: dict[str, Any] = {
        "lease": float(draw.choice([60, 250, 1200])), "restart": float(draw.choice([0, 7.5, 62])),
        "f": float(draw.choice([0, 0.5, 0.8, 0.95])),
        "payments": int(draw.integers(0, 2)), "contention": str(draw.choice(["none", "count", "demand"])),
    }  # fmt: skip
    outcome = simulated("themis", path, cluster, per_rack, params)
    assert np.unique(nodes_of(path, cluster, per_rack)[0].app, return_counts=True)[1].max() > 1
    assert agrees(outcome, slow("themis", path, cluster, per_rack, params)) == []


def test_a_job_ends_with_the_lease_of_its_app(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    rows = ("a,0,400,4,s", "b,0,300,4,s", "c,10,50,1,")
    path.write_text(
        "job_id,submit_time,duration,num_gpus,app,eff_rack,eff_cross,alpha,w_min,w_max,util,mem,grow,fungible\n"
        + "".join(f"{row},1,1,0,1,4,0.5,0.5,0,0\n" for row in rows)
    )
    params = {"lease": 400.0, "restart": 0.0}
    outcome = simulated("themis", path, "1x4", 1, params)
    assert agrees(outcome, slow("themis", path, "1x4", 1, params)) == []
    # what the first had is sold then, not left to the second
    assert dict(outcome.jobs.select("job", "start_s").iter_rows()) == {"a": 0, "b": 400, "c": 400}


@pytest.mark.parametrize("seed", range(12))
def test_it_keeps_to_the_contract(seed: int) -> None:
    workload, cluster, settings = random_case(seed)
    # jobs of one app need the same GPUs
    app = workload.gpu_type * 3 + np.random.default_rng(seed).integers(0, 3, workload.size)
    case = (dataclasses.replace(workload, app=app - app.min(initial=0), min_gpus=None), cluster, settings)
    assert violations(run(find("themis")(), *case), *case) == []


@pytest.mark.parametrize(
    ("columns", "cells", "params", "message"),
    [
        ("min_gpus", "2", {}, "run on any number of GPUs up to their gangs"),
        ("user", "u", {"rigid": "1"}, "run on any number of GPUs up to their gangs"),
        ("gpu_type", "v100", {}, "must be able to run on the same GPUs"),
    ],
)
def test_what_jobs_of_an_app_cannot_be(
    columns: str, cells: str, params: dict[str, str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"job_id,submit_time,duration,num_gpus,app,{columns}\na,0,5,2,s,{cells}\nb,0,5,2,s,\n")
    workload = read_jobs(path)
    with pytest.raises(UsageError, match=message):
        replay(workload, parse_cluster("1x4", workload), [("themis", params)])
