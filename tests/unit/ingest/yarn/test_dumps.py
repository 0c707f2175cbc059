"""REST answers, timeline dumps and summary files."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.ingest.yarn import cluster as y
from tests.unit.ingest.yarn.test_logs import ATTEMPTS, JOB

if TYPE_CHECKING:
    from pathlib import Path


def test_rest_gives_gpus_of_finished_applications_by_gpu_seconds(tmp_path: Path) -> None:
    app = y.App(1, 10, [y.Attempt([y.Container(1, 11.7, 13, 132), y.Container(2, 16, 17, 1300, "n1", 4)], 1300)], 1300)
    db, (report,) = y.load(tmp_path, {"apps.json": y.rest_apps([app])})
    assert (report.format, report.rows_in, report.rows_rejected) == ("yarn-rest-apps", 1, 0)
    job = y.row(db, JOB.format(1))
    assert (job["submit_ts"], job["start_ts"], job["end_ts"]) == (y.at(10), y.at(12), y.at(1300))
    assert (job["state"], job["gpus"], job["attempts"]) == ("completed", 4, 1)
    assert sorted(job["quirks"]) == ["gpus_estimated", "start_is_am"]
    assert y.row(db, ATTEMPTS.format(1))["quirks"] == ["start_is_am", "gpus_estimated"]
    assert y.row(db, "SELECT container, machine, is_master FROM containers") == {
        "container": app.container_id(0, 1),
        "machine": "n1",
        "is_master": True,
    }


def test_gpus_that_came_and_went_are_not_estimated(tmp_path: Path) -> None:
    app = y.App(1, 10, [y.Attempt([y.Container(1, 11.7, 13, 132), y.Container(2, 70, 71, 1150, "n1", 4)], 1300)], 1300)
    db, _ = y.load(tmp_path, {"apps.json": y.rest_apps([app])})
    assert y.row(db, JOB.format(1))["gpus"] is None


def test_gpus_of_short_applications_are_not_estimated(tmp_path: Path) -> None:
    app = y.App(1, 10, [y.Attempt([y.Container(1, 11.7, 13, 132), y.Container(2, 12, 13, 130, "n1", 4)], 130)], 130)
    db, _ = y.load(tmp_path, {"apps.json": y.rest_apps([app])})
    assert y.row(db, JOB.format(1))["gpus"] is None


def test_rest_of_an_attempt_that_is_not_the_first(tmp_path: Path) -> None:
    db, _ = y.load(tmp_path, {"apps.json": y.rest_apps([y.retried()])})
    first, second = y.frame(db, ATTEMPTS.format(2)).rows(named=True)
    assert (first["state"], second["state"], second["end_ts"]) == ("failed", "failed", y.at(90))


def test_rest_of_open_applications(tmp_path: Path) -> None:
    db, _ = y.load(tmp_path, {"apps.json": y.rest_apps([y.waiting(), y.running()])})
    waits, runs = y.row(db, JOB.format(3)), y.row(db, JOB.format(4))
    assert (waits["state"], waits["end_ts"], waits["source_state"], waits["attempts"]) == (
        "pending",
        None,
        "ACCEPTED",
        0,
    )
    assert (runs["state"], runs["source_state"], runs["gpus"]) == ("running", "RUNNING", None)


def test_gpus_that_a_running_application_holds(tmp_path: Path) -> None:
    answer = json.loads(y.rest_apps([y.running()]))
    info = [{"name": "memory-mb", "value": 8}, {"name": "vcores", "value": 2}, {"name": "yarn.io/gpu", "value": 4}]
    used = {"memory": 8, "vCores": 2, "resourceInformations": {"resourceInformation": info}}
    usages = [{"partitionName": "", "used": used}]
    answer["apps"]["app"][0]["resourceInfo"] = {"resourceUsagesByPartition": usages}
    db, _ = y.load(tmp_path, {"apps.json": json.dumps(answer).encode()})
    assert y.row(db, JOB.format(4))["gpus"] == 4


def test_a_later_dump_states_how_it_ended(tmp_path: Path) -> None:
    open_app = y.running()
    over = y.running()
    over.end, over.state, over.final = 200, "FINISHED", "SUCCEEDED"
    over.attempts[0].end = 200
    for number, files in enumerate(([open_app, over], [over, open_app])):
        folder = tmp_path / str(number)
        folder.mkdir()
        db, _ = y.load(folder, {f"apps{i}.json": y.rest_apps([app]) for i, app in enumerate(files)})
        job = y.row(db, JOB.format(4))
        assert (job["state"], job["source_state"], job["end_ts"]) == ("completed", "FINISHED/SUCCEEDED", y.at(200))


def test_empty_answers(tmp_path: Path) -> None:
    db, reports = y.load(tmp_path, {"a.json": b'{"apps":null}', "b.json": b'{"nodes":null}'})
    assert [(r.format, r.rows_in) for r in reports] == [("yarn-rest-apps", 0), ("yarn-rest-nodes", 0)]
    assert y.frame(db, "SELECT * FROM jobs").height == 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"id": "job_1"}, "not an id of an application, attempt or container (line cut off?)"),
    ({"id": 3}, "no id or no state of an application"),
    ({"state": "HAPPY"}, "an unknown YARN state"),
    ({"startedTime": "yesterday"}, "a time is not milliseconds since 1970"),
    ({"startedTime": 1e300}, "a time is not milliseconds since 1970"),
]


def test_applications_that_cannot_be_read(tmp_path: Path) -> None:
    answer = json.loads(y.rest_apps([y.gang(), *(dataclasses.replace(y.running(), seq=k) for k in range(10, 15))]))
    for app, (change, _) in zip(answer["apps"]["app"][1:], WRONG, strict=True):
        app.update(change)
    db, (report,) = y.load(tmp_path, {"apps.json": json.dumps(answer).encode()})
    assert dict(report.reasons) == Counter(reason for _, reason in WRONG)
    found = y.frame(db, "SELECT reason FROM rejects ORDER BY line_no")["reason"].to_list()
    assert found == [reason for _, reason in WRONG]
    assert y.frame(db, "SELECT job FROM jobs")["job"].to_list() == [y.gang().id]


def test_text_that_no_store_takes(tmp_path: Path) -> None:
    answer = y.rest_apps([y.gang()]).replace(b'"train"', rb'"\ud800\u0000x"')
    db, (report,) = y.load(tmp_path, {"apps.json": answer})
    assert report.rows_rejected == 0
    assert y.row(db, JOB.format(1))["name"] == "?\0x"


def test_nodes_with_gpus(tmp_path: Path) -> None:
    def amounts(gpus: int) -> dict[str, Any]:
        rows = [
            {"name": "memory-mb", "value": 65536},
            {"name": "vcores", "value": 32},
            {"name": "yarn.io/gpu", "value": gpus},
        ]
        return {"memory": 65536, "vCores": 32, "resourceInformations": {"resourceInformation": rows}}

    node = {"id": "n1:8041", "nodeHostName": "n1", "rack": "/r1", "state": "RUNNING", "lastHealthUpdate": y.millis(5)}
    lost = {"id": "n2:8041", "nodeHostName": "n2", "rack": "/r2", "state": "LOST", "lastHealthUpdate": 0}
    nodes = [node | {"totalResource": amounts(8), "usedResource": amounts(3), "nodeLabels": ["b", "a"]}, lost]
    db, (report,) = y.load(tmp_path, {"nodes.json": json.dumps({"nodes": {"node": nodes}}).encode()})
    assert (report.format, report.rows_in) == ("yarn-rest-nodes", 2)
    rows = y.frame(db, "SELECT machine, rack, gpus, cpus, mem_mb, partition FROM machines ORDER BY 1").rows()
    assert rows == [("n1", "/r1", 8, 32, 65536, "a,b"), ("n2", "/r2", None, None, None, None)]
    samples = y.frame(db, "SELECT ts, machine, gpus_used, state FROM machine_samples ORDER BY machine").rows()
    assert samples == [(y.at(5), "n1", 3.0, "RUNNING"), (y.at(5), "n2", None, "LOST")]


def capacity_scheduler() -> bytes:
    def queue(name: str, gpus: float | None, **more: Any) -> dict[str, Any]:
        least = {"memory": 1, "vCores": 1}
        if gpus is not None:
            least["resourceInformations"] = {"resourceInformation": [{"name": "yarn.io/gpu", "value": gpus}]}  # type: ignore[assignment]
        parts = [{"partitionName": "", "effectiveMinResource": least}]
        return {"queueName": name, "capacities": {"queueCapacitiesByPartition": parts}, **more}

    children = {"queue": [queue("gpu", 12), queue("batch", 4)]}
    info = queue("root", 16, queues={"queue": [queue("prod", 16, queues=children), queue("cpu", None)]})
    return json.dumps({"scheduler": {"schedulerInfo": {"type": "capacityScheduler", **info}}}).encode()


def test_queues_of_the_capacity_scheduler(tmp_path: Path) -> None:
    db, (report,) = y.load(tmp_path, {"scheduler.json": capacity_scheduler()})
    assert (report.format, report.rows_in) == ("yarn-rest-scheduler", 5)
    rows = y.frame(db, "SELECT queue, parent, quota_gpus, quota_source FROM queues ORDER BY 1").rows()
    assert rows == [
        ("root", None, 16.0, "configured"),
        ("root.cpu", "root", None, None),
        ("root.prod", "root", 16.0, "configured"),
        ("root.prod.batch", "root.prod", 4.0, "configured"),
        ("root.prod.gpu", "root.prod", 12.0, "configured"),
    ]


def test_queues_with_shares_of_node_labels(tmp_path: Path) -> None:
    """A queue's guarantee is the sum over labels of its share of the machines with that label."""

    def queue(name: str, **shares: tuple[float, float]) -> dict[str, Any]:
        parts = [
            {"partitionName": label, "absoluteCapacity": own, "absoluteMaxCapacity": most}
            for label, (own, most) in (("", shares["none"]), *((k, v) for k, v in shares.items() if k != "none"))
        ]
        own, most = shares["none"]
        found: dict[str, Any] = {"capacities": {"queueCapacitiesByPartition": parts}, "queueName": name}
        return found | {"absoluteCapacity": own, "absoluteMaxCapacity": most}

    leaves = [queue("prod", none=(75, 100), v100=(25, 50)), queue("lab", none=(25, 25), v100=(75, 100))]
    info = {"type": "capacityScheduler", "queueName": "root", "capacity": 100.0, "queues": {"queue": leaves}}
    node = {"nodeHostName": "n1", "usedGPUs": 0, "availableGPUs": 8, "state": "RUNNING"}
    nodes = [node, node | {"nodeHostName": "n2", "availableGPUs": 4, "nodeLabels": ["v100"]}]
    files = {
        "nodes.json": json.dumps({"nodes": {"node": nodes}}).encode(),
        "scheduler.json": json.dumps({"scheduler": {"schedulerInfo": info}}).encode(),
    }
    db, _ = y.load(tmp_path, files)
    rows = y.frame(db, "SELECT queue, quota_gpus, limit_gpus FROM queues WHERE queue <> 'root' ORDER BY 1").rows()
    assert rows == [("root.lab", 2.0 + 3.0, 2.0 + 4.0), ("root.prod", 6.0 + 1.0, 8.0 + 2.0)]


