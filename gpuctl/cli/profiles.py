"""What ``gpuctl predict`` and ``gpuctl train overhead`` read from a trace store, and the tables that they print."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gpuctl.cli.common import message
from gpuctl.cli.inputs import is_store, opened
from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.results import Analysis, Column, ResultTable, SourceInfo
from gpuctl.core.text import storable
from gpuctl.reports.text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from gpuctl.cli.common import Settings
    from gpuctl.core.suspension_cost import Mode
    from gpuctl.ingest.pipeline.given_files import Kind
    from gpuctl.ingest.pipeline.report import IngestReport
    from gpuctl.predictors.overhead import Suspended, Tried
    from gpuctl.predictors.runtime import Described, Prediction
    from gpuctl.predictors.series import Series
    from gpuctl.predictors.transfer import Shape
    from gpuctl.store.database import Store

RECONSTRUCTED = (
    "Reconstructed from the published abstract of PickyMan (IPCCC 2022); the estimators and constants are ours."
)

HISTORY = (
    "Predicted from past jobs: the card of the model says on which jobs it was scored and how near it came; its "
    "history ends with the log that it was trained on."
)

PREDICTIONS = (
    Column("job", "-", "The job's name."),
    Column("epoch_s", "s", "Length of an epoch, the first one left out."),
    Column("run_time_s", "s", "From the job's start to its end."),
    Column("lower_s", "s", "Lower end of the run time's interval: four of five such jobs end inside it."),
    Column("upper_s", "s", "Upper end of it."),
    Column("remaining_s", "s", "Of the run time, after the end of the profile."),
    Column("elapsed_s", "s", "What the profile covers."),
    Column("phase_s", "s", "Since the last epoch began, at the end of the profile."),
    Column("epoch_left_s", "s", "Of the epoch under way at the end of the profile, as its traffic tells."),
    Column("epoch_left_lower_s", "s", "Lower end of its interval: four of five such epochs end inside it."),
    Column("epoch_left_upper_s", "s", "Upper end of it."),
    Column("method", "-", "volume, periodicity or change-points: from the job's own traffic; transfer: from other jobs "
           "of its model; history: from past jobs; none: no answer."),
    Column("cached", "-", "Whether its later epochs are read from a cache, as far as its traffic tells."),
    Column("provenance", "-", "What the answer rests on."),
    Column("reason", "-", "Why there is none, or what lowers the trust in it."),
)  # fmt: skip
COSTS = (
    Column("suspend_s", "s", "From the request until its GPUs are free; up to the end of the epoch the job goes on."),
    Column("suspend_lower_s", "s", "Lower end of its interval: four of five such suspensions are inside it; none with "
           "the defaults, which no measurement stands behind."),
    Column("suspend_upper_s", "s", "Upper end of it."),
    Column("resume_s", "s", "From its next start until it makes progress."),
    Column("resume_lower_s", "s", "Lower end of its interval."),
    Column("resume_upper_s", "s", "Upper end of it."),
    Column("loss_s", "s", "On GPUs without progress that counts, in all."),
    Column("loss_lower_s", "s", "Lower end of its interval."),
    Column("loss_upper_s", "s", "Upper end of it."),
    Column("method", "-", "defaults: the constants of the documentation; fitted: a model of gpuctl train overhead."),
    Column("error_pct", "%", "Mean absolute error of the fitted model's loss for jobs that it has not seen."),
)  # fmt: skip
FITTED = (
    Column("cost", "-", "suspend_s, resume_s, loss_s as gpuctl predict overhead gives them; overhead_s: suspend_s and "
           "resume_s together; abort_s: suspend_s of jobs that were stopped without finishing their epochs."),
    Column("suspensions", "suspensions", "Predicted, with what was known at the request."),
    Column("mean_pct", "%", "Mean absolute relative error."),
    Column("median_pct", "%", "Median of it."),
    Column("worst_pct", "%", "The largest."),
    Column("epochs_pct", "%", "Mean absolute error as a share of the job's epoch, where the rest of one is in it."),
    Column("inside_pct", "%", "Inside an interval that was meant to hold four of five, and that other jobs' gave."),
)  # fmt: skip
PROMISED = {"predictions": "predictions", "overhead": None}
"""The key that a table's rows have in JSON, too; None: the columns of its one row are keys."""


