"""Records ``JOB_FINISH`` of LSF's ``lsb.acct``: their fields, which later versions append to, and what these state.

Order and meaning are those of the manual page lsb.acct(5) of LSF 10.1. Where records of LSF 9 and 10 have further
fields, or the same in another order, that of the records is taken (``docs/explanation/accuracy.md``).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.batch.jobs import REQUEUED
from gpuctl.ingest.batch.run_records import Record, run_of

_TOKEN = re.compile(r'"[^"]*+(?:""[^"]*+)*+"|\S++')
_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)
_HOST = re.compile(r"(?:(\d{1,6})\*)?(.+)", re.ASCII)
_SHORT = "fewer fields than a JOB_FINISH record has"
_CUT = "cut off: a record of LSF 9 or later goes on behind this"
_MOST_HOSTS = 100_000
_DONE, _EXIT = 0x40, 0x20
_LATER = frozenset(("9", "10"))
"""Major versions whose records always have an effective resource requirement."""
_USAGE = 19
"""Fields of resource usage before ``mailUser``."""
_TERMS = (
    *("TERM_UNKNOWN", "TERM_PREEMPT", "TERM_WINDOW", "TERM_LOAD", "TERM_OTHER", "TERM_RUNLIMIT", "TERM_DEADLINE"),
    *("TERM_PROCESSLIMIT", "TERM_FORCE_OWNER", "TERM_FORCE_ADMIN", "TERM_REQUEUE_OWNER", "TERM_REQUEUE_ADMIN"),
    *("TERM_CPULIMIT", "TERM_CHKPNT", "TERM_OWNER", "TERM_ADMIN", "TERM_MEMLIMIT", "TERM_EXTERNAL_SIGNAL", "TERM_RMS"),
    *("TERM_ZOMBIE", "TERM_SWAP", "TERM_THREADLIMIT", "TERM_SLURM", "TERM_BUCKET_KILL", "TERM_CTRL_PID"),
    *("TERM_CWD_NOTEXIST", "TERM_REMOVE_HUNG_JOB"),
)
"""Names of the values of ``exitInfo``."""
_STATES = {
    **dict.fromkeys(("TERM_RUNLIMIT", "TERM_CPULIMIT", "TERM_DEADLINE"), State.TIMEOUT),
    **dict.fromkeys(("TERM_MEMLIMIT", "TERM_SWAP"), State.OUT_OF_MEMORY),
    **dict.fromkeys(("TERM_OWNER", "TERM_FORCE_OWNER", "TERM_ADMIN", "TERM_FORCE_ADMIN", "TERM_WINDOW"), State.KILLED),
    **dict.fromkeys(("TERM_REQUEUE_OWNER", "TERM_REQUEUE_ADMIN", "TERM_CHKPNT", "TERM_BUCKET_KILL"), State.KILLED),
    **dict.fromkeys(("TERM_PREEMPT", "TERM_LOAD"), State.PREEMPTED),
    "TERM_REMOVE_HUNG_JOB": State.NODE_FAIL,
    "TERM_ZOMBIE": State.UNKNOWN,
}
_BACK = frozenset({"TERM_REQUEUE_OWNER", "TERM_REQUEUE_ADMIN"})
_GPU_ALLOC = re.compile(r'GPU_ALLOC="+([^"]+)"')
_GPU_MODELS = re.compile(r'GPU_MODELS="+([^"{]+?)(?:-\d{1,9})?\{')
_PART = re.compile(r"(?<![^{};,])([^{};,]+)\{([^{}]*)\}")
_GPU = re.compile(r"\[[^\[\]]+\]")
_NUM = re.compile(r"(?:^|[:\"])num=(\d{1,6})(?:/(task|host|job))?", re.IGNORECASE | re.ASCII)
_RUSAGE = re.compile(
    r"\bngpus_(?:physical|shared|excl_t|excl_p)=(\d{1,6}(?:\.\d{1,6})?)(?:/(\w{1,10}))?", re.IGNORECASE | re.ASCII
)
_GPU_REQUEST_KEY = "1042"
"""The key of the option ``bsub -gpu`` among the pairs ``submitEXT``."""


class _Tail(NamedTuple):
    """Fields that came with later versions.

    Attributes:
        exit_info: 0 where the version has none.
        limit_s: None: no limit, or not stated.
        request: the effective resource requirement.
        gpu_request: the option ``bsub -gpu``.
        ineligible_s: seconds that the job could not start for reasons of its own; None if not stated.
        devices: GPUs of each host, as allocated.
        model: of these GPUs.
        whole: whether the record has its effective resource requirement.
    """

    exit_info: int = 0
    limit_s: int | None = None
    request: str = ""
    gpu_request: str = ""
    ineligible_s: int | None = None
    devices: dict[str, float] | None = None
    model: str | None = None
    whole: bool = False


def finished(text: str) -> Record:
    """Return what a record ``JOB_FINISH`` states.

    Raises:
        RowError: it is not one, or cut off.
    """
    cells = _TOKEN.findall(text)
    at = _Cells(cells)
    end, number, slots, submit, begin, start = (at.whole(k) for k in (2, 3, 6, 7, 8, 10))
    for name, value in (("event time", end), ("submitTime", submit)):
        if not 0 < value <= LATEST_S:
            raise RowError(f"{name} is not in seconds from 1970")
    hosts_at = 23 + at.count(22)
    hosts = _hosts(cells[hosts_at + 1 : hosts_at + 1 + at.count(hosts_at)])
    status_at = hosts_at + 1 + at.count(hosts_at)
    tail_at = status_at + 4 + _USAGE
    exit_status, index = at.whole(tail_at + 2), at.whole(tail_at + 6)
    tail = _tail(at, tail_at)
    if not tail.whole and (at.text(1) or "").partition(".")[0] in _LATER:
        raise RowError(_CUT)
    gpus, placed, estimated = _gpus(tail, hosts, slots)
    state, source_state, reason = _ending(at.whole(status_at), tail.exit_info, started=start > 0)
    code, signal = _exit(exit_status, tail.exit_info)
    waits = (max(begin, submit), submit + (tail.ineligible_s or 0))
    name = str(number) if not index else f"{number}[{index}]"
    facts = {
        "queue": at.text(12), "user": at.text(11), "account": at.text(tail_at + 1), "name": at.text(status_at + 2),
        "array_job": str(number) if index else None, "array_task": str(index) if index else None,
        "submit_ts": submit, "eligible_ts": max(waits) if tail.ineligible_s is not None or begin else None,
        "nodes": len(hosts) or None, "cpus": sum(hosts.values()) if sum(hosts.values()) > slots else slots or None,
        "gpus": gpus, "gpu_type": tail.model, "time_limit_s": tail.limit_s,
    }  # fmt: skip
    run = run_of(
        start or None, end, state, source_state, gpus, servers=len(hosts) or None, exit_code=code, exit_signal=signal,
        reason=reason, cpu_s=_cpu(at, status_at + 4), placed=placed if start else {}, estimated=estimated,
    )  # fmt: skip
    return Record(name, facts, run)


class _Cells:
    """The fields of a record; those in quotes still have them."""

    def __init__(self, cells: list[str]) -> None:
        self.cells = cells

    def whole(self, at: int) -> int:
        """Return a number.

        Raises:
            RowError: the field is absent, or no whole number.
        """
        if at >= len(self.cells):
            raise RowError(_SHORT)
        cell = self.cells[at]
        # most are plain digits, and asking for these first takes a third of the time
        if not (cell.isdigit() and cell.isascii() and len(cell) < 16) and not _WHOLE.fullmatch(cell):
            raise RowError(f"field {at + 1} is not a whole number")
        return int(cell)

    def count(self, at: int) -> int:
        """Return how many fields follow, as one field states.

        Raises:
            RowError: it states no number, or more than there are.
        """
        number = self.whole(at)
        if not 0 <= number <= _MOST_HOSTS or at + number >= len(self.cells):
            raise RowError(f"field {at + 1} counts more fields than there are")
        return number

    def text(self, at: int) -> str | None:
        """Return a text without its quotes; None if it is empty.

        Raises:
            RowError: it is absent, or not in quotes.
        """
        if at >= len(self.cells):
            raise RowError(_SHORT)
        cell = self.cells[at]
        if len(cell) < 2 or not cell.startswith('"') or not cell.endswith('"'):
            raise RowError(f"field {at + 1} is not a text in quotes")
        inner = cell[1:-1]
        return (inner.replace('""', '"') if '"' in inner else inner) or None


def _hosts(cells: list[str]) -> dict[str, int]:
    """Slots of each host: a host is listed once for each slot, or as ``16*host``."""
    hosts: dict[str, int] = {}
    for cell in cells:
        found = _HOST.fullmatch(cell.strip('"'))
        if found is not None:
            hosts[found[2]] = hosts.get(found[2], 0) + int(found[1] or 1)
    return hosts


def _cpu(at: _Cells, first: int) -> float | None:
    try:
        user, system = float(at.cells[first]), float(at.cells[first + 1])
    except (ValueError, IndexError):
        raise RowError("ru_utime or ru_stime is not a number") from None
    return user + system if 0 <= user < 1e12 and 0 <= system < 1e12 else None


def _tail(at: _Cells, first: int) -> _Tail:
    """Read the fields from ``mailUser`` on, as far as the record's version has them."""
    if len(at.cells) <= first + 15:
        return _Tail()
    found: dict[str, Any] = {"exit_info": at.whole(first + 15)}
    if len(at.cells) <= first + 30:
        return _Tail(**found)
    pairs = at.count(first + 30)
    spot = first + 31 + 2 * pairs
    keys = at.cells[first + 31 : spot : 2]
    if _GPU_REQUEST_KEY in keys:
        found["gpu_request"] = at.text(first + 32 + 2 * keys.index(_GPU_REQUEST_KEY)) or ""
    if len(at.cells) <= spot:
        return _Tail(**found)
    request_at = _request_at(at, spot)
    if request_at is None:
        return _Tail(**found)
    limit = at.whole(request_at - 3)
    found |= {"limit_s": limit if limit > 0 else None, "request": at.text(request_at) or "", "whole": True}
    return _Tail(**found, **_allocation(at, request_at + 12))


