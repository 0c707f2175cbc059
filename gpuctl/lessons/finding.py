"""The finding of a lesson: answers with intervals, their inputs, and its own tables."""

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
    """A value with the ends of its 90 % interval; None: unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def shown(self) -> Literal["saves", "costs", "no saving shown", "not known"]:
        """Return its verdict as a saving: only the part that the whole interval supports."""
        if self.value is None or self.low is None or self.high is None:
            return "not known"
        return "saves" if self.low > 0 else "costs" if self.high < 0 else "no saving shown"


UNKNOWN = Estimate(None)


@dataclass(frozen=True)
class Answer:
    """What one rule would have saved; one row of the table ``lessons``.

    Attributes:
        lesson: key of the lesson.
        rule: the action, in fixed words.
        jobs: number of jobs compared one by one.
        gpu_hours: total savings over the trace.
        share_pct: the same as a share of the GPU-hours of the baseline; None: unknown.
        wait_h: hours of waiting saved, mean of the jobs.
        because: its basis, one sentence.
        baseline: the baseline of the comparison.
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
    """The basis of an answer; one row of the table ``lesson_inputs``.

    Attributes:
        lesson: key of the lesson.
        what: name of the input, in fixed words.
        unit: of the value, ``-`` for a share.
        estimate: the value and its interval; an input that has none is assumed or inferred.
        origin: its origin.
        basis: the data or the rule behind it, one sentence.
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
        tables: its own tables, in its own section.
        warnings: caveats of its figures.
    """

    answers: tuple[Answer, ...] = ()
    inputs: tuple[Input, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    warnings: tuple[Note, ...] = field(default=())
