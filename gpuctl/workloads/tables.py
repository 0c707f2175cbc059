"""Workload models as result tables, and as the card of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.notes import NamedValue, Note, listed, literal, named, note
from gpuctl.core.results import Column, ResultTable
from gpuctl.predictors.results import analysis_of, finite
from gpuctl.workloads import learn, quality
from gpuctl.workloads.jobs import UNITS, WEEK_S
from gpuctl.workloads.parametric import Parametric
from gpuctl.workloads.replay_check import LARGE_QUANTILE
from gpuctl.workloads.resample import Resampling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.workloads.jobs import Jobs
    from gpuctl.workloads.quality import Score
    from gpuctl.workloads.synth import Model, Synthesis

TABLES = ("fit_quality", "fit_jobs")
METHODS = {
    "users": "users with their weeks: each user's weeks are put into another order, hours and weekdays stay",
    "weeks": "weeks of all jobs: blocks of seven days are put into another order, hours and weekdays stay",
    "jobs": "blocks of consecutive jobs, with the times between them, drawn with replacement",
    "parametric": "laws with parameters: users, sessions by hour of the week, sizes, run times by size, limits",
    "lublin": "the model of Lublin and Feitelson (2003) for the trace's capacity",
}
CAPACITY = {
    "machines": "all nodes of the log",
    "held": "the most that jobs held at once; the log names no nodes, so this is a lower bound",
    "offered": "the most that jobs had held at once if each had started at its submission; the log names no machines",
    "given": "as given",
}
_GUESSED = frozenset({"held", "offered"})
"""Of these, capacities that no source states."""
ANONYMOUS = (
    f"Each number of this model rests on at least {learn.LEAST_JOBS} jobs of at least {learn.LEAST_USERS} users. It "
    "holds no job, no user, no name of either, of a queue, a GPU type or a cluster, no date, and no digest of the log. "
    "Sizes, limits and hours that fewer jobs or users have are left out or put together. Run times and gaps are laws "
    "whose parts are each of that many jobs and users, and of no user for more than half, if not the whole class of "
    "sizes; their means have steps of 10 %, so no exact duration of anybody's jobs is in it. Sizes and limits are "
    "exact, other numbers have three digits. "
    "Not promised: differential privacy. Who knows all users but one, or an earlier model of the same log, may learn "
    "something of the rest; and a user with most of the jobs shapes the laws."
)
ROWS = (
    "This model holds the submission, size, run time, limit, state, queue and GPU type of every job of the trace, and "
    "which jobs are of one user, whose name is left out. Do not publish it where the trace may not be published: fit "
    "one with --anonymous."
)


def method_of(model: Model) -> str:
    """Return the name of a model's method."""
    if isinstance(model, Resampling):
        return model.method
    return "parametric" if isinstance(model, Parametric) else "lublin"


def settings(model: Model, unit: str, *, capacity: float, capacity_from: str) -> dict[str, Note]:
    """Return the settings that shape the figures."""
    method = method_of(model)
    values = {
        "method": literal(METHODS[method]),
        "size": literal(UNITS[unit]),
        "capacity": note(
            "{n:,} {unit}: {why}",
            n=round(capacity),
            unit=literal(UNITS[unit]),
            why=literal(CAPACITY.get(capacity_from, "")),
        ),
    }
    if isinstance(model, Resampling) and method != "jobs":
        values["pieces move"] = (
            note("at most {weeks:.1f} weeks from their place, which keeps the trend of the load", weeks=model.near)
            if np.isfinite(model.near)
            else note("anywhere; busy and quiet times of the trace are mixed")
        )
    if isinstance(model, Resampling) and np.isfinite(model.trend[0]):
        values["trend"] = (
            note(
                "the weekly load varies {ratio:.2f} times as much as with users' weeks in random order (p = {p:.3f})",
                ratio=model.trend[0],
                p=model.trend[1],
            )
            if method == "users"
            else note(
                "the loads of successive weeks differ {ratio:.2f} times as much as in random order (p = {p:.3f})",
                ratio=model.trend[0],
                p=model.trend[1],
            )
        )
    if isinstance(model, Parametric):
        values["arrivals"] = literal(model.arrivals)
    return values


