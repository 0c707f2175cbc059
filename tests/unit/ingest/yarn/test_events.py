"""Machines that come and go, a ResourceManager that restarts, containers that are preempted or lost track of."""

from __future__ import annotations

import itertools
import json
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.yarn.events import Change, Event, machine_events
from tests.unit.ingest.yarn import cluster as y
from tests.unit.ingest.yarn.test_logs import ATTEMPTS, JOB

if TYPE_CHECKING:
    from pathlib import Path

NODE = f"{y.RM}.rmnode.RMNodeImpl"
EVENTS = "SELECT machine, from_ts, to_ts, state, reason FROM machine_events ORDER BY machine, from_ts"


def went(log: y.Log, seconds: float, old: str, new: str, node: str = "n2:8041") -> None:
    log.add(seconds, NODE, f"{node} Node Transitioned from {old} to {new}")


def ailing() -> y.Log:
    """n2 is unhealthy, lost, and back; n1 is always there."""
    log = y.rm_log([y.gang()])
    for node in ("n1:8041", "n2:8041"):
        went(log, 2, "NEW", "RUNNING", node)
    log.add(200, NODE, "Node n2:8041 reported UNHEALTHY with details: 1/1 local-dirs are bad: /data/yarn, full")
    went(log, 200.001, "RUNNING", "UNHEALTHY")
    went(log, 260, "UNHEALTHY", "LOST")
    went(log, 300, "NEW", "RUNNING", "n2:40001")
    went(log, 400, "RUNNING", "DECOMMISSIONED", "n1:8041")
    return log


WANTED = [
    ("n1", y.at(400), None, "DECOMMISSIONED", None),
    ("n2", y.at(200.001), y.at(260), "UNHEALTHY", "1/1 local-dirs are bad: /data/yarn, full"),
    ("n2", y.at(260), y.at(300), "LOST", None),
]


def test_machines_that_were_not_to_be_had(tmp_path: Path) -> None:
    db, (report,) = y.load(tmp_path, {"rm.log": ailing().text()})
    assert report.rows_rejected == 0
    assert y.frame(db, EVENTS).rows() == WANTED


def test_machine_events_of_pieces_and_of_a_clock_that_is_found_later(tmp_path: Path) -> None:
    lines = ailing().lines()
    cut = next(i for i, line in enumerate(lines) if b"UNHEALTHY to LOST" in line)
    later_first = {"rm.log": b"".join(lines[cut - 2 :]), "rm.log.1": b"".join(lines[:cut])}
    db, _ = y.load(tmp_path / "pieces", later_first)
    assert y.frame(db, EVENTS).rows() == WANTED
    ahead = y.rm_log([y.gang()], ahead_s=8 * 3600, summaries=False)
    ahead.add(200, NODE, "n2:8041 Node Transitioned from RUNNING to LOST")
    db, _ = y.load(tmp_path, {"rm.log": ahead.text(), "apps.json": y.rest_apps([y.gang()])})
    assert y.frame(db, EVENTS).rows() == [("n2", y.at(200), None, "LOST", None)]


def test_machine_events_of_a_log_that_grew(tmp_path: Path) -> None:
    lines = ailing().lines()
    log, db = tmp_path / "rm.log", tmp_path / "store.duckdb"
    for part in (lines[: len(lines) - 2], lines):
        log.write_bytes(b"".join(part))
        assert not ingest([log], db, cluster="c").failed
    assert y.frame(db, EVENTS).rows() == WANTED
    log.write_bytes(y.rm_log([y.gang()]).text())
    ingest([log], db, cluster="c")
    assert y.frame(db, EVENTS).rows() == []


def test_a_node_line_that_is_cut_off(tmp_path: Path) -> None:
    log = y.rm_log([y.gang()])
    log.add(200, NODE, "n2:8041 Node Transitioned from RUNNING to LO")
    _, (report,) = y.load(tmp_path, {"rm.log": log.text()})
    assert report.rows_rejected == 1


