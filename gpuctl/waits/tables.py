"""Waits as result tables, and as the card of a model."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.notes import NamedValue, Note, literal, named, note
from gpuctl.core.results import Column, ResultTable
from gpuctl.predictors.results import analysis_of
from gpuctl.waits import features, forward, learn, scores
from gpuctl.waits.forecast import TOLD, Forecast
from gpuctl.waits.queue_log import POPULATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.waits.learn import TrainedModel

TABLES = ("wait_scores", "wait_calibration", "wait_by_queue", "wait_jobs")
SECTION = "waits"
_MEASURES = tuple(Column(name, unit, text) for name, (unit, text) in scores.MEASURES.items())
_JOBS = Column("jobs", "jobs", "Jobs scored.")
_LOAD = Column(
    "load", "-", "Thirds of the jobs scored, by what waited when each came, times its limits; all: all of them."
)
_FORECAST = Column(
    "forecast",
    "-",
    "Jobs by what the predictor says of each (its median); all: all of them. Where most waits are 0 s, only these rows "
    "show whether an interval of hours holds.",
)
NO_SLURM = note("Slurm's own estimate is not compared: accounting does not hold it; plan stands for it.")


def result(trained: TrainedModel, sources: Sequence[SourceInfo], command: str) -> Analysis:
    """Return the complete result of a training.

    Args:
        trained: by `gpuctl.waits.learn.train`.
        sources: the files that the jobs came from.
        command: the command line, as given by the user.
    """
    tables = (_scores(trained), _calibration(trained), _by_queue(trained), _population(trained))
    return analysis_of(
        named("cluster", trained.log.name), tables, settings(trained), command, tuple(sources),
        warnings=_warnings(trained),
    )  # fmt: skip


def settings(trained: TrainedModel) -> dict[str, Note]:
    """Return the settings that shape the figures, as fixed words and dates."""
    cuts = ", ".join(_date(cut) for cut in trained.cut_s)
    texts = {
        "wait": "from when a job can first start to its start; of jobs that started",
        "size": trained.log.unit,
        "answers where the queue is known": trained.model.method,
        "order of the simulated queue": forward.ORDERS_SAID[trained.model.order],
        "run times of the simulated queue": _run_times(trained),
        "limits on GPUs of users, accounts and QOS": _limits(trained),
        "parts begin at": cuts,
        "submitted, fit": f"{_date(float(trained.log.ready_s[0]))} to {_date(trained.log.taken_s)}",
        "learnt from and scored": "{learnt:,} of {could:,} started jobs, evenly spread".format(**trained.sizes),
        "simulated": "{simulated:,} of those; {order:,} to choose the order of the queue".format(**trained.sizes),
        "interval": "10 % to 90 % quantile",
    }
    return {name: literal(text) for name, text in texts.items()}


def _limits(trained: TrainedModel) -> str:
    limits = trained.log.limits
    if not limits.of_job:
        return "none loaded"
    under = sum(1 for keys in limits.of_job if keys)
    return f"as loaded, for {under:,} of {len(limits.of_job):,} jobs"


RUN_TIMES = (
    "drawn from what the user's last jobs, and others with about such a limit, used up of theirs",
    "half drawn from quantiles of the job's own, by trees that see what those of train runtime do, half from the past",
)
"""Without trees, and with them."""


def _run_times(trained: TrainedModel) -> str:
    past, trees = trained.run_error_s
    texts = RUN_TIMES[trained.model.run_times is not None]
    if trees == float("inf"):
        return f"{texts}; too few jobs for trees"
    return f"{texts}; pinball loss on the second part {past:,.0f} s from the past, {trees:,.0f} s by trees"


def about(trained: TrainedModel, sources: Sequence[SourceInfo]) -> dict[str, Any]:
    """Return the entries of the model's card; the same jobs give the same card, wherever the log is stored."""
    return {
        "title": f"Waits on {trained.log.name}",
        "what": "Forecasts how long a job waits from when it can first start, in seconds: nine quantiles, from the "
        "job and from queue and cluster as they are when it comes. Scored on the last part of the log by trees that "
        "were fitted on the earlier ones; then fitted again on all of it.",
        "limits": [
            "Intervals hold for jobs to come as far as these are like those scored.",
            "Time before a job can start (held, depending, a later begin) is not forecast.",
            "Limits of users, accounts and QOS are known as far as they are loaded, as they are now; reservations and "
            "drained nodes are not.",
            *_warnings(trained),
        ],
        "settings": settings(trained),
        "population": dict(trained.log.counts),
        "parts": dict(zip(("first", "second", "third", "scored"), trained.counts, strict=True)),
        "data": {"sha256_of_what_was_learnt_from": trained.digest},
        "sources": [
            {"file": source.path.replace("\\", "/").rpartition("/")[2], "sha256": source.sha256,
             "rows": source.rows_loaded} for source in sources
        ],
        "scores": _scored(trained).to_dicts(),
        "measures": {name: f"{text} [{unit}]" for name, (unit, text) in scores.MEASURES.items()},
        "baselines": {**learn.METHODS, **learn.RULES},
        "features": described(),
    }  # fmt: skip


