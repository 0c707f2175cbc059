r"""Reads ApplicationSummary lines: one a finished application, with ``,`` ``=`` and ``\`` escaped by a ``\``."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpuctl.ingest.lines import RowError
from gpuctl.ingest.yarn.ids import is_application
from gpuctl.ingest.yarn.resources import gpu_seconds_of_text

_PAIR = re.compile(r"(?:^|,)(\w+)=((?:[^,\\]|\\.)*+)", re.DOTALL | re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MILLIS = re.compile(r"-?\d{1,15}", re.ASCII)
ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})


class Summary(NamedTuple):
    """One summary; times are milliseconds since the epoch, None where the line does not have them.

    Attributes:
        job: application id.
        submit_ms: when the client submitted it (3.0 and later).
        start_ms: when the ResourceManager took it on.
        launch_ms: when its first master was launched (2.10 and 3.3 on).
        end_ms: when it was over.
        gpu_seconds: GPU-seconds; 0 where only other resources are listed; None where nothing is (before 3.1).
        master_host: host of its last application master, None where it never had one.
    """

    job: str
    name: str | None
    user: str | None
    queue: str | None
    state: str
    final_status: str | None
    submit_ms: int | None
    start_ms: int | None
    launch_ms: int | None
    end_ms: int | None
    gpu_seconds: float | None
    diagnostics: str | None
    master_host: str | None


def read_summary(text: str) -> Summary:
    """Read the message of a summary line, from ``appId=`` on, of any Hadoop version: by key, never by position.

    Raises:
        RowError: it has no application id, no final state, or a time that is none.
    """
    fields: dict[str, str] = {}
    end = 0
    for pair in _PAIR.finditer(text):
        if pair.start() != end:
            raise RowError("ApplicationSummary is not key=value,key=value with escaped commas")
        end = pair.end()
        fields.setdefault(pair[1], _ESCAPE.sub(_unescaped, pair[2]))
    if end != len(text):
        raise RowError("ApplicationSummary is not key=value,key=value with escaped commas")
    job, state = fields.get("appId", ""), fields.get("state", "")
    if not is_application(job):
        raise RowError("ApplicationSummary without an application id")
    if state not in ENDED or "finalStatus" not in fields:
        raise RowError("ApplicationSummary without state FINISHED, FAILED or KILLED and finalStatus (line cut off?)")
    seconds = fields.get("resourceSeconds")
    host = fields.get("appMasterHost")
    return Summary(
        job,
        fields.get("name") or None,
        fields.get("user") or None,
        fields.get("queue") or None,
        state,
        fields["finalStatus"] or None,
        _millis(fields, "submitTime"),
        _millis(fields, "startTime"),
        _millis(fields, "launchTime"),
        _millis(fields, "finishTime"),
        gpu_seconds_of_text(seconds) if seconds else None,
        fields.get("diagnostics") or None,
        None if host in {None, "", "N/A", "null"} else host,
    )


def _millis(fields: dict[str, str], key: str) -> int | None:
    text = fields.get(key)
    if text is None or text == "":
        return None
    if not _MILLIS.fullmatch(text):
        raise RowError(f"{key} is not milliseconds since 1970")
    return int(text) if int(text) > 0 else None


def _unescaped(escape: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r"}.get(escape[1], escape[1])