def fitted(
    model: Model,
    trace: Jobs,
    scores: Sequence[Score],
    comparison: dict[str, Note],
    *,
    sources: Sequence[SourceInfo],
    command: str,
) -> Analysis:
    """Return the result of a fit.

    Args:
        model: the model.
        trace: the jobs that it is compared with.
        scores: of the comparison.
        comparison: settings of the comparison in addition to the model's.
        sources: the files that the jobs came from.
        command: the command line, as the user gave it.
    """
    shown = {**settings(model, trace.unit, capacity=trace.capacity, capacity_from=trace.capacity_from), **comparison}
    return analysis_of(
        named("cluster", trace.name), (_quality(trace, scores), _jobs(trace)), shown, command, tuple(sources),
        warnings=warnings(trace),
    )  # fmt: skip


def warnings(trace: Jobs) -> tuple[Note, ...]:
    """Return caveats on the jobs behind a model."""
    found = []
    if not trace.calendar:
        found.append(note("These jobs have no calendar: their second 0 is taken for a Monday, 00:00."))
    if trace.span_s < 3 * WEEK_S:
        found.append(note("The trace is shorter than three weeks: its weekdays say little of other weeks."))
    if trace.capacity_from in {"held", "offered"}:
        found.append(
            note("The capacity is {why}; --capacity says how large it is.", why=literal(CAPACITY[trace.capacity_from]))
        )
    return tuple(found)


def _quality(trace: Jobs, scores: Sequence[Score]) -> ResultTable:
    names = ("group", "measure", "of", "trace", "synthetic", "low", "high", "halves", "verdict")
    rows = [tuple(finite(getattr(score, name)) for name in names) for score in scores]
    shown = {"group": "kind", "of": "feature", "verdict": "result"}
    texts = {"group", "measure", "of", "verdict"}
    kinds = {shown.get(name, name): pl.String if name in texts else pl.Float64 for name in names}
    frame = pl.DataFrame(rows, schema=kinds, orient="row")
    return ResultTable(
        name="fit_quality",
        section="fit",
        title="How like the trace synthetic jobs are",
        question="Are synthetic jobs as near to the trace as its own halves are to each other?",
        population=note(
            "{jobs:,} job{jobs||s} of {name}; its halves are those submitted in the first and the second half of "
            "its time.",
            jobs=trace.count,
            name=NamedValue("cluster", trace.name),
        ),
        notes=(
            note(
                "{like}: no further from the trace than {margin:.1f} times the distance of its halves. No verdict says "
                "that a model is right.",
                like=literal(quality.LIKE),
                margin=quality.MARGIN,
            ),
            note(
                "Anderson-Darling, scaled: the k-sample statistic times (1 / n + 1 / m). Samples of more than 5,000 "
                "values are thinned to evenly spaced ranks. At 0 or less, no two samples of one law are nearer."
            ),
            note(
                "Replays: the trace, its halves and the synthetic jobs on one pool, the times between submissions "
                "divided by one number each so that the load is the same; large jobs: above the {q:.0%} quantile of "
                "sizes.",
                q=LARGE_QUANTILE,
            ),
        ),
        columns=(
            Column(
                "kind",
                "-",
                "replay: of waits; dependence: of the order; marginal: of single quantities; copy: see measure.",
            ),
            Column("measure", "-", "What is measured; distances are to the trace."),
            Column("feature", "-", "Of which quantity, or under which policy."),
            Column("trace", "-", "Of the trace; empty for distances."),
            Column("synthetic", "-", "Of synthetic jobs: the median of the seeds."),
            Column("low", "-", "The 5 % quantile of the seeds."),
            Column("high", "-", "The 95 % quantile of the seeds."),
            Column("halves", "-", "Between the halves of the trace: their distance or difference."),
            Column("result", "-", "Whether the trace's halves are as far apart: see the notes."),
        ),
        frame=frame,
    )


_LEFT_OUT = {
    "no submission": "Left out: no time of submission is known.",
    "no run time": "Left out: it did not run, or still ran when the log was taken.",
    "a run time of 0 s": "Left out: ran for no second.",
    "rounded up": "Of the counted: a fraction of a unit, rounded up.",
}


