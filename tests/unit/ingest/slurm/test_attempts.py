"""Attempts that are told more than once, in one source or in several, and records that come in pieces."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.core import known_jobs, ledger
from gpuctl.ingest.core.job_rows import OTHER_RECORD
from gpuctl.ingest.core.known_jobs import REPEAT, KnownJobs
from gpuctl.ingest.slurm import records
from gpuctl.ingest.slurm.records import Records
from tests.philly_log import new_store
from tests.sacct_records import FIRST, PENDING, SECOND, ingest
from tests.slurm_loading import OneSource, rows

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.store.database import Store


def test_the_same_record_twice_is_stored_once(store: Store) -> None:
    sink = ingest(store, {}, {})
    assert (sink.rows_in, sink.rows_loaded, sink.rows_already_stored, sink.rejects) == (2, 1, 1, [])
    assert len(rows(store, "attempts")) == len(rows(store, "jobs")) == len(rows(store, "placements")) == 1


def test_the_same_record_in_another_file_is_already_in_the_store(store: Store) -> None:
    ingest(store, {}, {"JobIDRaw": "101"})
    sink = ingest(store, {"JobIDRaw": "99"}, {}, source=2)
    assert (sink.rows_loaded, sink.rows_already_stored, sink.rejects) == (1, 1, [])
    assert store.frame("SELECT job, source FROM jobs ORDER BY ALL").rows() == [("100", 1), ("101", 1), ("99", 2)]


@pytest.mark.parametrize(
    "other",
    [
        {"User": "somebody"},
        {"End": "2026-11-20T10:59:00"},
        {"State": "FAILED"},
        {"AllocTRES": "billing=2,cpu=2,gres/gpu=3,mem=1G,node=1"},
    ],
)
def test_a_record_that_contradicts_the_one_in_the_store_is_rejected(store: Store, other: dict[str, str]) -> None:
    ingest(store, {})
    sink = ingest(store, other, source=2)
    assert (sink.rows_loaded, sink.rows_already_stored) == (0, 0)
    assert sink.rejects == [(2, OTHER_RECORD, "job 100, submitted 2026-11-20T10:00:00Z")]


def test_a_source_that_states_less_contradicts_nothing(store: Store) -> None:
    ingest(store, {})
    sink = ingest(store, {}, source=2, only="JobIDRaw Submit State")
    assert (sink.rows_already_stored, sink.rejects) == (1, [])


@pytest.mark.parametrize("earlier", [PENDING, {"State": "RUNNING", "End": "Unknown"}])
def test_a_later_state_of_the_same_attempt_takes_its_place(store: Store, earlier: dict[str, str]) -> None:
    ingest(store, earlier)
    sink = ingest(store, {}, source=2)
    assert (sink.rows_loaded, sink.rejects) == (1, [])
    assert store.frame("SELECT job, source, state, attempts FROM jobs").rows() == [("100", 2, "completed", 1)]
    assert store.frame("SELECT attempt, source FROM attempts").rows() == [(0, 2)]
    assert store.frame("SELECT attempt, machine FROM placements").rows() == [(0, "gpu001")]


def test_an_earlier_state_that_comes_late_is_already_in_the_store(store: Store) -> None:
    ingest(store, {})
    sink = ingest(store, PENDING, source=2)
    assert (sink.rows_already_stored, sink.rejects) == (1, [])
    assert rows(store, "jobs")[0]["state"] == "completed"


def test_a_job_that_runs_in_one_file_and_is_requeued_and_ends_in_the_next(store: Store) -> None:
    ingest(store, {"State": "RUNNING", "End": "Unknown"})
    ingest(store, FIRST, SECOND, source=2)
    assert [(a["attempt"], a["source_state"]) for a in rows(store, "attempts")] == [(0, "REQUEUED"), (1, "COMPLETED")]
    assert store.frame("SELECT source, attempts, state FROM jobs").rows() == [(2, 2, "completed")]


def test_an_attempt_without_an_end_in_any_file(store: Store) -> None:
    ingest(store, {"State": "RUNNING", "End": "Unknown"})
    ingest(store, SECOND, source=2)
    first, second = rows(store, "attempts")
    assert (first["state"], first["released_ts"], first["quirks"]) == ("unknown", "2026-11-20 10:02:00", ["no_end"])
    assert (second["attempt"], rows(store, "jobs")[0]["attempts"]) == (1, 2)


def test_attempts_of_one_job_in_two_files_that_come_in_the_wrong_order(store: Store) -> None:
    ingest(store, SECOND)
    ingest(store, FIRST, source=2)
    assert [(a["attempt"], a["source_state"]) for a in rows(store, "attempts")] == [(0, "REQUEUED"), (1, "COMPLETED")]
    assert store.frame("SELECT source, attempts, submit_ts::VARCHAR, state FROM jobs").rows() == [
        (1, 2, "2026-11-20 10:00:00+00", "completed")
    ]


def test_a_file_that_is_gone_leaves_no_attempt_without_a_job(store: Store) -> None:
    ingest(store, FIRST)
    ingest(store, SECOND, source=2)
    ledger.remove(store, 2)
    ingest(store, {"JobIDRaw": "300"}, source=3)
    assert [(r["job"], r["attempts"], r["source_state"], r["quirks"]) for r in rows(store, "jobs")] == [
        ("100", 1, "REQUEUED", ["job_row_lost"]),
        ("300", 1, "COMPLETED", []),
    ]


def test_a_file_that_is_gone_leaves_no_gap_in_the_numbers(store: Store) -> None:
    ingest(store, FIRST)
    ingest(store, SECOND, source=2)
    ledger.remove(store, 1)
    ingest(store, {"JobIDRaw": "300"}, source=3)
    assert [(a["job"], a["attempt"]) for a in rows(store, "attempts")] == [("100", 0), ("300", 0)]
    assert rows(store, "jobs")[0]["attempts"] == 1
    assert rows(store, "placements")[0]["attempt"] == 0


def test_without_submissions_attempts_are_distinguished_by_their_start(store: Store) -> None:
    sink = ingest(store, FIRST, SECOND, SECOND, only="JobIDRaw State Start End")
    assert (sink.rows_already_stored, sink.rejects) == (1, [])
    assert [(a["attempt"], a["start_ts"]) for a in rows(store, "attempts")] == [
        (0, "2026-11-20 10:01:00"),
        (1, "2026-11-20 10:04:30"),
    ]


def test_other_clusters_of_the_store_are_left_alone(store: Store) -> None:
    for cluster in ("a", "b"):
        sink = OneSource(store, cluster, 1 if cluster == "a" else 2, "UTC")
        made = Records(sink)
        made.add(pl.DataFrame({"JobIDRaw": ["1"], "State": ["COMPLETED"], "Submit": ["2026-11-20T10:00:00"]}))
        made.finish()
        assert (sink.rows_loaded, sink.rejects) == (1, [])
        sink.close()


# ---- batches


def test_batches_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [{"JobIDRaw": str(100 + i % 7), "Submit": f"2026-11-20T10:00:{i:02d}"} for i in range(20)]
    made = []
    for size in (3, 1000):
        monkeypatch.setattr(records, "BATCH", size)
        folder = tmp_path / str(size)
        folder.mkdir()
        with new_store(folder) as store:
            ingest(store, *given, *given[:5])
            made.append([rows(store, table) for table in ("jobs", "attempts", "placements")])
    assert made[0] == made[1]


def test_frames_of_differing_columns_and_no_lines(store: Store) -> None:
    sink = OneSource(store, "lab", 1, "UTC")
    made = Records(sink)
    made.add(pl.DataFrame({"JobIDRaw": ["1", "x"]}))
    made.add(pl.DataFrame({"JobIDRaw": ["2", "y"], "State": ["FAILED", None]}))
    made.finish()
    assert [line for line, _, _ in sink.rejects] == [2, 4]
    assert [(r["job"], r["state"]) for r in rows(store, "jobs")] == [("1", "unknown"), ("2", "failed")]
    sink.close()


def test_nothing_but_steps(store: Store) -> None:
    sink = ingest(store, {"JobIDRaw": "100.batch"}, {"JobIDRaw": "100.0"}, {"JobIDRaw": "?"})
    assert (sink.rows_in, sink.rows_loaded, len(sink.rejects)) == (3, 2, 1)


def test_nothing_at_all(store: Store) -> None:
    sink = OneSource(store, "lab", 1, "UTC")
    Records(sink).finish()
    assert (sink.rows_in, sink.rows_loaded) == (0, 0)
    sink.close()


def test_little_memory_while_batches_come_and_more_of_it_after(store: Store) -> None:
    limit = "SELECT current_setting('memory_limit')"
    sink = OneSource(store, "lab", 1, "UTC")
    taken = Records(sink)
    assert store.value(limit) == "143.0 MiB"
    taken.finish()
    assert store.value(limit) == "572.2 MiB"
    sink.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("words", [False, True])
def test_seen_in_many_runs(seed: int, words: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_jobs, "RUN", 64)
    chance, seen, known = random.Random(seed), KnownJobs(), dict[str, list[tuple[int, int]]]()
    number = 0
    for _ in range(60):
        jobs = [f"{'x' * words}{chance.randrange(400)}" for _ in range(chance.randrange(1, 20))]
        numbers = seen.add(pl.Series(jobs), pl.Series([chance.randrange(10**6) for _ in jobs])).to_list()
        assert [at > 0 for at in numbers] == [job in known or job in jobs[:i] for i, job in enumerate(jobs)]
        for job, at in zip(jobs, numbers, strict=True):
            assert at in {0, REPEAT + number}
            known.setdefault(job, []).append((at, number))
            number += 1
    lines = {n: line for n, line in enumerate(line for part in seen._lines for line in part)}
    keys = [(job, at, n) for job, given in known.items() for at, n in given]
    found = seen.lines(pl.Series([job for job, _, _ in keys]), pl.Series([at for _, at, _ in keys]))
    assert found == [lines[n] for _, _, n in keys]


def test_seen_knows_repeats_and_lines() -> None:
    seen = KnownJobs()
    first = seen.add(pl.Series(["1", "a", "1"]), pl.Series([2, 3, 4]))
    second = seen.add(pl.Series(["a", "2"]), pl.Series([9, 7]))
    assert first.to_list() == [0, 0, REPEAT + 2]
    assert second.to_list() == [REPEAT + 3, 0]
    jobs = pl.Series(["1", "1", "a", "a", "2"])
    assert seen.lines(jobs, pl.Series([0, REPEAT + 2, 0, REPEAT + 3, 0])) == [2, 4, 3, 9, 7]


def hours_later(record: dict[str, str], hours: int) -> dict[str, str]:
    """The same record with the clock of another zone."""
    times = {name: f"2026-11-20T{10 + hours:02}:{at}" for name, at in TIMES.items()}
    return {**record, **times}


TIMES = {"Submit": "00:00", "Eligible": "00:10", "Start": "01:00", "End": "11:00"}


@pytest.mark.parametrize("hours", [5, -4])
def test_the_same_jobs_with_the_clock_of_another_zone_are_refused(store: Store, hours: int) -> None:
    jobs = [{"JobIDRaw": str(number)} for number in (1, 2, 3, 4)]
    ingest(store, *jobs)
    with pytest.raises(
        InputError, match=f"4 of its jobs are in the store.* {abs(hours)} h {'later' if hours > 0 else 'earlier'}"
    ):
        ingest(store, *(hours_later(job, hours) for job in jobs), source=2)


def test_a_few_jobs_that_came_again_hours_later_are_attempts(store: Store) -> None:
    """A job of scrontab keeps its id and runs again at the same minute, for as long as before."""
    jobs = [{"JobIDRaw": str(number)} for number in (1, 2, 3, 4, 5, 6)]
    ingest(store, *jobs)
    ingest(store, *(hours_later(job, 1) for job in jobs[:2]), *jobs[2:], source=2)
    assert store.value("SELECT count(*) FROM attempts") == 8


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_records_with_fewer_times_are_the_same_attempts(store: Store, order: tuple[int, int]) -> None:
    texts = ({}, {"only": "JobIDRaw State Start End"})
    for source, which in enumerate(order, 1):
        ingest(store, {}, source=source, **texts[which])
    (made,) = rows(store, "attempts")
    assert made["queued_ts"] == "2026-11-20 10:00:00"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_records_without_any_time_add_no_attempt(store: Store, order: tuple[int, int]) -> None:
    texts: tuple[dict[str, str], ...] = ({}, {"only": "JobIDRaw State ReqMem"})
    for source, which in enumerate(order, 1):
        ingest(store, {"ReqMem": "1G"}, source=source, **texts[which])
    (made,) = rows(store, "attempts")
    assert (made["queued_ts"], made["attempt"]) == ("2026-11-20 10:00:00", 0)
    assert store.value("SELECT count(*) FROM jobs") == 1
