"""Searches for the rules of least distance: one change at a time, pairs if none helps, then values in between.

Deterministic: the same distances give the same rules. Each set of rules is replayed once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpuctl.calibrate.spaces import Choice, Rules

LEAST_GAIN = 1e-3
"""Least relative reduction of the distance for which a change is accepted."""
_FACTORS = (0.5, 0.75, 0.9, 1.1, 1.25, 2.0)
_BEST = 2
"""Number of the crossed combinations that become starts."""
_FEW_VALUES = 4
"""Most values of a choice that is also tried in pairs."""


@dataclass
class Search:
    """A search.

    Attributes:
        choices: the dimensions of the search.
        distance: of rules; called once for each.
        trials: most sets of rules to replay.
        seen: the distance of all rules tried.
    """

    choices: Sequence[Choice]
    distance: Callable[[Rules], float]
    trials: int
    seen: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Return whether the budget of replays is used up."""
        return len(self.seen) >= self.trials

    def cost(self, rules: Rules) -> float:
        """Return the distance of rules; infinite if the budget is used up."""
        effective = self._effective(rules)
        key = tuple(sorted(effective.items()))
        if key not in self.seen:
            if self.over:
                return float("inf")
            self.seen[key] = self.distance(effective)
        return self.seen[key]

    def best(self, starts: Sequence[Rules], crossed: Sequence[tuple[str, Sequence[str]]] = ()) -> Rules:
        """Return the best rules found from some starts, without values that make no difference.

        Args:
            starts: rules to begin with.
            crossed: names and values tried in every combination on the first start; the best become starts.
        """
        tried: list[Rules] = (
            [
                {**starts[0], **dict(zip((name for name, _ in crossed), values, strict=True))}
                for values in itertools.product(*(values for _, values in crossed))
            ]
            if crossed
            else []
        )
        starts = [*sorted(tried, key=self.cost)[:_BEST], *starts]
        found = [self._descend(start) for start in starts]
        return self._effective(min(found, key=self.cost))

    def _effective(self, rules: Rules) -> Rules:
        defaults = {choice.name: choice.default for choice in self.choices}
        there = {choice.name: choice for choice in self.choices}
        return {
            name: value
            for name, value in rules.items()
            if name in there and value != defaults[name] and there[name].matters(rules, defaults)
        }

    def _descend(self, rules: Rules) -> Rules:
        while not self.over:
            for moves in (self._singles, self._pairs, self._steps):
                better = self._improved(rules, moves)
                if better is not rules:
                    break
            if better is rules:
                return rules
            rules = better
        return rules

    def _improved(self, rules: Rules, moves: Callable[[Rules], Iterator[list[Rules]]]) -> Rules:
        """Apply the best move of each group that helps; return the rules unchanged if none does."""
        now, best = rules, self.cost(rules)
        for group in moves(rules):
            tried = [{**now, **move} for move in group]
            costs = [self.cost(each) for each in tried]
            least = min(costs, default=best)
            if least < best * (1 - LEAST_GAIN):
                now, best = tried[costs.index(least)], least
        return now

    def _singles(self, rules: Rules) -> Iterator[list[Rules]]:
        del rules
        for choice in self.choices:
            yield [{choice.name: value} for value in choice.values]

    def _pairs(self, rules: Rules) -> Iterator[list[Rules]]:
        del rules
        few = [choice for choice in self.choices if len(choice.values) <= _FEW_VALUES]
        for one, other in itertools.combinations(few, 2):
            yield [{one.name: a, other.name: b} for a in one.values for b in other.values]

    def _steps(self, rules: Rules) -> Iterator[list[Rules]]:
        for choice in self.choices:
            value = float(rules.get(choice.name, choice.default) or 0) if choice.steps else 0.0
            if value > 0:
                near = (min(max(value * factor, choice.least), choice.most) for factor in _FACTORS)
                yield [{choice.name: f"{each:.6g}"} for each in near]
