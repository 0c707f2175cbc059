"""The rest of an epoch at some instant, from what is known then: the clock, and the bytes or steps so far.

By the clock: the usual length of the job's epochs, less the time since this one began. The deviation of epochs from
their expected length is learned from measured suspensions; an epoch that already exceeds it is known to be long. By
bytes: the time that earlier epochs still took after reading as much. A count of steps serves the same purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.predictors.epochs import Epochs
    from gpuctl.predictors.series import Series

GUESSED_SPREAD = 0.1
"""Relative standard deviation of epochs before any were measured; counts as `GUESSED_JOBS` jobs."""
GUESSED_JOBS = 2
_POINTS = 400
_LOW, _HIGH = 0.1, 0.9
_FEWEST = 5


class Rest(NamedTuple):
    """The rest of an epoch, seconds: the median, and bounds that hold in four of five cases."""

    left_s: float
    lower_s: float
    upper_s: float


@dataclass(frozen=True)
class Lengths:
    """Deviation of epochs from their expected length.

    Attributes:
        middle: median of ln(true / expected).
        spread: its standard deviation.
        jobs: number of jobs that it was learned from.
    """

    middle: float = 0.0
    spread: float = GUESSED_SPREAD
    jobs: int = 0


def learn_lengths(turned_out: Sequence[tuple[float, str]]) -> Lengths:
    """Learn from (true / expected length, job) of epochs; a prior counts as a few jobs and damps few measurements."""
    logs = np.array([np.log(ratio) for ratio, _ in turned_out if ratio > 0])
    jobs = len({job for _, job in turned_out})
    if not logs.size:
        return Lengths()
    weight = jobs / (jobs + GUESSED_JOBS)
    middle = weight * float(np.median(logs))
    spread = weight * float(np.mean((logs - middle) ** 2)) + (1 - weight) * GUESSED_SPREAD**2
    return Lengths(middle, float(np.sqrt(spread)), jobs)


def rest_of(epoch_s: float, done_s: float, lengths: Lengths) -> Rest:
    """Return the rest of an epoch by the clock, given that it is not over yet.

    Args:
        epoch_s: expected length of the epoch.
        done_s: time since it began.
        lengths: deviation of epochs from their expected length.
    """
    from scipy.stats import t

    share = (np.arange(_POINTS) + 0.5) / _POINTS
    # few jobs reveal little about the tails
    deviations = t.ppf(share, max(lengths.jobs, 3)) * lengths.spread
    ends = epoch_s * np.exp(np.clip(lengths.middle + deviations, -3, 3))
    left = ends[ends > done_s] - done_s
    if left.size < _FEWEST:
        # longer than any epoch before: assume that it is nearly over
        return Rest(GUESSED_SPREAD * epoch_s, 0.0, max(epoch_s, done_s))
    return Rest(*(float(np.quantile(left, q)) for q in (0.5, _LOW, _HIGH)))


LEAST_SHARE = 0.06
"""Of an epoch: what is left of it after equal bytes differs by so much between epochs, however alike they were."""
ALMOST = 1e-3
"""Of an epoch's bytes: reading that stops so near to where an earlier epoch paused has come to the same pause."""
_NORMAL = 1.2816
"""Standard deviations to either side that hold four of five normal errors."""


def rest_by_bytes(profile: Series, epochs: Epochs) -> Rest | None:
    """Return the rest of the epoch in progress at the end of a profile; None if its traffic does not show it.

    Each earlier epoch except the first shows how long it still took after reading as much as this one has. The first
    one, which is often longer, is used only if there is no other.

    Args:
        profile: bytes, or steps.
        epochs: the epochs found in it.
    """
    size = epochs.epoch_bytes
    if epochs.method == "none" or not np.isfinite(size) or size <= 0 or not np.isfinite(epochs.phase_s):
        return None
    total, at = profile.total, profile.step * np.arange(profile.total.size)
    epoch_start_s = profile.seconds - epochs.phase_s
    so_far = float(total[-1] - np.interp(epoch_start_s, at, total))
    # bytes do not show how much of a pause is over; the pause before the epoch is not part of it
    paused = min(profile.seconds - _reached(profile, float(total[-1]), size), epochs.phase_s)
    found: list[float] = []
    for back in range(1, int((epoch_start_s - 0.5 * epochs.epoch_s) / epochs.epoch_s) + 1):
        end = epoch_start_s - (back - 1) * epochs.epoch_s
        start = end - epochs.epoch_s
        if start < 0.5 * epochs.first_s and found:
            break
        level = float(np.interp(start, at, total)) + so_far
        # on a pause's level, interpolation returns its end, and the elapsed part of this pause would be subtracted
        # twice
        as_much = min(float(np.interp(level, total, at)), _reached(profile, level, size))
        found.append(max(end - max(as_much, start) - paused, 0.0))
    clock = max(epochs.epoch_s - epochs.phase_s, 0.0)
    # the start of an epoch is itself derived from the bytes: the clock since then is as reliable
    left = 0.5 * (clock + float(np.median(found))) if found else clock
    spread = float(np.std(found)) if len(found) > 2 else 0.0
    share = min(left / epochs.epoch_s, 1.0)
    doubt = np.hypot(spread, LEAST_SHARE * epochs.epoch_s * (0.8 + 0.4 * share) * (1.0 if found else 2.0))
    half = _NORMAL * float(np.hypot(doubt, profile.step / np.sqrt(6)))
    return Rest(left, max(left - half, 0.0), left + half)


def _reached(profile: Series, level: float, size: float) -> float:
    """Return the second by which `level` bytes, less `ALMOST`, were read, or the start of a pause at that time."""
    return profile.step * int(np.searchsorted(profile.total, level - ALMOST * size))
