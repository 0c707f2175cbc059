"""Makes tables of what slurmctld logged while it scheduled: jobs, events, passes, and what backfill planned.

Pure: from the files that scheduling.py keeps of a recording to rows of text. Times are seconds with milliseconds
after the recording's minute zero, a full minute of the clock, because backfill rounds to those.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

Row = dict[str, str]

KEPT = re.compile(
    r"\] (?:debug\d?:\s+|error: )?(?:sched: |sched/backfill: |schedule: )|_slurm_rpc_submit_batch_job: JobId"
    r"|_job_complete: JobId|[Pp]reempt|[Rr]equeu(?!e=)|Decay factor|priority for job|being held|[Tt]ime limit"
    r"|_slurm_rpc_kill_job|SchedulerParameters="
    r"|_slurm_rpc_requeue|job_limits_check|non-runnable|delayed for accounting|_pick_best_nodes|partition.* limit"
)
"""The lines of slurmctld.log that a recording keeps."""
_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (.*)")
_SUBMIT = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)")
_MAIN = re.compile(r"sched: Running job scheduler for (full queue|default depth)\.")
_MAIN_TESTED = re.compile(r"sched: JobId=(\d+)\. State=PENDING\. Reason=(\w+)")
_MAIN_SKIPPED = re.compile(r"sched: JobId=(\d+)\.? unable to schedule in Partition=")
_MAIN_START = re.compile(r"sched: Allocate JobId=(\d+) NodeList=(\S+)")
_HELD = re.compile(r"JobId=(\d+) (?:being held|delayed for accounting policy)")
_BACKFILL = re.compile(r"sched/backfill: _attempt_backfill: beginning")
_BACKFILL_TESTED = re.compile(r"sched/backfill: _attempt_backfill: BACKFILL: test for JobId=(\d+) ")
_BACKFILL_SKIPPED = re.compile(r"have already checked \d+ jobs for .* JobId=(\d+)")
_BACKFILL_START = re.compile(r"sched/backfill: _start_job: Started JobId=(\d+) in \S+ on (\S+)")
_PLANNED = re.compile(r"_dump_job_sched: JobId=(\d+) to start at (\d+), end at (\d+) on nodes (\S+) in partition (\S+)")
_UNPLANNED = re.compile(r"BACKFILL: (?:JobId=\d+ StartTime set .*reservation created|table size limit of)")
_STOPPED = re.compile(r"_attempt_backfill: (?:BACKFILL: )?(no jobs|reached end|bf_max_job\w*|table size limit)")
DECAY = re.compile(r"Decay factor over (\d+) seconds")
_DONE = re.compile(r"_job_complete: JobId=(\d+) done")
_PREEMPTED = re.compile(r"preempted JobId=(\d+) has been (requeued|killed) to reclaim resources for JobId=(\d+)")
_TIMEOUT = re.compile(r"Time limit exhausted for JobId=(\d+)")

_PRIORITY = re.compile(r"priority for job (\d+) is now (\d+)")
_IN_PASS = (
    (_MAIN_TESTED, ("tested",)),
    (_BACKFILL_TESTED, ("tested",)),
    (_MAIN_SKIPPED, ("skipped",)),
    (_HELD, ("held",)),
    (_MAIN_START, ("tested", "started")),
    (_BACKFILL_SKIPPED, ("skipped",)),
    (_BACKFILL_START, ("started",)),
    (_STOPPED, ("stopped_by",)),
)

ENDS = ("end", "timeout", "requeued", "preempted")
"""Events that end an attempt."""
EVENTS = ("time_s", "event", "job", "attempt", "scheduler", "nodes", "state", "by")
PASSES = ("time_s", "kind", "tested", "skipped", "held", "started", "stopped_by")
PRIORITIES = ("time_s", "job", "priority")
RESERVATIONS = ("pass_s", "job", "start_s", "end_s", "nodes", "partition", "booked")
JOBS = (
    *(
        "job",
        "name",
        "submit",
        "eligible",
        "user",
        "account",
        "qos",
        "partition",
        "nodes",
        "cpus",
        "mem",
        "gpus",
        "gpu_type",
    ),
    *("time_limit_min", "run_s", "sleep_s", "priority", "nice", "dependency", "words"),
)
PLACEMENTS = ("job", "attempt", "node", "cpus", "mem", "gpus", "gpu_type", "indices")


def read_rows(text: str, delimiter: str = ",") -> list[Row]:
    """Rows of a table with a header."""
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def write_rows(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """A CSV of the rows."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def parsed(log: str) -> list[tuple[float, str]]:
    """Seconds since the epoch and text of each line of a log."""
    found = [_LINE.match(line) for line in log.splitlines()]
    return [(datetime.fromisoformat(m[1]).replace(tzinfo=UTC).timestamp(), m[2]) for m in found if m is not None]


