"""A new recording of a real Slurm's priorities agrees with ours as the ones under tests/fixtures do; two minutes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from labs.slurm import lab, priority
from tests import slurm_priority

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(600)]


def test_a_new_recording_agrees(tmp_path: Path) -> None:
    if os.environ.get("GPUCTL_LABS") != "1":
        pytest.skip("takes two minutes: only with GPUCTL_LABS=1")
    why = lab.missing()
    assert why is None, why
    priority.record("fair_tree", tmp_path / "fair_tree", snapshots=6)
    found = slurm_priority.read(tmp_path / "fair_tree")
    assert slurm_priority.check_shares(found) >= 2
    assert slurm_priority.check_usage(found) > 30
    assert slurm_priority.check_priorities(found) >= 15
