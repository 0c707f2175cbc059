"""Rules that every third-party predictor must follow, checked on random logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import GpuctlError
from gpuctl.predictors.contract import answers
from gpuctl.predictors.job_table import table

if TYPE_CHECKING:
    from gpuctl.predictors.contract import Predictor
    from gpuctl.predictors.job_table import JobTable

JOBS = 60


def check(kind: type[Predictor], cases: int) -> list[str]:
    """Return the rules that a predictor violates; empty if there are none.

    The same log must give the same answers, and answers before an instant must not depend on later events.

    Args:
        kind: the predictor.
        cases: number of random logs; some have almost no columns.
    """
    found: list[str] = []
    for seed in range(cases):
        rows = random_log(seed).rows
        try:
            predictions = answers(kind, rows)
            if not np.array_equal(predictions, answers(kind, rows), equal_nan=True):
                found.append(f"log {seed}: a second call gives other predictions")
            half = rows.height // 2
            at = float(rows["submit_s"][half])
            later = (pl.col("end_s") >= at) | (pl.col("submit_s") >= at)
            other = rows.with_columns(run_s=pl.when(later).then(pl.col("run_s") * 7 + 1).otherwise(pl.col("run_s")))
            if not np.array_equal(predictions[: half + 1], answers(kind, other)[: half + 1], equal_nan=True):
                found.append(f"log {seed}: its answers depend on what happened later")
        except GpuctlError as error:
            found.append(f"log {seed}: {error.message}")
    return found


def random_log(seed: int, jobs: int = JOBS) -> JobTable:
    """Return a log of a few users; every third one lacks users, names, limits or sizes."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(600.0, jobs))
    rows = {"job": [str(k) for k in range(jobs)], "submit_s": submit, "run_s": rng.lognormal(6, 2, jobs)}
    if seed % 3 != 2:
        rows |= {
            "user": rng.choice(["ann", "bob", "eve", ""], jobs).tolist(),
            "queue": rng.choice(["a", "b"], jobs).tolist(),
            "name": rng.choice(["train-1", "train-2", "eval"], jobs).tolist(),
            "gpus": rng.choice([1.0, 2.0, 8.0], jobs),
            "time_limit_s": np.where(rng.random(jobs) < 0.3, np.nan, 86400.0),
        }
    return table(f"random {seed}", pl.DataFrame(rows))
