"""Rules of the policy `philly` that lessons replay, and the savings of each over the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import note
from gpuctl.lessons import savings
from gpuctl.lessons.finding import UNKNOWN, Answer, Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.lessons.lesson_input import Jobs
    from gpuctl.replay.models.records import Floats, Ints

HOUR_S = 3600.0


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        name: its key in tables.
        text: its action, in fixed words.
        params: of `philly`.
        threshold: minutes or attempts after which it gives up locality; None: it has none.
    """

    name: str
    text: Note
    params: dict[str, str]
    threshold: float | None = None


BASE = Rule("philly", note("as in Philly: three attempts a level, back-off between them"), {}, 3)


def gpu_hours_saved(base: Jobs, other: Jobs) -> Floats:
    """Return the GPU-hours that each job holds less than under the baseline; NaN if it does not end under both."""
    return np.asarray((base.gpu_s - other.gpu_s) / HOUR_S)


def wait_saved(base: Jobs, other: Jobs) -> Floats:
    """Return the hours that each job waits less than under the baseline; NaN if it does not end under both."""
    return np.asarray((base.wait_s - other.wait_s) / HOUR_S)


def wait_estimate(base: Jobs, other: Jobs, *, gpus: Ints | None = None) -> Estimate:
    """Return mean hours of waiting saved against the baseline; with `gpus`, their sum in GPU-hours."""
    times = np.ones(base.wait_s.size) if gpus is None else gpus
    level = (base.wait_s + other.wait_s) / 2 / HOUR_S
    return savings.waited(wait_saved(base, other) * times, level * times, base, other, whole=gpus is not None)


def answer(
    lesson: str, rule: Note, pairs: Sequence[tuple[Jobs, Jobs]], block: Ints, because: Note, *, waiting: bool = True
) -> Answer:
    """A rule's savings, with an interval that also holds at the ends of the measured intervals.

    Args:
        lesson: its key.
        rule: its text.
        pairs: baseline and rule, at the measured values, then at the ends of their intervals.
        block: of each job.
        because: its basis.
        waiting: whether it covers waiting.
    """
    gpu = [savings.total(gpu_hours_saved(*pair), block) for pair in pairs]
    wait = [wait_estimate(*pair) for pair in pairs]
    base, other = pairs[0]
    both = np.isfinite(base.gpu_s) & np.isfinite(other.gpu_s)
    held = float(base.gpu_s[both].sum()) / HOUR_S
    share = None if gpu[0].value is None or held <= 0 else 100 * gpu[0].value / held
    return Answer(
        lesson, rule, int(both.sum()), savings.hull(gpu[0], gpu[1:]),
        savings.hull(wait[0], wait[1:]) if waiting else UNKNOWN, because, share,
    )  # fmt: skip
