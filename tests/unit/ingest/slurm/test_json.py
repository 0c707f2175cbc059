from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.formats import slurm_json
from gpuctl.ingest.read import json_stream, json_walk
from gpuctl.ingest.read.json_walk import documents, jobs
from gpuctl.ingest.slurm.json_fields import COLUMNS, fields, number, step_fields, tres_text

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "slurm" / "other" / "sacct.json"
SHARED = Path(__file__).resolve().parents[5] / "shared" / "data" / "slurm"

OLD: dict[str, Any] = {
    "account": "nlp",
    "comment": {"administrator": None},
    "cluster": "lab",
    "allocation_nodes": 2,
    "array": {"job_id": 0, "task": None, "task_id": None},
    "association": {"account": "nlp", "cluster": "lab", "partition": None, "user": "dave"},
    "derived_exit_code": {"status": "SUCCESS", "return_code": 0},
    "time": {"eligible": 1795208728, "end": 1795208764, "start": 1795208758, "submission": 1795208727,
             "suspended": 12, "limit": 1505},
    "exit_code": {"status": "SUCCESS", "return_code": 0},
    "flags": ["CLEAR_SCHEDULING", "STARTED_ON_BACKFILL"],
    "het": {"job_id": 0, "job_offset": None},
    "job_id": 178,
    "name": "job.sh",
    "nodes": "gpu[003-004]",
    "partition": "gpu",
    "priority": 1026,
    "qos": "normal",
    "kill_request_user": None,
    "state": {"current": "COMPLETED", "reason": "None"},
    "steps": [
        {"nodes": {"list": ["gpu003"]}, "state": "COMPLETED", "step": {"job_id": 178, "id": "batch"},
         "tasks": {"count": 2}, "time": {"start": 1795208758, "end": 1795208764,
                                         "total": {"seconds": 61, "microseconds": 2747}},
         "tres": {"requested": {"max": [{"type": "mem", "name": None, "id": 2, "count": 5074944, "task": 0}],
                                "total": [{"type": "mem", "name": None, "id": 2, "count": 9000000}]},
                  "consumed": {"total": [{"type": "mem", "name": None, "id": 2, "count": 7}]}}},
    ],
    "tres": {
        "allocated": [
            {"type": "cpu", "name": None, "id": 1, "count": 2},
            {"type": "energy", "name": None, "id": 3, "count": None},
            {"type": "mem", "name": None, "id": 2, "count": 400},
            {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 1},
            {"type": "gres", "name": "gpu", "id": 1001, "count": 1},
        ],
        "requested": [{"type": "cpu", "name": None, "id": 1, "count": 2}],
    },
    "user": "dave",
}  # fmt: skip


