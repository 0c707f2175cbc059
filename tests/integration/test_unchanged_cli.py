"""What a what-if is compared with: the same replay without the change, and the trace under its own rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

RULES = """policy = "philly"
fitted = 0.5

[params]
relax = "time"
relax_after = 3600
take_back = false

[scores]
jobs = 1
"""


@pytest.fixture
def logs(thin_data: Path) -> list[Path]:
    return [thin_data / "philly" / name for name in ("cluster_job_log", "cluster_machine_list")]


def answered(gpuctl: Gpuctl, *asked: str | Path) -> dict[str, Any]:
    done = gpuctl("replay", *asked, "--json", "-q")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def whole(result: dict[str, Any], table: str) -> list[dict[str, Any]]:
    rows = result["tables"][table]["rows"]
    return [row for row in rows if row["measure"] == "wait" and row["size_bucket"] == "all"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--add-servers", "1"], "--add-servers 1"),
        (["--scale-load", "1.2"], "--scale-load 1.2"),
        (["--placement", "spread"], "--placement spread"),
    ],
)
def test_a_change_is_compared_with_its_absence(gpuctl: Gpuctl, sample_data: Path, change: list[str], told: str) -> None:
    asked = [sample_data / "jobs.csv", "--cluster", "4x8", "--policy", "fifo-skip"]
    changed, plain = answered(gpuctl, *asked, *change), answered(gpuctl, *asked)
    [row] = whole(changed, "replay_vs_unchanged")
    assert row["baseline"] == "unchanged"
    assert row["baseline_mean_s"] == plain["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
    assert row["mean_s"] == changed["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
    assert changed["settings"]["changes"] == told
    assert "replay_vs_unchanged" not in plain["tables"]
    # a CSV has no recorded starts to be near to
    assert "fidelity" not in changed["settings"]
    assert "replay_vs_unchanged" not in answered(gpuctl, *asked, *change, "--no-unchanged")["tables"]


def test_other_servers_are_compared_with_those_of_the_trace(gpuctl: Gpuctl, logs: list[Path]) -> None:
    plain = answered(gpuctl, *logs, "--policy", "fifo-skip")
    other = answered(gpuctl, *logs, "--policy", "fifo-skip", "--cluster", "20x8")
    [row] = whole(other, "replay_vs_unchanged")
    assert row["baseline_mean_s"] == plain["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
    assert other["settings"]["fidelity"] == plain["settings"]["fidelity"]


def test_a_what_if_on_a_trace_says_how_near_it_is(gpuctl: Gpuctl, logs: list[Path], tmp_path: Path) -> None:
    plain = answered(gpuctl, *logs, "--policy", "fifo-skip,srtf", "--add-servers", "1")
    told = plain["settings"]["fidelity"]
    assert told.startswith("Not calibrated")
    assert told in plain["warnings"]
    assert told in plain["tables"]["replay_summary"]["notes"]
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    page = tmp_path / "page.html"
    known = answered(
        gpuctl, *logs, "--calibrated", rules, "--policy", "fifo-skip", "--add-servers", "1", "--html", page
    )
    assert known["settings"]["fidelity"].startswith("Replayed under its own rules (philly, calibrated)")
    assert known["settings"]["fidelity"] not in known["warnings"]
    assert "Replayed under its own rules" in page.read_text()
    [first, second] = whole(known, "replay_vs_unchanged")
    assert (first["policy"], second["policy"]) == ("philly", "fifo-skip")
    error = first["model_error_s"]
    assert error > 0
    # the model's own error is in both intervals
    for row in (first, second, *whole(known, "replay_vs_baseline")):
        assert row["model_error_s"] == error
        assert row["diff_high_s"] is None or row["diff_high_s"] - row["diff_mean_s"] >= error


def test_a_parameter_beside_calibrated_rules_is_a_change(gpuctl: Gpuctl, logs: list[Path], tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    found = answered(gpuctl, *logs, "--calibrated", rules, "--param", "philly.lend=0.5")
    assert found["settings"]["changes"] == "--param philly.lend=0.5"
    plain = answered(gpuctl, *logs, "--calibrated", rules)
    assert "changes" not in plain["settings"]
    [row] = whole(found, "replay_vs_unchanged")
    assert row["baseline_mean_s"] == plain["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
    assert "relax=time" in plain["settings"]["policy philly"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("policy = 3", "policy is 3; expected the name of a policy"),
        ('policy = "philly"\nfitted = 2', "fitted is 2"),
        ('policy = "philly"\n[quotas]\na = -1', "quotas.a is -1"),
        ('policy = "philly"\n[params]\nlend = 3', "lend"),
        ('policy = "phily"', "phily"),
    ],
)
def test_what_is_wrong_with_a_calibration_is_told(
    gpuctl: Gpuctl, logs: list[Path], tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "rules.toml").write_text(text)
    assert told in gpuctl("replay", *logs, "--calibrated", tmp_path / "rules.toml", check=False).stderr
