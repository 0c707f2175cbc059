"""A small YARN cluster made up by us, written down in the ways that YARN's versions and interfaces write it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import polars as pl

START = 1_700_000_000_000
"""2023-11-14 22:13:20 UTC, in milliseconds since 1970."""
RM = "org.apache.hadoop.yarn.server.resourcemanager"
NM = "org.apache.hadoop.yarn.server.nodemanager"


@dataclass
class Container:
    """One container; times are seconds since `START`, None: not (yet)."""

    number: int
    allocated: float
    running: float | None
    end: float | None
    host: str = "n1"
    gpus: int = 0
    word: str = "COMPLETED"
    exit_code: int = 0
    mem_mb: int = 4096
    cpus: int = 2


@dataclass
class Attempt:
    """One attempt; the container with number 1 is its master."""

    containers: list[Container]
    end: float | None = None
    state: str = "FINISHED"


@dataclass
class App:
    """One application."""

    seq: int
    submit: float
    attempts: list[Attempt]
    end: float | None = None
    state: str = "FINISHED"
    final: str = "SUCCEEDED"
    user: str = "ada"
    queue: str = "gpu"
    name: str = "train"
    epoch: str = ""
    diagnostics: str = ""
    seen: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"application_{START}_{self.seq:04}"

    def attempt_id(self, nth: int) -> str:
        return f"appattempt_{START}_{self.seq:04}_{nth + 1:06}"

    def container_id(self, nth: int, number: int) -> str:
        return f"container_{self.epoch}{START}_{self.seq:04}_{nth + 1:02}_{number:06}"

    @property
    def gpu_seconds(self) -> int:
        held = ((c.end or 0) - c.allocated for a in self.attempts for c in a.containers for _ in range(c.gpus))
        return round(sum(held))


def gang() -> App:
    """Two workers of two GPUs on two machines; the second comes 25 s after the first; submitted at 10, over at 130."""
    workers = [Container(2, 15, 16, 125, "n1", 2), Container(3, 40, 41, 128, "n2", 2)]
    return App(1, 10, [Attempt([Container(1, 12, 13, 135), *workers], 130)], 130)


def retried() -> App:
    """Its first master is lost with its machine; the second attempt runs on one GPU and fails."""
    first = Attempt([Container(1, 21, 22, 50), Container(2, 25, 26, 51, "n1", 1, "KILLED", 137)], 49, "FAILED")
    second = Attempt([Container(1, 60, 61, 95), Container(2, 70, 71, 89, "n2", 1, exit_code=1)], 90)
    return App(2, 20, [first, second], 90, final="FAILED", name="a,b=c\\d\nnew", queue="batch", user="bob")


def waiting() -> App:
    """Still waits for its master."""
    return App(3, 33, [Attempt([])], None, "ACCEPTED", "UNDEFINED")


def running() -> App:
    """Runs on four GPUs of one machine."""
    return App(
        4,
        40,
        [Attempt([Container(1, 41, 42, None), Container(2, 44, 45, None, "n3", 4)])],
        None,
        "RUNNING",
        "UNDEFINED",
    )


def everything() -> list[App]:
    """All of the above."""
    return [gang(), retried(), waiting(), running()]


def millis(seconds: float) -> int:
    """Seconds since `START` as milliseconds since 1970."""
    return START + round(seconds * 1000)


def at(seconds: float) -> datetime:
    """Seconds since `START` as a time."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis(seconds))


def resource(c: Container) -> str:
    """As 3.1 and later write it; GPUs only where there are any."""
    return f"<memory:{c.mem_mb}, vCores:{c.cpus}{f', yarn.io/gpu: {c.gpus}' if c.gpus else ''}>"


class Log:
    """Records of one log, sorted by time when they are written."""

    def __init__(self, *, ahead_s: float = 0, console: bool = False) -> None:
        self.records: list[tuple[float, str]] = []
        self._ahead = ahead_s
        self._console = console

    def add(self, seconds: float, logger: str, message: str, level: str = "INFO") -> None:
        stamp = at(seconds + self._ahead)
        if self._console:
            self.records.append(
                (seconds, f"{stamp:%y/%m/%d %H:%M:%S} {level} {logger.rpartition('.')[2]}: {message}\n")
            )
        else:
            self.records.append(
                (seconds, f"{stamp:%Y-%m-%d %H:%M:%S},{stamp.microsecond // 1000:03} {level} {logger}: {message}\n")
            )

    def lines(self) -> list[bytes]:
        return [text.encode() for _, text in sorted(self.records, key=lambda r: r[0])]

    def text(self) -> bytes:
        return b"".join(self.lines())


