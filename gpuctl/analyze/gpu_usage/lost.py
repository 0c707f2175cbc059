"""GPUs that have no samples while those of the node's other GPUs go on: lost until a reset or a reboot."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.analyze.gpu_usage.lanes import Lane

LEAST_S = 600.0
"""A shorter gap is none; nor is one of fewer than `LEAST_INTERVALS` intervals."""
LEAST_INTERVALS = 5
PRESENT = 0.8
"""Of the samples that the gap lacks, every other GPU of the node has at least this share."""


class Lost(NamedTuple):
    """A GPU without samples.

    Attributes:
        machine: the node.
        gpu: NVML index.
        last: its last sample before (s since 1970).
        until: its next sample, or the last of the node (s).
    """

    machine: str
    gpu: int
    last: float
    until: float


def find(lane: NDArray[np.int64], t: NDArray[np.float64], lanes: Sequence[Lane]) -> list[Lost]:
    """Find lost GPUs in samples sorted by lane and time.

    A tool that exports GPUs of jobs alone (slurm-job-exporter) shows none, and MIG instances come and go.
    """
    if not len(lane):
        return []
    cuts = np.append(np.flatnonzero(np.append(True, np.diff(lane) != 0)), len(lane))
    parts: dict[tuple[str, str], dict[int, list[NDArray[np.float64]]]] = defaultdict(lambda: defaultdict(list))
    for first, last in pairwise(cuts):
        own = lanes[int(lane[first])]
        if own.gpu is not None and own.instance is None:
            parts[own.machine, own.reader][own.gpu].append(t[first:last])
    found = []
    for (machine, _), by_gpu in parts.items():
        times = {gpu: np.unique(np.concatenate(some)) for gpu, some in by_gpu.items()}
        end = max(float(some[-1]) for some in times.values())
        for gpu, own_times in times.items():
            others = [some for other, some in times.items() if other != gpu]
            found += [Lost(machine, gpu, a, b) for a, b in _gaps(own_times, end) if _only_here(own_times, others, a, b)]
    return found


def _gaps(t: NDArray[np.float64], end: float) -> list[tuple[float, float]]:
    steps = np.diff(t)
    if not len(steps):
        return []
    least = max(LEAST_S, LEAST_INTERVALS * float(np.median(steps)))
    gaps = [(float(t[at]), float(t[at + 1])) for at in np.flatnonzero(steps > least)]
    return [*gaps, (float(t[-1]), end)] if end - t[-1] > least else gaps


def _only_here(t: NDArray[np.float64], others: list[NDArray[np.float64]], first: float, last: float) -> bool:
    wanted = PRESENT * ((last - first) / float(np.median(np.diff(t))) - 1)
    return bool(others) and all(
        np.searchsorted(some, last, "left") - np.searchsorted(some, first, "right") >= wanted for some in others
    )
