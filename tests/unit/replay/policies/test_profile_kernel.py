"""What is looked up in the profile of free GPUs, beside loops that go step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpuctl.compiled.loading import load_compiler
from gpuctl.replay.policies.backfill import profile_kernel
from gpuctl.replay.policies.backfill.profile_kernel import NO_LIMIT, Profile, profile

STEPS, FIRST = 150, 41


def look_up(c: Any, k: int, end: int, gpus: int, most: int, second: float) -> tuple[int, int, int, int]:
    """The four answers: functions of compiled code are called by such."""
    return (
        profile_kernel.fuller_from(c, k, gpus, second),
        profile_kernel.open_from(c, k, gpus, most, end),
        profile_kernel.open_since(c, k, gpus),
        profile_kernel.step_from(c, second, FIRST),
    )


@pytest.fixture(scope="module")
def looked_up() -> Callable[..., tuple[int, int, int, int]]:
    import numba

    load_compiler()
    compiled: Callable[..., tuple[int, int, int, int]] = numba.njit(look_up)
    return compiled


def some_profile(seed: int) -> Profile:
    """Steps with long stretches of many GPUs and of few; what is before and behind them must not count."""
    draw = np.random.default_rng(seed)
    c = profile(STEPS, 0)
    c.n[:2] = FIRST, STEPS
    c.t[FIRST : FIRST + STEPS] = np.cumsum(draw.integers(1, 4, STEPS))
    c.level[:] = draw.choice([0, 3, 9, 40], c.level.size)
    c.level[FIRST : FIRST + STEPS] = np.repeat(draw.integers(0, 12, STEPS), draw.choice([1, 1, 2, 50], STEPS))[:STEPS]
    return c


@pytest.mark.parametrize("seed", range(6))
def test_lookups_are_those_of_loops(seed: int, looked_up: Callable[..., tuple[int, int, int, int]]) -> None:
    c = some_profile(seed)
    draw = np.random.default_rng(1000 + seed)
    stop = FIRST + STEPS
    level, begins = c.level, c.t
    found = 0
    for _ in range(300):
        k, end = int(draw.integers(FIRST, stop)), int(draw.integers(FIRST, stop + 1))
        gpus, most = int(draw.integers(0, 13)), int(draw.choice([4, 8, int(NO_LIMIT)]))
        second = float(draw.integers(1, int(begins[stop - 1]) + 3))
        fuller = next((i for i in range(k, stop) if level[i] < gpus and begins[i] < second), stop)
        opened = next((i for i in range(k, end) if gpus <= level[i] <= most), end)
        since = k
        while since > FIRST and level[since - 1] >= gpus:
            since -= 1
        step = max((i for i in range(FIRST, stop) if begins[i] <= second), default=FIRST)
        assert looked_up(c, k, end, gpus, most, second) == (fuller, opened, since, step)
        found += k - since > 64
    # some stretches are longer than what is looked at in one go
    assert found > 3
