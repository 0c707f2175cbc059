"""Whether to submit a successor now, from the present queue and a model's forecast of the wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.research.chain import look_kernel
from gpuctl.research.chain.episode import Pair
from gpuctl.research.chain.forecast_kernel import forecasts
from gpuctl.research.chain.policies import FORECASTS, QUANTILES, SHOWN, wait_at
from gpuctl.research.chain.queue_now import now_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.research.chain.model import Model
    from gpuctl.research.chain.queue_now import QueuedJob

    Floats = NDArray[np.float64]

POINTS = np.linspace(0.0025, 0.9975, 200)


@dataclass(frozen=True)
class Advice:
    """Advice on the successor of one job.

    Attributes:
        job: P.
        left_h: hours to P's end by its limit.
        lead_h: hours before P's end at which to submit S, by the present queue.
        now: whether to submit S now.
        interruption_h: expected interruption if S is submitted now.
        overlap_h: expected overlap if S is submitted now.
        gap_low_h: 10 % quantile of start of S - end of P if S is submitted now …
        gap_high_h: … and the 90 % quantile.
        quantiles_h: the wait at each of `QUANTILES`.
        planned_h: the wait in a backfill plan.
        left_out: jobs that wait for more than nodes, counted by reason.
    """

    job: str
    left_h: float
    lead_h: float
    now: bool
    interruption_h: float
    overlap_h: float
    gap_low_h: float
    gap_high_h: float
    quantiles_h: tuple[float, ...]
    planned_h: float
    left_out: dict[str, int]


def advise(model: Model, jobs: Sequence[QueuedJob], job: str, second: int, *, cost: float, size: int | None) -> Advice:
    """Advise whether to submit the successor of a job now; both request the same.

    Args:
        model: the trained model.
        jobs: jobs in the queue.
        job: ID of P.
        second: time of the queue, s since 1970.
        cost: cost of an hour of interruption, in hours of overlap.
        size: nodes of P's partition; None: the model's.

    Raises:
        InputError: P is not in the queue, does not run or has no limit, or jobs hold more nodes than exist.
    """
    p = next((each for each in jobs if each.job == job), None)
    if p is None:
        raise InputError(f"the queue has no job {job[:40]}", hint="name a running job of it with --job")
    if p.limit_s is None or p.start_s is None or not p.holds:
        raise InputError(
            f"job {p.job} does not run, or has no limit: when it ends cannot be known", hint="try again once it runs"
        )
    pair = Pair(p.nodes, max(p.limit_s // 60, 1))
    now = now_of(jobs, p, pair, size or model.size, second)
    rows = np.zeros((1, look_kernel.FEATURES))
    at = np.array([now.now], np.int64)
    look_kernel.look_features(now.episode(), now.episode(), 0, at, rows, np.zeros(0, np.int64))
    drawn = model.drawn(now.users, now.arrays["limit"])
    drawn.kind[-2:] = -1
    waits = np.zeros((1, FORECASTS), np.int64)
    copy = now.episode(ticks=now.arrays["ticks"].copy())
    forecasts(now.episode(), copy, at, drawn.past, drawn.count, drawn.kind, drawn.pool, waits)
    waits.sort(axis=1)
    shown = np.column_stack([waits.mean(axis=1), waits[:, SHOWN]]) / 60
    quantiles = model.quantiles_h(rows, shown)[0]
    left = (p.start_s + p.limit_s - second) / 3600
    gaps = wait_at(quantiles, POINTS) - left
    lead = model.lead_h(rows, shown, cost)
    return Advice(
        job=p.job,
        left_h=left,
        lead_h=lead,
        now=left <= lead,
        interruption_h=float(np.maximum(gaps, 0).mean()),
        overlap_h=float(np.maximum(-gaps, 0).mean()),
        gap_low_h=float(quantiles[QUANTILES.index(0.1)] - left),
        gap_high_h=float(quantiles[QUANTILES.index(0.9)] - left),
        quantiles_h=tuple(quantiles.tolist()),
        planned_h=float(rows[0, look_kernel.PLANNED]),
        left_out=now.left_out,
    )
