"""Scores of a trained model of run times, as result tables and as a card."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import NamedValue, literal, named, note
from gpuctl.core.numbers import lasting, number, percent
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.predictors import evaluate, history, time_split
from gpuctl.predictors.baselines import BASELINES
from gpuctl.predictors.job_table import POPULATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.core.results import SourceInfo
    from gpuctl.predictors.history import TrainedModel

SECTIONS = (("run_times", "How near predictions come"), ("learning", "What was learnt from"))
TABLES = ("runtime_predictors", "runtime_scores", "runtime_jobs", "runtime_features")

_WIDE = (
    "median_ape_pct", "mae_s", "mean_abs_log_error", "within_10_pct", "within_50_pct", "rank_correlation", "pinball_s",
    "coverage_pct", "width_mean_s", "width_factor",
)  # fmt: skip
_FIRST = 9
_PREDICTOR = Column(
    "predictor", "-", "history is the model; the others are rules that need no training, see the notes."
)
_JOBS = Column("jobs", "jobs", "Jobs scored: those that it predicts.")


def result(trained: TrainedModel, sources: Sequence[SourceInfo], command: str) -> Analysis:
    """Return the complete result of a training.

    Args:
        trained: by `gpuctl.predictors.history.train`.
        sources: the files that the jobs came from.
        command: the command line, as given by the user.
    """
    tables = (_compared(trained), _scores(trained), _population(trained), _features(trained))
    return Analysis(
        cluster=named("cluster", trained.table.name),
        tables=tables,
        sections=SECTIONS,
        sources=tuple(sources),
        settings=settings(trained),
        command=command,
        warnings=_warnings(trained),
    )


def settings(trained: TrainedModel) -> dict[str, Note]:
    """Return the settings that shape the figures."""
    quantiles = ", ".join(f"{quantile:g}" for quantile in trained.model.quantiles)
    texts = {
        "run time": "sum over a job's attempts; however it ended",
        "quantiles": quantiles,
        "size": trained.model.size,
        **{
            f"submitted, {name}": f"{_date(a, trained)} to {_date(b, trained)}"
            for name, (a, b) in trained.window.items()
        },
        "intervals of figures": f"95 %, bootstrap over days of submission (fewer than {evaluate.ENOUGH_DAYS} days: "
        f"over up to {evaluate.FEW_BLOCKS} blocks of equally many jobs), {evaluate.RESAMPLES} resamples, "
        f"seed {evaluate.SEED}",
        "trees": f"{history.TREES} a quantile, "
        + ", ".join(f"{name} {value}" for name, value in history.PARAMETERS.items()),
    }
    # numbers and dates computed by gpuctl
    return {name: literal(text) for name, text in texts.items()}


def about(trained: TrainedModel, sources: Sequence[SourceInfo]) -> dict[str, Any]:
    """Return the entries of the model's card; the same jobs give the same card, wherever the log is stored."""
    low, middle, high = trained.model.quantiles
    return {
        "title": f"Run times of {trained.table.name} from history",
        "what": "Predicts how long a job will run, in seconds, from what is known when it is submitted: who submits "
        "it, its name, size, limit and time, and how earlier jobs like it fared. Trees of LightGBM give quantile "
        f"{middle:g} as the prediction and an interval from quantile {low:g} to {high:g}.",
        "limits": [
            "Users, queues and names are kept as hashes only; anyone who knows a name can still look it up.",
            "Coverage is that of the jobs scored; where later jobs are unlike them, so is the coverage.",
            "The history ends with the log: predictions for jobs long after it get worse. Train again then.",
            *_warnings(trained),
        ],
        "settings": settings(trained),
        "population": dict(trained.table.counts),
        "parts": trained.parts,
        "data": {"sha256_of_what_was_learnt_from": trained.digest},
        "sources": [
            {"file": _name(source.path), "sha256": source.sha256, "rows": source.rows_loaded} for source in sources
        ],
        "scores": wide(trained).to_dicts(),
        "baselines": BASELINES | trained.others,
        "measures": {name: f"{text} [{unit}]" for name, (unit, text) in evaluate.MEASURES.items()},
        "features": {name: history.described()[name] for name in trained.model.features},
    }


def wide(trained: TrainedModel) -> pl.DataFrame:
    """Return one row per predictor, one column per measure."""
    scores = trained.scores
    order = scores["predictor"].unique(maintain_order=True)
    rows = []
    for name in order:
        own = scores.filter(pl.col("predictor") == name)
        values = dict(own.select("measure", "value").iter_rows())
        rows.append({"predictor": name, "jobs": own["jobs"][0], **{each: values.get(each) for each in _WIDE}})
    types = {"predictor": pl.String, "jobs": pl.Int64, **dict.fromkeys(_WIDE, pl.Float64)}
    return pl.DataFrame(rows, schema=types)


