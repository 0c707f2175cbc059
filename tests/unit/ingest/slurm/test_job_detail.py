"""``scontrol show job -d``: exact placements in the place of estimates."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.formats.slurm_job_detail import read_detail
from gpuctl.ingest.slurm.site.job_gpus import stated_gpus
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.slurm.timestamps import LocalClock
from tests.philly_log import load, load_into
from tests.slurm_site_files import CLUSTER, DETAIL, PLACE, Loose, real, site_format

if TYPE_CHECKING:
    from gpuctl.store.database import Store

FORMAT = site_format("job_detail")
BLOCK = DETAIL.replace(" UserId=alice", "\n   UserId=alice").replace("   Nodes=", "\n     Nodes=") + "\n"


def loaded(text: str | bytes) -> Loose:
    sink = Loose()
    load_into(sink, FORMAT, text)
    return sink


def exact_rows(sink: Loose) -> list[tuple[str, str, float, list[int] | None]]:
    rows = sink.tables.get("exact_placements", [])
    return [(r["job"], r["machine"], r["gpus"], r["gpu_indices"]) for r in rows]


EXPECTED = [("123", "gpu007", 4.0, [0, 1, 2, 3]), ("123", "gpu008", 2.0, [0, 2])]


@pytest.mark.parametrize("text", [DETAIL, BLOCK, DETAIL.replace("JobId=123 ", "JobId=123 ArrayJobId=7 ArrayTaskId=1 ")])
def test_gpus_of_every_machine(text: str) -> None:
    sink = loaded(text)
    assert exact_rows(sink) == EXPECTED
    assert (sink.rows_in, sink.rejects) == (1, [])
    row = sink.tables["exact_placements"][0]
    assert row["start_ts"].strftime("%H:%M:%S") == "21:05:54"
    assert FORMAT.sniff("x", text.encode())


def test_groups_of_machines_have_the_same_gpus() -> None:
    text = DETAIL.replace("Nodes=gpu007 CPU_IDs=0", "Nodes=gpu[005-006] CPU_IDs=0-1")
    assert exact_rows(loaded(text))[:2] == [("123", "gpu005", 4.0, [0, 1, 2, 3]), ("123", "gpu006", 4.0, [0, 1, 2, 3])]


def test_a_record_that_repeats_is_stored_once() -> None:
    sink = loaded(DETAIL * 3)
    assert (sink.rows_in, exact_rows(sink)) == (3, EXPECTED)


def test_the_total_is_stored_of_records_without_gpus_by_node() -> None:
    ended = DETAIL.replace("gpu:v100:4(IDX:0-3)", "").replace("gpu:v100:2(IDX:0,2)", "")
    sink = loaded(ended)
    assert (sink.rows_loaded, exact_rows(sink)) == (1, [("123", None, 6.0, None)])


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"JOB_GRES": "gpu:h100:8", "TresPerNode": "gres:gpu:1"}, 8),
        ({"JOB_GRES": "(null)", "TRES": "cpu=96,mem=400G,node=1"}, 0),
        ({"TRES": "cpu=4,node=1,gres/gpu=2", "TresPerNode": "gres:gpu:1"}, 2),
        ({"TRES": "cpu=4,node=1", "TresPerNode": "gres/gpu:h100:4", "NumNodes": "2-2"}, 8),
        ({"TresPerNode": "gres:gpu:4", "NumNodes": "2-4"}, None),
        ({"TresPerTask": "cpu=4,gres/gpu=1", "NumTasks": "3"}, 3),
        ({"TresPerJob": "gres/gpu:5", "NumNodes": "2"}, 5),
        ({"Gres": "gpu:4", "NumNodes": "3"}, 12),
        ({"Gres": "(null)", "TRES": "cpu=4,node=1", "NumNodes": "3"}, None),
        ({"JOB_GRES": "shard:a100:2"}, None),
    ],
)
def test_gpus_in_all_as_releases_state_them(fields: dict[str, str], gpus: float | None) -> None:
    assert stated_gpus(fields) == gpus


def test_a_name_on_two_lines() -> None:
    sink = loaded(DETAIL.replace("JobName=a ", "JobName=a\nline ") + DETAIL.replace("JobId=123", "JobId=124"))
    assert (sink.rows_in, [job for job, *_ in exact_rows(sink)]) == (2, ["123", "123", "124", "124"])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("IDX:0-3", "IDX:0-99999", "GPU indices"),
        ("Nodes=gpu007", "Nodes=gpu[1-999999999999]", "more than 65536 names"),
        ("StartTime=2026", "StartTime=x", "time is neither"),
        (" UserId=alice(1001)", "", "no job record"),
    ],
)
def test_records_that_cannot_be_read(old: str, new: str, reason: str) -> None:
    sink = loaded(DETAIL.replace(old, new).replace("a UserId=x b", "a b") + DETAIL)
    assert [n for n, _, _ in sink.rejects] == [1]
    assert reason in sink.reasons[0]
    assert exact_rows(sink) == EXPECTED


def estimates(store: Store, *placed: tuple[str, float], start: str = "21:05:54", gpus: float = 6) -> None:
    store.execute(
        "INSERT INTO attempt_rows (cluster, job, attempt, queued_ts, start_ts, state, gpus, servers, quirks, source) "
        "VALUES "
        f"('{CLUSTER}', '123', 0, '2026-11-20 21:04:00+00', '2026-11-20 21:04:10+00', 'preempted', {gpus}, 2, [], 9), "
        f"('{CLUSTER}', '123', 1, '2026-11-20 21:05:08+00', '2026-11-20 {start}+00', 'completed', {gpus}, 2, [], 9)"
    )
    for attempt in (0, 1):
        for machine, count in placed:
            store.execute(
                "INSERT INTO placements (cluster, job, attempt, machine, gpus, source, estimated) "
                "VALUES (?, ?, ?, ?, ?, 9, true)",
                [CLUSTER, "123", attempt, machine, count],
            )


def placements(store: Store) -> list[tuple[Any, ...]]:
    return store.frame(
        "SELECT attempt, machine, gpus, gpu_indices, estimated, source FROM placements ORDER BY attempt, machine"
    ).rows()


UNTOUCHED = [(0, "gpu007", 3.0, None, True, 9), (0, "gpu008", 3.0, None, True, 9)]
EXACT = [(1, "gpu007", 4.0, [0, 1, 2, 3], False, 9), (1, "gpu008", 2.0, [0, 2], False, 9)]
EVEN = (("gpu007", 3.0), ("gpu008", 3.0))


@pytest.mark.parametrize("jobs_first", [True, False])
def test_estimates_of_that_attempt_alone_are_replaced(jobs_first: bool, store: Store) -> None:
    if jobs_first:
        estimates(store, *EVEN)
    sink = load(FORMAT, DETAIL, store, **PLACE)
    if not jobs_first:
        estimates(store, *EVEN)
        reconcile(sink)
    assert placements(store) == UNTOUCHED + EXACT
    assert store.frame("SELECT job, field, source FROM field_sources").rows() == [("123", "placements", 1)]
    reconcile(sink)
    assert placements(store) == UNTOUCHED + EXACT
    assert store.value("SELECT count(*) FROM field_sources") == 1


def test_a_start_that_was_reset_is_found_by_its_submission(store: Store) -> None:
    estimates(store, *EVEN, start="21:06:20")
    load(FORMAT, DETAIL, store, **PLACE)
    assert placements(store) == UNTOUCHED + EXACT


def test_inconsistent_placements_remain_estimates(store: Store) -> None:
    estimates(store, *EVEN, gpus=8)
    load(FORMAT, DETAIL, store, **PLACE)
    assert all(row[4] for row in placements(store))


def test_other_machines_stay_an_estimate(store: Store) -> None:
    estimates(store, ("gpu001", 3.0), ("gpu008", 3.0))
    load(FORMAT, DETAIL, store, **PLACE)
    assert all(row[4] for row in placements(store))


def test_two_records_of_one_attempt_that_differ_stay_an_estimate(store: Store) -> None:
    estimates(store, *EVEN)
    load(FORMAT, DETAIL + DETAIL.replace("IDX:0-3", "IDX:4-7"), store, **PLACE)
    assert all(row[4] for row in placements(store))


def test_the_newest_source_counts(store: Store) -> None:
    estimates(store, *EVEN)
    load(FORMAT, DETAIL.replace("IDX:0-3", "IDX:4-7"), store, **PLACE, source=1)
    load(FORMAT, DETAIL, store, **PLACE, source=2)
    assert [row[4] for row in placements(store)] == [True, True, False, False]


def test_an_attempt_without_any_placement_gets_them(store: Store) -> None:
    estimates(store)
    load(FORMAT, DETAIL, store, **PLACE)
    assert placements(store) == EXACT


def test_the_real_details() -> None:
    detail = loaded(gzip.decompress(real("22.05.8", "scontrol_job_detail.txt.gz").read_bytes()))
    assert (detail.rows_in, detail.rejects) == (289, [])
    assert [row[1:] for row in exact_rows(detail) if row[0] == "123"] == [
        ("gpu007", 4.0, [0, 1, 2, 3]),
        ("gpu008", 2.0, [0, 1]),
    ]
    assert all(machine is None or len(indices) == gpus for _, machine, gpus, indices in exact_rows(detail))
    every = loaded(gzip.decompress(real("22.05.8", "scontrol_job_oneline.txt.gz").read_bytes()))
    # two jobs have a line end in their names
    assert (every.rows_in, every.rejects) == (461, [])


BEGUN = (
    "JobId=9 JobName=x UserId=a(1) GroupId=a(1) MCS_label=N/A JobState={} RunTime={} TimeLimit={} "
    "SubmitTime=2026-10-25T00:10:00 StartTime={} EndTime={} Partition=gpu"
)


@pytest.mark.parametrize(
    ("state", "run", "limit", "start", "end", "utc"),
    [
        # summer time ends at 03:00 of 25 October; the hour from 02:00 is shown twice
        ("RUNNING", "00:05:00", "02:00:00", "02:10:00", "03:10:00", "00:10"),
        ("RUNNING", "00:05:00", "01:00:00", "02:10:00", "03:10:00", "01:10"),
        ("COMPLETED", "00:20:00", "01:00:00", "02:50:00", "02:10:00", "00:50"),
        ("COMPLETED", "01:00:00", "03:00:00", "02:10:00", "03:10:00", "01:10"),
        # neither says which one it is: the first
        ("RUNNING", "00:05:00", "UNLIMITED", "02:10:00", "Unknown", "00:10"),
    ],
)
def test_the_two_passes_of_a_repeated_hour_are_distinguished(
    state: str, run: str, limit: str, start: str, end: str, utc: str
) -> None:
    at = [text if text == "Unknown" else f"2026-10-25T{text}" for text in (start, end)]
    detail = read_detail(BEGUN.format(state, run, limit, *at), LocalClock("Europe/Berlin"))
    assert detail.start is not None
    assert datetime.fromtimestamp(detail.start, UTC).strftime("%H:%M") == utc
