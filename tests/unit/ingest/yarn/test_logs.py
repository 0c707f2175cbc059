"""What becomes of a made-up cluster's logs: jobs, attempts, gangs, placements."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.pipeline.load import ingest
from tests.unit.ingest.yarn import cluster as y

if TYPE_CHECKING:
    from pathlib import Path

JOB = "SELECT * FROM jobs WHERE job LIKE '%_{:04}'"
ATTEMPTS = "SELECT * FROM attempts WHERE job LIKE '%_{:04}' ORDER BY attempt"


@pytest.mark.parametrize(("modern", "console"), [(False, True), (True, False)])
def test_a_gang_over_two_machines(tmp_path: Path, modern: bool, console: bool) -> None:
    log = y.rm_log([y.gang()], modern=modern, console=console).text()
    db, (report,) = y.load(tmp_path, {"rm.log": log})
    assert (report.format, report.rows_rejected) == ("yarn-rm-log", 0)
    job = y.row(db, JOB.format(1))
    assert (job["submit_ts"], job["start_ts"], job["end_ts"]) == (y.at(10), y.at(40), y.at(130))
    assert (job["state"], job["source_state"], job["gpus"], job["nodes"]) == ("completed", "FINISHED/SUCCEEDED", 4, 2)
    assert (job["user"], job["queue"], job["name"], job["attempts"], job["wait_s"]) == ("ada", "gpu", "train", 1, 30)
    assert (job["run_span_s"], job["quirks"]) == (90, [])
    attempt = y.row(db, ATTEMPTS.format(1))
    assert (attempt["am_start_ts"], attempt["first_container_ts"], attempt["start_ts"]) == (
        y.at(12),
        y.at(15),
        y.at(40),
    )
    assert (attempt["queued_ts"], attempt["wait_s"], attempt["servers"], attempt["gpus"]) == (y.at(10), 30, 2, 4)
    assert attempt["released_ts"] == y.at(128)  # its last worker's end, not the master's
    placed = y.frame(db, "SELECT machine, gpus FROM placements ORDER BY machine")
    assert placed.rows() == [("n1", 2.0), ("n2", 2.0)]
    assert y.frame(db, "SELECT machine, gpus, cpus FROM machines ORDER BY 1").rows() == [("n1", 8, 32), ("n2", 8, 32)]


def test_an_application_that_ends_as_it_starts_ran_for_0_s(tmp_path: Path) -> None:
    containers = [y.Container(1, 12, 13, 20), y.Container(2, 20, 20, 20, "n1", 1)]
    log = y.rm_log([y.App(1, 10, [y.Attempt(containers, 20)], 20)]).text()
    db, _ = y.load(tmp_path, {"rm.log": log})
    job = y.row(db, JOB.format(1))
    assert (job["start_ts"], job["end_ts"], job["run_span_s"]) == (y.at(20), y.at(20), 0)


def test_retries_are_attempts(tmp_path: Path) -> None:
    db, _ = y.load(tmp_path, {"rm.log": y.rm_log([y.retried()]).text()})
    first, second = y.frame(db, ATTEMPTS.format(2)).rows(named=True)
    assert (first["state"], first["exit_code"], first["queued_ts"], first["end_ts"]) == (
        "failed",
        137,
        y.at(20),
        y.at(49),
    )
    assert (second["queued_ts"], second["start_ts"], second["wait_s"], second["state"]) == (
        y.at(49),
        y.at(70),
        21,
        "failed",
    )
    job = y.row(db, JOB.format(2))
    assert (job["state"], job["source_state"], job["attempts"], job["run_sum_s"]) == (
        "failed",
        "FINISHED/FAILED",
        2,
        44,
    )
    assert job["name"] == "a,b=c\\d\nnew"


def test_why_a_master_failed(tmp_path: Path) -> None:
    states = {-102: "preempted", -100: "node_fail", -104: "out_of_memory", 1: "failed"}
    apps = [dataclasses.replace(y.retried(), seq=seq) for seq in range(len(states))]
    log = y.rm_log(apps).text()
    for code in states:
        log = log.replace(b"FAILED, and exit status: 137", b"FAILED, and exit status: %d" % code, 1)
    db, _ = y.load(tmp_path, {"rm.log": log})
    found = y.frame(db, "SELECT state FROM attempts WHERE attempt = 0 ORDER BY job")
    assert found["state"].to_list() == [*states.values()]


def test_what_waits_and_what_runs(tmp_path: Path) -> None:
    db, _ = y.load(tmp_path, {"rm.log": y.rm_log([y.waiting(), y.running()]).text()})
    waits, runs = y.row(db, JOB.format(3)), y.row(db, JOB.format(4))
    assert (waits["state"], waits["start_ts"], waits["gpus"], waits["source_state"]) == (
        "pending",
        None,
        None,
        "ACCEPTED",
    )
    assert (runs["state"], runs["start_ts"], runs["end_ts"], runs["gpus"]) == ("running", y.at(44), None, 4)
    attempt = y.row(db, ATTEMPTS.format(4))
    assert (attempt["state"], attempt["released_ts"], attempt["run_s"]) == ("running", None, None)


def test_success_is_never_taken_from_the_audit_log(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()], summaries=False).text()
    assert b"Application Finished - Succeeded" in log
    db, _ = y.load(tmp_path, {"rm.log": log})
    job = y.row(db, JOB.format(1))
    assert (job["state"], job["source_state"]) == ("unknown", "FINISHED")


def test_the_audit_log_alone_shows_the_gang(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()], modern=True, states=False, assigned=False, summaries=False).text()
    db, _ = y.load(tmp_path, {"rm.log": log})
    job = y.row(db, JOB.format(1))
    assert (job["gpus"], job["user"], job["queue"], job["nodes"]) == (4, "ada", "gpu", 2)
    assert abs((job["start_ts"] - y.at(40)).total_seconds()) < 0.1


def test_gpus_are_unknown_if_no_size_is_reported(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()], assigned=False, summaries=False).text()
    db, _ = y.load(tmp_path, {"rm.log": log})
    assert y.row(db, JOB.format(1))["gpus"] is None
    assert y.row(db, ATTEMPTS.format(1))["gpus"] is None
    assert y.frame(db, "SELECT * FROM placements").height == 0


def test_which_containers_are_the_gang(tmp_path: Path) -> None:
    none, changing, helped, alone, master, epoch = apps = [dataclasses.replace(y.gang(), seq=k) for k in range(6)]
    for c in none.attempts[0].containers:
        c.gpus = 0
    late = y.Container(4, 126, 127, 129, "n2", 2)  # takes the place of the first worker
    unused = y.Container(5, 16, None, 17, "n3", 2, "RELEASED")  # given back before it ran
    changing.attempts[0].containers += [late, unused]
    helped.attempts[0].containers.append(y.Container(4, 100, 101, 125, "n3", 0))
    alone.attempts[0].containers[:] = [y.Container(1, 12, 13, 135, "n1", 1)]
    master.attempts[0].containers[0].gpus = 1
    epoch.epoch = "e02_"
    db, _ = y.load(tmp_path, {"rm.log": y.rm_log(apps).text()})
    assert y.frame(db, "SELECT gpus FROM jobs ORDER BY job")["gpus"].to_list() == [0, 4, 4, 1, 5, 4]
    found = y.frame(db, "SELECT start_ts, gpus, servers, released_ts, first_container_ts FROM attempts ORDER BY job")
    of = found.rows(named=True)
    assert of[0]["servers"] == 2
    # those that were there before the first member left
    assert (of[1]["start_ts"], of[1]["gpus"], of[1]["servers"], of[1]["released_ts"]) == (y.at(40), 4, 2, y.at(129))
    # workers without GPUs do not make it
    assert of[2]["start_ts"] == y.at(40)
    # a master may compute by itself
    assert (of[3]["start_ts"], of[3]["gpus"], of[3]["first_container_ts"]) == (y.at(12), 1, None)
    # its GPUs count, but it is not waited for
    assert (of[4]["start_ts"], of[4]["gpus"]) == (y.at(40), 5)
    assert y.row(db, f"SELECT sum(gpus) AS gpus FROM placements WHERE job = '{master.id}'")["gpus"] == 5
    held = dict(y.frame(db, "SELECT job, list(container) FROM containers GROUP BY job").rows())
    assert len(held[changing.id]) == 5
    assert all(container.startswith("container_e02_") for container in held[epoch.id])


def test_numbers_of_containers_restart_after_a_restart(tmp_path: Path) -> None:
    app = y.gang()
    log = y.rm_log([app])
    log.records = [
        (s, t.replace(app.container_id(0, 3), f"container_e01_{y.START}_0001_01_000001")) for s, t in log.records
    ]
    db, _ = y.load(tmp_path, {"rm.log": log.text()})
    masters = y.frame(db, "SELECT container FROM containers WHERE is_master")["container"].to_list()
    assert masters == [app.container_id(0, 1)]
    assert y.row(db, JOB.format(1))["gpus"] == 4


def test_an_attempt_without_workers_does_not_show_the_size(tmp_path: Path) -> None:
    app = y.retried()
    del app.attempts[0].containers[1]
    db, _ = y.load(tmp_path, {"rm.log": y.rm_log([app]).text()})
    job = y.row(db, JOB.format(2))
    assert (job["gpus"], job["quirks"], job["attempts"]) == (1, [], 2)
    # 0 would count it among those that wanted no GPUs
    assert y.frame(db, ATTEMPTS.format(2))["gpus"].to_list() == [None, 1]


def test_recovery_after_a_restart_shows_no_times(tmp_path: Path) -> None:
    log = y.Log()
    app = y.gang()
    log.add(500, f"{y.RM}.rmapp.RMAppImpl", f"{app.id} State change from NEW to ACCEPTED on event = RECOVER")
    log.add(
        501,
        f"{y.RM}.rmapp.attempt.RMAppAttemptImpl",
        f"{app.attempt_id(0)} State change from NEW to LAUNCHED on event = RECOVER",
    )
    db, _ = y.load(tmp_path, {"rm.log": log.text()})
    assert y.row(db, JOB.format(1))["submit_ts"] is None


def test_old_allocation_line_shows_host_and_size(tmp_path: Path) -> None:
    app = y.gang()
    log = y.rm_log([app], audit=False, assigned=False)
    log.records = [r for r in log.records if "NMToken" not in r[1]]
    for c in app.attempts[0].containers:
        entity = app.container_id(0, c.number)
        text = (
            f"assignedContainer application={app.id} container=Container: [ContainerId: {entity}, "
            f"NodeId: {c.host}:8041, NodeHttpAddress: {c.host}:8042, Resource: {y.resource(c)}, Priority: 1, "
            f"Token: null, ] queue=gpu: capacity=1.0"
        )
        log.add(c.allocated, f"{y.RM}.scheduler.capacity.LeafQueue", text)
    db, (report,) = y.load(tmp_path, {"rm.log": log.text()})
    assert report.rows_rejected == 0
    assert (y.row(db, JOB.format(1))["gpus"], y.row(db, JOB.format(1))["nodes"]) == (4, 2)


def test_broken_lines_are_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    broken = [
        b"container_1700000000000_0001_01_00 Container Transitioned from NEW to ALLOCATED",
        b"container_1700000000000_0001_01_000009 Container Transitioned from NEW to ALLOC",
        b"application_1700000000000_0001 State change from NEW to NEW_SAV",
        b"appattempt_x State change from NEW to SUBMITTED",
        b"application_1700000000000_0001 State change from NEW to NEW_SAVING2018-11-14 12:38:59,329 INFO x: y",
        b"Assigned container container_1700000000000_0001_01_000009 of capacity <memory:1",
        b"USER=u\tOPERATION=AM Allocated Container\tTARGET=S\tRESULT=SUCCESS\tAPPID=x\tCONTAINERID=container_17",
        b"USER=u\tOPERAT",
        b"appId=application_1700000000000_0001,name=x",
        b"Accepted application application_1700000000000_0001 from user",
        b"update the launch time for applicationId: application_1700000000000_0001, attempt",
        b"NodeManager from node n1(cmPort: 1",
    ]
    lines = b"".join(b"2023-11-14 22:14:00,000 INFO %s.X: %s\n" % (y.RM.encode(), text) for text in broken)
    log = y.rm_log([y.gang()]).text()
    db, (report,) = y.load(tmp_path, {"rm.log": log + lines})
    assert report.rows_rejected == len(broken)
    assert y.frame(db, "SELECT line_no FROM rejects ORDER BY 1")["line_no"][0] == log.count(b"\n") + 1
    assert (y.row(db, JOB.format(1))["gpus"], y.frame(db, "SELECT * FROM containers").height) == (4, 3)


def test_nodemanager_logs_alone(tmp_path: Path) -> None:
    apps = [y.gang(), y.retried()]
    files = {f"nm-{host}.log": y.nm_log(apps, host).text() for host in ("n1", "n2")}
    db, reports = y.load(tmp_path, files)
    assert {r.format for r in reports} == {"yarn-nm-log"}
    rows = y.frame(db, "SELECT machine, exit_code FROM containers WHERE job LIKE '%_0002' ORDER BY container").rows()
    assert rows == [("n1", 0), ("n1", 137), ("n1", 0), ("n2", 1)]
    job = y.row(db, JOB.format(1))
    assert (job["state"], job["gpus"], job["nodes"], job["submit_ts"]) == ("unknown", None, 2, None)
    assert y.frame(db, "SELECT gpus FROM machines").rows() == [(8,), (8,)]


def test_times_are_shifted_by_the_offset_that_summaries_show(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()], ahead_s=8 * 3600).text()
    db, _ = y.load(tmp_path, {"rm.log": log})
    job = y.row(db, JOB.format(1))
    assert (job["submit_ts"], job["start_ts"], job["wait_s"], job["quirks"]) == (
        y.at(10),
        y.at(40),
        30,
        ["zone_derived"],
    )


def test_times_are_in_the_given_zone_if_nothing_shows_another(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()], ahead_s=8 * 3600, summaries=False).text()
    db, _ = y.load(tmp_path, {"rm.log": log}, timezone="Asia/Shanghai")
    job = y.row(db, JOB.format(1))
    assert (job["start_ts"], job["quirks"]) == (y.at(40), ["zone_assumed"])


@pytest.mark.parametrize("origin", ["launch", "number of the id"])
def test_times_are_moved_by_epoch_times_without_a_summary(tmp_path: Path, origin: str) -> None:
    """The launch time in a line of 3.x; the number in application ids, when the ResourceManager became active."""
    log = y.rm_log([y.gang()], ahead_s=5.5 * 3600, summaries=False, modern=origin == "launch")
    if origin != "launch":
        log.add(0.002, f"{y.RM}.ResourceManager", "Transitioning to active state")
    db, _ = y.load(tmp_path, {"rm.log": log.text()})
    job = y.row(db, JOB.format(1))
    assert (job["start_ts"], job["quirks"]) == (y.at(40), ["zone_derived"])


def test_a_log_whose_records_state_their_zone_needs_no_other(tmp_path: Path) -> None:
    text = y.rm_log([y.gang()], ahead_s=9 * 3600, summaries=False).text()
    zoned = re.sub(rb"(?m)^(\d{4}-.{18}) ", rb"\1 +0900 ", text)
    assert zoned.count(b" +0900 ") > 20
    db, _ = y.load(tmp_path, {"rm.log": zoned})
    job = y.row(db, JOB.format(1))
    assert (job["submit_ts"], job["start_ts"], job["quirks"]) == (y.at(10), y.at(40), [])


def test_a_zone_that_is_assumed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "rm.log").write_bytes(y.rm_log([y.gang()], summaries=False).text())
    warnings = [
        ingest([tmp_path / "rm.log"], tmp_path / f"{name}.duckdb", cluster="c", timezone=zone).warnings
        for name, zone in (("a", None), ("b", "UTC"))
    ]
    assert [
        "names no time zone, and nothing in it states one: its times are read as UTC" in str(w) for w in warnings
    ] == [
        True,
        False,
    ]


def test_a_zone_that_is_confirmed_needs_no_remark(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()], ahead_s=8 * 3600).text()
    db, _ = y.load(tmp_path, {"rm.log": log}, timezone="Asia/Shanghai")
    assert y.row(db, JOB.format(1))["quirks"] == []
    assert y.row(db, JOB.format(1))["start_ts"] == y.at(40)


def test_the_clock_is_found_across_files(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()], ahead_s=8 * 3600, summaries=False).text()
    node = y.nm_log([y.gang()], "n2", ahead_s=8 * 3600).text()
    db, _ = y.load(tmp_path, {"rm.log": log, "nm.log": node, "rm-appsummary.log": y.summary_log([y.gang()])})
    assert y.row(db, JOB.format(1))["start_ts"] == y.at(40)
    span = y.row(db, "SELECT first_ts, last_ts FROM clusters")
    assert (span["first_ts"], span["last_ts"]) == (y.at(10), y.at(130))


def test_reservations_are_no_containers(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()])
    reserved = f"{y.gang().container_id(0, 9)} Container Transitioned from NEW to RESERVED"
    log.add(20, f"{y.RM}.rmcontainer.RMContainerImpl", reserved)
    db, (report,) = y.load(tmp_path, {"rm.log": log.text()})
    assert report.rows_rejected == 0
    assert y.frame(db, "SELECT * FROM containers").height == 3
