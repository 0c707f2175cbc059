"""Lesson 1: wait for a gang's locality, or start now on more nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import literal, note
from gpuctl.lessons import savings
from gpuctl.lessons.finding import Estimate, Finding, Input
from gpuctl.lessons.lesson_input import Jobs, jobs_of
from gpuctl.lessons.locality_tables import LocalityReplay, best_by_size, curve, speeds
from gpuctl.lessons.rules import BASE, Rule, answer
from gpuctl.lessons.slowdowns import LEVELS, LIKENESS, SIZES, USER, Slowdowns, measure, speed_of
from gpuctl.lessons.utilization import read
from gpuctl.replay.models.speed import SpreadSpeeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.lessons.finding import Answer
    from gpuctl.lessons.lesson_input import Case
    from gpuctl.lessons.ratios import Ratio
    from gpuctl.replay.models.records import Ints

KEY = "locality"
TABLES = ("locality_speed", "locality_curve", "locality_best")
MINUTES = (0, 10, 30, 60, 120, 240, 480)
ATTEMPTS = (1, 2, 6, 12)


def _rules() -> tuple[Rule, ...]:
    times = [
        Rule("time", note("after {n} min a level of locality", n=minutes) if minutes else
             note("start now, on any nodes"), {"relax": "time", "relax_after": str(60 * minutes)}, minutes)
        for minutes in MINUTES
    ]  # fmt: skip
    tries = [
        Rule("tries", note("after {n:,} attempt{n||s} a level", n=count), {"tries": str(count)}, count)
        for count in ATTEMPTS
    ]
    return (
        BASE,
        *tries,
        *times,
        Rule("retry", note("back-off, never on more nodes"), {"relax": "retry"}),
        Rule("never", note("never on more nodes"), {"relax": "never"}),
        Rule("adaptive", note("relax adaptively"), {"relax": "adaptive"}),
    )


RULES = _rules()
NAMED = ("adaptive", "never")


def learn(case: Case) -> Finding:
    """Measure the cost of spreading, and replay rules for giving up locality."""
    use = read(case)
    measured = None if use is None else measure(use)
    warnings = [] if measured is not None else [_NOTHING]
    known = measured is not None and measured.all_sizes[0].estimate.low is not None
    if measured is not None and not known:
        warnings.append(_FEW)
    elif measured is not None and measured.likeness == USER:
        warnings.append(_UNLIKE)
    done = _replay(case, RULES, spread_speeds(measured, "value"))
    block, _ = case.blocks()
    best = _best_fixed(done)
    answers: tuple[Answer, ...] = ()
    if known and measured is not None:
        ends = [_ends(case, measured, end, best) for end in ("low", "high")]
        answers = _answers(done, ends, block, best, _basis(measured, measured.all_sizes[0]))
    tables = (
        *(() if measured is None else (speeds(measured),)),
        curve(case, done), best_by_size(case, done, measured),
    )  # fmt: skip
    return Finding(answers, () if measured is None else _inputs(measured), tables, tuple(warnings))


_NOTHING = note("No telemetry of jobs: what spreading costs is not known; the curves have waits, at equal speed.")
_FEW = note(
    "Too few like gangs ran both on the fewest nodes and on more: what spreading costs has no interval, and no "
    "saving is claimed."
)
_UNLIKE = note(
    "Jobs have no names, and too few ran both on the fewest nodes and on more: unlike jobs of one user may explain "
    "what spreading seems to cost, so that its interval reaches to equal speed and no saving rests on it."
)


def spread_speeds(measured: Slowdowns | None, end: str) -> SpreadSpeeds | str:
    """Return the speeds for replays: measured ones, or one end of their intervals; if there are none, recorded ones."""
    if measured is None:
        return "recorded"
    pairs = tuple((speed_of(measured, size, 1, end)[0], speed_of(measured, size, 2, end)[0]) for size in SIZES)
    text = note("gangs on more nodes than the fewest at the measured ratio of GPU utilization: {each}", each=literal(
        ", ".join(f"{size} GPUs {one:.2f}" for size, (one, _) in zip(SIZES, pairs, strict=True))))  # fmt: skip
    return SpreadSpeeds(text, (4, 8), pairs)


def _replay(case: Case, rules: Sequence[Rule], rates: SpreadSpeeds | str) -> list[LocalityReplay]:
    done = []
    whole = int(case.nodes.gpus.max())
    for rule, outcome in zip(rules, case.replays([rule.params for rule in rules], rates=rates), strict=True):
        gangs = outcome.attempts.filter(outcome.attempts["gpus"] > 1)
        pieces = outcome.pieces.group_by("row").len()
        count = dict(zip(pieces["row"].to_list(), pieces["len"].to_list(), strict=True))
        row = np.flatnonzero((outcome.attempts["gpus"] > 1).to_numpy())
        used = np.array([count.get(number, 1) for number in row.tolist()])
        fewest = -(-gangs["gpus"].to_numpy() // whole)
        done.append(LocalityReplay(rule, jobs_of(outcome), 100 * float((used > fewest).mean()) if row.size else 0.0))
    return done


def _best_fixed(done: Sequence[LocalityReplay]) -> int:
    """The fixed threshold with the least total time from submission to end."""
    jct = np.stack([np.nan_to_num(one.jobs.jct_s).sum() for one in done])
    fixed = [at for at, one in enumerate(done) if one.rule.threshold is not None]
    return min(fixed, key=lambda at: float(jct[at]))


def _ends(case: Case, measured: Slowdowns, end: str, best: int) -> list[LocalityReplay]:
    """Replay the baseline, the best fixed rule and the named ones at one end of the measured interval."""
    rules = [BASE, RULES[best], *(rule for rule in RULES if rule.name in NAMED)]
    return _replay(case, rules, spread_speeds(measured, end))


def _answers(
    done: Sequence[LocalityReplay], ends: Sequence[Sequence[LocalityReplay]], block: Ints, best: int, because: Note
) -> tuple[Answer, ...]:
    by_name = {one.rule.name: one.jobs for one in done if one.rule.threshold is None or one.rule is BASE}
    base = by_name[BASE.name]
    made = []
    for at, name in enumerate(NAMED):
        rule = next(rule for rule in RULES if rule.name == name)
        pairs = [(base, by_name[name]), *((end[0].jobs, end[2 + _order(name)].jobs) for end in ends)]
        made.append((at, answer(KEY, rule.text, pairs, block, because)))
    fixed = [one for one in done if one.rule.threshold is not None]
    costs = np.stack([one.jobs.jct_s for one in fixed])
    chosen = savings.cross_validated_rules(costs, block, baseline=fixed.index(done[0]))
    mixed = _mixed([one.jobs for one in fixed], chosen)
    text = note("best fixed rule: {rule}", rule=done[best].rule.text)
    pairs = [(base, mixed), *((end[0].jobs, end[1].jobs) for end in ends)]
    return (made[0][1], answer(KEY, text, pairs, block, because), *(one for _, one in made[1:]))


def _order(name: str) -> int:
    """Index of a named rule in the result of `_ends`."""
    return [rule.name for rule in RULES if rule.name in NAMED].index(name)


def _mixed(every: Sequence[Jobs], chosen: Ints) -> Jobs:
    at = np.arange(chosen.size)
    wait, run, gpu = (
        np.stack([getattr(one, name) for one in every])[chosen, at] for name in ("wait_s", "run_s", "gpu_s")
    )
    return Jobs(wait, run, gpu, every[0].submit_s, min(one.stretches for one in every))


def _inputs(measured: Slowdowns) -> tuple[Input, ...]:
    rows = []
    for at, level in enumerate(LEVELS):
        ratio = measured.all_sizes[at]
        if ratio.estimate.value is not None:
            what = note("speed of a gang on {level}, for that on the fewest", level=literal(level))
            rows.append(Input(KEY, what, "-", ratio.estimate, "measured", _basis(measured, ratio)))
    for size in SIZES:
        value, origin = speed_of(measured, size, 1)
        if origin == "extrapolated":
            what = note("the same of gangs of {size:,} GPU{size||s}", size=literal(size))
            low, high = (speed_of(measured, size, 1, end)[0] for end in ("low", "high"))
            basis = note("too few gangs of this size are spread: the ratio of all sizes")
            rows.append(Input(KEY, what, "-", Estimate(value, low, high), "extrapolated", basis))
    return tuple(rows)


def _basis(measured: Slowdowns, ratio: Ratio) -> Note:
    return note(
        "GPU utilization of {units:,} attempt{units||s} and of like ones; {clusters:,} {kind} with such attempts; "
        "taken for "
        "speed; {alike}",
        alike=LIKENESS[measured.likeness], units=ratio.units, clusters=ratio.clusters, kind=literal(measured.clusters),
    )  # fmt: skip
