"""Accuracy of forecasts of waits, and coverage of their intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.waits.quantiles import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LOADS = ("light", "medium", "heavy")
FORECASTS = ("below 1 min", "1 min to 1 h", "1 h or more")
"""Classes of jobs by the forecast itself: by its median, or a rule's one number."""
_CLASSES_S = (60.0, 3600.0)
MEASURES = {
    "pinball_s": ("s", "Mean pinball loss of the median (of a rule, of its one number): half the mean absolute error."),
    "crps_s": ("s", "Continuous ranked probability score: twice the mean pinball loss of the nine deciles. Of a rule, "
               "the mean absolute error."),
    "coverage_pct": ("%", "Share of waits within the interval from the 10 % to the 90 % quantile, both ends included."),
    "below_pct": ("%", "Share of waits below it; 10 is right."),
    "above_pct": ("%", "Share of waits above it; 10 is right."),
    "width_s": ("s", "Median width of the interval."),
    "median_s": ("s", "Median of the waits themselves."),
}  # fmt: skip


def pinball(forecast_s: Floats, wait_s: Floats, level: float) -> float:
    """Return the mean pinball loss of answers at one level, s."""
    over = wait_s - forecast_s
    return float(np.maximum(level * over, (level - 1) * over).mean())


def crps(answers: Floats, wait_s: Floats) -> float:
    """Return twice the mean pinball loss over the levels; for one number, the mean absolute error; s.

    Args:
        answers: seconds [jobs, levels or 1].
        wait_s: actual waits.
    """
    if answers.shape[1] == 1:
        return 2 * pinball(answers[:, 0], wait_s, 0.5)
    return 2 * float(np.mean([pinball(answers[:, k], wait_s, level) for k, level in enumerate(ANSWERED)]))


def load_levels(load: Floats) -> Ints:
    """Return the third of the jobs that each belongs to, by load: 0 light, 1 medium, 2 heavy."""
    place = np.empty(load.size, np.int64)
    place[np.argsort(load, kind="stable")] = np.arange(load.size)
    return place * len(LOADS) // max(load.size, 1)


def forecast_classes(forecast_s: Floats) -> Ints:
    """Return the class of `FORECASTS` of each job, by its forecast [jobs, levels or 1]."""
    middle = forecast_s[:, 0] if forecast_s.shape[1] == 1 else forecast_s[:, ANSWERED.index(0.5)]
    return np.searchsorted(np.array(_CLASSES_S), middle, side="right")


def table(answers: Mapping[str, Floats], wait_s: Floats, load: Floats) -> pl.DataFrame:
    """Return one row per forecaster and load level, and one per class of its forecasts.

    Columns are ``predictor``, ``load``, ``forecast``, ``jobs`` and `MEASURES`; load or forecast is ``all``. A job that
    one of them cannot answer is scored for none, so that all cover the same jobs.
    """
    all_answered = np.logical_and.reduce([~np.isnan(each[:, 0]) for each in answers.values()])
    third = load_levels(load)
    rows = []
    for name, forecast_s in answers.items():
        for level in ("all", *LOADS):
            mask = all_answered if level == "all" else all_answered & (third == LOADS.index(level))
            rows.append(
                {"predictor": name, "load": level, "forecast": "all", **_measured(forecast_s[mask], wait_s[mask])}
            )
        of = forecast_classes(forecast_s)
        for k, forecast in enumerate(FORECASTS):
            mask = all_answered & (of == k)
            rows.append(
                {"predictor": name, "load": "all", "forecast": forecast, **_measured(forecast_s[mask], wait_s[mask])}
            )
    types = {
        "predictor": pl.String,
        "load": pl.String,
        "forecast": pl.String,
        "jobs": pl.Int64,
        **dict.fromkeys(MEASURES, pl.Float64),
    }
    return pl.DataFrame(rows, schema=types)


def by_queue(forecast_s: Floats, wait_s: Floats, queue: list[str]) -> pl.DataFrame:
    """Return one row per queue: ``queue``, ``jobs``, `MEASURES` of one forecaster, and the interval of its coverage."""
    names = np.array(queue, dtype=object)
    rows = []
    for name in sorted(set(queue)):
        own = _measured(forecast_s[names == name], wait_s[names == name])
        ends = wilson(own["coverage_pct"], int(own["jobs"] or 0))
        rows.append({"queue": name, **own, **dict(zip(INTERVAL, ends, strict=True))})
    numbers = dict.fromkeys((*MEASURES, *INTERVAL), pl.Float64)
    return pl.DataFrame(rows, schema={"queue": pl.String, "jobs": pl.Int64, **numbers})


INTERVAL = ("coverage_low_pct", "coverage_high_pct")


def wilson(share_pct: float | None, count: int) -> tuple[float | None, float | None]:
    """Return Wilson's 95 % interval of a share of independent cases, %."""
    if share_pct is None or count == 0:
        return None, None
    p, z = share_pct / 100, 1.959964
    middle = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return 100 * (middle - half), 100 * (middle + half)


def coverage_table(forecast_s: Floats, wait_s: Floats, load: Floats) -> pl.DataFrame:
    """Return nominal and actual coverage of each level, % of the waits: the columns of ``wait_calibration``."""
    third = load_levels(load)
    rows = []
    for level in ("all", *LOADS):
        mask = np.ones(load.size, bool) if level == "all" else third == LOADS.index(level)
        for k, share in enumerate(ANSWERED):
            strictly = 100 * float((wait_s[mask] < forecast_s[mask, k]).mean())
            up_to = 100 * float((wait_s[mask] <= forecast_s[mask, k]).mean())
            rows.append((level, 100 * share, (strictly + up_to) / 2, strictly, up_to))
    numbers = dict.fromkeys(("promised_pct", "held_pct", "below_pct", "up_to_pct"), pl.Float64)
    columns = {"load": pl.String, **numbers}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _measured(forecast_s: Floats, wait_s: Floats) -> dict[str, float | int | None]:
    if not wait_s.size:
        return {"jobs": 0}
    one = forecast_s.shape[1] == 1
    middle = forecast_s[:, 0] if one else forecast_s[:, ANSWERED.index(0.5)]
    found: dict[str, float | int | None] = {
        "jobs": wait_s.size, "pinball_s": pinball(middle, wait_s, 0.5), "crps_s": crps(forecast_s, wait_s),
        "median_s": float(np.median(wait_s)),
    }  # fmt: skip
    if one:
        return found
    below, above = wait_s < forecast_s[:, 0], wait_s > forecast_s[:, -1]
    shares = {"below_pct": below, "above_pct": above, "coverage_pct": ~(below | above)}
    return found | {
        **{name: 100 * float(mask.mean()) for name, mask in shares.items()},
        "width_s": float(np.median(forecast_s[:, -1] - forecast_s[:, 0])),
    }
