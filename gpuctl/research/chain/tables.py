"""Chain policies side by side, as a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import NamedValue, Note, literal, note
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.research.chain.episode import DAY_S
from gpuctl.research.chain.evaluate import FIGURES, RESAMPLES, ForecastRow, FrontierRow
from gpuctl.research.chain.trial import Evaluation

if TYPE_CHECKING:
    from gpuctl.core.results import SourceInfo
    from gpuctl.research.chain.evaluate import Frames
    from gpuctl.research.chain.log import Log

_ENDS = {"low": "Lower end", "high": "Upper end"}
_TEXTS = {
    "interruption_h": "Mean hours from P's end to S's start; 0 if S starts earlier.",
    "reduction_pct": "Reduction of the summed interruption, relative to reactive; empty if reactive has none.",
    "zero_pct": "Share of the starts without interruption.",
    "overlap_h": "Mean hours in which both run; 0 if S starts after P's end.",
    "cost_h": "outage cost x interruption_h + overlap_h.",
}


def _figure(name: str) -> Column:
    unit = "%" if name.endswith("_pct") else "h"
    if name in _TEXTS:
        return Column(name, unit, _TEXTS[name])
    what, end, _ = name.split("_")
    return Column(name, unit, f"{_ENDS[end]} of the 95 % interval of {what}, by bootstrap over days of starts.")


SUMMARY = (
    Column("policy", "-", "The rule by which S is submitted."),
    Column("level", "-", "all starts, or starts whose interruption under reactive is at most 2 h (light), at most 12 h "
           "(medium), or more (heavy)."),
    Column("starts", "starts", "Starts counted."),
    *(_figure(name) for name in FIGURES[:5]),
    Column("train_s", "s", "CPU seconds to train, including simulations; empty: the policy does not learn."),
    *(_figure(name) for name in FIGURES[5:]),
    Column("aimed_cost", "-", "The outage cost that the rule uses: below that of --outage-cost where --max-overlap "
           "asks for it; empty: it uses none."),
)  # fmt: skip
OUTCOMES = (
    Column("policy", "-", "The rule by which S is submitted."),
    Column("start", "-", "The start, on the log's own clock; seconds count from it."),
    Column("hand_over", "-", "Number of the hand-over from one job of the chain to the next, from 1."),
    Column("p_end_s", "s", "End of P."),
    Column("s_submit_s", "s", "Submission of S."),
    Column("s_start_s", "s", "Start of S."),
    Column("interruption_s", "s", "Start of S - end of P: the interruption; negative: the overlap."),
)


def _bound(evaluation: Evaluation) -> dict[str, Note]:
    if evaluation.max_overlap_h is None:
        return {}
    bound = note(
        "{hours} h, on the last fifth of the starts before the split", hours=literal(number(evaluation.max_overlap_h))
    )
    return {"largest mean overlap": bound}


def result(
    frames: Frames,
    evaluation: Evaluation,
    log: Log,
    command: str,
    sources: tuple[SourceInfo, ...],
) -> Analysis:
    """Assemble the tables of `gpuctl.research.chain.evaluate.run` as a result."""
    summary, outcomes, forecasts, frontier = frames
    population = note(
        "{n:,} start{n||s}, every four hours; each has {warm:,} day{warm||s} of warm-up, {jobs:,} job{jobs||s} in a "
        "chain, and submissions "
        "until {ahead:,} day{ahead||s} after the first of these.",
        n=outcomes.height // max(len(evaluation.policies) * (evaluation.jobs - 1), 1),
        warm=literal(number(evaluation.warm_up_s / DAY_S)),
        jobs=evaluation.jobs,
        ahead=literal(number((evaluation.arrivals_s - evaluation.warm_up_s) / DAY_S)),
    )
    caveat = literal(
        "Policies that depend on the outage cost were tried with several; asap, whose overlap is nearly the whole "
        "limit, is left out."
    )
    tables = (
        ResultTable(
            name="chain", section="chain", title="Chain policies", population=population, notes=(), columns=SUMMARY,
            question="How long are the gaps between jobs of a chain, and how much overlap do they cost?",
            frame=summary.select(column.name for column in SUMMARY), first_columns=9,
        ),
        ResultTable(
            name="chain_starts", section="chain", title="Chain policies, start by start", population=population,
            question="What is the outcome of each policy at each start?", notes=(), columns=OUTCOMES,
            frame=outcomes.select(column.name for column in OUTCOMES), detail=True,
        ),
        ForecastRow.table(forecasts, population),
        FrontierRow.table(frontier, population, (caveat,)),
    )  # fmt: skip
    return Analysis(
        cluster=note("{name}", name=NamedValue("cluster", log.name)),
        tables=tables,
        sections=(("chain", "Chains of jobs"),),
        sources=sources,
        settings={
            "cluster": note("{n:,} node{n||s}", n=evaluation.size),
            "jobs": note(
                "{n:,} node{n||s}, limit {limit:,} min, ending after {lasts:,} min",
                n=evaluation.pair.nodes,
                limit=evaluation.pair.limit_min,
                lasts=evaluation.pair.lasts_min,
            ),
            "looks": literal("every ten minutes of the clock, P's end noticed there")
            if evaluation.grid
            else literal("every ten minutes from P's start, submissions to the minute"),
            "outage cost": note(
                "{cost} h of overlap for an hour of interruption", cost=literal(number(evaluation.outage_cost))
            ),
            **_bound(evaluation),
            "intervals": note("95 %, bootstrap over days of starts, {n:,} resample{n||s}", n=RESAMPLES),
        },
        command=command,
        warnings=log.notes,
    )
