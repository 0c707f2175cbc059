"""A window that the user sets: what runs at its begin enters there, what runs at its end has not ended."""

from __future__ import annotations

import polars as pl
import pytest

from gpuctl.reliability import availability, lemons, survival
from gpuctl.reliability.facts import Facts
from gpuctl.reliability.observed import spent_within, within
from gpuctl.reliability.training_time import Accounts, Assumed
from tests.reliability_cluster import DAY, attempt, cluster

HOUR = 3600.0


@pytest.fixture
def known() -> Facts:
    """Four nodes; failures on days 1, 5 and 9 of 10, two outages, one of them across the begin of the window."""
    jobs = [
        attempt(0, DAY, "node_fail"),
        attempt(1, 5 * DAY, "node_fail"),
        attempt(2, 9 * DAY, "node_fail"),
        attempt(3, 10 * DAY, "completed"),
    ]
    events = [("n0", DAY, 3 * DAY, "DOWN*", "Not responding"), ("n1", 5 * DAY, 5.5 * DAY, "DOWN*", "Not responding")]
    return cluster(jobs, events, nodes=4)


def test_only_what_ends_in_the_window_is_an_interruption(known: Facts) -> None:
    seen = within(known, 2 * DAY, 8 * DAY)
    assert (seen.begin, seen.until) == (2 * DAY, 6 * DAY)
    assert seen.attempts.select("job", "cause", "entered_s", "start_s", "end_s").rows() == [
        ("1", "infrastructure", 2 * DAY, 0, 3 * DAY),
        ("2", "running", 2 * DAY, 0, 6 * DAY),
        ("3", "running", 2 * DAY, 0, 6 * DAY),
    ]
    assert seen.incidents["at_s"].to_list() == [3 * DAY]
    row = survival.table(seen).row(0, named=True)
    assert (row["run_h"], row["interruptions"], row["mttf_h"]) == (15 * 24, 1, 15 * 24)


def test_an_outage_that_began_before_counts_its_hours_and_not_itself(known: Facts) -> None:
    seen = within(known, 2 * DAY, 8 * DAY)
    row = availability.table(seen).filter(pl.col("period") == "all").row(0, named=True)
    assert (row["down_unplanned_h"], row["outages"]) == (36, 1)
    assert lemons.table(seen)["outages"].sum() == 1


def test_each_gpu_hour_of_the_window_is_in_one_class(known: Facts) -> None:
    points = pl.DataFrame(
        schema={"number": pl.Int64, "kind": pl.String, "step": pl.Int64, "ts_s": pl.Float64, "value": pl.Float64}
    )
    accounts = Accounts(known, points, Assumed())
    spent = accounts.spent()
    parts = []
    for since, until in ((None, 2 * DAY), (2 * DAY, 8 * DAY), (8 * DAY, None)):
        accounts.facts = within(known, since, until)
        table = accounts.goodput(spent_within(spent, known, accounts.facts))
        rows = dict(table.select("kind", "gpu_hours").iter_rows())
        total = rows.pop("all")
        assert sum(rows.values()) == pytest.approx(total)
        assert min(rows.values()) >= 0
        parts.append(rows)
    accounts.facts = known
    whole = dict(accounts.goodput(spent).select("kind", "gpu_hours").iter_rows())
    for kind in parts[0]:
        assert sum(part[kind] for part in parts) == pytest.approx(whole[kind]), kind


def test_what_no_log_shows_has_a_range() -> None:
    points = pl.DataFrame(
        schema={"number": pl.Int64, "kind": pl.String, "step": pl.Int64, "ts_s": pl.Float64, "value": pl.Float64}
    )
    known = cluster([attempt(0, 10 * HOUR, "completed"), attempt(1, 5 * HOUR, "node_fail")], nodes=2)
    accounts = Accounts(known, points, Assumed())
    rows = {row["kind"]: row for row in accounts.goodput(accounts.spent()).to_dicts()}
    ends = {kind: tuple(rows[kind][f"gpu_hours{end}"] for end in ("", "_low", "_high")) for kind in rows}
    assert ends["productive"] == pytest.approx((80, 8 * 9.75 * 0.9, 120))
    assert ends["checkpoint"] == pytest.approx((0, 0, 12))
    assert ends["load"] == pytest.approx((0, 0, 8 * 0.5))
    assert ends["stalled"] == (0, 0, 40)
    assert {rows[kind]["basis"] for kind in ("checkpoint", "load", "stalled")} == {"assumed"}


def test_without_a_window_nothing_changes(known: Facts) -> None:
    assert within(known, None, None) is known
    assert within(known, -DAY, 20 * DAY) is known
