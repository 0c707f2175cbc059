"""PPO on deferrable jobs: the same again after a stop, and what is saved decides as what was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.predictors import card
from gpuctl.research.deferrable.generator import CaseSettings, generate
from gpuctl.research.deferrable.model import KIND, load
from gpuctl.research.deferrable.slots import score
from gpuctl.research.deferrable.training import Lessons

if TYPE_CHECKING:
    from pathlib import Path

for package in ("torch", "stable_baselines3", "gymnasium"):
    pytest.importorskip(package, reason="gpuctl-toolkit[learn] is not installed")

from gpuctl.research.deferrable import ppo_training  # noqa: E402 - after what it needs


@pytest.mark.parametrize("aux", ["none", "all", "survival"])
def test_the_same_again_after_a_stop(aux: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ppo_training, "STEPS", 256)
    monkeypatch.setattr(ppo_training, "_OPTIONS", {**ppo_training._OPTIONS, "n_steps": 256, "n_epochs": 2})
    monkeypatch.setattr(ppo_training, "_SEEN", 100)
    monkeypatch.setattr("gpuctl.research.learn.checkpoints.EVERY_S", 0.0)
    cases = tuple(generate(CaseSettings(seed, 0.9, days=3, gpus=32)) for seed in range(3))
    lessons, minutes = Lessons(cases[:2], cases[2:], {}), 3 / ppo_training.ROUNDS_A_MINUTE
    whole = ppo_training.train(lessons, minutes, aux)

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ppo_training.train(lessons, minutes, aux, checkpoint=tmp_path / "kept", progress=stop)
    again = ppo_training.train(lessons, minutes, aux, checkpoint=tmp_path / "kept")
    assert again.curve == whole.curve
    for name, each in whole.net.weights.items():
        assert (each == again.net.weights[name]).all()
    card.save_folder(tmp_path / "rule", KIND, *ppo_training.about(whole, lessons, minutes, 1, aux))
    model = load(tmp_path / "rule")
    [case] = lessons.held
    env = ppo_training.Deferrable([case], rows=True)
    seen, over = env.reset()[0], False
    while not over:
        seen, _, over, _, info = env.step(int(np.argmax(whole.net(seen[None])[0])))
    assert info["score"] == score(case, model.run(case, "newest"))
    assert model.card["auxiliary_tasks"] == aux
    assert model.card["budget"]["steps"] == 768
