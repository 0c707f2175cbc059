"""One job of ``sacct --json`` as the fields that ``sacct -P`` prints of it.

The objects differ from release to release: numbers became ``{set, infinite, number}``, a state became a list of
words, null became the empty text, and exit codes of 22.05 state 0 for every code that no signal made. What comes out
is always the text of today's ``sacct -P`` with times as seconds since the epoch.
"""

from __future__ import annotations

import re
from typing import Any

from gpuctl.core.line_reader import RowError

COLUMNS = (
    *("Cluster", "JobIDRaw", "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode"),
    *("DerivedExitCode", "Submit", "Eligible", "Start", "End", "Timelimit", "NNodes", "NCPUS", "ReqTRES", "AllocTRES"),
    *("NodeList", "Reason", "Priority", "Flags", "Suspended", "ElapsedRaw"),
    *("SubmitLine", "Restarts", "Constraints"),
    *("TotalCPU", "AdminComment", "Comment", "NTasks", "MaxRSS", "TRESUsageInTot"),
)
"""What `fields` and `step_fields` fill, by the names of ``sacct -e``."""

_UNSET = frozenset({-1, -2, 2**32 - 1, 2**32 - 2, 2**64 - 1, 2**64 - 2})
"""What Slurm writes for a number that is not there: INFINITE and NO_VAL of 32 and 64 bits."""
_STARTED_BY = {
    "STARTED_ON_SUBMIT": "SchedSubmit",
    "STARTED_ON_SCHEDULE": "SchedMain",
    "STARTED_ON_BACKFILL": "SchedBackfill",
}
_BEFORE_START = frozenset({"PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING"})

_ENDS_A_RECORD = ("RESIZING", "REQUEUED", "REVOKED")
"""Flags of a state that stand for the whole of it, as Slurm's own text has them."""


def number(value: object) -> int | None:
    """Read a count in any of the forms that releases write it in; None if it is not there or is infinite.

    Raises:
        RowError: it is not a whole number.
    """
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 21:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RowError("a number that is not whole")
    return None if value in _UNSET else value


def fields(job: object) -> dict[str, str]:
    """Return the `COLUMNS` of one decoded job object.

    Raises:
        RowError: it is not what a job of ``sacct --json`` looks like.
    """
    if not isinstance(job, dict):
        raise RowError("not an object")
    raw = number(job.get("job_id"))
    if raw is None or raw < 0:
        raise RowError("no job_id")
    states = _words(_part(job, "state").get("current"))
    if not states:
        raise RowError("no state")
    time, tres = _part(job, "time"), _part(job, "tres")
    requested, allocated = tres_text(tres.get("requested")), tres_text(tres.get("allocated"))
    state = _sacct_word(states)
    exit_code, derived = _exit_codes(job, state)
    return {
        "Cluster": _text(job, "cluster"),
        "JobIDRaw": str(raw),
        "JobID": _job_id(job, raw),
        "JobName": _text(job, "name"),
        "User": _text(job, "user") or _text(_part(job, "association"), "user"),
        "Account": _text(job, "account") or _text(_part(job, "association"), "account"),
        "Partition": _text(job, "partition"),
        "QOS": _text(job, "qos"),
        "State": _state(job, state),
        "ExitCode": exit_code,
        "DerivedExitCode": derived,
        "Submit": _stamp(time, "submission", state),
        "Eligible": _stamp(time, "eligible", "PENDING"),
        "Start": _stamp(time, "start", state),
        "End": _stamp(time, "end", "PENDING"),
        "Timelimit": _limit(time.get("limit")),
        "NNodes": _count(job.get("allocation_nodes"), requested, "node"),
        "NCPUS": _count(None, allocated, "cpu") or _count(None, requested, "cpu"),
        "ReqTRES": requested,
        "AllocTRES": allocated,
        "NodeList": _text(job, "nodes"),
        "Reason": _text(_part(job, "state"), "reason"),
        "Priority": _digits(number(job.get("priority"))),
        "Flags": _flags(_words(job.get("flags"))),
        "Suspended": clock(number(time.get("suspended")) or 0),
        "ElapsedRaw": _digits(number(time.get("elapsed"))),
        "SubmitLine": _text(job, "submit_line"),
        "Restarts": _digits(number(job.get("restart_cnt"))),
        "Constraints": _text(job, "constraints"),
        # 22.05 writes 0 for every job; its steps have theirs
        "TotalCPU": "" if hides_exit_codes(job) else _cpu_time(time),
        "AdminComment": _text(_part(job, "comment"), "administrator"),
        "Comment": _text(_part(job, "comment"), "job"),
        "NTasks": "",
        "MaxRSS": "",
        "TRESUsageInTot": "",
    }


def steps(job: object) -> list[object]:
    """The step objects of a job object.

    Raises:
        RowError: they are no list.
    """
    found = job.get("steps") or [] if isinstance(job, dict) else []
    if not isinstance(found, list):
        raise RowError("steps is not a list")
    return found


def step_fields(job: object, step: object) -> dict[str, str]:
    """Return the `COLUMNS` of a step of a job object that `fields` accepts.

    ``requested`` of a step's TRES is what Slurm calls TRESUsageIn, ``consumed`` TRESUsageOut.

    Raises:
        RowError: it is not what a step of ``sacct --json`` looks like.
    """
    if not isinstance(job, dict) or not isinstance(step, dict):
        raise RowError("a step that is not an object")
    name = str(_part(step, "step").get("id", "")).rpartition(".")[2]
    if not name:
        raise RowError("a step without an id")
    time, usage = _part(step, "time"), _part(_part(step, "tres"), "requested")
    most = next((part[4:] for part in _usage(usage.get("max")).split(",") if part.startswith("mem=")), "")
    raw = number(job.get("job_id"))
    own = {
        "JobIDRaw": f"{raw}.{name}",
        "JobID": f"{raw}.{name}",
        "State": _sacct_word(_words(step.get("state")) or [""]),
        "Start": _digits(number(time.get("start")) or None),
        "End": _digits(number(time.get("end")) or None),
        "TotalCPU": _cpu_time(time),
        "NTasks": _digits(number(_part(step, "tasks").get("count"))),
        "MaxRSS": most,
        "TRESUsageInTot": _usage(usage.get("total")),
    }
    return {column: own.get(column, "") for column in COLUMNS}