def counted(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


UNTOLD = {"set": False, "infinite": False, "number": 0}
NEW: dict[str, Any] = {
    **OLD,
    "array": {"job_id": 0, "task": "", "task_id": UNTOLD},
    "derived_exit_code": {"status": ["SUCCESS"], "return_code": counted(0), "signal": {"id": UNTOLD, "name": ""}},
    "exit_code": {"status": ["SUCCESS"], "return_code": counted(0), "signal": {"id": UNTOLD, "name": ""}},
    "time": {**OLD["time"], "limit": counted(1505), "planned": counted(30)},
    "flags": ["STARTED_ON_BACKFILL", "START_RECEIVED"],
    "het": {"job_id": 0, "job_offset": UNTOLD},
    "priority": counted(1026),
    "kill_request_user": "",
    "restart_cnt": 2,
    "state": {"current": ["COMPLETED"], "reason": "None"},
    "submit_line": "sbatch job.sh",
}


def text_of(job: dict[str, Any], **changes: Any) -> dict[str, str]:
    return fields({**job, **changes})


def test_every_field_of_an_old_job() -> None:
    assert text_of(OLD) == {
        "Cluster": "lab",
        "JobIDRaw": "178",
        "JobID": "178",
        "JobName": "job.sh",
        "User": "dave",
        "Account": "nlp",
        "Partition": "gpu",
        "QOS": "normal",
        "State": "COMPLETED",
        "ExitCode": "0:0",
        "DerivedExitCode": "",
        "Submit": "1795208727",
        "Eligible": "1795208728",
        "Start": "1795208758",
        "End": "1795208764",
        "Timelimit": "1-01:05:00",
        "NNodes": "2",
        "NCPUS": "2",
        "ReqTRES": "cpu=2",
        "AllocTRES": "cpu=2,gres/gpu:a100=1,gres/gpu=1,mem=400M",
        "NodeList": "gpu[003-004]",
        "Reason": "None",
        "Priority": "1026",
        "Flags": "SchedBackfill",
        "Suspended": "00:00:12",
        "ElapsedRaw": "",
        "SubmitLine": "",
        "Restarts": "",
        "Constraints": "",
        "TotalCPU": "",
        "AdminComment": "",
        "Comment": "",
        "NTasks": "",
        "MaxRSS": "",
        "TRESUsageInTot": "",
    }
    assert tuple(text_of(OLD)) == COLUMNS


def test_a_step_has_what_it_used() -> None:
    """Slurm names TRESUsageIn ``requested``, and counts memory in bytes there."""
    step = step_fields(OLD, OLD["steps"][0])
    assert {key: value for key, value in step.items() if value} == {
        "JobIDRaw": "178.batch",
        "JobID": "178.batch",
        "State": "COMPLETED",
        "Start": "1795208758",
        "End": "1795208764",
        "TotalCPU": "00:01:01.002747",
        "NTasks": "2",
        "MaxRSS": "5074944",
        "TRESUsageInTot": "mem=9000000",
    }
    assert tuple(step) == COLUMNS
    assert step_fields(OLD, {"step": {"id": "178.0"}})["JobIDRaw"] == "178.0"


@pytest.mark.parametrize("step", [7, {}, {"step": {"id": "0"}, "time": []}, {"step": {"id": "0"}, "state": [{}]}])
def test_what_is_no_step_is_refused(step: object) -> None:
    with pytest.raises(RowError):
        step_fields(OLD, step)


def test_a_new_job_gives_the_same_and_more() -> None:
    old, new = text_of(OLD), text_of(NEW)
    assert {key: new[key] for key in new if new[key] != old[key]} == {
        "DerivedExitCode": "0:0",
        "Flags": "SchedBackfill,StartReceived",
        "SubmitLine": "sbatch job.sh",
        "Restarts": "2",
    }


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, None), ("", None), (0, 0), (7, 7), ("7", 7), (7.0, 7), (-2, None), (2**32 - 2, None), (2**64 - 2, None),
        ({"set": True, "infinite": False, "number": 7}, 7), ({"set": False, "infinite": False, "number": 7}, None),
        ({"set": True, "infinite": True, "number": 7}, None), ({"number": 7}, 7), ({}, None),
    ],
)  # fmt: skip
def test_numbers_in_every_form(value: object, read: int | None) -> None:
    assert number(value) == read


@pytest.mark.parametrize(
    "value", [True, 1.5, "x", "\u0663", [1], float("nan"), float("inf"), {"number": {"number": 1}}]
)
def test_an_invalid_number_is_rejected(value: object) -> None:
    with pytest.raises(RowError, match="not whole"):
        number(value)


@pytest.mark.parametrize(
    ("job", "state", "exit_code", "text"),
    [
        # 22.05 says 0 for whatever no signal ended: only a completed job can be believed
        (OLD, "COMPLETED", {"status": "SUCCESS", "return_code": 0}, "0:0"),
        (OLD, "FAILED", {"status": "SUCCESS", "return_code": 0}, ""),
        (OLD, "TIMEOUT", {"status": "SUCCESS", "return_code": 0}, ""),
        (OLD, "FAILED", {"status": "ERROR", "return_code": 42}, "42:0"),
        (OLD, "FAILED", {"status": "SIGNALED", "return_code": None, "signal": {"signal_id": 11, "name": "x"}}, "0:11"),
        (NEW, ["FAILED"], {"status": ["ERROR"], "return_code": counted(255), "signal": {"id": UNTOLD}}, "255:0"),
        (NEW, ["FAILED"], {"status": ["SIGNALED"], "return_code": UNTOLD, "signal": {"id": counted(11)}}, "0:11"),
        (NEW, ["FAILED"], {"status": ["SUCCESS"], "return_code": counted(0), "signal": {"id": UNTOLD}}, "0:0"),
        (NEW, ["PENDING"], {"status": ["PENDING"], "return_code": UNTOLD, "signal": {"id": UNTOLD}}, ""),
        (NEW, ["RUNNING", "COMPLETING"], {}, ""),
    ],
)
def test_exit_codes(job: dict[str, Any], state: Any, exit_code: dict[str, Any], text: str) -> None:
    read = text_of(job, state={"current": state, "reason": "None"}, exit_code=exit_code, derived_exit_code=exit_code)
    assert read["ExitCode"] == text
    assert read["State"] == (state if isinstance(state, str) else state[0])
    if job is OLD and text == "0:0":
        assert read["DerivedExitCode"] == ""
    elif text:
        assert read["DerivedExitCode"] == text


