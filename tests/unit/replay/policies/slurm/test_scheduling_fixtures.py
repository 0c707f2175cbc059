"""Recordings under tests/fixtures/slurm/scheduling: whole, in agreement with themselves, and what their logs say."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path

import pytest

from labs.slurm import scheduling_tables as tables
from labs.slurm.scheduling_scenarios import SCENARIOS

FOLDER = Path(__file__).parents[4] / "fixtures" / "slurm" / "scheduling"
GPUS = {"gpu001": 8, "gpu002": 8, "gpu003": 4, "gpu004": 4, "c1-1": 0}
CPUS = {"gpu001": 64, "gpu002": 64, "gpu003": 32, "gpu004": 32, "c1-1": 32}
MEM_MB = {"gpu001": 500_000, "gpu002": 500_000, "gpu003": 250_000, "gpu004": 250_000, "c1-1": 120_000}
NEVER = {"limits": {"wall_1", "pair_1"}, "limits_stop": {"wall_1", "pair_1"}}
"""Jobs that no partition takes: longer than its MaxTime, or more nodes than its MaxNodes."""

RECORDED = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())

pytestmark = pytest.mark.parametrize("name", RECORDED)


def _rows(name: str, file: str) -> list[tables.Row]:
    return tables.read_rows((FOLDER / name / file).read_text("utf-8"))


def test_nothing_is_missing_or_changed(name: str) -> None:
    folder = FOLDER / name
    lines = [line.split("  ") for line in (folder / "SHA256SUMS").read_text("utf-8").splitlines()]
    sums = {file: value for value, file in lines}
    assert set(sums) == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    for file, wanted in sums.items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == wanted, file


def test_tables_are_what_the_log_says(name: str) -> None:
    for file, text in tables.tables(FOLDER / name).items():
        assert (FOLDER / name / file).read_text("utf-8") == text, file


def test_jobs_are_those_of_the_scenario(name: str) -> None:
    jobs = {row["name"]: row for row in _rows(name, "jobs.csv")}
    assert list(jobs) == [job.name for job in SCENARIOS[name].jobs]
    about = json.loads((FOLDER / name / "recording.json").read_text("utf-8"))
    assert about["scenario"] == name
    assert about["zero"] % 60 == 0
    numbers = {key: row["job"] for key, row in jobs.items()}
    for job in SCENARIOS[name].jobs:
        row = jobs[job.name]
        assert row["words"] == job.words.format_map(numbers)
        # a busy machine delays submissions
        assert 0 <= float(row["submit"]) - about["first"] - job.at < 1, job.name
        if row["run_s"]:
            assert 0 <= float(row["run_s"]) - job.sleep < 2, job.name


def test_every_job_starts_once_and_ends(name: str) -> None:
    jobs = {row["job"]: row for row in _rows(name, "jobs.csv")}
    running: set[str] = set()
    started: set[str] = set()
    submitted: set[str] = set()
    latest = 0.0
    for row in _rows(name, "events.csv"):
        assert float(row["time_s"]) >= latest
        latest = float(row["time_s"])
        job = row["job"]
        if row["event"] == "submit":
            assert job not in submitted
            assert job in jobs
            submitted.add(job)
        elif row["event"] == "start":
            assert job in submitted - running
            assert row["scheduler"] in ("main", "backfill")
            assert row["nodes"]
            running.add(job)
            started.add(job)
        elif row["event"] in tables.ENDS:
            assert row["state"]
            running.discard(job)
    assert submitted == set(jobs)
    assert not running
    assert {jobs[job]["name"] for job in submitted - started} == NEVER.get(name, set())


def test_accounting_agrees_with_the_log(name: str) -> None:
    """Whole seconds of sacct's starts, and which scheduler each was by."""
    zero = tables.zero(FOLDER / name)
    rows = tables.read_rows((FOLDER / name / "sacct.txt").read_text("utf-8"), "|")
    attempts: dict[str, list[tables.Row]] = defaultdict(list)
    for row in rows:
        attempts[row["JobIDRaw"]].append(row)
    for event in _rows(name, "events.csv"):
        if event["event"] == "start":
            row = attempts[event["job"]][int(event["attempt"]) - 1]
            assert int(row["Start"]) - zero == int(float(event["time_s"])), event
            wanted = {"main": "SchedMain", "backfill": "SchedBackfill"}[event["scheduler"]]
            assert wanted in row["Flags"], event


def test_nodes_never_hold_more_than_they_have(name: str) -> None:
    placed: dict[tuple[str, str], list[tables.Row]] = defaultdict(list)
    for row in _rows(name, "placements.csv"):
        placed[row["job"], row["attempt"]].append(row)
    used = {node: [0, 0, 0] for node in GPUS}
    holding: dict[str, list[tables.Row]] = {}
    for event in _rows(name, "events.csv"):
        if event["event"] == "start":
            holding[event["job"]] = placed[event["job"], event["attempt"]]
            assert holding[event["job"]], event
            for row in holding[event["job"]]:
                for which, column in enumerate(("gpus", "cpus", "mem")):
                    used[row["node"]][which] += int(row[column])
                gpus, cpus, mem = used[row["node"]]
                assert gpus <= GPUS[row["node"]], event
                assert cpus <= CPUS[row["node"]], event
                assert mem <= MEM_MB[row["node"]], event
        elif event["event"] in tables.ENDS:
            for row in holding.pop(event["job"], []):
                for which, column in enumerate(("gpus", "cpus", "mem")):
                    used[row["node"]][which] -= int(row[column])
    assert all(values == [0, 0, 0] for values in used.values())


def test_passes_name_what_they_started(name: str) -> None:
    """Each start is inside the latest pass of its kind, and that pass tested the job."""
    passes = _rows(name, "passes.csv")
    for event in _rows(name, "events.csv"):
        if event["event"] != "start":
            continue
        kinds = {"main": ("main", "main_full"), "backfill": ("backfill",)}[event["scheduler"]]
        before = [row for row in passes if row["kind"] in kinds and float(row["time_s"]) <= float(event["time_s"])]
        assert event["job"] in before[-1]["started"].split(";")
        assert event["job"] in before[-1]["tested"].split(";")
    if "SchedulerType=sched/builtin" in (FOLDER / name / "slurm.conf").read_text("utf-8"):
        assert "backfill" not in {row["kind"] for row in passes}
    else:
        assert {"main", "backfill"} <= {row["kind"] for row in passes}


def test_reservations_are_of_backfill_passes(name: str) -> None:
    passes = {row["time_s"]: row for row in _rows(name, "passes.csv") if row["kind"] == "backfill"}
    for row in _rows(name, "reservations.csv"):
        assert row["job"] in passes[row["pass_s"]]["tested"].split(";")
        assert int(row["end_s"]) % 60 == 0
        assert row["booked"] in ("yes", "no")