@dataclass(frozen=True)
class Asked:
    """The options of ``predict runtime``."""

    paths: list[Path]
    jobs: Path | None
    names: tuple[str, ...]
    epochs: int | None
    model: Path | None
    db: Path | None
    cluster: str | None
    cumulative: bool


@dataclass(frozen=True)
class Suspension:
    """The options of ``predict overhead``."""

    epoch_s: float | None
    phase_s: float
    left: tuple[float, float, float] | None
    checkpoint_bytes: float | None
    first_bytes: float
    gpus: int
    bandwidth: float | None
    mode: str
    model_name: str | None


def predict_runtime(asked: Asked, given: Settings, command: str) -> tuple[Analysis, bool]:
    """Predict the run times of the jobs that the inputs name; also tells whether some input could not be read.

    Raises:
        UsageError: nothing to predict is named.
        InputError: a model cannot be read.
    """
    from gpuctl.cli.queued_jobs import read_listed, with_history
    from gpuctl.ingest.pipeline import given_files
    from gpuctl.predictors.runtime import Described, predict
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    listed, sources = None, tuple[SourceInfo, ...]()
    paths = asked.paths
    if asked.jobs is not None:
        if asked.model is not None:
            listed, source = read_listed(asked.jobs)
            sources = (source,)
        if asked.model is None or given_files.describes_training(asked.jobs):
            given_files.check_training(asked.jobs, epochs=asked.epochs is None and asked.model is None)
            paths = [*paths, asked.jobs]
    check_named(paths, [given_files.TRAFFIC, given_files.TRAINING], cumulative=asked.cumulative)
    described: list[Described] = []
    profiles: dict[str, Series] = {}
    cluster, failed = "", False
    if paths or asked.db is not None or listed is None:
        with opened(
            paths, asked.db, asked.cluster, given, timezone=None, columns=None, doing="predict",
            cumulative=asked.cumulative,
        ) as (path, name, report), Store(path) as store:  # fmt: skip
            cluster = store.cluster(asked.cluster or name)
            described, profiles = read_described(store, cluster), read_series(store, cluster)
            sources = tuple({s.path: s for s in (*read_sources(store, cluster), *sources)}.values())
        failed = fell_short(report, paths)
    more = [] if listed is None else listed["job"].to_list()
    described += [Described(job) for job in sorted(set(more) - {d.job for d in described} - set(profiles))]
    names = {d.job for d in described} | set(profiles)
    unknown = next((job for job in asked.names if job not in names), None)
    if unknown is not None:
        raise UsageError(f"--job {unknown}: neither traffic nor a description of such a job was read")
    if not names:
        raise InputError(
            "no job with traffic or a description was found", hint="a CSV with the columns job_id,t,bytes; --jobs FILE"
        )
    epochs = math.nan if asked.epochs is None else float(asked.epochs)
    found = predict(described, profiles, epochs=epochs, wanted=asked.names or None)
    settings = {"interval": "80 % of such jobs end inside it", "epochs": str(asked.epochs or "as each job has them")}
    if asked.model is not None:
        found = with_history(found, listed, described, asked.model)
        settings["history"] = storable(str(asked.model))
    answered = sum(math.isfinite(p.run_time_s) for p in found)
    table = ResultTable(
        name="predictions",
        section="predictions",
        title="Predicted run times",
        question="How long will each job run, and how sure is that?",
        population=f"{len(found):,} jobs; {answered:,} have an answer, {len(profiles):,} have traffic of their own.",
        notes=(),
        columns=PREDICTIONS,
        frame=_frame(found),
        first_columns=5,
    )
    methods = {p.method for p in found}
    warnings = ((RECONSTRUCTED,) if profiles or methods - {"history", "none"} else ()) + (
        (HISTORY,) if "history" in methods else ()
    )
    return _analysis(cluster or "jobs", (table,), settings, command, sources, warnings=warnings), failed


