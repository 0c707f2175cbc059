"""An LSTM actor and critic, trained by DDPG of Stable-Baselines3 in `gpuctl.research.accel.environment`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.accel import saved
from gpuctl.research.accel import state as s
from gpuctl.research.learn.nets import Net
from gpuctl.research.learn.saved import files_of
from gpuctl.research.learn.stable_baselines import Body, Learning, learn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpuctl.research.accel.costs import Machine

HIDDEN = 64
STEPS, EVERY, BUFFER = 4096, 8, 20_000
"""Decisions of a round, about one stream; between two steps of the gradient; decisions that are kept to learn from. The
paper's buffer is not known; 100,000 decisions would take 1.2 GB."""
ROUNDS_A_MINUTE = 3
"""What one core does, about; fixed, so that the same budget gives the same model everywhere."""
ACTOR_RATE, CRITIC_RATE = 1e-4, 1e-3
CROWDED = 0.001
"""Weight of what is asked of the memory beyond its bandwidth: with the environment's own 0.1 deadlines hardly count."""
VALID = 7
"""Column of a row that is 1 where it stands for a request."""


def rounds_of(minutes: float) -> int:
    """Return the rounds of a budget in minutes."""
    return max(1, round(minutes * ROUNDS_A_MINUTE))


def train(
    machine: Machine, models: Sequence[int], rounds: int, seed: int, tables: Path | None = None,
    *, checkpoint: Path | None = None, progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[dict[str, Any], dict[str, Any], float]:  # fmt: skip
    """Train; return the entries of a model's card, its files, and CPU seconds; the same arguments give the same model.

    Args:
        machine: the system.
        models: numbers of the models of the requests.
        rounds: rounds of `STEPS` decisions.
        seed: random seed.
        tables: the CSV of costs that `machine` has; None: gpuctl's own.
        checkpoint: folder to save the training in and resume it from; None: none.
        progress: called with the rounds done and the total.

    Raises:
        DependencyError: Stable-Baselines3 is not installed.
        InputError: the folder holds another training.
    """
    names = ",".join(machine.models[k] for k in models)
    accels = len(machine.system.kinds)
    rows, width = saved.inputs_of(accels)
    scale = {"mean": np.zeros(rows * width, np.float32), "std": np.ones(rows * width, np.float32)}
    how = Learning(
        algorithm="ddpg", rounds=rounds, steps=STEPS, hidden=(HIDDEN,), seed=seed, noise=0.2, noise_end=0.02,
        options={"batch_size": 64, "buffer_size": BUFFER, "learning_rate": CRITIC_RATE, "tau": 0.005, "gamma": 0.99,
                 "train_freq": EVERY, "gradient_steps": 1, "learning_starts": 512},
    )  # fmt: skip
    found = learn(
        lambda: flat(machine.system.text, names, tables), scale, how, body=body(accels),
        data_digest=f"{machine.digest} {machine.system.plain} {names}", checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    from gpuctl.research.accel.environment import FIRST_SEED, LOADS, SEEDS

    about = {
        "title": "A learned scheduler of layers on accelerators",
        "what": "An LSTM that gives each request that waits a priority, and an affinity for each sub-accelerator.",
        "net": saved.LSTM, "algorithm": "ddpg", "system": machine.system.plain, "system_text": machine.system.text,
        "costs": machine.digest, "models": names.split(","), "loads": list(LOADS), "seed": seed, "generations": rounds,
        "episodes": max(1, round(rounds * STEPS / 4000)), "decisions": rounds * STEPS, "crowded": CROWDED,
        "training_seeds": [FIRST_SEED, FIRST_SEED + SEEDS - 1],
    }  # fmt: skip
    return about, {"curve.json": found.curve, **files_of(found.net)}, found.cpu_s


def flat(system: str, models: str, tables: Path | None) -> Any:
    """Return the environment with flat observations for the LSTM and flat actions."""
    import gymnasium

    from gpuctl.research.accel.environment import Accel

    class Flat(gymnasium.Wrapper):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(Accel(system, tables=tables, models=models, crowded=CROWDED))
            accels = len(self.env.machine.system.kinds)
            rows, width = saved.inputs_of(accels)
            far = np.finfo(np.float32).max
            self.observation_space = gymnasium.spaces.Box(-far, far, (rows * width,), np.float32)
            self.action_space = gymnasium.spaces.Box(-1, 1, (rows * (1 + accels),), np.float32)

        def reset(self, **options: Any) -> Any:
            seen, about = self.env.reset(**options)
            return row_of(seen), about

        def step(self, action: Any) -> Any:
            seen, *rest = self.env.step(action.reshape(self.env.action_space.shape))
            return row_of(seen), *rest

    return Flat()


def row_of(seen: dict[str, Any]) -> Any:
    """Return the LSTM's input in one row: the features of each request, all sub-accelerators, then the common ones."""
    common = np.concatenate([seen["accels"].ravel(), seen["global"]])
    return np.column_stack([seen["requests"], np.tile(common, (s.SEEN_REQUESTS, 1))]).ravel().astype(np.float32)


def body(accels: int) -> Body:
    """Return the modules of actor and critic, and the actor's output as a net."""
    rows, width = saved.inputs_of(accels)
    outputs = 1 + accels

    def policy(torch: Any, library: Any) -> Any:
        nn = torch.nn

        class Mu(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.lstm = nn.LSTM(width, HIDDEN, batch_first=True)
                self.linear = nn.Linear(HIDDEN, outputs)

            def forward(self, x: Any) -> Any:
                return torch.tanh(self.linear(self.lstm(x.reshape(-1, rows, width))[0])).reshape(len(x), -1)

        class Q(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.lstm = nn.LSTM(width + outputs, HIDDEN, batch_first=True)
                self.linear = nn.Linear(HIDDEN, 1)

            def forward(self, x: Any) -> Any:
                seen = x[:, : rows * width].reshape(-1, rows, width)
                action = x[:, rows * width :].reshape(-1, rows, outputs)
                there = seen[:, :, VALID : VALID + 1]
                # empty rows are ignored: the LSTM that runs has none
                out = self.lstm(torch.cat([seen, action * there], dim=2))[0]
                return self.linear((out * there).sum(dim=1) / there.sum(dim=1).clamp(min=1))

        class Slow(torch.optim.Adam):  # type: ignore[misc]
            """Adam at the actor's rate, whatever critic's rate Stable-Baselines3 sets."""

            def step(self, closure: Any = None) -> Any:
                rates = [group["lr"] for group in self.param_groups]
                for group in self.param_groups:
                    group["lr"] *= ACTOR_RATE / CRITIC_RATE
                found = super().step(closure)
                for group, rate in zip(self.param_groups, rates, strict=True):
                    group["lr"] = rate
                return found

        class Policy(library.td3.policies.TD3Policy):  # type: ignore[misc]
            def _build(self, schedule: Any) -> None:
                super()._build(schedule)
                self.actor.optimizer = Slow(self.actor.parameters(), lr=schedule(1))

            def make_actor(self, features_extractor: Any = None) -> Any:
                actor = super().make_actor(features_extractor)
                actor.mu = Mu()
                return actor

            def make_critic(self, features_extractor: Any = None) -> Any:
                critic = super().make_critic(features_extractor)
                critic.qf0 = Q()
                critic.q_networks = [critic.qf0]
                return critic

        return Policy

    def net(policy: Any) -> Net:
        mu = policy.actor.mu
        weights = {f"0.{name}": getattr(mu.lstm, name) for name in
                   ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")}  # fmt: skip
        weights |= {"1.weight": mu.linear.weight, "1.bias": mu.linear.bias}
        arrays = {name: each.detach().numpy().copy() for name, each in weights.items()}
        return Net((rows, width), tuple(saved.layers_of(accels, HIDDEN)), arrays)

    return Body(policy, net)
