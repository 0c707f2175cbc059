"""When S is submitted: rules by name, what they learn from starts of the past, and what they make of a later one.

Those that plan or learn the wait look each ten minutes while P runs, and submit S at the minute at which what is left
of P is no longer than the lead that they want: none waits for a look that comes too late.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.chain import look_kernel
from gpuctl.chain.baselines import LOOK_MIN, Known, known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.chain.episode import Situation

    Floats = NDArray[np.float64]

NAMES = ("reactive", "avg", "quantile", "plan", "newsvendor", "forest", "boost")
LEARN = ("quantile", "plan", "newsvendor", "forest", "boost")
LEAD_QUANTILE = 0.9
"""Of ``quantile``, as the authors have it."""

ROUNDS, LEAST_IN_LEAF = 60, 200
"""Trees of ``newsvendor``, and looks in each of their leaves; chosen on starts before the split."""


EARLY_H = 0.5
"""Hours of overlap at which ``forest`` and ``boost`` submit S, as the authors' models do."""

TREES: dict[str, dict[str, object]] = {
    "forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.632, "feature_fraction_bynode": 0.3,
               "num_leaves": 255, "min_data_in_leaf": 5},
    "boost": {"num_leaves": 31, "learning_rate": 0.1},
}  # fmt: skip
"""Options of LightGBM: a forest of 100 trees, a third of the features a split; its defaults."""


@dataclass
class Start:
    """One start, and what was seen of it.

    Attributes:
        situation: P among the trace's jobs.
        known: what is known once P has started.
        clock: minute of the week at its start.
        seen: by the minutes between two looks, minutes of the looks and what they show.
    """

    situation: Situation
    known: Known
    clock: int
    seen: dict[int, tuple[NDArray[np.int64], Floats]] = field(default_factory=dict)

    @property
    def p_end(self) -> int:
        """The minute of P's end."""
        return self.known.p_end_s // 60

    def looks(self, step: int = LOOK_MIN) -> tuple[NDArray[np.int64], Floats]:
        """The minutes of looks while P runs, and what each shows [looks, FEATURES]."""
        if step not in self.seen:
            at, rows, _ = look(self, step, waits=False)
            self.seen[step] = at, rows
        return self.seen[step]


