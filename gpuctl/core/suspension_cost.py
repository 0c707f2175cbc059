"""The cost of suspending and resuming a training job: PickyMan's model, for one job.

Reconstructed from the published abstract (PickyMan, IPCCC 2022, doi 10.1109/IPCCC55026.2022.9894345): that a job must
finish its epoch before it is suspended, and must load its model and its training data to resume, comes from the paper;
the form of each part and all constants are gpuctl's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

STOP_S = 2.0
"""Seconds to stop a job, in addition to writing its checkpoint."""
START_S = 20.0
"""Seconds to start a job, in addition to reading its checkpoint and its data."""
NODE_RATE = 1e9
"""Bytes per second between the storage and one node."""
STORAGE_RATE = 10e9
"""Bytes per second of the storage, for all nodes together."""
CHECKPOINT_BYTES_PER_GPU = 0.5e9
MOST_CHECKPOINT_BYTES = 10e9
"""Assumed checkpoint size if unknown: bytes per GPU of the gang, and maximum."""

Mode = Literal["now", "epoch", "abort"]


@dataclass(frozen=True)
class Costs:
    """What one suspension costs a job.

    Attributes:
        suspend_s: seconds from the request until its GPUs are free; the job continues to the end of its epoch.
        resume_s: seconds from its next start until it makes progress.
        loss_s: total seconds on GPUs without lasting progress.
    """

    suspend_s: float
    resume_s: float
    loss_s: float


def costs(stop_s: float, resume_s: float, *, epoch_s: float, phase_s: float, mode: Mode) -> Costs:
    """Add up the parts of a suspension.

    Args:
        stop_s: seconds to write the checkpoint and to stop.
        resume_s: seconds to start and to read the checkpoint and data.
        epoch_s: length of an epoch; inf: the job has none.
        phase_s: time since the epoch began.
        mode: ``epoch``: the job finishes its epoch first; ``now``: it writes a checkpoint and stops at once; ``abort``:
            it stops without one and repeats its work of this epoch.
    """
    if mode == "abort":
        return Costs(STOP_S, resume_s, phase_s + resume_s)
    left = epoch_s - phase_s if mode == "epoch" and epoch_s != float("inf") else 0.0
    return Costs(left + stop_s, resume_s, stop_s + resume_s)


def stop_seconds(checkpoint_bytes: float, rate: float = NODE_RATE) -> float:
    """Return the seconds to write a checkpoint at `rate` bytes per second and to stop."""
    return STOP_S + checkpoint_bytes / rate


def resume_seconds(checkpoint_bytes: float, first_bytes: float = 0.0, rate: float = NODE_RATE) -> float:
    """Return the seconds to start, and to read a checkpoint and the data that the first step needs."""
    return START_S + (checkpoint_bytes + first_bytes) / rate
