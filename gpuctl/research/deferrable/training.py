"""Learn when deferrable jobs start by an evolution strategy, on generated cases or the first part of a trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled import jit
from gpuctl.core.errors import InputError
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.net_weights import layers
from gpuctl.research.deferrable.generator import CaseSettings, generate
from gpuctl.research.deferrable.model import FEATURES, rule_of
from gpuctl.research.deferrable.slots import initial_state, outcome, quantiles, score
from gpuctl.research.learn.checkpoints import digest_of
from gpuctl.research.learn.evolution import Evolution, evolve
from gpuctl.research.learn.nets import initial
from gpuctl.research.learn.saved import files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.deferrable.cases import Case
    from gpuctl.research.learn.fitting import Fitted
    from gpuctl.research.learn.nets import Net

HIDDEN = 12
GENERATIONS_A_MINUTE = 240
"""Generations per nominal minute, of `PAIRS` x 2 x `EACH` cases each: about 60 CPU seconds on one core of 2024.
Training length counts in generations, so one seed gives the same net on any machine."""

PAIRS, EACH = 16, 12
LOADS = (0.5, 0.8, 1.2)
MADE, HELD = 120, 24
FIRST_MADE, FIRST_HELD = 1_000, 5_000
"""Seeds of generated cases for training, and of cases that select the best net; 300 to 329 are for tests."""

PARTS = (0.6, 0.8)
"""Slots of a trace before the first share are for training, slots up to the second select the best net, the rest is
unused."""

WINDOW_DAYS = 7
_NOISE, _RATE = 0.15, 0.02


@dataclass(frozen=True)
class Lessons:
    """Training data.

    Attributes:
        learnt: cases for training.
        held: cases that select the best net.
        description: description of both, for the card.
    """

    learnt: tuple[Case, ...]
    held: tuple[Case, ...]
    description: dict[str, Any]


def generated_cases(loads: Sequence[float] = LOADS, days: int = 14) -> Lessons:
    """Generated cases of several loads."""
    learnt = tuple(generate(CaseSettings(FIRST_MADE + k, loads[k % len(loads)], days)) for k in range(MADE))
    held = tuple(generate(CaseSettings(FIRST_HELD + k, loads[k % len(loads)], days)) for k in range(HELD))
    description = {
        "cases": "made up", "days": days, "loads": list(loads), "seeds": f"{FIRST_MADE} to {FIRST_MADE + MADE - 1}",
        "held_seeds": f"{FIRST_HELD} to {FIRST_HELD + HELD - 1}",
    }  # fmt: skip
    return Lessons(learnt, held, description)


def of_trace(case: Case) -> Lessons:
    """The first parts of a trace's own slots, see `PARTS`.

    Raises:
        InputError: the trace has too few slots or jobs.
    """
    first, second = (int(share * case.horizon) for share in PARTS)
    length = min(WINDOW_DAYS * case.season, first)
    begins = np.unique(np.linspace(0, first - length, 8).astype(int)).tolist()
    learnt = tuple(part(case, begin, begin + length) for begin in begins)
    learnt = tuple(each for each in learnt if len(each.ids))
    held = part(case, first, second)
    if not learnt or not len(held.ids):
        raise InputError(
            f"{case.horizon:,} slots with {len(case.ids):,} deferrable jobs are too few to learn from",
            hint="use a longer trace, or none: then cases are generated",
        )
    description = {"cases": "a trace's own", "slots": f"0 to {first - 1}", "held_slots": f"{first} to {second - 1}"}
    return Lessons(learnt, (held,), description)


def part(case: Case, begin: int, end: int) -> Case:
    """The slots from `begin` to before `end`, and the jobs whose windows and runs lie within them."""
    some = (case.earliest >= begin) & (case.latest + case.slots <= end)
    return replace(
        case, leftover=case.leftover[begin:end],
        on_demand=None if case.on_demand is None else case.on_demand[begin:end],
        ids=tuple(name for name, one in zip(case.ids, some.tolist(), strict=True) if one),
        earliest=case.earliest[some] - begin, latest=case.latest[some] - begin, gpus=case.gpus[some],
        slots=case.slots[some],
    )  # fmt: skip


def train(
    lessons: Lessons, minutes: float, seed: int = 1, *, checkpoint: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Fitted:  # fmt: skip
    """Learn a rule; the same call gives the same net, after any number of stops.

    Args:
        lessons: cases.
        minutes: nominal minutes, see `GENERATIONS_A_MINUTE`.
        seed: seed of the first weights, the noise and the cases of each generation.
        checkpoint: folder to save the training in and resume it from; None: none.
        progress: called with the generations done and the total.

    Raises:
        InputError: the folder holds another training.
    """
    how = Evolution(max(1, round(minutes * GENERATIONS_A_MINUTE)), PAIRS, _NOISE, _RATE, 0.0, seed)
    net = initial((len(FEATURES),), layers(HIDDEN), seed)
    # begins as the middle quantile: the net adds nothing
    net = net.with_weights(net.weights | {"2.weight": np.zeros_like(net.weights["2.weight"])})
    trial = _Trial(lessons, seed)
    return evolve(net, trial.score, how, data_digest=trial.digest, checkpoint=checkpoint, progress=progress)


def digest(lessons: Lessons) -> str:
    """A digest of the cases: identifies the checkpoint's training data."""
    arrays = [
        array
        for case in (*lessons.learnt, *lessons.held)
        for array in (case.leftover, case.earliest, case.latest, case.gpus, case.slots)
    ]
    return digest_of({"each": EACH}, arrays)


