"""The recorded decisions of Hadoop's schedulers (tests/fixtures/yarnsched): all there, and nothing that cannot be."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from labs.yarnsched.check import Recording, faults, size
from labs.yarnsched.lab import SCENARIOS, TABLES

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "yarnsched"
_LIMIT_BYTES = 200_000


@pytest.fixture(scope="module", params=sorted(SCENARIOS))
def folder(request: pytest.FixtureRequest) -> Path:
    return FIXTURES / str(request.param)


def test_every_scenario_is_recorded_and_nothing_else() -> None:
    assert {path.name for path in FIXTURES.iterdir() if path.is_dir()} == set(SCENARIOS)


def test_a_recording_is_complete_and_small(folder: Path) -> None:
    facts = json.loads((folder / "run.json").read_text("utf-8"))
    own = "fair-scheduler.xml" if facts["scheduler"] == "fair" else "capacity-scheduler.xml"
    for name in ("yarn-site.xml", "resource-types.xml", own, "nodes.csv", "workload.csv"):
        assert (folder / name).stat().st_size, name
    assert facts["hadoop"] == "3.5.0"
    assert facts["what"] == SCENARIOS[folder.name].what
    assert sum(path.stat().st_size for path in folder.iterdir()) < _LIMIT_BYTES
    assert not [path for path in folder.iterdir() if b"/tmp/" in path.read_bytes()]


def test_saved_values_equal_those_of_all_three_runs(folder: Path) -> None:
    runs = json.loads((folder / "run.json").read_text("utf-8"))["runs_sha256"]
    assert len(runs) == 3
    assert all(run == runs[0] for run in runs)
    for name in TABLES:
        packed = folder / f"{name}.csv.gz"
        if packed.exists():
            assert hashlib.sha256(gzip.decompress(packed.read_bytes())).hexdigest() == runs[0][name]
    assert (folder / "events.csv.gz").exists()
    assert (folder / "shares.csv.gz").exists()


def test_a_recording_adds_up(folder: Path) -> None:
    assert faults(Recording.read(folder)) == []


def test_the_workload_is_that_of_the_scenario(folder: Path) -> None:
    run = Recording.read(folder)
    scenario = SCENARIOS[folder.name]
    assert [row["app"] for row in run.workload] == [app.name for app in scenario.apps]
    assert [int(row["containers"]) for row in run.workload] == [app.containers for app in scenario.apps]
    assert [size(row) for row in run.nodes] == [scenario.node] * scenario.nodes


@pytest.mark.parametrize("event", ["allocate", "release", "reserve", "unreserve", "finished"])
def test_a_recording_that_lacks_a_line_is_found_out(event: str) -> None:
    run = Recording.read(FIXTURES / "cs-reserve")
    assert faults(run) == []
    index = next(number for number, row in enumerate(run.events) if row["event"] == event)
    lacking = copy.deepcopy(run)
    del lacking.events[index]
    for number, row in enumerate(lacking.events):
        row["seq"] = str(number)
    assert faults(lacking)


def test_more_than_a_node_has_is_found_out() -> None:
    run = Recording.read(FIXTURES / "cs-reserve")
    for row in run.nodes:
        row["gpus"] = "7"
    assert any("left" in fault for fault in faults(run))


def test_vector_12_as_hadoop_has_it() -> None:
    """Two containers a time, not 10, 8, 6 ...: the cap of a round comes before the natural termination factor."""
    expected = {"cs-preempt12": [2] * 23, "cs-preempt12-fast": [2] * 23, "cs-preempt12-whole": [10] * 5}
    for name, takes in expected.items():
        run = Recording.read(FIXTURES / name)
        killed: dict[str, int] = {}
        for row in run.events:
            if row["event"] == "release":
                killed[row["ms"]] = killed.get(row["ms"], 0) + 1
        assert list(killed.values()) == takes, name


def test_containers_preempted_by_fair_and_their_beneficiaries() -> None:
    """Without GPUs: twice what b lacks, then what brings c to its threshold; where only GPUs are all taken, nothing."""
    expected = {
        "fs-preempt-plain": {("24000", "a1", "for b1"): 16, ("33000", "a1", "for c1"): 5, ("58000", "b1", "for c1"): 3},
        "fs-preempt-gpu": {},
    }
    for name, takes in expected.items():
        marks: dict[tuple[str, str, str], int] = {}
        for row in Recording.read(FIXTURES / name).events:
            if row["event"] == "mark":
                key = (row["ms"], row["app"], row["detail"])
                marks[key] = marks.get(key, 0) + 1
        assert marks == takes, name
