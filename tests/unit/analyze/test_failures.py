"""The tables of failures, on a store whose answers are worked out on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze import failure_table
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.joblogs.evidence import Facts
from gpuctl.joblogs.table import load
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.sacct_records import text
from tests.unit.analyze.failure_store import SIGNATURES, Site, example

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis


def run(folder: Path, store: Path, **options: Any) -> Analysis:
    table = folder / "own.toml"
    table.write_text(SIGNATURES)
    with Store(store) as opened:
        return analyze(opened, Options(signatures=(table,), **{"sections": ("failures",), **options}))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = tmp_path_factory.mktemp("failures")
    return run(folder, example(folder / "t.duckdb"), reference="atc19")


def rows(found: Analysis, name: str, key: str) -> dict[Any, dict[str, Any]]:
    table = table_of(found, name)
    return {row[key]: row for row in table.frame.to_dicts()}


def test_reasons_are_the_columns_of_table_7(found: Analysis) -> None:
    # minutes to failure: 10 10, 20, 60, 30 30, 40: 200; times GPUs: 10 10, 160, 240, 30 30, 80: 560
    reasons = rows(found, "failure_reasons", "reason")
    assert list(reasons)[-2:] == ["No signature", "all"]
    assert reasons["Syntax error"] == {
        "reason": "Syntax error", "category": "infrastructure+user", "trials": 2, "trials_pct": pytest.approx(200 / 7),
        "jobs": 1, "users": 1, "rtf_p50_min": 10, "rtf_p90_min": 10, "rtf_p95_min": 10,
        "rtf_total_pct": pytest.approx(10), "trials_1": 2, "trials_2_to_4": 0, "trials_over_4": 0,
        "gpu_minutes": pytest.approx(20), "gpu_minutes_pct": pytest.approx(100 * 20 / 560),
        "confidence_mean": pytest.approx(reasons["Syntax error"]["confidence_mean"]), "scheduler_only": 0,
    }  # fmt: skip
    everything = reasons["all"]
    assert (everything["trials"], everything["jobs"], everything["users"]) == (7, 6, 3)
    assert (everything["trials_1"], everything["trials_2_to_4"], everything["trials_over_4"]) == (4, 2, 1)
    assert (everything["rtf_p50_min"], everything["gpu_minutes"]) == (30, pytest.approx(560))
    assert (everything["rtf_total_pct"], everything["gpu_minutes_pct"]) == (pytest.approx(100), pytest.approx(100))
    assert reasons["No signature"]["trials"] == 2
    assert reasons["No signature"]["confidence_mean"] == 0


def test_the_scheduler_has_the_last_word_where_there_is_no_log(found: Analysis) -> None:
    jobs = rows(found, "failures", "job")
    assert (jobs["oom"]["reason"], jobs["oom"]["stream"]) == ("cpu_out_of_memory", "scheduler")
    assert not jobs["oom"]["has_log"]
    xid = jobs["xid"]
    assert (xid["reason"], xid["stream"], xid["line_no"]) == ("gpu_hardware_error", "scheduler", None)
    assert xid["evidence"] == "XID 79: GPU has fallen off the bus (machine m3)"


def test_the_evidence_is_a_line_of_the_log(found: Analysis) -> None:
    gang = rows(found, "failures", "job")["gang"]
    assert (gang["attempt"], gang["stream"], gang["line_no"]) == (0, "stderr", 90)
    assert gang["evidence"] == "RuntimeError: CUDA out of memory. <b>"
    assert (gang["rtf_s"], gang["gpu_hours"], gang["machines"]) == (1200, pytest.approx(8 / 3), ["m2"])


def test_killed_attempts_are_reported_and_not_counted(found: Analysis) -> None:
    table = table_of(found, "failure_reasons")
    assert "7 failed attempts" in table.population
    assert "5 of them have a log" in table.population
    assert "1 attempt ended by a user or an administrator, and 0 whose end is unknown" in table.population


def test_categories(found: Analysis) -> None:
    kinds = rows(found, "failure_categories", "category")
    assert {kind: row["trials"] for kind, row in kinds.items()} == {
        **{"ai_engine": 1, "ai_engine+user": 1, "infrastructure": 1, "infrastructure+user": 2, "not known": 2},
        "all": 7,
    }
    assert kinds["ai_engine"]["gpu_hours_pct"] == pytest.approx(100 * 160 / 560)


def test_retries_by_size(found: Analysis) -> None:
    sizes = rows(found, "retry_by_size", "size_bucket")
    # twice, odd-1, odd-2 failed; killed and fine did not: 3 of 5
    assert (sizes["1"]["jobs"], sizes["1"]["retries_mean"], sizes["1"]["unsuccessful_pct"]) == (5, 0.2, 60)
    assert (sizes["1"]["retried_passed_pct"], sizes["1"]["first_retry_passed_pct"]) == (0, 0)
    assert (sizes["5-8"]["retried_passed_pct"], sizes["5-8"]["first_retry_passed_pct"]) == (100, 100)
    assert sizes["all"]["second_retry_passed_pct"] is None
    assert sizes["all"]["retry_gpu_hours"] == pytest.approx(10 / 60 + 16)
    assert sizes["all"]["retry_failed_gpu_hours"] == pytest.approx(10 / 60)


def test_retries_by_reason(found: Analysis) -> None:
    reasons = rows(found, "retry_reasons", "reason")
    syntax, memory = reasons["Syntax error"], reasons["GPU out of memory"]
    assert (syntax["retried"], syntax["same_reason"], syntax["same_reason_pct"]) == (1, 1, 100)
    assert syntax["same_reason_gpu_hours"] == pytest.approx(1 / 6)
    assert (memory["retried"], memory["retry_passed"], memory["job_passed_pct"]) == (1, 1, 100)
    assert (reasons["all"]["retried"], reasons["all"]["retry_passed_pct"]) == (2, 50)


def test_by_user_queue_and_size(found: Analysis) -> None:
    users = rows(found, "failures_by_user", "user")
    assert list(users) == ["bob", "ann", "cem"], "270, 180 and 110 GPU-minutes"
    assert users["ann"]["top_reason"] == "Syntax error"
    assert (users["ann"]["trials"], users["ann"]["failed_pct"]) == (3, 75)
    assert (users["cem"]["jobs"], users["cem"]["failed_jobs"]) == (4, 2)
    [lost] = [row for row in rows(found, "gpu_hours_lost", "size_bucket").values() if row["size_bucket"] == "all"]
    hours = lost["killed_h"] + lost["failed_h"] + lost["retried_h"]
    assert sum(user["lost_gpu_hours"] for user in users.values()) == pytest.approx(hours)
    assert sum(user["lost_pct"] for user in users.values()) == pytest.approx(100)
    queues = rows(found, "failures_by_queue", "queue")
    assert queues["r"]["gpu_hours"] == pytest.approx(1)
    sizes = rows(found, "failures_by_size", "size_bucket")
    assert (sizes["1"]["attempts"], sizes["1"]["trials"], sizes["1"]["not_known_pct"]) == (6, 4, 50)
    assert sizes["5-8"]["ai_engine_pct"] == 100


def test_who_loses_most_may_have_no_failed_attempt(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    ends = [("ann", "FAILED", "10:11"), ("bob", "CANCELLED by 7", "12:01"), ("cem", "COMPLETED", "13:01")]
    records = [
        {"JobIDRaw": f"{n}", "JobID": f"{n}", "User": user, "State": state, "End": f"2026-11-20T{end}:00"}
        for n, (user, state, end) in enumerate(ends, 1)
    ]
    (logs / "sacct.txt").write_text(text(*records))
    ingest([logs], tmp_path / "t.duckdb")
    with Store(tmp_path / "t.duckdb") as opened:
        users = rows(analyze(opened, Options(sections=("failures",))), "failures_by_user", "user")
    assert list(users) == ["bob", "ann"]
    assert (users["bob"]["trials"], users["bob"]["gpu_hours"], users["bob"]["lost_gpu_hours"]) == (0, 0, 4)
    assert users["bob"]["lost_pct"] == pytest.approx(100 * 120 / 130)
    assert users["ann"]["lost_gpu_hours"] == pytest.approx(users["ann"]["gpu_hours"]) == pytest.approx(1 / 3)


def test_savings(found: Analysis) -> None:
    table = table_of(found, "failure_savings")
    never, certain, small, checked = table.frame.to_dicts()
    assert (never["trials"], never["gpu_hours"]) == (0, 0), "it rests on 10 jobs or more"
    assert (certain["trials"], certain["reasons"], certain["gpu_hours"]) == (1, "Syntax error", pytest.approx(1 / 6))
    assert (small["trials"], small["gpu_hours"]) == (1, pytest.approx(7 * 20 / 60))
    assert (checked["trials"], checked["gpu_hours"]) == (2, pytest.approx(2 * 5 / 60))


def test_retries_that_never_helped_need_ten_jobs(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        for number in range(10):
            site.job(f"j{number}", ("failed", 0, 10), ("failed", 10, 70), gpus=2)
            site.log(f"j{number}", 0, ("t_xid", 1, "XID 79"))
            site.log(f"j{number}", 1, ("t_syntax", 1, "SyntaxError: invalid"))
    table = table_of(run(tmp_path, tmp_path / "t.duckdb"), "failure_savings")
    never = table.frame.to_dicts()[0]
    assert (never["trials"], never["rests_on"], never["gpu_hours"]) == (10, 10, pytest.approx(20))
    assert never["gpu_hours_pct"] == pytest.approx(100 * 60 / 70)
    assert never["reasons"] == "GPU hardware error"


def test_logs_without_a_signature_are_clustered(found: Analysis) -> None:
    table = table_of(found, "failure_unmatched")
    [row] = table.frame.to_dicts()
    assert (row["template"], row["trials"], row["jobs"], row["users"]) == ("foo <*> broke at last", 2, 2, 2)
    assert (row["example_job"], row["example_attempt"], row["line_no"]) == ("odd-1", 0, 7)
    assert row["example"] == "foo 12 broke at last"


def test_compared_with_table_7(found: Analysis) -> None:
    reasons = rows(found, "reference_failures", "reason")
    syntax = reasons["Syntax error"]
    assert syntax["published_trials_pct"] == pytest.approx(100 * 1132 / 39776)
    assert (syntax["trials_pct"], syntax["rtf_pct"]) == (pytest.approx(200 / 7), pytest.approx(10))
    assert reasons["MPI error"]["trials_pct"] is None
    assert reasons["GPU hardware error"]["published_trials_pct"] is None
    assert sum(row["published_trials_pct"] or 0 for row in reasons.values()) == pytest.approx(100)
    # by category: model checkpoints, MPI twice, preemptions, and what users may have caused as well
    categories = rows(found, "reference_failure_categories", "category")
    infrastructure = 1995 + 634 + 478 + 147 + 9690 + 2943 + 1132 + 148 + 777
    assert categories["infrastructure"]["published_trials_pct"] == pytest.approx(100 * infrastructure / 39776)
    assert categories["not known"]["published_trials_pct"] == pytest.approx(100 * 1684 / 39776)
    assert categories["user"]["rtf_pct"] >= reasons["Syntax error"]["rtf_pct"]
    assert all(0 < row["trials_pct"] <= 100 for row in categories.values() if row["trials_pct"] is not None)


def test_a_log_of_several_attempts_counts_for_each(tmp_path: Path) -> None:
    """By stamps, by Slurm's word that it ended an attempt, and for the last one where neither is there."""
    requeued = "slurmstepd: error: *** JOB 7 ON m1 CANCELLED AT 2026-03-02T12:10:00 DUE TO NODE FAILURE ***"
    again = requeued.replace("12:10", "13:10")
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        for job in ("bare", "stamped", "parted", "both", "steps"):
            site.job(job, ("failed", 0, 10), ("failed", 10, 70), ("failed", 80, 90))
        site.log("bare", None, ("t_xid", 1, "XID 79"))
        # a line without a stamp goes with the one before it, and the first with the next
        lines = (
            ("t_syntax", 1, "SyntaxError: invalid"),
            (None, 2, "start"),
            ("t_xid", 5, "XID 79"),
            ("t_denied", 6, "Permission denied"),
        )
        # one preemption is told of a step and of the job, and one line may have several signatures
        told = "slurmstepd: error: *** {} ON m1 CANCELLED AT 2026-03-02T12:{} DUE TO PREEMPTION ***"
        step, job, later = (
            told.format("STEP 7.0", "10:00"),
            told.format("JOB 7", "10:01"),
            told.format("JOB 7", "59:00"),
        )
        site.log(
            "steps", None, ("t_denied", 1, "Permission denied"), ("t_xid", 2, step), (None, 2, step), (None, 3, job),
            ("t_xid", 4, "XID 79"), (None, 5, later), ("t_syntax", 6, "SyntaxError: invalid"),
        )  # fmt: skip
        # Slurm's word parts what follows a stamped line, too
        mixed = (("t_xid", 1, "XID 79"), (None, 2, requeued), ("t_denied", 3, "Permission denied"))
        site.log("both", None, *mixed, minutes={1: 5})
        site.log("stamped", None, *lines, minutes={2: 3, 5: 85})
        site.log(
            "parted", None, ("t_denied", 1, "Permission denied"), (None, 2, requeued), ("t_xid", 3, "XID 79"),
            (None, 4, again), ("t_syntax", 5, "SyntaxError: invalid"),
        )  # fmt: skip
    table = run(tmp_path, tmp_path / "t.duckdb").table("failures")
    assert table is not None
    found: dict[str, list[tuple[str, bool]]] = {}
    for row in sorted(table.frame.to_dicts(), key=lambda row: row["attempt"]):
        found.setdefault(row["job"], []).append((row["reason"], row["has_log"]))
    none = ("no_signature", False)
    assert found["bare"] == [none, none, ("gpu_hardware_error", True)]
    assert found["stamped"] == [("syntax_error", True), none, ("gpu_hardware_error", True)]
    assert found["steps"] == [("permission_error", True), ("gpu_hardware_error", True), ("syntax_error", True)]
    assert found["both"] == [("gpu_hardware_error", True), ("permission_error", True), ("no_signature", True)]
    assert found["parted"] == [("permission_error", True), ("gpu_hardware_error", True), ("syntax_error", True)]


