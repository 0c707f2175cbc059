"""Run times that simulations draw: the shares of limits that trees expect of jobs, as known when each came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.predictors import limit_share
from gpuctl.predictors.job_table import SHORTEST_S
from gpuctl.predictors.time_split import weights
from gpuctl.waits import features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.predictors.limit_share import Shares
    from gpuctl.waits.features import Asked
    from gpuctl.waits.log import WaitLog

    Floats = NDArray[np.float64]
    Singles = NDArray[np.float32]
    Mask = NDArray[np.bool_]

FEWEST = 100
"""Ended jobs from which trees are fitted."""
LOOKED_BACK_S = 15 * 86_400.0
"""Jobs that came, and ended, longer ago are not drawn again."""
LATEST = 200
"""Jobs that ended last: on them trees must come as near as the past does."""
FEWEST_LATEST = 20
"""Of fewer it is not known how near trees come: they stay."""
OF_USER, OF_ALL = 32, 512
"""Jobs that stand for the past: the user's last, or where these are fewer than `FEWEST_OF_USER` the last of all."""
FEWEST_OF_USER = 8


def rows_of(log: WaitLog) -> pl.DataFrame:
    """A log's jobs as `limit_share.seen` takes them, each submitted when it could first start."""
    ended = _ended(log)
    run = np.where(ended, log.end_s - log.leave_s, np.nan)
    return log.rows.with_columns(submit_s=log.ready_s, end_s=log.end_s, run_s=run, known=ended)


def fit(log: WaitLog, seen: Singles, names: Sequence[str], cut: float, fewest: int = FEWEST) -> Shares | None:
    """Trees from jobs that had ended at an instant; None: too few had.

    Args:
        log: of the cluster.
        seen: what was known of each of its jobs [jobs, names].
        names: of its columns.
        cut: s.
        fewest: ended jobs from which trees are fitted.
    """
    ended = _ended(log) & (log.end_s < cut)
    if ended.sum() < fewest:
        return None
    part = log.started & (log.ready_s < cut)
    run, limit = (log.end_s - log.leave_s)[ended], features.limits(log.rows)[ended]
    return limit_share.fit(seen[ended], run, limit, weights(log.ready_s, log.end_s, ended, part, cut), names)


def by_part(log: WaitLog, seen: Singles, fitted: Sequence[Shares | None], cuts: Sequence[float]) -> Floats:
    """What trees say of a log's jobs, those of each part by trees of their own [jobs, levels]; NaN: none says anything.

    Args:
        log: of the cluster.
        seen: what was known of each of its jobs.
        fitted: trees, one a cut.
        cuts: from which second on each answers, ascending.
    """
    said = nothing(log.ready_s.size)
    for shares, first, end in zip(fitted, cuts, [*cuts[1:], np.inf], strict=True):
        part = (log.ready_s >= first) & (log.ready_s < end)
        if shares is not None and part.any():
            said[part] = shares.answer(seen[part])
    return said


def of_asked(shares: Shares | None, log: WaitLog, asked: Asked | None = None) -> tuple[Floats, Floats]:
    """What trees say of the jobs of a log that may matter, and of jobs that come to it.

    Args:
        shares: fitted on earlier jobs; None: nothing is said.
        log: of the cluster.
        asked: the jobs that come; None: none.

    Returns:
        `limit_share.LEVELS` of the logarithm of the share of its limit that each uses up [jobs, levels], [asks, levels]
        NaN: nothing is said.
    """
    jobs, asks = log.ready_s.size, 0 if asked is None else asked.ready_s.size
    if shares is None:
        return nothing(jobs), nothing(asks)
    rows = rows_of(log)
    place = np.arange(jobs)
    if asked is not None:
        new = asked.rows.select(log.rows.columns).with_columns(
            submit_s=asked.ready_s, end_s=pl.lit(np.nan), run_s=pl.lit(np.nan), known=pl.lit(value=False)
        )
        order = np.argsort(np.concatenate([log.ready_s, asked.ready_s]), kind="stable")
        rows = pl.concat([rows, new.select(rows.columns)])[order.tolist()]
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
    now = log.taken_s if asked is None or not asks else float(asked.ready_s[0])
    matter = np.ones(place.size, np.bool_)
    matter[:jobs] = (log.end_s >= now) | (log.ready_s >= now - LOOKED_BACK_S)
    said = nothing(place.size)
    said[matter] = shares.answer(limit_share.seen(rows, shares.features)[place[matter]])
    return said[:jobs], said[jobs:]


def hold(log: WaitLog, said: Floats) -> bool:
    """Whether trees tell the run times of the jobs that ended last at least as well as the past did when each came.

    A model may be asked about another cluster, or long after it was trained; the past follows what runs now.

    Args:
        log: of the cluster, up to now.
        said: what trees say of its jobs, as `of_asked` has it.
    """
    ended = np.flatnonzero(_ended(log))
    if ended.size < FEWEST_LATEST:
        return True
    ended = ended[np.argsort(log.end_s[ended], kind="stable")]
    run, limit = (log.end_s - log.leave_s)[ended], features.limits(log.rows)[ended]
    share = np.minimum(np.log(np.maximum(run, SHORTEST_S) / limit), 0.0)
    users, at = log.rows["user"].to_numpy()[ended], log.end_s[ended]
    trees, past = 0.0, 0.0
    for k in range(max(ended.size - LATEST, 0), ended.size):
        before = int(np.searchsorted(at, log.ready_s[ended[k]]))
        own = np.flatnonzero(users[:before] == users[k])[-OF_USER:]
        drawn = share[own] if own.size >= FEWEST_OF_USER else share[max(before - OF_ALL, 0) : before]
        if not drawn.size:  # it came before any had ended: held against the others
            drawn = np.delete(share, k)[:OF_ALL]
        if np.isfinite(said[ended[k]]).all():
            trees += _loss(said[ended[k]], share[k])
            past += _loss(np.quantile(drawn, limit_share.LEVELS), share[k])
    return trees <= past


def _loss(levels: Floats, came: float) -> float:
    """Quantile loss of `limit_share.LEVELS`, where this came."""
    off = came - levels
    return float(np.maximum(np.multiply(limit_share.LEVELS, off), np.subtract(limit_share.LEVELS, 1.0) * off).sum())


def nothing(jobs: int) -> Floats:
    """What is said of so many jobs where no trees are asked."""
    return np.full((jobs, len(limit_share.LEVELS)), np.nan)


def _ended(log: WaitLog) -> Mask:
    found: Mask = log.started & np.isfinite(log.end_s)
    return found
