"""Learns in a Gymnasium environment by Stable-Baselines3; the learned policy becomes a net that NumPy runs.

A training consists of rounds. Each has a new learner with the weights, optimizers and replay buffer of the previous
round and its own seed, so that a stopped training resumes with the same result.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.learn.auxiliary import Auxiliary, ppo
from gpuctl.research.learn.checkpoints import Checkpoint, digest_of
from gpuctl.research.learn.extra import needed
from gpuctl.research.learn.fitting import Fitted
from gpuctl.research.learn.nets import MOST, Net
from gpuctl.research.learn.torch_nets import torch_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]
    Scale = dict[str, NDArray[np.float32]]

_WHAT = "learning in an environment"
_BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Learning:
    """Settings of a training.

    Attributes:
        algorithm: ``ppo``, ``dqn`` or ``ddpg``.
        rounds: number of rounds.
        steps: steps of the environment per round.
        hidden: outputs of the hidden layers; those of ppo have tanh, of the others relu.
        seed: random seed.
        noise: noise of ddpg's actions during training, relative to half their range.
        noise_end: the same in the last round, reached by a constant factor per round; None: constant noise.
        options: options of the algorithm, as Stable-Baselines3 names them.
    """

    algorithm: str = "ppo"
    rounds: int = 10
    steps: int = 8192
    hidden: tuple[int, ...] = (64, 64)
    seed: int = 1
    noise: float = 0.1
    noise_end: float | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Body:
    """A policy with custom modules instead of a sequence of layers.

    Attributes:
        policy: its class; called with PyTorch and Stable-Baselines3.
        net: converts a policy to a net.
    """

    policy: Callable[[Any, Any], Any]
    net: Callable[[Any], Net]


def learn(
    make: Callable[[], Any],
    scale: Scale,
    how: Learning,
    *,
    body: Body | None = None,
    data_digest: str = "",
    checkpoint: Path | None = None,
    aux: Auxiliary | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Fitted:
    """Learn a policy; the same arguments give the same weights on a CPU, after any number of stops.

    Args:
        make: makes an environment with flat observations.
        scale: ``mean`` and ``std`` of observations (`gpuctl.research.learn.nets.scaled`).
        how: settings of the training.
        body: modules of the policy; None: those of `how`.
        data_digest: identifies the data of the environment, so that the folder of another training is rejected.
        checkpoint: folder to save the state in and resume from; None: none.
        aux: auxiliary tasks of ppo, from ``info["known"]`` of the environment; None: none.
        progress: called with the rounds done and the total.

    Returns:
        a net whose output is, for ppo, the logits of the actions or the mean action; for dqn, the value of each
        action; for ddpg, the action; and a curve with the mean reward of the last 100 episodes of each round, if one
        ended in it.

    Raises:
        DependencyError: Stable-Baselines3 is not installed.
        InputError: the folder holds the state of another training.
    """
    begin = time.process_time()
    torch = torch_of(_WHAT)
    settings = {**asdict(how), "hidden": list(how.hidden), "data": data_digest}
    if aux is not None:
        settings["aux"] = asdict(aux)
    place = Checkpoint(checkpoint, digest_of(settings, scale.values()))
    found = place.load()
    curve, before = ([], 0.0) if found is None else (found[0]["curve"], found[0]["cpu_s"])
    arrays: Arrays = {} if found is None else found[1]
    learner, labels = _learner(make, scale, how, len(curve), body=body, aux=aux)
    if found is not None:
        with place.restoring():
            _restore(torch, learner, arrays)
    while len(curve) < how.rounds:
        progress(len(curve), how.rounds)
        learner.learn(how.steps, callback=labels)
        rewards = [each["r"] for each in learner.ep_info_buffer]
        row = {"round": len(curve) + 1, "steps": (len(curve) + 1) * how.steps}
        curve.append(row | ({"reward": float(np.mean(rewards))} if rewards else {}))
        arrays = _state(learner)
        state = {"curve": curve, "cpu_s": before + time.process_time() - begin}
        place.save(state, arrays, now=len(curve) == how.rounds)
        if len(curve) < how.rounds:
            learner, labels = _learner(make, scale, how, len(curve), body=body, aux=aux)
            _restore(torch, learner, arrays)
    net = _net(torch, learner, scale) if body is None else body.net(learner.policy)
    return Fitted(net, curve, before + time.process_time() - begin)


def _learner(
    make: Callable[[], Any], scale: Scale, how: Learning, number: int, *, body: Body | None, aux: Auxiliary | None
) -> tuple[Any, Any]:
    """Return a learner for one round, and its callback for each step (None: none)."""
    torch, library, gymnasium = (needed(n, _WHAT) for n in ("torch", "stable_baselines3", "gymnasium"))
    mean, std = scale["mean"], scale["std"]
    space = gymnasium.spaces.Box(-MOST, MOST, mean.shape, np.float32)
    scaled = gymnasium.wrappers.TransformObservation(
        make(), lambda x: np.clip((x - mean) / std, -MOST, MOST).astype(np.float32), space
    )
    kind = {"ppo": library.PPO, "dqn": library.DQN, "ddpg": library.DDPG}[how.algorithm]
    options: dict[str, Any] = {"batch_size": 128, **how.options}
    if how.algorithm == "dqn":
        # from random to nearly greedy over the first half of the rounds
        ends = [max(1 - 0.95 * k / max(how.rounds / 2, 1), 0.05) for k in (number, number + 1)]
        options |= {"exploration_initial_eps": ends[0], "exploration_final_eps": ends[1], "exploration_fraction": 1.0}
    if how.algorithm != "ppo":
        options.setdefault("buffer_size", 50_000)
        if number:
            options["learning_starts"] = 0
    if how.algorithm == "ddpg":
        size = scaled.action_space.shape
        fall = 1.0 if how.noise_end is None else (how.noise_end / how.noise) ** (number / max(how.rounds - 1, 1))
        noise = library.common.noise.NormalActionNoise(np.zeros(size), how.noise * fall * np.ones(size))
        options["action_noise"] = noise
    activation = torch.nn.Tanh if how.algorithm == "ppo" else torch.nn.ReLU
    policy: Any = "MlpPolicy"
    labels = None
    if body is None:
        options["policy_kwargs"] = {"net_arch": list(how.hidden), "activation_fn": activation}
    else:
        policy = body.policy(torch, library)
    if aux is not None:
        kind, policy, options["rollout_buffer_class"], labels = ppo(aux)
    learner = kind(
        policy, library.common.monitor.Monitor(scaled), seed=1000 * how.seed + number, device="cpu", verbose=0,
        **options,
    )  # fmt: skip
    return learner, labels


def _state(learner: Any) -> Arrays:
    """Return the state that the next round needs, as plain arrays."""
    arrays: Arrays = {}
    for name, state in learner.get_parameters().items():
        key = name.replace(".", "_")
        if "param_groups" not in state:
            arrays[key] = np.concatenate([each.detach().numpy().ravel() for each in state.values()])
            continue
        moments = [state["state"][k] for k in sorted(state["state"])]
        for moment in _MOMENTS:
            arrays[f"{key}_{moment}"] = np.concatenate([each[moment].numpy().ravel() for each in moments])
        arrays[f"{key}_step"] = np.array([float(moments[0]["step"])])
    buffer = getattr(learner, "replay_buffer", None)
    if buffer is not None:
        filled = buffer.buffer_size if buffer.full else buffer.pos
        arrays["buffer_at"] = np.array([buffer.pos, int(buffer.full)], np.int64)
        for name in _BUFFER:
            arrays[f"buffer_{name}"] = getattr(buffer, name)[:filled].reshape(filled, -1).astype(np.float32)
    return arrays


def _restore(torch: Any, learner: Any, arrays: Arrays) -> None:
    """Restore the state of the previous learner in a new one."""
    found = {}
    for name, state in learner.get_parameters().items():
        key = name.replace(".", "_")
        if "param_groups" not in state:
            found[name] = _split(torch, arrays[key], state)
            continue
        optimizer = _attribute(learner, name)
        trained = dict(enumerate(each for group in optimizer.param_groups for each in group["params"]))
        moments = {moment: _split(torch, arrays[f"{key}_{moment}"], trained) for moment in _MOMENTS}
        step = torch.tensor(float(arrays[f"{key}_step"][0]))
        each_of = {k: {"step": step.clone(), **{m: moments[m][k] for m in _MOMENTS}} for k in trained}
        found[name] = {"state": each_of, "param_groups": state["param_groups"]}
    learner.set_parameters(found, exact_match=True, device="cpu")
    buffer = getattr(learner, "replay_buffer", None)
    if buffer is not None:
        buffer.pos, buffer.full = int(arrays["buffer_at"][0]), bool(arrays["buffer_at"][1])
        for name in _BUFFER:
            whole, checkpoint = getattr(buffer, name), arrays[f"buffer_{name}"]
            whole[: len(checkpoint)] = checkpoint.reshape(len(checkpoint), *whole.shape[1:]).astype(whole.dtype)


def _attribute(learner: Any, name: str) -> Any:
    found = learner
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _split(torch: Any, row: NDArray[Any], like: dict[Any, Any]) -> dict[Any, Any]:
    """Split one row into tensors of the given shapes."""
    parts = np.split(row, np.cumsum([each.numel() for each in like.values()])[:-1])
    return {
        name: torch.from_numpy(part.copy()).reshape(each.shape)
        for (name, each), part in zip(like.items(), parts, strict=True)
    }


def _net(torch: Any, learner: Any, scale: Scale) -> Net:
    """Return the learner's policy as a net."""
    policy, space = learner.policy, learner.action_space
    if hasattr(policy, "mlp_extractor"):
        modules = [*policy.mlp_extractor.policy_net, policy.action_net]
    elif hasattr(policy, "q_net"):
        modules = [*policy.q_net.q_net]
    else:
        modules = [*policy.actor.mu]
    layers: list[dict[str, Any]] = [{"kind": "scale"}]
    weights = {"0.mean": scale["mean"], "0.std": scale["std"]}
    for module in modules:
        at = f"{len(layers)}."
        if isinstance(module, torch.nn.Linear):
            layers.append({"kind": "linear", "outputs": module.out_features})
            weights[at + "weight"] = module.weight.detach().numpy().copy()
            weights[at + "bias"] = module.bias.detach().numpy().copy()
        else:
            layers.append({"kind": {"Tanh": "tanh", "ReLU": "relu"}[type(module).__name__]})
    if hasattr(policy, "actor"):
        half = (space.high - space.low) / 2
        layers.append({"kind": "linear", "outputs": half.size})
        weights[f"{len(layers) - 1}.weight"] = np.diag(half).astype(np.float32)
        weights[f"{len(layers) - 1}.bias"] = (space.low + half).astype(np.float32)
    return Net(scale["mean"].shape, tuple(layers), weights)
