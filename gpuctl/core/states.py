"""The one enumeration of job and attempt states, to which every source is mapped."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Final or current state of a job or attempt; ``source_state`` holds the source's own word."""

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
