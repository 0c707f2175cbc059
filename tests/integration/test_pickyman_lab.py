"""The recordings that predictions are judged against: whether they are sound, and whether the lab still makes such.

Recorded and fresh tables go through the same checks (labs/pickyman says what is in them).
"""

from __future__ import annotations

import bisect
import csv
import itertools
import subprocess
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

from labs.pickyman import lab, plan
from labs.pickyman.running import VENV, missing
from tests import lab_requirements

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, str]
Tables = dict[str, list[Row]]
CLOCK_S = 0.9
"""How late a sample may be: the recorder shares two processors with the job, and here with other tests."""


def tables(folder: Path) -> Tables:
    """The four tables of a folder, as text."""
    found = {}
    for name in lab.TABLES:
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            found[name] = list(csv.DictReader(file))
    return found


def by_job(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows of each job, in the order of the file."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["job_id"]].append(row)
    return groups


@pytest.fixture(scope="module")
def recorded(sample_data: Path) -> Tables:
    """What is committed."""
    return tables(sample_data / "pickyman")


@pytest.fixture(scope="module")
def fresh(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """What a short run of the lab makes here and now; half a minute, on a busy machine more."""
    if lab_requirements.REQUESTED and not VENV.exists():
        lab.setup()
    lab_requirements.skip_or_fail(missing())
    out = tmp_path_factory.mktemp("pickyman")
    command = [sys.executable, str(root / "labs/pickyman/lab.py"), "record", "--out", str(out), "--quick"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    return tables(out)


def samples_are_whole(found: Tables) -> None:
    """One sample a second from the start of a job to its end."""
    traffic = by_job(found["traffic"])
    assert list(traffic) == [row["job_id"] for row in found["jobs"]]
    for row in found["jobs"]:
        times = [float(sample["t"]) for sample in traffic[row["job_id"]]]
        assert len(times) == int(float(row["run_time_s"])) + 1
        assert all(0 <= at - second < CLOCK_S for second, at in enumerate(times[:-1], start=1)), row["job_id"]
        assert 0 <= times[-1] - float(row["run_time_s"]) < CLOCK_S
        assert all(int(sample["bytes"]) >= 0 for sample in traffic[row["job_id"]])


def epochs_are_in_order(found: Tables) -> None:
    """Epochs follow each other without a gap, inside the run; training, validation and checkpoint inside each."""
    epochs = by_job(found["epochs"])
    for row in found["jobs"]:
        mine = epochs[row["job_id"]]
        assert [int(epoch["epoch"]) for epoch in mine] == list(range(int(row["epochs"])))
        for epoch in mine:
            order = [float(epoch[name]) for name in ("start_s", "trained_s", "validated_s", "end_s")]
            assert order == sorted(order)
        for before, after in itertools.pairwise(mine):
            assert 0 <= float(after["start_s"]) - float(before["end_s"]) < 0.05
        assert 0 < float(mine[0]["start_s"]) < float(row["first_step_s"])
        assert float(mine[-1]["end_s"]) < float(row["run_time_s"]) < float(mine[-1]["end_s"]) + 2


def bytes_add_up(found: Tables) -> None:
    """What came over the cable is what was read: an epoch's data each epoch, or once where it is cached."""
    traffic = by_job(found["traffic"])
    for row in found["jobs"]:
        reads = 1 if row["cached"] == "1" else int(row["epochs"])
        expected = reads * int(row["dataset_bytes"])
        received = sum(int(sample["bytes"]) for sample in traffic[row["job_id"]])
        # headers of HTTP, TCP and Ethernet; acknowledgements of what is written
        assert 1 < received / expected < 1.03, (row["job_id"], received / expected)


def epochs_show_in_traffic(found: Tables) -> None:
    """By the end of an epoch, as the job told of it, all of its data was received, and none of the next one's."""
    traffic, epochs = by_job(found["traffic"]), by_job(found["epochs"])
    for row in found["jobs"]:
        whole = int(row["dataset_bytes"])
        times = [0.0, *(float(sample["t"]) for sample in traffic[row["job_id"]])]
        sums = [0, *itertools.accumulate(int(sample["bytes"]) for sample in traffic[row["job_id"]])]
        for number, epoch in enumerate(epochs[row["job_id"]], start=1):
            # a sample is as exact as its second
            after = bisect.bisect_left(times, float(epoch["end_s"]))
            read = whole * (1 if row["cached"] == "1" else number)
            assert sums[after] >= read, (row["job_id"], number)
            assert sums[after - 1] < 1.03 * read, (row["job_id"], number)


def suspensions_add_up(found: Tables) -> None:
    """Time without progress is what was lost before the processes were gone, and the resume."""
    for row in found["suspensions"]:
        lost, suspend, resume = (float(row[name]) for name in ("loss_s", "suspend_s", "resume_s"))
        left, done, write = (float(row[name]) for name in ("epoch_left_s", "epoch_done_s", "write_s"))
        before = suspend - left if row["mode"] == "epoch" else done + suspend
        assert lost == pytest.approx(before + resume, abs=0.005)
        assert 0 < left < float(row["epoch_s"]) * 1.5
        if row["mode"] == "epoch":
            assert left + write < suspend < left + write + 2
        else:
            assert 0 < suspend < 1
        parts = [float(row[name]) for name in ("framework_s", "load_s", "first_step_s")]
        assert resume == pytest.approx(sum(parts), abs=0.005)
        assert min(parts) > 0


CHECKS: list[Callable[[Tables], None]] = [
    samples_are_whole,
    epochs_are_in_order,
    bytes_add_up,
    epochs_show_in_traffic,
    suspensions_add_up,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_recordings_are_sound(recorded: Tables, check: Callable[[Tables], None]) -> None:
    check(recorded)


@pytest.mark.slow
@pytest.mark.lab
@pytest.mark.timeout(900)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_lab_makes_sound_ones(fresh: Tables, check: Callable[[Tables], None]) -> None:
    assert len(fresh["jobs"]) == 2
    assert len(fresh["suspensions"]) == 2
    check(fresh)


def test_every_family_can_be_told_from_four_of_its_jobs(recorded: Tables) -> None:
    """Each has the batches, sizes and worker counts that the four unknowns of the epoch formula need."""
    for family in plan.FAMILIES:
        mine = [row for row in recorded["jobs"] if row["family"] == family and row["cached"] == "0"]
        assert len(mine) >= 7
        assert len({row["model"] for row in mine}) == 1
        assert len({row["batch"] for row in mine}) >= 3
        assert len({row["samples"] for row in mine}) >= 3
        assert Counter(row["gpus"] for row in mine) == {"1": 4, "2": 3}
    assert len([row for row in recorded["jobs"] if row["cached"] == "1"]) >= 3


def test_suspensions_span_what_the_overhead_depends_on(recorded: Tables) -> None:
    rows = recorded["suspensions"]
    assert len(rows) >= 45
    assert len({row["suspension_id"] for row in rows}) == len(rows)
    for family in plan.FAMILIES:
        modes = Counter((row["mode"], row["gpus"]) for row in rows if row["family"] == family)
        assert {mode for mode, _ in modes} == {"epoch", "abort"}
        assert {gpus for _, gpus in modes} == {"1", "2"}
    sizes = [int(row["checkpoint_bytes"]) for row in rows]
    assert min(sizes) < 2e6
    assert max(sizes) > 150e6


def test_the_recordings_are_those_of_the_plan(recorded: Tables) -> None:
    names = {job.name for job in plan.jobs() if not job.quick}
    assert {row["job_id"] for row in recorded["jobs"]} == names
    chains = {chain.name for chain in plan.chains() if not chain.quick}
    assert {row["job_id"] for row in recorded["suspensions"]} == chains
