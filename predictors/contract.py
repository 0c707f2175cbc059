"""The contract of third-party predictors of run times: they learn from each job that ends and predict each new job.

A predictor sees jobs in the order of the log and never later events: gpuctl queries it about a job at its submission,
after reporting all jobs that had ended strictly before, in the order of their ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Job(NamedTuple):
    """The facts that are known of a job at its submission.

    Attributes:
        user: its user; ``""``: unknown, as for the next two.
        queue: its queue.
        name: its name, digits masked.
        size: GPUs that it requests, nodes if the log has no GPUs; NaN: unknown.
        time_limit_s: seconds that it may run; NaN: unknown.
        submit_s: seconds of the log's clock.
        hour: of the day, 0 to 23.
        weekday: 0 is Monday.
    """

    user: str
    queue: str
    name: str
    size: float
    time_limit_s: float
    submit_s: float
    hour: float
    weekday: float


class Predictor:
    """Predicts run times; a subclass has a name, a title and `predict`, and usually `ended`.

    One instance sees one log, from its first job on.

    Attributes:
        name: its name.
        title: one sentence on its method.
    """

    name = ""
    title = ""

    def ended(self, job: Job, run_s: float) -> None:
        """Learn that a job has ended after running for some seconds."""

    def predict(self, job: Job) -> float | None:
        """Return the seconds that a job will run, from what is known at its submission; None for no answer."""
        raise NotImplementedError


def answers(kind: type[Predictor], rows: pl.DataFrame) -> Floats:
    """Return a predictor's answer for every job of a log, s, shape (jobs,); NaN for no answer.

    Args:
        kind: the predictor; a new instance is made.
        rows: of a `gpuctl.predictors.job_table.JobTable`, in order of submission.

    Raises:
        InputError: it fails, or returns a value that is not a duration.
    """
    jobs = [Job(*row) for row in rows.select(Job._fields).iter_rows()]
    known = np.flatnonzero(rows["known"].to_numpy())
    end, run = rows["end_s"].to_numpy(), rows["run_s"].to_numpy()
    ends = known[np.argsort(end[known], kind="stable")]
    found = np.full(len(jobs), np.nan)
    reported = 0
    try:
        predictor = kind()
        for k, job in enumerate(jobs):
            while reported < len(ends) and end[ends[reported]] < job.submit_s:
                predictor.ended(jobs[ends[reported]], float(run[ends[reported]]))
                reported += 1
            prediction = predictor.predict(job)
            if prediction is not None:
                found[k] = _seconds(prediction)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit(), which would end gpuctl silently
        what = error if isinstance(error, _NoTimeError) else f"{type(error).__name__}: {error}"
        raise InputError(f"predictor {kind.name!r}: {what}", hint="a fault of the predictor, not of gpuctl") from error
    return found


class _NoTimeError(Exception):
    """A predictor returned a value that is not a duration."""


def _seconds(prediction: object) -> float:
    try:
        value = float(prediction)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value < math.inf:
        raise _NoTimeError(f"predict() answered {str(prediction)[:60]}; expected seconds, at least 0, or None")
    return value