def lines(folder: Path) -> list[tuple[float, str]]:
    """Seconds since the epoch and text of each line of a recording's log."""
    return parsed(gzip.decompress((folder / "slurmctld.log.gz").read_bytes()).decode())


def zero(folder: Path) -> int:
    """The recording's minute zero, seconds since the epoch."""
    found = json.loads((folder / "recording.json").read_text("utf-8"))
    return int(found["zero"])


def tables(folder: Path) -> dict[str, str]:
    """The derived tables of a recording by file name."""
    log, start = lines(folder), zero(folder)
    accounting = read_rows((folder / "sacct.txt").read_text("utf-8"), "|")
    submitted = read_rows((folder / "submitted.csv").read_text("utf-8"))
    happened = events(log, start, accounting)
    return {
        "events.csv": write_rows(EVENTS, happened),
        "passes.csv": write_rows(PASSES, passes(log, start)),
        "priorities.csv": write_rows(PRIORITIES, priorities(log, start)),
        "reservations.csv": write_rows(RESERVATIONS, reservations(log, start)),
        "jobs.csv": write_rows(JOBS, jobs(log, start, accounting, submitted, happened)),
    }


def _at(when: float, start: int) -> str:
    return f"{when - start:.3f}"


def events(log: list[tuple[float, str]], start: int, accounting: list[Row]) -> list[Row]:
    """Submissions, starts, preemptions and ends, in the log's order.

    The state of an end is sacct's of that attempt. An attempt that is preempted or timed out ends with that.
    """
    attempts: dict[str, int] = {}
    out: list[Row] = []

    def add(when: float, event: str, job: str, **more: str) -> None:
        out.append(
            {"time_s": _at(when, start), "event": event, "job": job, "attempt": str(attempts.get(job, 0)), **more}
        )

    for when, text in log:
        if found := _SUBMIT.search(text):
            add(when, "submit", found[1], state="PENDING")
        elif found := _MAIN_START.search(text):
            attempts[found[1]] = attempts.get(found[1], 0) + 1
            add(when, "start", found[1], scheduler="main", nodes=found[2], state="RUNNING")
        elif found := _BACKFILL_START.search(text):
            attempts[found[1]] = attempts.get(found[1], 0) + 1
            add(when, "start", found[1], scheduler="backfill", nodes=found[2], state="RUNNING")
        elif found := _DONE.search(text):
            add(when, "end", found[1], state=_state(accounting, found[1], attempts.get(found[1], 0)))
        elif found := _PREEMPTED.search(text):
            event = "requeued" if found[2] == "requeued" else "preempted"
            add(when, event, found[1], by=found[3], state=_state(accounting, found[1], attempts.get(found[1], 0)))
        elif found := _TIMEOUT.search(text):
            add(when, "timeout", found[1], state=_state(accounting, found[1], attempts.get(found[1], 0)))
    return out


def _state(accounting: list[Row], job: str, attempt: int) -> str:
    rows = [row for row in accounting if row["JobIDRaw"] == job]
    return rows[attempt - 1]["State"] if 0 < attempt <= len(rows) else ""


def passes(log: list[tuple[float, str]], start: int) -> list[Row]:
    """Main and backfill passes and calculations of usage, with the jobs that each looked at, in its order."""
    out: list[tuple[Row, dict[str, list[str]]]] = []
    latest: dict[bool, dict[str, list[str]]] = {}
    for when, text in log:
        if DECAY.search(text):
            out.append(({"time_s": _at(when, start), "kind": "priority"}, {}))
            continue
        backfill = "sched/backfill" in text
        begun, main = _BACKFILL.search(text), _MAIN.search(text)
        if begun or main:
            kind = "backfill" if main is None else "main_full" if main[1] == "full queue" else "main"
            latest[backfill] = {name: [] for name in PASSES[2:]}
            out.append(({"time_s": _at(when, start), "kind": kind}, latest[backfill]))
        elif backfill in latest:
            for pattern, names in _IN_PASS:
                if found := pattern.search(text):
                    for name in names:
                        latest[backfill][name].append(found[1])
    for row, lists in out:
        if row["kind"] == "backfill":
            # bf_max_job_user and the like are looked at after the line that says that a job is tested
            lists["tested"] = [job for job in lists["tested"] if job not in lists["skipped"]]
    return [row | {name: ";".join(dict.fromkeys(words)) for name, words in lists.items()} for row, lists in out]


