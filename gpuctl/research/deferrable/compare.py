"""Policies of deferrable jobs on made-up cases that nothing was learnt from, with paired intervals over seeds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.notes import Named, note, ours
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis, Column, ResultTable, ends
from gpuctl.research.deferrable.generator import Made, generate
from gpuctl.research.deferrable.policies import run_one
from gpuctl.research.deferrable.slots import score
from gpuctl.research.learn.repeated_runs import student_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.research.deferrable.policies import Policy

    Floats = NDArray[np.float64]

TABLES = ("deferrable_scores", "deferrable_gains", "deferrable_seeds")
RULES = ("asap", "latest", "quantile:10", "quantile:50", "quantile:70", "quantile:90", "clairvoyant")
"""The policies that a learned one stands beside."""

SCORES = (
    Column("load", "-", "Deferrable work over the capacity that on-demand jobs leave."),
    Column("policy", "-", "The policy."),
    Column("cases", "cases", "Made-up cases, one a seed; all policies have the same."),
    Column("score_mean", "-", "Mean score, as in gpuctl deferrable simulate."),
    *ends("score_{}", "-", ", Student's t over cases", pct=95),
    Column(
        "best_rule", "-", "The rule with the highest mean score at this load that is neither learned nor an oracle."
    ),
    Column("diff_mean", "-", "Mean of score - score of best_rule, case by case."),
    *ends("diff_{}", "-", ", Student's t over cases", pct=95),
    Column("train_minutes", "min", "Budget of its training, nominal minutes; empty: it learns nothing."),
    Column("train_cases", "cases", "Cases that were tried in its training, each one counted each time."),
    Column("oracle", "-", "1: it knows later load, as no scheduler does."),
)
GAINS = (
    Column("rule", "-", "The load, and the learned rule."),
    Column("best_rule", "-", "The best simple rule at this load, as in deferrable_scores."),
    Column("gain", "-", "Mean of score - score of best_rule, case by case."),
    *ends("gain_{}", "-", ", Student's t over cases", pct=95),
)
_GAINS_OF = (pl.String, pl.String, pl.Float64, pl.Float64, pl.Float64)
BY_SEED = (
    Column("load", "-", "As in deferrable_scores."),
    Column("seed", "-", "Of the case."),
    Column("policy", "-", "The policy."),
    Column("score", "-", "Its score."),
)


def compare(
    policies: Sequence[Policy], loads: Sequence[float], seeds: Sequence[int],
    tell: Callable[[str, int, int], None] = lambda *_: None,
) -> Floats:  # fmt: skip
    """Scores of policies on the same cases [loads, seeds, policies].

    Args:
        policies: which.
        loads: of the cases.
        seeds: one case each.
        tell: called with what is under way, how much is done, of how much.
    """
    found = np.empty((len(loads), len(seeds), len(policies)))
    for i, load in enumerate(loads):
        for k, seed in enumerate(seeds):
            tell(f"load {load:g}", i * len(seeds) + k, len(loads) * len(seeds))
            case = generate(Made(seed, load))
            found[i, k] = [score(case, run_one(case, policy, "newest", 60.0).outcome) for policy in policies]
    return found


def result(
    found: Floats, policies: Sequence[Policy], loads: Sequence[float], seeds: Sequence[int], command: str
) -> Analysis:
    """Put what `compare` found together as a result, with a sentence for each learned policy and load."""
    rows: list[list[Any]] = []
    said: list[Note] = []
    gains: list[list[Any]] = []
    simple = [k for k, policy in enumerate(policies) if policy.rule is not None and not policy.oracle]
    for i, load in enumerate(loads):
        best = max(simple, key=lambda k, i=i: float(found[i, :, k].mean()), default=None)  # type: ignore[misc]
        for k, policy in enumerate(policies):
            budget = {} if policy.model is None else policy.model.card.get("budget", {})
            diff = (None,) * 3 if best in {None, k} else student_interval(found[i, :, k] - found[i, :, best])
            rows.append([
                load, policy.label, len(seeds), *map(_known, student_interval(found[i, :, k])),
                None if best is None else policies[best].label, *map(_known, diff), budget.get("minutes"),
                budget.get("cases"), int(policy.oracle),
            ])  # fmt: skip
            if policy.model is not None and best is not None:
                said.append(_said(load, policies[best].label, rows[-1]))
                gains.append([f"{load:g}, {policy.label}", policies[best].label, *rows[-1][7:10]])
    schema: dict[str, Any] = {column.name: pl.Float64 for column in SCORES}
    schema |= {
        "policy": pl.String,
        "best_rule": pl.String,
        "cases": pl.Int64,
        "train_cases": pl.Int64,
        "oracle": pl.Int64,
    }
    by_seed = [
        (load, seed, policy.label, float(found[i, j, k]))
        for i, load in enumerate(loads) for j, seed in enumerate(seeds) for k, policy in enumerate(policies)
    ]  # fmt: skip
    population = note(
        "{n:,} made-up cases a load, seeds {first} to {last}: 14 days, 256 GPUs, on-demand jobs on 60 % of them.",
        n=len(seeds), first=min(seeds), last=max(seeds),
    )  # fmt: skip
    tables = (
        ResultTable(
            name="deferrable_scores", section="deferrable_scores", title="Policies of deferrable jobs", columns=SCORES,
            frame=pl.DataFrame(rows, schema=schema, orient="row"), notes=(), population=population,
            question="Does learning pay, and how sure is that?", first_columns=10,
        ),
        ResultTable(
            name="deferrable_gains", section="deferrable_scores", title="What learning gains", columns=GAINS,
            frame=pl.DataFrame(gains, schema=dict(zip((c.name for c in GAINS), _GAINS_OF, strict=True)), orient="row"),
            notes=tuple(said), population=population, question="How much does a learned rule gain, and is that sure?",
        ),
        ResultTable(
            name="deferrable_seeds", section="deferrable_scores", title="Scores case by case", columns=BY_SEED,
            frame=pl.DataFrame(by_seed, schema=[column.name for column in BY_SEED], orient="row"), notes=(),
            population=population, question="How does each policy do on each case?", detail=True,
        ),
    )  # fmt: skip
    return Analysis(
        cluster=note("made-up cases"),
        tables=tables,
        sections=(("deferrable_scores", "Policies of deferrable jobs"),),
        sources=(),
        settings={"intervals": ours("95 %, Student's t; differences are paired, case by case")},
        command=command,
    )


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _said(load: float, best: str, row: Sequence[Any]) -> Note:
    """Whether learning pays at a load."""
    mean, low, high = row[7:10]
    how: dict[str, Note | Named] = {
        "load": ours(number(load)), "policy": Named("policy", row[1]), "rule": Named("policy", best),
        "score": ours(number(row[3])), "gain": ours(f"{mean:+.3f}"),
    }  # fmt: skip
    if low is None:
        return note("Load {load}: {policy} scores {score}, {gain} to {rule}; one case gives no interval.", **how)
    how |= {"low": ours(f"{low:+.3f}"), "high": ours(f"{high:+.3f}")}
    if low > 0:
        return note(
            "Load {load}: learning pays. {policy} scores {score}, {gain} ({low} to {high}) to {rule}, the best simple "
            "rule.",
            **how,
        )
    return note(
        "Load {load}: learning does not pay for certain. {policy} scores {score}, {gain} ({low} to {high}) to {rule}, "
        "the best simple rule.",
        **how,
    )
