"""Chain policies: outcomes as a slow search finds them, figures by hand, and what makes no sense is refused."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.research.chain import bound, evaluate, look_kernel
from gpuctl.research.chain.baselines import LOOK_MIN
from gpuctl.research.chain.episode import Pair, Situation
from gpuctl.research.chain.evaluate import policy_names, run
from gpuctl.research.chain.log import Log, log_of
from gpuctl.research.chain.past import History
from gpuctl.research.chain.policies import Rule, _first, due, hourly, lessons, look, quantile_line, start_of, trained
from gpuctl.research.chain.trial import Evaluation, Trial, hand_over

DAY_S = 86_400


def busy(days: int, every_s: int = 2600) -> Log:
    """Jobs on 6 nodes that wait for hours, from Monday 1970-01-05 on."""
    draw = np.random.Generator(np.random.PCG64(5))
    submit = np.cumsum(draw.exponential(every_s, days * DAY_S // every_s)).astype(np.int64) + 4 * DAY_S
    limit = draw.choice([60, 480, 1440], submit.size) * 60
    run_s = (limit * draw.beta(0.8, 1.5, submit.size)).astype(np.int64)
    nodes = draw.choice([1, 1, 1, 2, 3], submit.size)
    ids = [str(k) for k in range(submit.size)]
    return log_of("busy", ids, submit_s=submit, run_s=run_s, nodes=nodes, limit_s=limit, first_start_s=int(submit[0]))


@pytest.fixture(scope="module")
def log() -> Log:
    return busy(24)


@pytest.fixture(scope="module")
def calmer() -> Log:
    """Less is submitted than the cluster can run."""
    return busy(24, 4000)


def test_looks_are_as_single_submissions_and_the_plan_bounds_the_wait(log: Log) -> None:
    begin = 8 * DAY_S
    situation = Situation(log, begin, 6, Pair(1, 600))
    start = start_of(situation, begin, History(log))
    assert start.clock == 4 * 1440
    at = hourly(start)
    rows, waits = look(start, at, waits=True)
    assert (at[0], at[-1]) == (start.p_end - 599, start.p_end - 59)
    outcomes = [situation.outcome(situation.initial_state(), int(t)) for t in at]
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
    start: Any = SimpleNamespace(p_end=1000, grid=False, looks=lambda: (at, np.array(leads)[:, None]))
    assert _first(start, lambda rows: rows[:, 0]) == minute
    # on a grid S waits for the look after that
    late = due(SimpleNamespace(p_end=1000, grid=True), at, np.array(leads))  # type: ignore[arg-type]
    assert late == min((int(t) for t in at if t >= minute), default=None)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_forecasts_are_the_future_where_run_times_are_known_and_nobody_comes(log: Log, share: float) -> None:
    """All jobs run the same share of their limits, and none is submitted after the look."""
    last = int(np.searchsorted(log.submit_s, 11 * DAY_S))
    lasts_s = (60 * share * log.limit_min[:last]).astype(int)
    cut = log_of(
        "cut", list(log.ids[:last]), submit_s=log.submit_s[:last], run_s=lasts_s, nodes=log.nodes[:last],
        limit_s=60 * log.limit_min[:last], user=np.arange(last) % 5,
    )  # fmt: skip
    situation = Situation(cut, 8 * DAY_S, 6, Pair(1, 1440))
    drawn = History(cut).at(8 * DAY_S, situation.trace)
    assert drawn.count[:-2].min() > 3
    at = np.array([3 * 1440 + 5, 3 * 1440 + 305])
    e = situation.initial_state()
    real = [situation.outcome(e, int(t)).s_start_s // 60 - int(t) for t in at]
    assert min(real) > 60
    assert situation.forecasts(at, drawn, 3).tolist() == [[wait] * 3 for wait in real]


def test_run_times_are_drawn_from_what_had_ended(log: Log) -> None:
    users = np.array([0, 0, 0, 0, 0, 1, -1, 0])
    some = log_of(
        "few", [str(k) for k in range(8)], submit_s=np.arange(8), run_s=np.arange(60, 540, 60), nodes=np.ones(8, int),
        limit_s=np.array([600, 600, 600, 1200, 600, 600, 600, 600]), user=users, end_s=np.arange(10, 90, 10),
    )  # fmt: skip
    drawn = History(some).at(55, np.array([7, 3, 5, 6, -1]))
    assert [row[:n].round(2).tolist() for row, n in zip(drawn.past, drawn.count, strict=True)] == [
        [0.1, 0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.2, 0.5, 0.2], [], [], [],
    ]  # fmt: skip
    assert drawn.kind.tolist() == [0, 0, 0, 0, -1]
    assert (drawn.pool[0].min(), drawn.pool[0].max()) == (pytest.approx(0.1, abs=0.01), pytest.approx(0.5, abs=0.01))
    assert (drawn.pool[1:] == 1).all()


def test_a_later_link_of_a_chain_is_where_the_link_before_left_it(log: Log) -> None:
    """S of one pair is P of the next: it starts at the same minute, under all that was submitted."""
    asked = Evaluation(6, Pair(2, 600, 420), ("reactive",), 8 * DAY_S, 4 * DAY_S, 1.0, jobs=5)
    trial = Trial(log, asked)
    begin = 9 * DAY_S
    for name in ("avg", "plan", "dependency"):
        learnt = lessons([trial.start(5 * DAY_S)], False)
        rule = trained(name, learnt, 1.0)
        hand_overs = trial.chain(begin, trial.start(begin), name, rule)
        assert len(hand_overs) == 4
        for one, next_ in pairwise(hand_overs):
            assert (next_.p_start_s, next_.p_end_s) == (one.s_start_s, one.s_start_s + 420 * 60)
        assert all(each.s_submit_s <= each.p_end_s for each in hand_overs)


def test_age_that_counts_while_a_job_depends_is_worth_a_chain_without_gaps(calmer: Log) -> None:
    """The head of the queue takes P's nodes as they come free, once it is older than all that wait."""
    asked = Evaluation(6, Pair(1, 1440), ("reactive", "dependency", "asap", "best"), 20 * DAY_S, 5 * DAY_S, 3.0)
    rows = {row["policy"]: row for row in run(calmer, asked)[0].filter(level="all").to_dicts()}
    assert rows["reactive"]["interruption_h"] > 1
    # but for jobs that have waited longer than P ran
    assert rows["dependency"]["interruption_h"] < 0.15 * rows["reactive"]["interruption_h"]
    assert rows["dependency"]["overlap_h"] == 0
    assert rows["asap"]["interruption_h"] == 0
    assert rows["asap"]["overlap_h"] > 10
    assert rows["best"]["cost_h"] <= min(rows[name]["cost_h"] for name in ("reactive", "asap"))


