"""``--check`` finds foresight by every door that ``memory(self, workload, …)`` opens, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.replay.contract.conformance import check
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.order.order import BackfillRule, FixedRank, NonPreemptive, list_program, placements
from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.models.records import Workload

CASES = 12
DOORS: dict[str, Callable[[Workload], Any]] = {
    "run time": lambda w: w.true_run_time,
    "first attempt": lambda w: w.segment_s[w.segment_start[:-1]],
    "retries": lambda w: np.diff(w.segment_start),
    "final state": lambda w: np.array([word == "failed" for word in w.state], float),
    "recorded start": lambda w: w.recorded_start[w.segment_start[:-1]],
    "recorded place": lambda w: w.piece_node[w.piece_start[w.segment_start[:-1]]],
    "why it failed": lambda w: w.failures.confidence[w.segment_start[:-1]] if w.failures else np.zeros(w.size),
}
HONEST: dict[str, Callable[[Workload], Any]] = {
    "time limit": lambda w: np.nan_to_num(w.time_limit, nan=1e9),
    "user": lambda w: w.user,
}


def ranked(key: Callable[[Workload], Any]) -> type[Policy]:
    """A policy that goes by that of each job."""

    class Ranked(Policy):
        name = "ranked"

        def program(self, workload: Any, cluster: Any, settings: Any, state: Any) -> Any:
            del cluster
            how = placements(workload, "any", settings.placement)
            rank = FixedRank(np.asarray(key(workload), np.float64))
            return list_program(NonPreemptive(rank, BackfillRule.ANY_THAT_FITS, how), workload, state)

    return Ranked


@pytest.mark.parametrize("door", DOORS)
def test_facts_only_in_the_log_are_found(door: str) -> None:
    assert any("knows what comes after" in line for line in check(ranked(DOORS[door]), CASES))


@pytest.mark.parametrize("door", HONEST)
def test_requests_of_a_job_need_no_foresight(door: str) -> None:
    assert check(ranked(HONEST[door]), CASES) == []


@pytest.mark.parametrize("name", ["sjf", "fifo-skip"])
def test_built_in_policies_pass(name: str) -> None:
    assert check(find(name), CASES) == []
