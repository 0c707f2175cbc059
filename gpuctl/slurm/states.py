"""Maps Slurm's job states and exit codes to those of the store."""

from __future__ import annotations

import re

from gpuctl.core.states import State

_STATES = {
    "PENDING": State.PENDING,
    "REQUEUE_HOLD": State.PENDING,
    "REQUEUE_FED": State.PENDING,
    "RESV_DEL_HOLD": State.PENDING,
    "SPECIAL_EXIT": State.PENDING,
    "EXPEDITING": State.PENDING,
    "RUNNING": State.RUNNING,
    "CONFIGURING": State.RUNNING,
    "POWER_UP_NODE": State.RUNNING,
    "COMPLETING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "STAGE_OUT": State.RUNNING,
    "SUSPENDED": State.SUSPENDED,
    "STOPPED": State.SUSPENDED,
    "COMPLETED": State.COMPLETED,
    "FAILED": State.FAILED,
    "LAUNCH_FAILED": State.FAILED,
    "CANCELLED": State.KILLED,
    "REVOKED": State.KILLED,
    "REQUEUED": State.KILLED,
    "RESIZING": State.UNKNOWN,
    "TIMEOUT": State.TIMEOUT,
    "DEADLINE": State.TIMEOUT,
    "OUT_OF_MEMORY": State.OUT_OF_MEMORY,
    "NODE_FAIL": State.NODE_FAIL,
    "BOOT_FAIL": State.NODE_FAIL,
    "RECONFIG_FAIL": State.NODE_FAIL,
    "PREEMPTED": State.PREEMPTED,
}
_SHORT = {
    "PD": "PENDING",
    "RH": "REQUEUE_HOLD",
    "RF": "REQUEUE_FED",
    "RD": "RESV_DEL_HOLD",
    "SE": "SPECIAL_EXIT",
    "R": "RUNNING",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "S": "SUSPENDED",
    "ST": "STOPPED",
    "CD": "COMPLETED",
    "F": "FAILED",
    "LF": "LAUNCH_FAILED",
    "CA": "CANCELLED",
    "RV": "REVOKED",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "TO": "TIMEOUT",
    "DL": "DEADLINE",
    "OOM": "OUT_OF_MEMORY",
    "NF": "NODE_FAIL",
    "BF": "BOOT_FAIL",
    "PR": "PREEMPTED",
}
_WORD = re.compile(r"\s*([A-Za-z_]+)(\+)?")
_SHORTEST_CUT = 4
_EXIT = re.compile(r"(\d{1,5}):(\d{1,5})", re.ASCII)

UNFINISHED = frozenset({State.PENDING, State.RUNNING, State.SUSPENDED})
"""States that a later export of the same attempt may replace."""


def state_of(text: str) -> State:
    """Map a state as written by any Slurm tool.

    ``CANCELLED by 1002`` and the short codes of squeue are accepted, and words truncated by a narrow column
    (``CANCELLED+``, ``OUT_OF_ME+``); of several words joined by commas the first one counts. REQUEUED ends an attempt
    without anyone's fault: killed. RESIZING ends a record, not the job: the outcome is in the next record, so it maps
    to `State.UNKNOWN`, as does an unknown word.
    """
    match = _WORD.match(text)
    if match is None:
        return State.UNKNOWN
    word = match[1].upper()
    word = _SHORT.get(word, word)
    if match[2] and word not in _STATES and len(word) >= _SHORTEST_CUT:
        word = next((name for name in _STATES if name.startswith(word)), word)
    return _STATES.get(word, State.UNKNOWN)


def exit_of(text: str) -> tuple[int | None, int | None]:
    """Split ``code:signal``; (None, None) for anything else."""
    match = _EXIT.fullmatch(text.strip())
    return (int(match[1]), int(match[2])) if match else (None, None)