def rm_log(
    apps: Iterable[App],
    *,
    ahead_s: float = 0,
    console: bool = False,
    modern: bool = False,
    assigned: bool = True,
    audit: bool = True,
    states: bool = True,
    summaries: bool = True,
) -> Log:
    """A ResourceManager's log; `modern` is 3.x: events in state lines, RESOURCE in audit lines, launch times."""
    log = Log(ahead_s=ahead_s, console=console)
    log.add(0, f"{RM}.ResourceManager", "STARTUP_MSG: \n/*****\nSTARTUP_MSG:   host = rm/10.0.0.1\n*****/")
    log.add(1, "org.apache.hadoop.ipc.Server", "IPC Server listener on 8032: starting")
    for app in apps:
        _rm_app(log, app, modern=modern, audit=audit, states=states)
        for nth, attempt in enumerate(app.attempts):
            for c in attempt.containers:
                _rm_container(log, app, nth, c, modern=modern, audit=audit, states=states, assigned=assigned)
        if summaries and app.end is not None:
            log.add(app.end + 6, f"{RM}.RMAppManager$ApplicationSummary", summary(app, modern=modern))
    return log


def _rm_app(log: Log, app: App, *, modern: bool, audit: bool, states: bool) -> None:
    def change(seconds: float, entity: str, old: str, new: str, event: str) -> None:
        if states:
            what = "RMAppImpl" if entity.startswith("application") else "attempt.RMAppAttemptImpl"
            tail = f" on event = {event}" if modern else ""
            log.add(seconds, f"{RM}.rmapp.{what}", f"{entity} State change from {old} to {new}{tail}")

    if audit:
        base = f"USER={app.user}\tIP=1.2.3.4\tOPERATION=Submit Application Request\tTARGET=ClientRMService"
        tail = f"\tQUEUENAME={app.queue}" if modern else ""
        log.add(app.submit + 0.001, f"{RM}.RMAuditLogger", f"{base}\tRESULT=SUCCESS\tAPPID={app.id}{tail}")
    change(app.submit, app.id, "NEW", "NEW_SAVING", "START")
    change(app.submit + 0.002, app.id, "NEW_SAVING", "SUBMITTED", "APP_NEW_SAVED")
    if states:
        queue = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
        log.add(
            app.submit + 0.003, queue, f"Accepted application {app.id} from user: {app.user}, in queue: {app.queue}"
        )
    change(app.submit + 0.004, app.id, "SUBMITTED", "ACCEPTED", "APP_ACCEPTED")
    for nth, attempt in enumerate(app.attempts):
        entity = app.attempt_id(nth)
        if not attempt.containers:
            continue
        master = attempt.containers[0].allocated
        change(master + 0.001, entity, "SCHEDULED", "ALLOCATED_SAVING", "CONTAINER_ALLOCATED")
        change(master + 0.3, entity, "ALLOCATED", "LAUNCHED", "LAUNCHED")
        if modern and nth == 0:
            text = f"update the launch time for applicationId: {app.id}, attemptId: {entity}launchTime: "
            log.add(master + 0.301, f"{RM}.rmapp.RMAppImpl", text + str(millis(master + 0.3)))
        change(master + 2, entity, "LAUNCHED", "RUNNING", "REGISTERED")
        if nth == 0:
            change(master + 2.001, app.id, "ACCEPTED", "RUNNING", "ATTEMPT_REGISTERED")
        if attempt.end is not None:
            code = 137 if attempt.state == "FAILED" else -1000
            if states:
                text = (
                    f"Updating application attempt {entity} with final state: {attempt.state}, and exit status: {code}"
                )
                log.add(attempt.end, f"{RM}.rmapp.attempt.RMAppAttemptImpl", text)
            change(attempt.end, entity, "RUNNING", "FINAL_SAVING", "UNREGISTERED")
            change(attempt.end + 6, entity, "FINAL_SAVING", attempt.state, "CONTAINER_FINISHED")
    if app.end is not None:
        change(app.end, app.id, "RUNNING", "FINAL_SAVING", "ATTEMPT_UNREGISTERED")
        change(app.end + 6, app.id, "FINISHING", app.state, "ATTEMPT_FINISHED")
        word = {"FINISHED": "Succeeded", "FAILED": "Failed", "KILLED": "Killed"}[app.state]
        if audit:
            base = f"USER={app.user}\tOPERATION=Application Finished - {word}\tTARGET=RMAppManager"
            log.add(app.end + 6, f"{RM}.RMAuditLogger", f"{base}\tRESULT=SUCCESS\tAPPID={app.id}")


