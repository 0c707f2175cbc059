"""The interval between the reports of a program that prints rates and not its interval: found from the rates.

The program counted whole operations in whole seconds, so that every rate times the interval is a whole number, except
for the three decimals that are printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_S = 600
LEAST_RATES = 20
"""Different rates that are needed: a half of the true interval fits one in two of them by chance."""
_ROUNDING = 0.000501
"""Half of the last decimal printed, and what binary fractions add."""
_CHANCE = 1e-6


def interval_of(rates: Iterable[float]) -> int | None:
    """Return the interval in whole seconds; None if the rates do not show it.

    The shortest interval that fits all rates is taken, unless rates of any other interval would fit it as well, which
    long ones do: then the chance of it must be below one in a million.

    Args:
        rates: operations per second, with three decimals.
    """
    import numpy as np

    distinct = np.unique(np.asarray([rate for rate in rates if rate > 0], dtype=np.float64))
    if distinct.size < LEAST_RATES:
        return None
    for seconds in range(1, LONGEST_S + 1):
        counts = distinct * seconds
        off = np.abs(counts - np.round(counts))
        if bool((off <= _ROUNDING * seconds).all()):
            chance = (2 * _ROUNDING * seconds) ** float(distinct.size)
            return seconds if chance < _CHANCE else None
    return None
