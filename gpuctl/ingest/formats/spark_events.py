"""Spark: event logs (``spark.eventLog.enabled``), an application with its executors and their GPUs.

A row of the ledger is an event, one a line; nothing is read of those about tasks, stages and SQL. An application of
YARN is described as one: what its ResourceManager's logs state counts first. Any other one (standalone, Kubernetes) is
a job whose attempts are the times between changes of its executors. Executors hold what was requested for them by their
resource profile, from when they registered with the driver until they were removed, or else until the application
ended; the driver's own GPUs are not counted. ``SparkListenerApplicationEnd`` has an exit code since Spark 4.1. Without
it, the outcome is that of the application's last job, which is inferred. Times count milliseconds since 1970.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.core.states import State
from gpuctl.ingest.batch.run_records import Record, RunRecords, run_of
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.yarn import facts as f
from gpuctl.ingest.yarn.ids import container_id, is_application
from gpuctl.ingest.yarn.merge import refresh
from gpuctl.ingest.yarn.resources import is_gpu, number_of, text_of, whole_of
from gpuctl.ingest.yarn.summary import diagnosis

NAME = "spark-events"
_LINE_LIMIT = 16 * 2**20
_EVENT = re.compile(rb'\{"Event":"(?:org\.apache\.spark\.[\w.$]{1,100}\.)?(\w{5,80})"[,}]', re.ASCII)
"""An event as Spark writes it: finds those that are not read without decoding them."""
_SIGN = re.compile(rb'"Event"\s{0,4}:\s{0,4}"SparkListener')
_CONTAINER = re.compile(r"/(container_\w{10,80})(?:/|$)", re.ASCII)
_READ = frozenset(
    f"SparkListener{name}"
    for name in (
        *("LogStart", "ResourceProfileAdded", "EnvironmentUpdate", "ApplicationStart", "ApplicationEnd"),
        *("ExecutorAdded", "ExecutorRemoved", "JobEnd"),
    )
)
_NOT_AN_EVENT = "not an event of Spark: expected a JSON object with the name of an Event"
_NO_START = "no SparkListenerApplicationStart before it, so that its application is not known"
_RESIZED = "executors changed"


@dataclass
class _Executor:
    """An executor: times in milliseconds since 1970."""

    host: str | None
    cores: int | None
    gpus: float | None
    container: str | None
    added: int
    removed: int | None = None
    reason: str | None = None


@dataclass
class _App:
    """An application as far as its events are read."""

    job: str
    attempt: int | None
    name: str | None
    user: str | None
    queue: str | None
    submit: int | None
    last_attempt: bool
    line: tuple[int, str]
    end: int | None = None
    exit_code: int | None = None
    succeeded: bool | None = None
    reason: str | None = None
    executors: dict[str, _Executor] = field(default_factory=dict)
    gone: list[_Executor] = field(default_factory=list)

    def all(self) -> list[_Executor]:
        """Executors by when they were added."""
        return sorted([*self.gone, *self.executors.values()], key=lambda one: one.added)

    def state(self) -> State:
        """Its state by its exit code, or else by its last job."""
        if self.end is None:
            return State.RUNNING
        if self.exit_code is not None:
            return State.COMPLETED if self.exit_code == 0 else State.FAILED
        if self.succeeded is None:
            return State.UNKNOWN
        return State.COMPLETED if self.succeeded else State.FAILED


class _Span(NamedTuple):
    """A time without changes: milliseconds since 1970, GPUs on each host (None: not known)."""

    since: int
    until: int | None
    gpus: float | None
    placed: dict[str, float]
    hosts: int
    cores: int | None


class _Log:
    """Takes the events of a file.

    Args:
        sink: takes the rows.
    """

    def __init__(self, sink: Sink) -> None:
        self._facts = f.Facts(sink)
        self._records = RunRecords(sink, NAME, reused=False)
        self._sink = sink
        self._app: _App | None = None
        self._properties: dict[str, Any] = {}
        self._profiles: dict[int, float] = {}
        self._early: list[dict[str, Any]] = []
        self.apps = 0

    def take(self, kind: str, event: dict[str, Any], line: tuple[int, str]) -> bool:
        """Take an event; return whether it stands for the row of an application.

        Raises:
            RowError: it lacks what such an event has.
        """
        if kind == "SparkListenerApplicationStart":
            return self._start(event, line)
        if kind == "SparkListenerLogStart":
            self.flush()
            self._properties, self._profiles, self._early = {}, {}, []
        elif kind == "SparkListenerEnvironmentUpdate":
            properties = event.get("Spark Properties")
            self._properties = properties if isinstance(properties, dict) else {}
        elif kind == "SparkListenerResourceProfileAdded":
            self._profile(event)
        elif self._app is None and kind == "SparkListenerExecutorAdded":
            # in local mode the driver is an executor, and is there first
            self._early.append(event)
        elif self._app is None:
            raise RowError(_NO_START)
        else:
            _within(self._app, kind, event, self._gpus)
        return False

    def _start(self, event: dict[str, Any], line: tuple[int, str]) -> bool:
        job, attempt = text_of(event.get("App ID")), whole_of(event.get("App Attempt ID"))
        if job is None or not job.isprintable():
            raise RowError("no App ID")
        started = _millis(event, "Timestamp")
        if self._app is not None and (self._app.job, self._app.attempt) == (job, attempt):
            return False
        self.flush()
        most = whole_of(self._properties.get("spark.yarn.maxAppAttempts"))
        self._app = _App(
            job,
            attempt,
            text_of(event.get("App Name")),
            text_of(event.get("User")),
            text_of(self._properties.get("spark.yarn.queue")),
            f.epoch_millis(self._properties.get("spark.app.submitTime")),
            attempt is None or attempt == most,
            line,
        )
        if self._app.submit is not None and self._app.submit > started:
            self._app.submit = None
        self.apps += 1
        for early in self._early:
            _within(self._app, "SparkListenerExecutorAdded", early, self._gpus)
        self._early = []
        return not is_application(job)

    def _profile(self, event: dict[str, Any]) -> None:
        requests = event.get("Executor Resource Requests")
        number = whole_of(event.get("Resource Profile Id"))
        if number is None or not isinstance(requests, dict):
            raise RowError("a resource profile without its id or its requests")
        amounts = [number_of(one.get("Amount")) for name, one in requests.items() if is_gpu(name) and type(one) is dict]
        self._profiles[number] = _amount(sum(amount or 0.0 for amount in amounts))

    def _gpus(self, info: dict[str, Any]) -> float | None:
        """GPUs of an executor: what its profile requests, else the property, else the addresses that it found.

        On YARN without isolation an executor finds all GPUs of its node.
        """
        profile = whole_of(info.get("Resource Profile Id")) or 0
        if profile in self._profiles:
            return self._profiles[profile]
        stated = [
            v for k, v in self._properties.items() if re.fullmatch(r"spark\.executor\.resource\.gpus?\.amount", k)
        ]
        if stated and (amount := number_of(stated[0])) is not None:
            return _amount(amount)
        found = info.get("Resources")
        if not isinstance(found, dict):
            return None
        addresses = [one.get("addresses") for name, one in found.items() if is_gpu(name) and isinstance(one, dict)]
        return float(sum(len(each) for each in addresses if isinstance(each, list)))

    def flush(self) -> None:
        """Write the application at hand, if there is one."""
        app, self._app = self._app, None
        if app is None:
            return
        if is_application(app.job):
            _of_yarn(app, self._facts)
            self._facts.flush()
        else:
            self._records.add(_record(app), *app.line)

    def finish(self) -> None:
        """Write all that is left.

        Raises:
            InputError: the file has no application.
        """
        self.flush()
        if not self.apps:
            raise InputError(
                "has no SparkListenerApplicationStart: it is a later part of a rolling event log, or damaged",
                hint="join the parts in their order: cat events_1_* events_2_* > application.log",
            )
        self._records.finish()


def _amount(value: float) -> float:
    if not 0 <= value <= 2**20:
        raise RowError("an amount of GPUs is out of range")
    return value


def _millis(event: dict[str, Any], key: str) -> int:
    found = f.epoch_millis(event.get(key))
    if found is None:
        raise RowError(f"no {key}")
    return found


def _within(app: _App, kind: str, event: dict[str, Any], gpus: Any) -> None:
    """Take an event of an application that has started."""
    if kind == "SparkListenerApplicationEnd":
        app.end = _millis(event, "Timestamp")
        app.exit_code = whole_of(event.get("ExitCode"))
        return
    if kind == "SparkListenerJobEnd":
        result = event.get("Job Result")
        result = result if isinstance(result, dict) else {}
        app.succeeded = result.get("Result") == "JobSucceeded"
        exception = result.get("Exception")
        message = text_of(exception.get("Message")) if isinstance(exception, dict) else None
        app.reason = None if app.succeeded or message is None else diagnosis(message.split("\n", 1)[0])
        return
    name, at = event.get("Executor ID"), _millis(event, "Timestamp")
    if not isinstance(name, str):
        raise RowError("no Executor ID")
    if kind == "SparkListenerExecutorAdded":
        info = event.get("Executor Info")
        if not isinstance(info, dict):
            raise RowError("no Executor Info")
        host, cores = text_of(info.get("Host")), whole_of(info.get("Total Cores"))
        if name not in app.executors:
            host = f.host(host) if host is not None else None
            app.executors[name] = _Executor(host, cores, gpus(info), _container(info), at)
    elif name in app.executors:
        # of executors that are removed without having registered, nothing was held
        one = app.executors.pop(name)
        one.removed, one.reason = max(at, one.added), text_of(event.get("Removed Reason"))
        app.gone.append(one)


def _container(info: dict[str, Any]) -> str | None:
    attributes, logs = info.get("Attributes"), info.get("Log Urls")
    stated = text_of(attributes.get("CONTAINER_ID")) if isinstance(attributes, dict) else None
    if stated is None and isinstance(logs, dict):
        found = next((m for url in logs.values() if isinstance(url, str) and (m := _CONTAINER.search(url))), None)
        stated = found[1] if found is not None else None
    return stated


def _of_yarn(app: _App, facts: f.Facts) -> None:
    """Note the facts on an application of YARN."""
    state = app.state()
    row = facts.row(f.SPARK, app.job)
    f.advance(row, "RUNNING" if app.end is None else "FINISHED")
    for column, value in ((f.NAME, app.name), (f.USER, app.user), (f.QUEUE, app.queue)):
        f.least(row, column, value)
    f.earliest(row, f.SUBMIT, app.submit)
    # another attempt may follow one that failed, and it ends when that ends
    if state is State.COMPLETED:
        f.least(row, f.FINAL_STATUS, "SUCCEEDED")
    elif state is State.FAILED and app.last_attempt:
        f.least(row, f.FINAL_STATUS, "FAILED")
        f.least(row, f.REASON, app.reason)
    if app.attempt is None:
        f.earliest(row, f.END, app.end)
    elif 0 < app.attempt < 10**6:
        attempt = facts.row(f.SPARK, f"appattempt_{app.job.removeprefix('application_')}_{app.attempt:06}")
        f.earliest(attempt, f.END, app.end)
        if app.end is not None:
            f.advance(attempt, "FAILED" if state is State.FAILED else "FINISHED")
            f.least(attempt, f.REASON, app.reason)
    for one in app.all():
        of = container_id(one.container) if one.container is not None else None
        if of is None or of.job != app.job or one.container is None:
            continue
        held = facts.row(f.SPARK, one.container)
        f.least(held, f.IS_MASTER, False)
        f.earliest(held, f.ALLOCATED, one.added)
        f.earliest(held, f.END, one.removed if one.removed is not None else app.end)
        f.least(held, f.MACHINE, one.host)
        f.least(held, f.CPUS, one.cores)
        f.least(held, f.GPUS, one.gpus)
        f.least(held, f.REASON, one.reason)


def _spans(app: _App) -> list[_Span]:
    """The times between changes of an application's executors, from the first one on."""
    changes: dict[int, list[tuple[int, _Executor]]] = {}
    for one in app.all():
        until = one.removed if one.removed is not None else app.end
        if until is not None and app.end is not None:
            until = min(until, app.end)
        if until is None or until > one.added:
            changes.setdefault(one.added, []).append((1, one))
            if until is not None:
                changes.setdefault(until, []).append((-1, one))
    times = sorted(changes)
    count: dict[str, int] = {}
    placed: dict[str, float] = {}
    unknown, cores, spans = 0, 0, []
    for since, until in zip(times, [*times[1:], app.end][: len(times)], strict=True):
        for sign, one in changes[since]:
            host = one.host or ""
            unknown += sign * (one.gpus is None)
            cores += sign * (one.cores or 0)
            count[host] = count.get(host, 0) + sign
            placed[host] = placed.get(host, 0.0) + sign * (one.gpus or 0.0)
        on = {host: gpus for host, gpus in placed.items() if gpus > 0 and host}
        hosts = sum(n > 0 for host, n in count.items() if host)
        if until is None or until > since:
            spans.append(_Span(since, until, None if unknown else sum(placed.values()), on, hosts, cores or None))
    return spans


