"""``gpuctl calibrate`` as a user calls it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]


def test_rules_are_written_and_taken_by_what_ifs(gpuctl: Gpuctl, thin_data: Path, tmp_path: Path) -> None:
    logs = [thin_data / "philly" / name for name in ("cluster_job_log", "cluster_machine_list")]
    rules = tmp_path / "rules.toml"
    done = gpuctl("calibrate", *logs, "--policy", "philly", "--trials", "4", "--save", rules, "--json", "-q")
    found = json.loads(done.stdout)
    assert found["settings"]["trials"] == "4 replays"
    scores = found["tables"]["calibration_scores"]["rows"]
    whole = {row["rules"]: row for row in scores if row["by"] == "all"}
    assert set(whole) == {"calibrated", "philly, defaults", "fifo", "fifo-skip", "recorded"}
    assert whole["recorded"]["within_1min_pct"] == 100
    assert {row["by"] for row in scores} >= {"all", "size_bucket", "queue"}
    what_if = json.loads(gpuctl("replay", *logs, "--calibrated", rules, "--add-nodes", "1", "--json", "-q").stdout)
    assert "the mean wait of the part of the trace that nothing was fitted to" in what_if["settings"]["fidelity"]
    assert what_if["settings"]["changes"] == "--add-nodes 1"
    for name, value in ((row["name"], row["value"]) for row in found["tables"]["calibration_rules"]["rows"]):
        if not name.startswith("quota ") and name != "locality":
            told = "True" if value == "true" else "False" if value == "false" else value
            assert f"{name}={told}" in what_if["settings"]["policy philly"]


def test_errors_are_reported(gpuctl: Gpuctl, sample_data: Path) -> None:
    jobs = sample_data / "jobs.csv"
    done = gpuctl("calibrate", jobs, "--cluster", "4x8", "--policy", "fifo", check=False)
    assert done.returncode == 3
    assert "0 jobs have a recorded start" in done.stderr
    two = gpuctl("calibrate", jobs, "--cluster", "4x8", "--policy", "fifo,srtf", check=False)
    assert two.returncode == 2
    assert "one policy is calibrated at a time" in two.stderr
    share = gpuctl("calibrate", jobs, "--cluster", "4x8", "--policy", "fifo", "--fit", "2", check=False)
    assert "expected a share of the jobs" in share.stderr
