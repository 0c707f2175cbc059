"""Lesson 1: wait for a gang's locality, or start now on more servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.notes import note, ours
from gpuctl.core.results import Column, ResultTable
from gpuctl.lessons.finding import Finding, Input
from gpuctl.lessons.measure import ENOUGH_UNITS, LEVELS, Measured, measure
from gpuctl.lessons.use import LEAST_SAMPLES, read

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.lessons.case import Case
    from gpuctl.lessons.ratios import Ratio

KEY = "locality"
TABLES = ("locality_speed",)


def learn(case: Case) -> Finding:
    """Measure what spreading costs, and replay rules of when to give up locality."""
    use = read(case)
    if use is None:
        return Finding(warnings=(note("No telemetry: what spreading a gang costs cannot be measured."),))
    measured = measure(use)
    return Finding(inputs=_inputs(measured), tables=(_speed(measured),))


def _inputs(measured: Measured) -> tuple[Input, ...]:
    rows = []
    for at, level in enumerate(LEVELS):
        ratio = measured.all_sizes[at]
        if ratio.estimate.value is not None:
            rows.append(
                Input(
                    KEY, note("speed of a gang on {level}, for that on the fewest", level=ours(level)), "-",
                    ratio.estimate, "measured", _basis(measured, ratio),
                )
            )  # fmt: skip
    return tuple(rows)


def _basis(measured: Measured, ratio: Ratio) -> Note:
    return note(
        "GPU utilization of {units:,} attempts and of like ones; {clusters:,} {kind} tell of it; taken for speed",
        units=ratio.units, clusters=ratio.clusters, kind=ours(measured.clusters),
    )  # fmt: skip


def _speed(measured: Measured) -> ResultTable:
    rows = [
        (size, LEVELS[level - 1], ratio.units, ratio.clusters, ratio.estimate.value, ratio.estimate.low,
         ratio.estimate.high, "measured" if ratio.units >= ENOUGH_UNITS else "extrapolated")
        for (size, level), ratio in [
            *((("all", at + 1), ratio) for at, ratio in enumerate(measured.all_sizes)),
            *measured.by_size.items(),
        ]
    ]  # fmt: skip
    kinds = [pl.String, pl.String, pl.Int64, pl.Int64, pl.Float64, pl.Float64, pl.Float64, pl.String]
    return ResultTable(
        name="locality_speed",
        section=KEY,
        title="Speed by number of servers",
        question="How much slower is a gang on more servers?",
        population=note(
            "{gangs:,} attempts of 2 GPUs and more with at least {least} samples of telemetry, {spread:,} of them on "
            "more servers than needed.",
            gangs=measured.gangs, least=LEAST_SAMPLES, spread=measured.spread,
        ),
        notes=(),
        columns=COLUMNS,
        frame=pl.DataFrame(rows, schema=dict(zip([c.name for c in COLUMNS], kinds, strict=True)), orient="row"),
    )  # fmt: skip


COLUMNS = (
    Column("size_bucket", "-", "GPUs of the gang."),
    Column("placement", "-", "more servers: than the fewest that can hold it, in one rack; several racks."),
    Column("attempts", "attempts", "So placed, with like ones on the fewest servers: same user, name, GPUs."),
    Column("clusters", "-", "Users (kinds of jobs, where users are few) that tell of it."),
    Column("ratio", "-", "GPU utilization, for that on the fewest servers; taken for speed."),
    Column("ratio_low", "-", "Lower end of its 90 % interval."),
    Column("ratio_high", "-", "Upper end."),
    Column("origin", "-", "measured: on gangs of this size; extrapolated: replays use that of all sizes."),
)
