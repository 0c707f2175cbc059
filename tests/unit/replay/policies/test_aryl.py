"""Aryl against worked examples, brute force, a slow reference and recorded results."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.replay.models.inference import Inference, parse_inference
from gpuctl.replay.policies.elastic.knapsack_kernel import solve
from tests.elastic_cases import CLUSTERS, ORACLES, agrees, random_jobs, recorded, simulated, slow

if TYPE_CHECKING:
    from pathlib import Path


def counts(values: list[list[int]], room: int) -> list[int]:
    """What the compiled knapsack chooses."""
    groups = len(values)
    items = np.array([len(row) for row in values])
    table = np.zeros((groups, items.max()), np.int64)
    for row, filled in zip(values, table, strict=True):
        filled[: len(row)] = row
    chosen = np.zeros(groups, np.int64)
    solve(table, np.zeros((groups + 1, room + 1), np.int64), items, chosen, room)
    return chosen.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_knapsack_is_the_best_by_brute_force_and_the_last_in_order_of_equals(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = [
        [0, *(draw.integers(0, 6, int(draw.integers(0, 5))) if seed % 2 else np.sort(draw.integers(0, 6, 4))).tolist()]
        for _ in range(int(draw.integers(1, 5)))
    ]
    room = int(draw.integers(0, 12))
    choices = itertools.product(*(range(len(row)) for row in values))
    best = max(
        (sum(row[k] for row, k in zip(values, choice, strict=True)), choice) for choice in choices if sum(choice) <= room
    )
    assert counts(values, room) == list(best[1])


@pytest.mark.parametrize("seed", range(16))
def test_as_the_slow_reference_does(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    path = tmp_path / "jobs.csv"
    cluster, per_rack = CLUSTERS[seed % len(CLUSTERS)]
    random_jobs(path, draw, most=6)
    lines = int(draw.integers(1, 30))
    times = np.cumsum(draw.integers(1, 1500, lines)).astype(np.float64) - (1 if seed % 2 else 200)
    lent = Inference(draw.choice([4, 8], 5).astype(np.int64), times, draw.integers(0, 6, lines))
    params: dict[str, Any] = {
        "interval": float(draw.choice([60, 250, 300])), "pre": float(draw.choice([0, 7.5, 63, 400])),
        "resize": float(draw.choice([0, 15, 100])), "ratio": float(draw.choice([1, 1.5, 3])),
        "elastic": int(draw.random() < 0.8), "loan": int(draw.random() < 0.9), "linear": int(draw.random() < 0.5),
    }  # fmt: skip
    outcome = simulated("aryl", path, cluster, per_rack, params, lent)
    assert agrees(outcome, slow("aryl", path, cluster, per_rack, params, lent)) == []


CASES = {
    "small_default": ("load8", {}), "small_loan0": ("load8", {"loan": 0}), "small_elastic0": ("load8", {"elastic": 0}),
    "small_loan0_elastic0": ("load8", {"loan": 0, "elastic": 0}), "small_ratio1_jumpy": ("jumpy8", {"ratio": 1}),
    "small_linear0_interval600_jumpy": ("jumpy8", {"linear": 0, "interval": 600}),
    "medium_default": ("load16", {}), "medium_ratio1_interval600_jumpy": ("jumpy16", {"ratio": 1, "interval": 600}),
}  # fmt: skip


@pytest.mark.skipif(not ORACLES.is_dir(), reason="no oracles beside this checkout")
@pytest.mark.parametrize("case", CASES)
def test_as_recorded(case: str) -> None:
    load, params = CASES[case]
    size = case.split("_", maxsplit=1)[0]
    count = 4 if size == "small" else 16
    servers = 8 if size == "small" else 16
    folder = ORACLES / "aryl"
    lent = parse_inference(f"{servers}x8", folder / f"{load}.csv")
    outcome = simulated("aryl", folder / f"{size}_input.csv", f"{count}x8", count, params, lent)
    assert agrees(outcome, recorded(folder / f"{case}_expected.csv")) == []