@pytest.mark.parametrize(
    ("changes", "column", "text"),
    [
        ({"array": {"job_id": 11, "task": None, "task_id": 3}}, "JobID", "11_3"),
        ({"array": {"job_id": 11, "task": "", "task_id": counted(0)}}, "JobID", "11_0"),
        ({"array": {"job_id": counted(11), "task": "4-9%2", "task_id": UNTOLD}}, "JobID", "11_[4-9%2]"),
        ({"het": {"job_id": 57, "job_offset": 1}}, "JobID", "57+1"),
        ({"het": {"job_id": 57, "job_offset": counted(0)}}, "JobID", "57+0"),
        ({"state": {"current": ["CANCELLED"]}, "kill_request_user": "bob"}, "State", "CANCELLED by bob"),
        ({"state": {"current": "PREEMPTED"}, "kill_request_user": "bob"}, "State", "PREEMPTED"),
        ({"state": {"current": "CANCELLED"}, "time": {"submission": 5, "start": None, "end": 9}}, "Start", "None"),
        ({"state": {"current": "PENDING"}, "time": {"submission": 5, "start": 0, "end": 0}}, "Start", "Unknown"),
        ({"time": {"submission": 5, "eligible": 0}}, "Eligible", "Unknown"),
        ({"time": {"limit": {"set": False, "infinite": True, "number": 0}}}, "Timelimit", "UNLIMITED"),
        ({"time": {"limit": None}}, "Timelimit", ""),
        ({"user": None}, "User", "dave"),
        ({"user": "", "association": None}, "User", ""),
        ({"allocation_nodes": 0, "tres": {"requested": [{"type": "node", "count": 4}]}}, "NNodes", "4"),
        ({"tres": {"allocated": [], "requested": [{"type": "cpu", "count": 8}]}}, "NCPUS", "8"),
        ({"tres": {"allocated": [{"type": "energy", "name": "", "id": 3, "count": -2}]}}, "AllocTRES", ""),
        ({"tres": {"allocated": [{"type": "cpu", "count": 2**64 - 2}]}}, "AllocTRES", ""),
        ({"tres": None}, "AllocTRES", ""),
    ],
)
def test_what_releases_and_states_write_differently(changes: dict[str, Any], column: str, text: str) -> None:
    assert text_of(OLD, **changes)[column] == text


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (3, "not an object"),
        ({**OLD, "job_id": None}, "no job_id"),
        ({**OLD, "job_id": -1}, "no job_id"),
        ({**OLD, "job_id": "x"}, "a number that is not whole"),
        ({**OLD, "state": {"current": []}}, "no state"),
        ({**OLD, "state": {"current": [3]}}, "a list of words holds something else"),
        ({**OLD, "state": "COMPLETED"}, "state is not an object"),
        ({**OLD, "name": 3}, "name is not text"),
        ({**OLD, "tres": {"allocated": {}}}, "tres is not a list"),
        ({**OLD, "tres": {"allocated": [3]}}, "tres holds something that is not an object with a type"),
        ({**OLD, "time": {"start": "soon"}}, "a number that is not whole"),
    ],
)
def test_an_invalid_job_is_rejected_with_a_reason(job: object, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        fields(job)
    assert str(caught.value) == reason


def test_typed_and_untyped_gpus_stay_apart() -> None:
    both = [{"type": "gres", "name": "gpu:a100", "count": 4}, {"type": "gres", "name": "gpu", "count": 4}]
    assert tres_text(both) == "gres/gpu:a100=4,gres/gpu=4"


# ---- the walk through the object


def walk(text: str | bytes) -> list[tuple[int, str | None, Any]]:
    data = text.encode() if isinstance(text, str) else text
    return [
        (e.line_no, e.fault, e.value.get("job_id") if isinstance(e.value, dict) else None)
        for e in jobs(io.BytesIO(data))
    ]


def job(number: int) -> dict[str, Any]:
    return {**OLD, "job_id": number, "comment": {"job": '} ] \\ " {'}, "name": '"jobs": ['}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"meta": {"command": ['"jobs": [']}, "errors": [], "jobs": [job(1), job(2)]}),
        json.dumps({"jobs": [job(1), job(2)], "meta": {"x": [1]}, "errors": [], "warnings": []}, indent=2),
        json.dumps({"jobs": [job(1), job(2)]}),
        "\ufeff\n" + json.dumps([job(1), job(2)]),
        json.dumps(job(1)) + "\n" + json.dumps(job(2)),
        json.dumps({"jobs": [job(1), job(2)]}, sort_keys=True),
    ],
)
def test_the_array_is_found_wherever_it_stands(text: str) -> None:
    assert [(fault, number) for _, fault, number in walk(text)] == [(None, 1), (None, 2)]


