"""What Slurm prints seldom: sizes that change, copies in a federation, hours shown twice, torn lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.errors import UsageError
from gpuctl.ingest.formats.slurm_sacct import sniff
from gpuctl.ingest.pipeline.load import ingest as ingest_paths
from gpuctl.ingest.pipeline.registry import formats_for
from gpuctl.ingest.slurm.layout import delimiter_of, is_headless_record
from gpuctl.slurm.gres import read_gres
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.sacct_records import ingest
from tests.slurm_loading import rows

if TYPE_CHECKING:
    from pathlib import Path

SHRUNK = (
    {"State": "RESIZING", "Start": "2026-11-20T10:00:10", "End": "2026-11-20T10:30:10", "Elapsed": "00:30:00",
     "AllocTRES": "gres/gpu=8", "NodeList": "gpu[001-002]", "NNodes": "2"},
    {"Submit": "2026-11-20T10:30:10", "Eligible": "2026-11-20T10:30:10", "Start": "2026-11-20T10:30:10",
     "End": "2026-11-20T11:30:10", "Elapsed": "01:00:00", "AllocTRES": "gres/gpu=4"},
)  # fmt: skip


def _table(store: Store, name: str, **wanted: str) -> dict[str, Any]:
    if not store.frame("FROM clusters").height:
        store.execute(
            "INSERT INTO clusters (cluster, source_format, timezone, clock) VALUES ('lab', 'slurm-sacct', 'UTC', 'utc')"
        )
    analysis = analyze(store, Options(tables=(name,)))
    [row] = [
        row
        for row in table_of(analysis, name).frame.iter_rows(named=True)
        if all(row[column] == value for column, value in wanted.items())
    ]
    return row


@pytest.mark.parametrize("order", [1, -1])
def test_a_job_that_shrinks_loses_no_gpu_hour_and_is_no_retry(store: Store, order: int) -> None:
    ingest(store, *SHRUNK[::order])
    lost = _table(store, "gpu_hours_lost", size_bucket="all")
    assert (lost["gpu_hours"], lost["succeeded_h"], lost["retried_h"], lost["lost_pct"]) == (8, 8, 0, 0)
    sizes = _table(store, "attempts_by_size", size_bucket="all")
    assert (sizes["jobs"], sizes["attempts"], sizes["retries_mean"], sizes["retried_pct"]) == (1, 2, 0, 0)
    retries = _table(store, "retry_by_size", size_bucket="all")
    assert (retries["retried_jobs"], retries["retry_gpu_hours"]) == (0, 0)


def test_a_job_that_shrinks_and_then_loses_its_node_loses_all_of_that_try(store: Store) -> None:
    failed = {**SHRUNK[1], "State": "NODE_FAIL"}
    again = {"Submit": "2026-11-20T12:00:00", "Eligible": "2026-11-20T12:00:00", "Start": "2026-11-20T12:00:00",
             "End": "2026-11-20T13:00:00", "AllocTRES": "gres/gpu=4"}  # fmt: skip
    ingest(store, SHRUNK[0], failed, again)
    lost = _table(store, "gpu_hours_lost", size_bucket="all")
    assert (lost["gpu_hours"], lost["succeeded_h"], lost["retried_h"]) == (12, 4, 8)


def test_a_record_of_a_resize_alone_does_not_state_how_the_job_ended(store: Store) -> None:
    ingest(store, SHRUNK[0])
    assert [row["state"] for row in rows(store, "jobs")] == ["unknown"]


def test_copies_of_a_federated_job_that_another_cluster_ran_are_no_jobs(store: Store) -> None:
    copy = {"State": "REVOKED", "AllocTRES": "", "NodeList": "None assigned", "Elapsed": "00:00:00",
            "End": "2026-11-20T10:01:00"}  # fmt: skip
    ran_here = {"JobIDRaw": "103", "JobID": "103", "State": "REVOKED"}
    sink = ingest(
        store, {}, {**copy, "JobIDRaw": "101", "JobID": "101"}, {**copy, "JobIDRaw": "102", "JobID": "102"}, ran_here
    )
    assert (sink.rows_in, sink.rows_loaded) == (4, 4)
    assert [(row["job"], row["state"]) for row in rows(store, "jobs")] == [("100", "completed"), ("103", "killed")]


def test_a_pending_copy_is_forgotten_when_another_cluster_runs_the_job(tmp_path: Path) -> None:
    head = "JobIDRaw|State|Submit|Start|End|NodeList\n"
    (tmp_path / "1").write_text(head + "7|PENDING|2026-11-20T10:00:00|Unknown|Unknown|None assigned\n")
    (tmp_path / "2").write_text(
        head + "7|REVOKED|2026-11-20T10:00:00|2026-11-20T10:05:00|2026-11-20T10:05:00|None assigned\n"
    )
    for name in ("1", "2"):
        ingest_paths([tmp_path / name], tmp_path / "s.duckdb", cluster="lab", log_format="slurm-sacct")
    with Store(tmp_path / "s.duckdb") as store:
        assert rows(store, "jobs") == []


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "expected"),
    [
        # summer time ends at 03:00 of 25 October; the hour from 02:00 is shown twice
        ("01:30", "02:30", "02:00:00", ("2026-10-24 23:30:00", "2026-10-25 01:30:00")),
        ("01:30", "02:30", "01:00:00", ("2026-10-24 23:30:00", "2026-10-25 00:30:00")),
        ("02:10", "03:10", "01:00:00", ("2026-10-25 01:10:00", "2026-10-25 02:10:00")),
        ("02:10", "03:10", "02:00:00", ("2026-10-25 00:10:00", "2026-10-25 02:10:00")),
        ("02:50", "02:10", "00:20:00", ("2026-10-25 00:50:00", "2026-10-25 01:10:00")),
    ],
)
def test_elapsed_distinguishes_the_two_passes_of_a_repeated_hour(
    store: Store, start: str, end: str, elapsed: str, expected: tuple[str, str]
) -> None:
    at = "2026-10-25T{}:00".format
    ingest(
        store, {"Submit": at("01:00"), "Eligible": at("01:00"), "Start": at(start), "End": at(end), "Elapsed": elapsed},
        timezone="Europe/Berlin",
    )  # fmt: skip
    [row] = rows(store, "attempts")
    assert ((row["start_ts"], row["end_ts"]), row["quirks"]) == (expected, [])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Restarts", str(2**31)), ("Restarts", str(2**63 - 1)), ("ExitCode", "99999:0"), ("NNodes", str(2**31)),
        ("NCPUS", str(2**40)), ("TimelimitRaw", str(2**63 - 1)), ("Priority", str(2**64)),
        ("Timelimit", "9999999-00:00:00"),
    ],
)  # fmt: skip
def test_a_number_out_of_range_costs_at_most_its_own_record(store: Store, field: str, value: str) -> None:
    sink = ingest(store, {}, {"JobIDRaw": "101", "JobID": "101", field: value})
    assert sink.rows_in == sink.rows_loaded + len(sink.rejects) == 2
    assert "100" in {row["job"] for row in rows(store, "jobs")}
    assert all("out of range" in reason for _, reason, _ in sink.rejects)
    assert all((row["time_limit_s"] or 0) >= 0 for row in rows(store, "jobs"))


def test_the_zero_of_slurm_s_clock_is_no_time_and_other_early_years_are_out_of_range(store: Store) -> None:
    sink = ingest(
        store,
        {"Eligible": "1970-01-01T01:00:00"},
        {"JobIDRaw": "101", "JobID": "101", "Eligible": "1969-12-31T19:00:00"},
        {"JobIDRaw": "102", "JobID": "102", "Eligible": "1970-06-01T00:00:00"},
    )
    assert [reason.partition(":")[0] for _, reason, _ in sink.rejects] == ["Eligible is not a time of 1971 to 2199"]
    assert [row["eligible_ts"] for row in rows(store, "jobs")] == [None, None]


@pytest.mark.parametrize("key", ["submit_time", "start_time"])
@pytest.mark.parametrize("time", [2**63, "1e308", 10**40])
def test_a_time_of_squeue_out_of_range_is_rejected_with_its_job(tmp_path: Path, key: str, time: object) -> None:
    sound = {"job_id": 1, "job_state": ["RUNNING"], "submit_time": 1793610000, "start_time": 1793610100,
             "gres_detail": ["gpu:2(IDX:0-1)"], "nodes": "n1", "state_reason": "None"}  # fmt: skip
    text = json.dumps(
        {"meta": {"Slurm": {}}, "jobs": [sound, {**sound, "job_id": 2, key: "TIME"}], "last_update": 1793610200}
    )
    (tmp_path / "squeue.json").write_text(text.replace('"TIME"', str(time)))
    report = ingest_paths([tmp_path / "squeue.json"], tmp_path / "s.duckdb", cluster="lab")
    assert [(file.rows_in, file.rows_loaded, file.rows_rejected) for file in report.sources] == [(2, 1, 1)]


def test_two_events_on_one_line_are_rejected_and_not_merged(tmp_path: Path) -> None:
    row = "lab|n{}|2026-11-20T21:04:24|2026-11-20T21:04:37|DOWN|{}|root(0)"
    lines = [row.format(1, "cold"), row.format(2, "ECC | row remap") + row.format(3, "cold"), row.format(4, "cold")]
    text = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n" + "\n".join(lines) + "\n"
    (tmp_path / "events.txt").write_text(text)
    report = ingest_paths([tmp_path / "events.txt"], tmp_path / "s.duckdb", cluster="lab")
    assert [(file.rows_in, file.rows_loaded, file.rows_rejected) for file in report.sources] == [(3, 2, 1)]
    with Store(tmp_path / "s.duckdb") as store:
        assert store.frame("SELECT machine FROM machine_events ORDER BY ALL")["machine"].to_list() == ["n1", "n4"]


@pytest.mark.parametrize(
    "cpus", ["CPUAlloc=15 CPUTot=32", "CPUAlloc=15 CPUErr=0 CPUTot=32", "CPUAlloc=15 CPUEfctv=32 CPUTot=32"]
)
def test_nodes_of_every_release_are_recognised(tmp_path: Path, cpus: str) -> None:
    text = f"NodeName=n09 Arch=x86_64 CoresPerSocket=16\n   {cpus} CPULoad=15.00\n   Gres=gpu:tesla:4\n   State=MIXED\n"
    (tmp_path / "nodes").write_text(text)
    ingest_paths([tmp_path / "nodes"], tmp_path / "s.duckdb", cluster="lab")
    with Store(tmp_path / "s.duckdb") as store:
        assert store.frame("SELECT machine, gpus FROM machines").rows() == [("n09", 4)]


def test_a_gpu_without_a_type_may_be_printed_with_null_for_it() -> None:
    assert read_gres("gpu:(null):3(IDX:0-1,3)") == (3, None, (0, 1, 3))


# ---- text without a header

ROWS = "7~ada~COMPLETED~2026-11-20T10:00:00~2026-11-20T10:01:00~2026-11-20T11:01:00~gres/gpu=2\n"
COLUMNS = "JobIDRaw,User,State,Submit,Start,End,AllocTRES"


@pytest.mark.parametrize(("given", "between"), [("~", "~"), (r"\x1f", "\x1f"), (r"\t", "\t"), ("||", "||"), ("@", "@")])
def test_text_without_a_header_is_read_with_the_delimiter_that_is_given(
    tmp_path: Path, given: str, between: str
) -> None:
    (tmp_path / "h.txt").write_text(ROWS.replace("~", between))
    known = formats_for(COLUMNS, delimiter=given)
    report = ingest_paths([tmp_path / "h.txt"], tmp_path / "s.duckdb", cluster="lab", formats=known)
    assert [file.rows_loaded for file in report.sources] == [1]
    with Store(tmp_path / "s.duckdb") as store:
        assert [(row["job"], row["user"], row["gpus"]) for row in rows(store, "jobs")] == [("7", "ada", 2.0)]


def test_a_delimiter_needs_columns_and_stands_in_no_word() -> None:
    with pytest.raises(UsageError, match="--delimiter is for sacct text without a header"):
        formats_for(None, delimiter="~")
    for text in ("", "a", "-", "\n", "~" * 9):
        with pytest.raises(UsageError, match="expected 1 to 8 characters"):
            delimiter_of(text)


def test_records_without_a_header_are_recognised_by_their_order_or_their_cells() -> None:
    cells = [
        "1",
        "1",
        "c",
        "gpu",
        "normal",
        "a",
        "g",
        "100",
        "ada",
        "1000",
        "2026-11-20T10:00:00",
        "2026-11-20T10:00:00",
        "2026-11-20T10:01:00",
        "2026-11-20T11:01:00",
        "01:00:00",
        "0:0",
        "COMPLETED",
        "1",
        "8",
        "8",
        "64G",
        "gres/gpu=2",
        "gres/gpu=2",
        "02:00:00",
        "n1",
        "train",
    ]
    swapped = [*cells[:16], cells[17], cells[16], *cells[18:]]
    found = [sniff("", ("|".join(some) + "\n").encode()) for some in (cells, swapped, cells[:10], cells[10:])]
    assert found == ["records in the order of Open XDMoD", "records of sacct without a header", None, None]
    assert is_headless_record(b"7,COMPLETED,2026-11-20T10:00:00,2026-11-20T10:01:00,ada")
    for line in (
        b"7,COMPLETED,2026-11-20T10:00:00,ada,x",
        b"7,DONE,2026-11-20T10:00:00,2026-11-20T10:01:00,ada",
        b"seven,COMPLETED,2026-11-20T10:00:00,2026-11-20T10:01:00,ada",
        b"7,COMPLETED,1795000000,1795000060",
    ):
        assert not is_headless_record(line)