def test_on_the_grid_the_end_is_noticed_late_and_warm_up_keeps_the_starts(calmer: Log) -> None:
    asked = Evaluation(6, Pair(1, 1435), ("avg",), 20 * DAY_S, 8 * DAY_S, 1.0, grid=True)
    trial = Trial(calmer, asked)
    late, asleep = [], Rule(lambda start: start.p_end + 1000)
    for day in (9, 11, 13):
        outcome, _ = hand_over(trial.start(day * DAY_S), "plan", asleep)
        assert outcome.s_submit_s % 600 == 0
        late.append(outcome.s_submit_s - outcome.p_end_s)
        assert hand_over(trial.start(day * DAY_S), "avg", asleep)[0].s_submit_s == outcome.p_end_s
    assert 0 < max(late) < 600
    longer = replace(asked, warm_up_s=6 * DAY_S)
    come = [[begin + each.warm_up_s for begin in evaluate.starts(each, calmer)[1]] for each in (asked, longer)]
    assert come[0] == come[1]


def test_a_quantile_line_has_its_share_of_the_points_below_it() -> None:
    draw = np.random.Generator(np.random.PCG64(1))
    x = draw.random(300) * 9
    y = 2 * x + 1 + draw.random(300) * (1 + x)
    slope, offset = quantile_line(x, y, 0.9)
    assert (y <= slope * x + offset + 1e-9).mean() == pytest.approx(0.9, abs=0.01)
    assert slope == pytest.approx(2.9, abs=0.15)


def test_figures_are_those_of_the_starts(calmer: Log) -> None:
    asked = Evaluation(
        6, Pair(1, 1440), ("reactive", "plan", "newsvendor", "forest", "boost"), 18 * DAY_S, 6 * DAY_S, 3.0
    )
    table, each, forecasts, frontier = run(calmer, asked)
    # those that draw while they learn
    drawn = ("reactive", "forest", "boost")
    again, _, _, _ = run(calmer, replace(asked, policies=drawn))
    assert table.filter(pl.col("policy").is_in(drawn)).drop("train_s").equals(again.drop("train_s"))
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
    by_policy = {row.policy: asdict(row) for row in forecasts if row.level == "all"}
    assert {row["looks"] for row in by_policy.values()} == {24 * r.size}
    # better than the same quantile of all waits to come
    assert max(row["pinball_h"] for row in by_policy.values()) < 0.2 * by_policy["plan"]["mean_wait_h"]
    # what learns is better than what does not, at its own cost
    assert max(rows[name, "all"]["cost_h"] for name in asked.policies[1:]) < 0.8 * rows["reactive", "all"]["cost_h"]
    assert rows["reactive", "all"]["train_s"] is None
    points = {(row.policy, row.outage_cost): asdict(row) for row in frontier if row.level == "all"}
    assert points["plan", 3.0]["overlap_h"] == told["overlap_h"]
    assert points["reactive", None]["interruption_h"] == rows["reactive", "all"]["interruption_h"]
    ends = [[points["plan", cost][name] for cost in (0.3, 3.0, 30.0)] for name in ("overlap_h", "interruption_h")]
    assert ends == [sorted(ends[0]), sorted(ends[1], reverse=True)]
    assert each.filter(policy="reactive").select((pl.col("s_submit_s") == pl.col("p_end_s")).all()).item()


