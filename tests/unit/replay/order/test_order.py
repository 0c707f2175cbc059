"""Orders are put together of parts: any that can be written keeps what no replay may break."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.order.order import (
    BackfillRule,
    FixedRank,
    Gittins,
    Inside,
    LeastRemaining,
    LeastService,
    LeastShare,
    Levels,
    NonPreemptive,
    Order,
    Preemptive,
    Quantum,
    Rounds,
    list_program,
    placements,
)

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


Make = Callable[[Any, Any, Any], Order]
"""An order for a workload, a cluster and a state."""


class _Composed(Policy):
    """Whatever order it is given."""

    name = "composed"
    preempts = True
    oracle = True

    def __init__(self, make: Make) -> None:
        super().__init__()
        self.make = make

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        return list_program(self.make(workload, cluster, state), workload, state)


def _non_preemptive() -> list[Make]:
    ranks: tuple[Callable[[Any, Any], Any], ...] = (
        lambda w, _s: FixedRank(w.gpus.astype(np.float64)),
        lambda _w, s: LeastShare(np.arange(1.0, s.share_used.size + 1)),
    )

    def make(rank: Any, past: BackfillRule, own: str, limited: bool) -> Make:
        def order(w: Any, c: Any, s: Any) -> Order:
            limit = np.full(len(w.queues), c.total_gpus - 1.0) if limited else None
            return NonPreemptive(rank(w, s), past, placements(w, own, None), limit)

        return order

    return [make(*parts) for parts in product(ranks, BackfillRule, ("any", "consolidate"), (False, True))]


def _preemptive() -> list[Make]:
    def remaining(w: Any, first: bool, weigh: bool) -> LeastRemaining:
        return LeastRemaining(w.gpus.astype(np.float64) if weigh else None, first)

    def levels(w: Any, inside: Inside | None, promote: float) -> Levels:
        return Levels((30.0, 90.0), "gpu-time", inside or Gittins(w.run_time), promote)

    def make(rank: Any, when: Any, own: str) -> Make:
        return lambda w, _c, _s: Preemptive(rank(w), placements(w, own, None), when, patience=3)

    ranks: list[Any] = [
        partial(remaining, first=first, weigh=weigh) for first, weigh in product((False, True), (False, True))
    ]
    ranks += [lambda _w: LeastService("gpu-time"), lambda _w: LeastService("time")]
    ranks += [
        partial(levels, inside=inside, promote=promote) for inside, promote in product((*Inside, None), (0.0, 2.0))
    ]
    return [make(*parts) for parts in product(ranks, (None, Quantum(40.0), Rounds(30.0)), ("fill", "consolidate"))]


@pytest.mark.parametrize("make", [pytest.param(_non_preemptive, id="waits"), pytest.param(_preemptive, id="preempts")])
def test_any_composition_keeps_what_no_replay_may_break(make: Any) -> None:
    # with a limit below the cluster a gang may never start: then jobs wait at the end, which is right
    for seed, order in enumerate(make()):
        case = random_case(seed)
        outcome = run(_Composed(order), *case)
        limited = make is _non_preemptive and seed % 2 == 1
        broken = [text for text in violations(outcome, *case) if not (limited and "not ended" in text)]
        assert broken == [], (seed, broken)


def test_what_ranks_no_such_order_is_refused() -> None:
    how = np.zeros(1, np.int64)
    wrong: Any = LeastService("time")
    with pytest.raises(TypeError, match="LeastService ranks no such order: expected FixedRank or LeastShare"):
        NonPreemptive(wrong, BackfillRule.NOBODY, how)
    wrong = LeastShare(np.zeros(1))
    with pytest.raises(TypeError, match="LeastShare ranks no such order"):
        Preemptive(wrong, how)
