"""The causes of a queueing delay: their names, in one order, and the label of each in every output."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CAUSES = ("fair_share", "capacity", "fragmentation", "scheduler")
"""The causes that an eligible attempt may wait for, in the order in which they are checked."""
ALL_CAUSES = (*CAUSES, "ineligible")

BECAUSE = {
    "fair_share": "its queue or owner was at its limit",
    "capacity": "too few GPUs were free",
    "fragmentation": "enough GPUs were free, but not close together",
    "scheduler": "suitable GPUs were free (priority, a reservation, or the scheduler's own delay)",
    "ineligible": "not eligible yet (held, a dependency, a begin time)",
}
"""Why one job waited, by cause."""


def cause_name(cause: str) -> str:
    """Return the label of a cause: ``fair share``."""
    return cause.replace("_", " ")


def main_cause(ranges: Mapping[str, tuple[float, float]]) -> str | None:
    """Return the cause whose minimum exceeds the maximum of every other cause; None if there is none."""
    for cause, (low, _) in ranges.items():
        if all(low > high for other, (_, high) in ranges.items() if other != cause):
            return cause
    return None


def may_be_main(ranges: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the causes that may be the largest: those whose maximum reaches the largest minimum."""
    least = max((low for low, _ in ranges.values()), default=0.0)
    return [cause for cause, (_, high) in ranges.items() if high > 0 and high >= least]
