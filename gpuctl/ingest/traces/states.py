"""Words for states that several traces share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping

SLURM: Mapping[str, State] = {
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
PAI: Mapping[str, State] = {
    "TERMINATED": State.COMPLETED,
    "FAILED": State.FAILED,
    "INTERRUPTED": State.UNKNOWN,
    "WAITING": State.PENDING,
    "RUNNING": State.RUNNING,
}
"""Words of Alibaba's PAI trace of 2020."""
