"""The small readers: ids, resources, summaries, audit lines, clocks, JSON dumps."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import NOT_UTF8, RowError
from gpuctl.ingest.yarn.audit import read_audit
from gpuctl.ingest.yarn.clock import choose
from gpuctl.ingest.yarn.dumps import CUT_OFF, NOT_CLOSED, NOT_JSON, decode, items, whole
from gpuctl.ingest.yarn.ids import attempt_id, container_id, is_application
from gpuctl.ingest.yarn.resources import (
    gpu_seconds_of_entries,
    gpu_seconds_of_text,
    read_resource,
    resource_of_json,
)
from gpuctl.ingest.yarn.sniffing import daemon_of
from gpuctl.ingest.yarn.summary import read_summary

APP = "application_1542189090588_0002"


@pytest.mark.parametrize(
    ("text", "job", "attempt", "number"),
    [
        ("container_1542189090588_0002_01_000001", APP, 0, 1),
        ("container_e02_1531732078765_0387_01_000003", "application_1531732078765_0387", 0, 3),
        ("container_e124_1531732078765_123456_12_1234567", "application_1531732078765_123456", 11, 1234567),
    ],
)
def test_containers(text: str, job: str, attempt: int, number: int) -> None:
    assert container_id(text) == (job, attempt, number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "container_1542189090588_0002_01_00000",  # cut off
        "container_1542189090588_0002_00_000001",  # attempts are counted from 1
        "container_1542189090588_0002_01_000001 ",
        "container_١٢٣_0002_01_000001",
        "application_1542189090588_0002",
    ],
)
def test_invalid_containers(text: str) -> None:
    assert container_id(text) is None


def test_attempts_and_applications() -> None:
    assert attempt_id("appattempt_1542189090588_0002_000003") == (APP, 2)
    assert attempt_id("appattempt_1542189090588_0002_00000") is None
    assert is_application(APP)
    assert not is_application("application_1542189090588_002")
    assert not is_application("job_1542189090588_0002")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<memory:1024, vCores:1>", (1024, 1, 0)),
        ("<memory:49152, vCores:15, yarn.io/gpu: 1>", (49152, 15, 1)),
        ("<memory:49152, max memory:60000, vCores:15, max vCores:16>, yarn.io/gpu: 2 on host", (49152, 15, 2)),
        ("<memory:1, vCores:1, yarn.io/fpga: 3, nvidia.com/gpu: 4>", (1, 1, 4)),
        ("<memory:1, vCores:1, GPUs:4, GPUAttribute:15>", (1, 1, 4)),
    ],
)
def test_resources(text: str, expected: tuple[float, ...]) -> None:
    found = read_resource(text)
    assert found is not None
    assert found[0] == expected


@pytest.mark.parametrize("text", ["", "<memory:1024>", "<memory:-1, vCores:1>", "<memory:1024, vCores:1"])
def test_unknown_resources(text: str) -> None:
    assert read_resource(text) is None


def test_resources_in_json() -> None:
    rows = [{"name": "memory-mb", "value": 8}, {"name": "vcores", "value": 2}, {"name": "yarn.io/gpu", "value": 3}]
    assert resource_of_json({"resourceInformations": {"resourceInformation": rows}}) == (8, 2, 3)
    assert resource_of_json({"memory": 8, "vCores": 2, "GPUs": 1}) == (8, 2, 1)
    assert resource_of_json({"memory": 8}) is None
    assert resource_of_json(None) is None


def test_gpu_seconds() -> None:
    assert gpu_seconds_of_text("120884 MB-seconds, 87 vcore-seconds") == 0
    assert gpu_seconds_of_text("120884 MB-seconds, 87 vcore-seconds, 40 yarn.io/gpu-seconds") == 40
    assert gpu_seconds_of_text("40 yarn.io/gpu-seconds") is None
    repeated = '{"entry":{"key":"memory-mb","value":"5"},"entry":{"key":"vcores","value":"6"}%s}'
    assert gpu_seconds_of_entries(decode(repeated % "")) == 0
    assert gpu_seconds_of_entries(decode(repeated % ',"entry":{"key":"yarn.io/gpu","value":"7"}')) == 7
    # an ordinary reader kept only the last entry: whether there were GPUs is lost
    assert gpu_seconds_of_entries({"entry": {"key": "vcores", "value": "63"}}) is None
    assert gpu_seconds_of_entries({}) is None


def test_summary_by_key_with_everything_escaped() -> None:
    found = read_summary(
        rf"appId={APP},name=a\,b\=c\\d\ne,user=u,queue=root.q,state=FINISHED,finalStatus=UNDEFINED,startTime=5,"
        r"launchTime=0,finishTime=9,resourceSeconds=1 MB-seconds\, 2 vcore-seconds\, 3 yarn.io/gpu-seconds,diagnostics="
    )
    assert found.name == "a,b=c\\d\ne"
    assert (found.queue, found.state, found.final_status) == ("root.q", "FINISHED", "UNDEFINED")
    assert (found.submit_ms, found.start_ms, found.launch_ms, found.end_ms) == (None, 5, None, 9)
    assert found.gpu_seconds == 3
    assert found.diagnostics is None


def test_a_name_cannot_pose_as_another_field() -> None:
    found = read_summary(rf"appId={APP},name=x\,state\=KILLED,user=u,state=FAILED,finalStatus=FAILED")
    assert (found.name, found.state) == ("x,state=KILLED", "FAILED")


@pytest.mark.parametrize(
    "text",
    [
        f"appId={APP},name=x,state=FINISHED",  # cut off before finalStatus
        f"appId={APP},state=RUNNING,finalStatus=UNDEFINED",
        "appId=application_1_1,state=FAILED,finalStatus=FAILED",
        f"appId={APP},state=FAILED,finalStatus=FAILED,startTime=yesterday",
        f"appId={APP},name=x y,z,state=FAILED,finalStatus=FAILED",
        f"appId={APP},state=FAILED,finalStatus=FAILED\\",
    ],
)
def test_summaries_that_cannot_be_read(text: str) -> None:
    with pytest.raises(RowError):
        read_summary(text)


def test_audit_lines_with_tabs_and_with_blanks() -> None:
    tabs = f"USER=u\tIP=1.2.3.4\tOPERATION=AM Allocated Container\tTARGET=SchedulerApp\tRESULT=SUCCESS\tAPPID={APP}"
    blanks = tabs.replace("\t", "    ").replace("    TARGET", " TARGET")
    assert read_audit(tabs) == read_audit(blanks)
    assert read_audit(tabs)["OPERATION"] == "AM Allocated Container"


def test_user_text_in_an_audit_line_does_not_replace_fields() -> None:
    text = "USER=u\tOPERATION=Application Finished - Failed\tRESULT=FAILURE\tPERMISSIONS=x\tRESULT=SUCCESS\tAPPID=y"
    assert read_audit(text)["RESULT"] == "FAILURE"


def hour(day: int, hours: int = 0) -> datetime:
    return datetime(2021, 1, 1) + timedelta(days=day - 1, hours=hours)


def test_clock_without_evidence_is_the_zone_given() -> None:
    found = choose("Asia/Shanghai", [])
    assert (found.zone, found.assumed, found.quirk) == ("Asia/Shanghai", True, "zone_assumed")


def test_clock_that_agrees_with_the_zone_keeps_it_in_summer_and_winter() -> None:
    found = choose("Europe/Berlin", [(hour(10), 3600.1), (hour(180), 7200.4)])
    assert (found.zone, found.assumed, found.quirk) == ("Europe/Berlin", False, None)


def test_clock_that_disagrees_with_the_zone_is_taken_from_the_samples() -> None:
    found = choose("UTC", [(hour(10), 28800.05), (hour(20), 28799.9)])
    assert (found.zone, found.offsets, found.quirk) == (None, ((hour(10), 28800),), "zone_derived")
    changing = choose("UTC", [(hour(180), 7200.0), (hour(10), 3600.0), (hour(11), 3600.0)])
    assert changing.offsets == ((hour(10), 3600), (hour(180), 7200))


def test_samples_that_are_no_offset_are_passed_over() -> None:
    assert choose("UTC", [(hour(1), 400.0), (hour(1), 16 * 3600.0)]).assumed


def read(data: bytes) -> list[tuple[int, object, str | None]]:
    return [(i.line_no, i.value, i.fault) for i in items(io.BytesIO(data), ("app",), ("id",))]


def test_objects_however_they_are_wrapped() -> None:
    one = {"id": "x"}
    assert read(b'{"apps":{"app":[{"id":"x"},\n{"id":"x"}]}}') == [(1, one, None), (2, one, None)]
    assert read(b'{"apps":{"app":{"id":"x"}}}') == [(1, one, None)]
    assert read(b'[{"id":"x"},{"id":"x"}]') == [(1, one, None)] * 2
    assert read(b'{"id":"x"}\n{"id":"x"}') == [(1, one, None), (2, one, None)]
    assert read(b'{"apps":{"app":[{"id":"x"}]}}\n{"apps":{"app":[{"id":"x"}]}}') == [(1, one, None), (2, one, None)]
    assert read(b'\xef\xbb\xbf{"apps":{"app":[{"id":"x"}]}}') == [(1, one, None)]
    assert read(b'{"apps":null}') == []
    assert read(b'{"apps":{}}') == []
    assert read(b"") == []


def test_repeated_entries_are_stored_and_other_repeated_keys_are_not() -> None:
    assert read(b'[{"id":"x","m":{"entry":1,"entry":2,"entry":3},"n":1,"n":2}]') == [
        (1, {"id": "x", "m": {"entry": [1, 2, 3]}, "n": 2}, None)
    ]


def test_reading_continues_after_damage() -> None:
    damaged = b'{"apps":{"app":[{"id":"a"},{"id":"b",,"m":[{"k":1},{"k":2}]},{"id":"c"}]}}'
    assert read(damaged) == [(1, {"id": "a"}, None), (1, None, NOT_JSON), (1, {"id": "c"}, None)]


def test_cut_off_lists() -> None:
    assert [fault for *_, fault in read(b'{"apps":{"app":[{"id":"a"},{"id":"b')] == [None, CUT_OFF]
    assert [fault for *_, fault in read(b'{"apps":{"app":[{"id":"a"}')] == [None, NOT_CLOSED]
    assert [fault for *_, fault in read(b'{"apps":{"app":[{"id":"\xff"},{"id":"b"}]}}')] == [NOT_UTF8, None]


def test_objects_longer_than_one_read() -> None:
    long = b'{"id":"' + b"x" * 3_000_000 + b'"}'
    assert [fault for *_, fault in read(b'{"apps":{"app":[' + long + b"," + long + b"]}}")] == [None, None]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff{}", b'{"a":' + b"9" * 5000 + b"}"])
def test_whole_documents_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(InputError):
        whole(io.BytesIO(data))


def test_daemons() -> None:
    rm = b"2018-11-14 12:38:59,329 INFO org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppImpl: x\n"
    nm = b"18/08/22 07:21:56 INFO nodemanager.NMAuditLogger: x\n"
    summary = b"2018-11-14 12:38:59,329 INFO resourcemanager.RMAppManager$ApplicationSummary: appId=x\n"
    other = b"2018-11-14 12:38:59,329 INFO org.apache.hadoop.hdfs.server.namenode.NameNode: resourcemanager.\n"
    test_build = (
        b"2018-11-14 12:38:59,329 INFO  [main] rmcontainer.RMContainerImpl (RMContainerImpl.java:handle(380)) - x\n"
    )
    assert [daemon_of(text) for text in (rm, nm, summary, other, test_build, b"")] == [
        *("resourcemanager", "nodemanager", "summary", None, "resourcemanager", None)
    ]
    for layout in (
        b"38:59 INFO ",
        b"38:59,329 [main] INFO ",
        b"38:59,329 +0530 INFO  ",
        b"38:59Z [a b] WARN ",
        b"38:59 UTC INFO ",
    ):
        other_layout = [text.replace(b"38:59,329 INFO ", layout) for text in (rm, summary, other)]
        assert [daemon_of(text) for text in other_layout] == ["resourcemanager", "summary", None], layout
    assert daemon_of(rm + summary) == "resourcemanager"
    assert daemon_of(rm + nm + nm) == "nodemanager"
