"""Optimus against worked examples, a slow reference and recorded results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_bounds
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import find
from gpuctl.replay.run import replay
from tests.elastic_cases import CLUSTERS, ORACLES, agrees, disagreements, random_jobs, simulated, slow

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = {
    "12 GPUs": ("1x12", [(3600, 8, 0), (1200, 4, 0), (7200, 4, 0)], [5, 3, 4], [720, 400, 1800]),
    "10 GPUs": ("1x10", [(3600, 8, 0.08), (3600, 8, 0.2), (900, 2, 0)], [4, 4, 2], [1116, 1440, 450]),
    "5 GPUs, ties": ("1x5", [(1000, 4, 0), (1000, 4, 0)], [3, 2], [1000 / 3, 500]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_counts_worked_out_by_hand(name: str, tmp_path: Path) -> None:
    cluster, jobs, counts, seconds = VECTORS[name]
    path = tmp_path / "jobs.csv"
    rows = [f"j{k},0,{work},1,{most},{alpha}" for k, (work, most, alpha) in enumerate(jobs)]
    path.write_text("\n".join(["job_id,submit_time,duration,num_gpus,w_max,alpha", *rows]))
    outcome = simulated("optimus", path, cluster, 1, {"most": 0, "interval": 1e6})
    assert outcome.jobs["max_gpus"].to_list() == counts
    assert outcome.attempts.height == len(jobs)
    assert outcome.jobs["jct_s"].to_list() == pytest.approx(seconds)


@pytest.mark.parametrize("seed", range(12))
def test_as_the_slow_reference_does(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    path = tmp_path / "jobs.csv"
    cluster, per_rack = CLUSTERS[seed % len(CLUSTERS)]
    random_jobs(path, draw, most=6)
    params: dict[str, Any] = {
        "interval": float(draw.choice([60, 250, 600])), "restart": float(draw.choice([0, 7.5, 62, 400])),
        "most": int(draw.choice([0, 1, 2, 4])), "error": float(draw.choice([0, 0.4])),
    }  # fmt: skip
    outcome = simulated("optimus", path, cluster, per_rack, params)
    assert agrees(outcome, slow("optimus", path, cluster, per_rack, params)) == []


CASES = {
    "small_default": {}, "small_most1": {"most": 1}, "small_most0_restart0": {"most": 0, "restart": 0},
    "small_error0.5": {"error": 0.5}, "small_interval300_most4": {"interval": 300, "most": 4},
    "medium_default": {}, "medium_error0.3_interval1200": {"error": 0.3, "interval": 1200},
}  # fmt: skip


@pytest.mark.skipif(not ORACLES.is_dir(), reason="no oracles beside this checkout")
@pytest.mark.parametrize("case", CASES)
def test_as_recorded(case: str) -> None:
    assert disagreements("optimus", case, CASES[case]) == []


@pytest.mark.parametrize("seed", range(6))
def test_jobs_stay_between_the_gpus_that_they_can_run_on(seed: int) -> None:
    case = with_bounds(seed, random_case(seed))
    outcome = run(find("optimus")(), *case)
    assert violations(outcome, *case) == []
    workload = case[0]
    assert workload.min_gpus is not None
    assert workload.max_gpus is not None
    job, gpus = outcome.attempts["job"].to_numpy(), outcome.attempts["gpus"].to_numpy()
    assert (gpus >= workload.min_gpus[job]).all()
    assert (gpus <= workload.max_gpus[job]).all()


def test_it_places_jobs_itself(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\na,0,5,1\n")
    workload = read_jobs(path)
    with pytest.raises(UsageError, match="optimus chooses nodes itself"):
        replay(workload, parse_cluster("1x4", workload), [("optimus", {})], placement="spread")
