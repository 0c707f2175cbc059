"""Waits from like to like: worked by hand, and how often chance looks like a long queue."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from gpuctl.analyze.like_waits import compare

Row = tuple[str, str, int, int, float]


def waits(*rows: Row) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["queue", "size_bucket", "day", "n", "s"], orient="row")


def of(found: pl.DataFrame, **where: str) -> dict[str, Any]:
    [row] = found.filter(*(pl.col(name) == value for name, value in where.items())).to_dicts()
    return row


def test_only_like_waits_are_compared() -> None:
    # a waits twice as long as b in each size, and 110 against 10 s a wait if sizes are left out
    rows = [
        row
        for day in range(6)
        for row in (
            ("a", "1", day, 1, 20.0), ("a", ">8", day, 9, 1800.0), ("b", "1", day, 9, 90.0), ("b", ">8", day, 1, 100.0),
            ("c", "2-4", day, 5, 5000.0),
        )
    ]  # fmt: skip
    found = compare(waits(*rows))
    a = of(found, queue="a", size_bucket="all")
    assert (a["ratio"], a["ratio_low"], a["ratio_high"]) == pytest.approx((2, 2, 2))
    assert (a["waits"], a["like_waits"], a["days"], a["p"]) == (60, 60, 6, 0)
    # nothing is like the waits of c
    assert of(found, queue="c", size_bucket="all")["ratio"] is None
    assert of(found, queue="all", size_bucket=">8")["ratio"] == pytest.approx(10)


def test_mantel_and_haenszel_on_paper() -> None:
    rows = [("a", "1", 1, 2, 20.0), ("b", "1", 1, 8, 40.0), ("a", "1", 2, 5, 50.0), ("b", "1", 2, 5, 20.0)]
    a = of(compare(waits(*rows)), queue="a", size_bucket="all")
    up, down = 20 * 8 / 10 + 50 * 5 / 10, 40 * 2 / 10 + 20 * 5 / 10
    assert a["ratio"] == pytest.approx(up / down)
    # two days are too few
    assert (a["ratio_low"], a["p"]) == (None, None)


def test_one_day_on_which_a_queue_waited_is_no_long_queue() -> None:
    rows = [(queue, "1", day, 10, 6000.0 if (queue, day) == ("a", 3) else 60.0) for day in range(8) for queue in "ab"]
    a = of(compare(waits(*rows)), queue="a", size_bucket="all")
    assert a["ratio"] > 10
    assert a["p"] is None or a["p"] > 0.05


@pytest.mark.parametrize("days", [7, 30])
def test_equal_queues_are_seldom_called_long(days: int) -> None:
    rng = np.random.default_rng(days)
    wrong = inside = 0
    for _ in range(200):
        shared = rng.normal(0, 1, days)
        rows = [
            (queue, "1", day, 20, float(np.exp(shared[day] + rng.normal(0, 0.7)) * 20)) for day in range(days)
            for queue in "abcde"
        ]  # fmt: skip
        found = compare(waits(*rows)).filter(pl.col("size_bucket") == "all")
        wrong += (found["p"].min() or 1.0) * 5 <= 0.02
        a = of(found, queue="a")
        inside += a["ratio_low"] is not None and a["ratio_low"] <= 1 <= a["ratio_high"]
    assert wrong <= 8
    assert inside >= 184
