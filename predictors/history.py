"""Run times from history: quantiles of a job's run time, learned from the ended jobs of a log.

A simple rule gives a first estimate: the mean run time of the user's last two jobs. Three models of regression trees
(LightGBM), one per quantile, predict the deviation from it (the logarithm of the ratio) from what was known at its
submission (`gpuctl.predictors.features`).

The interval is calibrated on jobs that the trees were not fitted on (split conformal prediction after Romano, Patterson
and Candes, 2019, here for each end by itself). The coverage holds for later jobs as far as they resemble those; the
scores, on still later jobs, measure how far they did.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.errors import UsageError
from gpuctl.predictors import contract, evaluate, features, job_table, trees
from gpuctl.predictors.baselines import baselines, last_two
from gpuctl.predictors.evaluate import Guess
from gpuctl.predictors.time_split import split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.predictors.contract import Predictor
    from gpuctl.predictors.features import Features, State
    from gpuctl.predictors.job_table import JobTable
    from gpuctl.predictors.time_split import TimeSplit

    Floats = NDArray[np.float64]
    Singles = NDArray[np.float32]

KIND = "runtime"
QUANTILES = (0.1, 0.5, 0.9)
TEST_SHARE = 0.2
ENDS = ("lower", "middle", "upper")
PARAMETERS: dict[str, Any] = {
    "num_leaves": 15,
    "learning_rate": 0.08,
    "min_data_in_leaf": 100,
    "max_bin": 127,
    "seed": 1,
    # the same bytes from the same jobs, independent of the number of threads
    "deterministic": True,
    "force_row_wise": True,
}
"""Of LightGBM; chosen on two real logs, not searched for."""
TREES = 150
SAMPLE = 200_000
"""Of more jobs, each tree is fitted on a random sample of about so many; that changes little but the time it takes."""
MOST_THREADS = 8

LAST_TWO = "last_two"
_RULE = "logarithm of what the rule last_two predicts, s"
_TO = "_to_last_two"
_COMPARED = ("_last", "_mean", "_median")


@dataclass(frozen=True)
class Model:
    """A model that predicts run times.

    Attributes:
        quantiles: that the lower end, the prediction and the upper end are of.
        features: names of its features, in order.
        fill: replacement of an unknown feature, shape (features,); NaN if the trees handle it because it was also
            missing in the training jobs.
        forests: trees for the lower end, the prediction and the upper end.
        widen: amount subtracted from the lower end and added to the upper one, in the logarithm; at least 0.
        state: state of the jobs of the log.
        zone: IANA zone that hours are of.
        clock: IANA zone of the clock that ``submit_s`` are seconds of.
        size: unit of a job's size: ``GPUs`` or ``nodes``.
        typical_s: median run time of the jobs that it was fitted on.
        texts: LightGBM's text of `forests`.
    """

    quantiles: tuple[float, float, float]
    features: tuple[str, ...]
    fill: Floats
    forests: tuple[trees.Trees, ...]
    widen: tuple[float, float]
    state: State
    zone: str
    clock: str
    size: str
    typical_s: float
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainedModel:
    """A model and its scores.

    Attributes:
        model: fitted on the first part of the log; its history is of the whole log.
        scores: of the model (``history``) and of every baseline on the last part, see
            `gpuctl.predictors.evaluate.score`.
        parts: number of jobs of each part, and of jobs that ended too late for it.
        gain: share of each feature in the total gain of splits, %, in the order of ``model.features``.
        window: first and last second of submission of each part.
        digest: SHA-256 of the features and run times of the training jobs.
        table: the jobs that it was trained on.
        others: other scored predictors, with their titles.
    """

    model: Model
    scores: pl.DataFrame
    parts: dict[str, int]
    gain: list[float]
    window: dict[str, tuple[float, float]]
    digest: str
    table: JobTable = field(repr=False)
    others: dict[str, str] = field(default_factory=dict)


def train(
    table: JobTable,
    *,
    test_share: float = TEST_SHARE,
    quantiles: tuple[float, ...] = QUANTILES,
    others: Sequence[type[Predictor]] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> TrainedModel:
    """Learn run times from the jobs of a log, and score the model on its last jobs.

    The same jobs give the same model, bit for bit.

    Args:
        table: the jobs.
        test_share: share of the jobs, the last submitted ones, for scoring.
        quantiles: of the lower end, the prediction and the upper end.
        others: further predictors to score along with the model and the rules.
        progress: called with (step, steps done, total steps).

    Raises:
        InputError: there are too few jobs.
        UsageError: the quantiles are not three ascending numbers between 0 and 1, or the share is not between 0 and 1.
    """
    lower, middle, upper = _checked(quantiles)
    if not 0 < test_share < 1:
        raise UsageError(f"share to test on: found {test_share:g}, expected a number above 0 and below 1")
    say = progress or (lambda _text, _done, _all: None)
    steps = len(ENDS) + 2
    say("reading history", 0, steps)
    known, state = features.of_log(table)
    parts = split(table, test_share)
    run = np.maximum(table.rows["run_s"].to_numpy(), job_table.SHORTEST_S)
    typical = float(np.median(run[parts.fit]))
    stated = features.stated_columns(table.rows)
    names = [*stated, *relative(stated)]
    matrix, base = columns(table.rows, known, names, typical)
    target = np.log(run) - base
    fitted = []
    for number, quantile in enumerate((lower, middle, upper), 1):
        say(f"fitting quantile {quantile:g}", number, steps)
        fitted.append(_fit(matrix[parts.fit], target[parts.fit], parts.fit_weight, quantile, names))
    say("scoring", steps - 1, steps)
    later = parts.calibration | parts.test
    answers = np.full((len(ENDS), len(run)), np.nan)
    answers[:, later] = np.sort([one.predict(matrix[later]) for one in fitted], axis=0)
    widen = _widen(answers[:, parts.calibration], target[parts.calibration], parts.calibration_weight, lower, upper)
    texts = tuple(trees.strip(one.model_to_string()) for one in fitted)
    model = Model(
        quantiles=(lower, middle, upper),
        features=tuple(names),
        fill=_fill(matrix[parts.fit]),
        forests=tuple(trees.parse(text, names, "what LightGBM wrote") for text in texts),
        widen=widen,
        state=state,
        zone=table.zone,
        clock=table.clock,
        size=table.size,
        typical_s=typical,
        texts=texts,
    )
    gain = np.sum([one.feature_importance("gain") for one in fitted], axis=0)
    return TrainedModel(
        model=model,
        scores=_scores(table, known, parts, answers + base, model, others),
        parts=parts.counts,
        gain=(100 * gain / max(float(gain.sum()), 1e-300)).tolist(),
        window=parts.windows(table.rows["submit_s"].to_numpy()),
        digest=hashlib.sha256(matrix[parts.fit | parts.calibration].tobytes() + run.tobytes()).hexdigest(),
        table=table,
        others={kind.name: kind.title for kind in others},
    )


def predict(model: Model, jobs: pl.DataFrame) -> pl.DataFrame:
    """Predict run times of jobs that are submitted after the end of the training log.

    Args:
        model: trained or loaded.
        jobs: any of ``job``, ``user``, ``queue``, ``name``, ``gpus`` (``nodes`` if that is ``model.size``),
            ``time_limit_s``, and the time of submission as ``submit_ts`` (with a zone) or ``submit_s`` (seconds of the
            clock ``model.clock`` from 1970 on). Missing or null values are unknown.

    Returns:
        One row per job, in the same order: ``job``, ``predicted_s``, ``lower_s``, ``upper_s`` (seconds).
    """
    if "job" not in jobs.columns:
        jobs = jobs.with_columns(job=pl.int_range(pl.len()).cast(pl.String))
    if "submit_ts" in jobs.columns:
        local = pl.col("submit_ts").dt.convert_time_zone(model.clock).dt.replace_time_zone(None)
        jobs = jobs.with_columns(submit_s=local.dt.epoch("us") / 1e6)
    size = "gpus" if model.size == "GPUs" else "nodes"
    rows = job_table.describe(jobs, size=size, zone=model.zone, clock=model.clock)
    return _predicted(rows, features.of_new(rows, model.state), model)


def described() -> dict[str, str]:
    """Return the meaning of each feature that a model may use."""
    own = features.described()
    return own | {
        name: _RULE if name == LAST_TWO else f"{own[name.removesuffix(_TO)]}, less {LAST_TWO}"
        for name in relative(list(own))
    }


def relative(names: list[str]) -> list[str]:
    """Return the names of the features relative to the last-two rule, and of that rule itself."""
    return [LAST_TWO, *(f"{name}{_TO}" for name in names if name == "limit" or name.endswith(_COMPARED))]


def columns(rows: pl.DataFrame, known: Features, names: Sequence[str], typical_s: float) -> tuple[Singles, Floats]:
    """Return the features of these names, shape (jobs, names), and the log of the last-two rule, shape (jobs,)."""
    last_run_s = last_two(rows, known)
    base = np.log(np.where(np.isnan(last_run_s), typical_s, last_run_s))
    single = base.astype(np.float32)
    columns = [
        single if name == LAST_TWO else known.column(name.removesuffix(_TO)) - (single if name.endswith(_TO) else 0)
        for name in names
    ]
    return np.stack(columns, axis=1, dtype=np.float32), base


def _predicted(rows: pl.DataFrame, known: Features, model: Model) -> pl.DataFrame:
    matrix, base = columns(rows, known, model.features, model.typical_s)
    matrix = np.where(np.isnan(matrix), model.fill.astype(np.float32), matrix)
    answers = np.sort([forest.answer(matrix) for forest in model.forests], axis=0)
    lower, middle, upper = interval(answers + base, model.widen)
    return pl.DataFrame({"job": rows["job"], "predicted_s": middle, "lower_s": lower, "upper_s": upper})


def interval(answers: Floats, widen: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """Return lower end, prediction and upper end, s, from ordered quantiles of the logarithm, shape (3, jobs)."""
    low, middle, high = answers
    low, high = np.minimum(low - widen[0], middle), np.maximum(high + widen[1], middle)
    # no run time is shorter than the shortest, and none exceeds 1e12 s
    shortest, longest = np.log(job_table.SHORTEST_S), np.log(1e12)
    low, middle, high = (np.exp(np.clip(each, shortest, longest)) for each in (low, middle, high))
    return low, middle, high


def _checked(quantiles: tuple[float, ...]) -> tuple[float, float, float]:
    if len(quantiles) != len(ENDS) or not all(a < b for a, b in zip((0, *quantiles), (*quantiles, 1), strict=True)):
        local = ",".join(f"{q:g}" for q in quantiles)
        raise UsageError(f"quantiles {local}: expected three numbers that rise, between 0 and 1", hint="0.1,0.5,0.9")
    lower, middle, upper = quantiles
    return lower, middle, upper


def _fit(rows: Singles, target: Floats, weight: Floats, quantile: float, names: list[str]) -> Any:
    lightgbm = trees.load_lightgbm()
    sample = {"bagging_fraction": SAMPLE / len(rows), "bagging_freq": 1} if len(rows) > SAMPLE else {}
    parameters = {
        **PARAMETERS,
        **sample,
        "objective": "quantile",
        "alpha": quantile,
        "num_threads": min(MOST_THREADS, len(os.sched_getaffinity(0))),
        "verbose": -1,
    }
    data = lightgbm.Dataset(rows, target, weight=weight, feature_name=names, params=parameters, free_raw_data=True)
    return lightgbm.train(parameters, data, num_boost_round=TREES)


def _fill(rows: Singles) -> Floats:
    """Return the median of features that are always known, NaN for the others."""
    missing = np.isnan(rows).any(axis=0)
    return np.where(missing, np.nan, np.median(rows, axis=0).astype(np.float64))


def _widen(answers: Floats, target: Floats, weight: Floats, lower: float, upper: float) -> tuple[float, float]:
    """Return how far the ends must move so that at most weighted shares `lower` and 1 - `upper` lie beyond them.

    Never below 0: an interval that covers more than required is unchanged.
    """
    return (
        max(0.0, _weighted_quantile(answers[0] - target, weight, 1 - lower)),
        max(0.0, _weighted_quantile(target - answers[2], weight, upper)),
    )


def _weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    # one more job, beyond all others, as the guarantee for the next job requires
    at = np.searchsorted(total, share * total[-1] * (1 + 1 / len(values)))
    return float(values[order][min(int(at), len(values) - 1)])


def _scores(  # noqa: PLR0917 - as train has them
    table: JobTable, known: Features, parts: TimeSplit, answers: Floats, model: Model, others: Sequence[type[Predictor]]
) -> pl.DataFrame:
    rows, test = table.rows, parts.test
    truth = rows["run_s"].to_numpy()
    day = np.floor(rows["submit_s"].to_numpy()[test] / 86400).astype(np.int64)
    low, middle, high = interval(answers[:, test], model.widen)
    guesses = [Guess("history", middle, low, high)]
    rules = baselines(rows, known, float(np.median(truth[parts.fit])))
    guesses += [Guess(name, values[test]) for name, values in rules.items()]
    guesses += [Guess(kind.name, contract.answers(kind, rows)[test]) for kind in others]
    return pl.concat(
        evaluate.score(guess, truth[test], day, model.quantiles)
        for guess in guesses
        if not np.isnan(guess.middle).all()
    )