def priorities(log: list[tuple[float, str]], start: int) -> list[Row]:
    """What each calculation made of the priorities of waiting jobs."""
    found = [(when, m) for when, text in log if (m := _PRIORITY.search(text))]
    return [{"time_s": _at(when, start), "job": m[1], "priority": m[2]} for when, m in found]


def reservations(log: list[tuple[float, str]], start: int) -> list[Row]:
    """What each backfill pass planned; `booked` no where Slurm says that it made no reservation of it."""
    out: list[Row] = []
    when_pass = 0.0
    for when, text in log:
        if _BACKFILL.search(text):
            when_pass = when
        elif found := _PLANNED.search(text):
            job, begin, end, nodes, partition = found.groups()
            row = {"pass_s": _at(when_pass, start), "job": job, "nodes": nodes, "partition": partition, "booked": "yes"}
            out.append(row | {"start_s": str(int(begin) - start), "end_s": str(int(end) - start)})
        elif _UNPLANNED.search(text) and out:
            out[-1]["booked"] = "no"
    return out


def jobs(
    log: list[tuple[float, str]], start: int, accounting: list[Row], submitted: list[Row], happened: list[Row]
) -> list[Row]:
    """A row a job: what was asked for, its priority when it came, how long its last attempt ran if it was let run."""
    came = {m[1]: (when, m[2]) for when, text in log if (m := _SUBMIT.search(text))}
    out = []
    for row in submitted:
        job = row["job"]
        first = next(found for found in accounting if found["JobIDRaw"] == job)
        requested = dict(part.split("=", 1) for part in first["ReqTRES"].split(","))
        when, priority = came[job]
        starts = [float(found["time_s"]) for found in happened if found["job"] == job and found["event"] == "start"]
        ends = [float(found["time_s"]) for found in happened if found["job"] == job and found["event"] == "end"]
        words = row["words"]
        out.append(
            {
                "job": job,
                "name": row["name"],
                "submit": _at(when, start),
                "eligible": str(int(first["Eligible"]) - start) if first["Eligible"].isdigit() else "",
                "user": row["user"],
                "account": first["Account"],
                "qos": first["QOS"],
                "partition": first["Partition"],
                "nodes": requested["node"],
                "cpus": requested["cpu"],
                "mem": _megabytes(requested["mem"]),
                "gpus": requested.get("gres/gpu", "0"),
                "gpu_type": next((key[9:] for key in requested if key.startswith("gres/gpu:")), ""),
                "time_limit_min": _limit_minutes(first["Timelimit"]),
                "run_s": f"{ends[-1] - starts[-1]:.3f}" if starts and ends and ends[-1] >= starts[-1] else "",
                "sleep_s": row["sleep"],
                "priority": priority,
                "nice": _word(words, "--nice") or "0",
                "dependency": _word(words, "--dependency"),
                "words": words,
            }
        )
    return out


def _word(words: str, name: str) -> str:
    return next((word.partition("=")[2] for word in words.split() if word.startswith(f"{name}=")), "")


def _megabytes(text: str) -> str:
    units = {"M": 1, "G": 1024, "T": 1024 * 1024}
    return str(round(float(text[:-1]) * units[text[-1]]))


def _limit_minutes(text: str) -> str:
    days, _, clock = text.rpartition("-")
    hours, minutes, _ = clock.split(":")
    return str(int(days or 0) * 1440 + int(hours) * 60 + int(minutes))


_NODES = re.compile(r" Nodes=(\S+) CPU_IDs=(\S*) Mem=(\d+) GRES=(\S*)")
_GRES = re.compile(r"gpu(?::(\w+))?:(\d+)\(IDX:([\d,N/A-]*)\)")


def placements(text: str) -> list[tuple[str, str, str, int, int, int, str, str]]:
    """Job, restarts, nodes as written, CPUs, MB, GPUs, their type and indices: of running jobs, a row a group of nodes.

    Args:
        text: what `scontrol --details --oneliner show jobs` printed.
    """
    out = []
    for line in text.splitlines():
        if " JobState=RUNNING " not in line:
            continue
        job, restarts = re.search(r"JobId=(\d+) ", line), re.search(r" Restarts=(\d+) ", line)
        for found in _NODES.finditer(line):
            gres = _GRES.search(found[4])
            gpus, kind, indices = (int(gres[2]), gres[1] or "", gres[3]) if gres else (0, "", "")
            cpus = sum(int(b or a) - int(a) + 1 for a, _, b in (part.partition("-") for part in found[2].split(",")))
            assert job is not None, line
            assert restarts is not None, line
            out.append((job[1], restarts[1], found[1], cpus, int(found[3]), gpus, kind, indices))
    return out
