"""Nodes fail, alone and in racks, under every policy: no job runs on a failed node, and all work is done once."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.contract.failing_cases import failure_violations, with_failures
from gpuctl.replay.policies import BUILT_IN, find
from tests.example_counts import examples

NAMES = [name for name in BUILT_IN if name != "recorded"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=327)  # jobs that depend on one that elasticflow rejects are all that is left
def test_no_policy_runs_a_job_on_a_failed_node_or_loses_count(name: str, seed: int) -> None:
    plain = random_case(seed, resources=find(name).resources and seed % 2 == 1)
    assume(not plain[1].pool)
    case = with_failures(seed, plain)
    outcome = run(find(name)(), *case)
    assert violations(outcome, *case) == []
    assert failure_violations(outcome, case[2]) == []
