"""The cost of suspending and resuming a job, learned from measured suspensions and facts known at the request.

The parts are those of `gpuctl.core.suspension_cost`: the rest of the epoch, which the job still uses; writing the
checkpoint and stopping; starting, reading the checkpoint and the first data. The time of the last two is fitted on ``1,
M, D, g`` (checkpoint bytes, data set bytes, GPUs), coefficients not below 0, errors relative to the whole; a model with
its own measurements gets its own constant. The rest of an epoch is unknown at the request: it is the usual length of
epochs (`gpuctl.predictors.epoch_left`), less the time since this one began.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.suspension_cost import STOP_S, Costs
from gpuctl.predictors.epoch_left import Lengths, Rest, learn_lengths, rest_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpuctl.core.suspension_cost import Mode

    Floats = NDArray[np.float64]

TERMS = ("1", "checkpoint_bytes", "dataset_bytes", "gpus")
PARTS = ("stop", "abort_stop", "resume")
SCORED = ("epoch_left_s", "suspend_s", "overhead_s", "abort_s", "resume_s", "loss_s")
"""Costs that have intervals: ``epoch_left_s`` is the rest of the epoch, ``overhead_s`` suspend and resume together,
``abort_s`` is ``suspend_s`` of jobs that did not finish their epochs."""
_BY_SIDE = SCORED[:3]
"""Those with the rest of an epoch in them: their errors are counted in the sides of its interval."""
SHRINK = 0.1
"""A model's own constant counts n / (n + SHRINK) with n measurements: starts differ more than they vary."""
COVERAGE = 0.8
"""Share of suspensions whose cost should lie between the bounds."""
MOST_TURNS, SETTLED = 20, 1e-6
"""The fit ends after so many turns, or when no constant moves by more than this share of the longest time."""
LEAST = 8
"""Fewest suspensions to fit."""

Apart = Literal["suspension", "job"]
"""What is left out together to be predicted: one suspension (others of its job are known), or all of a job."""


@dataclass(frozen=True)
class MeasuredSuspension:
    """One measured suspension; seconds and bytes.

    Attributes:
        job, model: names.
        mode: ``epoch`` | ``now`` | ``abort``.
        checkpoint_bytes, dataset_bytes, gpus: possible factors; NaN unknown.
        epoch_s: length of the job's epochs, as known at the request.
        epoch_done_s: time since the current epoch began, at the request.
        epoch_left_s: actual rest of the current epoch at the request: never an input of predictions.
        suspend_s: from the request until the GPUs were free.
        resume_s: from the next start until it made progress.
        loss_s: time on GPUs without lasting progress; NaN if not measured.
    """

    job: str
    model: str
    mode: Mode
    checkpoint_bytes: float
    dataset_bytes: float
    gpus: float
    epoch_s: float
    epoch_done_s: float
    epoch_left_s: float
    suspend_s: float
    resume_s: float
    loss_s: float = np.nan


