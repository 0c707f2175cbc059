"""Run times for simulations: the shares of limits that trees predict for jobs, as known at each submission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.predictors import limit_share
from gpuctl.predictors.time_split import weights
from gpuctl.waits import features, scores
from gpuctl.waits.forward_kernel import OWN, POOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.predictors.limit_share import Shares
    from gpuctl.waits.features import WaitQueries
    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Singles = NDArray[np.float32]
    Mask = NDArray[np.bool_]

FEWEST = 100
"""Ended jobs from which trees are fitted."""
MOST = 10_000
"""Of more ended jobs every second, third and so on is fitted on: at most so many."""
LOOKED_BACK_S = 15 * 86_400.0
"""Jobs that came, and ended, longer ago are not drawn again."""
LATEST = 200
"""Jobs that ended last: on them trees must come as near as the past does."""
FEWEST_LATEST = 20
"""Of fewer it is not known how near trees come: they stay."""
FEWEST_OF_USER = 8
"""Where fewer jobs of a user have ended, the last of all users stand for the past."""


def rows_of(log: WaitLog) -> pl.DataFrame:
    """Return a log's jobs in the form of `limit_share.seen`, each submitted at its eligibility."""
    ended = _ended(log)
    run = np.full(ended.size, np.nan)
    run[ended] = _run_s(log, ended)
    return log.rows.with_columns(submit_s=log.ready_s, end_s=log.end_s, run_s=run, known=ended)


def fit(log: WaitLog, seen: Singles, names: Sequence[str], cut: float, fewest: int = FEWEST) -> Shares | None:
    """Fit trees to jobs that had ended at an instant; None: there are too few.

    Args:
        log: of the cluster.
        seen: features of each of its jobs [jobs, names].
        names: names of its columns.
        cut: s.
        fewest: least number of ended jobs.
    """
    ended = _ended(log) & (log.end_s < cut)
    if ended.sum() < fewest:
        return None
    part = log.started & (log.ready_s < cut)
    run, limit = _run_s(log, ended), features.limits(log.rows)[ended]
    weight = weights(log.ready_s, log.end_s, ended, part, cut)
    some = slice(None, None, -(-run.size // MOST))
    return limit_share.fit(seen[ended][some], run[some], limit[some], weight[some], names)


def by_part(
    log: WaitLog, seen: Singles, fitted: Sequence[Shares | None], cuts: Sequence[float], end: float = np.inf
) -> Floats:
    """Forecast the run times of a log's jobs, each part by its own trees [jobs, levels]; NaN: no forecast.

    Args:
        log: of the cluster.
        seen: features of each of its jobs.
        fitted: trees, one per cut.
        cuts: second from which each is used, ascending.
        end: second from which none is used.
    """
    run_curves = nothing(log.ready_s.size)
    for shares, first, last in zip(fitted, cuts, [*cuts[1:], end], strict=True):
        part = (log.ready_s >= first) & (log.ready_s < last)
        if shares is not None and part.any():
            run_curves[part] = shares.answer(seen[part])
    return run_curves


def for_queries(shares: Shares | None, log: WaitLog, queries: WaitQueries | None = None) -> tuple[Floats, Floats]:
    """Forecast run times of the relevant jobs of a log, and of queries.

    Args:
        shares: fitted on earlier jobs; None: no forecast.
        log: of the cluster.
        queries: the new jobs; None: none.

    Returns:
        `limit_share.LEVELS` of the logarithm of the share of its limit that each uses up [jobs, levels], [asks, levels]
        NaN: no forecast.
    """
    jobs, asks = log.ready_s.size, 0 if queries is None else queries.ready_s.size
    if shares is None:
        return nothing(jobs), nothing(asks)
    rows = rows_of(log)
    place = np.arange(jobs)
    if queries is not None:
        new = queries.rows.select(log.rows.columns).with_columns(
            submit_s=queries.ready_s, end_s=pl.lit(np.nan), run_s=pl.lit(np.nan), known=pl.lit(value=False)
        )
        order = np.argsort(np.concatenate([log.ready_s, queries.ready_s]), kind="stable")
        rows = pl.concat([rows, new.select(rows.columns)])[order.tolist()]
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
    now = log.taken_s if queries is None or not asks else float(queries.ready_s[0])
    matter = np.ones(place.size, np.bool_)
    matter[:jobs] = (log.end_s >= now) | (log.ready_s >= now - LOOKED_BACK_S)
    run_curves = nothing(place.size)
    run_curves[matter] = shares.answer(limit_share.submission_features(rows, shares.features)[place[matter]])
    return run_curves[:jobs], run_curves[jobs:]


def hold(log: WaitLog, run_curves: Floats) -> bool:
    """Return whether trees forecast run times of the latest jobs at least as well as past jobs did.

    A model may be used on another cluster, or long after its training; past jobs reflect the present load.

    Args:
        log: of the cluster, up to now.
        run_curves: run times of its jobs by trees, see `for_queries`.
    """
    ended = np.flatnonzero(_ended(log))
    if ended.size < FEWEST_LATEST:
        return True
    ended = ended[np.argsort(log.end_s[ended], kind="stable")]
    latest = np.arange(max(ended.size - LATEST, 0), ended.size)
    latest = latest[np.isfinite(run_curves[ended[latest]]).all(axis=1)]
    if not latest.size:
        return True
    came = limit_share.share(_run_s(log, ended), features.limits(log.rows)[ended])
    users, before = log.rows["user"].to_numpy()[ended], np.searchsorted(log.end_s[ended], log.ready_s[ended])
    past = [np.quantile(_drawn(came, users, k, before[k]), limit_share.LEVELS) for k in latest.tolist()]
    return _loss(run_curves[ended[latest]], came[latest]) <= _loss(np.stack(past), came[latest])


def _drawn(came: Floats, users: NDArray[Any], k: int, before: int) -> Floats:
    """Return the shares that represent the past of a job: of the first `k`, its user's last ones, or the last ones."""
    if not before:  # it arrived before any had ended: compare it with the others
        return np.delete(came, k)[:POOL]
    own = np.flatnonzero(users[:before] == users[k])[-OWN:]
    return came[own] if own.size >= FEWEST_OF_USER else came[max(before - POOL, 0) : before]


def _loss(run_curves: Floats, came: Floats) -> float:
    """Return the quantile loss over `limit_share.LEVELS` [jobs, levels] for these outcomes [jobs]."""
    return sum(scores.pinball(run_curves[:, k], came, level) for k, level in enumerate(limit_share.LEVELS))


def nothing(jobs: int) -> Floats:
    """Return the curves of `jobs` jobs without a forecast: NaN."""
    return np.full((jobs, len(limit_share.LEVELS)), np.nan)


def _run_s(log: WaitLog, ended: Mask | Ints) -> Floats:
    """Return the run times of ended jobs; both times of others may be infinite."""
    found: Floats = log.end_s[ended] - log.leave_s[ended]
    return found


def _ended(log: WaitLog) -> Mask:
    found: Mask = log.started & np.isfinite(log.end_s)
    return found
