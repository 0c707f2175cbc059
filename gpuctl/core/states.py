"""The one enumeration of job and attempt states that every source is mapped to."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What became of a job or attempt; the source's own word is kept beside it as ``source_state``."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"
    """Ended by its user or an administrator."""
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAIL = "node_fail"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"