def _request_at(at: _Cells, spot: int) -> int | None:
    """Return where the effective resource requirement is: behind the usage of each host, which has 5 fields or 6."""
    hosts = at.count(spot)
    for width in (6, 5):
        here = spot + 1 + hosts * width + 3
        numbers = all(_WHOLE.fullmatch(cell) for cell in at.cells[here - 3 : here])
        if here < len(at.cells) and at.cells[here].startswith('"') and numbers:
            return here
    return None


def _allocation(at: _Cells, networks_at: int) -> dict[str, Any]:
    """Read the fields from ``num_network`` on: the wait that does not count, and the GPUs of each host."""
    if networks_at >= len(at.cells):
        return {}
    slots_at = networks_at + 1 + 2 * at.count(networks_at) + 6
    if slots_at >= len(at.cells):
        return {}
    ranges_at = slots_at + 1 + at.count(slots_at) + 1
    found: dict[str, Any] = {}
    if ranges_at - 1 < len(at.cells):
        waited = at.whole(ranges_at - 1)
        found["ineligible_s"] = waited if waited >= 0 else None
    text = " ".join(at.cells[ranges_at:])
    alloc = _GPU_ALLOC.search(text)
    if alloc is not None:
        model = _GPU_MODELS.search(text)
        found["devices"] = {host: float(len(set(_GPU.findall(list_)))) for host, list_ in _PART.findall(alloc[1])}
        found["model"] = model[1] if model is not None else None
    return found