def test_events_do_not_depend_on_the_order_of_changes() -> None:
    changes = [
        Change(y.at(1), "a", "RUNNING", None, 1),
        Change(y.at(5), "a", None, "disk", 1),
        Change(y.at(5), "a", "UNHEALTHY", None, 2),
        Change(y.at(5), "a", "UNHEALTHY", None, 2),
        Change(y.at(6), "a", "UNHEALTHY", None, 3),
        Change(y.at(9), "a", "REBOOTED", None, 1),
        Change(y.at(9), "a", "RUNNING", None, 1),
        Change(y.at(30), "a", "LOST", None, 1),
    ]
    wanted = [
        Event("a", y.at(5), y.at(9), "UNHEALTHY", "disk", 2),
        Event("a", y.at(9), y.at(9), "REBOOTED", None, 1),
        Event("a", y.at(30), None, "LOST", None, 1),
    ]
    for order in itertools.islice(itertools.permutations(changes), 0, 40_320, 1009):
        assert machine_events(order) == wanted
    assert machine_events([*changes[:2], changes[2]._replace(ts=y.at(5) + timedelta(seconds=6))])[0].reason is None


def restarted() -> tuple[y.App, y.Log]:
    """One worker ran through a restart at 60 and still does; of two more that were handed out one came up after it."""
    app = y.running()
    app.attempts[0].containers += [
        y.Container(3, 50, None, None, "n1", 2),
        y.Container(4, 51, 70, None, "n2", 2),
    ]
    log = y.rm_log([app])
    log.add(1.5, f"{y.RM}.ResourceManager", "Transitioning to active state")
    log.add(55, f"{y.RM}.ResourceManager", "SHUTDOWN_MSG: ")
    log.add(60, f"{y.RM}.ResourceManager", "Transitioning to active state")
    log.add(65, f"{y.RM}.rmapp.RMAppImpl", f"{app.id} State change from NEW to ACCEPTED on event = RECOVER")
    return app, log


def test_records_that_a_restarted_resource_manager_lost(tmp_path: Path) -> None:
    app, log = restarted()
    lines = log.lines()
    cut = next(i for i, line in enumerate(lines) if b"SHUTDOWN_MSG" in line)
    for number, files in enumerate(([lines], [lines[cut:], lines[:cut]])):
        db, _ = y.load(tmp_path / str(number), {f"rm.log.{i}": b"".join(part) for i, part in enumerate(files)})
        rows = y.frame(db, "SELECT container, end_ts, reason FROM containers ORDER BY 1").rows()
        forgotten = (app.container_id(0, 3), y.at(60), "forgotten by a restarted ResourceManager")
        assert rows == [(app.container_id(0, n), None, None) if n != 3 else forgotten for n in (1, 2, 3, 4)]
        assert y.row(db, ATTEMPTS.format(4))["quirks"] == ["container_end_inferred"]


def test_audit_lines_alone_do_not_show_what_ran_and_so_not_what_was_forgotten(tmp_path: Path) -> None:
    log = y.rm_log([y.running()], states=False, modern=True)
    log.add(60, f"{y.RM}.ResourceManager", "Transitioning to active state")
    db, _ = y.load(tmp_path, {"rm.log": log.text()})
    assert set(y.frame(db, "SELECT end_ts FROM containers")["end_ts"]) == {None}


def test_without_a_restart_nothing_is_forgotten(tmp_path: Path) -> None:
    _, log = restarted()
    lines = [line for line in log.lines() if b"active state" not in line]
    db, _ = y.load(tmp_path, {"rm.log": b"".join(lines)})
    assert y.frame(db, "SELECT end_ts FROM containers WHERE end_ts IS NOT NULL").height == 0


def test_a_container_without_an_end_ends_with_its_attempt(tmp_path: Path) -> None:
    app = y.gang()
    lines = [
        line for line in y.rm_log([app]).lines() if app.container_id(0, 3).encode() not in line or b"ALLOC" in line
    ]
    db, _ = y.load(tmp_path, {"rm.log": b"".join(lines)})
    ends = y.frame(db, "SELECT end_ts, reason FROM containers ORDER BY container").rows()
    assert ends == [(y.at(135), None), (y.at(125), None), (y.at(130), "end not told: its attempt was over")]
    assert y.row(db, ATTEMPTS.format(1))["quirks"] == ["container_end_inferred"]


@pytest.mark.parametrize("master", [False, True])
def test_preempted_containers(tmp_path: Path, master: bool) -> None:
    app = y.retried()
    lost = app.attempts[0].containers[0 if master else 1]
    lost.word = "KILLED"
    entity = app.container_id(0, lost.number)
    log = y.rm_log([app])
    # the attempt itself is told to have ended with 137, by the lines that a preempted master does not have
    log.records = [(s, t) for s, t in log.records if "exit status: 137" not in t]
    text = f"current appAttemptId={app.attempt_id(0)}, containerId={entity}, resource=<memory:4096, vCores:2>"
    log.add(
        49, f"{y.RM}.rmapp.attempt.RMAppAttemptMetrics", f"{'' if master else 'Non-'}AM container preempted, {text}"
    )
    db, (report,) = y.load(tmp_path, {"rm.log": log.text()})
    assert report.rows_rejected == 0
    row = y.row(db, f"SELECT exit_code, reason FROM containers WHERE container = '{entity}'")
    assert row == {"exit_code": -102, "reason": "Container preempted by scheduler"}
    first = y.frame(db, ATTEMPTS.format(2)).row(0, named=True)
    assert first["state"] == ("preempted" if master else "failed")


