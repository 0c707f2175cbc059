"""Trains the two small nets by an evolution strategy on generated streams of requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.accel import saved
from gpuctl.research.accel.metrics import lateness
from gpuctl.research.accel.requests import stream
from gpuctl.research.accel.simulate import simulate
from gpuctl.research.learn.evolution import Evolution, search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.requests import Requests
    from gpuctl.research.learn.evolution import SearchResult

    Floats = NDArray[np.float64]

KIND = saved.KIND
REQUESTS = 100
"""Of a stream."""
LOADS = (0.88, 0.99, 1.1, 1.21)
"""Of the streams of a generation."""
HELD = 16
"""Streams by which the best weights are chosen."""
FIRST_SEED, HELD_SEED = 1_000_000, 900_000
"""Of the streams to learn from, and of those to choose by; the streams that score a model have smaller ones."""
LATE = 0.02
"""Weight of the mean lateness beside the share of deadlines that are kept."""
BEGIN = 0.3
"""Standard deviation of the hidden weights to begin with; the outer ones are 0: the policy is sjf-eft."""
GENERATIONS_A_MINUTE = 60
"""What one core does on the system six, about; fixed, so that the same budget gives the same model everywhere."""


@dataclass(frozen=True)
class Lesson:
    """Settings of the training.

    Attributes:
        models: numbers of the models of the requests.
        generations: generations of the search.
        seed: seed of the noise and of the initial weights.
    """

    models: tuple[int, ...]
    generations: int
    seed: int = 1


def streams(machine: Machine, models: Sequence[int], first: int, count: int) -> list[Requests]:
    """Return streams of requests, with the loads of `LOADS` in turn.

    Args:
        machine: the system.
        models: of the requests.
        first: seed of the first stream; the others have the following ones.
        count: number of streams.
    """
    return [stream(machine, models, REQUESTS, LOADS[k % len(LOADS)], first + k) for k in range(count)]


def evolve(
    machine: Machine,
    lesson: Lesson,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> SearchResult:
    """Search for the weights of the two nets; the same arguments give the same weights, after any number of stops.

    The score is the share of deadlines met minus `LATE` times the mean lateness; each generation has four new streams.

    Raises:
        InputError: the folder holds another search.
    """
    held = streams(machine, lesson.models, HELD_SEED, HELD)
    now: dict[int, list[Requests]] = {-1: held}

    def score(theta: Floats, number: int) -> float:
        if number not in now:
            now.clear()
            first = FIRST_SEED + number * len(LOADS)
            now.update({-1: held, number: streams(machine, lesson.models, first, len(LOADS))})
        policy = saved.small(saved.split(theta), "trial", len(machine.system.kinds))
        outcomes = [(simulate(machine, each, policy), each) for each in now[number]]
        return float(np.mean([o.met.mean() - LATE * lateness(o, r, machine) for o, r in outcomes]))

    how = Evolution(generations=lesson.generations, noise=0.1, rate=0.03, seed=lesson.seed)
    settings = {"costs": machine.digest, "system": machine.system.plain, "models": list(lesson.models), "of": "accel"}
    return search(begin(lesson.seed), score, how, settings=settings, checkpoint=checkpoint, progress=progress)


def begin(seed: int) -> NDArray[np.float32]:
    """Return initial weights: random hidden ones, outer ones 0."""
    draw = np.random.Generator(np.random.PCG64(seed))
    return np.concatenate([
        (draw.standard_normal(int(np.prod(shape))) * (0.0 if name.endswith("_v") else BEGIN)).astype(np.float32)
        for name, shape in saved.SHAPES.items()
    ])  # fmt: skip


def train(
    machine: Machine,
    lesson: Lesson,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Train; return the entries of a model's card, its files, and CPU seconds; see `evolve`."""
    found = evolve(machine, lesson, checkpoint=checkpoint, progress=progress)
    files: dict[str, Any] = {"curve.json": found.curve}
    files |= {f"{name}.npy": array for name, array in saved.split(found.weights).items()}
    return about(machine, lesson, found.curve), files, found.cpu_s


FEATURES = {
    "request": [
        "slack / least time, cut at 3", "too late", "rest / least time", "log(rest / 3000 us)",
        "waiting requests / 8, at most 3", "slack / 5000 us, cut at 3", "bandwidth used", "share of idle accelerators",
    ],
    "pair": [
        "log(alone / least alone)", "0.3 log(1 + wait / 100 us)", "can start now", "demand / bandwidth, at most 3",
        "0.3 log(1 + alone / 100 us)", "computing time / alone",
    ],
}  # fmt: skip
"""What the nets see, in order; the second one also sees what the first one does."""


def about(machine: Machine, lesson: Lesson, curve: list[dict[str, float]]) -> dict[str, Any]:
    """Return the entries of a model's card."""
    pairs = Evolution().pairs
    held = [row["held_score"] for row in curve if "held_score" in row]
    return {
        "title": "A learned scheduler of layers on accelerators",
        "what": "Two small nets: one ranks the requests that wait, one says which sub-accelerator each goes to.",
        "net": saved.SMALL,
        "algorithm": "evolution strategy",
        "system": machine.system.plain,
        "system_text": machine.system.text,
        "costs": machine.digest,
        "models": [machine.models[k] for k in lesson.models],
        "features": FEATURES,
        "loads": list(LOADS),
        "requests": REQUESTS,
        "seed": lesson.seed,
        "generations": lesson.generations,
        "episodes": lesson.generations * 2 * pairs * len(LOADS),
        "training_seeds": [FIRST_SEED, FIRST_SEED + lesson.generations * len(LOADS) - 1],
        "held_seeds": [HELD_SEED, HELD_SEED + HELD - 1],
        "score": "share of deadlines kept - 0.02 x mean lateness over the least time (0 to 4)",
        "held_score": max(held) if held else None,
        "first_held_score": held[0] if held else None,
    }
