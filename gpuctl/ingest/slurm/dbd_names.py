"""Names of the numbers in Slurm's database: job states, reasons, flags, node states, TRES."""

from __future__ import annotations

import re

STATES = (
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
)
"""Job states by their number."""

# a job that was requeued, resized or revoked has ended as far as its row goes
_STATE_FLAGS = {1 << 13: "RESIZING", 1 << 10: "REQUEUED", 1 << 19: "REVOKED"}
FLAGGED = tuple(_STATE_FLAGS.values())
"""States that are flags, added to a number."""
_STARTED_BY = {1 << 1: "SchedSubmit", 1 << 2: "SchedMain", 1 << 3: "SchedBackfill"}
_START_RECEIVED = 1 << 4
# those whose number is the same in all releases; the others are identified by number
_REASONS = {
    0: "None",
    1: "Priority",
    2: "Dependency",
    3: "Resources",
    4: "PartitionNodeLimit",
    5: "PartitionTimeLimit",
    6: "PartitionDown",
    7: "PartitionInactive",
    8: "JobHeldAdmin",
    9: "BeginTime",
    10: "Licenses",
    11: "AssociationJobLimit",
    12: "AssociationResourceLimit",
    13: "AssociationTimeLimit",
    14: "Reservation",
    15: "ReqNodeNotAvail",
    16: "JobHeldUser",
    72: "JobArrayTaskLimit",
    99: "AssocGrpGRES",
    149: "QOSMaxGRESPerUser",
}
_NODE_STATES = ("UNK", "DOWN", "IDLE", "ALLOC", "ERR", "MIX", "FUTR")
_DRAIN, _NO_RESPOND = 1 << 9, 1 << 11

TRES = {1: "cpu", 2: "mem", 3: "energy", 4: "node", 5: "billing", 6: "fs/disk", 7: "vmem", 8: "pages"}
"""The resources whose numbers are the same everywhere; those from 1001 on are each site's own."""

_TRES_PART = re.compile(r"(\d{1,10})=(\d{1,20})", re.ASCII)
_NO_COUNT = frozenset({2**64 - 1, 2**64 - 2, 2**63 - 1, 2**63 - 2})


def job_state(number: int) -> str:
    """Name a job state; the flags that only state what a job is doing right now are left out.

    A number that means nothing comes back as it is.
    """
    for flag, name in _STATE_FLAGS.items():
        if number & flag:
            return name
    base = number & 0xFF
    return STATES[base] if base < len(STATES) else str(number)


def job_flags(number: int) -> str:
    """Write the flags that state which scheduler started a job, as sacct does: of several the first one."""
    by = next((name for flag, name in _STARTED_BY.items() if number & flag), "")
    return ",".join(filter(None, (by, "StartReceived" if number & _START_RECEIVED else "")))


def reason(number: int) -> str:
    """Name why a job was last held up; if releases disagree on the number: ``reason 42``."""
    return _REASONS.get(number, f"reason {number}")


def node_state(number: int) -> str:
    """Name a node state as sacctmgr does: drained before what else it is, ``*`` if it does not respond."""
    base = number & 0xF
    word = "DRAIN" if number & _DRAIN else _NODE_STATES[base] if base < len(_NODE_STATES) else str(number)
    return f"{word}*" if number & _NO_RESPOND else word


def tres_text(text: str, names: dict[int, str]) -> str | None:
    """Write ``1=4,2=1000,1001=2`` as ``cpu=4,gres/gpu=2,mem=1000M``, without those that have no count.

    Args:
        text: as the database has it.
        names: number -> name, of the site's own resources too where they are known.

    Returns:
        None if a resource is in it that has no name, so that it is unknown whether it is a GPU.

    Raises:
        ValueError: it is not such a list.
    """
    parts = []
    for item in text.split(",") if text else ():
        part = _TRES_PART.fullmatch(item)
        if part is None:
            raise ValueError("tres is not a list of number=count")
        count = int(part[2])
        if count in _NO_COUNT:
            continue
        name = names.get(int(part[1]))
        if name is None:
            return None
        parts.append(f"{name}={count}M" if name == "mem" else f"{name}={count}")
    return ",".join(sorted(parts))
