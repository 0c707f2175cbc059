"""``gpuctl/Replay-v0``: Gymnasium's checker, and agents that do what policies do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from gpuctl.replay.environment import Replay

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")


def make(**given: Any) -> Replay:
    import gpuctl.research.learn.environments  # noqa: F401 - its import registers them

    found: Replay = gymnasium.make("gpuctl/Replay-v0", **given).unwrapped
    return found


def played(env: Replay, choose: Any, seed: int = 0) -> float:
    """The sum of an episode's rewards."""
    env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        _, reward, over, _, _ = env.step(choose(env))
        total += reward
    return total


def first_that_fits(env: Replay) -> int:
    return int(np.argmax(np.append(False, env.action_masks()[1:])))


def strictly_first(env: Replay) -> int:
    return int(env.action_masks()[1])


def test_checkers_find_nothing() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(make(made=20, window=12), skip_render_check=True)
    try:
        from stable_baselines3.common.env_checker import check_env as check_more
    except ImportError:
        return
    check_more(make(made=20, window=12))


def test_what_policies_do_can_be_done_here() -> None:
    from gpuctl.replay.run import replay

    env = make(made=60, most=60, placement="any")
    for name, choose in (("fifo-skip", first_that_fits), ("fifo", strictly_first)):
        total = played(env, choose)
        [by_policy] = replay(env.workload, env.cluster, [(name, {})], placement="any")
        own = env.outcome()
        assert own.jobs["start_s"].to_list() == by_policy.jobs["start_s"].to_list(), name
        assert total == pytest.approx(-float(np.mean(own.jobs["wait_s"].to_numpy())) / 3600, abs=1e-5)
    # who always goes on gets a job started where nothing else would happen, and all of them end
    assert played(env, lambda _: 0) < total
    assert set(env.outcome().jobs["state"]) == {"finished"}


def test_a_fork_is_independent_and_the_same_choices_lead_to_the_same() -> None:
    env = make(made=40, most=8, window=30)
    draw = np.random.Generator(np.random.PCG64(3))

    def chosen(of: Replay) -> int:
        return int(draw.choice(np.flatnonzero(of.action_masks())))

    env.reset(seed=2)
    for _ in range(12):
        env.step(chosen(env))
    twin, before = env.fork(), env.outcome().jobs
    path, over = [], False
    while not over:
        path.append(chosen(twin))
        _, _, over, _, _ = twin.step(path[-1])
    assert env.outcome().jobs.equals(before)
    for action in path:
        _, _, over, _, _ = env.step(action)
    assert over
    assert env.outcome().jobs.equals(twin.outcome().jobs)


def test_true_run_times_are_seen_only_where_requested() -> None:
    seen = {known: make(made=20, run_times=known).reset(seed=1)[0] for known in (False, True)}
    assert seen[False][3] == 0 < seen[True][3]
    assert (np.delete(seen[True], 3) == np.delete(seen[False], 3)).all()
