"""The outage cost that keeps the mean overlap within a bound on held-out starts of the past."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.research.chain import look_kernel
from gpuctl.research.chain.policies import enough, newsvendor, planned_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.research.chain.policies import Lessons

    Floats = NDArray[np.float64]

BOUNDED = ("plan", "newsvendor")
"""Policies that can keep a bound."""

HELD_OUT = 5
"""The past is cut into this many parts; the last one is held out."""

LEAST_COST = 0.01
STEPS = 6
"""Bisection steps on the logarithm of the cost."""

RESAMPLES, SEED, UPPER = 1000, 1, 0.975


def cost_within(name: str, learnt: Lessons, cost: float, bound_h: float, *, apart: int, a_day: int) -> float:
    """The largest outage cost up to `cost` at which the mean overlap keeps a bound.

    A rule learns from the first four fifths of the starts, except starts whose days reach into the last fifth. On the
    last fifth it decides by hourly looks; the upper end of the 95 % interval of its mean overlap, by bootstrap over
    days, must be within the bound. Starts after the split are not used.

    Args:
        name: one of `BOUNDED`.
        learnt: hourly looks at starts of the past, in order.
        cost: cost of an hour of interruption, in hours of overlap.
        bound_h: largest mean overlap, hours.
        apart: starts whose days reach into the next part.
        a_day: starts per day.

    Raises:
        InputError: no cost keeps the bound, or there are too few starts to hold some out.
    """
    starts = int(learnt.load.size)
    first = starts - starts // HELD_OUT
    early, late = part(learnt, 0, max(first - apart, 1)), part(learnt, first, starts)

    def upper(of: float) -> float:
        return _upper_end(overlaps(late, _leads(name, early, late, of / (1 + of))), a_day)

    if name == "newsvendor" and not enough(early):
        raise InputError(
            f"--max-overlap: {starts:,} starts before the split are too few to try {name} on some of them",
            hint="a longer log, a later --split, or --policy plan",
        )
    if upper(cost) <= bound_h:
        return cost
    if upper(LEAST_COST) > bound_h:
        raise InputError(
            f"--max-overlap: {name} overlaps by more than {bound_h:g} h on held-out starts, whatever the outage cost",
            hint="allow more",
        )
    low, high = np.log(LEAST_COST), np.log(cost)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if upper(float(np.exp(middle))) <= bound_h else (low, middle)
    return float(np.exp(low))


def part(learnt: Lessons, first: int, end: int) -> Lessons:
    """Looks at a range of starts."""
    looks = (learnt.start >= first) & (learnt.start < end)
    return replace(
        learnt,
        rows=learnt.rows[looks],
        forecasts=learnt.forecasts[looks] if learnt.forecasts.size else learnt.forecasts,
        waits_h=learnt.waits_h[looks],
        left_h=learnt.left_h[looks],
        start=learnt.start[looks] - first,
        load=learnt.load[first:end],
        lead_h=learnt.lead_h[first:end],
        end_h=learnt.end_h[first:end],
        before=learnt.before[first:end] if learnt.before.size else learnt.before,
    )


def overlaps(learnt: Lessons, lead_h: Floats) -> Floats:
    """Hours of overlap at each start if S is submitted once P's remaining time is at most the lead [starts].

    Args:
        learnt: hourly looks.
        lead_h: lead wanted at each look [looks].
    """
    found = np.zeros(learnt.load.size)
    sent = np.zeros(learnt.load.size, np.bool_)
    # the next look, an hour on, would be too late
    for k in np.flatnonzero(lead_h > learnt.left_h - 1).tolist():
        start = learnt.start[k]
        if not sent[start]:
            sent[start] = True
            found[start] = max(min(learnt.left_h[k] - learnt.waits_h[k], lead_h[k]), 0)
    return found


def _leads(name: str, early: Lessons, late: Lessons, share: float) -> Floats:
    if name == "plan":
        return planned_ratio(early, share) * late.rows[:, look_kernel.PLANNED]
    return newsvendor(early, share)(late.rows, late.forecasts)


def _upper_end(over_h: Floats, a_day: int) -> float:
    """The upper end of the 95 % interval of a mean, by bootstrap over days of starts."""
    day = np.arange(over_h.size) // a_day
    sums, sizes = np.bincount(day, weights=over_h), np.bincount(day)
    drawn = np.random.Generator(np.random.PCG64(SEED)).integers(0, sums.size, (RESAMPLES, sums.size))
    return float(np.quantile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), UPPER))
