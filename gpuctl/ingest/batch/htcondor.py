"""What the ClassAd of a job states: a job of HTCondor, its last run, and as far as it has them the runs before.

Names and meanings are those of "Job ClassAd Attributes" of HTCondor's manual. An ad keeps the first start, the start
before the last, the last start, and the last eviction; a job that started more often has lost the rest, unless its
epoch ads (``condor_history -epochs``, one for each run) are loaded, too.
"""

from __future__ import annotations

from typing import Any

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.batch.jobs import REQUEUED
from gpuctl.ingest.batch.run_records import Record, run_of

IDLE, RUNNING, REMOVED, COMPLETED, HELD, TRANSFERRING, SUSPENDED = range(1, 8)
"""Values of ``JobStatus``."""
_WORDS = {IDLE: "Idle", RUNNING: "Running", REMOVED: "Removed", COMPLETED: "Completed", HELD: "Held",
          TRANSFERRING: "TransferringOutput", SUSPENDED: "Suspended"}  # fmt: skip
_ON_ACCESS_POINT = frozenset((7, 12))
"""Universes scheduler (DAGMan itself) and local: these hold nothing of the pool."""
_HOLDS = {34: State.OUT_OF_MEMORY, 46: State.TIMEOUT, 47: State.TIMEOUT, 1: State.KILLED}
"""HoldReasonCode: resources exceeded, job duration, execution duration, held by the user."""
_TYPES = ("machineattrgpus_devicename0", "machineattrcudadevicename0", "gpus_devicename", "cudadevicename")
_TEXT_LIMIT = 200
WANTED = frozenset((
    *("clusterid", "procid", "owner", "accountinggroup", "acctgroup", "jobbatchname", "cmd", "jobstatus"),
    *("lastjobstatus", "qdate", "jobstartdate", "joblaststartdate", "jobcurrentstartdate", "completiondate"),
    *("enteredcurrentstatus", "lastvacatetime", "numjobstarts", "numshadowstarts", "exitcode", "exitbysignal"),
    *("exitsignal", "removereason", "holdreason", "holdreasoncode", "requestcpus", "requestmemory", "requestgpus"),
    *("cpusprovisioned", "memoryprovisioned", "gpusprovisioned", "assignedgpus", "lastremotehost", "remotehost"),
    *("allremotehosts", "remoteusercpu", "remotesyscpu", "jobprio", "jobuniverse", "allowedjobduration"),
    *("allowedexecuteduration", "totalsubmitprocs", "epochadtype", "epochwritedate"),
    *("dagmanjobid", "dagnodename", "dagparentnodenames", *_TYPES),
))  # fmt: skip
"""Attributes that are read."""


def is_of_a_run(ad: dict[str, Any]) -> bool:
    """Return whether an ad is about a job of the pool or one of its runs, not about a file transfer or DAGMan."""
    kind = ad.get("epochadtype")
    return kind in {None, "EPOCH"} and ad.get("jobuniverse") not in _ON_ACCESS_POINT


def job_of(ad: dict[str, Any]) -> Record:
    """Return what an ad states.

    Raises:
        RowError: it has no number, no submission or no state.
    """
    cluster, proc = ad.get("clusterid"), ad.get("procid", 0)
    if not (isinstance(cluster, int) and isinstance(proc, int) and cluster >= 0):
        raise RowError("no ClusterId, or ProcId is not a number")
    submit = _time(ad, "qdate")
    if submit is None:
        raise RowError("no QDate in seconds from 1970")
    status = ad.get("jobstatus", COMPLETED if _time(ad, "completiondate") else None)
    if status not in _WORDS:
        raise RowError("JobStatus is not a number from 1 to 7")
    started = _number(ad, "numjobstarts", "numshadowstarts")
    start = _time(ad, "jobcurrentstartdate", "jobstartdate") if started != 0 else None
    gpus, gpus_known = _gpus(ad, ran=start is not None)
    hosts = _hosts(ad)
    share = (gpus or 0.0) / len(hosts) if hosts else 0.0
    run = None if start is None and status not in {REMOVED, COMPLETED} else _run(ad, int(status), start, gpus)
    if run is not None and start is not None:
        run |= {"placed": dict.fromkeys(hosts, share), "estimated": bool(gpus) and len(hosts) > 1}
        run |= {"servers": len(hosts) or None}
    earlier = _earlier(ad, start, gpus)
    facts = {
        "queue": _text(ad, "acctgroup", "accountinggroup"), "account": _text(ad, "acctgroup", "accountinggroup"),
        "user": _text(ad, "owner"), "name": _text(ad, "jobbatchname") or _base(_text(ad, "cmd")),
        "array_job": str(cluster) if (_number(ad, "totalsubmitprocs") or 0) > 1 else None,
        "array_task": str(proc) if (_number(ad, "totalsubmitprocs") or 0) > 1 else None,
        "submit_ts": submit, "nodes": len(hosts) or None, "gpus": gpus if gpus_known else None,
        "cpus": _count(ad, "cpusprovisioned", "requestcpus"),
        "mem_mb": _count(ad, "memoryprovisioned", "requestmemory"), "gpu_type": _text(ad, *_TYPES),
        "priority": _count(ad, "jobprio"),
        "time_limit_s": _count(ad, "allowedjobduration", "allowedexecuteduration"),
    }  # fmt: skip
    return Record(f"{cluster}.{proc}", facts, run, earlier, started)


