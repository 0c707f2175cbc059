"""Chain policies: outcomes as a slow search finds them, figures by hand, and what makes no sense is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from gpuctl.chain import evaluate, look_kernel
from gpuctl.chain.episode import Pair, Situation
from gpuctl.chain.evaluate import Asked, hours, policy_names, run
from gpuctl.chain.log import Log, log_of
from gpuctl.chain.policies import LOOK_MIN, _first, look, quantile_line, start_of
from gpuctl.core.errors import InputError, UsageError

DAY_S = 86_400


def busy(days: int, seed: int = 5) -> Log:
    """Jobs on 6 nodes that wait for hours, from Monday 1970-01-05 on."""
    draw = np.random.Generator(np.random.PCG64(seed))
    submit = np.cumsum(draw.exponential(2600, 33 * days)).astype(np.int64) + 4 * DAY_S
    limit = draw.choice([60, 480, 1440], submit.size) * 60
    run_s = (limit * draw.beta(0.8, 1.5, submit.size)).astype(np.int64)
    nodes = draw.choice([1, 1, 1, 2, 3], submit.size)
    ids = [str(k) for k in range(submit.size)]
    return log_of("busy", ids, submit_s=submit, run_s=run_s, nodes=nodes, limit_s=limit, first_start_s=int(submit[0]))


@pytest.fixture(scope="module")
def log() -> Log:
    return busy(24)


def test_looks_are_as_single_submissions_and_the_plan_bounds_the_wait(log: Log) -> None:
    begin = 8 * DAY_S
    situation = Situation(log, begin, 6, Pair(1, 600))
    start = start_of(situation, begin)
    assert start.clock == 4 * 1440
    at, rows, waits = look(start, 60, waits=True)
    assert (at[0], at[-1]) == (start.p_end - 599, start.p_end - 59)
    outcomes = [situation.outcome(situation.begun(), int(t)) for t in at]
    assert waits.tolist() == [o.s_start_s // 60 - t for o, t in zip(outcomes, at.tolist(), strict=True)]
    assert np.allclose(
        60 * rows[:, look_kernel.PLANNED], [o.planned_s // 60 - t for o, t in zip(outcomes, at, strict=True)]
    )
    assert waits.max() > 60
    assert (waits <= 60 * rows[:, look_kernel.PLANNED] + 10).all()
    assert rows[:, look_kernel.HOUR].tolist() == [(start.clock + t) // 60 % 24 for t in at.tolist()]


@pytest.mark.parametrize(
    ("leads", "minute"),
    [
        ([1.0] * 10, 940),
        ([0.9] * 4 + [0.0] * 6, 1000),
        ([0.0] * 10, 1000),
        ([20.0] * 10, 901),
        ([0.0] * 5 + [1.5] * 5, 951),
    ],
)
def test_the_successor_goes_when_what_is_left_is_no_longer_than_the_lead(leads: list[float], minute: int) -> None:
    at = np.arange(901, 1001, LOOK_MIN)
    start: Any = SimpleNamespace(p_end=1000, looks=lambda: (at, np.array(leads)[:, None]))
    assert _first(start, lambda rows: rows[:, 0]) == minute


def test_a_quantile_line_has_its_share_of_the_points_below_it() -> None:
    draw = np.random.Generator(np.random.PCG64(1))
    x = draw.random(300) * 9
    y = 2 * x + 1 + draw.random(300) * (1 + x)
    slope, offset = quantile_line(x, y, 0.9)
    assert (y <= slope * x + offset + 1e-9).mean() == pytest.approx(0.9, abs=0.01)
    assert slope == pytest.approx(2.9, abs=0.15)


def test_figures_are_those_of_the_starts(log: Log) -> None:
    asked = Asked(6, Pair(1, 1440), ("reactive", "plan", "newsvendor", "forest", "boost"), 16 * DAY_S, 5 * DAY_S, 3.0)
    table, each = run(log, asked)
    again, _ = run(log, asked)
    assert table.drop("train_s").equals(again.drop("train_s"))
    rows = {(row["policy"], row["level"]): row for row in table.to_dicts()}
    hours_of = {name: each.filter(policy=name)["interruption_s"].to_numpy() / 3600 for name in asked.policies}
    r, base = hours_of["plan"], hours_of["reactive"]
    assert base.max() > 2
    told = rows["plan", "all"]
    assert told["starts"] == r.size == each["start"].n_unique()
    assert told["interruption_h"] == pytest.approx(np.maximum(r, 0).mean())
    assert told["overlap_h"] == pytest.approx(np.maximum(-r, 0).mean())
    assert told["cost_h"] == pytest.approx(3 * told["interruption_h"] + told["overlap_h"])
    assert told["reduction_pct"] == pytest.approx(100 - 100 * told["interruption_h"] / np.maximum(base, 0).mean())
    assert told["zero_pct"] == pytest.approx(100 * (r <= 0).mean())
    assert told["cost_low_h"] <= told["cost_h"] <= told["cost_high_h"]
    assert sum(rows["plan", level]["starts"] for level in ("light", "medium", "heavy")) == r.size
    assert rows["plan", "light"]["starts"] == (base <= 2).sum()
    # what learns is better than what does not, at its own cost
    assert max(rows[name, "all"]["cost_h"] for name in asked.policies[1:]) < 0.8 * rows["reactive", "all"]["cost_h"]
    assert rows["reactive", "all"]["train_s"] is None
    assert each.filter(policy="reactive").select((pl.col("s_submit_s") == pl.col("p_end_s")).all()).item()


def test_a_policy_learns_from_nothing_after_the_split(log: Log) -> None:
    asked = Asked(6, Pair(1, 1440), ("plan",), 16 * DAY_S, 5 * DAY_S, 1.0)
    past, later = evaluate.starts(asked, log)
    assert max(past) + 5 * DAY_S <= asked.split_s <= min(later)
    assert max(later) + 5 * DAY_S <= log.submit_s[-1]


def test_what_makes_no_sense_is_refused(log: Log) -> None:
    asked = Asked(6, Pair(1, 1440), ("plan",), 40 * DAY_S, 5 * DAY_S, 1.0)
    with pytest.raises(InputError, match="five days of submissions after it"):
        run(log, asked)
    with pytest.raises(InputError, match="to learn from"):
        run(log, Asked(6, Pair(1, 1440), ("plan",), 10 * DAY_S, 5 * DAY_S, 1.0))
    with pytest.raises(InputError, match=r"ask for more than 2 nodes: \d+ \(3 nodes\)"):
        run(log, Asked(2, Pair(1, 1440), ("plan",), 16 * DAY_S, 5 * DAY_S, 1.0))
    with pytest.raises(UsageError, match="no chain policy 'qbets'"):
        policy_names("plan,qbets")
    assert [hours(text) for text in ("48h", "90m", "2d")] == [2880, 90, 2880]
    for text in ("", "48", "0h", "-1h", "1e9h", "31d", "h"):
        with pytest.raises(UsageError):
            hours(text)