def _gpus(tail: _Tail, hosts: dict[str, int], slots: int) -> tuple[float | None, dict[str, float], bool]:
    """Return the GPUs of a job, those of each host, and whether these are estimated.

    What was allocated counts before what was requested; a request counts for each host unless it says otherwise.
    """
    if tail.devices:
        return sum(tail.devices.values()), {**dict.fromkeys(hosts, 0.0), **tail.devices}, False
    found = _NUM.search(tail.gpu_request)
    if found is None:
        if "ngpus" in tail.request and ("||" in tail.request or "*{" in tail.request):
            return None, dict.fromkeys(hosts, 0.0), True
        section = tail.request.partition("rusage[")[2].partition("]")[0]
        found = _RUSAGE.search(section)
    if found is None:
        return 0.0, dict.fromkeys(hosts, 0.0), False
    number, unit = float(found[1]), (found[2] or "host").lower()
    if unit == "task":
        placed = {host: number * count for host, count in hosts.items()}
        return (sum(placed.values()) if placed else number * slots), placed, False
    if unit == "job":
        share = number / len(hosts) if hosts else 0.0
        return number, dict.fromkeys(hosts, share), len(hosts) > 1
    return number * max(1, len(hosts)), dict.fromkeys(hosts, number), False


def _ending(status: int, exit_info: int, *, started: bool) -> tuple[State, str, str | None]:
    """Return the state, the source's word and its reason."""
    term = _TERMS[exit_info] if 0 < exit_info < len(_TERMS) else None
    if status & _DONE:
        return State.COMPLETED, "DONE", None
    if not status & _EXIT:
        return State.UNKNOWN, str(status), term
    if term in _BACK:
        return State.KILLED, str(term), REQUEUED
    state = _STATES.get(term or "", State.FAILED if started else State.KILLED)
    return state, "EXIT", term or (f"exitInfo {exit_info}" if exit_info else None)


def _exit(status: int, exit_info: int) -> tuple[int | None, int | None]:
    """Return the exit code and the signal of a status of wait(2)."""
    if not 0 <= status <= 0xFFFF or (exit_info and status == exit_info):
        # a job that LSF killed may have the number of the reason there
        return None, None
    signal = status & 0x7F
    return (None, signal) if signal else (status >> 8, None)
