"""The finding of a lesson: answers with intervals, the inputs that they rest on, and its own tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.core.results import ResultTable

LEVEL = 0.90
"""Level of every interval of the lessons."""

Origin = Literal["measured", "inferred", "assumed", "extrapolated", "recorded", "unknown"]
"""How an input is known: measured in this trace with an interval; inferred from it by a rule; assumed, without
measurement; extrapolated from other jobs of the trace; recorded as such; or not at all."""


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its 90 % interval; None: not known."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def shown(self) -> Literal["saves", "costs", "no saving shown", "not known"]:
        """Its verdict as a saving: only what the whole interval supports."""
        if self.value is None or self.low is None or self.high is None:
            return "not known"
        return "saves" if self.low > 0 else "costs" if self.high < 0 else "no saving shown"


UNKNOWN = Estimate(None)


@dataclass(frozen=True)
class Answer:
    """What one rule would have saved; one row of the table ``lessons``.

    Attributes:
        lesson: key of the lesson.
        rule: what would be done, in fixed words.
        jobs: how many jobs were compared one by one.
        gpu_hours: saved in all, over the trace.
        share_pct: the same as a share of the GPU-hours of the baseline; None: not known.
        wait_h: hours of waiting saved, mean of the jobs.
        because: what it rests on, one sentence.
        baseline: what it is compared with.
    """

    lesson: str
    rule: Note
    jobs: int
    gpu_hours: Estimate
    wait_h: Estimate
    because: Note
    share_pct: float | None = None
    baseline: Note | None = None


@dataclass(frozen=True)
class Input:
    """What an answer rests on; one row of the table ``lesson_inputs``.

    Attributes:
        lesson: key of the lesson.
        what: what the input is, in fixed words.
        unit: of the value, ``-`` for a share.
        estimate: the value and its interval; an input that has none is assumed or inferred.
        origin: how it is known.
        basis: what it was measured on, or by which rule it was found, one sentence.
    """

    lesson: str
    what: Note
    unit: str
    estimate: Estimate
    origin: Origin
    basis: Note


@dataclass(frozen=True)
class Finding:
    """The result of one lesson.

    Attributes:
        answers: the rows that it adds to ``lessons``, the best rule first; none if the trace does not show it.
        inputs: the rows that it adds to ``lesson_inputs``.
        tables: its own, in its own section.
        warnings: caveats of its figures.
    """

    answers: tuple[Answer, ...] = ()
    inputs: tuple[Input, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    warnings: tuple[Note, ...] = field(default=())
