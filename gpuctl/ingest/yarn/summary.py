r"""Reads ApplicationSummary lines: one per finished application, with ``,`` ``=`` and ``\`` escaped by a ``\``."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.yarn import facts as f
from gpuctl.ingest.yarn.ids import is_application
from gpuctl.ingest.yarn.resources import gpu_seconds_of_text

_PAIR = re.compile(r"(?:^|,)(\w+)=((?:[^,\\]|\\.)*+)", re.DOTALL | re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MILLIS = re.compile(r"-?\d{1,15}", re.ASCII)
_RECOVERED = "Attempt recovered after RM restart"
ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})


class Summary(NamedTuple):
    """One summary; times are milliseconds since the epoch, None if the line does not have them.

    Attributes:
        job: application id.
        submit_ms: when the client submitted it (3.0 and later).
        start_ms: when the ResourceManager took it on.
        launch_ms: when its first master was launched (2.10 and 3.3 on).
        end_ms: when it was over.
        gpu_seconds: GPU-seconds; 0 if only other resources are listed; None if nothing is (before 3.1).
        master_host: host of its last application master, None if it never had one.
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
    pairs = _PAIR.findall(text)
    # each has its = and the , before it, but the first: where the lengths add up, nothing stands between them
    if sum(len(key) + len(value) + 2 for key, value in pairs) - 1 != len(text):
        raise RowError("ApplicationSummary is not key=value,key=value with escaped commas")
    # of equal keys the first counts
    fields = {key: _ESCAPE.sub(_unescaped, value) if "\\" in value else value for key, value in reversed(pairs)}
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
        diagnosis(fields.get("diagnostics")),
        None if host in {None, "", "N/A", "null"} else host,
    )


def diagnosis(text: str | None) -> str | None:
    """Return diagnostics without what a restarted ResourceManager puts before them; None if nothing is left."""
    return text.removeprefix(_RECOVERED).strip() or None if text else None


def _millis(fields: dict[str, str], key: str) -> int | None:
    text = fields.get(key)
    if text is None or text == "":
        return None
    if not _MILLIS.fullmatch(text):
        raise RowError(f"{key} is not milliseconds since 1970")
    return int(text) if int(text) > 0 else None


def _unescaped(escape: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r"}.get(escape[1], escape[1])


def take_summary(facts: f.Facts, summary: Summary) -> None:
    """Add a summary to the facts.

    The submission is ``startTime``, which every version and the REST answers have, and not ``submitTime``, the client's
    call some 0.1 s before it, which only some have.

    Raises:
        RowError: one of its times is past the year 2200.
    """
    submit, launch, end = map(f.epoch_millis, (summary.start_ms, summary.launch_ms, summary.end_ms))
    row = facts.row("summary", summary.job)
    for field, text in (
        (f.NAME, summary.name),
        (f.USER, summary.user),
        (f.QUEUE, summary.queue),
        (f.FINAL_STATUS, summary.final_status),
        (f.REASON, summary.diagnostics),
        (f.MACHINE, summary.master_host),
    ):
        f.least(row, field, text)
    # a restarted ResourceManager writes a second summary, and may have lost some of what it had counted
    f.most(row, f.GPU_SECONDS, summary.gpu_seconds)
    f.advance(row, summary.state)
    f.earliest(row, f.SUBMIT, submit)
    f.earliest(row, f.LAUNCH, launch)
    f.earliest(row, f.END, end)
