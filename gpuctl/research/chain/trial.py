"""Starts of a chain of jobs in a log, and the outcome of each policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.research.chain.episode import DAY_S, WARM_UP_S, Link, Outcome, Pair, Situation
from gpuctl.research.chain.past import History
from gpuctl.research.chain.policies import Rule, Start, start_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.research.chain.log import Log

    Floats = NDArray[np.float64]

EVERY_S = 4 * 3600
"""From one start to the next."""

FEWEST_STARTS = 30
"""Fewest starts to learn from; five days."""

AHEAD_S = 3 * DAY_S
"""From P's submission to the last submission of the trace, for a chain of two jobs."""


@dataclass(frozen=True)
class Evaluation:
    """Settings of an evaluation.

    Attributes:
        size: nodes of the cluster.
        pair: shape of P and S.
        policies: names in `ALL`.
        split_s: starts from here on are scored; starts whose days end before it are for training.
        from_s: the first start to learn from.
        outage_cost: of an hour of interruption, an hour of overlap costing 1.
        warm_up_s: time from the empty cluster to P's submission.
        jobs: jobs of each chain.
        grid: query models and notice P's end only every ten minutes, as Mirage's authors do.
        max_overlap_h: largest mean overlap of policies in `bound.BOUNDED`, hours; None: no bound.
    """

    size: int
    pair: Pair
    policies: tuple[str, ...]
    split_s: int
    from_s: int
    outage_cost: float
    warm_up_s: int = WARM_UP_S
    jobs: int = 2
    grid: bool = False
    max_overlap_h: float | None = None

    @property
    def arrivals_s(self) -> int:
        """From the empty cluster to the last submission."""
        return self.warm_up_s + AHEAD_S + (self.jobs - 2) * 60 * self.pair.limit_min


class Trial:
    """Starts of a log by the settings."""

    def __init__(self, log: Log, evaluation: Evaluation) -> None:
        self.log, self.evaluation = log, evaluation
        self.history = History(log)

    def start(self, begin: int, chain: Sequence[Link] = ()) -> Start:
        """A start at a second; P is the first job of a chain, or the last one of `chain`."""
        wanted = self.evaluation
        situation = Situation(
            self.log, begin, wanted.size, wanted.pair, p_submit_s=wanted.warm_up_s, arrivals_s=wanted.arrivals_s,
            chain=chain,
        )  # fmt: skip
        return start_of(situation, begin, self.history, grid=wanted.grid)

    def chain(self, begin: int, first: Start, name: str, rule: Rule) -> list[Outcome]:
        """The hand-overs of a chain of jobs, each submitted by the rule."""
        links = [Link(first.situation.p_submit_min, first.situation.p_submit_min)]
        outcomes = []
        for k in range(self.evaluation.jobs - 1):
            start = self.start(begin, links) if k else first
            outcome, link = hand_over(start, name, rule)
            outcomes.append(outcome)
            links.append(link)
        return outcomes


def hand_over(start: Start, name: str, rule: Rule) -> tuple[Outcome, Link]:
    """The outcome of one P and its S, which is submitted no later than P's end is noticed."""
    at = min(rule.minute(start), start.p_ends if name in OFFLINE else start.forced)
    since = start.p_ends - start.situation.pair.lasts_min + 1 if name == "dependency" else at
    outcome = start.situation.outcome(start.situation.initial_state(), at, since)
    return outcome, Link(at, since)


OFFLINE = ("reactive", "avg", "asap", "dependency", "quantile")
"""Policies without looks: never late, as in the authors' programs."""