def described() -> dict[str, str]:
    """Return the meaning of each feature of the trees."""
    return {**features.described(), **forward.FEATURES}


def forecasts(
    found: Sequence[Forecast], cluster: Note, settings_: dict[str, Note], command: str, sources: Sequence[SourceInfo],
    *, warnings: Sequence[Note] = (),
) -> Analysis:  # fmt: skip
    """Return forecast waits, one row per job."""
    rows = [
        (f.job, *(f.answers or (None,) * len(TOLD)), _known(f.waited_s), _known(f.slurm_s), f.method, str(f.reason))
        for f in found
    ]
    numbers = dict.fromkeys((*TOLD, "waited_s", "slurm_s"), pl.Float64)
    frame = pl.DataFrame(
        rows, schema={"job": pl.String, **numbers, "method": pl.String, "reason": pl.String}, orient="row"
    )
    answered = sum(bool(f.answers) for f in found)
    methods = {f.method for f in found}
    table = ResultTable(
        name="predictions",
        section="predictions",
        title="Forecast waits",
        question="How long will each job wait, and how certain is that?",
        population=note("{found:,} job{found||s}; {answered:,} have a forecast.", found=len(found), answered=answered),
        notes=tuple(literal(f"{name}: {text}") for name, text in learn.METHODS.items() if name in methods),
        columns=PREDICTIONS,
        frame=frame,
        charts=("ranges name=chart-waits x=job y=p50_s,p10_s,p90_s title='Forecast waits with their 80 % intervals'",),
        sentences=tuple(dict.fromkeys(f.reason for f in found)),
    )
    return analysis_of(cluster, (table,), settings_, command, tuple(sources), warnings=(*warnings, FROM_START))


def _known(seconds: float) -> float | None:
    return None if seconds != seconds else seconds  # noqa: PLR0124 - NaN


FROM_START = note("Waits count from when a job can first start; time held before that is not forecast.")
PREDICTIONS = (
    Column("job", "-", "The job's name."),
    *(
        Column(name, "s", f"{100 * level:.0f} % of such jobs wait no longer.")
        for name, level in TOLD.items()
    ),
    Column("waited_s", "s", "Time waited so far, part of the quantiles; empty: forecast at arrival."),
    Column("slurm_s", "s", "Its wait as Slurm itself estimates it (squeue --start); empty: it says none."),
    Column("method", "-", "blend, boosted, simulated, bound: from the queue as it was when it came; job-only: from the "
           "job alone; none: no answer."),
    Column("reason", "-", "Why there is no answer, or what it does not know."),
)  # fmt: skip


def _scored(trained: TrainedModel) -> pl.DataFrame:
    wait, load = (trained.tested[c].to_numpy() for c in ("wait_s", "load"))
    return scores.table(trained.answers, wait, load)


def _own(trained: TrainedModel) -> tuple[np.ndarray[Any, Any], pl.DataFrame]:
    """Return the forecasts of the model's method for the scored jobs that it can answer, and those jobs."""
    forecast_s = trained.answers[trained.model.method]
    texts = ~np.isnan(forecast_s[:, 0])
    return forecast_s[texts], trained.tested.filter(pl.Series(texts))


def _tested(trained: TrainedModel) -> Note:
    return note(
        "{jobs:,} job{jobs||s} of {name} that started, from {date} on; the trees that are scored were fitted on "
        "earlier ones.",
        jobs=trained.counts[-1],
        name=NamedValue("cluster", trained.log.name),
        date=literal(_date(trained.cut_s[-1])),
    )


def _scores(trained: TrainedModel) -> ResultTable:
    texts = {**learn.METHODS, **learn.RULES}
    return ResultTable(
        name="wait_scores",
        section=SECTION,
        title="Forecasts of waits, side by side",
        question="How near are forecasts made when a job comes, and do their intervals hold what they promise?",
        population=_tested(trained),
        notes=(*(literal(f"{name}: {text}") for name, text in texts.items()), NO_SLURM),
        columns=(Column("predictor", "-", "See the notes."), _LOAD, _FORECAST, _JOBS, *_MEASURES),
        frame=_scored(trained).select("predictor", "load", "forecast", "jobs", *scores.MEASURES),
        first_columns=8,
    )