def start_of(situation: Situation, begin_s: int) -> Start:
    """A start at that second of the log's clock."""
    # 1970-01-01 was a Thursday
    return Start(situation, known(situation), (begin_s // 60 + 3 * 1440) % 10_080)


def look(start: Start, step: int, *, waits: bool) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Look at a start every so many minutes while P runs: minutes, what there is to see, and how long S would wait."""
    at = np.arange(start.p_end - start.situation.pair.limit_min + 1, start.p_end + 1, step)
    rows = np.zeros((at.size, look_kernel.FEATURES))
    found = np.zeros(at.size if waits else 0, np.int64)
    look_kernel.looks(start.situation.begun(), start.situation.begun(), start.clock, at, rows, found)
    return at, rows, found


@dataclass(frozen=True)
class Lessons:
    """What policies learn from: hourly looks at starts of the past.

    Attributes:
        rows: what each look shows [looks, FEATURES].
        waits_h: hours that S would have waited [looks].
        start: number of the start that each is of, in order [looks].
        load: mean wait in hours times jobs in the queue, by start.
        lead_h: the least lead of a look after which there is no interruption, by start.
        cpu_s: what it took to find that out.
    """

    rows: Floats
    waits_h: Floats
    start: NDArray[np.int64]
    load: Floats
    lead_h: Floats
    cpu_s: float


def lessons(starts: Sequence[Start], tell: Callable[[str, int, int], None] = lambda *_: None) -> Lessons:
    """Look at starts of the past every hour, and let S wait."""
    begin = time.process_time()
    rows, waits, leads = [], [], []
    for done, start in enumerate(starts):
        tell("training", done, len(starts))
        at, seen, wait = look(start, 60, waits=True)
        rows.append(seen)
        waits.append(wait / 60)
        left = start.p_end - at
        leads.append(float(left[wait <= left].min(initial=start.situation.pair.limit_min)) / 60)
    count = [len(each) for each in waits]
    return Lessons(
        rows=np.concatenate(rows),
        waits_h=np.concatenate(waits),
        start=np.repeat(np.arange(len(starts)), count),
        load=np.array([_load(start.known) for start in starts]),
        lead_h=np.array(leads),
        cpu_s=time.process_time() - begin,
    )


def _load(at: Known) -> float:
    return at.avg_wait_min / 60 * at.queued


def trained(name: str, learnt: Lessons | None, share: float) -> Callable[[Start], int]:
    """The rule of that name.

    Args:
        name: one of `NAMES`.
        learnt: for those of `LEARN`.
        share: the quantile of the wait that is aimed at: cost of an hour of interruption over that of both.
    """
    if name == "reactive":
        return lambda start: start.p_end
    if name == "avg":
        return lambda start: max(start.p_end - start.known.avg_wait_min, start.situation.p_submit_min + 1)
    if learnt is None:
        raise ValueError(name)
    if name == "quantile":
        slope, offset = quantile_line(learnt.load, learnt.lead_h, LEAD_QUANTILE)
        return lambda start: _before(start, 60 * (offset + slope * _load(start.known)))
    if name == "plan":
        ratio = _ratio(learnt, share)
        return lambda start: _first(start, lambda rows: ratio * rows[:, look_kernel.PLANNED])
    model = _newsvendor(learnt, share) if name == "newsvendor" else _regression(learnt, name)
    return lambda start: _first(start, model)


def _before(start: Start, lead_min: float) -> int:
    most = min(start.situation.pair.limit_min, start.p_end - start.situation.p_submit_min - 1)
    return start.p_end - int(np.clip(lead_min, 0, most))


def _first(start: Start, lead_h: Callable[[Floats], Floats]) -> int:
    """The first minute at which what is left of P is no longer than the lead that the last look asks for."""
    at, rows = start.looks()
    wanted = start.p_end - np.floor(60 * np.maximum(lead_h(rows), 0)).astype(np.int64)
    due = np.flatnonzero(wanted < at + LOOK_MIN)
    return int(min(max(at[due[0]], wanted[due[0]]), start.p_end)) if due.size else start.p_end


def quantile_line(x: Floats, y: Floats, q: float) -> tuple[float, float]:
    """Slope and offset of the line below which a share `q` of the points lies, by linear programming."""
    from scipy.optimize import linprog

    n = x.size
    cost = np.concatenate([np.zeros(2), np.full(n, q), np.full(n, 1 - q)])
    equal = np.column_stack([x, np.ones(n), np.eye(n), -np.eye(n)])
    found = linprog(cost, A_eq=equal, b_eq=y, bounds=[(None, None)] * 2 + [(0, None)] * (2 * n), method="highs")
    return float(found.x[0]), float(found.x[1])


def _ratio(learnt: Lessons, share: float) -> float:
    """That quantile of the wait by the planned wait, of the looks with a planned wait."""
    planned = learnt.rows[:, look_kernel.PLANNED]
    some = planned > 0
    return float(np.quantile(learnt.waits_h[some] / planned[some], share)) if some.any() else 1.0


def _newsvendor(learnt: Lessons, share: float) -> Callable[[Floats], Floats]:
    """That quantile of the wait, by boosted trees of its quantile as a share of the planned wait.

    Small trees, and none that know hour and weekday: with a few months to learn from, larger ones learn the months.
    """
    import lightgbm

    planned = learnt.rows[:, look_kernel.PLANNED]
    some = planned > 0
    if some.sum() < 2 * LEAST_IN_LEAF:
        return lambda rows: rows[:, look_kernel.PLANNED]
    kept = np.delete(np.arange(look_kernel.FEATURES), [look_kernel.HOUR, look_kernel.WEEKDAY])
    options = {
        "objective": "quantile", "alpha": share, "num_leaves": 7, "learning_rate": 0.06,
        "min_data_in_leaf": LEAST_IN_LEAF, "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 1,
        "verbosity": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(learnt.rows[some][:, kept], learnt.waits_h[some] / planned[some])
    model = lightgbm.train(options, data, ROUNDS)
    return lambda rows: np.asarray(model.predict(rows[:, kept]), np.float64) * rows[:, look_kernel.PLANNED]


def _regression(learnt: Lessons, name: str) -> Callable[[Floats], Floats]:
    """The expected wait by 100 trees, and `EARLY_H` more: S goes once the expected overlap is no longer than that."""
    import lightgbm

    options = {
        "objective": "regression", "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 1,
        "verbosity": -1, **TREES[name],
    }  # fmt: skip
    model = lightgbm.train(options, lightgbm.Dataset(learnt.rows, learnt.waits_h), 100)
    return lambda rows: np.asarray(model.predict(rows), np.float64) + EARLY_H
