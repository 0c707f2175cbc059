"""Time limits that policies plan with: requested ones, true run times, guesses, or predictions."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import NamedValue, note, together
from gpuctl.core.path_checks import is_file
from gpuctl.replay.inputs.run_time_estimates import normal, read_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.replay.models.records import Floats, Workload

STEPS_S = tuple(60.0 * minutes for minutes in (30, 60, 120, 240, 480, 1440, 2880))
"""Limits as users round them: the next of these that is at least twice the run time; beyond, whole pairs of days."""

HINT = (
    "expected asked, true, factor:F, steps, error:F with F from 0 to 3, or a CSV with the columns job and time_limit_s "
    "or run_time_s (FILE:COLUMN for another column, such as upper_s); several with commas between them, each for the "
    "jobs without a limit from those before"
)


def plan(workload: Workload, how: str) -> Workload:
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


def own(workload: Workload, params: Mapping[str, object]) -> Workload:
    """Return the same jobs with the time limits that one policy plans with, if its parameter ``limits_from`` is set.

    Raises:
        UsageError, InputError: as for `plan`.
    """
    how = params.get("limits_from")
    return plan(workload, str(how)) if how else workload


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
