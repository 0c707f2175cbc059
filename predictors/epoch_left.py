"""How much of an epoch is left at some instant, with what is known then: the clock, and the bytes or steps so far.

By the clock: what epochs of the job take, less the time since this one began. How epochs turn out beside what they were
expected to take is learnt from measured suspensions; an epoch that is over its time already is known to be a long one.
By bytes: what earlier epochs still took once they had read as much. A count of steps does the same.
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
    """What is left of an epoch, seconds: in the middle, and the bounds that four of five lie between."""

    left_s: float
    lower_s: float
    upper_s: float


@dataclass(frozen=True)
class Lengths:
    """How epochs turn out beside what they were expected to take.

    Attributes:
        middle: median of ln(true / expected).
        spread: standard deviation of it.
        jobs: that it was learnt from.
    """

    middle: float = 0.0
    spread: float = GUESSED_SPREAD
    jobs: int = 0


def learn_lengths(turned_out: Sequence[tuple[float, str]]) -> Lengths:
    """Learn from (true / expected length, job) of epochs; a guess counts for a few jobs: few measurements do little."""
    logs = np.array([np.log(ratio) for ratio, _ in turned_out if ratio > 0])
    jobs = len({job for _, job in turned_out})
    if not logs.size:
        return Lengths()
    weight = jobs / (jobs + GUESSED_JOBS)
    middle = weight * float(np.median(logs))
    spread = weight * float(np.mean((logs - middle) ** 2)) + (1 - weight) * GUESSED_SPREAD**2
    return Lengths(middle, float(np.sqrt(spread)), jobs)


def rest_of(epoch_s: float, done_s: float, lengths: Lengths) -> Rest:
    """What is left by the clock, given that the epoch is not over yet.

    Args:
        epoch_s: what an epoch was expected to take.
        done_s: since it began.
        lengths: how epochs turn out.
    """
    from scipy.stats import t

    share = (np.arange(_POINTS) + 0.5) / _POINTS
    # few jobs tell little of the tails
    deviations = t.ppf(share, max(lengths.jobs, 3)) * lengths.spread
    ends = epoch_s * np.exp(np.clip(lengths.middle + deviations, -3, 3))
    left = ends[ends > done_s] - done_s
    if left.size < _FEWEST:
        # longer than any epoch was: as good a guess as any is that it is nearly over
        return Rest(GUESSED_SPREAD * epoch_s, 0.0, max(epoch_s, done_s))
    return Rest(*(float(np.quantile(left, q)) for q in (0.5, _LOW, _HIGH)))


LEAST_SHARE = 0.06
"""Of an epoch: what is left of it after equal bytes differs by so much between epochs, however alike they were."""
ALMOST = 1e-3
"""Of an epoch's bytes: reading that stops so near to where an earlier epoch paused has come to the same pause."""
_NORMAL = 1.2816
"""Standard deviations to either side that hold four of five normal errors."""


def rest_by_bytes(profile: Series, epochs: Epochs) -> Rest | None:
    """What is left of the epoch under way at the end of a profile; None where its traffic does not tell.

    Each earlier epoch but the first says how long it still took once it had read as much as this one has. Of the first
    one only where there is no other: it is often longer.

    Args:
        profile: bytes, or steps.
        epochs: what it tells of epochs.
    """
    size = epochs.epoch_bytes
    if epochs.method == "none" or not np.isfinite(size) or size <= 0 or not np.isfinite(epochs.phase_s):
        return None
    total, at = profile.total, profile.step * np.arange(profile.total.size)
    epoch_start_s = profile.seconds - epochs.phase_s
    so_far = float(total[-1] - np.interp(epoch_start_s, at, total))
    # in a pause no bytes tell how much of it is over; the pause before the epoch is none of it
    paused = min(profile.seconds - _reached(profile, float(total[-1]), size), epochs.phase_s)
    found: list[float] = []
    for back in range(1, int((epoch_start_s - 0.5 * epochs.epoch_s) / epochs.epoch_s) + 1):
        end = epoch_start_s - (back - 1) * epochs.epoch_s
        start = end - epochs.epoch_s
        if start < 0.5 * epochs.first_s and found:
            break
        level = float(np.interp(start, at, total)) + so_far
        # on a pause's level interpolation is at its end, and what is over of this pause would be taken off once more
        as_much = min(float(np.interp(level, total, at)), _reached(profile, level, size))
        found.append(max(end - max(as_much, start) - paused, 0.0))
    clock = max(epochs.epoch_s - epochs.phase_s, 0.0)
    # where an epoch began is itself told by the bytes: the clock since then is as good a witness
    left = 0.5 * (clock + float(np.median(found))) if found else clock
    spread = float(np.std(found)) if len(found) > 2 else 0.0
    share = min(left / epochs.epoch_s, 1.0)
    doubt = np.hypot(spread, LEAST_SHARE * epochs.epoch_s * (0.8 + 0.4 * share) * (1.0 if found else 2.0))
    half = _NORMAL * float(np.hypot(doubt, profile.step / np.sqrt(6)))
    return Rest(left, max(left - half, 0.0), left + half)


def _reached(profile: Series, level: float, size: float) -> float:
    """The second by which `level` bytes, less the tolerance `ALMOST`, were read; if a pause follows, its start."""
    return profile.step * int(np.searchsorted(profile.total, level - ALMOST * size))
