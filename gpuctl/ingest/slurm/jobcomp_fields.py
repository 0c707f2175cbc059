"""One record of Slurm's job completion file (``JobCompType=jobcomp/filetxt``) as the fields of ``sacct -P``.

Nothing in such a line is quoted: the job's name and its working directory may hold blanks, line ends and even
``Other=words``. They are found by the fields around them.
"""

from __future__ import annotations

import re

from gpuctl.core.line_reader import CUT_OFF, RowError
from gpuctl.ingest.slurm.json_fields import clock

COLUMNS = (
    *("JobIDRaw", "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode"),
    *("Submit", "Eligible", "Start", "End", "Timelimit", "NNodes", "NCPUS", "ReqTRES", "ReqGRES"),
    *("NodeList", "Cluster"),
)
"""What `fields` fills, by the names of ``sacct -e``."""

FIRST_KEY = b"JobId="
TWICE = "JobState= twice: records run together, or a name that looks like it"
ENDS = re.compile(rb" ExitCode=\d+:\d+ ?$")
"""How a record ends."""
REVOKED = "REVOKED"
NO_NODES = "None assigned"
_NEEDS_NODES = frozenset({"COMPLETED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"})
_NAME = re.compile(r" (?:Job)?Name=")
_STATE = re.compile(r" JobState=([A-Z_]{1,40}) (?=Partition=)")
# WorkDir is the one value of these that may hold blanks
_KEYS = (
    *("Partition", "TimeLimit", "StartTime", "EndTime", "NodeList", "NodeCnt", "ProcCnt", "WorkDir", "ReservationName"),
    *("Gres", "Tres", "Account", "QOS", "WcKey", "Cluster", "SubmitTime", "EligibleTime", "ArrayJobId", "ArrayTaskId"),
    *("PackJobId", "PackJobOffset", "HetJobId", "HetJobOffset", "DerivedExitCode", "ExitCode"),
)
_KEY = re.compile(rf"(?:^| )({'|'.join(_KEYS)})=")
_PIECE = re.compile(r" (?:JobState=[A-Z_]+ Partition|UserId|GroupId)=")
_NOTHING = frozenset({"(null)", "unknown", "Unknown", "None"})
_USER = re.compile(r"(.*)\((\d{1,10})\)", re.DOTALL | re.ASCII)


def fields(text: str) -> dict[str, str]:
    """Return the `COLUMNS` of one record.

    Raises:
        RowError: it is not what such a record looks like.
    """
    states = list(_STATE.finditer(text))
    head, state = (text[: states[-1].start()], states[-1][1]) if states else ("", "")
    name = _NAME.search(head)
    if name is None:
        raise RowError("no Name= … JobState= … Partition=")
    words = _words(text[states[-1].end() :])
    if "ExitCode" not in words or "EndTime" not in words:
        raise RowError(CUT_OFF if "ExitCode" not in words else "no EndTime")
    if _PIECE.search(head, name.end()):
        raise RowError(TWICE)
    before = head[: name.start()]
    if "\n" in before or any("\n" in value for key, value in words.items() if key != "WorkDir"):
        raise RowError("an unexpected line end: the record is torn")
    first = _first(before)
    nodes, tres = _word(words, "NodeList"), _word(words, "Tres")
    job = first.get("JobId", "")
    if not (job.isascii() and job.isdigit() and len(job) < 20):
        raise RowError("JobId is not a number")
    return {
        "JobIDRaw": job,
        "JobID": _job_id(job, words),
        "JobName": head[name.end() :],
        "User": _user(first.get("UserId", "")),
        "Account": _word(words, "Account"),
        "Partition": _word(words, "Partition"),
        "QOS": _word(words, "QOS"),
        "State": _ended(state, nodes, words),
        "ExitCode": _exit_code(words.get("ExitCode", "")),
        "DerivedExitCode": _exit_code(words.get("DerivedExitCode", "")),
        "Submit": _word(words, "SubmitTime") or "Unknown",
        "Eligible": _word(words, "EligibleTime") or "Unknown",
        "Start": _start(state, nodes, words),
        "End": _word(words, "EndTime") or "Unknown",
        "Timelimit": _limit(words.get("TimeLimit", "")),
        "NNodes": _count(words.get("NodeCnt", ""), tres, "node"),
        "NCPUS": _count(words.get("ProcCnt", ""), tres, "cpu"),
        "ReqTRES": tres,
        # of each node; in TRES only if accounting tracks GPUs
        "ReqGRES": _word(words, "Gres"),
        "NodeList": nodes or NO_NODES,
        "Cluster": _word(words, "Cluster"),
    }


def _words(text: str) -> dict[str, str]:
    marks = list(_KEY.finditer(text))
    found: dict[str, str] = {}
    for mark, after in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
        if mark[1] in found:
            raise RowError(f"{mark[1]}= twice: records run together")
        found[mark[1]] = text[mark.end() : after].strip()
    return found


def _first(text: str) -> dict[str, str]:
    """``JobId=6 UserId=carol(1003) GroupId=…``: what stands before the name."""
    parts = (part.partition("=") for part in text.split(" "))
    return {key: value for key, _, value in parts}


def _word(words: dict[str, str], key: str) -> str:
    word = words.get(key, "")
    return "" if word in _NOTHING else word


def _user(text: str) -> str:
    match = _USER.fullmatch(text)
    return match[1] or match[2] if match else text


def _job_id(job: str, words: dict[str, str]) -> str:
    if "ArrayJobId" in words:
        return f"{words['ArrayJobId']}_{words.get('ArrayTaskId', '')}"
    for kind in ("Het", "Pack"):
        if f"{kind}JobId" in words:
            return f"{words[f'{kind}JobId']}+{words.get(f'{kind}JobOffset', '')}"
    return job


def _ended(state: str, nodes: str, words: dict[str, str]) -> str:
    """The state as sacct has it.

    The file has only what has ended: a job put back into the queue is named after what it is now. So is the copy of a
    federated job that another cluster ran, which had no node and begins when it ends; a job of this cluster that
    completed had one. Copies of jobs that failed or were cancelled look like jobs that never started.
    """
    if state == "PENDING":
        return "REQUEUED" if nodes else REVOKED
    at_once = words.get("StartTime") == words.get("EndTime")
    return REVOKED if not nodes and at_once and state in _NEEDS_NODES else state


def _start(state: str, nodes: str, words: dict[str, str]) -> str:
    start = _word(words, "StartTime") if nodes else ""
    # a record of a change of size has the time of the change as its start as well
    return "Unknown" if state == "RESIZING" and start == words.get("EndTime") else start or "None"


def _exit_code(text: str) -> str:
    # slurmctld marks a job that it gave up on with status 1, which looks like signal 1; the database stores code 1
    return "1:0" if text == "0:1" else text


def _limit(text: str) -> str:
    return clock(60 * int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _count(text: str, tres: str, name: str) -> str:
    if text.isascii() and text.isdigit() and text.strip("0"):
        return text
    return next((part.partition("=")[2] for part in tres.split(",") if part.startswith(f"{name}=")), "")