def _calibration(trained: TrainedModel) -> ResultTable:
    forecast_s, tested = _own(trained)
    return ResultTable(
        name="wait_calibration",
        section=SECTION,
        title="What quantiles promise and hold",
        question="Do as many jobs wait no longer than each quantile as it says?",
        population=_tested(trained),
        notes=(note("A quantile holds where the promised share lies between the two others: many waits are 0 s."),),
        columns=(
            _LOAD,
            Column("promised_pct", "%", "The quantile."),
            Column("held_pct", "%", "The middle of the two shares that follow."),
            Column("below_pct", "%", "Jobs that waited less."),
            Column("up_to_pct", "%", "Jobs that waited no longer."),
        ),
        frame=scores.coverage_table(forecast_s, tested["wait_s"].to_numpy(), tested["load"].to_numpy()),
        detail=True,
        charts=(
            "bands name=chart-wait-calibration x=promised_pct y=held_pct,below_pct,up_to_pct series=load lead=yes "
            "title='Share of waits within each quantile, by load; the same as promised is right'",
        ),
    )


def _by_queue(trained: TrainedModel) -> ResultTable:
    forecast_s, tested = _own(trained)
    return ResultTable(
        name="wait_by_queue",
        section=SECTION,
        title="Forecasts by queue",
        question="In which queues do forecasts hold?",
        population=_tested(trained),
        notes=(note("An empty name: the log names no queue."),),
        columns=(
            Column("queue", "-", "Slurm's partition."),
            _JOBS,
            *_MEASURES,
            Column(
                "coverage_low_pct", "%", "Lower end of the coverage's 95 % interval (Wilson), were jobs independent."
            ),
            Column("coverage_high_pct", "%", "Upper end of it."),
        ),
        frame=scores.by_queue(forecast_s, tested["wait_s"].to_numpy(), tested["queue"].to_list()).select(
            "queue", "jobs", *scores.MEASURES, *scores.INTERVAL
        ),
        charts=(
            "ranges name=chart-wait-by-queue x=queue y=coverage_pct,coverage_low_pct,coverage_high_pct unit=% "
            "title='Waits within the 80 % interval, by queue, with the 95 % interval of that share'",
        ),
    )


def _population(trained: TrainedModel) -> ResultTable:
    counts = trained.log.counts
    rows = {"what": list(counts), "jobs": list(counts.values()), "meaning": [POPULATION[name] for name in counts]}
    return ResultTable(
        name="wait_jobs",
        section=SECTION,
        title="Jobs",
        question="Whose waits were learnt, and which jobs were left out?",
        population=note(
            "{jobs:,} job{jobs||s} of {name}.", jobs=counts["jobs"], name=NamedValue("cluster", trained.log.name)
        ),
        notes=(
            note("jobs = no_submission + no_end_of_wait + started + left_early + still_waiting."),
            note(
                "Waits that had not ended when a part did are stood for by waits as long that began earlier in it "
                "(inverse probability of censoring)."
            ),
        ),
        columns=(
            Column("what", "-", "Which jobs."),
            Column("jobs", "jobs", "How many."),
            Column("meaning", "-", "Which jobs they are, and why they are left out."),
        ),
        frame=pl.DataFrame(rows, schema={"what": pl.String, "jobs": pl.Int64, "meaning": pl.String}),
    )


def _warnings(trained: TrainedModel) -> tuple[Note, ...]:
    found = []
    own = _scored(trained).filter((pl.col("predictor") == trained.model.method) & pl.col("jobs").gt(0))
    for row in own.iter_rows(named=True):
        share, jobs = row["coverage_pct"], row["jobs"]
        if row["forecast"] != "all":
            _, most = scores.wilson(share, jobs)
            if share < HOLDS_BY_LOAD[0] and most is not None and most < PROMISED:
                found.append(
                    note(
                        "Of {jobs:,} job{jobs||s} forecast to wait {forecast}, the 80 % interval held {share:.0f} %.",
                        jobs=jobs, forecast=literal(row["forecast"]), share=share,
                    )
                )  # fmt: skip
            continue
        low, high = HOLDS if row["load"] == "all" else HOLDS_BY_LOAD
        if not low <= share <= high:
            found.append(
                note(
                    "Load {load}: the 80 % interval held {share:.0f} % of the waits scored.",
                    load=literal(row["load"]), share=share,
                )
            )  # fmt: skip
    counts = trained.log.counts
    if counts["left_early"]:
        found.append(
            note(
                "{n:,} job{n||s} left the queue without running: forecasts are of jobs that stay until they start.",
                n=counts["left_early"],
            )
        )
    if counts["no_end_of_wait"] or counts["no_submission"]:
        found.append(
            note(
                "Left out: {a:,} job{a||s} without a submission, {b:,} of which it is not known until when they "
                "waited.",
                a=counts["no_submission"],
                b=counts["no_end_of_wait"],
            )
        )
    return tuple(found)


HOLDS, HOLDS_BY_LOAD = (77.0, 83.0), (72.0, 88.0)
"""Coverage in percent outside of which a warning says so: over all jobs scored, and in each third. In a class of the
forecast only less than the second's lower end counts, where chance does not explain it: where most waits are 0 s, an
interval that holds more than it promises is no fault."""
PROMISED = 80.0


def _date(second: float) -> str:
    return str(datetime(1970, 1, 1) + timedelta(seconds=int(second)))