def predict_overhead(asked: Suspension, model: Path | None, command: str) -> Analysis:
    """Predict what one suspension costs.

    Raises:
        InputError: the model cannot be read.
    """
    import polars as pl

    from gpuctl.core import suspension_cost

    size = asked.checkpoint_bytes
    if size is None:
        size = min(suspension_cost.CHECKPOINT_BYTES_PER_GPU * asked.gpus, suspension_cost.MOST_CHECKPOINT_BYTES)
    epoch_s = math.inf if asked.epoch_s is None else asked.epoch_s
    mode: Mode = asked.mode  # type: ignore[assignment]
    error: float | None = None
    bounds: tuple[float | None, ...] = (None,) * 6
    if model is None:
        rate = asked.bandwidth or suspension_cost.SERVER_RATE
        resume = suspension_cost.resume_seconds(size, asked.first_bytes, rate)
        stop = suspension_cost.stop_seconds(size, rate)
        left_s = asked.left[0] if asked.left else epoch_s - asked.phase_s
        phase_s = epoch_s - left_s if math.isfinite(epoch_s) and mode != "abort" else asked.phase_s
        costs = suspension_cost.costs(stop, resume, epoch_s=epoch_s, phase_s=phase_s, mode=mode)
        method = "defaults"
    else:
        if asked.bandwidth is not None:
            raise UsageError("--bandwidth and --model: a fitted model has its own rates", hint="give one of them")
        from gpuctl.predictors.card import load_folder
        from gpuctl.predictors.epoch_left import Rest
        from gpuctl.predictors.overhead import from_json

        fitted = from_json(load_folder(model, "overhead").json("overhead.json"), str(model / "overhead.json"))
        left = Rest(*asked.left) if asked.left else None
        found = fitted.predict(
            checkpoint_bytes=size, dataset_bytes=asked.first_bytes, gpus=asked.gpus, epoch_s=epoch_s,
            phase_s=asked.phase_s, mode=mode, model=asked.model_name or "", left=left,
        )  # fmt: skip
        costs, bounds = found.costs, tuple(map(_plain, (*found.suspend_s, *found.resume_s, *found.loss_s)))
        method, error = "fitted", 100 * fitted.error.get("loss_s", math.nan)
    row = (
        costs.suspend_s, *bounds[:2], costs.resume_s, *bounds[2:4], costs.loss_s, *bounds[4:], method,
        None if error is None else _plain(error),
    )  # fmt: skip
    types = {c.name: pl.String if c.name == "method" else pl.Float64 for c in COSTS}
    frame = pl.DataFrame([row], schema=types, orient="row")
    table = ResultTable(
        name="overhead",
        section="overhead",
        title="Cost of one suspension",
        question="What does suspending and resuming this job cost?",
        population=f"One job of {plural(asked.gpus, 'GPU')} with a checkpoint of {size:,.0f} bytes, mode {asked.mode}.",
        notes=(),
        columns=COSTS,
        frame=frame,
    )
    return _analysis("suspension", (table,), {"mode": asked.mode}, command, ())