def test_a_bound_on_the_overlap_is_kept_by_a_lower_outage_cost(calmer: Log) -> None:
    """Overlaps held out are those of single submissions; the cost is the largest whose interval keeps the bound."""
    asked = Evaluation(6, Pair(1, 1440), ("plan",), 20 * DAY_S, 5 * DAY_S, 9.0, max_overlap_h=0.5)
    trial = Trial(calmer, asked)
    begins = evaluate.starts(asked, calmer)[0]
    starts = list(map(trial.start, begins))
    learnt = lessons(starts, False)
    first = len(begins) - len(begins) // 5
    late = bound.part(learnt, first, len(begins))
    lead_h = 0.4 * late.rows[:, look_kernel.PLANNED]
    real = []
    for k, start in enumerate(starts[first:]):
        at, lead = hourly(start), lead_h[late.start == k]
        minute = next((max(int(t), start.p_end - int(60 * h)) for t, h in zip(at, lead, strict=True)
                       if start.p_end - int(60 * h) < t + 60), start.p_end)  # fmt: skip
        outcome = start.situation.outcome(start.situation.initial_state(), min(minute, start.p_end))
        real.append(max(-outcome.interruption_s, 0) / 3600)
    assert max(real) > 1
    assert np.abs(bound.overlaps(late, lead_h) - real).max() < 0.2

    def upper(cost: float, bound_h: float) -> float:
        return bound.cost_within("plan", learnt, cost, bound_h, apart=30, a_day=6)

    assert upper(9.0, 9.0) == 9.0
    found = upper(9.0, 0.5)
    assert 0.01 < found < upper(9.0, 1.0) <= 9.0
    assert upper(found, 0.5) == found
    assert upper(1.3 * found, 0.5) < 1.3 * found
    later = replace(learnt, waits_h=np.where(learnt.start >= first, learnt.waits_h, 7 * learnt.waits_h))
    assert bound.cost_within("plan", later, 9.0, 0.5, apart=30, a_day=6) != found
    row = run(calmer, asked)[0].filter(level="all").to_dicts()[0]
    assert row["aimed_cost"] == pytest.approx(found)
    assert row["cost_h"] == pytest.approx(9 * row["interruption_h"] + row["overlap_h"])
    with pytest.raises(InputError, match="whatever the outage cost"):
        upper(9.0, -0.1)
    with pytest.raises(InputError, match="61 starts before the split are too few"):
        bound.cost_within("newsvendor", learnt, 9.0, 0.5, apart=48, a_day=6)


def test_a_policy_learns_from_nothing_after_the_split(log: Log) -> None:
    asked = Evaluation(6, Pair(1, 1440), ("plan",), 16 * DAY_S, 5 * DAY_S, 1.0)
    past, later = evaluate.starts(asked, log)
    assert max(past) + 5 * DAY_S <= asked.split_s <= min(later)
    assert max(later) + 5 * DAY_S <= log.submit_s[-1]


def test_what_makes_no_sense_is_refused(log: Log) -> None:
    asked = Evaluation(6, Pair(1, 1440), ("plan",), 40 * DAY_S, 5 * DAY_S, 1.0)
    with pytest.raises(InputError, match="5 days of submissions after it"):
        run(log, asked)
    with pytest.raises(InputError, match="to learn from"):
        run(log, Evaluation(6, Pair(1, 1440), ("plan",), 10 * DAY_S, 5 * DAY_S, 1.0))
    with pytest.raises(InputError, match=r"request more than 2 nodes: \d+ \(3 nodes\)"):
        run(log, Evaluation(2, Pair(1, 1440), ("plan",), 16 * DAY_S, 5 * DAY_S, 1.0))
    with pytest.raises(UsageError, match="keeps a bound"):
        evaluate.check_bound(2, ("reactive", "best"))
    with pytest.raises(UsageError, match="no chain policy 'qbets'"):
        policy_names("plan,qbets")
