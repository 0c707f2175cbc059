"""The jobs that a filter chooses are replayed, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import UsageError
from gpuctl.core.job_filter import parse
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import choose

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Workload

CSV = """job_id,submit_time,duration,num_gpus,vc,user,account
a,0,10,1,x,ann,lab
b,5,10,2,x,bob,
c,9,10,4,y,ann,lab
d,20,10,8,y,,
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Workload:
    (tmp_path / "jobs.csv").write_text(CSV)
    return read_jobs(tmp_path / "jobs.csv")


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({"user": ["ann"]}, "ac"),
        ({"user": ["ann,bob"], "queue": ["x"]}, "ab"),
        ({"account": ["lab"], "gpus": "2.."}, "c"),
        ({"gpus": "2..4"}, "bc"),
        ({"since": "5", "until": "20"}, "bc"),
    ],
)
def test_the_jobs_chosen(jobs: Workload, given: dict[str, list[str]], ids: str) -> None:
    found = choose(jobs, parse(**given))  # type: ignore[arg-type]
    assert found.ids == tuple(ids)
    assert f"the filter keeps {len(ids)} of 4 jobs" in found.notes[-1]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"user": ["anna"]}, "--user anna: no job has this user"),
        ({"state": ["failed"]}, "have no final states"),
        ({"since": "2017-10-02"}, "no calendar"),
        ({"user": ["bob"], "queue": ["y"]}, "matches 0 of 4 jobs"),
    ],
)
def test_nothing_to_choose(jobs: Workload, given: dict[str, list[str]], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        choose(jobs, parse(**given))  # type: ignore[arg-type]
