"""slurmctld.log."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.philly_log import load, load_into, new_store
from tests.slurm_site_files import CLUSTER, CTLD, PLACE, Loose, real, site_format

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = site_format("ctld")


def loaded(text: str | bytes, **settings: Any) -> Loose:
    sink = Loose(**settings)
    load_into(sink, FORMAT, text)
    return sink


def clock(time: Any) -> str | None:
    return str(time.strftime("%H:%M:%S.%f")[:-3]) if time else None


def events(sink: Loose) -> list[tuple[str, str, str, str | None, str | None]]:
    rows = sorted(sink.tables.get("job_events", []), key=lambda r: r["ts"])
    return [(r["job"], clock(r["ts"]) or "", r["event"], r.get("other_job"), r.get("machine")) for r in rows]


def test_outcome_of_jobs() -> None:
    sink = loaded(CTLD)
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (18, 18, [])
    assert events(sink) == [
        ("1", "21:04:38.586", "allocated", None, None),
        ("14", "21:04:41.594", "allocated", None, None),
        ("8", "21:04:42.951", "node_fail", None, "gpu005"),
        ("1", "21:04:46.634", "preempted", "41", None),
        ("5", "21:04:46.637", "preempted", None, None),
        ("211", "21:05:58.499", "allocated", None, None),
        ("211", "21:06:24.419", "configured", None, None),
        ("211", "21:06:24.419", "start_reset", None, None),
        ("211", "21:06:29.411", "completed", None, None),
        ("14", "21:06:30.411", "out_of_memory", None, None),
    ]
    since = {r["event"]: clock(r["since_ts"]) for r in sink.tables["job_events"] if r.get("since_ts")}
    assert since == {"configured": "21:05:58.499", "start_reset": "21:05:58.499"}


def test_when_machines_were_away() -> None:
    rows = loaded(CTLD).tables["machine_events"]
    assert [(r["machine"], clock(r["from_ts"]), clock(r["to_ts"]), r["state"], r["reason"]) for r in rows] == [
        ("gpu005", "21:04:43.140", "21:04:44.140", "DOWN", "XID 79: GPU | fallen off"),
        ("gpu006", "21:05:26.198", "21:05:28.411", "DOWN", None),
        ("gpu007", "21:05:26.198", None, "DOWN", None),
    ]


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2026-11-20T21:04:37.750", "02:04:37.750"),
        ("2026-11-20T21:04:37", "02:04:37.000"),
        ("2026-11-20T21:04:37.750+01:00", "20:04:37.750"),
        ("2026-11-20T21:04:37.750Z", "21:04:37.750"),
    ],
)
def test_forms_of_a_time(stamp: str, expected: str) -> None:
    sink = loaded(f"[{stamp}] Requeuing JobId=4\n", timezone="America/New_York")
    assert events(sink) == [("4", expected, "requeued", None, None)]


def test_the_hour_that_the_clock_shows_twice_does_not_go_back() -> None:
    lines = [f"[2026-11-01T01:{m}:00.000] Requeuing JobId={n}\n" for n, m in enumerate((10, 50, 20, 40))]
    sink = loaded("".join(lines), timezone="America/New_York")
    assert [time for _, time, *_ in events(sink)] == ["05:10:00.000", "05:50:00.000", "06:20:00.000", "06:40:00.000"]


WORDS = (
    *(
        "sched: Allocate {} NodeList=n1",
        "backfill: Started {} on n1",
        "sched/backfill: _start_job: Started {} in p on n",
    ),
    *("_job_complete: {} done", "job_complete: {} done now", "_job_complete: {} OOM failure", "Requeuing {}"),
    *(
        "sched: Allocate {} NodeList=",
        "backfill: Started {} in  on n1",
        "_job_complete: {} done.",
        "job_complete: {} don",
    ),
    *("Configuration for {} complete", "Resetting {} start time for node power up", "x_job_complete: {} done"),
    *("sched: Allocate {}  NodeList=n1", "error: sched: Allocate {} NodeList=n1", "backfill: Started {} in p\ton n1"),
)
JOBS = ("JobId=7", "JobID=7", "JobId=07", "JobId=", "JobId=7_1(8)", "JobId=7_*", "JobId=x", "JobId=9" + "0" * 30)


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York", "Australia/Lord_Howe"])
def test_what_the_scanner_reads_itself_is_what_is_read_line_by_line(timezone: str) -> None:
    first = datetime(2026, 11, 1, 0, 30)
    lines = [words.format(job) for words in WORDS for job in JOBS] * 3
    stamps = [(first + timedelta(seconds=31 * n)).isoformat() for n in range(len(lines))]
    plain, other = (
        loaded("".join(f"[{at}{end}] {line}\n" for at, line in zip(stamps, lines, strict=True)), timezone=timezone)
        for end in (".000", ".0000")
    )
    assert sum(r["event"] == "allocated" for r in plain.tables["job_events"]) > 20
    assert events(plain) == events(other)
    assert [r["since_ts"] for r in plain.tables["job_events"] if r["event"] == "configured"] == [
        r["since_ts"] for r in other.tables["job_events"] if r["event"] == "configured"
    ]
    assert (plain.rows_in, plain.rows_loaded, plain.rejects) == (other.rows_in, other.rows_loaded, other.rejects)


def test_lines_without_a_time_are_rejected_and_counted() -> None:
    text = CTLD.replace("\n", "\ncontinued | nowhere\n\n", 1)
    sink = loaded(text)
    assert (sink.rows_in, sink.rows_loaded) == (19, 18)
    assert [(n, raw) for n, _, raw in sink.rejects] == [(2, b"continued | nowhere")]


@pytest.mark.parametrize("bad", ["2026-13-45T21:04:37.750", "0000-00-00T99:99:99"])
def test_impossible_times(bad: str) -> None:
    sink = loaded(f"[{bad}] Requeuing JobId=4\n[{bad}] something else\n")
    assert (sink.rows_in, len(sink.rejects), events(sink)) == (2, 1, [])


def test_absurd_machines_and_long_lines() -> None:
    stamp = "[2026-11-20T21:04:37.750]"
    sink = loaded(f"{stamp} node n[1-99999999999] returned to service\n{stamp} {'x' * (3 << 20)}\n{CTLD}")
    assert sink.rows_in == 20
    assert [n for n, _, _ in sink.rejects] == [1, 2]
    assert len(events(sink)) == 10


class Drops(io.BytesIO):
    """Hands out a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(7, size) if size and size > 0 else size)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_however_the_bytes_come(end: str) -> None:
    text = CTLD.replace("\n", end).encode()
    for data in (text, text.rstrip()):
        sink = Loose()
        FORMAT.load(Drops(data), sink)
        assert (sink.rows_in, sink.rows_loaded) == (18, 18)
        assert events(sink) == events(loaded(CTLD))


