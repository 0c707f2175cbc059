"""Mirage's authors' scheduler: against a slow one written from the rules, and against what theirs did."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.run import replay
from tests.mirage_reference import Job, simulate

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Outcome

HEADER = "job_id,submit_time,duration,nodes,limit_min\n"
ORACLES = Path(__file__).parents[5] / "shared" / "oracles" / "mirage"


def outcome_of(path: Path, cluster: str) -> Outcome:
    work = read_jobs(path)
    return replay(work, parse_cluster(cluster, work), [("mirage", {})], processes=1)[0]


def told(outcome: Outcome) -> dict[str, tuple[float, float, bool]]:
    """Start, end and whether it was backfilled, by job."""
    (flags,) = outcome.log.backfilled()
    columns = (outcome.jobs[name].to_list() for name in ("start_s", "end_s"))
    return {job: row for job, *row in zip(outcome.jobs["job"].to_list(), *columns, flags.to_list(), strict=True)}


def random_jobs(seed: int, count: int, nodes: int) -> list[Job]:
    """A queue that builds up, with ties of minute and of priority, runs of 0 s, and runs beyond the limit."""
    draw = np.random.Generator(np.random.PCG64(seed))
    limits = draw.choice([5, 30, 120, 600], count)
    limits[:2] = 2880, 3000
    return [
        Job(
            str(draw.integers(1, 10**6)) + f"-{k}",
            float(draw.integers(0, 9000)),
            float(draw.choice([0, 1.5, 59, 60, 61, 0.7 * limit * 60, 61 * limit])),
            int(min(draw.choice([1, 1, 2, 3, 5]), nodes)),
            int(limit),
        )
        for k, limit in enumerate(limits)
    ]


@pytest.mark.parametrize(("seed", "nodes"), [(1, 5), (2, 7), (3, 12)])
def test_starts_are_those_of_the_minute_by_minute_simulator(tmp_path: Path, seed: int, nodes: int) -> None:
    jobs = random_jobs(seed, 50, nodes)
    path = tmp_path / "queue.csv"
    path.write_text(HEADER + "".join(f"{j.name},{j.submit},{j.run},{j.nodes},{j.limit}\n" for j in jobs))
    simulate(jobs, nodes)
    expected = {j.name: [60.0 * (j.start or 0), 60.0 * ((j.start or 0) + j.minutes), j.backfilled] for j in jobs}
    found = told(outcome_of(path, f"{nodes}x1"))
    assert found == expected
    assert len({start for start, *_ in found.values()}) > 20
    assert sum(flag for *_, flag in found.values()) > 3


@pytest.mark.parametrize(("case", "nodes"), [("ls6_5d_n88", 88), ("ls6_20d_n76", 76)])
def test_starts_are_those_of_the_authors_simulator(case: str, nodes: int) -> None:
    if not ORACLES.is_dir():
        pytest.skip("shared/oracles/mirage is not beside the checkout")
    with (ORACLES / f"{case}_expected.csv").open() as file:
        expected = {
            row["job_id"]: [float(row["start"]), float(row["finish"]), row["backfilled"] == "1"]
            for row in csv.DictReader(file)
        }
    assert told(outcome_of(ORACLES / f"{case}_input.csv", f"{nodes}x1")) == expected


def test_a_queue_in_minutes_is_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "queue.csv"
    path.write_text(HEADER + "a,119.5,0,2,10\nb,60,601,1,10\nc,61,61,1,\n")
    jobs = read_jobs(path)
    assert jobs.ids == ("b", "c", "a")
    assert jobs.submit.tolist() == [60, 60, 60]
    assert jobs.segment_s.tolist() == [600, 120, 60]
    assert jobs.gpus.tolist() == [1, 1, 2]
    assert jobs.time_limit.tolist()[::2] == [600, 600]
    assert np.isnan(jobs.time_limit[1])
    assert any("whole minutes" in str(each) for each in jobs.notes)


def test_faults_of_such_a_queue_are_reported_by_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "queue.csv"
    path.write_text(HEADER + "a,0,-1,0,-5\nb,0,0,1,5\n")
    with pytest.raises(InputError) as error:
        read_jobs(path)
    for text in ("duration is not above 0 s", "nodes is not a whole number", "limit_min is not above 0"):
        assert text in str(error.value)
    assert "line 3" not in str(error.value)
    assert "num_gpus" not in str(error.value)
    assert "requested_time" not in str(error.value)


def test_jobs_table_says_who_was_backfilled_only_under_this_policy(tmp_path: Path) -> None:
    from gpuctl.replay.results.tables import result

    path = tmp_path / "queue.csv"
    path.write_text(HEADER + "a,0,12000,1,200\nb,6000,600,2,20\nc,6000,600,1,20\n")
    work = read_jobs(path)
    cluster = parse_cluster("2x1", work)
    both = replay(work, cluster, [("fifo", {}), ("mirage", {})], processes=1)
    tables = [result(some, work, cluster, tables=["replay_jobs"]).tables[0].frame for some in (both, both[:1])]
    rows = tables[0].filter(policy="mirage").sort("job")
    assert rows["start_s"].to_list() == [0, 12000, 6000]
    assert rows["backfilled"].to_list() == [False, False, True]
    assert tables[0].filter(policy="fifo")["backfilled"].to_list() == [None] * 3
    assert "backfilled" not in tables[1].columns
