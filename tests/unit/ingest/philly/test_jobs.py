from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.core.job_rows import DUPLICATE_JOB
from gpuctl.ingest.formats import philly_jobs, philly_machines
from tests.philly_log import CLUSTER, RecordingSink, attempt, job, load, load_into, log, new_store

if TYPE_CHECKING:
    from gpuctl.store.database import Store

FORMAT = philly_jobs.FORMAT
REAL = Path(__file__).resolve().parents[5] / "shared" / "data" / "philly"
ROWS, NO_SUBMISSION = REAL / "real_job_log_rows.json", REAL / "real_job_log_row_partial_issue8.json"
SUBMIT, START, END = "2017-10-07 01:00:00", "2017-10-07 01:00:30", "2017-10-07 02:00:30"
GANG = ("m1", [0, 1])
TIME_FAULT = 'is neither YYYY-MM-DD HH:MM:SS nor "None", "" or null'


def one(store: Store, *attempts: dict[str, Any], **other: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Load one job; its row and those of its attempts."""
    sink = load(FORMAT, log(job("a", other.pop("submit", SUBMIT), *attempts, **other)), store)
    assert sink.rejects == []
    return sink.rows("jobs")[0], sink.rows("attempts", "attempt")


def test_every_column_of_a_plain_job(store: Store) -> None:
    sink = load(FORMAT, log(job("a", SUBMIT, attempt(START, END, ("m2", [3, 1]), ("m1", [0])))), store)
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (1, 1, [])

    def filled(table: str) -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if value is not None} for row in sink.rows(table)]

    ids = {"cluster": CLUSTER, "job": "a", "source": 1}
    times = {"start_ts": "2017-10-07 08:00:30", "end_ts": "2017-10-07 09:00:30"}
    assert filled("jobs") == [
        ids
        | times
        | {
            "queue": "aa11",
            "user": "u1",
            "submit_ts": "2017-10-07 08:00:00",
            "state": "completed",
            "source_state": "Pass",
        }
        | {"gpus": 3.0, "nodes": 2, "attempts": 1, "quirks": []}
        | {"wait_s": 30.0, "run_span_s": 3600.0, "run_sum_s": 3600.0, "run_last_s": 3600.0}
    ]
    assert filled("attempts") == [
        ids
        | times
        | {"attempt": 0, "queued_ts": "2017-10-07 08:00:00", "released_ts": "2017-10-07 09:00:30", "state": "completed"}
        | {"gpus": 3.0, "servers": 2, "wait_s": 30.0, "run_s": 3600.0, "quirks": []}
    ]
    assert filled("placements") == [
        ids | {"attempt": 0, "machine": "m1", "gpus": 1.0, "gpu_indices": [0]},
        ids | {"attempt": 0, "machine": "m2", "gpus": 2.0, "gpu_indices": [1, 3]},
    ]
    assert filled("queues") == [{"cluster": CLUSTER, "queue": "aa11"}]
    assert filled("machines") == [
        {"cluster": CLUSTER, "machine": "m1", "gpus_observed": 1, "gpus": 1},
        {"cluster": CLUSTER, "machine": "m2", "gpus_observed": 4, "gpus": 4},
    ]


@pytest.mark.parametrize(
    ("word", "state"),
    [("Pass", "completed"), ("Killed", "killed"), ("Failed", "failed"), ("Odd", "unknown"), ("pass", "unknown")],
)
def test_status_words(store: Store, word: str, state: str) -> None:
    row, attempts = one(store, attempt(START, END, GANG), status=word)
    assert (row["state"], row["source_state"], attempts[0]["state"]) == (state, word, state)


def test_a_missing_status_and_names_are_unknown(store: Store) -> None:
    row, _ = one(store, status=None, vc="", user=None)
    assert (row["state"], row["source_state"], row["queue"], row["user"]) == ("unknown", None, None, None)
    assert store.value("SELECT count(*) FROM queues") == 0


def test_attempts_before_the_last_have_failed(store: Store) -> None:
    row, attempts = one(store, attempt(START, END, GANG), attempt(END, "2017-10-07 03:00:00", GANG), status="Killed")
    assert [a["state"] for a in attempts] == ["failed", "killed"]
    assert row["state"] == "killed"


@pytest.mark.parametrize("missing", ["None", "", None])
def test_a_last_attempt_without_an_end_runs(store: Store, missing: str | None) -> None:
    row, attempts = one(store, attempt(START, missing, GANG))
    assert (attempts[0]["state"], attempts[0]["end_ts"], attempts[0]["released_ts"]) == ("running", None, None)
    assert (row["state"], row["end_ts"], row["run_span_s"], row["quirks"]) == (
        "completed",
        None,
        None,
        ["missing_time"],
    )


def test_an_attempt_without_any_time_does_not_run(store: Store) -> None:
    row, attempts = one(store, attempt("None", None, GANG))
    assert attempts[0]["state"] == "completed"
    assert attempts[0]["quirks"] == ["no_start", "no_end"]
    assert (row["gpus"], row["start_ts"], row["wait_s"]) == (2.0, None, None)


def test_a_job_without_attempts(store: Store) -> None:
    row, attempts = one(store, status="Killed")
    assert attempts == []
    assert (row["gpus"], row["nodes"], row["attempts"], row["wait_s"]) == (None, None, 0, None)
    assert row["quirks"] == ["no_attempts"]


def test_a_job_without_a_submission_time_is_stored(store: Store) -> None:
    whole = job("a", None, attempt(START, END, GANG))
    del whole["submitted_time"], whole["user"]
    sink = load(FORMAT, log(whole), store)
    (row,) = sink.rows("jobs")
    assert (row["submit_ts"], row["wait_s"], row["run_sum_s"], row["quirks"]) == (None, None, 3600.0, ["missing_time"])


def test_a_gang_of_another_size_in_a_later_attempt(store: Store) -> None:
    row, attempts = one(store, attempt(START, END, GANG), attempt(END, "2017-10-07 03:00:00", ("m9", [7])))
    assert (row["quirks"], row["gpus"], row["nodes"]) == (["gpus_changed"], 2.0, 1)
    assert [a["gpus"] for a in attempts] == [2.0, 1.0]


def test_a_gang_of_the_same_size_elsewhere_is_no_quirk(store: Store) -> None:
    row, attempts = one(store, attempt(START, END, GANG), attempt(END, "2017-10-07 03:00:00", ("m9", [0]), ("m8", [5])))
    assert (row["quirks"], row["nodes"], [a["servers"] for a in attempts]) == ([], 1, [1, 2])


def test_a_machine_that_is_listed_twice_is_one(store: Store) -> None:
    row, attempts = one(store, attempt(START, END, ("m1", [4]), ("m2", [0]), ("m1", [2, 3])))
    assert (row["nodes"], row["gpus"], attempts[0]["servers"]) == (2, 4.0, 2)
    rows = store.execute("SELECT machine, gpus, gpu_indices FROM placements ORDER BY ALL").fetchall()
    assert rows == [("m1", 3.0, [2, 3, 4]), ("m2", 1.0, [0])]


def test_an_attempt_on_no_machine_is_stored(store: Store) -> None:
    row, attempts = one(store, attempt(START, END))
    assert (row["gpus"], row["nodes"], attempts[0]["gpus"], attempts[0]["servers"]) == (0.0, 0, 0.0, 0)


def test_the_doubled_hour_is_marked_and_stored_as_its_earlier_reading(store: Store) -> None:
    row, attempts = one(
        store, attempt("2017-11-05 01:10:00", "2017-11-05 02:10:00", GANG), submit="2017-11-05 00:10:00"
    )
    assert (row["quirks"], attempts[0]["quirks"]) == (["ambiguous_hour"], ["ambiguous_hour"])
    assert (row["start_ts"], row["end_ts"]) == ("2017-11-05 08:10:00", "2017-11-05 10:10:00")
    assert (row["wait_s"], row["run_span_s"]) == (3600.0, 3600.0)


def test_stamps_are_of_the_sinks_zone(store: Store) -> None:
    sink = load(FORMAT, log(job("a", SUBMIT)), store, timezone="Europe/Berlin")
    assert sink.rows("jobs")[0]["submit_ts"] == "2017-10-06 23:00:00"


def changed(**other: Any) -> dict[str, Any]:
    return job("bad", SUBMIT, attempt(START, END, GANG)) | other


def in_attempt(**other: Any) -> dict[str, Any]:
    return job("bad", SUBMIT, attempt(START, END, GANG) | other)


def in_detail(**other: Any) -> dict[str, Any]:
    return in_attempt(detail=[{"ip": "m1", "gpus": ["gpu0"], **other}])


NO_OBJECT = "detail of an attempt holds something that is not an object with ip and gpus"
NO_MACHINE = "no node name (ip) in detail of an attempt"
BAD = [
    (5, "not an object"),
    (None, "not an object"),
    ("text", "not an object"),
    ([1, 2], "not an object"),
    ({}, "no jobid"),
    (changed(jobid=None), "no jobid"),
    (changed(jobid=""), "no jobid"),
    (changed(jobid=7), "jobid is not text"),
    (changed(jobid="a\u0000b"), "jobid contains unprintable characters"),
    (changed(jobid="\ud800"), "jobid contains unprintable characters"),
    (changed(jobid="a\nb"), "jobid contains unprintable characters"),
    (changed(status=["Pass"]), "status is not text"),
    (changed(vc={}), "vc is not text"),
    (changed(vc="\x1b[31m"), "vc contains unprintable characters"),
    (changed(user=3), "user is not text"),
    (changed(submitted_time="yesterday"), f"submitted_time {TIME_FAULT}"),
    (changed(submitted_time=1507000000), f"submitted_time {TIME_FAULT}"),
    (changed(submitted_time="2017-10-07T01:00:00"), f"submitted_time {TIME_FAULT}"),
    (changed(submitted_time="none"), f"submitted_time {TIME_FAULT}"),
    (changed(submitted_time="0001-01-01 00:00:00"), f"submitted_time {TIME_FAULT}"),
    (changed(submitted_time=[]), f"submitted_time {TIME_FAULT}"),
    (changed(attempts=None), "attempts is not a list"),
    (changed(attempts={}), "attempts is not a list"),
    (changed(attempts=[None]), "an attempt is not an object"),
    (in_attempt(start_time="2017-02-29 00:00:00"), f"start_time {TIME_FAULT}"),
    (in_attempt(end_time="2017-10-07 25:00:00"), f"end_time {TIME_FAULT}"),
    (in_attempt(end_time=False), f"end_time {TIME_FAULT}"),
    (in_attempt(detail=None), "detail of an attempt is not a list"),
    (in_attempt(detail=["m1"]), NO_OBJECT),
    (in_detail(ip=""), NO_MACHINE),
    (in_detail(ip="  "), NO_MACHINE),
    (in_detail(ip=None), NO_MACHINE),
    (in_detail(ip=1), "ip is not text"),
    (in_detail(gpus=None), "gpus of a node is not a list"),
    (in_detail(gpus="gpu0"), "gpus of a node is not a list"),
    (in_detail(gpus=["GPU0"]), "GPU name is not gpuN"),
    (in_detail(gpus=["gpu-1"]), "GPU name is not gpuN"),
    (in_detail(gpus=["gpu"]), "GPU name is not gpuN"),
    (in_detail(gpus=[0]), "GPU name is not gpuN"),
    (in_detail(gpus=[["gpu0"]]), "GPU name is not gpuN"),
    (in_detail(gpus=["gpu٣"]), "GPU name is not gpuN"),
    (in_detail(gpus=["gpu1024"]), "GPU index is over 1023"),
    (in_detail(gpus=["gpu99999999999999999999"]), "GPU index is over 1023"),
    (in_detail(gpus=["gpu0", "gpu1", "gpu0"]), "a GPU is listed twice in one attempt"),
    (in_attempt(detail=[{"ip": "m1", "gpus": ["gpu0"]}] * 2), "a GPU is listed twice in one attempt"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD)
def test_an_invalid_job_is_rejected_with_its_line_and_reason(bad: Any, reason: str) -> None:
    lines = [json.dumps(job("first", SUBMIT)), json.dumps(bad), json.dumps(job("last", SUBMIT))]
    sink = RecordingSink()
    load_into(sink, FORMAT, "[\n" + ",\n".join(lines) + "\n]")
    assert sink.rejects == [(3, reason, lines[1].encode()[:500])]
    assert sink.column("jobs", "job") == ["first", "last"]
    assert set(sink.tables) == {"jobs", "queues"}


def test_the_highest_gpu_index_is_stored(store: Store) -> None:
    load(FORMAT, log(job("a", SUBMIT, attempt(START, END, ("m1", [1023])))), store)
    assert store.value("SELECT gpus_observed FROM machines") == 1024


def test_a_job_that_is_there_already_is_rejected(store: Store) -> None:
    first, second = job("a", SUBMIT, attempt(START, END, GANG)), job("a", None, attempt(START, None, ("m7", [0])))
    sink = load(FORMAT, log(first, second, job("b", SUBMIT)), store)
    assert sink.reasons == [DUPLICATE_JOB]
    again = load(FORMAT, log(job("c", SUBMIT, attempt(START, END, ("m9", [0])), vc="new"), second), store)
    assert (again.reasons, again.rows_loaded) == ([DUPLICATE_JOB], 1)
    assert [row["job"] for row in again.rows("jobs")] == ["a", "b", "c"]
    assert {row["machine"] for row in again.rows("placements")} == {"m1", "m9"}
    assert {row["machine"] for row in again.rows("machines")} == {"m1", "m9"}
    elsewhere = load(FORMAT, log(second), store, cluster="other")
    assert elsewhere.rejects == []


def test_a_job_that_is_there_already_with_the_same_values_is_no_reject(store: Store) -> None:
    text = log(job("a", SUBMIT, attempt(START, END, GANG)), job("a", SUBMIT, attempt(START, END, GANG)))
    counts = [
        (sink.rows_loaded, sink.rows_already_stored, sink.rejects)
        for sink in (load(FORMAT, text, store), load(FORMAT, text, store))
    ]
    assert counts == [(1, 1, []), (0, 2, [])]
    assert store.value("SELECT count(*) FROM attempts") == 1


def test_batches_make_no_difference(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job(f"j{i % 90}", SUBMIT, attempt(START, END, (f"m{i % 7}", [i % 8])), vc=f"q{i % 5}") for i in range(100)]
    whole = load(FORMAT, log(*jobs), store)
    monkeypatch.setattr(philly_jobs, "_BATCH_JOBS", 7)
    (tmp_path / "other").mkdir()
    with new_store(tmp_path / "other") as other:
        small = load(FORMAT, log(*jobs), other)
        for table in ("jobs", "attempts", "placements", "machines", "queues"):
            assert small.rows(table) == whole.rows(table)
    assert small.rejects == whole.rejects == []
    assert small.rows_already_stored == whole.rows_already_stored == 10


@pytest.mark.parametrize("jobs_first", [True, False])
def test_label_and_use_of_a_machine_meet_in_either_order(store: Store, jobs_first: bool) -> None:
    listed = "machineId, number of GPUs, single GPU mem\nm1,2, 12GB\nm2,8, 24GB\nm3,8, 24GB\n"
    jobs = log(job("a", SUBMIT, attempt(START, END, ("m1", [0, 7]), ("m2", [3]), ("m9", [1]))))
    steps = [(FORMAT, jobs), (philly_machines.FORMAT, listed)]
    for fmt, data in steps if jobs_first else steps[::-1]:
        sink = load(fmt, data, store)
        assert sink.rejects == []
    later = load(FORMAT, log(job("b", SUBMIT, attempt(START, END, ("m2", [1]), ("m3", [2])))), store)
    names = ("machine", "gpus_labelled", "gpus_observed", "gpus", "gpu_mem_mb")
    assert [tuple(row[n] for n in names) for row in later.rows("machines")] == [
        ("m1", 2, 8, 8, 12288),
        ("m2", 8, 4, 8, 24576),
        ("m3", 8, 3, 8, 24576),
        ("m9", None, 2, 2, None),
    ]


def test_text_from_logs_is_stored_as_it_is(store: Store) -> None:
    name = "[red]'; DROP TABLE jobs; -- é <b> \\ \""
    row, _ = one(store, attempt(START, END, (name, [0])), jobid=name, vc=name, user=name)
    assert (row["job"], row["queue"], row["user"]) == (name, name, name)
    assert store.value("SELECT machine FROM machines") == name


def test_objects_that_follow_one_another_with_crlf_and_a_bom(store: Store) -> None:
    text = "\ufeff" + "\r\n".join(json.dumps(job(name, SUBMIT)) for name in "abc")
    assert load(FORMAT, text, store).rows_loaded == 3


def test_an_empty_array_is_a_log_of_no_jobs(store: Store) -> None:
    sink = load(FORMAT, "[]", store)
    assert (sink.rows_in, sink.rows("jobs"), sink.rows("machines")) == (0, [], [])


def test_a_truncated_log_loads_what_is_whole(store: Store) -> None:
    text = log(*(job(f"j{i}", SUBMIT, attempt(START, END, GANG)) for i in range(20)))
    sink = load(FORMAT, text[: len(text) * 3 // 4], store)
    assert sink.rows_loaded == 15
    assert sink.reasons == ["cut off: the file ends inside this object"]


@pytest.mark.parametrize("spoil", ["", "\x00", "}", '""', '"ip": }', "\xff", "{{{{"])
def test_damage_inside_an_attempt_costs_one_job(spoil: str) -> None:
    jobs = [job(f"j{i}", SUBMIT, attempt(START, END, GANG), attempt(END, None, GANG)) for i in range(5)]
    text = log(*jobs)
    at = text.index('"ip"', text.index('"j2"'))
    sink = RecordingSink()
    load_into(sink, FORMAT, (text[:at] + spoil + text[at + 1 :]).encode("latin-1"))
    assert sink.column("jobs", "job") == ["j0", "j1", "j3", "j4"]
    assert sink.reasons == ["not valid JSON"]


@pytest.mark.parametrize(
    ("name", "head", "known"),
    [
        ("x", b'[{"status": "Pass", "jobid": "a", "attempts": []', True),
        ("x", b'\xef\xbb\xbf \n[\n{"jobid": "a", "submitted_time": "None"', True),
        ("x", b'{"jobid": "a", "attempts": [], "submitted_time": "x"}\n', True),
        ("cluster_job_log", b"[]", True),
        ("cluster_job_log", b" [ \n ]\n", True),
        ("other", b"[]", False),
        ("cluster_job_log", b"JobId=1 JobName=x", False),
        ("cluster_job_log", b'[{"id": 1}]', False),
        ("x", b'print("jobid", "attempts")', False),
        ("x", b"", False),
        ("x", b"\x00\xff\xfe" * 1000, False),
        ("x", b"[" * 65536, False),
    ],
)
def test_sniff(name: str, head: bytes, known: bool) -> None:
    assert (FORMAT.sniff(name, head) is not None) == known


@pytest.mark.skipif(not ROWS.is_file(), reason="no rows of the real log beside this checkout")
def test_real_jobs_give_the_figures_of_the_notebook(store: Store) -> None:
    sink = load(FORMAT, ROWS.read_bytes(), store)
    assert sink.rejects == []
    names = ("wait_s", "run_span_s", "run_sum_s", "gpus", "nodes", "quirks")
    got = {row["job"][-5:]: tuple(row[n] for n in names) for row in sink.rows("jobs")}
    assert got == {
        "14199": (30, 193263, 193256, 8, 1, []),
        "10238": (35, 281881, 281881, 8, 2, ["overlap"]),
        "16565": (187, 469, 43, 1, 1, ["missing_time"]),
        "15647": (None, None, None, None, None, ["no_attempts"]),
    }
    minutes = {job: tuple(v and round(v / 60, 4) for v in row[:2]) for job, row in got.items()}
    assert minutes["14199"] == (0.5, 3221.05)
    assert minutes["10238"] == (0.5833, 4698.0167)
    assert minutes["16565"] == (3.1167, 7.8167)
    waits = store.execute("SELECT wait_s FROM attempts WHERE job LIKE '%14199' ORDER BY attempt").fetchall()
    assert waits == [(30.0,), (7.0,)]
    assert store.value("SELECT gpus_observed FROM machines WHERE machine = 'm287'") == 5


@pytest.mark.skipif(not NO_SUBMISSION.is_file(), reason="no rows of the real log beside this checkout")
def test_a_real_job_without_submission_shows_that_a_label_is_wrong(store: Store) -> None:
    load(philly_machines.FORMAT, (REAL / "readme_cluster_machine_list").read_bytes(), store)
    sink = load(FORMAT, NO_SUBMISSION.read_bytes(), store)
    assert (sink.rows_loaded, sink.rejects) == (1, [])
    assert store.execute("SELECT gpus_labelled, gpus_observed, gpus FROM machines ORDER BY machine").fetchall() == [
        (8, None, 8),
        (2, 8, 8),
    ]