def test_queues_of_the_fair_scheduler(tmp_path: Path) -> None:
    leaf = {"queueName": "root.users.ada", "steadyFairResources": {"memory": 1, "vCores": 1, "GPUs": 2}}
    users = {"queueName": "root.users", "childQueues": {"queue": leaf}}
    info = {"type": "fairScheduler", "rootQueue": {"queueName": "root", "childQueues": {"queue": [users]}}}
    db, _ = y.load(tmp_path, {"scheduler.json": json.dumps({"scheduler": {"schedulerInfo": info}}).encode()})
    rows = y.frame(db, "SELECT queue, parent, quota_gpus FROM queues ORDER BY 1").rows()
    assert rows == [("root", None, None), ("root.users", "root", None), ("root.users.ada", "root.users", 2.0)]


def test_timeline_of_a_gang(tmp_path: Path) -> None:
    app = y.gang()
    db, reports = y.load(tmp_path, {"apps.json": y.ats_apps([app]), "containers.json": y.ats_containers(app)})
    assert [(r.format, r.rows_in, r.rows_rejected) for r in reports] == [("yarn-ats", 1, 0), ("yarn-ats", 3, 0)]
    job = y.row(db, JOB.format(1))
    assert (job["state"], job["source_state"], job["gpus"], job["nodes"]) == ("completed", "FINISHED/SUCCEEDED", 4, 2)
    assert (job["start_ts"], job["wait_s"], job["quirks"]) == (y.at(40), 30, [])
    assert y.row(db, "SELECT count(*) AS n FROM placements")["n"] == 2