def train_overhead(
    paths: list[Path], place: Path, given: Settings, *, db: Path | None, cluster: str | None, command: str
) -> tuple[Analysis, bool]:
    """Fit what suspensions cost, save the model, and say how well it predicts suspensions that it has not seen.

    Raises:
        InputError: too few suspensions were measured.
    """
    from gpuctl.ingest.pipeline import given_files
    from gpuctl.predictors import overhead
    from gpuctl.predictors.card import save_folder
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    check_named(paths, [given_files.SUSPENSIONS])
    with opened(paths, db, cluster, given, timezone=None, columns=None, doing="learn from") as (
        path, name, report,
    ), Store(path) as store:  # fmt: skip
        chosen = store.cluster(cluster or name)
        rows, sources = read_suspensions(store, chosen), read_sources(store, chosen)
    fitted = overhead.fit(rows)
    usable, lacking = overhead.usable(rows)
    population = f"{len(usable):,} measured suspensions of {len({r.job for r in usable}):,} jobs."
    notes = tuple(f"Left out: {plural(count, 'suspension')} without {name}." for name, count in lacking.items())
    for note in notes:
        message(note)
    share = 100 - 100 // overhead.MOST_FOLDS
    alone = (
        "Each suspension is predicted by a model fitted on all others, other suspensions of its job among them; of "
        f"more than {overhead.MOST_FOLDS}, by one fitted on {share} % of them."
    )
    new = "Each suspension is predicted by a model fitted on those of all other jobs."
    tables = (
        ResultTable(
            name="overhead_errors",
            section="overhead",
            title="Errors of the fitted costs",
            question="How near do predictions come for suspensions that the model has not seen?",
            population=population,
            notes=(alone, *notes),
            columns=FITTED,
            frame=_errors(overhead.left_out(usable, "suspension")),
        ),
        ResultTable(
            name="overhead_new_jobs",
            section="overhead",
            title="Errors for jobs that were never suspended",
            question="How near do they come for jobs that the model has not seen?",
            population=population,
            notes=(new, *notes),
            columns=FITTED,
            frame=_errors(overhead.left_out(usable, "job")),
        ),
    )
    about = {
        "title": "What suspending and resuming a job costs",
        "population": population,
        "terms": list(overhead.TERMS),
        "mean_absolute_error_for_new_jobs": fitted.error,
        "source": RECONSTRUCTED,
    }
    save_folder(place, "overhead", about, {"overhead.json": overhead.to_json(fitted)})
    return _analysis(chosen, tables, {}, command, sources), fell_short(report, paths)


def _errors(tests: list[Tried]) -> pl.DataFrame:
    """A row of `FITTED` for each cost."""
    import numpy as np
    import polars as pl

    from gpuctl.predictors.overhead import inside

    lines = []
    for cost in dict.fromkeys(test.cost for test in tests):
        errors = 100 * abs(np.array([t.error for t in tests if t.cost == cost]))
        epochs = [t.epochs for t in tests if t.cost == cost and math.isfinite(t.epochs)]
        held = inside(tests, cost)
        lines.append((
            cost, int(errors.size), float(errors.mean()), float(np.median(errors)), float(errors.max()),
            100 * float(np.mean(epochs)) if epochs else None, 100 * float(np.mean(held)) if held else None,
        ))  # fmt: skip
    kinds: dict[str, Any] = {c.name: pl.Float64 for c in FITTED} | {"cost": pl.String, "suspensions": pl.Int64}
    return pl.DataFrame(lines, schema=kinds, orient="row")


def check_named(
    paths: Sequence[Path], kinds: Sequence[Kind], *, columns: str | None = None, cumulative: bool = False
) -> None:
    """See that every file that the command line names is one that can be read.

    Raises:
        InputError: one is empty, junk, or lacks a column that it needs.
    """
    from gpuctl.ingest.pipeline.given_files import check_known
    from gpuctl.ingest.pipeline.registry import formats_for

    check_known([p for p in paths if not is_store(p)], formats_for(columns, cumulative=cumulative), kinds)


def fell_short(report: IngestReport | None, paths: Sequence[Path]) -> bool:
    """Whether something that was named gave no row, or could not be read; what was not told yet is told."""
    from gpuctl.ingest.read.files import clean

    if report is None:
        return False
    rowless = [source for source in report.rowless if source.path in {clean(path) for path in paths}]
    for source in rowless:
        if not source.rows_in:
            message(f"gpuctl: {source.path}: has a header and no rows")
    return report.failed or bool(rowless)


def promised(result: Analysis) -> dict[str, Any]:
    """The rows of a prediction under the keys that other programs go by: numbers that are not finite are null."""
    from gpuctl.reports.export import values

    table = result.tables[0]
    rows = list(values.objects(table))
    key = PROMISED[table.name]
    return {key: rows} if key else rows[0]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- from the store


