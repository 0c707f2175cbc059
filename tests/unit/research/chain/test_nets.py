"""Nets that decide: what they see, what waiting comes to, their environment; trained, saved and run without PyTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import DependencyError, InputError, UsageError
from gpuctl.predictors import card
from gpuctl.research.chain import model, net_training, nets, policies
from gpuctl.research.chain.episode import Pair
from gpuctl.research.chain.evaluate import SAVED, policy_names, run
from gpuctl.research.chain.trial import Evaluation, Trial
from gpuctl.research.learn.environments import ENVIRONMENTS
from gpuctl.research.learn.nets import initial
from gpuctl.research.learn.saved import files_of
from tests.unit.research.chain.test_policies import DAY_S, busy

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.research.chain.log import Log

ASKED = Evaluation(6, Pair(1, 1440), ("reactive", "plan"), 18 * DAY_S, 5 * DAY_S, 3.0)


@pytest.fixture(scope="module")
def log() -> Log:
    return busy(24, 4000)


@pytest.fixture(scope="module")
def learnt(log: Log) -> policies.Lessons:
    trial = Trial(log, ASKED)
    return policies.lessons(map(trial.start, range(5 * DAY_S, 13 * DAY_S, 4 * 3600)), True, before=True)


@pytest.fixture(scope="module")
def trained(log: Log) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model of submissions until day 17."""
    return model.train(log, replace(ASKED, split_s=17 * DAY_S))


def test_the_cost_of_waiting_is_that_of_the_next_submission() -> None:
    submit = np.array([False, True, False, False, False, True])
    now, end = np.array([5.0, 4.0, 3.0, 9.0, 8.0, 7.0]), np.array([1.0, 2.0])
    found = net_training.came(submit, now, end, np.array([0, 0, 0, 1, 1, 1]))
    assert found.tolist() == [4, 1, 1, 7, 7, 2]


def test_a_window_is_the_day_up_to_its_look(log: Log, learnt: policies.Lessons) -> None:
    start = Trial(log, ASKED).start(5 * DAY_S)
    at = policies.hourly(start)[[0, 7, 23]]
    alone = policies.hours(start, at)
    assert alone.shape == (3, policies.BEFORE + 1, 26)
    assert (net_training.windows(learnt)[[0, 7, 23]] == alone).all()
    assert (alone[:, -1] == policies.look(start, at, waits=False)[0]).all()
    assert (alone[2, -8] == policies.look(start, at[2:] - 420, waits=False)[0]).all()


def test_the_environment_is_the_simulation(log: Log) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("gpuctl/Chain-v0").unwrapped
    assert ENVIRONMENTS["Chain-v0"] == f"{type(env).__module__}:{type(env).__name__}"
    check_env(env)
    env = gymnasium.make("gpuctl/Chain-v0", log=log, nodes=6, outage_cost=3.0).unwrapped
    _, told = env.reset(seed=7)
    assert env.reset(seed=7)[1] == told
    seen, _ = env.reset(options={"start": 20})
    start = Trial(log, replace(ASKED, from_s=env.begins[0])).start(env.begins[20])
    assert np.expm1(seen[nets.SEEN.index("left_h")]) == pytest.approx(24, abs=0.1)
    for waited in (5, 24):
        env.reset(options={"start": 20})
        steps = [env.step(0) for _ in range(waited)]
        assert [step[1] for step in steps[:23]] == [0] * min(waited, 23)
        last = steps[-1] if waited == 24 else env.step(1)
        minute = start.p_end if waited == 24 else start.p_end - 1439 + 60 * waited
        gap = start.situation.outcome(start.situation.initial_state(), minute).interruption_s / 3600
        assert last[2:4] == (True, False)
        assert -last[1] == pytest.approx(3 * max(gap, 0) + max(-gap, 0))
    with pytest.raises(UsageError, match="no trace store"):
        gymnasium.make("gpuctl/Chain-v0", log="nowhere.duckdb")


def saved_net(name: str, place: Path, trained: tuple[dict[str, Any], dict[str, Any]]) -> model.Model:
    """A saved model with a net of random weights."""
    about, files = dict(trained[0]), trained[1]
    layers: list[dict[str, Any]] = [{"kind": "linear", "outputs": nets.outputs_of(name)}]
    if name == "transformer":
        layers.insert(0, {"kind": "flatten"})
    net = initial(nets.shape_of(name), layers, 1)
    about["net"] = {"name": name, "outage_cost": 3.0 if name in nets.OF_COST else None}
    card.save_folder(place, model.KIND, about, files | files_of(net))
    return model.load(place)


