"""Accounting records of Grid Engine (SGE, Son of Grid Engine, OGE, UGE, Open Cluster Scheduler): what they state.

Fields, failure codes and exit statuses are those of the manual page accounting(5). Univa's and Altair's releases count
in milliseconds since 8.2 and append fields; Open Cluster Scheduler counts in microseconds and writes JSON lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.batch.jobs import REQUEUED
from gpuctl.ingest.batch.run_records import Record, run_of

if TYPE_CHECKING:
    from gpuctl.ingest.batch.run_records import RunRecords
    from gpuctl.ingest.core.format import Sink

_WHOLE = re.compile(r"-?\d{1,17}", re.ASCII)
_REAL = re.compile(r"-?\d{1,17}\.\d{1,9}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_FEWEST = 43
"""Fields of a record of SGE 6.0 and 6.1; 6.2 has two more, later versions more again."""
_CATEGORY = 39
_REQUESTS = re.compile(r"(?:^|\s)-l\s+(\S+)")
_GPUS = frozenset(
    ("gpu", "gpus", "ngpu", "ngpus", "num_gpu", "num_gpus", "gpu_card", "gpu_cards", "gpucard", "gpu_dev", "cuda")
)
"""Names that sites give the resource; it has no name of Grid Engine's own."""
_TYPES = frozenset(("gpu_type", "gputype", "gpu_model", "gpu_name"))
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(?:\(.*\))?", re.ASCII)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgGtT]?)", re.ASCII)
_SCALES = {"": 1.0, "k": 1e3, "K": 2.0**10, "m": 1e6, "M": 2.0**20, "g": 1e9, "G": 2.0**30, "t": 1e12, "T": 2.0**40}
_CLOCK = re.compile(r"(?:(\d{1,9}):)?(?:(\d{1,9}):)?(\d{1,12})", re.ASCII)
_FAILED = {
    1: "before the job", 3: "before writing the configuration", 4: "before writing the PID", 5: "on reading the "
    "configuration", 6: "setting the processor set", 7: "before the prolog", 8: "in the prolog", 9: "before pestart",
    10: "in pestart", 11: "before the job", 12: "before pestop", 13: "in pestop", 14: "before the epilog",
    15: "in the epilog", 16: "releasing the processor set", 17: "on a signal", 18: "on starting the shepherd",
    19: "before writing the exit status", 20: "unexpected error in the daemon", 21: "in recognising the job",
    24: "migrating", 25: "rescheduling", 26: "opening an input or output file", 27: "searching the requested shell",
    28: "changing into the working directory", 29: "setting up AFS", 30: "application error returned",
    36: "checking configured daemons", 37: "run time or memory limit enforced", 38: "adding a supplementary group",
    100: "assumedly after the job",
}  # fmt: skip
_BACK = frozenset((24, 25))
_KILLS = frozenset((9, 15))


class Account(NamedTuple):
    """The fields of one record, as texts; ``NONE`` where there is no value."""

    queue: str
    host: str
    owner: str
    name: str
    job: str
    account: str
    submitted: str
    started: str
    ended: str
    failed: str
    exit_status: str
    project: str
    pe: str
    slots: str
    task: str
    cpu: str
    category: str
    pe_task: str
    max_vmem: str
    deleted_by: str = "NONE"


def split(text: str) -> Account:
    """Split a line at its colons, of which the category may contain some (``-l h_rt=24:00:00``).

    Raises:
        RowError: it has too few fields.
    """
    cells = text.split(":")
    if len(cells) < _FEWEST:
        raise RowError(f"fewer than {_FEWEST} fields between colons")
    at = _CATEGORY + 1
    if not _REAL.fullmatch(cells[at]):
        wanted = (k for k in range(at, len(cells) - 2) if _REAL.fullmatch(cells[k]) and _NUMBER.fullmatch(cells[k + 2]))
        at = next(wanted, at)
    return Account(
        cells[0], cells[1], cells[3], cells[4], cells[5], cells[6], cells[8], cells[9], cells[10], cells[11],
        cells[12], cells[31], cells[33], cells[34], cells[35], cells[36], ":".join(cells[_CATEGORY:at]),
        cells[at + 1], cells[at + 2], cells[at + 6] if len(cells) > at + 6 else "NONE",
    )  # fmt: skip


def job_of(account: Account) -> str:
    """Return the job's name: ``4711``, or ``4711.3`` for task 3 of an array.

    Raises:
        RowError: the job has no number.
    """
    number, task = _whole(account.job, "job_number"), _whole(account.task, "task_number")
    if number <= 0:
        raise RowError("job_number is not a number of a job")
    return f"{number}.{task}" if task > 0 else str(number)