def test_other_sections_classify_nothing(tmp_path: Path) -> None:
    result = run(tmp_path, example(tmp_path / "t.duckdb"), sections=("overview",))
    assert result.table("overview") is not None
    assert result.table("failures") is None


def test_why_a_machine_was_drained_is_reported_by_a_real_slurm_database(tmp_path: Path, root: Path) -> None:
    """Our lab's: gpu005 was set down with the reason "XID 79" while jobs 6, 8 and 9 ran there."""
    ingest([root / "tests" / "fixtures" / "slurm" / "other" / "slurmdbd.sql"], tmp_path / "t.duckdb")
    jobs = rows(run(tmp_path, tmp_path / "t.duckdb"), "failures", "job")
    assert {job: row["reason"] for job, row in jobs.items() if row["state"] == "node_fail"} == {
        **dict.fromkeys(("6", "8", "9"), "gpu_hardware_error"),
        "13": "node_failure",
    }
    assert jobs["8"]["evidence"] == "XID 79: GPU has fallen off the bus (machine gpu005)"
    assert (jobs["44"]["reason"], jobs["44"]["state"]) == ("time_limit", "timeout")
    assert (jobs["1"]["reason"], jobs["1"]["job_state"]) == ("job_preempted", "completed")
    assert jobs["286"]["reason"] == "invalid_memory_access", "exit code 139 is 128 + SIGSEGV"
    assert (jobs["190"]["reason"], jobs["190"]["rtf_s"]) == ("cpu_out_of_memory", 1)