def test_a_second_summary_after_a_restart(tmp_path: Path) -> None:
    app = y.gang()
    first = y.summary(app, modern=True) + ",diagnostics="
    second = first.replace(f"{app.gpu_seconds} yarn", "0 yarn") + "Attempt recovered after RM restart"
    bare = second + "a worker failed"
    jobs = []
    for number, lines in enumerate(((first, second), (bare, first), (first, bare))):
        db, _ = y.load(tmp_path / str(number), {f"{i}.log": (line + "\n").encode() for i, line in enumerate(lines)})
        together, _ = y.load(tmp_path, {f"{number}.log": "".join(line + "\n" for line in lines).encode()})
        job, same = y.row(db, JOB.format(1)), y.row(together, JOB.format(1))
        assert {**job, "source": 0} == {**same, "source": 0}
        jobs.append(job["reason"])
        together.unlink()
    assert jobs == [None, "a worker failed", "a worker failed"]


def held(gpus: int, app: y.App) -> dict[str, bytes]:
    """Answers of a ResourceManager that were taken while an application held so many GPUs."""
    answer = json.loads(y.rest_apps([app]))
    info = [{"name": "memory-mb", "value": 8}, {"name": "vcores", "value": 2}, {"name": "yarn.io/gpu", "value": gpus}]
    used = {"memory": 8, "vCores": 2, "resourceInformations": {"resourceInformation": info}}
    answer["apps"]["app"][0]["resourceInfo"] = {"resourceUsagesByPartition": [{"partitionName": "", "used": used}]}
    return {"apps.json": json.dumps(answer).encode(), "containers.json": y.ats_containers(app, live=True)}


def test_a_dump_in_the_middle_of_a_gang_shows_a_part(tmp_path: Path) -> None:
    early, late, over = y.running(), y.running(), y.running()
    late.attempts[0].containers.append(y.Container(3, 46, 47, None, "n2", 4))
    over.end, over.state, over.final = 200, "FINISHED", "SUCCEEDED"
    files = {
        f"{n}-{name}": data for n, (g, app) in enumerate(((4, early), (8, late))) for name, data in held(g, app).items()
    }
    files["over-apps.json"] = y.rest_apps([over])
    for gpus, names in ((4, ["0-apps.json", "0-containers.json", "over-apps.json"]), (8, [*reversed(files)])):
        db, _ = y.load(tmp_path / str(gpus), {name: files[name] for name in names})
        job = y.row(db, JOB.format(4))
        assert (job["gpus"], job["quirks"]) == (gpus, ["gpus_partial"])
    # what comes later tells of more; a log has all of it
    db, _ = y.load(tmp_path / "4", {name: files[name] for name in ("1-apps.json", "1-containers.json")})
    job = y.row(db, JOB.format(4))
    assert (job["gpus"], job["quirks"]) == (8, ["gpus_partial"])
    db, _ = y.load(tmp_path / "4", {"rm.log": y.rm_log([late]).text()})
    job = y.row(db, JOB.format(4))
    assert (job["gpus"], "gpus_partial" in job["quirks"]) == (8, False)


def test_a_master_alone_in_a_dump_is_no_gang(tmp_path: Path) -> None:
    app = y.running()
    del app.attempts[0].containers[1:]
    db, _ = y.load(tmp_path, held(0, app))
    attempt = y.row(db, ATTEMPTS.format(4))
    assert (attempt["gpus"], attempt["quirks"], y.row(db, JOB.format(4))["gpus"]) == (None, ["start_is_am"], None)


def test_no_gpu_seconds_of_what_ended_before_it_got_any(tmp_path: Path) -> None:
    gpus_of = {"SUCCEEDED": 0, "KILLED": None, "FAILED": None, "UNDEFINED": None}
    apps = [
        y.App(
            k,
            10,
            [y.Attempt([y.Container(1, 12, 13, 99)], 100)],
            100,
            "KILLED" if final == "KILLED" else "FINISHED",
            final,
        )
        for k, final in enumerate(gpus_of)
    ]
    for name, data in (("apps.json", y.rest_apps(apps)), ("rm.log", y.rm_log(apps, modern=True).text())):
        db, _ = y.load(tmp_path / name, {name: data})
        for table in ("jobs", "attempts"):
            assert y.frame(db, f"SELECT gpus FROM {table} ORDER BY job")["gpus"].to_list() == [*gpus_of.values()]


