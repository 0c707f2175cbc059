"""When S is submitted by the baselines of Mirage's authors, and by a rule that decides every ten minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.research.chain import episode_kernel as kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.research.chain.episode import Outcome, Situation

PROBES = 7
"""Submissions of S per start on which the authors' models are trained."""

LOOK_MIN = 10
"""Minutes between two looks of a policy at the queue."""


@dataclass(frozen=True)
class StartedPair:
    """The situation once P has started, before S is submitted.

    Attributes:
        p_end_s: end of P, at which the reactive baseline submits S.
        avg_wait_min: mean wait of the last 100 jobs that started, whole minutes.
        queued: jobs in the queue.
        probes_s: submissions of S in the authors' training set.
    """

    p_end_s: int
    avg_wait_min: int
    queued: int
    probes_s: tuple[int, ...]


def observe_start(situation: Situation) -> StartedPair:
    """Let P start, and observe the queue at the next submission, with its jobs queued."""
    e = situation.initial_state()
    kernel.advance(e, kernel.FAR, kernel.P_START)
    trace = e.minute.size - 2
    at = int(e.c[kernel.NEXT])
    new = 0
    if at < trace:
        upto = int(e.minute[at])
        kernel.advance(e, upto, kernel.NEVER)
        new = int((e.minute[at:trace] == upto).sum())
    waits = e.waits[: min(int(e.c[kernel.STARTED]), kernel.LAST_WAITS)]
    first = 60 * situation.p_submit_min + 60
    end = 60 * (int(e.c[kernel.P_START]) + situation.pair.limit_min)
    return StartedPair(
        p_end_s=end,
        avg_wait_min=int(waits.mean()),
        queued=int(e.c[kernel.WAITING]) + new,
        probes_s=tuple((first * (PROBES - 1 - k) + end * k) // (PROBES - 1) // 60 * 60 for k in range(PROBES)),
    )


def reactive(situation: Situation, at: StartedPair) -> Outcome:
    """Submit S at P's end."""
    return situation.outcome(situation.initial_state(), at.p_end_s // 60)


def average(situation: Situation, at: StartedPair) -> Outcome:
    """Submit S ahead of P's end by the mean wait of jobs, at the earliest a minute after P."""
    return situation.outcome(
        situation.initial_state(), max(at.p_end_s // 60 - at.avg_wait_min, situation.p_submit_min + 1)
    )


def online(situation: Situation, rule: Callable[[int, int | None], bool]) -> tuple[Outcome, int]:
    """Ask a rule every ten minutes from P's submission whether to submit S; submit S once P has ended.

    P's end is noticed only at these looks, as by the authors' models.

    Args:
        situation: P among the trace's jobs.
        rule: takes the minute, and P's minutes since its start (None before).

    Returns:
        the outcome, and how often the rule decided.
    """
    e = situation.initial_state()
    t, decisions = situation.p_submit_min // LOOK_MIN * LOOK_MIN + LOOK_MIN, 0
    while True:
        kernel.advance(e, t, kernel.NEVER)
        p_start = int(e.c[kernel.P_START])
        ran = None if p_start == kernel.NEVER else t - p_start
        decisions += 1
        if rule(t, ran) or (ran is not None and ran >= situation.pair.limit_min):
            return situation.outcome(e, t), decisions
        t += LOOK_MIN