def test_a_verdict_that_sees_no_failure_is_overruled_by_the_scheduler() -> None:
    table = load()
    verdict = failure_table.judge([], Facts("failed", 1), None, table, failure_table.Words(table))
    assert (verdict.failed, verdict.reason, verdict.confidence) == (True, "no_signature", 0)


def test_later_events_of_a_node_are_not_a_reason(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        for number, minute in enumerate((-1, 0, 14, 16)):
            site.job(f"j{number}", ("failed", 0, 10), on=(f"m{number}",))
            site.event(f"m{number}", minute, 500, "XID 79")
    found = rows(run(tmp_path, tmp_path / "t.duckdb"), "failures", "job")
    assert [found[f"j{number}"]["reason"] == "gpu_hardware_error" for number in range(4)] == [False, True, True, False]


def test_without_a_signature_the_same_template_is_the_same_reason(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        for job, texts in (("same", ("gone at 12", "gone at 13")), ("other", ("gone at 12", "lost it"))):
            site.job(job, ("failed", 0, 10), ("failed", 10, 20))
            for attempt, text in enumerate(texts):
                site.log(job, attempt, (None, 1, text))
        site.job("silent", ("failed", 0, 10), ("failed", 10, 20))
    found = rows(run(tmp_path, tmp_path / "t.duckdb"), "retry_reasons", "reason")["No signature"]
    assert (found["retried"], found["same_reason"], found["other_reason"]) == (3, 1, 2)
