"""``gpuctl plan`` as a user calls it: its answer in every output, and the histories that it refuses to forecast."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from plan import made

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of jobs, in two queues."""
    folder = tmp_path_factory.mktemp("plan")
    made(folder / "weeks.csv", 1, 0.0, 7)
    with (folder / "weeks.csv").open() as file:
        head, *rows = csv.reader(file)
    with (folder / "days.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*head, "vc"])
        out.writerows([*row, f"q{int(row[0]) % 2}"] for row in rows if float(row[1]) < 3 * 86_400)
    return folder / "days.csv"


def rows(gpuctl: Gpuctl, *given: object) -> dict[str, list[dict[str, Any]]]:
    found = json.loads(gpuctl("plan", *given, "--json", "-q").stdout)
    return {name: table["rows"] for name, table in found["tables"].items()}


def test_three_days_give_a_plan_for_the_present_alone(gpuctl: Gpuctl, days: Path, tmp_path: Path) -> None:
    given = (days, "--cluster", "6x8", "--draws", "10", "--policy", "fifo-skip")
    page = tmp_path / "plan.html"
    found = rows(gpuctl, *given, "--by-queue", "--remove-nodes", "1", "--html", page)
    assert [row["queue"] for row in found["plan"]] == ["all", "q0", "q1"]
    assert {row["time"] for row in found["plan"]} == {"now"}
    curve = {row["nodes_added"]: row for row in found["plan_curve"] if row["queue"] == "all"}
    # a node less in the curve, and one that is removed, are the same
    assert found["plan_removed"][0]["wait_s"] == curve[-1]["wait_s"]
    answer = found["plan"][0]
    assert curve[answer["nodes_high"]]["met_pct"] >= 90
    assert "chart-plan-curve" in page.read_text()
    screen = gpuctl("plan", *given, "--format", "table", "-q").stdout
    assert "a forecast needs 8" in screen
    assert len(screen.splitlines()) <= 40
    assert rows(gpuctl, *given)["plan"] == [answer]
    refused = gpuctl("plan", *given, "--horizon", "4w", check=False)
    assert refused.returncode == 2
    assert "too few for a forecast" in refused.stderr


def test_no_waits_say_how_many_nodes_could_go(gpuctl: Gpuctl, days: Path) -> None:
    [answer] = rows(gpuctl, days, "--cluster", "40x8", "--draws", "10", "--policy", "fifo-skip")["plan"]
    assert (answer["verdict"], answer["wait_s"], answer["met_pct"]) == ("enough", 0.0, 100.0)
    assert answer["nodes_high"] < 0
    assert answer["gpus_high"] == 320 + 8 * answer["nodes_high"]