def _record(app: _App) -> Record:
    """What a log states of an application that is none of YARN's."""
    state, spans = app.state(), _spans(app)
    facts = {
        **{"user": app.user, "name": app.name, "queue": app.queue},
        "submit_ts": None if app.submit is None else app.submit / 1000,
        "cpus": max((span.cores or 0 for span in spans), default=0) or None,
        "nodes": max((span.hosts for span in spans), default=0) or None,
    }
    runs = []
    for span in spans:
        last = span is spans[-1]
        end = None if span.until is None else span.until / 1000
        runs.append(
            run_of(
                span.since / 1000,
                end,
                state if last else State.COMPLETED,
                ("FINISHED" if app.end is not None else "RUNNING") if last else _RESIZED,
                span.gpus,
                placed=span.placed,
                servers=span.hosts,
                quirks=[] if last else ["resized"],
                **({"reason": app.reason, "exit_code": app.exit_code} if last else {}),
            )
        )
    if not runs and app.end is not None:
        more = {"reason": app.reason, "exit_code": app.exit_code}
        runs = [run_of(None, app.end / 1000, state, "FINISHED", None, **more)]
    return Record(app.job, facts, runs[-1] if runs else None, runs[:-1])


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read applications.

    Raises:
        InputError: no application starts in the file.
    """
    log = _Log(sink)
    for line in numbered_lines(stream, _LINE_LIMIT):
        if not line.data.strip():
            continue
        sink.seen()
        try:
            found = _EVENT.match(line.data)
            if found is not None and found[1].decode() not in _READ and line.data.rstrip().endswith(b"}"):
                sink.loaded()
                continue
            event = _decoded(line.text())
            kind = str(event.get("Event")).rpartition(".")[2]
            counted = kind in _READ and log.take(
                kind, event, (line.line_no, line.data[:1000].decode("utf-8", "replace"))
            )
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        if not counted:
            sink.loaded()
    log.finish()


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise RowError("not valid JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("Event"), str):
        raise RowError(_NOT_AN_EVENT)
    return found


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first event."""
    del name
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    return "an event of Spark" if first.startswith(b"{") and _SIGN.search(first) else None


FORMAT = Format(
    name=NAME,
    title="Spark: event logs (spark.eventLog.dir)",
    fills=("jobs", "attempts", "containers", "placements", "machines", "queues"),
    file_names=("app-*", "application_*", "spark-*", "events_1_*"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    settle=refresh,
    verified="sample",
)
