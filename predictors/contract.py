"""What a predictor of run times by others is: told of each job that ends, asked about each one that is submitted.

It sees jobs in the order of the log and never what comes later: gpuctl asks it about a job at its submission, with all
jobs that had ended strictly before then reported, in the order of their ends.
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
    """What is known of a job at its submission.

    Attributes:
        user: who submits it; ``""``: not known, as in the next two.
        queue: where to.
        name: what it is called, digits masked.
        size: GPUs that it asks for, nodes where the log has no GPUs; NaN: not known.
        time_limit_s: seconds that it may run; NaN: not known.
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
    """Predicts run times; a subclass has a name, a title and `predict`, and mostly `ended`.

    One instance sees one log, from its first job on.

    Attributes:
        name: what it is called.
        title: what it goes by, in a sentence.
    """

    name = ""
    title = ""

    def ended(self, job: Job, run_s: float) -> None:
        """Learn that a job has ended, after running so many seconds."""

    def predict(self, job: Job) -> float | None:
        """Seconds that a job will run, as far as is known at its submission; None for no answer."""
        raise NotImplementedError


def answers(kind: type[Predictor], rows: pl.DataFrame) -> Floats:
    """What a predictor says of every job of a log, s, shape (jobs,); NaN where it has no answer.

    Args:
        kind: the predictor; a new one is made.
        rows: of a `gpuctl.predictors.job_table.JobTable`, in order of submission.

    Raises:
        InputError: it fails, or answers what is no length of time.
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
    except BaseException as error:  # also sys.exit(), which would end gpuctl without a word
        what = error if isinstance(error, _NoTimeError) else f"{type(error).__name__}: {error}"
        raise InputError(f"predictor {kind.name!r}: {what}", hint="a fault of the predictor, not of gpuctl") from error
    return found


class _NoTimeError(Exception):
    """What a predictor said that is no length of time."""


def _seconds(prediction: object) -> float:
    try:
        value = float(prediction)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value < math.inf:
        raise _NoTimeError(f"predict() answered {str(prediction)[:60]}; expected seconds, at least 0, or None")
    return value
