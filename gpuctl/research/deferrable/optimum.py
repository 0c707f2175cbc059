"""The best starts in hindsight: an integer program, solved by HiGHS."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.research.deferrable.slots import WAIT_COST, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.research.deferrable.cases import Case

    Ints = NDArray[np.int64]

MOST_STARTS = 2_000_000
"""Most possible starts; with more, the solver takes gigabytes."""


class Optimum(NamedTuple):
    """Solution of the solver.

    Attributes:
        outcome: outcome of its starts; nothing is evicted.
        bound: upper bound of the score.
    """

    outcome: Outcome
    bound: float


def optimum(case: Case, limit_s: float) -> Optimum:
    """The starts with the highest score, each job at most once, no slot over its capacity.

    Args:
        case: capacity and jobs.
        limit_s: time limit, s; then the best starts so far count.

    Raises:
        InputError: there are more possible starts than `MOST_STARTS`, or no solution was found in time.
    """
    job, start = _starts(case)
    found = np.full(len(case.ids), -1, np.int64)
    work = max(int(case.work.sum()), 1)
    bound = 0.0
    if job.size:
        chosen, best = _solve(case, job, start, limit_s)
        found[job[chosen]] = start[chosen]
        bound = best / work
    states = tuple("done" if at >= 0 else "missed" for at in found.tolist())
    return Optimum(Outcome(found, np.zeros(found.size, np.int64), states, 0), bound)


def _starts(case: Case) -> tuple[Ints, Ints]:
    """Jobs, and slots in which each may start and fits the leftover capacity by itself."""
    span = case.latest - case.earliest + 1
    if span.sum() > MOST_STARTS:
        raise InputError(
            f"{span.sum():,} possible starts, more than the {MOST_STARTS:,} that optimum takes",
            hint="leave optimum out, or take a shorter trace or longer slots",
        )
    job = np.repeat(np.arange(len(case.ids)), span)
    start = np.arange(job.size) - np.repeat(np.cumsum(span) - span - case.earliest, span)
    least = np.empty(job.size, np.int64)
    for length in np.unique(case.slots).tolist():
        some = case.slots[job] == length
        windows = np.lib.stride_tricks.sliding_window_view(case.leftover, length).min(axis=1)
        least[some] = windows[start[some]]
    fits = least >= case.gpus[job]
    return job[fits], start[fits]


def _solve(case: Case, job: Ints, start: Ints, limit_s: float) -> tuple[NDArray[np.bool_], float]:
    """The selected starts, and the upper bound of their worth."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    late = (start - case.earliest[job]) / np.maximum(1, case.latest[job] - case.earliest[job])
    value = case.work[job] * (1 - WAIT_COST * late)
    length = case.slots[job]
    column = np.repeat(np.arange(job.size), length)
    slot = start[column] + np.arange(column.size) - np.repeat(np.cumsum(length) - length, length)
    jobs = len(case.ids)
    rows = np.concatenate([job, jobs + slot])
    columns = np.concatenate([np.arange(job.size), column])
    values = np.concatenate([np.ones(job.size), case.gpus[job][column]])
    matrix = coo_array((values, (rows, columns)), shape=(jobs + case.horizon, job.size)).tocsc()
    most = np.concatenate([np.ones(jobs), case.leftover])
    answer = milp(
        -value, constraints=LinearConstraint(matrix, -np.inf, most), integrality=np.ones(job.size),
        bounds=Bounds(0, 1), options={"time_limit": limit_s, "mip_rel_gap": 1e-6},
    )  # fmt: skip
    if answer.x is None:
        raise InputError(f"optimum: no starts found in {limit_s:g} s", hint="a longer --time-limit")
    bound = answer.get("mip_dual_bound")
    return answer.x > 0.5, float(value.sum() if bound is None else -bound)