def test_lines_are_those_of_the_file() -> None:
    text = json.dumps({"meta": {"a": 1}, "jobs": [job(1), job(2)]}, indent=1)
    first, second = (text[: text.index(f'"job_id": {n},')].count("\n") for n in (1, 2))
    (one, _, _), (two, _, _) = walk(text)
    assert one < first < two < second
    assert text.splitlines()[one - 1].strip() == text.splitlines()[two - 1].strip() == "{"


def test_an_empty_array_is_no_job() -> None:
    assert walk('{"jobs": [\n],\n "meta": {"plugin": {"type": "openapi\\/dbv0.0.38"}}}') == []


@pytest.mark.parametrize("text", ["", "{}", '{"meta": {"jobs": [1]}}', "meta:\n jobs: []", '{"jobs": {}}', "\x00\xff"])
def test_a_file_without_the_array_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        walk(text)


def test_yaml_is_refused_with_the_command_to_use() -> None:
    for text in ("%YAML 1.1\n--- !!map\njobs: []\n", "---\njobs:\n"):
        with pytest.raises(InputError, match="--json instead of --yaml"):
            walk(text)


def test_a_member_without_end_is_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 100)
    stream = io.BytesIO(b'{"meta": [' + b"1," * 10_000)
    with pytest.raises(InputError, match="expected an object with an array of jobs"):
        list(documents(stream, json_walk.SACCT, limit=1000))


@pytest.mark.parametrize("between", ["", "\n", ",\n"])
def test_several_documents_are_read_to_the_end(between: str) -> None:
    one = json.dumps({"jobs": [job(1)], "meta": {}, "other": [1]})
    two = json.dumps({"other": {"jobs": 1}, "jobs": [job(2), job(3)]})
    for text in (one + between + two, two + between + one, json.dumps([job(1)]) + between + two):
        assert sorted((fault, number) for _, fault, number in walk(text)) == [(None, 1), (None, 2), (None, 3)]


def test_truncation_at_every_byte_keeps_what_is_sound() -> None:
    text = json.dumps({"meta": {}, "jobs": [job(1), job(2)], "errors": []})
    ends = [text.index(json.dumps(job(n))) + len(json.dumps(job(n))) for n in (1, 2)]
    start = text.index('"jobs": [') + len('"jobs": [')
    for size in range(start, len(text)):
        found = walk(text[:size])
        assert [number for _, fault, number in found if fault is None] == [n for n in (1, 2) if size >= ends[n - 1]]
        assert bool([1 for _, fault, _ in found if fault]) == (size <= ends[1])


@pytest.mark.parametrize("damage", ["x", ",", "}", "]", "\x00"])
def test_damage_at_the_start_of_a_job_costs_that_job_only(damage: str) -> None:
    text = json.dumps({"jobs": [job(1), job(2), job(3)], "meta": {}})
    at = text.index(json.dumps(job(2)))
    found = walk(text[:at] + damage + text[at + 1 :]) if damage != "]" else walk(text[:at] + "x]" + text[at + 2 :])
    assert [number for _, fault, number in found if number] == [1, 3]
    assert len(found) > 2


def test_the_fixture_is_22_05_with_all_its_attempts() -> None:
    found = list(jobs(io.BytesIO(FIXTURE.read_bytes())))
    assert len(found) == 44
    assert sum(e.fault is None for e in found) == 44
    assert len({fields(e.value)["JobIDRaw"] for e in found}) == 35


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (FIXTURE.read_bytes()[:65536], True),
        (json.dumps(OLD).encode(), True),
        (b'{"jobs": [\n ],\n "meta": {"command": ["sacct", "-a"]}}', True),
        (b"%YAML 1.1\n---\njobs:\n- account: nlp\n  allocation_nodes: 1\n  association:\n  job_id: 1\n", True),
        (b'{"jobs": [{"account": "a", "accrue_time": 1, "job_state": "PENDING", "job_id": 1}]}', False),
        (b'[{"jobid": "x", "attempts": []}]', False),
        (b"", False),
        (b"\x00\xff" * 100, False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert (slurm_json.FORMAT.sniff("anything", head) is not None) == known


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside this checkout")
def test_other_json_of_the_shared_data_is_not_taken_for_sacct() -> None:
    for name in ("22.05.8/sinfo.json", "public/xdmod/sacct.json", "public/xdmod/alloc-tres-gpu-count.json"):
        assert slurm_json.FORMAT.sniff("x.json", (SHARED / name).read_bytes()[:65536]) is None