def test_a_saved_net_is_scored_without_pytorch(
    log: Log, trained: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(DependencyError, match="--policy pg needs torch"):
        policy_names("plan,pg")
    found = saved_net("pg", tmp_path / "pg", trained)
    model.check_use(found, ASKED)
    table, _, _, frontier = run(log, replace(ASKED, policies=("reactive", SAVED)), saved=found)
    assert table.filter(policy=SAVED)["starts"][0] > 10
    assert {row.outage_cost for row in frontier if row.policy == SAVED} == {3.0}
    for change, told in (
        ({"outage_cost": 1.0}, "trained for an outage cost of 3"), ({"size": 7}, "nodes of the cluster"),
        ({"pair": Pair(2, 1440)}, "nodes of each job"), ({"split_s": 16 * DAY_S}, "learnt from submissions until"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=told):
            model.check_use(found, replace(ASKED, **change))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="outage cost"):
        model.check_live(found, 1.0)
    row = np.zeros((1, 26))
    row[0, 9] = 8.0
    assert 0 < found.lead_h(row, np.ones((1, 6)), 3.0) < 8
    with pytest.raises(InputError, match="looks back a day"):
        model.check_live(saved_net("transformer", tmp_path / "transformer", trained), 1.0)
    dqn = saved_net("dqn", tmp_path / "dqn", trained)
    lead = dqn.lead_h(row, np.ones((1, 6)), 3.0)
    assert dqn.brain is not None
    values = [dqn.brain.net(nets.choice_inputs(row, np.ones((1, 6)), np.array([h])))[0] for h in (lead, lead + 0.1)]
    assert lead == 0 or values[0][0] <= values[0][1]
    assert lead >= 8 or values[1][0] > values[1][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", nets.NETS)
def test_a_trained_net_is_better_than_waiting(
    name: str, log: Log, learnt: policies.Lessons, trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained by PyTorch, twice the same, once after a stop; saved, loaded, and scored on later starts."""
    pytest.importorskip("torch", reason="gpuctl-toolkit[learn] is not installed")
    short = {each: replace(getattr(net_training, each), epochs=6) for each in ("_OF_QUANTILES", "_OF_COSTS")}
    for each, how in short.items():
        monkeypatch.setattr(net_training, each, how)
    monkeypatch.setattr(net_training, "ROUNDS", 2)
    found = net_training.train(name, learnt, 3.0)
    kept, stages = tmp_path / "kept", []

    def stop(what: str, done: int, _: int) -> None:
        stages.append(what)
        if len(stages) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        net_training.train(name, learnt, 3.0, checkpoint=kept, progress=stop)
    again = net_training.train(name, learnt, 3.0, checkpoint=kept)
    assert all((again.net.weights[k] == w).all() for k, w in found.net.weights.items())
    assert again.curve == found.curve
    x = np.random.Generator(np.random.PCG64(1)).random((5, *found.net.inputs))
    from gpuctl.research.learn.torch_nets import module_of, torch_of

    answers = module_of(found.net).eval()(torch_of("a test").from_numpy(x.astype(np.float32))).detach().numpy()
    assert np.abs(found.net(x) - answers).max() < 1e-4
    about, files = trained
    told = {"net": {"name": name, "outage_cost": found.cost}, "training_curve": found.curve}
    card.save_folder(tmp_path / "model", model.KIND, about | told, files | files_of(found.net))
    table, *_ = run(log, replace(ASKED, policies=("reactive", SAVED)), saved=model.load(tmp_path / "model"))
    cost = {row["policy"]: row["cost_h"] for row in table.filter(level="all").to_dicts()}
    assert cost[SAVED] < 0.8 * cost["reactive"]


@pytest.mark.slow
def test_stable_baselines_learns_in_the_environment(log: Log) -> None:
    pytest.importorskip("stable_baselines3", reason="gpuctl-toolkit[learn] is not installed")
    from stable_baselines3.common.env_checker import check_env

    from gpuctl.research.chain.environment import Chain
    from gpuctl.research.learn.nets import scaled
    from gpuctl.research.learn.stable_baselines import Learning, learn

    env = Chain(log, nodes=6, outage_cost=3.0, end=18 * DAY_S)
    check_env(env)
    seen = np.concatenate([env.start(k)[0] for k in range(0, len(env.begins), 4)])
    how = Learning("ppo", rounds=2, steps=256, options={"n_steps": 128})
    one, same = (learn(lambda: env, scaled(seen), how) for _ in range(2))
    assert one.net(seen).shape == (len(seen), 2)
    assert (one.net(seen) == same.net(seen)).all()
    assert len(one.curve) == 2
