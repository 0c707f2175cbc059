"""Whether failures of a node follow each other more often than by chance: Weibull fits of the times between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.special import chdtrc, chdtri, gammaln

from gpuctl.reliability.intervals import DAY

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

LEVEL = 0.01
"""Probability at which a finding is stated, divided by the number of groups."""
LEAST = 30
"""Failures that a fit needs."""
_LIMIT = float(chdtri(1, 0.05)) / 2
SPREADS = (-9.0, 4.0)
"""Logarithms of the spread that are looked at."""
SCHEMA = {
    "group": pl.String, "failures": pl.Int64, "node_days": pl.Float64, "mean_days": pl.Float64,
    **dict.fromkeys(("shape", "shape_low", "shape_high", "node_spread", "shape_alike", "p_shape"), pl.Float64),
    "finding": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Gaps:
    """Times in service of nodes.

    Attributes:
        node: number of each.
        days: from a repair (or the begin of the window) to the next failure, or to the end of the window.
        failed: whether a failure ended it; all others are censored.
    """

    node: np.ndarray
    days: np.ndarray
    failed: np.ndarray


def of_outages(facts: Facts) -> Gaps:
    """Times between unplanned outages of single nodes; planned ones and those of racks only interrupt them.

    What a node had run before the window is not known: its first time counts from the window's begin.
    """
    rows = facts.outages.sort("node", "from_s")
    own = ~(rows["planned"] | rows["earlier"]).to_numpy() & rows["rack_fault"].is_null().to_numpy()
    node, start, end = (rows[name].to_numpy() for name in ("node", "from_s", "to_s"))
    since = facts.nodes["since_s"].to_numpy()
    first = np.append(True, node[1:] != node[:-1]) if len(node) else np.zeros(0, bool)
    before = np.where(first, since[node], np.append(0.0, end[:-1])) if len(node) else np.zeros(0)
    last = np.append(first[1:], True) if len(node) else np.zeros(0, bool)
    tail_node = np.concatenate([node[last], np.setdiff1d(np.arange(facts.nodes.height), node)])
    tail_from = np.concatenate([end[last], since[np.setdiff1d(np.arange(facts.nodes.height), node)]])
    nodes = np.concatenate([node, tail_node])
    days = np.concatenate([start - before, facts.until - tail_from]) / DAY
    failed = np.concatenate([own, np.zeros(len(tail_node), bool)])
    some = days > 1 / 86_400
    return Gaps(nodes[some].astype(np.int64), days[some], failed[some])


@dataclass(frozen=True)
class Weibull:
    """A fit.

    Attributes:
        shape: 1: failures are independent of the time since repair; below 1: they cluster after it.
        low: lower end of the 95 % likelihood interval.
        high: upper end.
        log_likelihood: at the fit.
        constant: at shape 1.
        spread: variance of the nodes' rates over their mean (gamma frailty); None: nodes are taken for alike.
    """

    shape: float
    low: float
    high: float
    log_likelihood: float
    constant: float
    spread: float | None = None


class _Likelihood:
    """Log likelihoods of one set of gaps, each the largest over the scale and, with frailty, the nodes' spread."""

    def __init__(self, gaps: Gaps, *, frailty: bool) -> None:
        self._frailty = frailty
        node, self._index = np.unique(gaps.node, return_inverse=True)
        self._size = len(node)
        self._log_t = np.log(gaps.days)
        self._failed_log_t = float(self._log_t[gaps.failed].sum())
        self._k = np.bincount(self._index, weights=gaps.failed.astype(float), minlength=self._size)
        self._deaths = float(self._k.sum())

    def at(self, log_shape: float) -> tuple[float, float]:
        """The likelihood at a shape, and the logarithm of the spread there.

        The cumulated hazard of a node is exp(-scale) x sum of t ** shape; a gamma factor of mean 1 is integrated out.
        """
        shape = float(np.exp(log_shape))
        power = np.bincount(self._index, weights=np.exp(shape * self._log_t), minlength=self._size)
        level = np.log(power.sum() / self._deaths)
        fixed = self._deaths * log_shape + (shape - 1) * self._failed_log_t - self._deaths * level
        if not self._frailty:
            return fixed - self._deaths, 0.0
        hazard = power * np.exp(-level)
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(
            lambda spread: -self._mixed(hazard, spread), bounds=SPREADS, method="bounded", options={"xatol": 1e-3}
        )
        return fixed - float(found.fun), float(found.x)

    def _mixed(self, hazard: np.ndarray, log_spread: float) -> float:
        """The mixed part of the likelihood at a spread, the largest over the scale (by Newton's method)."""
        v, k, x = np.exp(-log_spread), self._k, 0.0
        for _ in range(30):
            share = (v + k) * hazard / (v * np.exp(x) + hazard)
            curve = float((share * v * np.exp(x) / (v * np.exp(x) + hazard)).sum())
            step = min(1.0, max(-1.0, (float(share.sum()) - self._deaths) / max(curve, 1e-12)))
            x += step
            if abs(step) < 1e-8:
                break
        own = gammaln(v + k) - gammaln(v) + v * np.log(v) - (v + k) * np.log(v + hazard * np.exp(-x))
        return float(own.sum()) - self._deaths * x


