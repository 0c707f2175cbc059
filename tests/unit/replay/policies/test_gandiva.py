"""Gandiva against worked examples, a slow reference and recorded results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.policies import find
from gpuctl.replay.policies.elastic.crowding_kernel import MEMBER, Crowding, pair_speed
from gpuctl.replay.results.metrics import use
from gpuctl.replay.results.timelines import levels, occupancy, spans
from tests.elastic_cases import CLUSTERS, ORACLES, agrees, disagreements, nodes_of, random_jobs, simulated, slow

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome


@pytest.mark.parametrize(
    ("utils", "speed"),
    [
        ((0.2, 0.2), 0.94), ((0.35, 0.5), 0.8725), ((0.5, 0.5), 0.85), ((0.5, 0.9), 0.5643), ((0.7, 0.7), 0.5643),
        ((0.7, 0.9), 0.475), ((0.9, 0.9), 0.4056),
    ],
)  # fmt: skip
def test_what_packing_leaves_of_speed(utils: tuple[float, float], speed: float) -> None:
    members = np.zeros(2, MEMBER)
    members["util"] = utils
    from gpuctl.compiled.bundles import as_records

    crowd = Crowding(
        p=0, hosts=0, members=as_records(members), here=(0, 0), shape=0, first=0, last=0, bad=0, line=0, bans=0
    )
    found = getattr(pair_speed, "py_func", pair_speed)(crowd, 0, 1)
    assert found == pytest.approx(speed, abs=5e-5)


def gangs(path: Path, *sizes: int) -> Path:
    """Long jobs that come one second after the other, and use little of their GPUs."""
    rows = [f"j{k},{k},100000,{size},1,1,0,.2,.9,0" for k, size in enumerate(sizes)]
    path = path / "jobs.csv"
    head = "job_id,submit_time,duration,num_gpus,eff_rack,eff_cross,alpha,util,mem,grow"
    path.write_text("\n".join([head, *rows]))
    return path


def first_places(outcome: Outcome) -> list[dict[int, int]]:
    """GPUs by node of each job's first attempt."""
    rows = outcome.attempts.with_row_index("row").filter(pl.col("attempt") == 0).sort("job")["row"].to_list()
    pieces = outcome.pieces.partition_by("row", as_dict=True)
    return [dict(pieces[row,].select("node", "gpus").rows()) for row in rows]


def paces(outcome: Outcome, at: float) -> list[float]:
    """What is left of each job's speed at a second."""
    found = spans(outcome)
    job = outcome.attempts["job"].to_numpy()[found.row]
    there = (found.start <= at) & (found.end > at)
    return [float(found.pace[there & (job == k)].sum()) for k in range(outcome.jobs.height)]


def test_nodes_take_the_size_of_what_is_first(tmp_path: Path) -> None:
    outcome = simulated("gandiva", gangs(tmp_path, 1, 4, 1, 2, 4, 4, 1), "3x8", 3, {"check_s": 1e6, "move": 0})
    assert [list(place) for place in first_places(outcome)] == [[0], [1], [0], [2], [1], [0], [0]]


def test_jobs_crowd_on_nodes_rather_than_wait(tmp_path: Path) -> None:
    path = gangs(tmp_path, 8, 4, 4, 4, 8, 1)
    outcome = simulated("gandiva", path, "2x8", 2, {"check_s": 1e6})
    assert [list(place) for place in first_places(outcome)] == [[0], [1], [1], [1], [0], [1]]
    assert paces(outcome, 10) == pytest.approx(
        [8 / 16 * 60 / 61, *[8 / 13 * 60 / 61] * 3, 8 / 16 * 60 / 61, 8 / 13 * 60 / 61]
    )
    unmixed = simulated("gandiva", path, "2x8", 2, {"check_s": 1e6, "mix": 0})
    assert paces(unmixed, 10)[1:] == pytest.approx([*[8 / 12 * 60 / 61] * 3, 8 / 16 * 60 / 61, 0])