class _Trial:
    """Fitness of a net: mean score over cases, drawn anew in each generation."""

    def __init__(self, lessons: Lessons, seed: int) -> None:
        self._learnt = [(case, quantiles(case)) for case in lessons.learnt]
        self._held = [(case, quantiles(case)) for case in lessons.held]
        self._seed = seed
        self._chosen: tuple[int, list[tuple[Case, NDArray[np.int64]]]] = (-1, self._held)
        self.digest = digest(lessons)

    def score(self, net: Net, generation: int) -> float:
        """See `gpuctl.research.learn.evolution.evolve`."""
        rule = rule_of(net)
        return float(np.mean([_score(case, rule, past) for case, past in self._cases(generation)]))

    def _cases(self, generation: int) -> list[tuple[Case, NDArray[np.int64]]]:
        if generation < 0:
            return self._held
        if self._chosen[0] != generation:
            draw = np.random.Generator(np.random.PCG64([self._seed, generation, 1]))
            some = draw.choice(len(self._learnt), min(EACH, len(self._learnt)), replace=False)
            self._chosen = generation, [self._learnt[k] for k in some.tolist()]
        return self._chosen[1]


def _score(case: Case, rule: Any, past: NDArray[np.int64]) -> float:
    s = initial_state(case, rule, "newest", past)
    with jit.interpreted(on=False):
        kernel.advance(s, -1)
    return score(case, outcome(s))


def about(fitted: Fitted, lessons: Lessons, minutes: float, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Card entries and files of a model, for `gpuctl.predictors.card.save_folder`."""
    held = [row["held_score"] for row in fitted.curve if "held_score" in row]
    generations = len(fitted.curve)
    cases = generations * 2 * PAIRS * min(EACH, len(lessons.learnt))
    description = {
        "title": "When deferrable jobs start",
        "what": "A net that corrects the middle quantile of the forecast of leftover capacity.",
        "features": list(FEATURES),
        "algorithm": "evolution strategy",
        "budget": {"minutes": minutes, "generations": generations, "cases": cases, "seed": seed},
        "trained_on": lessons.description,
        "held_score": {"first": held[0], "best": max(held)},
        "training_curve": fitted.curve,
    }  # fmt: skip
    return description, files_of(fitted.net)
