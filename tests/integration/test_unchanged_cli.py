"""What a what-if is compared with: the same replay without the change, and the trace under its own rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.reports.screens import experiments, replay
from gpuctl.reports.screens.model import Line
from gpuctl.services.report_inputs import read_result

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
        (["--add-nodes", "1"], "--add-nodes 1"),
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


def test_other_nodes_are_compared_with_those_of_the_trace(gpuctl: Gpuctl, logs: list[Path]) -> None:
    plain = answered(gpuctl, *logs, "--policy", "fifo-skip")
    other = answered(gpuctl, *logs, "--policy", "fifo-skip", "--cluster", "20x8")
    [row] = whole(other, "replay_vs_unchanged")
    assert row["baseline_mean_s"] == plain["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
    assert other["settings"]["fidelity"] == plain["settings"]["fidelity"]


def test_a_what_if_on_a_trace_states_how_near_it_is(gpuctl: Gpuctl, logs: list[Path], tmp_path: Path) -> None:
    plain = answered(gpuctl, *logs, "--policy", "fifo-skip,srtf", "--add-nodes", "1")
    told = plain["settings"]["fidelity"]
    assert told.startswith("Not calibrated")
    assert told in plain["warnings"]
    assert told in plain["tables"]["replay_summary"]["notes"]
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    page = tmp_path / "page.html"
    known = answered(gpuctl, *logs, "--calibrated", rules, "--policy", "fifo-skip", "--add-nodes", "1", "--html", page)
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


def test_a_parameter_next_to_calibrated_rules_is_a_change(gpuctl: Gpuctl, logs: list[Path], tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    found = answered(gpuctl, *logs, "--calibrated", rules, "--param", "philly.lend=0.5")
    assert found["settings"]["changes"] == "--param philly.lend=0.5"
    plain = answered(gpuctl, *logs, "--calibrated", rules)
    assert "changes" not in plain["settings"]
    [row] = whole(found, "replay_vs_unchanged")
    assert row["baseline_mean_s"] == plain["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
    assert "relax=time" in plain["settings"]["policy philly"]


def test_other_quotas_than_the_calibrated_ones_are_a_change(gpuctl: Gpuctl, logs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    asked = [*logs, "--calibrated", tmp_path / "rules.toml"]
    queue = answered(gpuctl, *asked, "--table", "replay_by_queue")["tables"]["replay_by_queue"]["rows"][0]["queue"]
    (tmp_path / "rules.toml").write_text(RULES + f'\n[quotas]\n"{queue}" = 16\n')
    (tmp_path / "same.csv").write_text(f"vc,quota_gpus\n{queue},16\n")
    (tmp_path / "more.csv").write_text(f"vc,quota_gpus\n{queue},24\n")
    assert "changes" not in answered(gpuctl, *asked, "--quotas", tmp_path / "same.csv")["settings"]
    found = answered(gpuctl, *asked, "--quotas", tmp_path / "more.csv")
    assert found["settings"]["changes"] == f"--quotas {tmp_path / 'more.csv'}"
    plain = answered(gpuctl, *asked)
    [row] = whole(found, "replay_vs_unchanged")
    assert row["baseline_mean_s"] == plain["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]


@pytest.mark.parametrize(("limits", "changes"), [(True, "--limits-from true"), (False, None)])
def test_other_limits_are_a_change_if_jobs_state_some(
    gpuctl: Gpuctl, tmp_path: Path, limits: bool, changes: str | None
) -> None:
    jobs = tmp_path / "jobs.csv"
    rows = "".join(f"{k},{10 * k},{100 + 40 * (k % 5)},{1 + k % 4},{900 if limits else ''}\n" for k in range(40))
    jobs.write_text("job_id,submit_time,duration,num_gpus,requested_time\n" + rows)
    asked = [jobs, "--cluster", "2x4", "--policy", "easy"]
    found = answered(gpuctl, *asked, "--limits-from", "true")
    assert found["settings"].get("changes") == changes
    if limits:
        [row] = whole(found, "replay_vs_unchanged")
        plain = answered(gpuctl, *asked)["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
        assert row["baseline_mean_s"] == plain != row["mean_s"]


def summary(result: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result["tables"]["experiments_summary"]["rows"]
    return found


def test_each_replay_of_an_experiment_is_compared_with_the_unchanged_one(gpuctl: Gpuctl, sample_data: Path) -> None:
    asked = [sample_data / "jobs.csv", "--cluster", "4x8", "--policy", "fifo-skip,las"]
    plain = answered(gpuctl, *asked)["tables"]["replay_summary"]["rows"]
    means = {row["policy"]: row["wait_mean_s"] for row in plain}
    two = answered(gpuctl, *asked, "--add-nodes", "1,2")
    assert two["settings"]["changes"] == "--add-nodes 1,2"
    for row in summary(two):
        assert row["unchanged_s"] == means[row["policy"]]
        assert row["vs_unchanged_s"] == pytest.approx(row["wait_mean_s"] - row["unchanged_s"])
    # an unchanged replay among them is what they are compared with, and is compared with nothing
    three = summary(answered(gpuctl, *asked, "--add-nodes", "0,1,2"))
    assert [row["vs_unchanged_s"] for row in three if row["add_nodes"]] == [
        row["vs_unchanged_s"] for row in summary(two)
    ]
    assert {row["vs_unchanged_s"] for row in three if not row["add_nodes"]} == {None}
    single = whole(answered(gpuctl, *asked, "--add-nodes", "2"), "replay_vs_unchanged")
    assert [row["diff_mean_s"] for row in single] == [row["vs_unchanged_s"] for row in three if row["add_nodes"] == 2]
    assert "vs_unchanged_s" not in summary(answered(gpuctl, *asked, "--add-nodes", "1,2", "--no-unchanged"))[0]
    # nothing is changed where only seeds differ
    assert "changes" not in answered(gpuctl, *asked, "--seed", "1,2")["settings"]


def test_a_rule_that_all_replays_of_an_experiment_have_is_a_change(gpuctl: Gpuctl, sample_data: Path) -> None:
    asked = [sample_data / "jobs.csv", "--cluster", "4x8", "--policy", "las", "--param", "las.quantum=60,3600"]
    found = answered(gpuctl, *asked, "--placement", "spread")
    assert found["settings"]["changes"] == "--placement spread"
    without = {row["las.quantum"]: row["wait_mean_s"] for row in summary(answered(gpuctl, *asked))}
    assert {row["las.quantum"]: row["unchanged_s"] for row in summary(found)} == without


def test_an_experiment_on_a_trace_states_how_near_it_is(gpuctl: Gpuctl, logs: list[Path], tmp_path: Path) -> None:
    rules, page = tmp_path / "rules.toml", tmp_path / "page.html"
    rules.write_text(RULES)
    plain = answered(gpuctl, *logs, "--policy", "fifo-skip", "--scale-load", "1,1.1")
    one = answered(gpuctl, *logs, "--policy", "fifo-skip", "--scale-load", "1.1")
    assert plain["settings"]["fidelity"] == one["settings"]["fidelity"]
    assert plain["settings"]["fidelity"] in plain["warnings"]
    asked = [*logs, "--calibrated", rules]
    known = answered(gpuctl, *asked, "--param", "philly.relax_after=600,3600", "--add-nodes", "0,1", "--html", page)
    assert known["settings"]["changes"] == "--add-nodes 0,1, --param philly.relax_after=600"
    assert known["settings"]["fidelity"] == answered(gpuctl, *asked)["settings"]["fidelity"]
    assert known["settings"]["fidelity"] not in known["warnings"]
    assert "Replayed under its own rules" in page.read_text()
    own = answered(gpuctl, *asked)["tables"]["replay_summary"]["rows"][0]["wait_mean_s"]
    here = {(row["philly.relax_after"], row["add_nodes"]): row["unchanged_s"] for row in summary(known)}
    assert here == {(600, 0): own, (600, 1): own, (3600, 0): None, (3600, 1): own}


def test_a_calibration_goes_with_an_experiment_file(gpuctl: Gpuctl, logs: list[Path], tmp_path: Path) -> None:
    rules, file = tmp_path / "rules.toml", tmp_path / "experiment.toml"
    rules.write_text(RULES)
    file.write_text('[factors]\nadd_nodes = [1, 2]\n[[policies]]\npolicy = "philly"\n')
    found = answered(gpuctl, *logs, "--experiment", file, "--calibrated", rules)
    asked = [*logs, "--calibrated", rules, "--add-nodes", "1,2"]
    assert summary(found) == summary(answered(gpuctl, *asked))
    file.write_text('[factors]\nadd_nodes = [1, 2]\n[[policies]]\npolicy = "fifo"\n')
    done = gpuctl("replay", *logs, "--experiment", file, "--calibrated", rules, check=False)
    assert "rules of philly, which is no policy of" in done.stderr


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
def test_faults_of_a_calibration_are_reported(
    gpuctl: Gpuctl, logs: list[Path], tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "rules.toml").write_text(text)
    assert told in gpuctl("replay", *logs, "--calibrated", tmp_path / "rules.toml", check=False).stderr


@pytest.mark.parametrize("values", ["1.2", "1,1.2"])
def test_a_window_of_a_csv_states_that_its_first_waits_are_too_short(
    gpuctl: Gpuctl, sample_data: Path, tmp_path: Path, values: str
) -> None:
    asked = [sample_data / "jobs.csv", "--cluster", "4x8", "--policy", "fifo-skip", "--window", "100000..200000"]
    page = tmp_path / "page.html"
    found = answered(gpuctl, *asked, "--scale-load", values, "--html", page)
    told = "the cluster starts empty, so the first waits come out too short: the 167 jobs submitted"
    assert told in found["settings"]["window"]
    assert told in page.read_text()
    (tmp_path / "result.json").write_text(json.dumps(found))
    result = read_result(tmp_path / "result.json")
    screen = (experiments if "," in values else replay).screen(result)
    [line] = [block for block in screen.blocks if isinstance(block, Line) and block.label == "Window"]
    assert line.text.startswith("133 of 300 jobs are in the window from 100000 to 200000; the cluster starts empty")
