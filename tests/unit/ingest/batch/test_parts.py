"""A log in overlapping parts, in any order, gives the same as the whole: requeued runs, numbers that begin anew."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.batch_records import lsf, sge
from tests.unit.ingest.batch.loaded import ask, load

if TYPE_CHECKING:
    from pathlib import Path

RUNS = """
    SELECT epoch(j.submit_ts), a.attempt, epoch(a.start_ts), epoch(a.end_ts), a.state, a.gpus, a.reason, j.state,
           j.attempts
    FROM attempts AS a JOIN jobs AS j USING (cluster, job) ORDER BY ALL
"""
"""Without names: which of two jobs of one number has the time in its name depends on which was loaded first."""


def records(scheduler: str) -> list[str]:
    """Records of 40 jobs with 15 numbers, of up to three runs each, in the order of their ends."""
    chance = random.Random(19)
    found: list[tuple[int, str]] = []
    for k in range(40):
        job, submit = chance.randrange(1, 16), 100_000 * k + chance.randrange(1, 1000)
        end, runs = submit, chance.choice((1, 1, 1, 2, 3))
        for run in range(runs):
            start = end + chance.randrange(1, 500)
            end, last = start + chance.randrange(1, 5000), run == runs - 1
            if scheduler == "lsf":
                line = lsf(job, submit, start, end, status=64 if last else 32, exit_info=0 if last else 10)
            else:
                line = sge(job, submit, start, end, failed=0 if last else 25)
            found.append((end, line))
    return [line for _, line in sorted(found)]


@pytest.mark.parametrize("scheduler", ["lsf", "sge"])
def test_overlapping_parts_in_any_order_give_the_same_as_the_whole(tmp_path: Path, scheduler: str) -> None:
    lines = records(scheduler)
    whole, _ = load(tmp_path / "whole", {"log": "\n".join(lines) + "\n"})
    third = len(lines) // 3
    parts = [lines[2 * third - 8 :], lines[: third + 8], lines[third - 8 : 2 * third + 8]]
    for part in parts:
        store, report = load(tmp_path / "parts", {"log": "\n".join(part) + "\n"})
        assert [s.rows_rejected for s in report.sources] == [0]
    assert len(ask(whole, RUNS)) == len(lines)
    assert ask(store, RUNS) == ask(whole, RUNS)
