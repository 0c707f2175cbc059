"""Learn when deferrable jobs start by PPO, with auxiliary tasks or without; needs gpuctl-toolkit[learn]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.deferrable.environment import SURVIVED, WAITING_NEXT, Deferrable
from gpuctl.research.deferrable.model import OBSERVED
from gpuctl.research.deferrable.training import digest
from gpuctl.research.learn.auxiliary import Auxiliary
from gpuctl.research.learn.nets import scaled
from gpuctl.research.learn.saved import files_of
from gpuctl.research.learn.stable_baselines import Learning, learn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpuctl.research.deferrable.training import Lessons
    from gpuctl.research.learn.fitting import Fitted

TASKS = {"leftover": tuple(range(SURVIVED)), "survival": (SURVIVED,), "waiting": (WAITING_NEXT,)}
"""Leftover capacity of the next six slots, whether a run that starts now survives, GPUs of pending jobs in the next
slot."""

STEPS = 8_192
"""Of a round."""

ROUNDS_A_MINUTE = 8
"""Rounds per nominal minute: about 60 CPU seconds on one core of 2024."""

HIDDEN = (64, 64)
_SEEN = 2_000
_OPTIONS = {"n_steps": 2048, "batch_size": 256, "learning_rate": 3e-4, "clip_range": 0.2, "ent_coef": 0.01,
            "gamma": 0.9995}  # fmt: skip
"""A slot has about ten offers, so this is about 0.995 per slot."""


def tasks_of(name: str) -> Auxiliary | None:
    """The auxiliary tasks of that name; ``all``, ``none``."""
    chosen = TASKS if name == "all" else {} if name == "none" else {name: TASKS[name]}
    return Auxiliary(tuple(chosen.values()), (SURVIVED,)) if chosen else None


def train(
    lessons: Lessons, minutes: float, aux: str = "all", seed: int = 1, *, checkpoint: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Fitted:  # fmt: skip
    """Learn a rule; the same call gives the same net, after any number of stops.

    Args:
        lessons: cases; held-out cases are not used.
        minutes: nominal minutes, see `ROUNDS_A_MINUTE`.
        aux: auxiliary tasks: ``all``, ``none``, or a key of `TASKS`.
        seed: random seed.
        checkpoint: folder to save the training in and resume it from; None: none.
        progress: called with the rounds done and the total.

    Raises:
        DependencyError: Stable-Baselines3 is not installed.
        InputError: the folder holds another training.
    """
    how = Learning("ppo", max(1, round(minutes * ROUNDS_A_MINUTE)), STEPS, HIDDEN, seed, options=dict(_OPTIONS))
    return learn(
        lambda: Deferrable(lessons.learnt, rows=True), scaled(_sample_observations(lessons, seed)), how,
        data_digest=digest(lessons), checkpoint=checkpoint, aux=tasks_of(aux), progress=progress,
    )  # fmt: skip


def _sample_observations(lessons: Lessons, seed: int) -> Any:
    """Observations of an agent that starts every second job [looks, features]."""
    env = Deferrable(lessons.learnt, rows=True)
    draw = np.random.Generator(np.random.PCG64(seed))
    seen, _ = env.reset(seed=seed)
    rows = [seen]
    while len(rows) < _SEEN:
        seen, _, over, _, _ = env.step(int(draw.integers(2)))
        if over:
            seen, _ = env.reset()
        rows.append(seen)
    return np.stack(rows)


def about(
    fitted: Fitted, lessons: Lessons, minutes: float, seed: int, aux: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Card entries and files of a model, for `gpuctl.predictors.card.save_folder`."""
    steps = len(fitted.curve) * STEPS
    description = {
        "title": "When deferrable jobs start",
        "what": "A net that starts jobs by the last 48 slots and forecasts of the next 48.",
        "features": OBSERVED,
        "algorithm": "PPO",
        "auxiliary_tasks": aux,
        "budget": {"minutes": minutes, "steps": steps, "seed": seed},
        "trained_on": lessons.description,
        "training_curve": fitted.curve,
    }
    return description, files_of(fitted.net)
