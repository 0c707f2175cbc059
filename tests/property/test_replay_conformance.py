"""Every policy, built in or shown in the docs, keeps what no replay may break; a new one is checked by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.conformance import random_case, run, violations
from gpuctl.replay.policies import BUILT_IN, find
from tests.replay_policies import Crowd, Packer, Slicer

if TYPE_CHECKING:
    from gpuctl.replay.policy import PythonPolicy

NAMES = [name for name in BUILT_IN if name != "recorded"]  # a random case records nothing


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_policy_breaks_an_invariant(name: str, seed: int) -> None:
    workload, cluster, shared = random_case(seed)
    outcome = run(find(name)(), workload, cluster, shared)
    assert violations(outcome, workload, cluster, shared) == []


@pytest.mark.parametrize("kind", [Packer, Slicer, Crowd])
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_nor_does_one_whose_jobs_share_gpus(kind: type[PythonPolicy], seed: int) -> None:
    workload, cluster, shared = random_case(seed)
    outcome = run(kind(), workload, cluster, shared)
    assert violations(outcome, workload, cluster, shared) == []


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_same_case_gives_the_same_decisions(name: str, seed: int) -> None:
    one, two = (run(find(name)(), *random_case(seed)) for _ in range(2))
    assert one.decisions.write_ndjson() == two.decisions.write_ndjson()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_recorded_gives_back_what_another_policy_did(seed: int) -> None:
    from dataclasses import replace

    workload, cluster, shared = random_case(seed, plain=True)
    outcome = run(find("fifo-skip")(), workload, cluster, shared)
    pieces = outcome.pieces.join(outcome.attempts.with_row_index("row").cast({"row": int}), on="row").sort("job", "row")
    counts = np.bincount(pieces["job"].to_numpy(), minlength=workload.size)
    recorded = replace(
        workload,
        recorded_start=outcome.jobs["start_s"].to_numpy(),
        piece_start=np.concatenate([[0], np.cumsum(counts)]),
        piece_server=pieces["server"].to_numpy(),
        piece_gpus=pieces["gpus"].to_numpy(),
    )
    again = run(find("recorded")(), recorded, cluster, shared)
    assert again.jobs.select("start_s", "end_s").equals(outcome.jobs.select("start_s", "end_s"))
    assert again.pieces.height == outcome.pieces.height


def test_a_broken_outcome_is_found() -> None:
    from dataclasses import replace

    import polars as pl

    workload, cluster, shared = random_case(3)
    outcome = run(find("fifo")(), workload, cluster, shared)
    early = replace(outcome, attempts=outcome.attempts.with_columns(pl.col("start_s") - 50))
    twice = replace(outcome, pieces=outcome.pieces.with_columns(pl.col("gpus") * 9))
    assert any("eligible" in line for line in violations(early, workload, cluster, shared))
    assert any("gives" in line for line in violations(twice, workload, cluster, shared))
