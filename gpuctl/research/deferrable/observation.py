"""What an agent observes when a deferrable job is offered; later slots are hidden."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.policies.osdec import slot_kernel as kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.research.deferrable.cases import Case

    Floats = NDArray[np.float32]

AHEAD = 48
"""Slots of the observation ahead and back."""

SHAPES = {"job": (8,), "day": (4,), "ahead": (AHEAD, 4), "past": (AHEAD,)}
"""The observation.

``job``: GPUs / 16, slots / 24; the rest of its window, as a share and in slots / 24 (at most 2); the wait so far as a
share of the window; whether it has been evicted; GPUs left free if it starts now, and GPUs of all pending jobs, both /
the cluster's GPUs. ``day``: sine and cosine of the time of day, and of the week. ``ahead``: per later slot, as shares
of the cluster's GPUs, the GPUs that running jobs hold, and the 10, 50 and 90 % forecasts of leftover GPUs. ``past``:
leftover GPUs in earlier slots and this one, oldest first; 0 before the first slot."""

MOST = 10.0
"""Observations are clipped to this."""


class Observer:
    """Observations of a case during its simulation."""

    def __init__(self, case: Case, s: kernel.Slots) -> None:
        self._s, self._case = s, case
        self._leftover = np.concatenate([np.zeros(AHEAD), case.leftover / case.total])
        self._slot = -1
        self._of_slot: dict[str, Floats] = {}

    def seen(self, job: int, *, over: bool = False) -> dict[str, Floats]:
        """The observation when this job is offered; after the last slot, the final one."""
        s, case = self._s, self._case
        h = min(int(s.c[kernel.SLOT]), case.horizon - 1) if over else int(s.c[kernel.SLOT])
        if h != self._slot:
            self._slot, self._of_slot = h, self._slow(h)
        window = max(1, int(case.latest[job] - case.earliest[job]))
        left = int(case.latest[job]) - h
        free = int(case.leftover[h] - s.load[h] - case.gpus[job])
        own = (
            case.gpus[job] / 16, case.slots[job] / 24, left / window, min(2.0, left / 24),
            (h - int(case.earliest[job])) / window, float(s.evictions[job] > 0), free / case.total,
            int(s.c[kernel.WAITING_GPUS]) / case.total,
        )  # fmt: skip
        ahead = self._of_slot["ahead"].copy()
        later = np.asarray(s.load[h + 1 : h + 1 + AHEAD], np.float64) / case.total
        ahead[: later.size, 0] = later
        found = {"job": np.array(own, np.float32), **self._of_slot, "ahead": ahead}
        return {name: np.clip(found[name], -MOST, MOST) for name in SHAPES}

    def _slow(self, h: int) -> dict[str, Floats]:
        """The part that is the same for all offers of a slot."""
        case, season = self._case, self._case.season
        x = np.arange(h + 1, h + 1 + AHEAD)
        before = x - -(-(x - h) // season) * season
        past = np.asarray(self._s.past)
        forecasts = np.where(before >= 0, past[:, np.maximum(before, 0)], case.leftover[h]) / case.total
        ahead = np.zeros((AHEAD, 4), np.float32)
        ahead[:, 1:] = forecasts.T
        day, week = (2 * math.pi * (h % period) / period for period in (season, 7 * season))
        return {
            "day": np.array([math.sin(day), math.cos(day), math.sin(week), math.cos(week)], np.float32),
            "ahead": ahead,
            "past": self._leftover[h + 1 : h + 1 + AHEAD].astype(np.float32),
        }


def flat(seen: dict[str, Floats]) -> Floats:
    """An observation as one row."""
    return np.concatenate([each.ravel() for each in seen.values()])
