"""``gpuctl/Deferrable-v0``: Gymnasium's checker, agents that do what rules do, and what becomes known later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.forecasts import QUANTILES, forecast
from gpuctl.research.deferrable.cases import write_case
from gpuctl.research.deferrable.generator import CaseSettings, generate
from gpuctl.research.deferrable.slots import Rule, score, simulate, worth

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.research.deferrable.environment import Deferrable

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
SMALL = {"days": 3, "gpus": 64, "made": 2}


def make(**given: Any) -> Deferrable:
    import gpuctl.research.learn.environments  # noqa: F401 - its import registers them

    found: Deferrable = gymnasium.make("gpuctl/Deferrable-v0", **{**SMALL, **given}).unwrapped
    return found


def test_checkers_find_nothing(tmp_path: Path) -> None:
    from gymnasium.utils.env_checker import check_env

    write_case(generate(CaseSettings(4, days=3, gpus=64)), tmp_path)
    for env in (make(), make(rows=True), make(cases=tmp_path)):
        check_env(env, skip_render_check=True)
        try:
            from stable_baselines3.common.env_checker import check_env as check_more
        except ImportError:
            continue
        check_more(env)


def test_who_always_starts_is_asap_and_rewards_are_its_score() -> None:
    env = make()
    case = env.cases[1]
    env.reset(seed=0, options={"case": 1})
    total, over = 0.0, False
    while not over:
        _, reward, over, _, info = env.step(1)
        total += reward
    found = simulate(case, Rule(kernel.ASAP))
    assert found.lost > 0
    assert info["score"] == score(case, found)
    assert total == pytest.approx((worth(case, found.start).sum() - found.lost) / case.work.mean())


def test_observations_are_past_and_later_labels_are_true() -> None:
    env = make()
    case = env.cases[0]
    seen, told = env.reset(seed=0, options={"case": 0})
    draw = np.random.Generator(np.random.PCG64(1))
    slots: list[int] = []
    started: dict[int, int] = {}
    known: dict[tuple[int, int], float] = {}
    over, first = False, told["step"]
    while not over:
        s, job = env._state, env._offered
        h = int(s.c[kernel.SLOT])
        assert seen["past"][-1] == np.float32(case.leftover[h] / case.total)
        for ahead in (1, 17, 48):
            expected = [forecast(case.leftover, h, h + ahead, q, case.season) / case.total for q in QUANTILES]
            assert seen["ahead"][ahead - 1, 1:] == pytest.approx(expected)
            assert h + ahead >= s.load.size or seen["ahead"][ahead - 1, 0] == np.float32(s.load[h + ahead] / case.total)
        action = int(draw.integers(2))
        if action:
            started[len(slots)] = job
        slots.append(h)
        seen, _, over, _, info = env.step(action)
        for step, column, value in info["known"]:
            assert (step - first, column) not in known
            known[step - first, column] = value
    for step, h in enumerate(slots):
        for k in range(6):
            if h + 1 + k < case.horizon:
                assert known[step, k] == case.leftover[h + 1 + k] / case.total
        assert ((step, 6) in known) == (step in started)
    ends = [known[step, 6] for step in started]
    assert sum(ends) == (env._state.state == kernel.DONE).sum()
    assert len(ends) - sum(ends) == env._state.evictions.sum() > 0
