"""When a tenth of a job's work is done, and what is done by the last submission."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuctl.replay.contract.conformance import random_case
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.models.inference import parse_inference
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Outcome
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.results.metrics import goodput_loaded, summary
from tests.elastic_cases import ORACLES, nodes_of
from tests.elastic_cases import simulated as simulated_by
from tests.unit.replay.outcomes import make_cluster, make_workload


def simulated(policy: str, workload: object, cluster: object, **params: str) -> Outcome:
    settings = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))  # type: ignore[arg-type]
    simulation = Simulation(workload, cluster, find(policy)(params), settings)  # type: ignore[arg-type]
    simulation.run()
    return simulation.outcome()


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "philly", "slurm", "yarn-fair"])
def test_they_are_what_attempts_state_where_speed_is_one(policy: str) -> None:
    """Without loss, overhead and speeds progress is the time on GPUs, whatever starts, stops and fails a job."""
    seen = 0
    for seed in range(12):
        workload, cluster, _ = random_case(seed)
        workload, cluster = replace(workload, job_class=None), replace(cluster, down=None)
        outcome = simulated(policy, workload, cluster)
        last = workload.submit.max()
        done = 0.0
        stays = outcome.attempts.group_by("job", maintain_order=True).agg("start_s", "end_s")
        for job, starts, ends in stays.iter_rows():
            need = workload.true_run_time[job] / 10
            for start, end in zip(starts, ends, strict=True):
                done += max(0.0, min(last, end) - start) * workload.gpus[job]
                if 1e-9 < need <= end - start + 1e-9:
                    early = start + need - workload.submit[job]
                    assert outcome.jobs["t10_s"][job] == pytest.approx(early, abs=1e-6)
                    seen += 1
                need -= end - start
        assert outcome.loaded_gpu_s == pytest.approx(done, abs=1e-6)
    assert seen > 50


def test_two_jobs_on_paper() -> None:
    # 4 GPUs; job 0 comes at 0, wants 4 for 100 s; job 1 comes at 10, wants 2 for 50 s, and runs from 100 on
    workload, cluster = make_workload([0, 10], [100, 50], [4, 2]), make_cluster(1, 4)
    outcome = simulated("fifo", workload, cluster)
    assert outcome.jobs["t10_s"].to_list() == [10, 95]
    assert outcome.loaded_gpu_s == 40
    assert goodput_loaded(outcome, cluster) == 100
    assert summary(outcome, workload, cluster)["t10_mean_s"] == 52.5
    # shortest first: 0 runs to 10 and from 60, which is where its tenth is done all the same
    assert simulated("srtf", workload, cluster).jobs["t10_s"].to_list() == [10, 5]


def test_where_all_come_at_once_there_is_no_time_under_load() -> None:
    workload, cluster = make_workload([5, 5], [100, 50], [4, 2]), make_cluster(1, 4)
    outcome = simulated("fifo", workload, cluster)
    assert goodput_loaded(outcome, cluster) is None
    assert np.isfinite(outcome.jobs["t10_s"].to_numpy()).all()


def told(policy: str) -> list[dict[str, str]]:
    """The figures in the README of recorded results, one row a case."""
    readme = ORACLES / policy / "README.md"
    if not readme.exists():
        return []
    lines = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in readme.read_text().splitlines()
        if line[:1] == "|"
    ]
    return [dict(zip(lines[0], cells, strict=True)) for cells in lines[2:]]


@pytest.mark.skipif(not ORACLES.is_dir(), reason="the recorded results are not here")
@pytest.mark.parametrize("policy", ["gandiva", "optimus"])
def test_they_are_those_of_recorded_results(policy: str) -> None:
    """Written by others from the same rules, with the counts of packs, and four digits of each figure."""
    for row in [row for row in told(policy) if row["input"] == "small"][:2]:
        words = row["settings"].replace("--check-s", "--check_s").split()
        given = {name[2:]: value for name, value in zip(words[::2], words[1::2], strict=True)}
        path = ORACLES / policy / "small_input.csv"
        cluster, per_rack = given.pop("cluster"), int(given.pop("per-rack"))
        outcome = simulated_by(policy, path, cluster, per_rack, given)
        workload, nodes = nodes_of(path, cluster, per_rack)
        figures = summary(outcome, workload, nodes)
        assert figures["t10_mean_s"] == pytest.approx(float(row["t10"]), abs=0.051), row["case"]
        assert figures["goodput_loaded_pct"] == pytest.approx(100 * float(row["goodput_loaded"]), abs=0.0051)
        if policy == "gandiva":
            assert outcome.counts == {"packs": int(row["packs"]), "packs_undone": int(row["failed_packs"])}
            assert (outcome.attempts["end"] == "migrated").sum() == int(row["migrations"])


@pytest.mark.skipif(not ORACLES.is_dir(), reason="the recorded results are not here")
def test_effects_of_returned_nodes_equal_the_recording() -> None:
    names = ("reclaimed", "reclaim_preemptions", "scale_ins")
    for row in [row for row in told("aryl") if row["case"] in {"small_default", "small_ratio1_jumpy"}]:
        words = row["settings"].split()
        given = {name[2:]: value for name, value in zip(words[::2], words[1::2], strict=True)}
        cluster, lent = given.pop("cluster"), given.pop("inference")
        inference = parse_inference(lent, ORACLES / "aryl" / given.pop("load"))
        outcome = simulated_by("aryl", ORACLES / "aryl" / "small_input.csv", cluster, 4, given, inference)
        assert outcome.counts.pop("late_node_s") == outcome.counts.pop("nodes_late") == 0
        assert list(outcome.counts.values()) == [int(row[name]) for name in (*names, "loaned")]
        assert list(outcome.counts) == ["nodes_reclaimed", *names[1:], "nodes_lent"]
