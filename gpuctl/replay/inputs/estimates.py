"""Run times that policies see and time limits that they plan with: true, requested, predicted, or with errors."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.core.notes import NamedValue, literal, note, together
from gpuctl.core.numbers import number as decimal
from gpuctl.core.path_checks import is_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Workload


_HINT = "given, true, error:F with F from 0 to 3, or a CSV with the columns job,run_time_s"


def with_estimates(workload: Workload, how: str) -> Workload:
    """Return the same jobs with the run times that policies see.

    Args:
        workload: the jobs.
        how: ``given``: what the input predicts, else the true ones; ``true``; ``error:F``: true ones times
            ``exp(F * z)``, z normal and made from the job's name alone, so that every policy, load and node sees the
            same error; or a CSV with the columns ``job`` and ``run_time_s``, which ``gpuctl predict runtime`` writes.

    Raises:
        UsageError: none of these.
        InputError: the CSV cannot be read, or has no prediction for any job.
    """
    if how == "given":
        return workload
    if how == "true":
        return dataclasses.replace(workload, predicted=None)
    name, colon, number = how.partition(":")
    if name == "error" and colon:
        try:
            size = float(number)
        except ValueError:
            size = math.nan
        if not 0 <= size <= 3:
            raise UsageError(f"--run-times {how}: not understood", hint=f"expected {_HINT}")
        predicted = workload.true_run_time * np.exp(size * normal(workload.ids))
        return _with_note(
            workload,
            predicted,
            note("run times given to policies are wrong by a factor of exp({size} z)", size=literal(decimal(size))),
        )
    if not is_file(how):
        raise UsageError(f"--run-times {how[:60]}: not understood, and no such file", hint=f"expected {_HINT}")
    return _from_csv(workload, how)


def normal(ids: tuple[str, ...]) -> Floats:
    """A standard normal number for each name, the same on every machine."""
    from scipy.special import ndtri

    digest = np.array([int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest()) for name in ids], float)
    return np.asarray(ndtri((digest + 0.5) / 2.0**56), np.float64)


def read_seconds(workload: Workload, path: str, columns: tuple[str, ...]) -> Floats:
    """Seconds of each job in a CSV, from the first of the columns that it has; NaN if it lacks a job.

    Raises:
        InputError: it is not a valid CSV, has no such columns, or names a job twice.
    """
    import polars as pl

    hint = f"expected job,{columns[0]}"
    try:
        table = pl.read_csv(read_whole(Path(path), most=MOST_TABLE), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"is not a valid CSV: {str(error).splitlines()[0]}", path=path, hint=hint) from error
    column = next((name for name in columns if name in table.columns), None)
    if "job" not in table.columns or column is None:
        raise InputError(f"lacks a column; found: {', '.join(table.columns)}", path=path, line=1, hint=hint)
    seconds = pl.col(column).cast(pl.Float64, strict=False)
    table = table.select("job", s=seconds).filter(pl.col("s").is_finite() & (pl.col("s") > 0))
    if table["job"].is_duplicated().any():
        raise InputError("predicts a job twice", path=path, hint="expected one line per job")
    found = pl.DataFrame({"job": workload.ids}).join(table, on="job", how="left", maintain_order="left")["s"]
    return np.asarray(found.cast(pl.Float64).fill_null(np.nan).to_numpy(), np.float64).copy()


def _from_csv(workload: Workload, path: str) -> Workload:
    predicted = read_seconds(workload, path, ("run_time_s",))
    missing = np.isnan(predicted)
    if missing.all():
        raise InputError("predicts none of the jobs", path=path, hint="its column job must hold their names")
    predicted[missing] = float(np.median(predicted[~missing]))
    text = note(
        "run times given to policies: predictions for {value:,} of {size:,} job{size||s}",
        value=(~missing).sum(),
        size=workload.size,
    )
    more = note(", their median for the {missing:,} others", missing=missing.sum()) if missing.any() else note("")
    return _with_note(workload, predicted, note("{text}{more}", text=text, more=more))


def _with_note(workload: Workload, predicted: Floats, text: Note) -> Workload:
    return dataclasses.replace(workload, predicted=predicted, notes=(*workload.notes, text))


STEPS_S = tuple(60.0 * minutes for minutes in (30, 60, 120, 240, 480, 1440, 2880))
"""Limits as users round them: the next of these that is at least twice the run time; beyond, whole pairs of days."""

HINT = (
    "expected asked, true, factor:F, steps, error:F with F from 0 to 3, or a CSV with the columns job and time_limit_s "
    "or run_time_s (FILE:COLUMN for another column, such as upper_s); several with commas between them, each for the "
    "jobs without a limit from those before"
)


def plan_limits(workload: Workload, how: str) -> Workload:
    """Return the same jobs with the time limits that policies plan with.

    The limits that end jobs (``--limits``) stay the requested ones.

    Args:
        workload: the jobs.
        how: comma-separated parts, each for the jobs that earlier parts leave without a limit: ``asked``: requested in
            the input; ``true``: run times; ``factor:F``: F times the run times; ``steps``: the next of `STEPS_S` that
            is twice the run time or more; ``error:F``: run times times ``exp(F z)``, as for ``--run-times``; or a CSV
            with the columns ``job`` and ``time_limit_s``, or ``run_time_s`` as ``gpuctl predict runtime`` writes it;
            ``FILE:COLUMN`` names another column. Run times are those of one attempt, the longest.

    Raises:
        UsageError: none of these.
        InputError: the CSV cannot be read, or has no limit for any job.
    """
    if how == "asked":
        # a policy's own parameter may select them against --limits-from
        return workload if workload.planned is None else dataclasses.replace(workload, planned=None)
    parts = [how] if is_file(how) else [part.strip() for part in how.split(",")]
    limits = np.full(workload.size, np.nan)
    sources = []
    for part in parts:
        open_jobs = np.isnan(limits)
        limits = np.where(open_jobs, _limits(workload, part), limits)
        sources.append(
            note(
                "{part} for {value:,}",
                part=NamedValue("path", part),
                value=int((open_jobs & ~np.isnan(limits)).sum()),
            )
        )
    left = int(np.isnan(limits).sum())
    more = note("; {left:,} have none", left=left) if left else note("")
    plan = note(
        "time limits that policies plan with, of {size:,} job{size||s}: {sources}{more}",
        size=workload.size,
        sources=together(", ", sources),
        more=more,
    )
    return dataclasses.replace(workload, planned=limits, notes=(*workload.notes, plan))


def own_limits(workload: Workload, params: Mapping[str, object]) -> Workload:
    """Return the same jobs with the time limits that one policy plans with, if its parameter ``limits_from`` is set.

    Raises:
        UsageError, InputError: as for `plan_limits`.
    """
    how = params.get("limits_from")
    return plan_limits(workload, str(how)) if how else workload


def _limits(workload: Workload, how: str) -> Floats:
    true = _longest(workload)
    if how == "asked":
        return workload.time_limit
    if how == "true":
        return true
    if how == "steps":
        return steps(true)
    name, colon, number = how.partition(":")
    if name in {"factor", "error"} and colon:
        try:
            size = float(number)
        except ValueError:
            size = math.nan
        if name == "factor" and 0 < size < math.inf:
            return true * size
        if name == "error" and 0 <= size <= 3:
            return np.asarray(true * np.exp(size * normal(workload.ids)), np.float64)
        raise UsageError(f"--limits-from {how[:60]}: not understood", hint=HINT)
    path, colon, column = how.rpartition(":")
    if is_file(how) or not colon:
        path, column = how, ""
    if not is_file(path):
        raise UsageError(f"--limits-from {how[:60]}: not understood, and no such file", hint=HINT)
    found = read_seconds(workload, path, (column,) if column else ("time_limit_s", "run_time_s"))
    if np.isnan(found).all():
        raise InputError("has a limit for none of the jobs", path=path, hint="its column job must hold their names")
    return found


def _longest(workload: Workload) -> Floats:
    """Seconds of the longest attempt of each job: a limit applies per attempt."""
    if not workload.size:
        return np.zeros(0)
    return np.asarray(np.maximum.reduceat(workload.segment_s, workload.segment_start[:-1]), np.float64)


def steps(seconds: Floats) -> Floats:
    """Limits as users round them, see `STEPS_S`."""
    twice = 2 * seconds
    last = STEPS_S[-1]
    at = np.minimum(np.searchsorted(STEPS_S, twice), len(STEPS_S) - 1)
    return np.where(twice > last, np.ceil(twice / last) * last, np.array(STEPS_S)[at])
