"""Auxiliary tasks of PPO: besides the action, a net learns to predict values that become known later.

An environment reports in ``info["known"]`` values that became known of earlier steps of its episode: (step, column,
value). A layer that is used only in training predicts these columns from the net's last hidden layer, and their loss is
added to PPO's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.learn.extra import needed

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WHAT = "learning with auxiliary tasks"


@dataclass(frozen=True)
class Auxiliary:
    """The auxiliary tasks.

    Attributes:
        tasks: columns of ``info["known"]`` of each task; its loss is the mean over them: Huber's.
        chances: the columns that are 0 or 1; their loss is the cross-entropy.
        weight: of the loss of each task.
    """

    tasks: tuple[tuple[int, ...], ...]
    chances: tuple[int, ...] = ()
    weight: float = 0.1

    @property
    def columns(self) -> tuple[int, ...]:
        """Return all columns, in the order of the net's outputs."""
        return tuple(column for task in self.tasks for column in task)


def loss_of(torch: Any, answers: Any, labels: Any, aux: Auxiliary) -> Any:
    """Return the weighted sum of the losses of the tasks; unknown labels (NaN) are ignored.

    Args:
        torch: PyTorch.
        answers: outputs of the net [rows, columns].
        labels: values that became known [rows, columns].
        aux: the tasks.
    """
    known = ~torch.isnan(labels)
    target = torch.where(known, labels, torch.zeros(()))
    chance = torch.tensor([column in aux.chances for column in aux.columns])
    functions = torch.nn.functional
    huber = functions.huber_loss(answers, target, reduction="none")
    entropy = functions.binary_cross_entropy_with_logits(answers, target, reduction="none")
    each = torch.where(known, torch.where(chance, entropy, huber), torch.zeros(()))
    total, begin = torch.zeros(()), 0
    for task in aux.tasks:
        own = slice(begin, begin + len(task))
        total = total + each[:, own].sum() / known[:, own].sum().clamp(min=1)
        begin += len(task)
    return aux.weight * total


def ppo(aux: Auxiliary) -> tuple[Any, Any, Any, Any]:
    """Return PPO with auxiliary tasks.

    Returns:
        the algorithm, its policy, its buffer, and a callback that collects labels; all except the last are
        classes.

    Raises:
        DependencyError: Stable-Baselines3 is not installed.
    """
    torch, library = needed("torch", _WHAT), needed("stable_baselines3", _WHAT)
    buffers, policies = (needed(f"stable_baselines3.common.{name}", _WHAT) for name in ("buffers", "policies"))
    place = {column: k for k, column in enumerate(aux.columns)}

    class Buffer(buffers.RolloutBuffer):  # type: ignore[misc,name-defined]
        """Rollout buffer that records which steps it returns."""

        chosen: NDArray[np.int64]

        def _get_samples(self, batch_inds: Any, env: Any = None) -> Any:
            self.chosen = batch_inds
            return super()._get_samples(batch_inds, env)

    class Policy(policies.ActorCriticPolicy):  # type: ignore[misc,name-defined]
        """Policy that also predicts the columns; PPO adds their loss to its own as the entropy term."""

        labels: Any = None
        factor: float = 1.0

        def _build_mlp_extractor(self) -> None:
            super()._build_mlp_extractor()
            self.tells = torch.nn.Linear(self.mlp_extractor.latent_dim_pi, len(place))

        def evaluate_actions(self, obs: Any, actions: Any) -> Any:
            values, log_prob, entropy = super().evaluate_actions(obs, actions)
            hidden = self.mlp_extractor.forward_actor(self.extract_features(obs, self.pi_features_extractor))
            loss = loss_of(torch, self.tells(hidden), self.labels(), aux)
            return values, log_prob, entropy - loss / self.factor

    class Ppo(library.PPO):  # type: ignore[misc,name-defined]
        """PPO that passes the labels of the current steps to its policy."""

        labels_of_steps: NDArray[np.float32]

        def train(self) -> None:
            """See `stable_baselines3.PPO.train`."""
            self.policy.factor = self.ent_coef
            self.policy.labels = lambda: torch.from_numpy(self.labels_of_steps[self.rollout_buffer.chosen])
            super().train()
            self.policy.labels = None

    class Labels(library.common.callbacks.BaseCallback):  # type: ignore[misc,name-defined]
        """Collects the labels of the steps of a rollout."""

        def __init__(self) -> None:
            super().__init__()
            self.number = self.at = 0
            self.where: dict[int, int] = {}

        def _on_rollout_start(self) -> None:
            self.model.labels_of_steps = np.full((self.model.n_steps, len(place)), np.nan, np.float32)
            self.where.clear()
            self.at = 0

        def _on_step(self) -> bool:
            self.where[self.number] = self.at
            self.at += 1
            for step, column, value in self.locals["infos"][0]["known"]:
                if step in self.where and column in place:
                    self.model.labels_of_steps[self.where[step], place[column]] = value
            self.number += 1
            if self.locals["dones"][0]:
                # step numbers restart, rows continue
                self.where.clear()
                self.number = 0
            return True

    return Ppo, Policy, Buffer, Labels()
