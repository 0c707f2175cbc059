"""What ``gpuctl predict`` and ``gpuctl train overhead`` read from a trace store, and the tables that they print."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gpuctl.cli.reading import opened
from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.files import MOST_TABLE, read_head, read_whole
from gpuctl.core.results import Analysis, Column, ResultTable, SourceInfo
from gpuctl.core.texts import storable
from gpuctl.reports.text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from gpuctl.cli.common import Settings
    from gpuctl.core.suspension import Mode
    from gpuctl.predictors.overhead import Suspended
    from gpuctl.predictors.runtime import Described, Prediction
    from gpuctl.predictors.series import Series
    from gpuctl.trace.store import Store

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
    Column("method", "-", "volume, periodicity or change-points: from the job's own traffic; transfer: from other jobs "
           "of its model; history: from past jobs; none: no answer."),
    Column("cached", "-", "Whether its later epochs are read from a cache, as far as its traffic tells."),
    Column("provenance", "-", "What the answer rests on."),
    Column("reason", "-", "Why there is none, or what lowers the trust in it."),
)  # fmt: skip
COSTS = (
    Column("suspend_s", "s", "From the request until its GPUs are free; up to the end of the epoch the job goes on."),
    Column("resume_s", "s", "From its next start until it makes progress."),
    Column("loss_s", "s", "On GPUs without progress that counts, in all."),
    Column("method", "-", "defaults: the constants of the documentation; fitted: a model of gpuctl train overhead."),
    Column("error_pct", "%", "Mean absolute error of the fitted model's loss for suspensions that it has not seen."),
)
FITTED = (
    Column(
        "cost",
        "-",
        "suspend_s, resume_s, loss_s as gpuctl predict overhead gives them; overhead_s: suspend_s and "
        "resume_s together; abort_s: suspend_s of jobs that were stopped without finishing their epochs.",
    ),
    Column("suspensions", "suspensions", "Predicted."),
    Column("mean_pct", "%", "Mean absolute relative error."),
    Column("median_pct", "%", "Median of it."),
    Column("worst_pct", "%", "The largest."),
)
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
    from gpuctl.predictors.runtime import Described, predict
    from gpuctl.trace.sources import read_sources
    from gpuctl.trace.store import Store

    listed, sources = None, tuple[SourceInfo, ...]()
    if asked.jobs is not None and asked.model is not None:
        listed, source = read_listed(asked.jobs)
        sources = (source,)
    paths = [*asked.paths, *([asked.jobs] if asked.jobs is not None and _describes_training(asked.jobs) else [])]
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
        failed = report is not None and report.failed
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
        found = _with_history(found, listed, described, asked.model)
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
    return _analysis(cluster or "jobs", table, settings, command, sources, warnings=warnings), failed


def predict_overhead(asked: Suspension, model: Path | None, command: str) -> Analysis:
    """Predict what one suspension costs.

    Raises:
        InputError: the model cannot be read.
    """
    import polars as pl

    from gpuctl.core import suspension

    size = asked.checkpoint_bytes
    if size is None:
        size = min(suspension.CHECKPOINT_BYTES_PER_GPU * asked.gpus, suspension.MOST_CHECKPOINT_BYTES)
    epoch_s = math.inf if asked.epoch_s is None else asked.epoch_s
    mode: Mode = asked.mode  # type: ignore[assignment]
    error: float | None = None
    if model is None:
        rate = asked.bandwidth or suspension.SERVER_RATE
        resume = suspension.resume_seconds(size, asked.first_bytes, rate)
        stop = suspension.stop_seconds(size, rate)
        costs = suspension.costs(stop, resume, epoch_s=epoch_s, phase_s=asked.phase_s, mode=mode)
        method = "defaults"
    else:
        if asked.bandwidth is not None:
            raise UsageError("--bandwidth and --model: a fitted model has its own rates", hint="give one of them")
        from gpuctl.predictors.card import load_folder
        from gpuctl.predictors.overhead import from_json

        fitted = from_json(load_folder(model, "overhead").json("overhead.json"), str(model / "overhead.json"))
        costs = fitted.costs(
            checkpoint_bytes=size, dataset_bytes=asked.first_bytes, gpus=asked.gpus, epoch_s=epoch_s,
            phase_s=asked.phase_s, mode=mode, model=asked.model_name or "",
        )  # fmt: skip
        method, error = "fitted", 100 * fitted.error.get("loss_s", math.nan)
    row = (costs.suspend_s, costs.resume_s, costs.loss_s, method, error)
    types = {"suspend_s": pl.Float64, "resume_s": pl.Float64, "loss_s": pl.Float64, "method": pl.String}
    frame = pl.DataFrame([row], schema={**types, "error_pct": pl.Float64}, orient="row")
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
    return _analysis("suspension", table, {"mode": asked.mode}, command, ())


def train_overhead(
    paths: list[Path], place: Path, given: Settings, *, db: Path | None, cluster: str | None, command: str
) -> tuple[Analysis, bool]:
    """Fit what suspensions cost, save the model, and say how well it predicts suspensions that it has not seen.

    Raises:
        InputError: too few suspensions were measured.
    """
    import numpy as np
    import polars as pl

    from gpuctl.predictors import overhead
    from gpuctl.predictors.card import save_folder
    from gpuctl.trace.sources import read_sources
    from gpuctl.trace.store import Store

    with opened(paths, db, cluster, given, timezone=None, columns=None, doing="learn from") as (
        path, name, report,
    ), Store(path) as store:  # fmt: skip
        chosen = store.cluster(cluster or name)
        rows, sources = read_suspensions(store, chosen), read_sources(store, chosen)
    fitted = overhead.fit(rows)
    errors = overhead.left_out(rows)
    lines = [
        (
            key,
            int(e.size),
            100 * float(abs(e).mean()),
            100 * float(np.median(abs(e))),
            100 * float(abs(e).max()),
        )
        for key, e in errors.items()
        if e.size
    ]
    frame = pl.DataFrame(lines, schema=[c.name for c in FITTED], orient="row")
    population = f"{len(rows):,} measured suspensions of {len({r.job for r in rows}):,} jobs."
    table = ResultTable(
        name="overhead_errors",
        section="overhead",
        title="Errors of the fitted costs",
        question="How near do predictions come for suspensions that the model has not seen?",
        population=population,
        notes=(
            f"Each suspension is predicted by a model fitted on all others; of more than {overhead.MOST_FOLDS}, by one "
            f"fitted on {100 - 100 // overhead.MOST_FOLDS} % of them.",
        ),
        columns=FITTED,
        frame=frame,
    )
    about = {
        "title": "What suspending and resuming a job costs",
        "population": population,
        "terms": list(overhead.TERMS),
        "mean_absolute_error": fitted.error,
        "source": RECONSTRUCTED,
    }
    save_folder(place, "overhead", about, {"overhead.json": overhead.to_json(fitted)})
    return _analysis(chosen, table, {}, command, sources), report is not None and report.failed


def promised(result: Analysis) -> dict[str, Any]:
    """The rows of a prediction under the keys that other programs go by: numbers that are not finite are null."""
    from gpuctl.reports import flat

    table = result.tables[0]
    rows = list(flat.objects(table))
    key = PROMISED[table.name]
    return {key: rows} if key else rows[0]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- from the store


def read_described(store: Store, cluster: str) -> list[Described]:
    """The jobs of the profile database."""
    from gpuctl.predictors.runtime import Described
    from gpuctl.predictors.transfer import Shape

    rows = store.frame(
        "SELECT job, model, batch, samples, gpus, epochs, dataset_bytes, coalesce(\"user\", '') AS owner, epoch_s, "
        "first_epoch_s, cached FROM profiles WHERE cluster = $cluster ORDER BY job",
        {"cluster": cluster},
    )
    return [
        Described(
            r["job"], r["model"], Shape(_real(r["samples"]), _real(r["batch"]), _real(r["gpus"])), _real(r["epochs"]),
            _real(r["dataset_bytes"]), r["owner"], _real(r["epoch_s"]), _real(r["first_epoch_s"]), r["cached"],
        )
        for r in rows.iter_rows(named=True)
    ]  # fmt: skip


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
        "gpus, epoch_s, epoch_left_s, suspend_s, resume_s, loss_s FROM suspensions WHERE cluster = $cluster "
        "ORDER BY ALL",
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
    table: ResultTable,
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
        tables=(table,),
        sections=((table.section, table.title),),
        sources=sources,
        settings=settings,
        command=command,
        version=__version__,
        warnings=(*warnings, *rejected),
    )


# ---- history


def _describes_training(path: Path) -> bool:
    """Whether a CSV of jobs tells models and batches, rather than what a queue tells of them."""
    from gpuctl.ingest.formats.profile_jobs import sniff

    try:
        return sniff(path.name, read_head(path, 1 << 16)) is not None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=str(path)) from error


def read_listed(path: Path) -> tuple[pl.DataFrame, SourceInfo]:
    """Jobs as a queue tells of them, one row each: ``job`` and what a model of history looks at; and where from.

    Rows without a job, and further rows of the same job, count as rejected.

    Raises:
        InputError: no such table.
    """
    import polars as pl

    from gpuctl.trace.sources import jobs_csv

    try:
        table = pl.read_csv(read_whole(path, most=MOST_TABLE, hint=_LISTED), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"is no CSV: {str(error).splitlines()[0]}", path=str(path), hint=_LISTED) from error
    names = [HISTORY_NAMES.get(c.strip(), c.strip()) for c in table.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        said = [old for old, new in zip(table.columns, names, strict=True) if new == twice]
        raise InputError(f"has several columns of one meaning: {', '.join(said)}", path=str(path), hint=_LISTED)
    table.columns = names
    if "job" not in table.columns:
        raise InputError(f"has no column job_id; found: {', '.join(table.columns)}", path=str(path), hint=_LISTED)
    if "name" not in table.columns and "model" in table.columns:
        table = table.rename({"model": "name"})
    numbers = [pl.col(c).cast(pl.Float64, strict=False) for c in _NUMBERS if c in table.columns]
    known = [c for c in ("job", "user", "queue", "name", *_NUMBERS) if c in table.columns]
    jobs = table.with_columns(numbers).select(known).filter(pl.col("job").is_not_null())
    jobs = jobs.unique("job", keep="first", maintain_order=True)
    return jobs, jobs_csv(path, table.height, jobs.height)


HISTORY_NAMES = {
    "job_id": "job", "vc": "queue", "num_gpus": "gpus", "requested_time": "time_limit_s", "submit_time": "submit_s",
}  # fmt: skip
_NUMBERS = ("gpus", "nodes", "time_limit_s", "submit_s")
_LISTED = "expected job_id and any of user, queue, name, gpus, time_limit_s, submit_time"


def _with_history(
    found: list[Prediction], listed: pl.DataFrame | None, described: list[Described], model: Path
) -> list[Prediction]:
    """Answer from past jobs where nothing else answers."""
    from dataclasses import replace

    import polars as pl

    from gpuctl.predictors import history, historyfolder

    trained = historyfolder.load(model)
    open_jobs = [p.job for p in found if not math.isfinite(p.run_time_s)]
    rows = pl.DataFrame({"job": open_jobs}, schema={"job": pl.String})
    if listed is None:
        known = [(d.job, d.user or None, d.model or None, _plain(d.shape.gpus)) for d in described]
        listed = pl.DataFrame(
            known, schema={"job": pl.String, "user": pl.String, "name": pl.String, "gpus": pl.Float64}, orient="row"
        )
    rows = rows.join(listed, on="job", how="left", maintain_order="left")
    answers = {row[0]: row[1:] for row in history.predict(trained, rows).iter_rows()}
    result = []
    for p in found:
        if p.job in answers:
            run, lower, upper = (max(v, p.elapsed_s) if math.isfinite(p.elapsed_s) else v for v in answers[p.job])
            p = replace(  # noqa: PLW2901 - the same prediction, answered
                p, run_time_s=run, lower_s=lower, upper_s=upper, remaining_s=run - p.elapsed_s, method="history",
                provenance=f"past jobs, as {storable(model.name)} was trained on them",
            )  # fmt: skip
        result.append(p)
    return result