def test_reservations_that_the_timeline_lists_as_begun(tmp_path: Path) -> None:
    app = y.gang()
    app.attempts[0].containers.append(y.Container(4, 14, None, None, "n3", 2))
    files = {"apps.json": y.ats_apps([app]), "containers.json": y.ats_containers(app)}
    db, _ = y.load(tmp_path, files)
    assert y.row(db, JOB.format(1))["gpus"] == 4
    # it may as well have been handed out and forgotten when the ResourceManager restarted
    rows = y.frame(db, "SELECT container, end_ts, reason FROM containers WHERE reason IS NOT NULL").rows()
    assert rows == [
        (app.container_id(0, 4), y.at(130), "never ended: only reserved, or forgotten by the ResourceManager")
    ]
    assert y.row(db, ATTEMPTS.format(1))["quirks"] == ["container_end_inferred"]


def test_zero_gpus_of_an_ended_container_mean_nothing(tmp_path: Path) -> None:
    # the timeline server of 3.5 writes 0 for containers that had GPUs
    app = y.gang()
    files = {
        "apps.json": y.ats_apps([app]),
        "containers.json": y.ats_containers(app).replace(b'"value": 2', b'"value": 0'),
    }
    db, _ = y.load(tmp_path, files)
    assert y.row(db, JOB.format(1))["gpus"] is None


