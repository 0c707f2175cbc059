"""Lessons 3 and 4 and the parameters of `philly` behind them, on the sample whose failures are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

LOGS = ("sacct.txt", "job-logs.tar.gz", "slurm.conf")


@pytest.fixture(scope="module")
def store(gpuctl: Gpuctl, thin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lessons") / "sample.duckdb"
    gpuctl("--quiet", "ingest", *(thin_data / "failures" / name for name in LOGS), "--db", path)
    return path


@pytest.fixture(scope="module")
def found(gpuctl: Gpuctl, store: Path) -> dict[str, Any]:
    asked = ("--lesson", "failures", "--lesson", "converged", "--reference", "atc19", "--json")
    document: dict[str, Any] = json.loads(gpuctl("--quiet", "lessons", store, *asked).stdout)
    return document


def rows(document: dict[str, Any], table: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = document["tables"][table]["rows"]
    return made


def test_the_lessons_answer_and_state_what_they_rest_on(found: dict[str, Any]) -> None:
    answers = rows(found, "lessons")
    assert [row["lesson"] for row in answers] == ["failures"] * 3 + ["converged"] * 3
    for row in answers:
        assert row["gpu_hours_saved_low"] <= row["gpu_hours_saved"] <= row["gpu_hours_saved_high"]
    origins = {(row["lesson"], row["origin"]) for row in rows(found, "lesson_inputs")}
    assert {("failures", "assumed"), ("failures", "unknown"), ("converged", "inferred")} <= origins
    assert {row["category"] for row in rows(found, "reference_failure_categories")} >= {"user", "infrastructure"}


def test_savings_after_the_lowest_loss_equal_the_analysis(gpuctl: Gpuctl, store: Path, found: dict[str, Any]) -> None:
    done = gpuctl("--quiet", "analyze", store, "--table", "training_convergence", "--json")
    [whole] = [row for row in rows(json.loads(done.stdout), "training_convergence") if row["state"] == "all"]
    hindsight = rows(found, "stopping_rules")[0]
    assert hindsight["jobs"] == whole["jobs_timed"]
    # the analysis counts the time after the last point, too
    assert 0.8 * whole["after_gpu_hours"] < hindsight["gpu_hours_saved"] <= whole["after_gpu_hours"]
    assert hindsight["early_pct"] == 0


def test_a_replay_asks_for_the_reasons_by_itself(
    gpuctl: Gpuctl, store: Path, found: dict[str, Any], tmp_path: Path
) -> None:
    asked = ("--policy", "philly,early=philly", "--param", "early.prerun=600", "--param", "early.pool=8")
    page = tmp_path / "page.html"
    document = json.loads(gpuctl("--quiet", "replay", store, *asked, "--json", "--html", page).stdout)
    plain, early = rows(document, "replay_preemptions")
    # the pool is a row of its own, which only one policy has
    heat = rows(document, "replay_heatmap")
    assert {row["policy"] for row in heat if row["nodes"] == "(first runs)"} == {"early"}
    assert len({(row["policy"], row["nodes"]) for row in heat}) == 2 * len({row["nodes"] for row in heat}) - 1
    assert "(first runs)" in page.read_text()
    caught = sum(row["caught"] for row in rows(found, "early_failures") if row["category"] == "all")
    gangs = sum(row["gangs"] for row in rows(found, "early_failure_rules") if row["first_run_min"] == 10)
    assert plain["lease"] == 0
    assert caught > 0
    # each gang either passes its first run or fails in it for good
    assert early["lease"] == gangs / len([r for r in rows(found, "early_failure_rules") if r["first_run_min"] == 10])
    assert early["overhead_gpu_h"] == pytest.approx(early["lease"] / 6)