def amounts(gpus: int) -> dict[str, Any]:
    rows = [
        {"name": "memory-mb", "value": 1024},
        {"name": "vcores", "value": 4},
        {"name": "yarn.io/gpu", "value": gpus},
    ]
    return {"memory": 1024, "vCores": 4, "resourceInformations": {"resourceInformation": rows}}


def nodes_of_2_10() -> bytes:
    base = {"rack": "/r1", "state": "RUNNING", "usedResource": amounts(3)}
    names = (("n1", 5), ("n2", 65))
    nodes = [
        {"nodeHostName": n, "lastHealthUpdate": y.millis(s), "availableResource": amounts(5), **base} for n, s in names
    ]
    return json.dumps({"nodes": {"node": nodes}}).encode()


def test_nodes_of_2_10_have_what_is_used_and_what_is_free(tmp_path: Path) -> None:
    db, _ = y.load(tmp_path, {"nodes.json": nodes_of_2_10()})
    rows = y.frame(db, "SELECT machine, gpus, cpus, mem_mb FROM machines ORDER BY 1").rows()
    assert rows == [("n1", 8, 8, 2048), ("n2", 8, 8, 2048)]
    # both were in use when the answer was given, which was no earlier than the last look at any machine's health
    samples = y.frame(db, "SELECT ts, machine, gpus_used FROM machine_samples ORDER BY machine").rows()
    assert samples == [(y.at(65), "n1", 3.0), (y.at(65), "n2", 3.0)]


def set_up(queue: str, share: str, most: str) -> str:
    """What a ResourceManager's log says of a leaf queue when it starts."""
    return (
        f"Initializing {queue}\ncapacity = 0.5 [= (float) configuredCapacity / 100 ]\n"
        f"absoluteCapacity = {share} [= parentAbsoluteCapacity * capacity ]\n"
        f"maxCapacity = 1.0 [= configuredMaxCapacity ]\nabsoluteMaxCapacity = {most} [= 1.0 maximumCapacity undefined, "
        "(parentAbsoluteMaxCapacity * maximumCapacity) / 100 otherwise ]\nabsoluteUsedCapacity = 0.9 [= x ]"
    )


def log_with_queues(*texts: str) -> bytes:
    log = y.rm_log([y.gang()])
    for text in texts:
        log.add(0.5, f"{y.RM}.scheduler.capacity.LeafQueue", text)
    return log.text()


QUEUES = "SELECT queue, quota_gpus, limit_gpus, quota_source FROM queues ORDER BY 1"


@pytest.mark.parametrize(
    ("name", "names"), [("gpu", ("nodes.json", "rm.log")), ("root.prod.gpu", ("rm.log", "nodes.json"))]
)
def test_a_log_shows_the_shares_of_queues(tmp_path: Path, name: str, names: tuple[str, ...]) -> None:
    """2.x names a leaf queue by the last part of its path, as it does a job's; 3.x in full."""
    log = log_with_queues(set_up(name, "0.375", "0.5"), set_up("elsewhere", "0.5", "1.0")).replace(
        b"in queue: gpu", f"in queue: {name}".encode()
    )
    db, _ = y.load(tmp_path, {n: {"nodes.json": nodes_of_2_10(), "rm.log": log}[n] for n in names})
    quotas = {row[0]: row[1:] for row in y.frame(db, QUEUES).rows()}
    assert quotas[name] == (6.0, 8.0, "configured")
    assert "elsewhere" not in quotas, "no job is in it"


def updated(queue: str, share: str, most: str) -> str:
    """What Hadoop 3 says of a leaf queue whenever a machine comes or goes."""
    return (
        f"LeafQueue: {queue} update max app related, maxApplications=2000, maxApplicationsPerUser=2000, "
        f"Abs Cap:{share}, Cap: 0.5, MaxCap : {most}"
    )