def test_a_gang_of_which_one_member_is_of_unknown_size(tmp_path: Path) -> None:
    app = y.gang()
    files = {
        "apps.json": y.ats_apps([app]),
        "containers.json": y.ats_containers(app).replace(b'"value": 2', b'"value": 0', 1),
    }
    db, _ = y.load(tmp_path, files)
    job = y.row(db, JOB.format(1))
    assert (job["gpus"], job["nodes"], job["start_ts"]) == (None, 2, y.at(40))


def test_times_as_text(tmp_path: Path) -> None:
    # the ResourceManager of 2.10 writes all numbers of a container as text
    app = y.gang()
    data = json.loads(y.ats_containers(app, gpus=False))
    for container in data["container"]:
        container |= {key: str(value) for key, value in container.items() if isinstance(value, int)}
    db, (report,) = y.load(tmp_path, {"containers.json": json.dumps(data).encode()})
    assert report.rows_rejected == 0
    rows = y.frame(db, "SELECT cpus, mem_mb, end_ts FROM containers ORDER BY container").rows()
    assert rows[1] == (2, 4096, y.at(125))


def test_timeline_without_gpus_in_it(tmp_path: Path) -> None:
    app = y.gang()
    files = {"apps.json": y.ats_apps([app]), "containers.json": y.ats_containers(app, gpus=False)}
    db, _ = y.load(tmp_path, files)
    assert y.row(db, JOB.format(1))["gpus"] is None


def test_attempts_of_the_timeline_and_of_the_resource_manager(tmp_path: Path) -> None:
    app = y.retried()
    timeline = {"appAttemptId": app.attempt_id(0), "appAttemptState": "FAILED", "amContainerId": app.container_id(0, 2)}
    manager = {"id": 2, "appAttemptId": app.attempt_id(1), "startTime": y.millis(60), "finishedTime": y.millis(90)}
    manager["containerId"] = app.container_id(1, 1)
    files = {
        "a.json": json.dumps({"appAttempt": [timeline]}).encode(),
        "b.json": json.dumps({"appAttempts": {"appAttempt": [manager]}}).encode(),
    }
    db, reports = y.load(tmp_path, files)
    assert [r.rows_rejected for r in reports] == [0, 0]
    first, second = y.frame(db, ATTEMPTS.format(2)).rows(named=True)
    assert (first["source_state"], second["end_ts"]) == ("FAILED", y.at(90))
    masters = y.frame(db, "SELECT container FROM containers WHERE is_master ORDER BY 1")["container"].to_list()
    assert masters == [app.container_id(0, 2), app.container_id(1, 1)]


@pytest.mark.parametrize("modern", [False, True])
def test_summary_files(tmp_path: Path, modern: bool) -> None:
    data = y.summary_log([y.gang(), y.retried()], modern=modern)
    db, (report,) = y.load(tmp_path, {"rm-appsummary.log": data})
    assert (report.format, report.rows_in, report.rows_rejected) == ("yarn-app-summary", 2, 0)
    job = y.row(db, JOB.format(2))
    assert (job["name"], job["state"], job["submit_ts"]) == ("a,b=c\\d\nnew", "failed", y.at(20))
    assert y.row(db, JOB.format(1))["quirks"] == (["start_is_am"] if modern else [])


def test_single_summary_lines_without_a_date(tmp_path: Path) -> None:
    data = f"{y.summary(y.gang())}\n\nnonsense\n{y.summary(y.retried())}".encode()
    db, (report,) = y.load(tmp_path, {"lines.txt": data})
    assert (report.format, report.rows_in, report.rows_rejected) == ("yarn-app-summary", 3, 1)
    assert y.row(db, "SELECT line_no FROM rejects")["line_no"] == 3
