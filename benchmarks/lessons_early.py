"""Lessons 3 and 4 on traces with planted savings: how often the truth lies in their 90 % intervals, and false claims.

    python benchmarks/lessons_early.py 1 50        # seeds to develop with
    python benchmarks/lessons_early.py 1001 1100   # new ones: measured once, with the code as it is

Truth is the mean of a very long trace of the same kind, worked out by other code (`tests/planted_lessons.py`).
"""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gpuctl.lessons import early, savings
from gpuctl.lessons.early_costs import Rule
from gpuctl.lessons.lesson_input import Case
from gpuctl.lessons.stopping import RULES, stopped
from tests import planted_lessons as planted

if TYPE_CHECKING:
    from gpuctl.lessons.finding import Estimate

WEEKS = 52
LONG = 20_000
POOL = 2
HOURS = 1 / 3600
FIRST = (
    ("first run", Rule(600.0, POOL)),
    ("retry refused", Rule(retry=0.8)),
    ("both", Rule(600.0, POOL, 0.8)),
)
STOPS = (("hindsight", None), ("patience 5", 5), ("patience 10", 10))


def case_of(workload: Any) -> Case:
    """A trace without a store: the lessons ask it of what they do not replay."""
    return Case(
        cast("Any", None), "planted", workload, planted.nodes(), cast("Any", None), lambda _text: None, 1, "none"
    )


def found_early(seed: int, *, effect: bool) -> dict[str, Estimate]:
    """What lesson 3 says of one trace: GPU-hours saved by each rule, and the mean delay in hours."""
    case = case_of(planted.workload_of(planted.failing(seed, WEEKS, effect=effect)))
    made = dict(early.replayed(case, [rule for _, rule in FIRST]))
    said = {name: early.answer(case, rule, made[rule]).gpu_hours for name, rule in FIRST}
    said["delay"] = savings.mean(made[FIRST[0][1]].delay_s * HOURS, case.blocks()[0])
    return said


def found_stops(seed: int, *, effect: bool) -> dict[str, Estimate]:
    """What lesson 4 says of one trace: GPU-hours saved by each rule."""
    drawn = planted.logging(seed, WEEKS, effect=effect)
    loss, gpu_s, start = planted.curves_of(drawn, seed)
    block = np.floor(drawn.submit / planted.WEEK_S).astype(np.int64)
    rules = {rule.key: rule for rule in RULES}
    return {name: savings.total(stopped(rules[name], loss, gpu_s, start).net * HOURS, block) for name, _ in STOPS}


def truths(weeks: int = LONG) -> dict[str, float]:
    """The expected saving of each rule on a trace of `WEEKS`, and the mean delay, from a trace of so many weeks."""
    jobs = planted.failing(10**6, weeks, effect=True)
    found = {
        name: float(planted.savings_of(jobs, rule.first_s, rule.retry).sum()) * HOURS * WEEKS / weeks
        for name, rule in FIRST
    }
    found["delay"] = float(planted.delay_of(jobs, 600.0, POOL).mean()) * HOURS
    losses = planted.logging(10**6, weeks, effect=True)
    for name, points in STOPS:
        found[name] = float(planted.stopping_of(losses, points).sum()) * HOURS * WEEKS / weeks
    return found


def main(first: int, last: int) -> None:
    """Print, of each estimate, coverage, bias and false claims."""
    truth = truths()
    names = list(truth)
    inside, sums, claims, spent = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0), dict.fromkeys(names, 0), []
    for seed in range(first, last + 1):
        begin = time.process_time()
        said = found_early(seed, effect=True) | found_stops(seed, effect=True)
        spent.append(time.process_time() - begin)
        for name, one in said.items():
            value, low, high = (math.nan if end is None else end for end in (one.value, one.low, one.high))
            inside[name] += low <= truth[name] <= high
            sums[name] += value
        for name, one in (found_early(seed, effect=False) | found_stops(seed, effect=False)).items():
            claims[name] += one.shown == "saves"
    count = last - first + 1
    print(f"{count} seeds, {np.median(spent):.2f} s of CPU a trace")
    for name in names:
        bias = 100 * (sums[name] / count / truth[name] - 1)
        claim = "" if name == "delay" else f", {claims[name]} false claims"
        print(f"{name:14} truth {truth[name]:9.3f}: {inside[name]:3} of {count} inside, bias {bias:+.1f} %{claim}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
