"""Fairness by policy, and what elastic policies do over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gpuctl.replay.results.tables import result
from gpuctl.reports.charts.registry import draw_all
from tests.result_tables import table_of
from tests.unit.replay.outcomes import make_cluster, make_outcome, make_workload
from tests.unit.replay.results.test_gantt import lent

FOUR = make_cluster(1, 4)
WORKLOAD = make_workload([0, 0], [100, 50], [2, 2])
PLAIN = make_outcome(WORKLOAD, [[(0, 100, "finished")], [(100, 150, "finished")]])


def test_rho_and_jain_on_paper() -> None:
    found = result([PLAIN, replace(PLAIN, policy="other")], WORKLOAD, FOUR)
    rows = table_of(found, "replay_fairness").frame.filter(pl.col("definition") == "rho")
    # alone they take 100 and 50 s, here 100 and 150 s
    assert rows.row(0, named=True) == {
        "policy": "fifo", "definition": "rho", "jobs": 2, "rho_mean": 2.0, "rho_p50": 2.0,
        "rho_p95": pytest.approx(2.9), "rho_max": 3.0, "jain": pytest.approx((1 + 1 / 3) ** 2 / (2 * (1 + 1 / 9))),
    }  # fmt: skip
    points = table_of(found, "replay_rho_cdf").frame.filter(pl.col("policy") == "other")
    assert points.rows() == [("other", 1.0, 50.0), ("other", 3.0, 100.0)]
    assert {"chart-replay-rho", "chart-replay-jain"} <= {d.name for d in draw_all(found) if d.svg}


def test_of_one_plain_policy_nothing_is_made() -> None:
    names = {t.name for t in result([PLAIN], WORKLOAD, FOUR).tables}
    assert not names & {"replay_fairness", "replay_rho_cdf", "replay_changes", "replay_gpus"}
    elastic = {t.name for t in result([replace(PLAIN, by_traits=True)], WORKLOAD, FOUR).tables}
    assert elastic - names >= {"replay_fairness", "replay_rho_cdf"}


def test_changes_are_counted_and_gpus_followed() -> None:
    stays = [[(0, 50, "resized"), (50, 100, "finished")], [(0, 30, "migrated"), (30, 150, "finished")]]
    outcome = make_outcome(WORKLOAD, stays)  # type: ignore[arg-type]
    grown = pl.when((pl.col("job") == 0) & (pl.col("attempt") == 1)).then(4).otherwise("gpus").cast(pl.Int32)
    outcome = replace(outcome, attempts=outcome.attempts.with_columns(gpus=grown))
    found = result([lent(outcome, 1, "gpu001", 20.0, 60.0)], WORKLOAD, make_cluster(2, 4))
    counts = table_of(found, "replay_changes").frame
    told = counts.select("resized", "migrated", "reclaimed", "packed", "loans", "returns").sum().row(0)
    assert told == (1, 1, 0, 0, 1, 1)
    at = counts.filter(pl.col("resized") == 1)
    assert (at["t_s"][0] <= 50 < at["t_end_s"][0], at.height) == (True, 1)
    frame = table_of(found, "replay_gpus").frame
    assert set(frame["job"]) == {"j0"}
    area = frame.select((pl.col("gpus") * (pl.col("t_end_s") - pl.col("t_s"))).sum()).item()
    assert np.isclose(area, 50 * 2 + 50 * 4)
    drawn = {d.name: d for d in draw_all(found)}
    # only what there was has a panel
    assert [p["raw"] for p in drawn["chart-replay-changes"].panels] == ["resized", "migrated", "loans", "returns"]
    assert drawn["chart-replay-gpus"].svg
