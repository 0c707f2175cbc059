"""One row of slurmdbd's ``job_table`` as the fields that ``sacct -P`` prints of it.

TRES stay as the database has them (``1=4,1001=2``): the table that names them may come after the jobs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.slurm import dbd_names
from gpuctl.ingest.slurm.json_fields import clock
from gpuctl.ingest.slurm.layout import UNKNOWN_CONSTRAINTS

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBERS = frozenset(
    {
        *("deleted", "id_job", "state", "id_assoc", "id_user", "id_qos", "id_array_job", "id_array_task"),
        *("het_job_id", "het_job_offset", "pack_job_id", "pack_job_offset", "exit_code", "derived_ec", "flags"),
        *("kill_requid", "state_reason_prev", "nodes_alloc", "cpus_req", "priority", "timelimit", "restart_cnt"),
        *("mem_req", "time_submit", "time_eligible", "time_start", "time_end", "time_suspended"),
        "job_db_inx",
    }
)
_TEXTS = frozenset(
    {
        *("account", "job_name", "partition", "nodelist", "tres_alloc", "tres_req", "array_task_str", "submit_line"),
        *("admin_comment", "derived_es"),
    }
)
JOB_COLUMNS = _NUMBERS | _TEXTS | {"gres_used", "constraints"}
"""The columns of ``job_table`` that are read; every other one is skipped."""

COLUMNS = (
    "Cluster",
    *("JobIDRaw", "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode"),
    *("Submit", "Eligible", "Start", "End", "Timelimit", "NNodes", "NCPUS", "ReqTRES", "AllocTRES", "NodeList"),
    *("Reason", "Priority", "Flags", "Suspended", "SubmitLine", "Restarts"),
    *("Constraints", "AllocGRES", "ReqMem", "Association", "AdminComment", "Comment"),
)
"""What `fields` fills: names of ``sacct -e``, and the number that stands for user and account."""
_STEP_NUMBERS = frozenset(
    {
        *("job_db_inx", "deleted", "id_step", "task_cnt", "time_start"),
        *("user_sec", "user_usec", "sys_sec", "sys_usec"),
    }
)
_STEP_TRES = frozenset({"tres_usage_in_tot", "tres_usage_in_max"})
STEP_COLUMNS = _STEP_NUMBERS | _STEP_TRES
"""The columns of ``step_table`` that are read."""
STEP_FIELDS = ("record", "step", "Start", "NTasks", "TotalCPU", "TRESUsageInTot", "MaxRSS")
"""What `step_fields` fills: ``job_db_inx``, the step's name, and names of ``sacct -e``."""
_MEMORY = 2
"""The number of memory among TRES, in every database."""
_STEP_NAMES = {-5: "batch", -4: "extern", -6: "interactive", -2: "batch", -1: "extern"}
"""``id_step`` of steps without a number; the last two before Slurm 20.11."""

DELETED = "deleted: Slurm keeps the row and shows it to nobody"
_NO_VAL, _INFINITE = 2**32 - 2, 2**32 - 1
_MEM_PER_CPU = 1 << 63
_UNSET = frozenset({_NO_VAL, _INFINITE, 2**64 - 2, 2**64 - 1, -1, -2})
_NUMBER = re.compile(r"-?\d{1,20}(?:\.0)?", re.ASCII)
_ENDED = frozenset({*dbd_names.STATES[3:], *dbd_names.FLAGGED})


def fields(cells: Mapping[str, str | None], cluster: str = "") -> dict[str, str]:
    """Return the `COLUMNS` of one job row.

    ``User`` is the numeric user id and ``QOS`` its number, until tables that name them are known.

    Args:
        cells: by the names of ``job_table``.
        cluster: whose table it is, if that is known.

    Raises:
        RowError: it is not what a row of ``job_table`` looks like, or is marked as deleted.
    """
    n = {name: _number(name, cells[name]) for name in _NUMBERS if name in cells}
    job, state_number = n.get("id_job"), n.get("state")
    if job is None or job < 0:
        raise RowError("no id_job")
    if state_number is None or state_number < 0:
        raise RowError("no state")
    if n.get("deleted"):
        raise RowError(DELETED)
    state = dbd_names.job_state(state_number)
    ended = state in _ENDED
    return {
        "Cluster": cluster,
        "JobIDRaw": str(job),
        "JobID": _job_id(job, n, cells),
        "JobName": cells.get("job_name") or "",
        "User": _digits(n.get("id_user")),
        "Account": cells.get("account") or "",
        "Partition": cells.get("partition") or "",
        "QOS": _digits(n.get("id_qos") or None),
        "State": _state(state, n.get("kill_requid")),
        "ExitCode": exit_code(n.get("exit_code")),
        "DerivedExitCode": exit_code(n.get("derived_ec")),
        "Submit": _stamp(n.get("time_submit"), ended=ended),
        "Eligible": _stamp(n.get("time_eligible"), ended=False),
        "Start": _stamp(n.get("time_start"), ended=ended),
        "End": _stamp(n.get("time_end"), ended=False),
        "Timelimit": _limit(cells.get("timelimit"), n.get("timelimit")),
        "NNodes": _digits(n.get("nodes_alloc") or _tres(cells.get("tres_req"), 4)),
        "NCPUS": _digits(_tres(cells.get("tres_alloc"), 1) or _tres(cells.get("tres_req"), 1) or n.get("cpus_req")),
        "ReqTRES": cells.get("tres_req") or "",
        "AllocTRES": cells.get("tres_alloc") or "",
        "NodeList": _nodes(cells.get("nodelist") or ""),
        "Reason": dbd_names.reason(n["state_reason_prev"] or 0) if "state_reason_prev" in n else "",
        "Priority": _digits(n.get("priority")),
        "Flags": dbd_names.job_flags(n.get("flags") or 0),
        "Suspended": clock((n.get("time_suspended") or 0) if ended else 0),
        "SubmitLine": cells.get("submit_line") or "",
        "Restarts": _digits(n.get("restart_cnt")),
        # it only matters whether there are any
        "Constraints": (cells["constraints"] or "") if "constraints" in cells else UNKNOWN_CONSTRAINTS,
        "AllocGRES": cells.get("gres_used") or "",
        "ReqMem": _req_mem(n.get("mem_req")),
        "Association": _digits(n.get("id_assoc") or None),
        "AdminComment": cells.get("admin_comment") or "",
        "Comment": cells.get("derived_es") or "",
    }