NO_SHARE = (None, None, None)
SHARES: dict[str, tuple[list[str], tuple[float | None, float | None, str | None]]] = {
    # rotated: the log does not go back to the start
    "a": ([updated("root.a", "0.375", "0.5")], (6.0, 8.0, "configured")),
    # the most is a share of the parent's: what the start said of all counts
    "b": ([set_up("root.b", "0.375", "0.5"), updated("root.b", "0.375", "0.75")], (6.0, 8.0, "configured")),
    "c": ([updated("root.c", "0.375", "1.0")], (6.0, float("inf"), "configured")),
    "d": ([updated("root.d", "0.0", "0.0")], NO_SHARE),
    # as Hadoop 2.6 spells it
    "e": ([set_up("root.e", "0.25", "0.5").replace("absoluteCapacity", "asboluteCapacity")], (4.0, 8.0, "configured")),
    "f": ([set_up("root.f", "0.25", "1.0")], (4.0, float("inf"), "configured")),
    "g": (["Initializing root.g"], NO_SHARE),
    "h": (["Initializing SchedulingMonitor=x\nabsoluteCapacity = 0.5 [= x ]\nand more"], NO_SHARE),
    "i": ([set_up("root.i", "0.0", "1.0")], NO_SHARE),
    "j": ([set_up("root.j", "NaN", "NaN")], NO_SHARE),
    "k": ([set_up("root.k", "7", "7")], NO_SHARE),
}


def test_a_log_shows_shares_in_many_words_and_what_is_none(tmp_path: Path) -> None:
    apps = [y.App(k, 10, [y.Attempt([])], None, "ACCEPTED", queue=f"root.{q}") for k, q in enumerate(SHARES)]
    log = y.rm_log(apps)
    for texts, _ in SHARES.values():
        for text in texts:
            log.add(0.5, f"{y.RM}.scheduler.capacity.LeafQueue", text)
    db, _ = y.load(tmp_path, {"nodes.json": nodes_of_2_10(), "rm.log": log.text()})
    assert y.frame(db, QUEUES).rows() == [(f"root.{name}", *expected) for name, (_, expected) in SHARES.items()]


def test_half_a_line_of_shares_is_rejected(tmp_path: Path) -> None:
    log = log_with_queues(updated("root.gpu", "0.375", "0.5")[:-12], "LeafQueue: something else")
    db, _ = y.load(tmp_path, {"rm.log": log})
    assert y.frame(db, "SELECT rows_rejected FROM sources").item() == 1
    assert "LeafQueue line" in y.frame(db, "SELECT reason FROM rejects").item()


def test_shares_of_2_10_are_quotas_of_the_gpus_that_are_there_and_a_dump_counts_more_than_a_log(tmp_path: Path) -> None:
    leaf = {"queueName": "gpu", "capacity": 75.0, "absoluteCapacity": 37.5, "absoluteMaxCapacity": 75.0}
    prod = {"queueName": "prod", "capacity": 50.0, "absoluteCapacity": 50.0, "queues": {"queue": [leaf]}}
    info = {"type": "capacityScheduler", "queueName": "root", "capacity": 100.0, "queues": {"queue": [prod]}}
    files = {
        "scheduler.json": json.dumps({"scheduler": {"schedulerInfo": info}}).encode(),
        "nodes.json": nodes_of_2_10(),
        "rm.log": log_with_queues(set_up("gpu", "0.5", "1.0")),
    }
    one, two, three = files
    # each of them comes last once
    for names in ((one, two, three), (two, three, one), (three, one, two)):
        db, _ = y.load(tmp_path / names[0], {name: files[name] for name in names})
        assert y.frame(db, QUEUES).rows() == [
            ("root", 16.0, None, "configured"),
            ("root.prod", 8.0, None, "configured"),
            ("root.prod.gpu", 6.0, 12.0, "configured"),
        ], names
    alone, _ = y.load(tmp_path / "alone", {"scheduler.json": files["scheduler.json"]})
    assert set(y.frame(alone, QUEUES)["quota_gpus"]) == {None}


def test_a_node_managers_log_without_its_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = y.nm_log([y.gang()], "n1").lines()
    with caplog.at_level(logging.WARNING):
        db, _ = y.load(tmp_path, {"nm.log": b"".join(lines[1:])})
    assert "2 containers of a NodeManager's log" in caplog.text
    assert set(y.frame(db, "SELECT machine FROM containers")["machine"]) == {None}


def test_a_node_manager_that_registers_late_ran_on_one_machine(tmp_path: Path) -> None:
    lines = y.nm_log([y.gang()], "n1").lines()
    db, _ = y.load(tmp_path, {"nm.log": b"".join([*lines[1:], lines[0]])})
    assert set(y.frame(db, "SELECT machine FROM containers")["machine"]) == {"n1"}
