"""Queued jobs without traffic or a model's shape: read from a CSV, and predicted from past jobs."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.core.notes import NamedValue, note
from gpuctl.core.storable_text import storable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from gpuctl.core.results import SourceInfo
    from gpuctl.predictors.job_description import JobDescription
    from gpuctl.predictors.runtime import Prediction

_SHOWN = 8
_log = logging.getLogger(__name__)


def read_listed(path: Path, *, alone: bool = True) -> tuple[pl.DataFrame, SourceInfo]:
    """Return listed jobs, one row each: ``job`` and the features of a history model; and their source.

    Rows without a job, and further rows of the same job, count as rejected. Other columns cause a warning.

    Args:
        path: a CSV.
        alone: no other reader uses this file, so that a column that is not read here is never read.

    Raises:
        InputError: it is not such a table.
    """
    import polars as pl

    from gpuctl.store.sources import jobs_csv

    try:
        table = pl.read_csv(read_whole(path, most=MOST_TABLE, hint=_LISTED), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"is not a valid CSV: {str(error).splitlines()[0]}", path=str(path), hint=_LISTED) from error
    names = [HISTORY_NAMES.get(c.strip(), c.strip()) for c in table.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        columns = [old for old, new in zip(table.columns, names, strict=True) if new == twice]
        raise InputError(f"has several columns of one meaning: {', '.join(columns)}", path=str(path), hint=_LISTED)
    table.columns = names
    if "job" not in table.columns:
        raise InputError(f"has no column job_id; found: {', '.join(table.columns)}", path=str(path), hint=_LISTED)
    if "name" not in table.columns and "model" in table.columns:
        table = table.rename({"model": "name"})
    numeric = [c for c in _NUMBERS if c in table.columns]
    known = [c for c in ("job", "user", "queue", "name", *_NUMBERS) if c in table.columns]
    unread = [c for c in table.columns if c not in known] if alone else []
    if unread:
        listed = ", ".join(map(repr, unread[:_SHOWN])) + (" …" if len(unread) > _SHOWN else "")
        _log.warning("%s: columns that are not read: %s", path.name, listed)
    cells = [pl.col(c).str.strip_chars().replace("", None) for c in ("job", *numeric)]
    read = (
        table.select(known)
        .with_columns(cells)
        .with_columns(pl.col(c).cast(pl.Float64, strict=False).alias(f"{c} read") for c in numeric)
    )
    # an empty cell is unknown; one that is not a number is an error
    bad = {c: pl.col(c).is_not_null() & ~_sensible(pl.col(f"{c} read")) for c in numeric}
    usable = read.filter(pl.col("job").is_not_null(), *(~each for each in bad.values()))
    if not usable.height:
        raise InputError(_no_job(read, bad), path=str(path), hint=_LISTED)
    jobs = usable.select(pl.col(f"{c} read").alias(c) if c in numeric else pl.col(c) for c in known)
    jobs = jobs.unique("job", keep="first", maintain_order=True)
    return jobs, jobs_csv(path, table.height, jobs.height)


def _sensible(number: pl.Expr) -> pl.Expr:
    return (number.is_finite() & (number >= 0)).fill_null(value=False)


def _no_job(read: pl.DataFrame, bad: Mapping[str, pl.Expr]) -> str:
    if not read.height:
        return "has a header and no rows"
    strange = next((c for c, fault in bad.items() if read.select(fault.any()).item()), None)
    if strange is None:
        return "job_id is empty in all rows"
    old = next((old for old, new in HISTORY_NAMES.items() if new == strange), strange)
    cell = read.filter(bad[strange])[strange][0]
    return (
        f"no row can be used: {strange if old not in HISTORY_NAMES else old} is {cell!r}, expected a number not below 0"
    )


HISTORY_NAMES = {
    "job_id": "job", "vc": "queue", "num_gpus": "gpus", "requested_time": "time_limit_s", "submit_time": "submit_s",
}  # fmt: skip
_NUMBERS = ("gpus", "nodes", "time_limit_s", "submit_s")
_LISTED = "expected job_id and any of user, queue, name, gpus, time_limit_s, submit_time"


def with_history(
    found: list[Prediction], listed: pl.DataFrame | None, described: list[JobDescription], model: Path
) -> list[Prediction]:
    """Predict from past jobs those that have no other answer."""
    from dataclasses import replace

    import polars as pl

    from gpuctl.predictors import history, history_folder

    trained = history_folder.load(model)
    open_jobs = [p.job for p in found if not math.isfinite(p.run_time_s)]
    rows = pl.DataFrame({"job": open_jobs}, schema={"job": pl.String})
    if listed is None:
        known = [(d.job, d.user or None, d.model or None, _known(d.shape.gpus)) for d in described]
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
                provenance=note(
                    "past jobs, as {model} was trained on them", model=NamedValue("path", storable(model.name))
                ),
            )  # fmt: skip
        result.append(p)
    return result


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None