def _rm_container(
    log: Log, app: App, nth: int, c: Container, *, modern: bool, audit: bool, states: bool, assigned: bool
) -> None:
    entity = app.container_id(nth, c.number)

    def transition(seconds: float, old: str, new: str) -> None:
        if states:
            log.add(
                seconds, f"{RM}.rmcontainer.RMContainerImpl", f"{entity} Container Transitioned from {old} to {new}"
            )

    def audited(seconds: float, operation: str) -> None:
        if audit:
            base = f"USER={app.user}\tOPERATION={operation}\tTARGET=SchedulerApp\tRESULT=SUCCESS\tAPPID={app.id}"
            tail = f"\tRESOURCE={resource(c)}\tQUEUENAME={app.queue}" if modern else ""
            log.add(seconds, f"{RM}.RMAuditLogger", f"{base}\tCONTAINERID={entity}{tail}")

    transition(c.allocated, "NEW", "ALLOCATED")
    audited(c.allocated + 0.001, "AM Allocated Container")
    if assigned:
        text = (
            f"Assigned container {entity} of capacity {resource(c)} on host {c.host}:8041, which has 1 containers, "
            f"{resource(c)} used and <memory:60000, vCores:30, yarn.io/gpu: {8 - c.gpus}> available after allocation"
        )
        log.add(c.allocated + 0.001, f"{RM}.scheduler.SchedulerNode", text)
    else:
        text = f"Sending NMToken for nodeId : {c.host}:8041 for container : {entity}"
        log.add(c.allocated + 0.01, f"{RM}.security.NMTokenSecretManagerInRM", text)
    transition(c.allocated + 0.02, "ALLOCATED", "ACQUIRED")
    if c.running is not None:
        transition(c.running, "ACQUIRED", "RUNNING")
    if c.end is not None:
        transition(c.end, "RUNNING" if c.running is not None else "ACQUIRED", c.word)
        audited(c.end + 0.001, "AM Released Container")


def summary(app: App, *, modern: bool = True) -> str:
    """The message of an ApplicationSummary line."""

    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=").replace("\n", "\\n")

    submit = f"submitTime={millis(app.submit) - 120}," if modern else ""
    masters = [a.containers[0].allocated + 0.3 for a in app.attempts if a.containers]
    launch = f"launchTime={millis(masters[0]) if masters else 0}," if modern else ""
    tail = (
        f",resourceSeconds=100 MB-seconds\\, 10 vcore-seconds\\, {app.gpu_seconds} yarn.io/gpu-seconds"
        if modern
        else ""
    )
    return (
        f"appId={app.id},name={escape(app.name)},user={app.user},queue={app.queue},state={app.state},"
        f"trackingUrl=http://rm:8088/proxy/{app.id}/,appMasterHost=n1,{submit}startTime={millis(app.submit)},{launch}"
        f"finishTime={millis(app.end or 0)},finalStatus={app.final},memorySeconds=100,vcoreSeconds=10,"
        f"preemptedResources=<memory:0\\, vCores:0>,applicationType=YARN{tail}"
    )


def summary_log(apps: Iterable[App], *, modern: bool = True, ahead_s: float = 0) -> bytes:
    """An ``rm-appsummary.log``."""
    log = Log(ahead_s=ahead_s)
    for app in apps:
        if app.end is not None:
            log.add(app.end + 6, "resourcemanager.RMAppManager$ApplicationSummary", summary(app, modern=modern))
    return log.text()


def rest_apps(apps: Iterable[App]) -> bytes:
    """An answer of ``/ws/v1/cluster/apps``, with the repeated keys that YARN's maps have."""
    rows = []
    for app in apps:
        masters = [(nth, a.containers[0]) for nth, a in enumerate(app.attempts) if a.containers]
        over = app.end is not None
        row: dict[str, Any] = {
            "id": app.id,
            "user": app.user,
            "name": app.name,
            "queue": app.queue,
            "state": app.state,
            "finalStatus": app.final,
            "diagnostics": app.diagnostics or "null",
            "startedTime": millis(app.submit),
            "launchTime": millis(masters[0][1].allocated + 0.3) if masters else 0,
            "finishedTime": millis(app.end) if app.end is not None else 0,
            "runningContainers": -1 if over else 2,
        }
        if masters:
            nth, master = masters[-1]
            row["amContainerLogs"] = (
                f"http://{master.host}:8042/node/containerlogs/{app.container_id(nth, 1)}/{app.user}"
            )
            row["amHostHttpAddress"] = f"{master.host}:8042"
        text = json.dumps(row)
        if over:
            pairs = [("memory-mb", 100), ("vcores", 10), ("yarn.io/gpu", app.gpu_seconds)]
            entries = ",".join(f'"entry":{{"key":"{key}","value":"{value}"}}' for key, value in pairs)
            text = f'{text[:-1]},"resourceSecondsMap":{{{entries}}}}}'
        rows.append(text)
    return f'{{"apps":{{"app":[{",".join(rows)}]}}}}'.encode()


