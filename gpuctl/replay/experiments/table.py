"""The figures of an experiment's cells as tables: one row per cell, and means over the seeds with their intervals."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.notes import note
from gpuctl.core.results import Column, ResultTable
from gpuctl.replay.experiments.cells import STRETCHES, UNCHANGED
from gpuctl.replay.policies import label
from gpuctl.replay.results import failures
from gpuctl.replay.results.columns import columns, documented
from gpuctl.replay.results.comparison import wider
from gpuctl.replay.results.intervals import of_draws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.replay.experiments.cells import Cell
    from gpuctl.replay.models.records import Floats

LEADING = "wait_mean_s"
"""The figure of the interval ``lower`` to ``upper``."""
DRAWN = ("wait_mean_s", "wait_p95_s", "jct_mean_s", "utilization_pct")
"""The figures that the page draws, over the first numeric factor that varies."""
MEANS = (LEADING, "wait_p95_s", "jct_mean_s", "jct_p95_s", "utilization_pct", "makespan_s", "preemptions")
"""The figures that the summary shows."""
MEASURES = tuple(c.name for c in columns("replay_summary") if c.name not in {"policy", "oracle"})
"""All figures."""
OF_FAILURES = ("interruptions", "ettr", "ettr_running", "lost_gpu_hours")
"""The same, where nodes fail."""
CONFIDENCE = 0.95

_OF_TRACE = (
    "95 % interval for a long run of the same workload, from the spread of draws of the trace and the error of its "
    "load; "
    "empty: the trace is too short, there are too few seeds, hardly one job of twenty waits (of the "
    "95th percentile), or it is not a time of jobs; *_sd is the spread between seeds"
)
_INTERVALS = {
    "none": "95 % interval of the mean over the seeds (Student's t). It narrows with more seeds; *_sd is the spread "
    "between seeds",
    "days": _OF_TRACE,
    "weeks": _OF_TRACE,
    "users": "none, since draws of users differ in their load, and their mean is not that of the trace; *_sd is the "
    "spread between seeds",
}
"""Description of the intervals, by what seeds draw."""


def interval(values: Sequence[float | None]) -> tuple[float | None, float | None, float | None, float | None]:
    """Return the mean of some values, the ends of its 95 % interval by Student's t, and their standard deviation.

    Unknown values are left out; one value has no interval, none has no mean.
    """
    from scipy.special import stdtrit

    there = np.array([value for value in values if value is not None], np.float64)
    if not there.size:
        return None, None, None, None
    mean = math.fsum(there) / there.size
    if there.size == 1:
        return mean, None, None, None
    sd = math.sqrt(math.fsum((there - mean) ** 2) / (there.size - 1))
    half = float(stdtrit(there.size - 1, (1 + CONFIDENCE) / 2)) * sd / math.sqrt(there.size)
    return mean, mean - half, mean + half, sd


def _ends(some: pl.DataFrame, name: str, *, resample: str) -> tuple[float | None, float | None]:
    """The ends of the interval of a figure over replays that differ only in their seed.

    Args:
        some: those replays.
        name: of the figure; times are taken to grow with the load; others have no interval if jobs are drawn.
        resample: what seeds draw of the trace; ``none``: they only seed the policy's own choices.
    """
    if resample == "none":
        return interval(some[name].to_list())[1:3]
    few_wait = name == "wait_p95_s" and (some[name] < some[LEADING]).any()
    if resample == "users" or few_wait or not name.endswith("_s") or name == "makespan_s":
        return None, None
    values, stretches = _known(some, name)
    return of_draws(values, stretches=stretches)[:2]


def _change(
    some: pl.DataFrame, *, resample: str, change: str = "change_s", base: str = "base_s", fewest: str = "base_stretches"
) -> tuple[float | None, float | None, float | None]:
    """Mean and interval of a difference of mean waits, as `change_s`, from the unchanged wait and the stretches."""
    mean, low, high, _ = interval(some[change].to_list())
    if resample == "none":
        return mean, low, high
    if resample == "users":
        return mean, None, None
    both = some.drop_nulls([change, base, LEADING])
    values, stretches = _known(both, change)
    level = ((both[LEADING] + both[base]) / 2).to_numpy()
    least = both[fewest].median()
    return mean, *of_draws(values, level, stretches=min(stretches, float(least or 0.0)))[:2]  # type: ignore[arg-type]


def _from_unchanged(some: pl.DataFrame, error: float | None, *, resample: str) -> dict[str, float | None]:
    """Mean wait unchanged and the difference from it, with its interval: job by job if there is one seed."""
    mean, diff, low, high, stretches = UNCHANGED
    if some.height == 1:
        return some.select(mean, diff, low, high).row(0, named=True)
    ends = _change(some, resample=resample, change=diff, base=mean, fewest=stretches)
    return {mean: interval(some[mean].to_list())[0], diff: ends[0]} | _with_error((diff, low, high), ends, error)


def _with_error(
    names: tuple[str, str, str], found: tuple[float | None, float | None, float | None], error: float | None
) -> dict[str, float | None]:
    """A difference and the ends of its interval, by name; the ends include the model's own error."""
    return dict(zip(names, (found[0], *wider(*found, error)), strict=True))


