"""Rules applied to many rows at once."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.trees.rules import Tier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.trees.rules import Rules

    Ints = NDArray[np.int64]


class Judge:
    """Ranks rows by rules.

    Args:
        rules: some rule holds for each row.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        worth = [
            (-int(r.tier), -Fraction(r.chosen, r.chosen + r.other) if r.tier is Tier.JUDGED else Fraction(0))
            for r in rules.rules
        ]
        known = sorted(set(worth))
        self._place = np.array([known.index(each) for each in worth], np.int64)

    def first(self, rows: Ints) -> Ints:
        """Return the first rule that holds for each row [rows]."""
        found = np.full(len(rows), len(self._rules.rules) - 1, np.int64)
        left = np.arange(len(rows))
        for number, rule in enumerate(self._rules.rules):
            holds = np.ones(left.size, np.bool_)
            for c in rule.conditions:
                holds &= (rows[left, c.feature] > c.limit) == c.above
            found[left[holds]] = number
            left = left[~holds]
            if not left.size:
                break
        return found

    def places(self, rows: Ints) -> Ints:
        """Return a rank for each row, lower ones first; rows with equal results have equal ranks."""
        return self._place[self.first(rows)]