def step_fields(cells: Mapping[str, str | None]) -> dict[str, str]:
    """Return the `STEP_FIELDS` of one row of ``step_table``; its TRES stay numbers, in bytes, ms and percent.

    Raises:
        RowError: it is not what such a row looks like, or is marked as deleted.
    """
    n = {name: _plain(name, cells.get(name)) for name in _STEP_NUMBERS}
    record, step = n["job_db_inx"], n["id_step"]
    if record is None or step is None:
        raise RowError("no job_db_inx or id_step")
    if n["deleted"]:
        raise RowError(DELETED)
    used_us = sum((n[f"{who}_sec"] or 0) * 1_000_000 + (n[f"{who}_usec"] or 0) for who in ("user", "sys"))
    minutes, rest = divmod(used_us, 60_000_000)
    most = _tres(cells.get("tres_usage_in_max"), _MEMORY, longest=20)
    return {
        "record": str(record),
        "step": _STEP_NAMES.get(step, str(step)),
        "Start": _digits(n["time_start"] or None),
        "NTasks": _digits(n["task_cnt"]),
        "TotalCPU": f"{minutes}:{rest // 1_000_000:02}.{rest % 1_000_000:06}",
        "TRESUsageInTot": cells.get("tres_usage_in_tot") or "",
        "MaxRSS": _digits(most),
    }


def job_number(cells: Mapping[str, str | None]) -> int | None:
    """The number that steps name a record of a job by; None if the table does not state it."""
    return _number("job_db_inx", cells.get("job_db_inx"))


def exit_code(status: int | None) -> str:
    """Write the status that ``wait`` gave as ``code:signal``; empty if there is none."""
    if status is None or status < 0:
        return ""
    return f"{status >> 8 & 0xFF}:{status & 0x7F}"


def _number(name: str, text: str | None) -> int | None:
    value = _plain(name, text)
    return None if value in _UNSET else value


def _plain(name: str, text: str | None) -> int | None:
    """A number, also one that stands for "not set"."""
    if text is None or text in {"", "NULL", "nan"}:
        return None
    if not _NUMBER.fullmatch(text):
        raise RowError(f"{name} is not a whole number")
    return int(text.removesuffix(".0"))


def _digits(value: int | None) -> str:
    return "" if value is None else str(value)


def _job_id(job: int, n: Mapping[str, int | None], cells: Mapping[str, str | None]) -> str:
    array, task = n.get("id_array_job"), n.get("id_array_task")
    if array and task is not None:
        return f"{array}_{task}"
    if array and cells.get("array_task_str"):
        return f"{array}_[{cells['array_task_str']}]"
    # before 20.02 heterogeneous jobs were called packs
    het, offset = n.get("het_job_id", n.get("pack_job_id")), n.get("het_job_offset", n.get("pack_job_offset"))
    return f"{het}+{offset}" if het and offset is not None else str(job)


def _state(state: str, by: int | None) -> str:
    return f"CANCELLED by {by}" if state == "CANCELLED" and by is not None else state


def _stamp(seconds: int | None, *, ended: bool) -> str:
    if seconds:
        return str(seconds)
    return "None" if ended else "Unknown"


def _limit(text: str | None, minutes: int | None) -> str:
    if text == str(_INFINITE):
        return "UNLIMITED"
    return "" if minutes is None else clock(60 * minutes)


def _tres(text: str | None, number: int, longest: int = 9) -> int | None:
    for part in (text or "").split(","):
        name, _, count = part.partition("=")
        if name == str(number) and count.isascii() and count.isdigit() and len(count) <= longest:
            return int(count)
    return None


def _req_mem(number: int | None) -> str:
    """MiB per core if the highest bit is set, else a node, as sacct wrote it before 21.08."""
    if number is None or number < 0:
        return ""
    size = number & ~_MEM_PER_CPU
    return f"{size}M{'c' if number & _MEM_PER_CPU else 'n'}" if size else ""


def _nodes(text: str) -> str:
    # a table that went through Python may have the list as Python writes it
    return text[1:-1].replace("'", "").replace(", ", ",") if text.startswith("['") and text.endswith("']") else text
