"""Spark's event logs: of YARN, of a standalone cluster, running, rolled, and with a ResourceManager's answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.store.database import Store
from tests.example_files import FIXTURES
from tests.result_tables import table_of
from tests.unit.ingest.batch.loaded import COUNTS, PLACES, ask, load

if TYPE_CHECKING:
    from pathlib import Path

YARN = "application_1800000000000_0007"
JOBS = (
    "SELECT job, state, gpus, nodes, cpus, attempts, wait_s, run_sum_s, run_last_s, queue, reason "
    "FROM jobs ORDER BY job"
)


def text(name: str) -> str:
    """A fixture."""
    return (FIXTURES / "spark" / name).read_text()


def gpu_hours(store: Path) -> float:
    """All GPU-hours by the analysis."""
    with Store(store) as opened:
        return float(table_of(analyze(opened, Options("site", tables=("overview",))), "overview").frame["gpu_hours"][0])


def test_a_standalone_application_has_an_attempt_for_each_set_of_executors(tmp_path: Path) -> None:
    name = "app-20270115080000-0001"
    store, report = load(tmp_path, {name: text(name)})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in report.sources] == [("spark-events", 15, 0)]
    failed = "Job aborted due to stage failure: Task 1 in stage 1.0 failed 4 times"
    assert ask(store, JOBS) == [(name, "failed", 2, 2, 8, 3, 60, 600, 600, None, failed)]
    assert ask(store, "SELECT epoch(start_ts) - 1800000000, gpus, state, quirks FROM attempts ORDER BY 1") == [
        (60, 1, "completed", ["resized"]), (60.5, 2, "completed", ["resized"]), (360.5, 1, "failed", []),
    ]  # fmt: skip
    assert ask(store, PLACES)[1:3] == [(name, 1, "n1", 1, False), (name, 1, "n2", 1, False)]
    # 600 s of the first executor, 300 s of the second
    assert gpu_hours(store) == pytest.approx(900 / 3600)


def test_executors_on_yarn_are_its_containers(tmp_path: Path) -> None:
    """Each holds what its profile requests, not the four GPUs that it finds on its node."""
    store, _ = load(tmp_path, {f"{YARN}_1": text(f"{YARN}_1")})
    assert ask(store, JOBS) == [(YARN, "completed", 4, 2, 8, 1, 61, 900, 900, "root.vision", None)]
    sql = "SELECT container, machine, gpus, epoch(end_ts - allocated_ts) FROM containers ORDER BY container"
    assert ask(store, sql) == [
        (YARN.replace("application", "container") + "_01_000002", "n1", 2, 301),
        (YARN.replace("application", "container") + "_01_000003", "n2", 2, 900),
    ]
    assert gpu_hours(store) == pytest.approx((2 * 301 + 2 * 900) / 3600)


@pytest.mark.parametrize("first", ["spark", "rest"])
def test_what_the_resource_manager_states_counts_first(tmp_path: Path, first: str) -> None:
    app = {
        **{"id": YARN, "state": "FINISHED", "finalStatus": "FAILED", "user": "eve", "queue": "vision", "name": "fit"},
        **{"startedTime": 1_800_000_001_000, "launchTime": 1_800_000_002_000, "finishedTime": 1_800_000_965_000},
    }
    files = {"spark": {f"{YARN}_1": text(f"{YARN}_1")}, "rest": {"apps.json": json.dumps({"apps": {"app": [app]}})}}
    for name in sorted(files, reverse=first == "spark"):
        store, _ = load(tmp_path, files[name])
    assert ask(store, JOBS) == [(YARN, "failed", 4, 2, 8, 1, 60, 904, 904, "root.vision", None)]


def test_an_application_that_runs_is_completed_by_the_whole_log(tmp_path: Path) -> None:
    name = "app-20270115080000-0001"
    lines = text(name).splitlines(keepends=True)
    store, _ = load(tmp_path, {f"{name}.inprogress": "".join(lines[:10])})
    assert [(row[1], row[2], row[5]) for row in ask(store, JOBS)] == [("running", 2, 2)]
    load(tmp_path, {name: text(name)})
    assert [(row[1], row[2], row[5], row[7]) for row in ask(store, JOBS)] == [("failed", 2, 3, 600)]
    # the same again, from elsewhere
    load(tmp_path, {f"{name}.copy": text(name) + "\n"})
    assert ask(store, COUNTS)[0] == (15, 14, 1, 0)


def test_a_later_part_of_a_rolling_log_is_named(tmp_path: Path) -> None:
    part = "".join(text(f"{YARN}_1").splitlines(keepends=True)[4:])
    _, report = load(tmp_path, {f"events_2_{YARN}": part})
    assert [source.status for source in report.sources] == ["failed"]
    assert "later part of a rolling event log" in str(report.sources[0].message)


@pytest.mark.parametrize(
    ("event", "want"),
    [
        ({"ExitCode": 0}, "completed"),
        ({"ExitCode": 1}, "failed"),
        ({}, "unknown"),
    ],
)
def test_an_exit_code_decides_the_outcome(tmp_path: Path, event: dict[str, Any], want: str) -> None:
    """SparkListenerApplicationEnd has one since Spark 4.1; without it and without a job, nothing shows the outcome."""
    lines = [line for line in text(f"{YARN}_1").splitlines() if "JobEnd" not in line and "ApplicationEnd" not in line]
    lines.append(
        json.dumps(
            {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_800_000_961_000, **event}, separators=(",", ":")
        )
    )
    store, _ = load(tmp_path, {"log": "\n".join(lines).replace(',"App Attempt ID":"1"', "")})
    assert [row[1] for row in ask(store, JOBS)] == [want]
