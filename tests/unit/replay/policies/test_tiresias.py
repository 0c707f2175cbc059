"""tiresias: what falls on one instant but for rounding is one instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.replay.policies import find
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from pathlib import Path


# 0.1 + 514.1857142857144 comes after 3600 / 7 by 1e-13 s, 0.1 + 514.1857142857143 does not
@pytest.mark.parametrize("duration", ["514.1857142857143", "514.1857142857144", "514.1857140"])
def test_no_job_is_preempted_where_rounding_tells_two_events_apart(tmp_path: Path, duration: str) -> None:
    # a has got the service of its queue just as b ends: c starts on the GPU of b, and a goes on
    rows = ("a,0,1000,7", f"b,0.1,{duration},1", "c,400,50,1")
    outcome = replay(find("tiresias"), jobs(tmp_path, *rows), "pool:8")
    assert outcome.jobs["preemptions"].to_list() == [0, 0, 0]
    assert outcome.jobs["start_s"][2] == pytest.approx(3600 / 7)


def test_a_job_that_ends_later_by_more_than_the_grain_is_later(tmp_path: Path) -> None:
    rows = ("a,0,1000,7", "b,0.1,514.19,1", "c,400,50,1")
    outcome = replay(find("tiresias"), jobs(tmp_path, *rows), "pool:8")
    assert outcome.jobs["preemptions"].to_list() == [1, 0, 0]
