"""Words for states that several traces share."""

from __future__ import annotations

from gpuctl.core.states import State

SLURM = {
    "COMPLETED": State.COMPLETED,
    "CANCELLED": State.KILLED,
    "FAILED": State.FAILED,
    "TIMEOUT": State.TIMEOUT,
    "NODE_FAIL": State.NODE_FAIL,
    "OUT_OF_MEMORY": State.OUT_OF_MEMORY,
    "PREEMPTED": State.PREEMPTED,
    "SUSPENDED": State.SUSPENDED,
    "RUNNING": State.RUNNING,
    "PENDING": State.PENDING,
}
"""Words of Slurm."""