def parents_of(ad: dict[str, Any]) -> tuple[str, str, list[str]] | None:
    """Return a node of a workflow: the workflow's job, the node's name and those of its parents; None if it is none."""
    dag, node = ad.get("dagmanjobid"), _text(ad, "dagnodename")
    if not isinstance(dag, int) or node is None:
        return None
    parents = _text(ad, "dagparentnodenames") or ""
    return str(dag), node, [name for name in parents.split(",") if name]


def _run(ad: dict[str, Any], status: int, start: float | None, gpus: float | None) -> dict[str, Any]:
    """The last run of a job, as its state shows it."""
    word, cpu = _WORDS[status], _cpu(ad)
    epoch = _time(ad, "epochwritedate") if ad.get("epochadtype") == "EPOCH" else None
    if epoch is not None and status not in {REMOVED, HELD}:
        # an ad of one run was written at its end, whatever the state of the job then was
        status = COMPLETED if "exitcode" in ad or "exitsignal" in ad else IDLE
    if status in {RUNNING, TRANSFERRING}:
        return run_of(start, None, State.RUNNING, word, gpus, cpu_s=cpu)
    if status == SUSPENDED:
        return run_of(start, None, State.SUSPENDED, word, gpus, cpu_s=cpu)
    left = epoch or _vacated(ad, start)
    if status == IDLE:
        return run_of(start, left, State.PREEMPTED, word, gpus, reason=REQUEUED, cpu_s=cpu)
    entered = epoch or _time(ad, "enteredcurrentstatus")
    if status == HELD:
        state = _HOLDS.get(_number(ad, "holdreasoncode") or 0, State.FAILED)
        return run_of(start, entered if left is None else left, state, word, gpus, reason=REQUEUED, cpu_s=cpu)
    if status == REMOVED:
        was_running = ad.get("lastjobstatus") in {RUNNING, TRANSFERRING, None}
        end = entered if start is None or was_running or left is None else left
        return run_of(start, end, State.KILLED, word, gpus, reason=_text(ad, "removereason"), cpu_s=cpu)
    end = _time(ad, "completiondate") or entered
    code = ad.get("exitcode") if not ad.get("exitbysignal") else None
    signal = ad.get("exitsignal") if ad.get("exitbysignal") else None
    # a job that no attribute says how it ended has ended all the same
    known = isinstance(code, int) or isinstance(signal, int)
    state = State.UNKNOWN if not known else State.COMPLETED if code == 0 else State.FAILED
    return run_of(start, end, state, word, gpus, exit_code=_small(code), exit_signal=_small(signal), cpu_s=cpu)


def _earlier(ad: dict[str, Any], start: float | None, gpus: float | None) -> list[dict[str, Any]]:
    """Return the runs before the last one that the ad states."""
    if ad.get("epochadtype") == "EPOCH" or start is None:
        return []
    times = {_time(ad, name) for name in ("jobstartdate", "joblaststartdate")} - {None}
    starts = sorted(at for at in times if at is not None and at < start)
    left = _time(ad, "lastvacatetime")
    found = []
    for at, after in zip(starts, [*starts, start][1:], strict=True):
        end = left if after == start and left is not None and at <= left <= start else None
        found.append(run_of(at, end, State.PREEMPTED, "Evicted", gpus, reason=REQUEUED))
    return found


def _vacated(ad: dict[str, Any], start: float | None) -> float | None:
    left = _time(ad, "lastvacatetime")
    return left if left is not None and start is not None and left >= start else None


def _gpus(ad: dict[str, Any], *, ran: bool) -> tuple[float | None, bool]:
    """Return the GPUs of a job, and whether they are known: those that it had, else those that it requested."""
    if ran:
        had = _number(ad, "gpusprovisioned")
        if had is not None:
            return float(had), True
        assigned = _text(ad, "assignedgpus")
        if assigned is not None:
            return float(len([name for name in assigned.split(",") if name.strip()])), True
    if "requestgpus" not in ad:
        return 0.0, True
    asked = _number(ad, "requestgpus")
    return (None, False) if asked is None else (float(asked), True)


def _hosts(ad: dict[str, Any]) -> list[str]:
    """Nodes of the last run: what is behind the last @ of ``slot1_2@glidein_7@node``."""
    several = _text(ad, "allremotehosts")
    slots = several.split(",") if several else [_text(ad, "remotehost", "lastremotehost") or ""]
    return list(dict.fromkeys(slot.rpartition("@")[2].strip() for slot in slots if slot.strip()))


def _time(ad: dict[str, Any], *names: str) -> float | None:
    """The first of some times that is there; 0 and -1 stand for none."""
    for name in names:
        value = ad.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 86_400 <= value <= LATEST_S:
            return value
    return None


def _number(ad: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = ad.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
            return int(value)
    return None


def _count(ad: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = ad.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**31:
            return int(value)
    return None


def _small(value: object) -> int | None:
    return value if isinstance(value, int) and abs(value) < 2**31 else None


def _cpu(ad: dict[str, Any]) -> float | None:
    parts = [ad.get(name) for name in ("remoteusercpu", "remotesyscpu")]
    known = [float(part) for part in parts if isinstance(part, int | float) and 0 <= part < 1e12]
    return sum(known) if len(known) == 2 else None


def _text(ad: dict[str, Any], *names: str) -> str | None:
    for name in names:
        value = ad.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()[:_TEXT_LIMIT]
    return None


def _base(path: str | None) -> str | None:
    return path.rpartition("/")[2] or None if path else None