def finished(account: Account, slaves: set[str]) -> Record:
    """Return what the record of a job states.

    Args:
        account: its fields; not those of a task of a parallel job.
        slaves: hosts on which tasks of this run have records of their own.

    Raises:
        RowError: a field is not what it should be.
    """
    submit, start, end = (
        _time(text, name)
        for text, name in (
            (account.submitted, "submission_time"), (account.started, "start_time"), (account.ended, "end_time"),
        )
    )  # fmt: skip
    if submit is None and start is None and end is None:
        raise RowError("neither submission_time, start_time nor end_time is there")
    slots = max(0, _whole(account.slots, "slots"))
    requests = _requests(account.category)
    gpus, kind = _gpus(requests)
    hosts = dict.fromkeys([*([account.host] if _stated(account.host) else []), *sorted(slaves)])
    spread = _stated(account.pe) is not None and slots > 1
    nodes = len(hosts) if hosts and (slaves or not spread) else None
    state, reason, code, signal = _ending(account, requests, start, end)
    share = gpus / len(hosts) if hosts else 0.0
    task = _whole(account.task, "task_number")
    facts = {
        "queue": _stated(account.queue), "user": _stated(account.owner), "name": _stated(account.name),
        "account": _stated(account.project) or _stated(account.account),
        "array_job": account.job if task > 0 else None, "array_task": str(task) if task > 0 else None,
        "submit_ts": submit, "nodes": nodes if start is not None else None, "cpus": slots or None, "gpus": gpus,
        "gpu_type": kind, "time_limit_s": _limit(requests),
    }  # fmt: skip
    run = run_of(
        start, end, state, f"failed {account.failed}", gpus, servers=nodes, exit_code=code, exit_signal=signal,
        reason=reason, cpu_s=_cpu(account.cpu), placed=dict.fromkeys(hosts, share) if start is not None else {},
        estimated=bool(gpus) and (len(hosts) > 1 or nodes is None),
    )  # fmt: skip
    return Record(job_of(account), facts, run)


def _stated(text: str) -> str | None:
    return None if text in {"", "NONE", "UNKNOWN", "none"} else text


def _whole(text: str, name: str) -> int:
    if not (text.isdigit() and text.isascii() and len(text) < 18) and not _WHOLE.fullmatch(text):
        raise RowError(f"{name} is not a whole number")
    return int(text)


def _cpu(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) and 0 <= float(text) < 1e12 else None


def _time(text: str, name: str) -> float | None:
    """Read a time since 1970 in seconds, milliseconds or microseconds; None for 0."""
    number = _whole(text, name)
    if number <= 0:
        return None
    seconds = number if number <= LATEST_S else number / 1e3 if number <= LATEST_S * 1000 else number / 1e6
    if not 86_400 <= seconds <= LATEST_S:
        raise RowError(f"{name} is not a time since 1970")
    return seconds


def _requests(category: str) -> dict[str, str]:
    """Resources of the options ``-l`` of a category."""
    pairs = (pair.partition("=") for found in _REQUESTS.findall(category) for pair in found.split(","))
    return {name: value for name, _, value in pairs}


def _gpus(requests: dict[str, str]) -> tuple[float, str | None]:
    """Return the GPUs that a job requested, 0 if none, and their type."""
    kind = next((value for name, value in requests.items() if name.lower() in _TYPES and value), None)
    for name, value in requests.items():
        if name.lower() in _GPUS:
            found = _AMOUNT.fullmatch(value)
            if found is not None:
                return float(found[1]), kind
            if value.lower() in {"true", ""}:
                return 1.0, kind
    return 0.0, kind


def _limit(requests: dict[str, str]) -> int | None:
    limits = [_clock_s(requests[name]) for name in ("h_rt", "s_rt") if name in requests]
    known = [limit for limit in limits if limit]
    return min(known) if known else None


def _clock_s(text: str) -> int | None:
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    parts = [int(part) for part in found.groups() if part is not None]
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + part
    return seconds


def _bytes(text: str) -> float | None:
    found = _SIZE.fullmatch(text)
    return float(found[1]) * _SCALES[found[2]] if found is not None else None


def _over(account: Account, requests: dict[str, str], start: float | None, end: float | None) -> State | None:
    """Return which limit a run that was ended had reached, if one had."""
    limit = _limit(requests)
    if limit is not None and start is not None and end is not None and end - start >= limit - 1:
        return State.TIMEOUT
    used = float(account.max_vmem) if _NUMBER.fullmatch(account.max_vmem) else 0.0
    memory = _bytes(requests.get("h_vmem", ""))
    return State.OUT_OF_MEMORY if memory and used >= memory else None


def _ending(
    account: Account, requests: dict[str, str], start: float | None, end: float | None
) -> tuple[State, str | None, int | None, int | None]:
    """Return the state of a run, its reason, exit code and signal."""
    failed, status = _whole(account.failed, "failed"), _whole(account.exit_status, "exit_status")
    signal = status - 128 if 128 < status <= 192 else None
    code = None if signal is not None or start is None else status
    reason = None if failed == 0 else f"failed {failed}: {_FAILED.get(failed, 'not a documented reason')}"
    if failed in _BACK:
        return State.KILLED, REQUEUED, code, signal
    if _stated(account.deleted_by) is not None:
        return State.KILLED, f"deleted by {account.deleted_by}", code, signal
    if failed == 0 and status == 0:
        return State.COMPLETED, None, code, None
    if failed == 37:
        return _over(account, requests, start, end) or State.TIMEOUT, reason, code, signal
    if failed == 100 or signal is not None:
        over = _over(account, requests, start, end)
        return over or (State.KILLED if signal in _KILLS else State.FAILED), reason, code, signal
    return State.FAILED, reason, code, signal


class Accounts:
    """Takes the records of one file; those of tasks of an integrated parallel job come before it, and give its nodes.

    Args:
        sink: takes the counts of records of tasks.
        records: takes those of runs.
    """

    def __init__(self, sink: Sink, records: RunRecords) -> None:
        self._sink = sink
        self._records = records
        self._slaves: dict[str, set[str]] = {}

    def take(self, account: Account, line: int, raw: str) -> None:
        """Take a record.

        Raises:
            RowError: a field has no valid value.
        """
        name = job_of(account)
        if account.pe_task not in {"NONE", ""}:
            self._slaves.setdefault(name, set()).add(account.host)
            self._sink.loaded()
            return
        self._records.add(finished(account, self._slaves.pop(name, set())), line, raw)
