"""Dumps of YARN's timeline server (``/ws/v1/applicationhistory/apps``, their attempts, their containers).

The ResourceManager's own lists of attempts and containers of an application have the same shape. A row of the ledger
is one application, attempt or container.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.yarn import facts as f
from gpuctl.ingest.yarn.dumps import take_items
from gpuctl.ingest.yarn.ids import container_id
from gpuctl.ingest.yarn.merge import refresh
from gpuctl.ingest.yarn.resources import as_list, is_gpu, number_of, text_of, whole_of
from gpuctl.ingest.yarn.summary import ENDED, diagnosis

_MARK = re.compile(rb'"(?:finalAppStatus|appAttemptId|containerExitStatus|assignedNodeId)"\s*:')
_EMPTY = re.compile(
    rb'\s*\{\s*"(?:appAttempts|containers)"\s*:\s*(?:null|\{\s*\})\s*\}\s*'
    rb'|\s*\{\s*"(?:appAttempt|container)"\s*:\s*(?:null|\[\s*\])\s*\}\s*'
)
_NOT_KNOWN = -1000


def take_app(facts: f.Facts, app: dict[str, Any]) -> None:
    """Note what the timeline reports about an application.

    The submission is ``startedTime``, when the ResourceManager took it on, else ``submittedTime``.

    Raises:
        RowError: it is not what an application looks like.
    """
    job, state = app.get("appId"), app.get("appState")
    if not isinstance(job, str) or not isinstance(state, str):
        raise RowError("no appId or no appState")
    if state not in f.APP_STATES:
        raise RowError("an unknown YARN state")
    started, submitted = f.epoch_millis(app.get("startedTime")), f.epoch_millis(app.get("submittedTime"))
    end = f.epoch_millis(app.get("finishedTime"))
    row = facts.row("ats", job)
    f.advance(row, state)
    for field, key in ((f.NAME, "name"), (f.USER, "user"), (f.QUEUE, "queue")):
        f.least(row, field, text_of(app.get(key)))
    f.least(row, f.PRIORITY, whole_of(app.get("priority")))
    f.earliest(row, f.SUBMIT, submitted if started is None else started)
    if state in ENDED:
        f.earliest(row, f.END, end)
        f.least(row, f.FINAL_STATUS, text_of(app.get("finalAppStatus")))
        f.least(row, f.REASON, diagnosis(text_of(app.get("diagnosticsInfo"))))


def take_attempt(facts: f.Facts, attempt: dict[str, Any]) -> None:
    """Note what the timeline, or the ResourceManager, reports about an attempt.

    Raises:
        RowError: it is not what an attempt looks like.
    """
    entity, state = attempt.get("appAttemptId"), attempt.get("appAttemptState")
    if not isinstance(entity, str):
        raise RowError("appAttemptId is not text")
    if state is not None and state not in f.ATTEMPT_STATES:
        raise RowError("an unknown YARN state")
    submit, end = f.epoch_millis(attempt.get("startTime")), f.epoch_millis(attempt.get("finishedTime"))
    row = facts.row("ats", entity)
    if state is not None:
        f.advance(row, state)
    f.earliest(row, f.SUBMIT, submit)
    f.earliest(row, f.END, end)
    f.least(row, f.REASON, diagnosis(text_of(attempt.get("diagnosticsInfo"))))
    master = text_of(attempt.get("amContainerId")) or text_of(attempt.get("containerId"))
    if master is not None and container_id(master) is not None:
        f.least(facts.row("ats", master), f.IS_MASTER, True)


def take_container(facts: f.Facts, container: dict[str, Any]) -> None:
    """Note what the timeline, or the ResourceManager, reports about a container.

    Raises:
        RowError: it is not what a container looks like.
    """
    entity = container.get("containerId")
    if not isinstance(entity, str) or container_id(entity) is None:
        raise RowError("containerId is not a container id")
    started, end = f.epoch_millis(container.get("startedTime")), f.epoch_millis(container.get("finishedTime"))
    row = facts.row("ats", entity)
    f.earliest(row, f.ALLOCATED, started)
    f.earliest(row, f.END, end)
    address = text_of(container.get("assignedNodeId"))
    if address is not None:
        f.least(row, f.MACHINE, f.host(address))
    f.least(row, f.MEM, whole_of(container.get("allocatedMB")))
    f.least(row, f.CPUS, whole_of(container.get("allocatedVCores")))
    gpus = _gpus(container.get("allocatedResources"))
    # the timeline server forgets all but memory and cores and then writes 0, and calls nothing RUNNING; the
    # ResourceManager lists what an attempt holds, and nothing that was only reserved for it
    held = end is None and container.get("containerState") == "RUNNING"
    if held:
        f.least(row, f.STATE, "RUNNING")
    if gpus or held:
        f.least(row, f.GPUS, gpus)
    f.least(row, f.REASON, text_of(container.get("diagnosticsInfo")))
    code = whole_of(container.get("containerExitStatus"))
    if end is not None and code != _NOT_KNOWN:
        f.least(row, f.EXIT_CODE, code)


def _gpus(resources: object) -> float | None:
    """GPUs of ``allocatedResources``, a map in any of the two ways YARN writes maps; None if it is absent."""
    if not isinstance(resources, dict) or not resources:
        return None
    entries = [e for e in as_list(resources.get("entry")) if isinstance(e, dict)]
    pairs = [(e.get("key"), e.get("value")) for e in entries] or list(resources.items())
    return sum(number_of(amount) or 0.0 for name, amount in pairs if isinstance(name, str) and is_gpu(name))


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read applications, attempts and containers into facts, and make jobs of all facts so far."""
    facts = f.Facts(sink)

    def take(value: dict[str, Any]) -> None:
        if "appAttemptId" in value:
            take_attempt(facts, value)
        elif "containerId" in value:
            take_container(facts, value)
        else:
            take_app(facts, value)
        if facts.many:
            facts.flush()

    marks = ("appId", "appAttemptId", "containerId", "id")
    take_items(stream, sink, ("app", "appAttempt", "container"), marks, take)
    facts.flush()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise applications, attempts or containers as the timeline server writes them."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _EMPTY.fullmatch(text):
        return "an empty list of attempts or containers"
    found = _MARK.search(text) if text.startswith((b"{", b"[")) else None
    return f"objects with {found[0].decode().rstrip(': ')}" if found else None


FORMAT = Format(
    name="yarn-ats",
    title="YARN: applications, attempts and containers as its timeline server lists them",
    fills=("jobs", "attempts", "containers", "placements", "machines", "queues"),
    file_names=("*applicationhistory*.json", "*appattempts*.json", "*containers*.json"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    alone=True,
    settle=refresh,
)
