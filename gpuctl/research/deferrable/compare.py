"""Policies of deferrable jobs on generated cases outside the training set, with paired intervals over seeds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis, ends
from gpuctl.research.deferrable.generator import CaseSettings, generate
from gpuctl.research.deferrable.policies import run_one
from gpuctl.research.deferrable.slots import score
from gpuctl.research.learn.repeated_runs import student_interval
from gpuctl.research.row_tables import Row, column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.research.deferrable.policies import Policy

    Floats = NDArray[np.float64]

TABLES = ("deferrable_scores", "deferrable_gains", "deferrable_seeds")
RULES = ("asap", "latest", "quantile:10", "quantile:50", "quantile:70", "quantile:90", "clairvoyant")
"""The policies with which a learned rule is compared."""

_LOW, _HIGH = (each.description for each in ends("", "-", ", Student's t over cases", pct=95))


class ScoreRow(
    Row, name="deferrable_scores", section="deferrable_scores", title="Policies of deferrable jobs", first_columns=10,
    question="Does learning pay, and how certain is the gain?",
):  # fmt: skip
    """A policy at a load."""

    load: float = column("-", "Deferrable work over the capacity that on-demand jobs leave.")
    policy: str = column("-", "The policy.")
    cases: int = column("cases", "Generated cases, one per seed; the same for all policies.")
    score_mean: float = column("-", "Mean score, as in gpuctl deferrable simulate.")
    score_low: float = column("-", _LOW)
    score_high: float = column("-", _HIGH)
    best_rule: str | None = column(
        "-", "The rule with the highest mean score at this load that is neither learned nor an oracle."
    )
    diff_mean: float | None = column("-", "Mean of score - score of best_rule, case by case.")
    diff_low: float | None = column("-", _LOW)
    diff_high: float | None = column("-", _HIGH)
    train_minutes: float | None = column("min", "Training budget, nominal minutes; empty: the policy learns nothing.")
    train_cases: int | None = column("cases", "Cases simulated in training; a repeated case counts each time.")
    oracle: int = column("-", "1: the policy knows later load, unlike any real scheduler.")


class GainRow(
    Row, name="deferrable_gains", section="deferrable_scores", title="What learning gains",
    question="How much does a learned rule gain, and is the gain certain?",
):  # fmt: skip
    """A learned rule at a load."""

    rule: str = column("-", "The load, and the learned rule.")
    best_rule: str = column("-", "The best simple rule at this load, as in deferrable_scores.")
    gain: float | None = column("-", "Mean of score - score of best_rule, case by case.")
    gain_low: float | None = column("-", _LOW)
    gain_high: float | None = column("-", _HIGH)


class SeedRow(
    Row, name="deferrable_seeds", section="deferrable_scores", title="Scores case by case", detail=True,
    question="How does each policy score on each case?",
):  # fmt: skip
    """A policy on one case."""

    load: float = column("-", "As in deferrable_scores.")
    seed: int = column("-", "Seed of the case.")
    policy: str = column("-", "The policy.")
    score: float = column("-", "Its score.")


def compare(
    policies: Sequence[Policy], loads: Sequence[float], seeds: Sequence[int],
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Floats:  # fmt: skip
    """Scores of policies on the same cases [loads, seeds, policies].

    Args:
        policies: policies to run.
        loads: loads of the cases.
        seeds: seeds; one case per seed.
        progress: called with the current step, the amount done and the total.
    """
    found = np.empty((len(loads), len(seeds), len(policies)))
    for i, load in enumerate(loads):
        for k, seed in enumerate(seeds):
            progress(f"load {load:g}", i * len(seeds) + k, len(loads) * len(seeds))
            case = generate(CaseSettings(seed, load))
            found[i, k] = [score(case, run_one(case, policy, "newest", 60.0).outcome) for policy in policies]
    return found


def result(
    found: Floats, policies: Sequence[Policy], loads: Sequence[float], seeds: Sequence[int], command: str
) -> Analysis:
    """Assemble the result of `compare`, with a sentence for each learned policy and load."""
    rows: list[ScoreRow] = []
    gains: list[GainRow] = []
    verdicts: list[Note] = []
    simple = [k for k, policy in enumerate(policies) if policy.rule is not None and not policy.oracle]
    for i, load in enumerate(loads):
        best = max(simple, key=lambda k, i=i: float(found[i, :, k].mean()), default=None)  # type: ignore[misc]
        rule = None if best is None else policies[best].label
        for k, policy in enumerate(policies):
            budget = {} if policy.model is None else policy.model.card.get("budget", {})
            diff: tuple[float | None, ...] = (None,) * 3
            if best not in {None, k}:
                diff = student_interval(found[i, :, k] - found[i, :, best])
            mean, low, high = student_interval(found[i, :, k])
            row = ScoreRow(
                load, policy.label, len(seeds), mean, low, high, rule, diff[0], diff[1], diff[2],
                train_minutes=budget.get("minutes"), train_cases=budget.get("cases"), oracle=int(policy.oracle),
            )  # fmt: skip
            rows.append(row)
            if policy.model is not None and rule is not None:
                verdicts.append(_verdict(row, rule))
                gains.append(GainRow(f"{load:g}, {policy.label}", rule, *diff))
    by_seed = [
        SeedRow(load, seed, policy.label, float(found[i, j, k]))
        for i, load in enumerate(loads) for j, seed in enumerate(seeds) for k, policy in enumerate(policies)
    ]  # fmt: skip
    population = note(
        "{n:,} generated case{n||s} per load: seeds {first} to {last}; 14 days, 256 GPUs, on-demand jobs on 60 %.",
        n=len(seeds), first=min(seeds), last=max(seeds),
    )  # fmt: skip
    tables = (
        ScoreRow.table(rows, population),
        GainRow.table(gains, population, tuple(verdicts)),
        SeedRow.table(by_seed, population),
    )
    return Analysis(
        cluster=note("made-up cases"),
        tables=tables,
        sections=(("deferrable_scores", "Policies of deferrable jobs"),),
        sources=(),
        settings={"intervals": literal("95 %, Student's t; differences are paired, case by case")},
        command=command,
    )


def _verdict(row: ScoreRow, rule: str) -> Note:
    """Whether learning pays at a load."""
    mean, low, high = (math.nan if each is None else each for each in (row.diff_mean, row.diff_low, row.diff_high))
    how: dict[str, Note | NamedValue] = {
        "load": literal(number(row.load)), "policy": NamedValue("policy", row.policy),
        "rule": NamedValue("policy", rule),
        "score": literal(number(row.score_mean)), "gain": literal(f"{mean:+.3f}"),
    }  # fmt: skip
    if math.isnan(low):
        return note("Load {load}: {policy} scores {score}, {gain} to {rule}; one case gives no interval.", **how)
    how |= {"low": literal(f"{low:+.3f}"), "high": literal(f"{high:+.3f}")}
    if low > 0:
        return note(
            "Load {load}: learning pays. {policy} scores {score}, {gain} ({low} to {high}) to {rule}, the best simple "
            "rule.",
            **how,
        )
    return note(
        "Load {load}: it is not certain that learning pays. {policy} scores {score}, {gain} ({low} to {high}) to "
        "{rule}, the best simple rule.",
        **how,
    )