def _usage(entries: object) -> str:
    """A list of TRES, memory in bytes."""
    return re.sub(r"\bmem=(\d+)M", r"mem=\1", tres_text(entries))


def _cpu_time(time: dict[str, Any]) -> str:
    total = _part(time, "total")
    whole, rest = number(total.get("seconds")), number(total.get("microseconds"))
    return "" if whole is None else f"{clock(whole)}.{rest or 0:06}"


def hides_exit_codes(job: object) -> bool:
    """Check whether a job is of a release (22.05) whose exit codes are 0 for whatever no signal ended."""
    return isinstance(job, dict) and isinstance(job.get("exit_code"), dict) and _is_plain(job["exit_code"])


def clock(seconds: int) -> str:
    """Write seconds as ``[D-]HH:MM:SS``."""
    days, rest = divmod(max(seconds, 0), 86_400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def tres_text(entries: object) -> str:
    """Write a list of ``{type, name, count}`` as ``cpu=4,gres/gpu:a100=2,mem=1000M``, without those that have no count.

    Raises:
        RowError: it is not such a list.
    """
    if entries is None:
        return ""
    if not isinstance(entries, list):
        raise RowError("tres is not a list")
    parts = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            raise RowError("tres holds something that is not an object with a type")
        count = number(entry.get("count"))
        if count is None or count < 0:
            continue
        name = f"{entry['type']}/{entry['name']}" if entry.get("name") else entry["type"]
        parts.append(f"{name}={count}M" if name == "mem" else f"{name}={count}")
    return ",".join(sorted(parts))


def _part(job: dict[str, Any], key: str) -> dict[str, Any]:
    part = job.get(key)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise RowError(f"{key} is not an object")
    return part


def _text(job: dict[str, Any], key: str) -> str:
    text = job.get(key)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise RowError(f"{key} is not text")
    return text


def _words(value: object) -> list[str]:
    words: list[object] = value if isinstance(value, list) else [value] if value else []
    named = [word for word in words if isinstance(word, str)]
    if len(named) < len(words):
        raise RowError("a list of words holds something else")
    return named


def _digits(value: int | None) -> str:
    return "" if value is None else str(value)


def _job_id(job: dict[str, Any], raw: int) -> str:
    array, het = _part(job, "array"), _part(job, "het")
    of, task = number(array.get("job_id")), number(array.get("task_id"))
    if of and task is not None:
        return f"{of}_{task}"
    if of and _text(array, "task"):
        return f"{of}_[{_text(array, 'task')}]"
    of, offset = number(het.get("job_id")), number(het.get("job_offset"))
    return f"{of}+{offset}" if of and offset is not None else str(raw)


def _sacct_word(states: list[str]) -> str:
    """The one word that sacct prints for them: from 23.11 on, ``PENDING`` may be listed with the final state."""
    return next((word for word in _ENDS_A_RECORD if word in states), states[0])


def _state(job: dict[str, Any], state: str) -> str:
    by = job.get("kill_request_user")
    return f"CANCELLED by {by}" if state == "CANCELLED" and isinstance(by, str) and by else state


def _flags(flags: list[str]) -> str:
    """Which scheduler started a job, as sacct states it: of several the first one."""
    by = next((name for flag, name in _STARTED_BY.items() if flag in flags), "")
    return ",".join(filter(None, (by, "StartReceived" if "START_RECEIVED" in flags else "")))


def _stamp(time: dict[str, Any], key: str, state: str) -> str:
    seconds = number(time.get(key))
    if seconds:
        return str(seconds)
    return "Unknown" if state in _BEFORE_START else "None"


def _limit(value: object) -> str:
    if isinstance(value, dict) and value.get("infinite"):
        return "UNLIMITED"
    minutes = number(value)
    return "" if minutes is None else clock(60 * minutes)


def _count(given: object, tres: str, name: str) -> str:
    count = number(given)
    if count:
        return str(count)
    return next((part.partition("=")[2] for part in tres.split(",") if part.startswith(f"{name}=")), "")


def _exit_codes(job: dict[str, Any], state: str) -> tuple[str, str]:
    """ExitCode and DerivedExitCode, empty if the release is one that cannot be believed."""
    exit_code, plain = _exit_code(_part(job, "exit_code"))
    derived, _ = _exit_code(_part(job, "derived_exit_code"))
    if not plain:
        return exit_code, derived
    # 22.05 writes 0 for every exit that no signal made, so that its 0 states something of a completed job alone
    return ("" if exit_code == "0:0" and state != "COMPLETED" else exit_code), ("" if derived == "0:0" else derived)


def _exit_code(value: dict[str, Any]) -> tuple[str, bool]:
    """``code:signal``, and whether it is written as releases before 23.02 do."""
    signal = _part(value, "signal")
    by = number(signal.get("id", signal.get("signal_id")))
    code = number(value.get("return_code"))
    return ("" if code is None and by is None else f"{code or 0}:{by or 0}"), _is_plain(value)


def _is_plain(value: dict[str, Any]) -> bool:
    return isinstance(value.get("status"), str) and not isinstance(value.get("return_code"), dict)
