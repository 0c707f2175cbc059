"""Compares failure rates of groups of nodes with each other, all else equal: a Poisson regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.special import chdtrc, chdtri

from gpuctl.reliability.intervals import DAY
from gpuctl.reliability.rates import AGES, MONTH, age_label
from gpuctl.reliability.statistics import adjusted

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

EVENTS_A_TERM = 10
"""No more terms than a tenth of the incidents."""
_LIMIT = float(chdtri(1, 0.05)) / 2
"""Log likelihood within which a profile interval lies."""
_WIDEST = 12.0
"""Logarithm of the largest ratio between the ends of a column that is looked at."""
SCHEMA = {
    "by": pl.String, "group": pl.String, "against": pl.String, "failures": pl.Int64, "node_days": pl.Float64,
    "ratio": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "q": pl.Float64,
    "dispersion": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """A fitted model: log rate = `x` @ `beta`.

    Attributes:
        beta: coefficients.
        log_likelihood: without the terms that do not depend on it.
        mean: expected counts.
    """

    beta: np.ndarray
    log_likelihood: float
    mean: np.ndarray


def poisson(x: np.ndarray, count: np.ndarray, offset: np.ndarray) -> Fit:
    """Fit counts with mean exp(x @ beta + offset), by Newton's method with halved steps.

    Args:
        x: one row a cell; columns are linearly independent.
        count: of each cell.
        offset: logarithm of each cell's exposure.
    """
    beta = np.zeros(x.shape[1])
    start = np.log(max(count.sum(), 0.5) / np.exp(offset).sum())
    if x.shape[1]:
        beta = np.linalg.lstsq(x, np.full(len(count), start), rcond=None)[0]

    def value(b: np.ndarray) -> float:
        eta = np.clip(x @ b + offset, -50, 50)
        return float(count @ eta - np.exp(eta).sum())

    best = value(beta)
    for _ in range(60):
        mean = np.exp(np.clip(x @ beta + offset, -50, 50))
        gradient = x.T @ (count - mean)
        curve = (x.T * mean) @ x + 1e-9 * np.eye(x.shape[1])
        step = np.linalg.solve(curve, gradient) if x.shape[1] else gradient
        size = 1.0
        while size > 1e-6 and value(beta + size * step) < best:
            size /= 2
        beta = beta + size * step
        new = value(beta)
        if new - best < 1e-10:
            best = new
            break
        best = new
    return Fit(beta, best, np.exp(np.clip(x @ beta + offset, -50, 50)))


def profile(  # noqa: PLR0917 - the arguments of a fit
    x: np.ndarray, count: np.ndarray, offset: np.ndarray, full: Fit, term: int, spread: float = 1.0
) -> tuple[float, float]:
    """The 95 % profile likelihood interval of one coefficient; an end without bound is infinite.

    Args:
        x: as of `poisson`, as are `count` and `offset`.
        count: of each cell.
        offset: of each cell.
        full: the fit.
        term: column of the coefficient.
        spread: variance of counts over their mean; the interval is as wide as counts with it need (quasi-likelihood).
    """
    others = np.delete(x, term, axis=1)

    def short(at: float) -> float:
        return full.log_likelihood - poisson(others, count, offset + at * x[:, term]).log_likelihood - spread * _LIMIT

    from scipy.optimize import brentq

    # of a column that hardly varies the coefficient is large: steps are of the ratio between its ends
    unit = 1 / float(np.ptp(x[:, term]))
    ends = []
    for sign in (-unit, unit):
        # the best value itself, however far away it is: there the interval has not ended
        far = float(full.beta[term])
        while short(far) <= 0 and far * np.sign(sign) < _WIDEST * unit:
            far += sign
        ends.append(sign * np.inf if short(far) <= 0 else brentq(short, far - sign, far, xtol=1e-4 * unit))
    return ends[0], ends[1]


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``failure_rate_ratios``: GPU type, age, rack and load, as many as the incidents bear."""
    cells = _cells(facts)
    total = int(cells["k"].sum()) if cells.height else 0
    if total < EVENTS_A_TERM:
        return pl.DataFrame(schema=SCHEMA)
    count, offset = cells["k"].to_numpy().astype(float), np.log(cells["days"].to_numpy())
    # one bad node is no evidence on its rack or its load
    most = min(total / EVENTS_A_TERM, int((count > 0).sum()) - 1)
    columns: list[np.ndarray] = [np.ones(cells.height)]
    named: list[tuple[str, str, str]] = []
    for term in ("gpu_type", "age", "rack", "load"):
        new = _terms(cells, term)
        if not new or len(named) + len(new) > most:
            continue
        candidate = np.column_stack([*columns, *(column for _, _, column in new)])
        if np.linalg.matrix_rank(candidate) < candidate.shape[1]:
            continue
        columns += [column for _, _, column in new]
        named += [(term, group, against) for group, against, _ in new]
    if not named:
        return pl.DataFrame(schema=SCHEMA)
    x = np.column_stack(columns)
    full = poisson(x, count, offset)
    spread = float(((count - full.mean) ** 2 / full.mean).sum() / max(len(count) - x.shape[1], 1))
    scale = max(1.0, spread)
    rows: list[tuple[object, ...]] = []
    for i, (term, group, against) in enumerate(named, 1):
        without = poisson(np.delete(x, i, axis=1), count, offset)
        low, high = profile(x, count, offset, full, i, scale)
        own = x[:, i] > 0 if term != "load" else np.ones(len(count), bool)
        p = float(chdtrc(1, max(0.0, 2 * (full.log_likelihood - without.log_likelihood) / scale)))
        ratio = float(np.exp(full.beta[i])) if full.beta[i] > -_WIDEST else 0.0
        ends = [ratio, 0.0 if low == -np.inf else float(np.exp(low)), None if high == np.inf else float(np.exp(high))]
        rows.append((term, group, against, int(count[own].sum()), float(np.exp(offset[own]).sum()), *ends, p, spread))
    q = adjusted(np.array([row[-2] for row in rows], float))
    rows = [(*row[:-1], each, row[-1]) for row, each in zip(rows, q.tolist(), strict=True)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _cells(facts: Facts) -> pl.DataFrame:
    """Incidents of single nodes and busy days, by node and class of age."""
    nodes = facts.nodes
    number = np.arange(nodes.height)
    installed = nodes["installed_s"].to_numpy().astype(float)
    own = facts.incidents.filter(pl.col("node").is_not_null())
    at, of = own["at_s"].to_numpy(), own["node"].to_numpy()
    busy = facts.busy_days / np.maximum(facts.up_days, 1e-9)
    parts = []
    known = ~np.isnan(installed)
    spans = [(age_label(low, high), low, high) for low, high in AGES] if known.all() else [("not known", None, None)]
    for label, low, high in spans:
        begin = np.zeros(len(number)) if low is None else np.clip(installed + low * MONTH, 0, facts.until)
        end = np.full(len(number), facts.until) if high is None else np.clip(installed + high * MONTH, 0, facts.until)
        days = facts.held_nodes.between(number, begin, end) / DAY
        inside = (at >= begin[of]) & (at < np.where(end[of] >= facts.until, np.inf, end[of]))
        k = np.bincount(of[inside], minlength=len(number))
        parts.append(
            pl.DataFrame({"k": k, "days": days, "busy": busy}).with_columns(
                nodes["gpu_type"].fill_null("not known"), nodes["rack"].fill_null("not known"), age=pl.lit(label)
            )
        )
    cells = pl.concat(parts).filter(pl.col("days") > 0)
    expected = pl.col("days").sum().over("age") / pl.col("days").sum() * pl.col("k").sum()
    # a class of age without enough days for one incident tells nothing
    return cells.filter(expected >= 1)


def _terms(cells: pl.DataFrame, term: str) -> list[tuple[str, str, np.ndarray]]:
    """Columns of a term: group, against which it is compared, values; the group with the most days is the base."""
    if term == "load":
        busy = cells["busy"].to_numpy()
        return (
            [("10 points busier", "of the time in service", 10 * (busy - busy.mean()))] if np.ptp(busy) > 1e-3 else []
        )
    days = cells.group_by(term).agg(pl.col("days").sum()).sort("days", term, descending=[True, False])
    base, *others = days[term].to_list()
    return [(group, base, (cells[term] == group).to_numpy().astype(float)) for group in sorted(others)]