def ats_containers(app: App, nth: int = 0, *, gpus: bool = True, live: bool = False) -> bytes:
    """An answer of ``/ws/v1/applicationhistory/apps/APP/appattempts/ATTEMPT/containers``.

    With `live` it is the ResourceManager's, which has the same shape: of the containers that are held.
    """
    state = {"containerState": "RUNNING"} if live else {}
    rows = [
        {
            "containerId": app.container_id(nth, c.number),
            "allocatedMB": c.mem_mb,
            "allocatedVCores": c.cpus,
            "assignedNodeId": f"{c.host}:8041",
            "startedTime": millis(c.allocated),
            "finishedTime": millis(c.end) if c.end is not None else 0,
            "diagnosticsInfo": "",
            "containerExitStatus": c.exit_code if c.end is not None else -1000,
            **({"containerState": "COMPLETE"} if c.end is not None else state),
            **({"allocatedResources": {"entry": [{"key": "yarn.io/gpu", "value": c.gpus}]}} if gpus else {}),
        }
        for c in app.attempts[nth].containers
        if not live or c.end is None
    ]
    return json.dumps({"container": rows}).encode()


def ats_apps(apps: Iterable[App]) -> bytes:
    """An answer of ``/ws/v1/applicationhistory/apps``."""
    rows = [
        {
            "appId": app.id,
            "currentAppAttemptId": app.attempt_id(len(app.attempts) - 1),
            "user": app.user,
            "name": app.name,
            "queue": app.queue,
            "type": "YARN",
            "appState": app.state,
            "finalAppStatus": app.final,
            "submittedTime": millis(app.submit),
            "startedTime": millis(app.submit),
            "finishedTime": millis(app.end) if app.end is not None else 0,
            "diagnosticsInfo": app.diagnostics,
        }
        for app in apps
    ]
    return json.dumps({"app": rows}).encode()


def nm_log(apps: Iterable[App], host: str, *, ahead_s: float = 0) -> Log:
    """A NodeManager's log."""
    log = Log(ahead_s=ahead_s)
    text = f"Registered with ResourceManager as {host}:8041 with total resource of "
    log.add(2, f"{NM}.NodeStatusUpdaterImpl", text + "<memory:64096, vCores:32, yarn.io/gpu: 8>")
    for app in apps:
        for nth, attempt in enumerate(app.attempts):
            for c in attempt.containers:
                if c.host == host and c.running is not None:
                    _nm_container(log, app, app.container_id(nth, c.number), c)
    return log


def _nm_container(log: Log, app: App, entity: str, c: Container) -> None:
    base = (
        f"USER={app.user}\tIP=10.0.0.2\tOPERATION=Start Container Request\tTARGET=ContainerManageImpl\tRESULT=SUCCESS"
    )
    log.add(c.allocated + 0.2, f"{NM}.NMAuditLogger", f"{base}\tAPPID={app.id}\tCONTAINERID={entity}")
    logger = f"{NM}.containermanager.container.ContainerImpl"
    log.add((c.running or 0) - 0.1, logger, f"Container {entity} transitioned from LOCALIZED to RUNNING")
    if c.end is not None:
        word = "EXITED_WITH_FAILURE" if c.exit_code else "EXITED_WITH_SUCCESS"
        if c.exit_code:
            code = f"Exit code from container {entity} is : {c.exit_code}"
            log.add(c.end - 0.5, f"{NM}.DefaultContainerExecutor", code, "WARN")
        else:
            log.add(c.end - 0.5, f"{NM}.containermanager.launcher.ContainerLaunch", f"Container {entity} succeeded ")
        log.add(c.end - 0.4, logger, f"Container {entity} transitioned from RUNNING to {word}")


def load(folder: Path, files: Mapping[str, bytes], **options: Any) -> tuple[Path, list[Any]]:
    """Ingest some files, each by itself and in the order given, into one store; returns it and the reports."""
    db = folder / "store.duckdb"
    reports = []
    for name, data in files.items():
        path = folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        report = ingest([path], db, cluster="c", **options)
        assert not report.failed
        reports += report.sources
    return db, reports


def frame(db: Path, sql: str) -> pl.DataFrame:
    """The rows of a query."""
    with Store(db) as store:
        return store.frame(sql)


def row(db: Path, sql: str) -> dict[str, Any]:
    """The one row of a query."""
    found = frame(db, sql)
    assert found.height == 1, found
    return found.row(0, named=True)
