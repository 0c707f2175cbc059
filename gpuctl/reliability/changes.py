"""When the rate of failures changed: a scan over incidents in order, with its p from permutations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import betaincinv

from gpuctl.reliability.intervals import DAY, before

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

DRAWS, LEVEL = 1000, 0.01
"""A change is stated at a p of at most this over the number of scans."""
LEAST = 10
"""Incidents that a scan needs."""
EDGE = 3
"""Incidents on each side of a change."""
_STEPS, _AT_ONCE = 2000, 1_000_000
SCHEMA: dict[str, Any] = {
    "basis": pl.String, "failures": pl.Int64, "change_ts": pl.Datetime("us", "UTC"),
    **dict.fromkeys(("before", "after", "ratio", "low", "high", "p"), pl.Float64), "change": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """The most likely change.

    Attributes:
        share: exposure before it, of all.
        before: incidents before it.
        p: probability of one at least as strong at a constant rate.
    """

    share: float
    before: int
    p: float


def scan(shares: np.ndarray, seed: int = 0) -> Change | None:
    """Find the most likely change of rate.

    Args:
        shares: exposure before each incident, of all, from 0 to 1, ascending.
        seed: of the draws.

    Returns:
        None with fewer incidents than `LEAST`.
    """
    n = len(shares)
    if n < LEAST:
        return None
    strength, place = _strongest(shares[None, :])
    rng, hits, chunk = np.random.default_rng(seed), 0, max(1, _AT_ONCE // n)
    for first in range(0, DRAWS, chunk):
        drawn = rng.uniform(size=(min(chunk, DRAWS - first), n))
        drawn.sort(axis=1)
        hits += int((_strongest(drawn)[0] >= strength[0] - 1e-12).sum())
    k = EDGE + int(place[0])
    return Change(float((shares[k - 1] + shares[k]) / 2), k, (hits + 1) / (DRAWS + 1))


def _strongest(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the largest log likelihood ratio of two rates against one, and behind which incident."""
    n = shares.shape[1]
    k = np.arange(EDGE, n - EDGE + 1)
    at = (shares[:, EDGE - 1 : n - EDGE] + shares[:, EDGE : n - EDGE + 1]) / 2
    at = np.clip(at, 1e-9, 1 - 1e-9)
    ratio = k * np.log(k / n / at) + (n - k) * np.log((n - k) / n / (1 - at))
    best = ratio.argmax(axis=1)
    return ratio[np.arange(len(ratio)), best], best


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``failure_changes``: of incidents that ended attempts, and of unplanned outages."""
    grid = np.linspace(0, facts.until, _STEPS + 1)
    busy = before(facts.busy_spans["start"].to_numpy(), facts.busy_spans["end"].to_numpy(), grid) / DAY
    level = LEVEL / (1 + facts.has_events)
    rows = [_row(facts, "attempts", facts.incidents["at_s"].to_numpy(), grid, busy, level)]
    if facts.has_events:
        down = facts.failures_of_nodes
        # nodes of a rack that go down together are one
        first = down.with_columns(fault=pl.coalesce("rack_fault", -1 - pl.int_range(pl.len())))
        own = first.group_by("fault").agg(pl.col("from_s").min())["from_s"].to_numpy()
        since = facts.nodes["since_s"].to_numpy()
        up = before(since, np.full(len(since), facts.until), grid)
        away = before(facts.outages["from_s"].to_numpy(), facts.outages["to_s"].to_numpy(), grid)
        rows.append(_row(facts, "events", own, grid, (up - away) / DAY, level))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _row(  # noqa: PLR0917 - one scan
    facts: Facts, basis: str, at: np.ndarray, grid: np.ndarray, exposure: np.ndarray, level: float
) -> tuple[object, ...]:
    at = np.sort(at)
    total = float(exposure[-1])
    none = (basis, len(at), None, None, None, None, None, None, None, f"fewer than {LEAST} failures")
    if total <= 0:
        return none
    shares = np.interp(at, grid, exposure) / total
    found = scan(shares)
    if found is None:
        return none
    k, n = found.before, len(at)
    moment = float(np.interp(found.share * total, exposure, grid))
    rates = [1000 * k / (found.share * total), 1000 * (n - k) / ((1 - found.share) * total)]
    # given their sum, the later incidents are binomial: an exact interval of the ratio (Clopper and Pearson 1934)
    odds = found.share / (1 - found.share)
    ends = [betaincinv(n - k, k + 1, 0.025), betaincinv(n - k + 1, k, 0.975)]
    low, high = (float(odds * end / (1 - end)) for end in ends)
    stamp = round((facts.begin + moment) * 1_000_000)
    said = "yes" if found.p <= level else "no"
    return (basis, n, _time(stamp), *rates, rates[1] / rates[0], low, high, found.p, said)


def _time(microseconds: int) -> object:
    from datetime import UTC, datetime, timedelta

    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