def test_gangs_over_nodes_are_as_slow_as_on_the_most_crowded(tmp_path: Path) -> None:
    outcome = simulated("gandiva", gangs(tmp_path, 4, 16, 12, 16), "3x8", 3, {"check_s": 1e6})
    assert first_places(outcome) == [{0: 4}, {1: 8, 2: 8}, {1: 8, 0: 4}, {2: 8, 1: 8}]
    assert paces(outcome, 10) == pytest.approx([1, *[8 / 24 * 60 / 61] * 3])


@pytest.mark.parametrize("seed", range(20))
def test_as_the_slow_reference_does(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(100 + seed)
    path = tmp_path / "jobs.csv"
    cluster, per_rack = CLUSTERS[seed % len(CLUSTERS)]
    random_jobs(path, draw, most=6)
    params: dict[str, Any] = {
        "slice": float(draw.choice([30, 60])), "switch": float(draw.choice([0, 1, 7])),
        "check_s": float(draw.choice([20, 60, 300])), "height": float(draw.choice([1, 1.5, 2, 3, 5])),
        "migrate": float(draw.choice([0, 5, 90])), "blacklist": float(draw.choice([0, 60, 600])),
        "fragment": float(draw.choice([0.25, 0.75])),
    }  # fmt: skip
    params |= {name: int(draw.random() < 0.8) for name in ("over", "mix", "pack", "move", "grow")}
    outcome = simulated("gandiva", path, cluster, per_rack, params)
    assert agrees(outcome, slow("gandiva", path, cluster, per_rack, params)) == []


CASES: dict[str, dict[str, Any]] = {
    "small_default": {}, "small_mix0": {"mix": 0}, "small_pack0": {"pack": 0},
    "small_move0_grow0": {"move": 0, "grow": 0}, "small_height2_check_s300": {"height": 2, "check_s": 300},
    "small_over0": {"over": 0}, "medium_default": {}, "medium_mix0_grow0": {"mix": 0, "grow": 0},
}  # fmt: skip


@pytest.mark.skipif(not ORACLES.is_dir(), reason="no oracles beside this checkout")
@pytest.mark.parametrize("case", CASES)
def test_as_recorded(case: str) -> None:
    assert disagreements("gandiva", case, CASES[case]) == []


def test_a_gpu_counts_once_no_matter_how_many_take_turns_on_it(tmp_path: Path) -> None:
    path = gangs(tmp_path, 8, 8, 4, 2)
    outcome = simulated("gandiva", path, "1x8", 1, {"check_s": 1e6})
    _, cluster = nodes_of(path, "1x8", 1)
    busy = levels(outcome, cluster).filter(pl.col("t_s").is_between(3, 1000))["gpus_busy"].to_list()
    assert busy == pytest.approx([8 * 60 / 61] * len(busy))
    held = float(outcome.jobs["gpu_s"].sum())
    told = use(outcome, cluster)
    assert told["available_gpu_h"] is not None
    assert told["utilization_pct"] == pytest.approx(100 * held / 3600 / told["available_gpu_h"])
    frame, _ = occupancy(outcome, cluster, np.linspace(10.0, 1010.0, 3))
    assert frame["busy_pct"].to_list() == pytest.approx([100 * 60 / 61] * 2)


def test_too_long_a_blacklist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(["job_id,submit_time,duration,num_gpus", *(f"j{k},0,5,1" for k in range(5000))]))
    workload, cluster = nodes_of(path, "512x8", 8)
    with pytest.raises(UsageError, match="pairs may be blacklisted"):
        find("gandiva")({"blacklist": "1e8", "check_s": "1"})._bans(workload, 10**6)  # type: ignore[attr-defined]
    assert cluster.total_gpus == 4096


def test_a_gang_that_can_never_be_placed_is_refused(tmp_path: Path) -> None:
    """It would look for a place at every check until the simulator gives up."""
    with pytest.raises(UsageError, match="job j1 asks for 24 GPUs, in pieces of 8"):
        simulated("gandiva", gangs(tmp_path, 4, 24), "6x4+2x8", 4, {})
    assert simulated("gandiva", gangs(tmp_path, 4, 20, 16), "6x4+2x8", 4, {}).jobs.height == 3
