"""The answer key of a lab run: what client, application masters and the lab itself wrote down, put together."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs.yarn import conf

if TYPE_CHECKING:
    from collections.abc import Iterator

Event = dict[str, Any]


def applications(folder: Path) -> list[str]:
    """The ids of the applications submitted so far, in that order."""
    return [e["app"] for e in _events(folder / "events" / "client.jsonl") if e["event"] == "submit"]


def attempts(folder: Path, app: str) -> list[str]:
    """The ids of an application's attempts whose masters have come up so far."""
    prefix = app.replace("application_", "appattempt_")
    return sorted(path.stem for path in (folder / "events").glob(f"{prefix}_*.jsonl"))


def started(folder: Path, key: str) -> int:
    """How many containers the master of a job has started so far, in its first attempt."""
    submits = _events(folder / "events" / "client.jsonl")
    app = next((e["app"] for e in submits if e["event"] == "submit" and e["key"] == key), None)
    first = attempts(folder, app)[:1] if app else []
    return sum(e["event"] == "started" for a in first for e in _events(folder / "events" / f"{a}.jsonl"))


def build(folder: Path, version: str, timezone: str) -> dict[str, Any]:
    """Put the events of a run together; all times in epoch milliseconds."""
    client = list(_events(folder / "events" / "client.jsonl"))
    lab = list(_events(folder / "events" / "lab.jsonl"))
    return {
        "hadoop": version,
        "timezone": timezone,
        "nodes": [{"name": n, "rack": conf.RACKS[n], **conf.NODE_SIZE} for n in conf.NODES],
        "queues": [{"path": path, **own} for path, own in conf.QUEUES.items()],
        "lab": lab,
        "applications": [_application(folder, submit, client) for submit in client if submit["event"] == "submit"],
    }


def _application(folder: Path, submit: Event, client: list[Event]) -> dict[str, Any]:
    app = submit["app"]
    mine = [e for e in client if e.get("app") == app]
    report = next(e for e in mine if e["event"] == "report")
    keys = ("user", "queue", "name", "state", "final_status", "start_ms", "finish_ms", "diagnostics")
    ends = [e["ms"] for e in mine if e["event"] == "state" and e["state"] in ("FINISHED", "FAILED", "KILLED")]
    kills = [e["ms"] for e in mine if e["event"] == "kill"]
    return {
        "app": app,
        "key": submit["key"],
        "refused": submit["refused"],
        "asked": {"user": submit["user"], "queue": submit["queue"], "name": submit["name"]},
        "submit_from_ms": submit["call_ms"],
        "submit_to_ms": submit["ms"],
        "end_seen_ms": ends[0] if ends else None,
        "kill_ms": kills[0] if kills else None,
        **{key: report[key] for key in keys},
        "attempts": [_attempt(folder, e) for e in mine if e["event"] == "attempt"],
    }


def _attempt(folder: Path, seen: Event) -> dict[str, Any]:
    own = list(_events(folder / "events" / f"{seen['attempt']}.jsonl"))
    named = {e["event"]: e for e in own}
    containers: dict[str, dict[str, Any]] = {}
    for e in own:
        if e["event"] == "allocated":
            fields = ("container", "host", "mem_mb", "vcores", "gpus")
            containers[e["container"]] = {**{k: e[k] for k in fields}, "allocated_ms": e["ms"]}
        elif e["event"] == "started":
            containers[e["container"]]["started_ms"] = e["ms"]
        elif e["event"] == "completed" and e["container"] in containers:
            containers[e["container"]].update(ended_ms=e["ms"], exit=e["exit"], diagnostics=e["diagnostics"])
    master = named.get("master", {})
    return {
        "attempt": seen["attempt"],
        "state": seen["state"],
        "diagnostics": seen["diagnostics"],
        "master": {"container": seen["master"], "host": master.get("host"), "up_ms": master.get("ms")},
        "gpus_asked_each": named.get("asked", {}).get("gpus"),
        "containers_asked": named.get("asked", {}).get("containers"),
        "asked_ms": named.get("asked", {}).get("ms"),
        "unregister_ms": named.get("unregister", {}).get("ms"),
        "containers": list(containers.values()),
        "released": [{k: e[k] for k in ("container", "host", "ms")} for e in own if e["event"] == "released"],
    }


def record(folder: Path, version: str, timezone: str, out: Path) -> None:
    """Write a fixture: manifest, daemon logs and REST answers, with this machine's names taken out."""
    out.mkdir(parents=True, exist_ok=True)
    scrub = _Scrub(folder)
    text = json.dumps(build(folder, version, timezone), indent=1, ensure_ascii=False)
    _gz(out / "manifest.json.gz", scrub(text).encode())
    for log in sorted((folder / "logs").glob("*-lab-*.log")):
        if "timelineserver" not in log.name:
            _gz(
                out / f"{log.name}.gz",
                scrub(log.read_text("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"),
            )
    for sample in sorted((folder / "rest").iterdir()):
        with zipfile.ZipFile(out / f"rest-{sample.name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for answer in sorted(sample.iterdir()):
                taken = time.gmtime(answer.stat().st_mtime)[:6]
                info = zipfile.ZipInfo(answer.name, taken)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, scrub(answer.read_text("utf-8")))


class _Scrub:
    """Takes this machine out of a text: lab folder, Maven cache, class path, home and host name."""

    def __init__(self, folder: Path) -> None:
        path = (folder / "classpath").read_text("utf-8").split(":")[0]
        repository = path.split("/org/apache/")[0]
        self.places = ((str(folder), "/lab"), (repository, "/m2"), (f"{Path.home()}/", "/home/yarn/"))
        self.host = re.compile(rf"""(?<=[ "]){re.escape(socket.gethostname())}(?=[/"\s])""")

    def __call__(self, text: str) -> str:
        text = re.sub(r"(classpath = ).*", r"\1(left out)", text)
        for place, name in self.places:
            text = text.replace(place, name)
        return self.host.sub("labhost", text)


def _gz(path: Path, content: bytes) -> None:
    # no time in it: recording the same twice gives the same bytes
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def _events(path: Path) -> Iterator[Event]:
    if path.exists():
        for line in path.read_text("utf-8").splitlines(keepends=True):
            # the last line may be in the writing
            if line.endswith("\n"):
                yield json.loads(line)
