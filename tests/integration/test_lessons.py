"""`gpuctl lessons` on made-up traces whose truth is planted: what it measures, what it claims, and how it shows it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.reports.export.document import read_document
from gpuctl.reports.screens.draw import print_screen
from gpuctl.reports.screens.lessons import screen

sys.path[:0] = [str(Path(__file__).parents[2] / name) for name in ("tools", "benchmarks")]
import lessons as benchmark  # noqa: E402
from make_lessons import Planted, make  # noqa: E402
from null_worlds import World, analysed  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

BOTH = ("--lesson", "locality", "--lesson", "sharing")
SMALL: dict[str, Any] = {"jobs": 400, "days": 1.5, "telemetry_days": 1.5, "servers": 10, "users": 16}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lessons")
    make(folder / "log", Planted(seed=2, slowdown=0.6, interference=0.85, again=0.5, **SMALL))
    ingest([folder / "log"], folder / "trace.duckdb")
    return folder / "trace.duckdb"


def test_what_was_planted_is_measured_and_shown(gpuctl: Callable[..., Any], trace: Path, tmp_path: Path) -> None:
    kept = tmp_path / "lessons.json"
    assert (
        gpuctl(
            "lessons", str(trace), *BOTH, "--json", "--output", str(kept), "--html", str(tmp_path / "p.html")
        ).returncode
        == 0
    )
    tables = json.loads(kept.read_text())["tables"]
    inputs = {row["what"]: row for row in _rows(tables["lesson_inputs"])}
    slow = inputs["speed of a gang on more nodes, for that on the fewest"]
    beside = inputs["speed with another job on the node, relative to alone"]
    assert slow["low"] <= 0.6 <= slow["high"]
    assert beside["low"] <= 0.85 <= beside["high"]
    answers = _rows(tables["lessons"])
    waits = next(row for row in answers if row["rule"] == "never on more nodes")
    assert waits["gpu_hours"] == "saves"
    assert waits["gpu_hours_saved"] > 0
    named = {row["lesson"] for row in answers}
    assert named == {"locality", "sharing"}
    # never on more nodes: nobody is slowed down, and GPU-hours are the least of all rules
    curve = [row for row in _rows(tables["locality_curve"]) if row["size_bucket"] == "all"]
    least = min(row["gpu_hours"] for row in curve)
    assert next(row for row in curve if row["rule"] == "never")["gpu_hours"] == pytest.approx(least)
    page = (tmp_path / "p.html").read_text()
    assert "Wait for locality or start now" in page
    report = gpuctl("report", str(kept), "--html", str(tmp_path / "r.html"), "--anonymise")
    assert report.returncode == 0, report.stderr
    out = StringIO()
    print_screen(screen(read_document(kept)), width=100, color=False, file=out)
    assert "move jobs for gangs" in out.getvalue()
    assert "\nAnswer: never on more nodes: saves " in out.getvalue()
    assert len(out.getvalue().splitlines()) <= 45


def test_three_traces_are_measured_as_the_benchmark_does() -> None:
    inside = 0
    for seed in (1, 2, 3):
        truth = benchmark.planted(seed, null=False)
        with benchmark.case_of(truth) as case:
            found = benchmark.estimates(case, truth)
        for name in ("slowdown", "interference"):
            estimate, value = found[name]
            assert estimate.value == pytest.approx(value, rel=0.08)
            assert estimate.low is not None
            inside += estimate.low <= value <= estimate.high
    # one in ten intervals of 90 % misses
    assert inside >= 5


def test_nothing_is_claimed_where_nothing_is_planted(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    make(tmp_path / "log", Planted(seed=4, slowdown=1.0, interference=1.0, **SMALL))
    found = gpuctl("lessons", str(tmp_path / "log"), *BOTH, "--table", "lessons", "--json")
    answers = _rows(json.loads(found.stdout)["tables"]["lessons"])
    assert {row["gpu_hours"] for row in answers} <= {"no saving shown", "costs"}


def test_unlike_jobs_without_names_claim_nothing(tmp_path: Path) -> None:
    # each user runs two models, of which the one that uses its GPUs badly is spread more; spreading costs nothing
    world = World(seed=3, unlike=True, jobs=500, days=2.0, machines=20, again=0.0)
    with analysed(world) as (_, _, measured):
        assert measured is not None
        assert (measured.likeness, measured.all_sizes[0].shown) == ("user", False)
        assert measured.all_sizes[0].estimate.value < 0.9
        assert measured.all_sizes[0].estimate.high >= 1
    with analysed(replace(world, again=0.5)) as (_, _, measured):
        assert measured is not None
        assert measured.likeness == "job"
        assert measured.all_sizes[0].estimate.low <= 1 <= measured.all_sizes[0].estimate.high
        assert measured.all_sizes[0].estimate.high - measured.all_sizes[0].estimate.low < 0.1


def test_it_reports_what_cannot_be_measured(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    make(tmp_path / "log", Planted(seed=5, **{**SMALL, "jobs": 60, "telemetry_days": 0.0}))
    found = gpuctl("lessons", str(tmp_path / "log"), *BOTH, "--json")
    assert found.returncode == 0, found.stderr
    assert "No telemetry of jobs: what spreading costs is not known" in found.stdout
    told = json.loads(found.stdout)["tables"]
    assert _rows(told["lessons"]) == []
    assert _rows(told["locality_curve"])
    strange = gpuctl("lessons", str(tmp_path / "log"), "--lesson", "localty", check=False)
    assert strange.returncode == 2
    assert "locality" in strange.stderr


def _rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table["rows"]
    return rows