def fit(gaps: Gaps, *, frailty: bool) -> Weibull:
    """Fit by maximum likelihood, with right censoring.

    Args:
        gaps: with failures.
        frailty: let each node have a rate of its own, from a gamma distribution. A mixture of nodes that fail at
            constant, different rates looks like a shape below 1 without it.
    """
    from scipy.optimize import brentq, minimize_scalar

    of = _Likelihood(gaps, frailty=frailty)
    top = minimize_scalar(lambda b: -of.at(b)[0], bounds=(-2.5, 2.5), method="bounded", options={"xatol": 1e-3})
    at, most = float(top.x), -float(top.fun)

    def short(log_shape: float) -> float:
        return most - of.at(log_shape)[0] - _LIMIT

    ends = [brentq(short, at, end, xtol=2e-3) if short(end) > 0 else end for end in (at - 2.5, at + 2.5)]
    spread = float(np.exp(of.at(at)[1])) if frailty else None
    shape, low, high = (float(np.exp(value)) for value in (at, *ends))
    return Weibull(shape, low, high, most, of.at(0.0)[0], spread)


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``failure_gaps``: all nodes, and each GPU type with enough failures."""
    if not facts.has_events:
        return pl.DataFrame(schema=SCHEMA)
    gaps = of_outages(facts)
    kinds = facts.nodes["gpu_type"].fill_null("not known").to_numpy()[gaps.node]
    groups = sorted(set(kinds.tolist()))
    parts = [("all", gaps)]
    if len(groups) > 1:
        parts += [
            (kind, Gaps(*(part[kinds == kind] for part in (gaps.node, gaps.days, gaps.failed)))) for kind in groups
        ]
    rows = [_row(group, part, LEVEL / len(parts)) for group, part in parts]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _row(group: str, gaps: Gaps, level: float) -> tuple[object, ...]:
    failures, days = int(gaps.failed.sum()), float(gaps.days.sum())
    head = (group, failures, days, days / failures if failures else None)
    if failures < LEAST:
        return (*head, *[None] * 6, f"fewer than {LEAST} failures")
    own, alike = fit(gaps, frailty=True), fit(gaps, frailty=False)
    p, p_alike = (float(chdtrc(1, max(0.0, 2 * (of.log_likelihood - of.constant)))) for of in (own, alike))
    finding = "no sign of ageing or clustering"
    if p <= level:
        finding = "failures cluster after repairs" if own.shape < 1 else "failures grow with the time since repair"
    elif alike.shape < 1 and p_alike <= level:
        finding = "rates of nodes differ; no sign of clustering beyond that"
    return (*head, own.shape, own.low, own.high, own.spread, alike.shape, p, finding)