ATTEMPT = (
    "INSERT INTO attempt_rows (cluster, job, attempt, queued_ts, start_ts, end_ts, state, gpus, servers, quirks, "
    "source) VALUES ('{cluster}', '{job}', {attempt}, '{queued}', '{start}', '{end}', 'completed', 4, 1, [], 9)"
)


@pytest.mark.parametrize("jobs_first", [True, False])
def test_with_the_attempts_of_accounting(jobs_first: bool, tmp_path: Path) -> None:
    rows = [("211", 0, "21:05:46", "21:06:24", "21:06:29"), ("1", 0, "21:04:37", "21:04:38", "21:04:46")]
    rows.append(("1", 1, "21:04:46", "21:10:38", "21:10:46"))
    inserts = [
        ATTEMPT.format(cluster=CLUSTER, job=j, attempt=n, **dict(zip(("queued", "start", "end"), times, strict=True)))
        for j, n, *clocks in rows
        for times in [[f"2026-11-20 {c}+00" for c in clocks]]
    ]
    with new_store(tmp_path) as store:
        for insert in inserts if jobs_first else []:
            store.execute(insert)
        sink = load(FORMAT, CTLD, store, **PLACE)
        if not jobs_first:
            from gpuctl.ingest.slurm.site.reconcile import reconcile

            for insert in inserts:
                store.execute(insert)
            reconcile(sink)
        found = store.frame(
            "SELECT job, attempt, strftime(allocated_ts, '%H:%M:%S') AS held, preempted_by FROM attempts ORDER BY ALL"
        ).rows()
        assert found == [("1", 0, None, "41"), ("1", 1, None, None), ("211", 0, "21:05:58", None)]


def test_the_real_logs() -> None:
    sink = loaded(real("22.05.8", "slurmctld.log").read_bytes())
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (1890, 1890, [])
    resets = [r for r in sink.tables["job_events"] if r["event"] == "start_reset"]
    held = {r["job"]: (clock(r["since_ts"]), clock(r["ts"])) for r in resets}
    assert held["211"] == ("21:05:58.499", "21:06:24.419")
    assert set(held) == {"123", "211", "298"}
    preempted = {job: other for job, _, event, other, _ in events(sink) if event == "preempted"}
    assert preempted == {"1": "41", "2": "42", "3": "43", "4": None, "5": None}
    assert sum(event == "allocated" for _, _, event, _, _ in events(sink)) == 458


@pytest.mark.parametrize("folder", ["ci-smoke-22.05.8", "ci-smoke-24.11.5"])
def test_the_logs_of_both_versions(folder: str) -> None:
    path = real(folder, "slurmctld.log")
    assert FORMAT.sniff("whatever", path.read_bytes()[: 64 << 10])
    sink = loaded(path.read_bytes())
    assert sink.rejects == []
    assert {"allocated", "completed", "preempted", "requeued", "node_fail"} <= {e for _, _, e, _, _ in events(sink)}