class Bounds(NamedTuple):
    """Lower and upper end of an interval, seconds; NaN if there are too few measurements."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Predicted:
    """The predicted cost of one suspension, with bounds that hold in four of five cases.

    Attributes:
        costs: median.
        left: the rest of the epoch, and its bounds; all NaN if the job does not finish its epoch.
        suspend_s, resume_s, loss_s: bounds.
        overhead_s: bounds of suspend and resume together.
    """

    costs: Costs
    left: Rest
    suspend_s: Bounds
    resume_s: Bounds
    loss_s: Bounds
    overhead_s: Bounds


@dataclass(frozen=True)
class OverheadModel:
    """Fitted parts of a suspension.

    Attributes:
        terms: of each part (`PARTS`), seconds for each of `TERMS` [4].
        own: by part and name: seconds that a model's own constant adds.
        lengths: deviation of epochs from their expected length.
        error: mean absolute relative error by the names of `left_out`, for suspensions of jobs left out of the fit.
        reach: by the unit left out (`Apart`) and cost (`SCORED`): the score that four of five stay within; NaN for too
            few.
        rows: suspensions it was fitted on.
    """

    terms: dict[str, tuple[float, ...]]
    own: dict[str, dict[str, float]] = field(default_factory=dict)
    lengths: Lengths = field(default_factory=Lengths)
    error: dict[str, float] = field(default_factory=dict)
    reach: dict[str, dict[str, float]] = field(default_factory=dict)
    rows: int = 0

    def part(self, name: str, checkpoint_bytes: float, dataset_bytes: float, gpus: float, model: str = "") -> float:
        """Return the seconds of one part."""
        row = np.array([1.0, checkpoint_bytes, dataset_bytes, gpus])
        found = float(row @ np.array(self.terms[name])) + self.own.get(name, {}).get(model, 0.0)
        return max(found, 0.0)

    def predict(
        self, *, checkpoint_bytes: float, dataset_bytes: float, gpus: float, epoch_s: float, phase_s: float, mode: Mode,
        model: str = "", left: Rest | None = None,
    ) -> Predicted:  # fmt: skip
        """Predict the cost of one suspension of a job; see `gpuctl.core.suspension_cost.costs`.

        Args:
            checkpoint_bytes: of its checkpoint.
            dataset_bytes: of its data.
            gpus: of its gang.
            model: the model that it trains; "" unknown.
            epoch_s: length of its epochs; inf: it has none.
            phase_s: time since the current epoch began.
            mode: how it is stopped.
            left: the rest of the epoch if known better than from these two, such as from its traffic.
        """
        resume = self.part("resume", checkpoint_bytes, dataset_bytes, gpus, model)
        reach = self.reach.get("suspension" if model in self.own.get("resume", {}) else "job", {})
        if mode == "abort":
            stop = self.part("abort_stop", checkpoint_bytes, dataset_bytes, gpus, model)
            rest, name = Rest(0.0, 0.0, 0.0), "abort_s"
        else:
            stop = self.part("stop", checkpoint_bytes, dataset_bytes, gpus, model)
            none = mode == "now" or not np.isfinite(epoch_s)
            rest = Rest(0.0, 0.0, 0.0) if none else left or rest_of(epoch_s, phase_s, self.lengths)
            name = "suspend_s" if rest.upper_s > 0 else "abort_s"
        again = phase_s if mode == "abort" else 0.0
        found = Costs(rest.left_s + stop, resume, again + (0.0 if mode == "abort" else stop) + resume)
        of = {cost: reach.get(cost, np.nan) for cost in SCORED}
        both = found.suspend_s + resume
        if name == "suspend_s":
            suspend = _by_side(found.suspend_s, rest, stop, of["suspend_s"])
            overhead = _by_side(both, rest, stop + resume, of["overhead_s"])
            ends = Bounds(rest.lower_s, rest.upper_s) if left else _by_side(rest.left_s, rest, 0.0, of["epoch_left_s"])
            rest = Rest(rest.left_s, *ends)
        else:
            suspend = _by_factor(found.suspend_s, 0.0, of["abort_s"])
            # the part with the largest possible deviation decides
            overhead = _by_factor(both, 0.0, float(np.fmax(of["abort_s"], of["resume_s"])))
            rest = Rest(np.nan, np.nan, np.nan)
        resumed, lost = _by_factor(resume, 0.0, of["resume_s"]), _by_factor(found.loss_s, again, of["loss_s"])
        return Predicted(found, rest, suspend, resumed, lost, overhead)


_STOP_SHARE = 0.1
"""Of the time to stop, beside the spread of the rest of the epoch, in the unit that errors of both are counted in."""


def _sides(rest: Rest, stop: float) -> tuple[float, float]:
    return rest.left_s - rest.lower_s + _STOP_SHARE * stop, rest.upper_s - rest.left_s + _STOP_SHARE * stop


def _by_side(middle: float, rest: Rest, stop: float, reach: float) -> Bounds:
    below, above = _sides(rest, stop)
    return Bounds(max(middle - reach * below, 0.0) if np.isfinite(reach) else np.nan, middle + reach * above)


def _by_factor(middle: float, known: float, reach: float) -> Bounds:
    return Bounds(known + (middle - known) * float(np.exp(-reach)), known + (middle - known) * float(np.exp(reach)))


def usable(rows: Sequence[MeasuredSuspension]) -> tuple[list[MeasuredSuspension], dict[str, int]]:
    """Return the suspensions usable for training, and the number of others by what they lack.

    A number that no row has is not a term; one that some rows have is required. If a job finished its epoch, both
    the facts about the epoch at the request and the rest of the epoch are required.
    """
    terms = [name for name in TERMS[1:] if any(np.isfinite(getattr(row, name)) for row in rows)]
    without: dict[str, Any] = dict.fromkeys(set(TERMS[1:]) - set(terms), 0.0)
    usable, lacking = [], Counter[str]()
    for row in rows:
        needed = [*terms, *(("epoch_s", "epoch_done_s", "epoch_left_s") if row.mode == "epoch" else ())]
        lack = [name for name in needed if not np.isfinite(getattr(row, name))]
        if lack:
            lacking[lack[0]] += 1
        elif row.mode == "epoch" and row.epoch_s <= 0:
            lacking["epoch_s above 0"] += 1
        else:
            usable.append(replace(row, **without))
    return usable, dict(sorted(lacking.items()))


def fit(rows: Sequence[MeasuredSuspension]) -> OverheadModel:
    """Fit the parts, and measure how well they predict suspensions that were left out.

    Raises:
        InputError: too few measurements can be used.
    """
    rows, lacking = usable(rows)
    if len(rows) < LEAST:
        listed = "".join(f"; {count} without {name}" for name, count in lacking.items())
        raise InputError(
            f"{len(rows)} measured suspensions can be used; at least {LEAST} are needed to fit what they cost{listed}",
            hint="record more, or predict with the defaults: leave --model out",
        )
    tried = {apart: left_out(rows, apart) for apart in ("suspension", "job")}
    reach = {
        apart: {name: _reach([t.score for t in tests if t.cost == name]) for name in SCORED}
        for apart, tests in tried.items()
    }
    error: dict[str, list[float]] = {}
    for test in tried["job"]:
        error.setdefault(test.cost, []).append(abs(test.error))
    means = {name: float(np.mean(values)) for name, values in error.items()}
    return replace(_fit(rows), error=means, reach=reach, rows=len(rows))


def _reach(scores: Sequence[float]) -> float:
    """Return the score that the next one stays within in four of five cases, for any distribution (split conformal)."""
    rank = int(np.ceil(COVERAGE * (len(scores) + 1)))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else np.nan


class Tried(NamedTuple):
    """A cost predicted for a suspension by a model that has not seen it.

    Attributes:
        job: name of the job.
        cost: one of `SCORED`.
        error: relative.
        epochs: the error in lengths of the job's epoch; NaN if it does not concern the rest of an epoch.
        score: deviation in the unit of the interval.
    """

    job: str
    cost: str
    error: float
    epochs: float
    score: float


MOST_FOLDS = 100
"""Up to so many suspensions each is left out alone: what is left out together hangs on an order that means nothing."""


def left_out(rows: Sequence[MeasuredSuspension], apart: Apart) -> list[Tried]:
    """Predict each suspension, with what was known at the request, by a model that has not seen it.

    Args:
        rows: usable rows; in any order.
        apart: the unit that is left out together.
    """
    rows = sorted(rows, key=lambda row: (row.job, row.mode, row.epoch_s, row.epoch_done_s, row.suspend_s, row.resume_s))
    jobs = sorted({row.job for row in rows})
    place = {job: k for k, job in enumerate(jobs)}
    keys = [place[row.job] for row in rows] if apart == "job" else list(range(len(rows)))
    folds = min(max(keys) + 1, MOST_FOLDS)
    found: list[Tried] = []
    for fold in range(folds):
        train = [row for key, row in zip(keys, rows, strict=True) if key % folds != fold]
        if not train:
            continue
        model = _fit(train)
        for row in (row for key, row in zip(keys, rows, strict=True) if key % folds == fold):
            found += _tried(model, row)
    return found


def inside(tests: Sequence[Tried], cost: str) -> list[bool]:
    """Return whether each test of a cost lies in the interval from the tests of the other jobs; empty for too few."""
    some = [t for t in tests if t.cost == cost]
    reach = {job: _reach([t.score for t in some if t.job != job]) for job in {t.job for t in some}}
    return [t.score <= reach[t.job] for t in some if np.isfinite(reach[t.job])]


def _tried(model: OverheadModel, row: MeasuredSuspension) -> Iterator[Tried]:
    phase = row.epoch_done_s if np.isfinite(row.epoch_done_s) else row.epoch_s - row.epoch_left_s
    phase = phase if np.isfinite(phase) else 0.0
    costs = model.predict(
        checkpoint_bytes=row.checkpoint_bytes, dataset_bytes=row.dataset_bytes, gpus=row.gpus, epoch_s=row.epoch_s,
        phase_s=phase, mode=row.mode, model=row.model,
    ).costs  # fmt: skip
    if row.mode == "epoch":
        rest = rest_of(row.epoch_s, phase, model.lengths)
        both, stop = costs.suspend_s + costs.resume_s, costs.suspend_s - rest.left_s
        parts = (
            (rest.left_s, row.epoch_left_s, 0.0), (costs.suspend_s, row.suspend_s, stop),
            (both, row.suspend_s + row.resume_s, stop + costs.resume_s),
        )  # fmt: skip
        for cost, (predicted, true, beside) in zip(_BY_SIDE, parts, strict=True):
            below, above = _sides(rest, beside)
            off = true - predicted
            score = off / max(above, _TINY_S) if off > 0 else -off / max(below, _TINY_S)
            yield Tried(row.job, cost, -off / max(true, _TINY_S), abs(off) / row.epoch_s, score)
    else:
        yield _ratio(row.job, "abort_s", costs.suspend_s, row.suspend_s)
    yield _ratio(row.job, "resume_s", costs.resume_s, row.resume_s)
    if np.isfinite(row.loss_s):
        again = phase if row.mode == "abort" else 0.0
        test = _ratio(row.job, "loss_s", costs.loss_s - again, row.loss_s - again)
        yield test._replace(error=costs.loss_s / max(row.loss_s, _TINY_S) - 1)


_TINY_S = 1e-3
"""Durations are told to a millisecond at best: shorter ones count as this where one is divided by them."""


def _ratio(job: str, cost: str, predicted: float, true: float) -> Tried:
    predicted, true = max(predicted, _TINY_S), max(true, _TINY_S)
    return Tried(job, cost, predicted / true - 1, np.nan, abs(float(np.log(predicted / true))))


def _fit(rows: Sequence[MeasuredSuspension]) -> OverheadModel:
    finished = [r for r in rows if r.mode != "abort"]
    aborted = [r for r in rows if r.mode == "abort"]
    stops = [r.suspend_s - (r.epoch_left_s if r.mode == "epoch" else 0.0) for r in finished]
    parts = (
        ("stop", finished, stops, stops),
        ("abort_stop", aborted, [r.suspend_s for r in aborted], [r.suspend_s for r in aborted]),
        ("resume", rows, [r.resume_s for r in rows], [r.resume_s for r in rows]),
    )
    terms, own = {}, {}
    for name, some, seconds, whole in parts:
        terms[name], own[name] = _part(some, np.array(seconds), np.array(whole))
    waited = [r for r in rows if r.mode == "epoch"]
    lengths = learn_lengths([((r.epoch_done_s + r.epoch_left_s) / r.epoch_s, r.job) for r in waited])
    return OverheadModel(terms, own, lengths)


def _part(
    rows: Sequence[MeasuredSuspension], seconds: Floats, whole: Floats
) -> tuple[tuple[float, ...], dict[str, float]]:
    """Return the coefficients of one part, and the constants of individual models."""
    from scipy.optimize import nnls

    if not rows:
        return (STOP_S, 0.0, 0.0, 0.0), {}
    table = np.array([[1.0, r.checkpoint_bytes, r.dataset_bytes, r.gpus] for r in rows])
    weight = 1.0 / np.maximum(whole, _TINY_S)
    scale = np.maximum(np.abs(table).max(axis=0), 1e-9)
    names = sorted({r.model for r in rows if r.model})
    # rows without a model share an index to which nothing is added
    place = {name: k for k, name in enumerate(names)}
    member = np.array([place.get(r.model, len(names)) for r in rows])
    count, total = (np.bincount(member, w, len(names) + 1)[:-1] for w in (np.ones(len(rows)), weight**2))
    own, found = np.zeros(len(names) + 1), np.zeros(4)
    # alternate: the common terms, then the constant of each model
    for _ in range(MOST_TURNS):
        before = own.copy()
        found = nnls(table / scale * weight[:, None], (seconds - own[member]) * weight)[0] / scale
        left = (seconds - table @ found) * weight**2
        own[:-1] = np.bincount(member, left, len(names) + 1)[:-1] / total * count / (count + SHRINK)
        if np.abs(own - before).max() <= SETTLED * np.abs(seconds).max():
            break
    return tuple(float(v) for v in found), {name: float(v) for name, v in zip(names, own[:-1], strict=True)}


# ---- as JSON


def to_json(model: OverheadModel) -> dict[str, Any]:
    """Return the model as plain data; unknown values are null."""
    return {
        "terms": {k: list(v) for k, v in model.terms.items()},
        "own": model.own,
        "lengths": {"middle": model.lengths.middle, "spread": model.lengths.spread, "jobs": model.lengths.jobs},
        "error": model.error,
        "reach": {a: {k: _finite(model.reach.get(a, {}).get(k)) for k in SCORED} for a in ("suspension", "job")},
        "rows": model.rows,
    }


def from_json(data: Any, path: str) -> OverheadModel:
    """Return a model from plain data.

    Raises:
        InputError: a value is missing or not a number.
    """
    try:
        terms = {name: tuple(_number(v, 0) for v in data["terms"][name]) for name in PARTS}
        own = {name: {str(k): _number(v) for k, v in data["own"].get(name, {}).items()} for name in PARTS}
        error = {str(k): _number(v, 0) for k, v in data["error"].items()}
        listed = data["lengths"]
        middle, spread = _number(listed["middle"], -_MOST_LN, _MOST_LN), _number(listed["spread"], 0, _MOST_LN)
        lengths = Lengths(middle, spread, _whole(listed["jobs"]))
        reach = {a: {k: _reach_of(k, data["reach"][a][k]) for k in SCORED} for a in ("suspension", "job")}
        rows = _whole(data["rows"])
    except (KeyError, TypeError, AttributeError, ValueError) as fault:
        raise InputError(
            f"is not an overhead model: {type(fault).__name__}: {fault}",
            path=path,
            hint="make it again: gpuctl train overhead",
        ) from fault
    if any(len(v) != len(TERMS) for v in terms.values()):
        raise InputError(f"is not an overhead model: expected {len(TERMS)} coefficients a part", path=path)
    return OverheadModel(terms, own, lengths, error, reach, rows)


_MOST, _MOST_LN = 1e12, 50.0
"""Of seconds, ratios and jobs; of their logarithms."""


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _reach_of(cost: str, value: Any) -> float:
    """Return a score: of `_BY_SIDE` in multiples of the interval's sides, of the others the logarithm of a ratio."""
    return np.nan if value is None else _number(value, 0, _MOST if cost in _BY_SIDE else _MOST_LN)


def _number(value: Any, low: float = -_MOST, high: float = _MOST) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{value!r:.40} is not a number from {low:g} to {high:g}")
    return float(value)


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r:.40} is not a whole number")
    return int(_number(value, 0))