def _compared(trained: TrainedModel) -> ResultTable:
    low, middle, high = trained.model.quantiles
    rules = BASELINES | trained.others
    return ResultTable(
        name="runtime_predictors",
        section="run_times",
        title="The model against simple rules",
        question="How close are predictions made at submission to the run times?",
        population=_tested(trained),
        notes=(
            note(
                "history: the model; quantile {middle} is its prediction, {low} to {high} its interval, "
                "which should hold {value} of the jobs.",
                middle=literal(number(middle)),
                low=literal(number(low)),
                high=literal(number(high)),
                value=literal(percent(100 * (high - low))),
            ),
            *(
                literal(f"{name}: {text}")
                for name, text in rules.items()
                if name in trained.scores["predictor"].unique()
            ),
            note("Run times under 1 s count as 1 s. runtime_scores has every figure with its 95 % interval."),
        ),
        columns=(_PREDICTOR, _JOBS, *(Column(name, *evaluate.MEASURES[name]) for name in _WIDE)),
        frame=wide(trained),
        first_columns=_FIRST,
    )


def _scores(trained: TrainedModel) -> ResultTable:
    return ResultTable(
        name="runtime_scores",
        section="run_times",
        title="Scores with their intervals",
        question="How certain are the figures of the comparison?",
        population=_tested(trained),
        notes=tuple(literal(f"{name} [{unit}]: {text}") for name, (unit, text) in evaluate.MEASURES.items()),
        columns=(
            _PREDICTOR,
            Column("measure", "-", "See the notes."),
            _JOBS,
            Column("value", "-", "The figure, in the unit of its measure."),
            Column("low", "-", "Lower end of its 95 % interval; none where there are fewer than two blocks of jobs."),
            Column("high", "-", "Upper end."),
        ),
        frame=trained.scores,
        detail=True,
    )


def _population(trained: TrainedModel) -> ResultTable:
    texts = POPULATION | time_split.COUNTS
    counts = {**trained.table.counts, **trained.parts}
    rows = {"what": list(counts), "jobs": list(counts.values()), "meaning": [texts[name] for name in counts]}
    return ResultTable(
        name="runtime_jobs",
        section="learning",
        title="Jobs",
        question="Which jobs was the model trained and scored on, and which were left out?",
        population=note(
            "{jobs:,} job{jobs||s} of {name}.",
            jobs=trained.table.counts["jobs"],
            name=NamedValue("cluster", trained.table.name),
        ),
        notes=(
            note(
                "known = fit + ended_after_first_cut + calibration + ended_after_second_cut + test; jobs = known + "
                "those left out. Jobs that ended too late for a part are stood for by jobs that ran as long and "
                "were submitted earlier."
            ),
        ),
        columns=(
            Column("what", "-", "Which jobs."),
            Column("jobs", "jobs", "How many."),
            Column("meaning", "-", "Which jobs they are, and why they are left out."),
        ),
        frame=pl.DataFrame(rows, schema={"what": pl.String, "jobs": pl.Int64, "meaning": pl.String}),
    )


def _features(trained: TrainedModel) -> ResultTable:
    names = list(trained.model.features)
    texts = history.described()
    rows = {"feature": names, "gain_pct": trained.gain, "meaning": [texts[name] for name in names]}
    return ResultTable(
        name="runtime_features",
        section="learning",
        title="What predictions rest on",
        question="Which features does the model use, and how much does each help?",
        population=note("{fit:,} job{fit||s} that the model was fitted on.", fit=trained.parts["fit"]),
        notes=(note("Features missing from the log (users, names, limits …) are left out."),),
        columns=(
            Column("feature", "-", "Known at submission."),
            Column(
                "gain_pct", "%", "Share in what all splits of the trees gained on the jobs that they were fitted on."
            ),
            Column("meaning", "-", "What it is."),
        ),
        frame=pl.DataFrame(rows).sort("gain_pct", descending=True, maintain_order=True),
        detail=True,
    )


def _tested(trained: TrainedModel) -> Note:
    a, b = trained.window["test"]
    return note(
        "{test:,} job{test||s} of {name} with a known run time, submitted from {a} to {b}, after all that the model "
        "was fitted on.",
        test=trained.parts["test"],
        name=NamedValue("cluster", trained.table.name),
        a=literal(_date(a, trained)),
        b=literal(_date(b, trained)),
    )


def _warnings(trained: TrainedModel) -> tuple[Note, ...]:
    counts = trained.table.counts
    found = []
    if counts["end_estimated"]:
        found.append(
            note(
                "The log has no end of {end_estimated:,} job{end_estimated||s}: each is taken to have started when "
                "it was submitted "
                "(or eligible), so that later jobs may use it before its true end.",
                end_estimated=counts["end_estimated"],
            )
        )
    if counts["still_running"] or counts["never_ran"] or counts["ended_from_outside"]:
        found.append(
            note(
                "Left out: {never_ran:,} job{never_ran||s} that never ran, {still_running:,} that still ran when "
                "the log was "
                "taken, {ended_from_outside:,} ended by a node failure or a preemption.",
                never_ran=counts["never_ran"],
                still_running=counts["still_running"],
                ended_from_outside=counts["ended_from_outside"],
            )
        )
    return tuple(found)


def _date(second: float, trained: TrainedModel) -> str:
    if not trained.table.dated:
        return lasting(second)
    return str(datetime(1970, 1, 1) + timedelta(seconds=int(second)))


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