def read_described(store: Store, cluster: str) -> list[Described]:
    """The jobs of the profile database."""
    from gpuctl.predictors.runtime import Described

    rows = store.frame(
        "SELECT job, model, batch, samples, gpus, epochs, dataset_bytes, coalesce(\"user\", '') AS owner, epoch_s, "
        "first_epoch_s, cached, validation_samples, validation_bytes FROM profiles "
        "WHERE cluster = $cluster ORDER BY job",
        {"cluster": cluster},
    )
    return [
        Described(
            r["job"], r["model"], _shape(r), _real(r["epochs"]), _real(r["dataset_bytes"]), r["owner"],
            _real(r["epoch_s"]), _real(r["first_epoch_s"]), r["cached"],
        )
        for r in rows.iter_rows(named=True)
    ]  # fmt: skip


def _shape(row: Mapping[str, Any]) -> Shape:
    from gpuctl.predictors.transfer import Shape, validated

    samples, batch, gpus = (_real(row[name]) for name in ("samples", "batch", "gpus"))
    told = _real(row["validation_samples"])
    if math.isnan(told):
        told = validated(samples, _real(row["dataset_bytes"]), _real(row["validation_bytes"]))
    return Shape(samples, batch, gpus, told)


def read_series(store: Store, cluster: str) -> dict[str, Series]:
    """The traffic of each job that has at least two samples."""
    from gpuctl.predictors.series import series

    rows = store.frame(
        "SELECT job, epoch_us(ts) / 1e6 AS t, sum(bytes_read) AS bytes, max(seconds) AS seconds FROM traffic "
        "WHERE cluster = $cluster GROUP BY job, ts ORDER BY job, ts",
        {"cluster": cluster},
    )
    found = {}
    for (job,), part in rows.group_by("job", maintain_order=True):
        if part.height >= 2:
            t, received, seconds = (part[c].fill_null(math.nan).to_numpy() for c in ("t", "bytes", "seconds"))
            found[str(job)] = series(t, received, seconds)
    return found


def read_suspensions(store: Store, cluster: str) -> list[Suspended]:
    """The measured suspensions."""
    from gpuctl.predictors.overhead import Suspended

    rows = store.frame(
        "SELECT job, coalesce(model, '') AS model, coalesce(mode, 'epoch') AS mode, checkpoint_bytes, dataset_bytes, "
        "gpus, epoch_s, epoch_done_s, epoch_left_s, suspend_s, resume_s, loss_s FROM suspensions "
        "WHERE cluster = $cluster ORDER BY ALL",
        {"cluster": cluster},
    )
    return [Suspended(job, model, mode, *map(_real, numbers)) for job, model, mode, *numbers in rows.iter_rows()]


def _real(value: float | None) -> float:
    return math.nan if value is None else float(value)


# ---- results


def _frame(found: list[Prediction]) -> pl.DataFrame:
    import polars as pl

    from gpuctl.predictors.runtime import Prediction

    names = [c.name for c in PREDICTIONS]
    texts = {"job", "method", "provenance", "reason"}
    kinds: Mapping[str, Any] = {
        n: pl.String if n in texts else pl.Boolean if n == "cached" else pl.Float64 for n in names
    }
    assert {f.name for f in fields(Prediction)} == set(names)  # noqa: S101 - a column for each field
    rows = [tuple(_plain(getattr(p, n)) for n in names) for p in found]
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _analysis(
    cluster: str,
    tables: tuple[ResultTable, ...],
    settings: dict[str, str],
    command: str,
    sources: tuple[SourceInfo, ...],
    *,
    warnings: tuple[str, ...] = (RECONSTRUCTED,),
) -> Analysis:
    from gpuctl import __version__

    rejected = tuple(
        f"{s.rows_rejected} of {plural(s.rows_in, 'row')} of {s.path} were rejected" for s in sources if s.rows_rejected
    )

    return Analysis(
        cluster=cluster,
        tables=tables,
        sections=((tables[0].section, tables[0].title),),
        sources=sources,
        settings=settings,
        command=command,
        version=__version__,
        warnings=(*warnings, *rejected),
    )