def _jobs(trace: Jobs) -> ResultTable:
    rows = [("counted", trace.count, "The model is made of these.")]
    rows += [(what, n, _LEFT_OUT.get(what, "Left out: no size of at least 1 in this unit is known."))
             for what, n in trace.left_out.items()]  # fmt: skip
    return ResultTable(
        name="fit_jobs",
        section="fit",
        title="Jobs",
        question="Which jobs is the model made of, and which were left out?",
        population=note("Jobs of {name}.", name=NamedValue("cluster", trace.name)),
        notes=(),
        columns=(
            Column("what", "-", "Which jobs."),
            Column("jobs", "jobs", "How many."),
            Column("meaning", "-", "Why."),
        ),
        frame=pl.DataFrame(rows, schema={"what": pl.String, "jobs": pl.Int64, "meaning": pl.String}, orient="row"),
    )


def about(
    model: Model,
    trace: Jobs,
    scores: Sequence[Score],
    sources: Sequence[SourceInfo],
    *,
    anonymous: bool,
) -> dict[str, Any]:
    """Return the card of a model; for an anonymous one, without single jobs, users or the log."""
    method = method_of(model)
    shown = {
        score.measure + (f", {score.of}" if score.of else ""): {
            "trace": finite(score.trace), "synthetic": finite(score.synthetic), "halves": finite(score.halves),
            "verdict": score.verdict,
        }
        for score in scores
    }  # fmt: skip
    card: dict[str, Any] = {
        "title": "A workload" if anonymous else f"Workload of {trace.name}",
        "what": f"Synthetic jobs by gpuctl synth, from {METHODS[method]}.",
        "privacy": ANONYMOUS if anonymous else ROWS if isinstance(model, Resampling) else _LAWS,
        "method": method,
        "unit": UNITS[trace.unit],
    }
    if anonymous:
        groups = learn.ANONYMOUS
        card["population"] = {
            "jobs": f"{groups.short(trace.count):g}", "weeks": f"{round(trace.span_s / WEEK_S)}",
            "load": f"{groups.short(trace.load()):g}",
        }  # fmt: skip
        verdicts = [score.verdict for score in scores]
        card["scores"] = {word: verdicts.count(word) for word in (quality.LIKE, quality.UNLIKE)}
        return card
    card |= {
        "settings": settings(model, trace.unit, capacity=trace.capacity, capacity_from=trace.capacity_from),
        "population": {
            "jobs": trace.count, "weeks": round(trace.span_s / WEEK_S, 2), "load": round(trace.load(), 4),
            **{f"left out: {what}": n for what, n in trace.left_out.items()},
        },
        "sources": [
            {"file": source.path.replace("\\", "/").rpartition("/")[2], "sha256": source.sha256,
             "rows": source.rows_loaded} for source in sources
        ],
        "scores": shown or "not scored",
    }  # fmt: skip
    return card


_LAWS = (
    "This model holds no job, but it was not made to be anonymous: rare sizes, limits and run times may be those of "
    "single jobs, and queues, GPU types and the cluster have their names."
)


