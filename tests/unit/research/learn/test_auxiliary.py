"""Auxiliary tasks of PPO: labels stand beside the steps that they are of, and their loss is what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuctl.research.learn.auxiliary import Auxiliary, loss_of, ppo

torch = pytest.importorskip("torch", reason="gpuctl-toolkit[learn] is not installed")
pytest.importorskip("stable_baselines3", reason="gpuctl-toolkit[learn] is not installed")
gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
AUX = Auxiliary(((0, 2), (1,)), (1,))


class Later(gymnasium.Env):  # type: ignore[misc,name-defined]
    """Tells a step later what was seen, or whether it was above a half; episodes of seven steps."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seen = [self.np_random.random(2).astype(np.float32)]
        return self.seen[0], {}

    def step(self, _: Any) -> Any:
        self.seen.append(self.np_random.random(2).astype(np.float32))
        of = len(self.seen) - 3
        known = [] if of < 0 else [(of, 0, self.seen[of][0]), (of, 1, float(self.seen[of][1] > 0.5)), (of, 7, 1.0)]
        return self.seen[-1], 0.0, len(self.seen) == 8, False, {"known": known}


def test_labels_stand_next_to_their_steps_and_are_learnt() -> None:
    kind, policy, buffer, labels = ppo(AUX)
    learner = kind(
        policy, Later(), n_steps=256, batch_size=64, n_epochs=15, learning_rate=1e-2, ent_coef=0.01, seed=1,
        device="cpu", rollout_buffer_class=buffer,
    )  # fmt: skip
    learner.learn(512, callback=labels)
    seen = learner.rollout_buffer.observations.reshape(256, 2)
    told = learner.labels_of_steps
    known = ~np.isnan(told[:, 0])
    # the last step of each episode, and of the rollout, is told of no more
    assert 6 / 7 - 0.02 < known.mean() < 6 / 7 + 0.02
    assert (told[known, 0] == seen[known, 0]).all()
    assert np.isnan(told[:, 1]).all(), "column 2 of the first task is never told"
    assert (told[known, 2] == (seen[known, 1] > 0.5)).all()
    with torch.no_grad():
        found = learner.policy
        answers = found.tells(found.mlp_extractor.forward_actor(torch.from_numpy(seen))).numpy()
    assert np.corrcoef(answers[:, 0], seen[:, 0])[0, 1] > 0.9
    assert ((answers[:, 2] > 0) == (seen[:, 1] > 0.5)).mean() > 0.9


def test_the_loss_by_hand() -> None:
    nan = float("nan")
    answers = torch.tensor([[1.0, 0.0, 0.0], [3.0, 5.0, 2.0]])
    labels = torch.tensor([[0.0, nan, 1.0], [1.0, nan, nan]])
    # Huber: 0.5 x 1 and 2 - 0.5, over two known; cross-entropy of an even chance
    assert float(loss_of(torch, answers, labels, AUX)) == pytest.approx(0.1 * ((0.5 + 1.5) / 2 + np.log(2)), rel=1e-6)
    assert float(loss_of(torch, answers, torch.full_like(labels, nan), AUX)) == 0
