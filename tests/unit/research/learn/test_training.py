"""Training: it learns, goes on after a stop with the same result, and what it learns runs without PyTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.predictors.card import load_folder
from gpuctl.research.learn.checkpoints import KIND, Checkpoint
from gpuctl.research.learn.evolution import Evolution, evolve, search
from gpuctl.research.learn.nets import initial, scaled

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.research.learn.nets import Net

LAYERS: list[dict[str, Any]] = [
    {"kind": "scale"}, {"kind": "linear", "outputs": 16}, {"kind": "tanh"}, {"kind": "linear", "outputs": 1},
]  # fmt: skip
X = np.linspace(-2, 3, 400)[:, None]
Y = np.abs(X[:, 0]) - 1


class StopError(Exception):
    """A training is stopped."""


def stop_at(number: int) -> Any:
    def tell(done: int, _: int) -> None:
        if done == number:
            raise StopError

    return tell


def same(a: Net, b: Net) -> bool:
    return all((a.weights[name] == b.weights[name]).all() for name in a.weights)


def test_evolution_finds_a_curve_and_continues_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = initial((1,), LAYERS, 1, **scaled(X))

    def score(tried: Net, generation: int) -> float:
        some = slice(generation % 4, None, 4) if generation >= 0 else slice(None)
        return -float(((tried(X[some])[:, 0] - Y[some]) ** 2).mean())

    how = Evolution(generations=80, pairs=12, noise=0.1, rate=0.05)
    whole = evolve(net, score, how)
    assert score(net, -1) < -0.4
    assert score(whole.net, -1) > -0.1
    assert whole.net.weights["0.mean"] == net.weights["0.mean"]
    assert max(row["held_score"] for row in whole.curve if "held_score" in row) == score(whole.net, -1)
    kept = tmp_path / "search"
    with monkeypatch.context() as patch:
        patch.setattr("gpuctl.research.learn.checkpoints.EVERY_S", 0.0)
        with pytest.raises(StopError):
            evolve(net, score, how, checkpoint=kept, progress=stop_at(5))
    resumed = evolve(net, score, how, checkpoint=kept)
    assert same(resumed.net, whole.net)
    assert resumed.curve == whole.curve
    with pytest.raises(InputError, match="of a training with other data"):
        evolve(net, score, replace(how, seed=2), checkpoint=kept)


@pytest.mark.parametrize(
    ("state", "arrays"),
    [
        ({"curve": 3}, {}), ({"curve": [1]}, {}), ({"curve": [{"score": "x"}]}, {}), ({"curve": None}, {}),
        ({"cpu_s": -1}, {}), ({"cpu_s": None}, {}), ({}, {"theta": np.zeros(3)}),
        ({}, {"second": np.full(49, np.nan)}), ({}, {"best": None}),
    ],
)  # fmt: skip
def test_a_state_that_no_training_has_is_refused(tmp_path: Path, state: dict[str, Any], arrays: dict[str, Any]) -> None:
    how = Evolution(generations=2, pairs=2)
    weights = np.zeros(49)
    search(weights, lambda theta, _: -float((theta**2).sum()), how, settings={}, checkpoint=tmp_path / "kept")
    folder = load_folder(tmp_path / "kept", KIND)
    saved = {name.removesuffix(".npy"): each for name, each in folder.files.items() if name.endswith(".npy")}
    place = Checkpoint(tmp_path / "kept", folder.card["of"])
    left = {name: each for name, each in (saved | arrays).items() if each is not None}
    place.save(folder.json("state.json") | state, left, now=True)
    with pytest.raises(InputError, match="holds no state that this training can go on from"):
        search(weights, lambda theta, _: -float((theta**2).sum()), how, settings={}, checkpoint=tmp_path / "kept")


def test_fitting_finds_a_curve_and_continues_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="gpuctl-toolkit[learn] is not installed")
    from gpuctl.research.learn.fitting import Training, fit

    net = initial((1,), LAYERS, 1, **scaled(X))
    how = Training(epochs=60, batch=50, rate=0.02, patience=60)
    parts = (X[::2], Y[::2]), (X[1::2], Y[1::2])

    def loss(module: Any, x: Any, y: Any) -> Any:
        return torch.square(module(x)[:, 0] - y).mean()

    whole = fit(net, *parts, loss, how)
    off = float(((whole.net(X[1::2])[:, 0] - Y[1::2]) ** 2).mean())
    assert off < 0.02
    assert min(row["held_loss"] for row in whole.curve) == pytest.approx(off, rel=1e-3)
    kept = tmp_path / "fit"
    with monkeypatch.context() as patch:
        patch.setattr("gpuctl.research.learn.checkpoints.EVERY_S", 0.0)
        with pytest.raises(StopError):
            fit(net, *parts, loss, how, checkpoint=kept, progress=stop_at(7))
    done: list[int] = []
    resumed = fit(net, *parts, loss, how, checkpoint=kept, progress=lambda number, _: done.append(number))
    assert done[0] == 7
    assert same(resumed.net, whole.net)
    assert resumed.curve == whole.curve
    with pytest.raises(InputError, match="of a training with other data"):
        fit(net, (X[::2] + 1, Y[::2]), parts[1], loss, how, checkpoint=kept)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "ddpg"])
def test_learning_in_an_environment_continues_after_a_stop(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One observation, one action a step: the right one is told by the sign of what is seen."""
    pytest.importorskip("stable_baselines3", reason="gpuctl-toolkit[learn] is not installed")
    import gymnasium

    from gpuctl.research.learn.stable_baselines import Learning, learn

    class Sign(gymnasium.Env):  # type: ignore[misc]
        observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        action_space = (
            gymnasium.spaces.Box(-3, 5, (1,), np.float32) if algorithm == "ddpg" else gymnasium.spaces.Discrete(2)
        )

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            self.seen, self.steps = self.np_random.uniform(-1, 1, 2).astype(np.float32), 0
            return self.seen, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            if algorithm == "ddpg":
                reward = -abs(float(action[0]) - 3 * float(self.seen[0]) - 1) / 4
            else:
                reward = float((self.seen[0] > 0) == (action == 1))
            self.steps += 1
            self.seen = self.np_random.uniform(-1, 1, 2).astype(np.float32)
            return self.seen, reward, self.steps == 8, False, {}

    scale = {"mean": np.zeros(2, np.float32), "std": np.full(2, 0.5, np.float32)}
    options = (
        {"n_steps": 256, "learning_rate": 1e-2}
        if algorithm == "ppo"
        else {"learning_starts": 100, "gamma": 0.0, "learning_rate": 5e-3}
    )
    how = Learning(algorithm, rounds=3, steps=512, hidden=(16,), options=options)
    whole = learn(Sign, scale, how)
    kept = tmp_path / "learning"
    with monkeypatch.context() as patch:
        patch.setattr("gpuctl.research.learn.checkpoints.EVERY_S", 0.0)
        with pytest.raises(StopError):
            learn(Sign, scale, how, checkpoint=kept, progress=stop_at(2))
    assert same(learn(Sign, scale, how, checkpoint=kept).net, whole.net)
    x = np.random.Generator(np.random.PCG64(1)).uniform(-1, 1, (200, 2))
    answers = whole.net(x)
    if algorithm == "ddpg":
        assert np.abs(answers[:, 0] - 3 * x[:, 0] - 1).mean() < 1.2
    else:
        assert ((answers.argmax(axis=1) == 1) == (x[:, 0] > 0)).mean() > 0.8
