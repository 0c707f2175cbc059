"""A new recording of a real Slurm's scheduling does what the one under tests/fixtures does; two to three minutes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labs.slurm import lab, scheduling, scheduling_compare, scheduling_tables

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.xdist_group("slurm-lab"), pytest.mark.timeout(600)]

FOLDER = Path(__file__).parents[1] / "fixtures" / "slurm" / "scheduling"


def test_a_new_recording_agrees(tmp_path: Path) -> None:
    """The same jobs are started, in the same order; passes come at other instants, so times are not compared."""
    if os.environ.get("GPUCTL_LABS") != "1":
        pytest.skip("takes two to three minutes: only with GPUCTL_LABS=1")
    why = lab.missing()
    assert why is None, why
    folder = tmp_path / "partitions"
    scheduling.record("partitions", folder)
    found, wanted = scheduling_compare.starts(folder), scheduling_compare.starts(FOLDER / "partitions")
    assert set(found) == set(wanted)
    assert len(found) == 15
    assert scheduling_compare.swapped(wanted, found) == []
    assert {row["scheduler"] for row in found.values()} == {"main"}
    text = (folder / "jobs.csv").read_text("utf-8")
    assert scheduling_tables.tables(folder)["jobs.csv"] == text
