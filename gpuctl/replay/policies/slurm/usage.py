"""Decayed usage per association, as in Slurm's priority/multifactor.

Sources: SchedMD's pages *Multifactor Priority Plugin* and *Classic Fairshare Algorithm*, slurm.conf(5); gaps were
filled from the log of slurmctld 22.05.8 with ``DebugFlags=Priority`` (tests/fixtures/slurm/priority). Where it differs
from the formula ``U * 2**(-dt / half_life) + rate * dt`` that papers use:

- the decay of one second is ``1 - 0.693 / half_life``, the first terms of the series of ``2**(-1 / half_life)``: 50.007
  % is left after one half-life of a week, 49.941 % after one of three minutes;
- a job's run time since the last calculation is decayed by all of that time at once, as if used at its beginning:
  ``rate * dt * d**dt``;
- a job that ends is charged at once, and that charge is decayed again with all else at the next calculation.

Slurm adds up in 80-bit numbers, this module in 64-bit ones: they agree to about 15 digits.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.slurm.parameters import RESET_PERIODS

if TYPE_CHECKING:
    from collections.abc import Mapping


_LN2 = 0.693
"""Slurm's own rounding of ln 2."""
_PER_NODE = frozenset({"cpu", "mem", "node"})


def second_factor(half_life_s: float) -> float:
    """Share of usage left after one second; 1 without decay (``PriorityDecayHalfLife=0``).

    Args:
        half_life_s: ``PriorityDecayHalfLife`` in seconds, 0 or at least 1.
    """
    return 1.0 - _LN2 / half_life_s if half_life_s > 0 else 1.0


def billable(tres: Mapping[str, float], weights: Mapping[str, float] | None, *, max_tres: bool = False) -> float:
    """Billing of a job per second (``TRESBillingWeights``, slurm.conf(5)).

    Args:
        tres: resources of the job, by name in lower case (``cpu``, ``mem`` in MiB, ``node``, ``gres/gpu``,
            ``license/x``).
        weights: of the partition, per unit of each; None if it has none: the CPUs are billed.
        max_tres: ``PriorityFlags=MAX_TRES``: of a node's resources only the most expensive counts.
    """
    if weights is None:
        return float(tres.get("cpu", 0.0))
    dearest, rest = 0.0, 0.0
    for name, amount in tres.items():
        cost = amount * weights.get(name, 0.0)
        if max_tres and (name in _PER_NODE or name.startswith("gres/")):
            dearest = max(dearest, cost)
        elif name != "billing":
            rest += cost
    return dearest + rest


def next_reset(period: str, last: float, now: float) -> float:
    """When ``PriorityUsageResetPeriod`` clears usage next, in seconds since the epoch; infinity for ``NONE``.

    The calendar is in UTC, the real one in the controller's time zone. As in Slurm, missed days and weeks are skipped,
    months are not.

    Args:
        period: one of `RESET_PERIODS` except ``NOW``, which clears once at the start.
        last: the last reset, or when the controller started first.
        now: the time of the calculation.

    Raises:
        UsageError: the period is none of them.
    """
    if period == "NONE":
        return math.inf
    day = datetime.fromtimestamp(last, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period in {"DAILY", "WEEKLY"}:
        # Sunday is the first day of Slurm's week, the last one of Python's
        step = 86_400 if period == "DAILY" else 7 * 86_400
        first = day + (timedelta(days=1) if period == "DAILY" else timedelta(days=7 - day.isoweekday() % 7))
        at = first.timestamp()
        return at + step * max(0, math.ceil((now - at - step) / step)) if at + step < now else at
    months = {"MONTHLY": 1, "QUARTERLY": 3, "YEARLY": 12}.get(period)
    if months is None:
        raise UsageError(f"PriorityUsageResetPeriod={period}: expected one of {', '.join(RESET_PERIODS)}")
    at_month = (day.month - 1) // months * months + months
    return day.replace(year=day.year + at_month // 12, month=at_month % 12 + 1, day=1).timestamp()