def _known(some: pl.DataFrame, name: str) -> tuple[Floats, float]:
    """The known values of a figure, and the stretches of such a trace."""
    there = some.drop_nulls([name])
    middle = there[STRETCHES].fill_null(0.0).median()
    return there[name].to_numpy().astype(np.float64), float(middle) if isinstance(middle, float) else 0.0


def rows(
    cells: Sequence[Cell], figures: Sequence[dict[str, Any]], *, resample: str = "none", error: float | None = None
) -> pl.DataFrame:
    """Return one row per cell: policy, every factor, seed, every figure of the cell, lower, upper.

    Factors whose values are all numbers are numeric; null for a policy without the factor. ``lower`` and ``upper`` are
    the interval of `LEADING` of the same policy and factors; `resample` as for `_ends`. The ends of the difference from
    the unchanged replay include the model's own error (seconds).
    """
    names = list(dict.fromkeys(name for cell in cells for name, _ in cell.factors))
    made = [
        {"policy": label(cell.policy), **dict.fromkeys(names), **dict(cell.factors), "seed": cell.seed}
        for cell in cells
    ]
    frame = pl.DataFrame(made, infer_schema_length=None).with_columns(_numbers(name, made) for name in names)
    if figures and UNCHANGED[0] in figures[0]:
        figures = [row | _with_error(_DIFFERENCE, tuple(row[name] for name in _DIFFERENCE), error) for row in figures]
    floats = dict.fromkeys(UNCHANGED, pl.Float64) if figures and UNCHANGED[0] in figures[0] else {}
    found = pl.DataFrame(list(figures), infer_schema_length=None, schema_overrides=floats).drop("policy")
    frame = frame.hstack(found)
    groups = frame.group_by("policy", *names, maintain_order=True)
    ends = [_ends(some, LEADING, resample=resample) for _, some in groups]
    bounds = groups.agg().with_columns(
        pl.Series("lower", [low for low, _ in ends], pl.Float64),
        pl.Series("upper", [high for _, high in ends], pl.Float64),
    )
    return frame.join(bounds, on=["policy", *names], nulls_equal=True, maintain_order="left")