def synthesis_result(
    model: Model,
    jobs: Jobs,
    wanted: Synthesis,
    sources: Sequence[SourceInfo],
    command: str,
    *,
    card: Mapping[str, Any] | None = None,
) -> Analysis:
    """Return the result of a synthesis; `card`: the model's card, with its scores."""
    load = jobs.load()
    users = int(np.unique(jobs.user[jobs.user >= 0]).size)
    row = {
        "jobs": jobs.count, "weeks": jobs.span_s / WEEK_S, "users": users or None, "capacity": jobs.capacity,
        "load": load, "load_wanted": wanted.load, "mean_size": float(jobs.size.mean()),
        "large_pct": None if wanted.large is None else 100 * float((jobs.size >= wanted.large.size).mean()),
        "run_p50_s": float(np.median(jobs.run_s)), "run_mean_s": float(jobs.run_s.mean()),
        "run_max_s": float(jobs.run_s.max()),
    }  # fmt: skip
    kinds = {name: pl.Int64 if name in {"jobs", "users"} else pl.Float64 for name in row}
    row = {name: finite(value) for name, value in row.items()}
    unit = UNITS[jobs.unit]
    table = ResultTable(
        name="synthetic",
        section="synthetic",
        title="Synthetic jobs",
        question="What was made?",
        population=note("{jobs:,} job{jobs||s} drawn with seed {seed}; sizes are {unit}.",
                        jobs=jobs.count, seed=wanted.seed,
                        unit=literal(unit)),
        notes=(
            note("Second 0 is a Monday, 00:00. Load: size times run time, over the capacity and the time from the "
                 "first to the last submission."),
        ),
        columns=(
            Column("jobs", "jobs", "Jobs made."),
            Column("weeks", "weeks", "From the first to the last submission."),
            Column("users", "users", "Users who submit jobs; empty if the model has none."),
            Column("capacity", unit, "What the load is a share of."),
            Column("load", "-", "Load achieved."),
            Column("load_wanted", "-", "Requested load; empty: none."),
            Column("mean_size", unit, "Mean size of a job."),
            Column("large_pct", "%", "Jobs as large as --large asks for; empty without it."),
            Column("run_p50_s", "s", "Median run time."),
            Column("run_mean_s", "s", "Mean run time."),
            Column("run_max_s", "s", "Longest run time."),
        ),
        frame=pl.DataFrame([row], schema=kinds),
    )  # fmt: skip
    origin = "given" if wanted.capacity is not None else jobs.capacity_from
    comparison = settings(model, jobs.unit, capacity=jobs.capacity, capacity_from=origin)
    name = named("cluster", jobs.name) if jobs.name else note("a workload")
    return analysis_of(
        name,
        (table,),
        comparison,
        command,
        tuple(sources),
        warnings=(*_unlike(card or {}), *_synthesis_warnings(model, jobs, wanted)),
    )


def _unlike(card: Mapping[str, Any]) -> tuple[Note, ...]:
    """Return how a model's jobs differ from those of its trace, by the scores of its card, which may be untrusted."""
    scores = card.get("scores")
    if not isinstance(scores, dict):
        return ()
    counts = [scores.get(word) for word in (quality.UNLIKE, quality.LIKE)]
    if all(isinstance(number, int) for number in counts):
        unlike, every = int(counts[0] or 0), int(counts[0] or 0) + int(counts[1] or 0)
        return () if not unlike else (_measures_unlike(unlike, every, note("")),)
    verdicts = {str(name): score.get("verdict") for name, score in scores.items() if isinstance(score, dict)}
    names = [name for name, verdict in verdicts.items() if verdict == quality.UNLIKE]
    if not names:
        return ()
    some = note(": {names}{more}", names=listed("value", names, 3), more=note(" ...") if len(names) > 3 else note(""))
    return (_measures_unlike(len(names), len(verdicts), some),)


def _measures_unlike(unlike: int, every: int, some: Note) -> Note:
    return note(
        "{unlike:,} of {every:,} measure{every||s} of the jobs that this model makes {unlike|is|are} unlike the trace "
        "(fit_quality){some}. Do not rest conclusions on them; gpuctl fit TRACE --check MODEL has all",
        unlike=unlike,
        every=every,
        some=some,
    )


def _synthesis_warnings(model: Model, jobs: Jobs, wanted: Synthesis) -> tuple[Note, ...]:
    told = []
    if jobs.unit != "gpu":
        told.append(note("The column num_gpus counts {unit}.", unit=literal(UNITS[jobs.unit])))
    if wanted.days is None and jobs.count < wanted.count:
        told.append(
            note("{n:,} job{n||s} in place of {wanted:,}: the model has no more.", n=jobs.count, wanted=wanted.count)
        )
    if wanted.load is not None and wanted.capacity is None and jobs.capacity_from in _GUESSED:
        told.append(
            note(
                "--load {load:.2f} is a share of a guessed capacity of {n:,} {unit}: {origin}. Give --capacity",
                load=wanted.load,
                n=round(jobs.capacity),
                unit=literal(UNITS[jobs.unit]),
                origin=literal(CAPACITY[jobs.capacity_from]),
            )
        )
    if wanted.load is not None and wanted.load_by == "time":
        own = model.offered / jobs.capacity
        factor = wanted.load / own
        if factor > 1.25 or factor < 0.8:
            told.append(
                note(
                    "The load is {factor:.2f} times the model's own ({own:.2f}): days are as much shorter or longer. "
                    "With --load-by users days keep their length.",
                    factor=factor,
                    own=own,
                )
            )
    return tuple(told)
