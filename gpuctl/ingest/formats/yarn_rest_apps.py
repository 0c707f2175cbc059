"""``/ws/v1/cluster/apps`` of a YARN ResourceManager: one object an application, running or over.

A row of the ledger is one application. The ResourceManager keeps only so many finished applications; several dumps of
one cluster complete each other. Of a finished application it shows GPU-seconds, of a running one the GPUs it holds.
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
from gpuctl.ingest.yarn.resources import as_list, gpu_seconds_of_entries, resource_of_json, text_of, whole_of
from gpuctl.ingest.yarn.summary import ENDED, diagnosis

_MASTER = re.compile(r"/(container_\w+)(?:/|$)", re.ASCII)
_EMPTY = re.compile(rb'\s*\{\s*"apps"\s*:\s*(?:null|\{\s*\})\s*\}\s*')
_LIST = re.compile(rb'"app"\s*:\s*[\[{]')
_STATE = re.compile(rb'"finalStatus"\s*:')
_ID = re.compile(rb'"id"\s*:\s*"application_')


def take_app(facts: f.Facts, app: dict[str, Any]) -> None:
    """Note what an answer reports about one application.

    Raises:
        RowError: it is not what an application looks like.
    """
    job, state = app.get("id"), app.get("state")
    if not isinstance(job, str) or not isinstance(state, str):
        raise RowError("no id or no state of an application")
    if state not in f.APP_STATES:
        raise RowError("an unknown YARN state")
    submit, launch, end = (f.epoch_millis(app.get(key)) for key in ("startedTime", "launchTime", "finishedTime"))
    row = facts.row("rest", job)
    f.advance(row, state)
    for field, key in ((f.NAME, "name"), (f.USER, "user"), (f.QUEUE, "queue")):
        f.least(row, field, text_of(app.get(key)))
    f.least(row, f.PRIORITY, whole_of(app.get("priority")))
    f.earliest(row, f.SUBMIT, submit)
    f.earliest(row, f.LAUNCH, launch)
    if state in ENDED:
        f.earliest(row, f.END, end)
        f.least(row, f.FINAL_STATUS, text_of(app.get("finalStatus")))
        f.least(row, f.REASON, diagnosis(text_of(app.get("diagnostics"))))
        f.most(row, f.GPU_SECONDS, gpu_seconds_of_entries(app.get("resourceSecondsMap")))
    elif state == "RUNNING":
        f.most(row, f.GPUS, _held_gpus(app.get("resourceInfo")))
    _take_master(facts, row, app)


def _take_master(facts: f.Facts, row: f.Row, app: dict[str, Any]) -> None:
    logs, address = text_of(app.get("amContainerLogs")), text_of(app.get("amHostHttpAddress"))
    if address is not None:
        f.least(row, f.MACHINE, f.host(address))
    found = _MASTER.search(logs or "")
    container = container_id(found[1]) if found else None
    if found is None or container is None or container.job != app["id"]:
        return
    master = facts.row("rest", found[1])
    f.least(master, f.IS_MASTER, True)
    f.least(master, f.MACHINE, row[f.MACHINE])


def _held_gpus(info: object) -> float | None:
    """GPUs that a running application holds, over all partitions."""
    parts = as_list(info.get("resourceUsagesByPartition")) if isinstance(info, dict) else []
    used = [resource_of_json(part.get("used")) for part in parts if isinstance(part, dict)]
    known = [resource.gpus for resource in used if resource is not None]
    return sum(known) if known else None


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read applications into facts, and make jobs of all facts so far."""
    facts = f.Facts(sink)

    def take(app: dict[str, Any]) -> None:
        take_app(facts, app)
        if facts.many:
            facts.flush()

    take_items(stream, sink, ("app",), ("id",), take)
    facts.flush()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise applications as the ResourceManager writes them, or an empty list of them."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"{", b"[")):
        return None
    if _EMPTY.fullmatch(text):
        return "an empty list of applications"
    if _ID.search(text) and (_STATE.search(text) or _LIST.search(text)):
        return 'applications with "id" and "finalStatus"'
    return None


FORMAT = Format(
    name="yarn-rest-apps",
    title="YARN: applications as a ResourceManager's REST interface lists them (/ws/v1/cluster/apps)",
    fills=("jobs", "attempts", "containers", "queues"),
    file_names=("*apps*.json",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    alone=True,
    settle=refresh,
)
