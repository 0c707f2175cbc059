"""Input of YARN's Scheduler Load Simulator, read and replayed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.example_files import FIXTURES
from tests.unit.ingest.batch.loaded import ask, load

if TYPE_CHECKING:
    from pathlib import Path

JOBS = 'SELECT job, queue, "user", epoch(submit_ts), gpus, cpus, mem_mb, run_sum_s, state FROM jobs ORDER BY job'


def test_jobs_have_all_their_containers_for_the_longest_with_gpus(tmp_path: Path) -> None:
    store, report = load(tmp_path, {"jobs.json": (FIXTURES / "yarn/sls/jobs.json").read_bytes()})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in report.sources] == [("yarn-sls", 3, 1)]
    assert ask(store, JOBS) == [
        ("fit", "vision", "eve", 0, 8, 33, 263_168, 600, "pending"),
        ("job_2", "text", None, 105.5, 0, None, None, 17, "pending"),
        ("job_3", "text", None, 105.5, 0, None, None, 17, "pending"),
    ]


@pytest.mark.parametrize(
    ("task", "seconds"),
    [
        ({"container.duration.ms": 5000, "duration.ms": 7000, "container.start.ms": 0, "container.end.ms": 9000}, 5),
        ({"duration.ms": "7000", "container.start.ms": 0, "container.end.ms": 9000}, 7),
        ({"container.start.ms": 1000, "container.end.ms": 9000}, 8),
    ],
)
def test_lengths_are_looked_for_in_the_order_of_sls(tmp_path: Path, task: dict[str, Any], seconds: int) -> None:
    """As TaskContainerDefinition.validateAndGetDuration does."""
    text = json.dumps({"job.start.ms": 0, "job.id": "a", "job.tasks": [task]})
    store, _ = load(tmp_path, {"jobs.json": text})
    assert ask(store, "SELECT run_sum_s FROM jobs") == [(seconds,)]