def summarized(
    frame: pl.DataFrame, factors: Sequence[str], baseline: str, measures: Sequence[str] = MEANS, *,
    resample: str = "none", error: float | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Return one row per policy and combination of factors: seeds, and mean, interval and spread of `measures`.

    ``change_s`` is the mean wait less that of the baseline at the same load, nodes and seed, with its interval: pairs
    have the same jobs (`resample` as for `_ends`). Parameters of a policy do not pair: all cells of the baseline are
    pooled. ``vs_unchanged_s`` is the mean wait less that of the same policy without what the experiment changes. The
    model's own error, in seconds, is in the intervals of both.
    """
    shared = [name for name in factors if "." not in name]
    base = (
        frame.filter(policy=baseline)
        .group_by(*shared, "seed", maintain_order=True)
        .agg(pl.col(LEADING).mean().alias("base_s"), pl.col(STRETCHES).min().alias("base_stretches"))
    )
    paired = frame.join(base, on=[*shared, "seed"], how="left", nulls_equal=True, maintain_order="left")
    paired = paired.with_columns((pl.col(LEADING) - pl.col("base_s")).alias("change_s"))
    varied = [name for name in factors if frame[name].n_unique() > 1 and name != drawn_over(frame, factors)]
    found = []
    for key, some in paired.group_by("policy", *factors, maintain_order=True):
        row: dict[str, Any] = dict(zip(("policy", *factors), key, strict=True))
        row["variant"] = _variant(row, varied)
        row["oracle"] = some["oracle"].any()
        row["seeds"] = some.height
        for name in measures:
            row[name], _, _, sd = interval(some[name].to_list())
            row[f"{name}_low"], row[f"{name}_high"] = _ends(some, name, resample=resample)
            row[f"{name}_sd"] = sd
        own = key[0] == baseline
        change = (None, None, None) if own else _change(some, resample=resample)
        row |= _with_error(("change_s", "change_low_s", "change_high_s"), change, error)
        if UNCHANGED[0] in some.columns:
            row |= _from_unchanged(some, error, resample=resample)
        found.append(row)
    return pl.DataFrame(found, infer_schema_length=None)


def drawn_over(frame: pl.DataFrame, factors: Sequence[str]) -> str:
    """Return the factor that the page draws figures over: the first number that varies; '' if none does."""
    numbers = (name for name in factors if frame[name].dtype == pl.Float64 and frame[name].drop_nulls().n_unique() > 1)
    return next(numbers, "")


def _variant(row: dict[str, Any], varied: Sequence[str]) -> str:
    own = [(name, row[name]) for name in varied if row[name] is not None]
    values = [
        f"{name.rpartition('.')[2]} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in own
    ]
    return ", ".join((row["policy"], *values))


_DIFFERENCE = UNCHANGED[1:4]
_KEYS = ("wait_mean_s", "wait_mean_s_low", "wait_mean_s_high", *_DIFFERENCE, "wait_p95_s", "jct_mean_s",
         "utilization_pct")  # fmt: skip
"""Columns that a page shows after the factors."""


def _charts(over: str, measures: Sequence[str]) -> tuple[str, ...]:
    if not over:
        return ()
    return tuple(
        shlex.join(
            (
                "bands",
                f"name=chart-experiments-{name.replace('_', '-')}",
                f"x={over}",
                f"y={name},{name}_low,{name}_high",
                "series=variant",
                f"title={_TITLES.get(name, name)} over {over}",
                f"lead={'yes' if name.startswith('wait_') else 'no'}",
            )
        )
        for name in measures
    )


def tables(
    cells: Sequence[Cell],
    figures: Sequence[dict[str, Any]],
    baseline: str,
    measures: Sequence[str] = (),
    *,
    resample: str = "none",
    error: float | None = None,
    notes: tuple[Note, ...] = (),
) -> tuple[ResultTable, ...]:
    """Return ``experiments_summary``, ``replay_failures`` if nodes fail, and ``experiments``.

    See `gpuctl.replay.experiments.result.result`.
    """
    frame = rows(cells, figures, resample=resample, error=error)
    factors = list(dict.fromkeys(name for cell in cells for name, _ in cell.factors))
    fails = "interruptions" in frame.columns
    shown = tuple(dict.fromkeys((*MEANS, *(OF_FAILURES if fails else ()), *measures)))
    short = summarized(frame, factors, baseline, shown, resample=resample, error=error)
    seeds = frame["seed"].n_unique()
    population = note(
        "{cells:,} replay{cells||s}: every combination of policy, factors and {seeds:,} seed{seeds||s}",
        cells=frame.height,
        seeds=seeds,
    )
    more = (_failures(frame, factors),) if fails else ()
    return (
        replace(
            _table(
                "experiments_summary",
                "Policies by load, nodes and parameters",
                short,
                population,
                factors,
                resample=resample,
            ),
            notes=notes,
            charts=_charts(drawn_over(frame, factors), tuple(measures) or DRAWN),
            key_columns=tuple(name for name in ("policy", *factors, *_KEYS) if name in short.columns),
        ),
        *more,
        _table(
            "experiments", "Every replay of the experiment", frame, population, factors, detail=True, resample=resample
        ),
    )


def _failures(frame: pl.DataFrame, factors: Sequence[str]) -> ResultTable:
    """``replay_failures``: a row a replay."""
    known = [column.name for column in columns("replay_failures")]
    own = frame.select("policy", *factors, *(name for name in known if name != "policy"))
    population = note("{cells:,} replay{cells||s}, all jobs counted.", cells=own.height)
    table = documented(
        "replay_failures", own, population, section="experiments", title=failures.TITLE, question=failures.QUESTION,
        notes=failures.NOTES,
    )  # fmt: skip
    varied = tuple(Column(name, "-", "Factor, as on the command line.") for name in factors)
    return replace(
        table, columns=(table.columns[0], *varied, *table.columns[1:]), frame=own,
        key_columns=("policy", *factors, *table.key_columns[1:]),
    )  # fmt: skip


def _table(
    name: str,
    title: str,
    frame: pl.DataFrame,
    population: Any,
    factors: Sequence[str],
    *,
    detail: bool = False,
    resample: str,
) -> ResultTable:
    over = _INTERVALS[resample]
    known = {column.name: column for name in ("replay_failures", "replay_summary") for column in columns(name)}
    described = tuple(known.get(column) or _column(column, known, factors, over) for column in frame.columns)
    question = "How do the policies compare as the load, the nodes and the parameters change?"
    return ResultTable(name, "experiments", title, question, population, (), described, frame, detail=detail)


def _column(name: str, known: dict[str, Column], factors: Sequence[str], over: str) -> Column:
    if name in factors:
        return Column(name, "-", "Factor, as on the command line.")
    for ending, words in (("_low", "Lower end"), ("_high", "Upper end"), ("_sd", "Standard deviation over the seeds")):
        figure = known.get(name.removesuffix(ending))
        if name.endswith(ending) and figure is not None:
            text = f"{words} of {figure.name}." if ending == "_sd" else f"{words} of {figure.name}: {over}."
            return Column(name, figure.unit, text)
    own = _OWN[name]
    return replace(own, description=f"{own.description}: {over}.") if name in _ENDS else own


_VS_UNCHANGED = (
    "95 % interval, job by job if there is one seed, else from the seeds as for change_s; with the model's own "
    "error if the rules are calibrated. Empty: the trace is too short to tell."
)
_TITLES = {
    "wait_mean_s": "Mean wait",
    "wait_p95_s": "95th percentile of the wait",
    "jct_mean_s": "Mean JCT",
    "utilization_pct": "GPUs held",
}
_OWN = {
    "variant": Column("variant", "-", "Policy, and all factors except the one on the charts' x axis."),
    "seed": Column("seed", "-", "Seed of the resampled jobs and of stochastic policies."),
    "seeds": Column("seeds", "replays", "Replays averaged, one per seed."),
    "lower": Column("lower", "s", f"Lower end of {LEADING} of this policy and these factors"),
    "upper": Column("upper", "s", f"Upper end of {LEADING} of this policy and these factors"),
    "change_s": Column("change_s", "s", f"Mean over the seeds of {LEADING} less the baseline's with the same jobs."),
    "change_low_s": Column("change_low_s", "s", "Lower end of change_s"),
    STRETCHES: Column(
        STRETCHES,
        "-",
        "Independent stretches of time that the replay holds: ((capacity - load) / error of the load)^2.",
    ),
    "change_high_s": Column("change_high_s", "s", "Upper end of change_s"),
    "unchanged_s": Column(
        "unchanged_s", "s", f"{LEADING} of the same policy without what is changed; empty: nothing is changed here."
    ),
    "vs_unchanged_s": Column(
        "vs_unchanged_s", "s", f"Mean over the seeds of {LEADING} less unchanged_s, of jobs that ended in both replays."
    ),
    "vs_unchanged_low_s": Column("vs_unchanged_low_s", "s", f"Lower end of vs_unchanged_s: {_VS_UNCHANGED}"),
    "vs_unchanged_high_s": Column("vs_unchanged_high_s", "s", f"Upper end of vs_unchanged_s: {_VS_UNCHANGED}"),
    "unchanged_stretches": Column("unchanged_stretches", "-", "stretches that both replays hold."),
}


_ENDS = ("lower", "upper", "change_low_s", "change_high_s")


def _numbers(name: str, made: Sequence[dict[str, Any]]) -> pl.Expr:
    given = [row[name] for row in made if row[name] is not None]
    try:
        [float(value) for value in given]
    except ValueError:
        return pl.col(name)
    return pl.col(name).cast(pl.Float64)
