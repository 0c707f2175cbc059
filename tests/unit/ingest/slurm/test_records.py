"""The traps of Slurm's accounting, by their number in the list that this reader was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.states import State
from gpuctl.ingest.slurm import records
from gpuctl.ingest.slurm.typed_columns import BAD_ID, BAD_STATE
from gpuctl.slurm.states import exit_of, state_of
from tests.sacct_records import FIRST, NEVER, PENDING, SECOND, attempt, ingest, job
from tests.slurm_loading import rows

if TYPE_CHECKING:
    from gpuctl.store.database import Store


def queues(store: Store) -> list[str]:
    """The queues of the store."""
    return store.frame("SELECT queue FROM queues ORDER BY queue")["queue"].to_list()


def jobs(store: Store, *given: dict[str, str]) -> list[dict[str, Any]]:
    """The jobs of some records, one each."""
    assert ingest(store, *({"JobIDRaw": str(100 + k), **one} for k, one in enumerate(given))).rejects == []
    made = rows(store, "jobs")
    assert len(made) == len(given)
    return made


def test_every_column(store: Store) -> None:
    sink = ingest(store, {})
    assert (sink.rows_in, sink.rows_loaded) == (1, 1)
    (made,) = rows(store, "jobs")
    assert {name: value for name, value in made.items() if value is not None} == {
        **{"job": "100", "queue": "gpu", "partition": "gpu", "user": "alice", "account": "vision", "name": "train"},
        **{"submit_ts": "2026-11-20 10:00:00", "eligible_ts": "2026-11-20 10:00:10"},
        **{"start_ts": "2026-11-20 10:01:00", "end_ts": "2026-11-20 10:11:00"},
        **{"state": "completed", "source_state": "COMPLETED", "gpus": 2.0, "gpu_type": "a100", "nodes": 1, "cpus": 8},
        **{"mem_mb": 16384, "time_limit_s": 3600, "priority": 1000, "qos": "normal", "attempts": 1, "quirks": []},
        **{"exit_code": 0, "exit_signal": 0, "derived_exit_code": 0, "derived_exit_signal": 0},
        **{"wait_s": 60.0, "run_span_s": 600.0, "run_sum_s": 600.0, "run_last_s": 600.0},
        "gpu_type_request": "unknown",
    }
    (made,) = rows(store, "attempts")
    assert {name: value for name, value in made.items() if value is not None} == {
        **{"job": "100", "attempt": 0, "queued_ts": "2026-11-20 10:00:00", "eligible_ts": "2026-11-20 10:00:10"},
        **{"start_ts": "2026-11-20 10:01:00", "end_ts": "2026-11-20 10:11:00", "released_ts": "2026-11-20 10:11:00"},
        **{"state": "completed", "source_state": "COMPLETED", "gpus": 2.0, "servers": 1, "started_by": "main"},
        **{"wait_s": 60.0, "run_s": 600.0, "exit_code": 0, "exit_signal": 0, "quirks": [], "stated_gpu_s": 1200.0},
        **{"elapsed_s": 600.0, "billing": 8.0, "gpus_by_type": "a100=2"},
    }
    (made,) = rows(store, "placements")
    assert made == {
        **{"job": "100", "attempt": 0, "machine": "gpu001", "gpus": 2.0, "gpu_indices": None, "estimated": False}
    }
    assert queues(store) == ["gpu"]


# ---- 4: ids


def test_trap_4_array_tasks(store: Store) -> None:
    made = job(store, {"JobIDRaw": "124", "JobID": "123_4"})
    assert (made["job"], made["array_job"], made["array_task"], made["het_job"]) == ("124", "123", "4", None)


def test_trap_4_the_rest_of_an_array_that_waits(store: Store) -> None:
    made = job(store, {**PENDING, "JobIDRaw": "123", "JobID": "123_[3,7-9%2]"})
    assert (made["job"], made["array_task"], made["quirks"]) == ("123", "3,7-9%2", ["array_rest"])


def test_trap_4_het_jobs(store: Store) -> None:
    ingest(store, {"JobIDRaw": "200", "JobID": "200+0"}, {"JobIDRaw": "201", "JobID": "200+1"})
    assert [(r["job"], r["het_job"], r["het_offset"], r["array_job"]) for r in rows(store, "jobs")] == [
        ("200", "200", 0, None),
        ("201", "200", 1, None),
    ]


def test_trap_4_steps_are_no_jobs(store: Store) -> None:
    ids = ("100.batch", "100.extern", "100.interactive", "100.0", "123_4.batch", "200+1.0")
    sink = ingest(store, {}, *({"JobIDRaw": i, "JobID": i, "Partition": "", "User": ""} for i in ids))
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (7, 7, [])
    assert store.value("SELECT count(*) FROM jobs") == store.value("SELECT count(*) FROM attempts") == 1


def test_trap_4_only_jobid(store: Store) -> None:
    ids = ("100", "123_4", "123_[5-9]", "200+1", "123_4.batch")
    ingest(store, *({"JobID": i} for i in ids), only="JobID State Submit Start End")
    assert [r["job"] for r in rows(store, "jobs")] == ["100", "123", "123_4", "200+1"]


def test_trap_4_what_is_no_id_is_rejected(store: Store) -> None:
    bad = ("", "abc", "12x", "-1", "+1", "1.", "JobIDRaw", "1 2", "१२३")
    sink = ingest(store, *({"JobIDRaw": text} for text in bad), {})
    assert [(line, reason) for line, reason, _ in sink.rejects] == [(2 + k, BAD_ID) for k in range(len(bad))]
    assert store.value("SELECT count(*) FROM jobs") == 1


# ---- 5 to 9: times


def test_trap_5_local_times_are_of_the_zone_given(store: Store) -> None:
    assert job(store, {}, timezone="Europe/Berlin")["submit_ts"] == "2026-11-20 09:00:00"


def test_trap_5_each_time_in_its_own_form(store: Store) -> None:
    made = job(store, {"Submit": "1795168800", "Start": "2026-11-20T11:01:00+0100"}, timezone="America/New_York")
    assert (made["submit_ts"], made["start_ts"]) == ("2026-11-20 10:00:00", "2026-11-20 10:01:00")


def test_trap_5_the_hour_that_comes_twice(store: Store) -> None:
    made = attempt(
        store,
        {"Submit": "2026-10-25T01:50:00", "Start": "2026-10-25T02:50:00", "End": "2026-10-25T02:10:00", "Eligible": ""},
        timezone="Europe/Berlin",
    )
    assert (made["end_ts"], made["run_s"], made["quirks"]) == ("2026-10-25 01:10:00", 1200.0, ["ambiguous_hour"])


def test_trap_5_a_time_that_is_none_is_rejected(store: Store) -> None:
    sink = ingest(store, {"Start": "soon"}, {"JobIDRaw": "101", "State": "17"}, {"JobIDRaw": "102"})
    assert [(line, reason.split(":")[0]) for line, reason, _ in sorted(sink.rejects)] == [
        (2, "Start is not a time of 1971 to 2199"),
        (3, BAD_STATE),
    ]
    assert sink.rejects[0][2].startswith("100|100|train|alice")


def test_trap_6_pending(store: Store) -> None:
    made = job(store, PENDING)
    assert (made["state"], made["start_ts"], made["end_ts"], made["wait_s"]) == ("pending", None, None, None)
    assert (made["gpus"], made["gpu_type"], made["nodes"]) == (2.0, None, 1)
    (only,) = rows(store, "attempts")
    assert (only["released_ts"], only["servers"], only["quirks"]) == (None, 1, [])
    assert rows(store, "placements") == []


def test_trap_6_running(store: Store) -> None:
    made = attempt(store, {"State": "RUNNING", "End": "Unknown"})
    assert (made["state"], made["wait_s"], made["run_s"], made["released_ts"]) == ("running", 60.0, None, None)
    assert len(rows(store, "placements")) == 1


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_trap_6_an_expected_end_is_no_end(store: Store, state: str) -> None:
    assert attempt(store, {"State": state})["end_ts"] is None


def test_trap_6_cancelled_before_it_started(store: Store) -> None:
    made = job(store, {**NEVER, "State": "CANCELLED by 1002"})
    assert (made["state"], made["source_state"]) == ("killed", "CANCELLED by 1002")
    assert (made["start_ts"], made["end_ts"], made["gpus"]) == (None, "2026-11-20 10:11:00", 2.0)
    assert rows(store, "attempts")[0]["quirks"] == rows(store, "placements") == []


def test_trap_6_cancelled_before_it_started_in_old_slurm(store: Store) -> None:
    made = job(store, {**NEVER, "State": "CANCELLED by 0", "Start": "2026-11-20T10:11:00"})
    assert (made["start_ts"], made["wait_s"], made["run_last_s"]) == (None, None, None)


def test_trap_6_and_7_time_limits(store: Store) -> None:
    limits = {"1-00:00:00": 86400, "UNLIMITED": None, "Partition_Limit": None, "": None}
    made = jobs(store, *({"Timelimit": text} for text in limits))
    assert [row["time_limit_s"] for row in made] == [*limits.values()]


def test_trap_7_limits_in_minutes(store: Store) -> None:
    assert job(store, {"TimelimitRaw": "400"}, only="JobIDRaw State Submit TimelimitRaw")["time_limit_s"] == 24000


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_trap_8_requeues_are_attempts(store: Store, order: tuple[dict[str, str], ...]) -> None:
    sink = ingest(store, *order)
    assert (sink.rows_loaded, sink.rejects) == (2, [])
    first, second = rows(store, "attempts")
    assert [(a["attempt"], a["source_state"], a["state"], a["wait_s"], a["run_s"]) for a in (first, second)] == [
        (0, "REQUEUED", "killed", 60.0, 60.0),
        (1, "COMPLETED", "completed", 150.0, 600.0),
    ]
    (made,) = rows(store, "jobs")
    assert (made["state"], made["exit_code"], made["attempts"]) == ("completed", 0, 2)
    assert (made["submit_ts"], made["eligible_ts"]) == ("2026-11-20 10:00:00", "2026-11-20 10:00:10")
    assert (made["start_ts"], made["end_ts"]) == ("2026-11-20 10:01:00", "2026-11-20 10:14:30")
    assert (made["wait_s"], made["run_span_s"], made["run_sum_s"], made["run_last_s"]) == (60.0, 810.0, 660.0, 600.0)
    assert [(p["attempt"], p["machine"]) for p in rows(store, "placements")] == [(0, "gpu001"), (1, "gpu002")]


def test_a_job_whose_only_start_ends_in_the_same_second_ran_for_0_s(store: Store) -> None:
    ingest(store, {**FIRST, **NEVER}, {**SECOND, "End": SECOND["Start"], "Elapsed": "00:00:00"})
    (made,) = rows(store, "jobs")
    assert (made["attempts"], made["run_span_s"], made["run_sum_s"], made["run_last_s"]) == (2, 0.0, 0.0, 0.0)


def test_a_requeued_job_that_runs_again_has_not_released_its_gpus(store: Store) -> None:
    ingest(store, FIRST, {**SECOND, "State": "RUNNING", "End": "Unknown"})
    assert [(a["start_ts"], a["released_ts"]) for a in rows(store, "attempts")] == [
        ("2026-11-20 10:01:00", "2026-11-20 10:02:00"),
        ("2026-11-20 10:04:30", None),
    ]


def test_trap_8_attempts_that_overlap_do_not_hold_gpus_twice(store: Store) -> None:
    ingest(store, {**FIRST, "End": "2026-11-20T10:04:40"}, SECOND)
    assert [(a["released_ts"], a["quirks"]) for a in rows(store, "attempts")] == [
        ("2026-11-20 10:04:30", ["overlap"]),
        ("2026-11-20 10:14:30", []),
    ]
    assert rows(store, "jobs")[0]["run_sum_s"] == 210 + 600


@pytest.mark.parametrize(("restarts", "quirks"), [("0", []), ("1", ["attempts_missing"]), ("", [])])
def test_trap_8_a_missing_d_is_noticed(store: Store, restarts: str, quirks: list[str]) -> None:
    assert job(store, {"Restarts": restarts})["quirks"] == quirks


def test_trap_8_with_d_nothing_is_missing(store: Store) -> None:
    ingest(store, {**FIRST, "Restarts": "0"}, {**SECOND, "Restarts": "1"})
    assert rows(store, "jobs")[0]["quirks"] == []


@pytest.mark.parametrize(
    ("eligible", "moved_to"),
    [("2026-11-20T10:20:00", "2026-11-20 10:01:00"), ("2026-11-20T09:00:00", "2026-11-20 10:00:00")],
)
def test_trap_8_eligible_out_of_bounds(store: Store, eligible: str, moved_to: str) -> None:
    made = attempt(store, {"Eligible": eligible})
    assert (made["eligible_ts"], made["quirks"]) == (moved_to, ["eligible_clamped"])


def test_trap_8_eligible_after_the_end_of_what_never_started(store: Store) -> None:
    made = attempt(store, {**NEVER, "State": "CANCELLED", "Eligible": "2026-11-20T12:00:00"})
    assert (made["eligible_ts"], made["quirks"]) == ("2026-11-20 10:11:00", ["eligible_clamped"])


def test_trap_8_negative_durations(store: Store) -> None:
    made = attempt(store, {"Start": "2026-11-20T10:12:00"})
    assert (made["run_s"], made["released_ts"], made["quirks"]) == (None, "2026-11-20 10:12:00", ["end_before_start"])


def test_a_start_before_the_submission(store: Store) -> None:
    made = job(store, {"Submit": "2026-11-20T10:05:00", "Eligible": "Unknown"})
    assert (made["wait_s"], made["quirks"]) == (None, ["start_before_submit"])


def test_trap_9_never_eligible(store: Store) -> None:
    made = job(store, {**NEVER, "State": "CANCELLED by 0", "Eligible": "Unknown"})
    assert (made["eligible_ts"], made["submit_ts"]) == (None, "2026-11-20 10:00:00")


# ---- 10 to 14: states and exit codes


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("PENDING", State.PENDING),
        ("CONFIGURING", State.RUNNING),
        ("SUSPENDED", State.SUSPENDED),
        ("COMPLETED", State.COMPLETED),
        ("CANCELLED by 1002", State.KILLED),
        ("CANCELLED+", State.KILLED),
        ("CANCELLED", State.KILLED),
        ("FAILED", State.FAILED),
        ("TIMEOUT", State.TIMEOUT),
        ("DEADLINE", State.TIMEOUT),
        ("NODE_FAIL", State.NODE_FAIL),
        ("BOOT_FAIL", State.NODE_FAIL),
        ("PREEMPTED", State.PREEMPTED),
        ("OUT_OF_MEMORY", State.OUT_OF_MEMORY),
        ("OUT_OF_ME+", State.OUT_OF_MEMORY),
        ("REQUEUED", State.KILLED),
        ("REVOKED", State.KILLED),
        ("SPECIAL_EXIT", State.PENDING),
        ("FAILED,COMPLETING", State.FAILED),
        ("CA", State.KILLED),
        ("oom", State.OUT_OF_MEMORY),
        ("FOO", State.UNKNOWN),
        ("", State.UNKNOWN),
        ("C+", State.UNKNOWN),
    ],
)
def test_trap_10_states(text: str, state: State) -> None:
    assert state_of(text) is state


def test_trap_10_a_word_that_is_new_is_stored(store: Store) -> None:
    made = job(store, {"State": "EVAPORATED"})
    assert (made["state"], made["source_state"], made["quirks"]) == ("unknown", "EVAPORATED", ["unknown_state"])


def test_trap_11_exit_codes_less_128(store: Store) -> None:
    may_be = ["exit_code_may_be_folded"]
    quirks = {"9:0": may_be, "127:0": may_be, "1:0": [], "0:9": [], "42:0": [], "137:0": []}
    made = jobs(store, *({"State": "FAILED", "ExitCode": text} for text in quirks))
    assert [row["quirks"] for row in made] == [*quirks.values()]


def test_trap_11_releases_that_do_not_fold(store: Store) -> None:
    assert job(store, {"State": "FAILED", "ExitCode": "9:0", "Exclusive": ""})["quirks"] == []


def test_trap_11_and_13_exit_codes(store: Store) -> None:
    made = job(store, {"ExitCode": "0:0", "DerivedExitCode": "0:125"})
    assert (made["state"], made["derived_exit_code"], made["derived_exit_signal"]) == ("completed", 0, 125)
    assert (exit_of("3:15"), exit_of(""), exit_of("x")) == ((3, 15), (None, None), (None, None))


# ---- 15 to 19: resources, nodes, flags


GPUS: tuple[tuple[dict[str, str], float | None, list[str]], ...] = (
    ({"AllocTRES": "cpu=1,gres/gpu:a100=4,gres/gpu=4"}, 4, []),
    ({"AllocTRES": "cpu=1,mem=1G"}, 0, []),
    ({"AllocTRES": "", "State": "PENDING"}, 2, []),
    ({"AllocTRES": "cpu=1", "AllocGRES": "gpu:4"}, 4, []),
    ({"AllocTRES": "cpu=1", "ReqTRES": "cpu=1", "ReqGRES": "gpu:tesla:2", "NNodes": "3"}, 6, []),
    ({"AllocTRES": "cpu=1,gres/gpu:1g.5gb=2,gres/gpu=2"}, 2, ["shared_gpus"]),
    ({"AllocTRES": "cpu=1,gres/mps=50", "ReqTRES": "cpu=1"}, None, ["shared_gpus"]),
    ({"AllocTRES": "cpu=1,gres/shard=2", "ReqTRES": "cpu=1,gres/shard=2"}, None, ["shared_gpus"]),
    ({"AllocTRES": "gres/gpu=18446744073709551614", "ReqTRES": ""}, None, []),
)


def test_trap_15_gpus(store: Store) -> None:
    made = jobs(store, *(given for given, _, _ in GPUS))
    expected = [(None if gpus is None else pytest.approx(gpus), quirks) for _, gpus, quirks in GPUS]
    assert [(row["gpus"], row["quirks"]) for row in made] == expected
    assert [row["gpus"] for row in rows(store, "attempts")] == [row["gpus"] for row in made]


def test_trap_15_gpus_are_unknown_not_none_if_no_column_states_them(store: Store) -> None:
    assert job(store, {}, only="JobIDRaw State Submit Start End NodeList")["gpus"] is None
    assert rows(store, "placements")[0]["estimated"] is True


TYPED, ANY = "gres/gpu:a100=2,gres/gpu=2", "gres/gpu=2"


def test_trap_15_the_allocated_type_differs_from_the_requested_one(store: Store) -> None:
    # what was given, what was asked for, features: the type, and what is known of its request
    cases = {
        (TYPED, TYPED, "hbm"): ("a100", None),
        (TYPED, ANY, ""): ("a100", "any"),
        (TYPED, ANY, "hbm"): ("a100", "unknown"),
        (TYPED, "", ""): ("a100", "unknown"),
        # types are not tracked
        (ANY, ANY, ""): (None, "unknown"),
        ("", TYPED, ""): ("a100", None),
        ("cpu=1", "cpu=1", ""): (None, None),
    }
    given = [dict(zip(("AllocTRES", "ReqTRES", "Constraints"), case, strict=True)) for case in cases]
    made = jobs(store, *given)
    assert [(row["gpu_type"], row["gpu_type_request"]) for row in made] == list(cases.values())


def test_trap_15_without_allocations_the_request_counts_and_is_marked(store: Store) -> None:
    made = job(store, {}, only="JobIDRaw State Submit Start End ReqTRES NodeList")
    assert (made["gpus"], made["quirks"]) == (2.0, ["gpus_requested"])


def test_trap_15_memory(store: Store) -> None:
    mb = {"4000Mc": 32000, "31000Mn": 62000, "16G": 16384, "": None}
    made = jobs(store, *({"ReqMem": t, "ReqTRES": "", "AllocTRES": "cpu=8", "NNodes": "2"} for t in mb))
    assert [row["mem_mb"] for row in made] == [*mb.values()]


def test_trap_16_gpus_of_several_nodes_are_an_estimate(store: Store) -> None:
    ingest(store, {"NodeList": "gpu[001-002]", "NNodes": "2", "AllocTRES": "gres/gpu=6"})
    assert [(p["machine"], p["gpus"], p["estimated"]) for p in rows(store, "placements")] == [
        ("gpu001", 3.0, True),
        ("gpu002", 3.0, True),
    ]


def test_trap_16_no_gpus_on_several_nodes_are_known(store: Store) -> None:
    ingest(store, {"NodeList": "c1-[1-2]", "NNodes": "2", "AllocTRES": "cpu=2"})
    assert [(p["gpus"], p["estimated"]) for p in rows(store, "placements")] == [(0.0, False)] * 2


@pytest.mark.parametrize("text", ["gpu[001-", "n[1-999999999999]", "gpu001 gpu002"])
def test_trap_18_node_lists_that_cannot_be_read(store: Store, text: str) -> None:
    made = attempt(store, {"NodeList": text, "NNodes": "3"})
    assert (made["servers"], made["quirks"]) == (3, ["nodes_unknown"])
    assert rows(store, "placements") == []


def test_trap_18_many_long_node_lists_are_made_piece_by_piece(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PIECE", 500)
    ingest(store, *({"JobIDRaw": str(i), "NodeList": f"n[{i}-{i + 299}]"} for i in range(100, 110)))
    assert store.value("SELECT count(*) FROM placements") == 3000


def test_trap_19_who_started_it(store: Store) -> None:
    by = {"SchedBackfill,StartRecieved": "backfill", "SchedMain": "main", "SchedSubmit": "main", "": None}
    jobs(store, *({"Flags": flags} for flags in by))
    assert [row["started_by"] for row in rows(store, "attempts")] == [*by.values()]


def test_suspended_time_is_marked(store: Store) -> None:
    assert attempt(store, {"Suspended": "00:05:00"})["quirks"] == ["suspended"]


# ---- fields that are not there


def test_ends_from_the_time_elapsed(store: Store) -> None:
    made = attempt(store, {}, only="JobIDRaw State Submit Start Elapsed")
    assert (made["end_ts"], made["run_s"], made["quirks"]) == ("2026-11-20 10:11:00", 600.0, [])


def test_only_the_time_elapsed(store: Store) -> None:
    assert attempt(store, {}, only="JobIDRaw State Elapsed")["run_s"] == 600.0


def test_a_finished_job_without_an_end_holds_nothing(store: Store) -> None:
    made = attempt(store, {"End": "Unknown"})
    assert (made["end_ts"], made["released_ts"], made["quirks"]) == (None, "2026-11-20 10:01:00", ["no_end"])


def test_several_partitions_of_a_pending_job(store: Store) -> None:
    assert job(store, {**PENDING, "Partition": "gpu,debug"})["queue"] == "gpu,debug"
    assert queues(store) == ["debug", "gpu"]


def test_records_of_two_clusters_are_refused(store: Store) -> None:
    with pytest.raises(InputError, match=r"records of 2 clusters \(fox, owl\)"):
        ingest(store, {"Cluster": "fox"}, {"Cluster": "owl", "JobIDRaw": "101"})


# ---- the same attempt more than once
