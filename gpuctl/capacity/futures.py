"""Jobs of weeks to come, drawn from the weeks of a trace and brought to a demand by drawing jobs, not by moving them.

Whole weeks are drawn with replacement from the last `RECENT_WEEKS` and put one after the other, so that working days,
nights and bursts stay as they were. If they ask for fewer GPU-hours than is wanted, sessions (all jobs that a user
submits on one day) of other weeks are added at their own weekdays and times of day; if they ask for more, sessions are
left out at random. No time is stretched, and a burst stays together.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.capacity.demand import WEEK_S
from gpuctl.replay.inputs.transforms import DAY_S, bootstrap, gather

if TYPE_CHECKING:
    from gpuctl.capacity.demand import Weeks
    from gpuctl.replay.models.records import Floats, Ints, Workload

RECENT_WEEKS = 26
"""Weeks from which jobs are drawn: older jobs may be of other kinds."""
LEAST_BLOCKS = 4
"""Fewest whole weeks for a draw of weeks; with fewer, its days are (`transforms.bootstrap`), at its demand."""


def future(workload: Workload, weeks: Weeks, demand: float, length: int, rng: np.random.Generator) -> Workload:
    """Return jobs of `length` weeks with a demand.

    Args:
        workload: the trace.
        weeks: its weeks, at least `LEAST_BLOCKS`.
        demand: GPU-hours a week, on average over all of them.
        length: number of weeks.
        rng: decides which weeks and sessions.

    Returns:
        jobs called ``NAME~K``, from second 0 on; recorded starts, places and dependencies are dropped.
    """
    blocks = _Blocks(workload, weeks)
    drawn = rng.integers(0, blocks.count, length)
    rows, slots = blocks.jobs(drawn)
    missing = demand * length - float(blocks.gpu_h[rows].sum())
    if missing < 0:
        stays = ~_sessions(blocks, rows, slots, -missing, rng)
        rows, slots = rows[stays], slots[stays]
    while missing > 0:
        more, at = blocks.jobs(rng.integers(0, blocks.count, length))
        pool = float(blocks.gpu_h[more].sum())
        if pool <= 0:
            continue
        if pool > missing:
            chosen = _sessions(blocks, more, at, missing, rng)
            more, at = more[chosen], at[chosen]
        rows, slots = np.concatenate([rows, more]), np.concatenate([slots, at])
        missing = missing - pool if pool <= missing else 0.0
    return _placed(workload, rows, blocks.within[rows] + slots * WEEK_S)


def short_future(workload: Workload, seed: int) -> Workload:
    """Return jobs drawn from the days of a trace that is too short for weeks, at the trace's own demand on average."""
    made = bootstrap(workload, workload.size, seed)
    return _placed(made, np.arange(made.size), made.submit)


class _Blocks:
    """Whole weeks from which jobs are drawn.

    Attributes:
        count: number of weeks.
        gpu_h: GPU-hours of each job of the workload.
        within: seconds of its submission after the start of its week.
        session: number of its user and day.
    """

    def __init__(self, workload: Workload, weeks: Weeks) -> None:
        first = max(0, weeks.count - RECENT_WEEKS)
        filled = np.flatnonzero(weeks.gpu_h[first:] > 0) + first
        self.count = filled.size
        # the last submission belongs to the last week; jobs before the first week are of none
        week = np.floor((workload.submit - weeks.start_s[0]) / WEEK_S).astype(np.int64)
        week = np.minimum(week, weeks.count - 1)
        self._rows = [np.flatnonzero(week == one) for one in filled.tolist()]
        self.gpu_h = workload.true_run_time * workload.gpus / 3600
        self.within = workload.submit - (weeks.start_s[0] + week * WEEK_S)
        day = np.floor(self.within / DAY_S).astype(np.int64) + 8 * week
        # jobs of unknown users are sessions of their own
        user = np.where(workload.user >= 0, workload.user, len(workload.users) + np.arange(workload.size))
        _, self.session = np.unique(np.stack([user, day]), axis=1, return_inverse=True)

    def jobs(self, drawn: Ints) -> tuple[Ints, Ints]:
        """The jobs of some weeks, and the place of each one's week among them."""
        parts = [self._rows[one] for one in drawn.tolist()]
        return np.concatenate(parts), np.repeat(np.arange(len(parts)), [part.size for part in parts])


def _sessions(blocks: _Blocks, rows: Ints, slots: Ints, wanted: float, rng: np.random.Generator) -> np.ndarray:
    """Choose sessions at random until their GPU-hours come nearest to those wanted; a mask of the rows."""
    _, group = np.unique(np.stack([slots, blocks.session[rows]]), axis=1, return_inverse=True)
    size = np.bincount(group, blocks.gpu_h[rows])
    order = rng.permutation(size.size)
    total = np.concatenate([[0.0], np.cumsum(size[order])])
    count = int(np.abs(total - wanted).argmin())
    chosen = np.zeros(size.size, bool)
    chosen[order[:count]] = True
    return np.asarray(chosen[group])


def _placed(workload: Workload, rows: Ints, submit: Floats) -> Workload:
    """The jobs of these rows at other times, in order of submission, without what was recorded of their runs."""
    order = np.lexsort((np.arange(rows.size), submit))
    rows, submit = rows[order], submit[order]
    made = gather(workload, rows)
    shift = submit - made.submit
    none = np.zeros(0, np.int64)
    again = _times(rows)
    return dataclasses.replace(
        made,
        ids=tuple(f"{name}~{k}" for name, k in zip(made.ids, again.tolist(), strict=True)),
        submit=submit,
        eligible=np.maximum(made.eligible + shift, submit),
        deadline=None if made.deadline is None else made.deadline + shift,
        app=np.arange(rows.size, dtype=np.int64),
        recorded_start=np.full_like(made.recorded_start, np.nan),
        piece_start=np.zeros(made.segment_s.size + 1, np.int64),
        piece_node=none,
        piece_gpus=none,
        line=None,
        origin=None,
    )


def _times(rows: Ints) -> Ints:
    """How often each row came before."""
    order = np.argsort(rows, kind="stable")
    times = np.empty(rows.size, np.int64)
    times[order] = np.arange(rows.size) - np.searchsorted(rows[order], rows[order])
    return times
