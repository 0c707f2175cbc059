"""Ratio of the waits of a queue, or of a size, to those of similar attempts.

A queue may wait long because its jobs are large, or because it was used on busy days. So its waits are compared with
those of attempts of the same size queued on the same day in other queues; those of gangs with attempts of one GPU on
the same day in the same queue. The ratio of the means is that of Mantel and Haenszel (1959); its interval is Student's
t over informative days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.store.database import Store

LEAST_DAYS = 3
"""Minimum days with waits on both sides for an interval."""
_SQL = """
    SELECT queue, size_bucket, floor(epoch(queued_ts) / 86400)::BIGINT AS day, count(*) AS n, sum(wait_s)::DOUBLE AS s
    FROM base_attempts
    WHERE wait_s IS NOT NULL AND queue IS NOT NULL AND queued_ts IS NOT NULL
    GROUP BY ALL
    ORDER BY ALL
"""
_SCHEMA = {
    "queue": pl.String, "size_bucket": pl.String, "waits": pl.Int64, "like_waits": pl.Int64, "days": pl.Int64,
    "ratio": pl.Float64, "ratio_low": pl.Float64, "ratio_high": pl.Float64, "p": pl.Float64,
}  # fmt: skip


def build(store: Store) -> None:
    """Create ``base_like_waits``; base_attempts exists."""
    store.keep("base_like_waits", compare(store.frame(_SQL)))


def compare(waits: pl.DataFrame) -> pl.DataFrame:
    """Compare every queue, and every size.

    Args:
        waits: ``queue``, ``size_bucket``, ``day``, ``n`` (waits) and ``s`` (their sum, seconds).

    Returns:
        One row per queue (``size_bucket`` is ``all``) and one per size of gang (``queue`` is ``all``): ``waits`` and
        ``like_waits`` (on days and in sizes or queues that have both), ``days``, ``ratio`` of the mean waits, ends of
        its 95 % interval, and ``p``, the probability of a ratio at least as large if the true one is 1. Null if too few
        days are informative.
    """
    rows = []
    for (queue,), own in waits.group_by("queue", maintain_order=True):
        other = waits.filter(pl.col("queue") != queue)
        rows.append({"queue": queue, "size_bucket": "all"} | _ratio(own, other, ["day", "size_bucket"]))
    single = waits.filter(pl.col("size_bucket") == "1")
    for size in ("2-4", "5-8", ">8"):
        own = waits.filter(pl.col("size_bucket") == size)
        if own.height:
            rows.append({"queue": "all", "size_bucket": size} | _ratio(own, single, ["day", "queue"]))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _ratio(own: pl.DataFrame, other: pl.DataFrame, alike: list[str]) -> dict[str, float | int | None]:
    sums = [frame.group_by(alike).agg(pl.sum("n", "s")) for frame in (own, other)]
    both = sums[0].join(sums[1], on=alike, suffix="_other").sort(alike)
    whole = pl.col("n") + pl.col("n_other")
    by_day = both.group_by("day", maintain_order=True).agg(
        up=(pl.col("s") * pl.col("n_other") / whole).sum(), down=(pl.col("s_other") * pl.col("n") / whole).sum()
    )
    found: dict[str, float | int | None] = dict.fromkeys(_SCHEMA)
    del found["queue"], found["size_bucket"]
    found |= {"waits": int(both["n"].sum()), "like_waits": int(both["n_other"].sum()), "days": by_day.height}
    return found | _interval(by_day["up"].to_numpy(), by_day["down"].to_numpy())


def _interval(up: NDArray[np.float64], down: NDArray[np.float64]) -> dict[str, float | None]:
    """Return the ratio of two sums over days, with its interval."""
    if up.sum() <= 0 or down.sum() <= 0:
        return {}
    ratio, level = float(up.sum() / down.sum()), up / up.sum() + down / down.sum()
    independent = float(level.sum() ** 2 / (level**2).sum())
    if up.size < LEAST_DAYS or independent < LEAST_DAYS - 1:
        return {"ratio": ratio}
    from scipy.special import stdtr, stdtrit

    apart = up / up.sum() - down / down.sum()
    error = float(np.sqrt((apart**2).sum() * independent / (independent - 1)))
    wide = float(stdtrit(independent - 1, 0.975)) * error
    low, high = (float(np.exp(np.clip(np.log(ratio) + end, -700, 700))) for end in (-wide, wide))
    p = float(stdtr(independent - 1, -np.log(ratio) / error)) if error > 0 else float(ratio <= 1)
    return {"ratio": ratio, "ratio_low": low, "ratio_high": high, "p": p}
