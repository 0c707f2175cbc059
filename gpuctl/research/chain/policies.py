"""When to submit S: rules by name, their training on past starts, and their use on a later start.

Rules that plan or learn the wait look every ten minutes while P runs, and submit S in the minute in which P's remaining
time is at most their lead, without waiting for the next look.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.research.chain import look_kernel
from gpuctl.research.chain.baselines import LOOK_MIN, StartedPair, observe_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import lightgbm
    from numpy.typing import NDArray

    from gpuctl.research.chain.episode import Situation
    from gpuctl.research.chain.past import Drawn, History

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.97)
"""Quantiles of the wait in saved models and nets."""

NAMES = ("reactive", "avg", "asap", "dependency", "quantile", "plan", "newsvendor", "forest", "boost", "best")
LEARN = ("quantile", "plan", "newsvendor", "forest", "boost")
LEAD_QUANTILE = 0.9
"""Quantile of ``quantile``, as the authors set it."""

BAGS, ROUNDS, LEAST_IN_LEAF = 5, 60, 120
"""Settings of ``newsvendor``: averaged models, each on different looks; trees per model; looks per leaf. They were
chosen on Lonestar6's January and February, on 76 nodes, before March was used."""

FORECASTS = 16
SHOWN = (1, 4, 8, 12, 14)
"""Forecasts of S's wait per look, and which of them, sorted, are inputs of ``newsvendor`` with their mean."""

EARLY_H = 0.5
"""Hours of overlap at which ``forest`` and ``boost`` submit S, as in the authors' models."""

TREES: dict[str, dict[str, object]] = {
    "forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.632, "feature_fraction_bynode": 0.3,
               "num_leaves": 255, "min_data_in_leaf": 5},
    "boost": {"num_leaves": 31, "learning_rate": 0.1},
}  # fmt: skip
"""Options of LightGBM: a forest of 100 trees with a third of the features per split; its defaults."""


@dataclass
class Start:
    """One start, and the looks at it so far.

    Attributes:
        situation: P among the trace's jobs.
        known: the situation once P has started.
        clock: minute of the week at its start.
        drawn: source of run times in forecasts.
        grid: submit S and notice P's end only at looks, every ten minutes of the clock.
        seen: minutes of the looks and their features.
        foreseen: forecasts by minute.
        hindsight: possible minutes of S's submission, and the resulting interruption, in seconds.
    """

    situation: Situation
    known: StartedPair
    clock: int
    drawn: Drawn
    grid: bool = False
    seen: tuple[Ints, Floats] | None = None
    foreseen: dict[int, Floats] = field(default_factory=dict)
    hindsight: tuple[Ints, Floats] | None = None

    @property
    def p_end(self) -> int:
        """The minute of P's end by its limit."""
        return self.known.p_end_s // 60

    @property
    def p_ends(self) -> int:
        """The minute of P's end, unknown before."""
        return self.p_end - self.situation.pair.limit_min + self.situation.pair.lasts_min

    @property
    def forced(self) -> int:
        """The latest minute of S's submission: when P's end is noticed."""
        return -(-self.p_ends // LOOK_MIN) * LOOK_MIN if self.grid else self.p_ends

    def looks(self) -> tuple[Ints, Floats]:
        """The minutes of looks while P runs, and their features [looks, FEATURES]."""
        if self.seen is None:
            first = self.p_end - self.situation.pair.limit_min + 1
            at = np.arange(-(-first // LOOK_MIN) * LOOK_MIN if self.grid else first, self.p_end + 1, LOOK_MIN)
            self.seen = at, look(self, at, waits=False)[0]
        return self.seen

    def forecasts(self, minutes: Ints) -> Floats:
        """Forecasts of S's wait in hours: their mean, and `SHOWN` of them [minutes, 1 + len(SHOWN)]."""
        new = np.array([minute for minute in minutes.tolist() if minute not in self.foreseen], np.int64)
        if new.size:
            waits = self.situation.forecasts(new, self.drawn, FORECASTS) / 60
            rows = np.column_stack([waits.mean(axis=1), waits[:, SHOWN]])
            self.foreseen.update(zip(new.tolist(), rows, strict=True))
        return np.array([self.foreseen[minute] for minute in minutes.tolist()]).reshape(minutes.size, 1 + len(SHOWN))


def start_of(situation: Situation, begin_s: int, history: History, *, grid: bool = False) -> Start:
    """A start at a second of the log's clock; forecasts use jobs that had ended by then."""
    # 1970-01-01 was a Thursday
    clock = (begin_s // 60 + 3 * 1440) % 10_080
    return Start(situation, observe_start(situation), clock, history.at(begin_s, situation.trace), grid)


def look(start: Start, at: Ints, *, waits: bool) -> tuple[Floats, Ints]:
    """Look at a start in several minutes, ascending: features, and how long S would wait."""
    rows = np.zeros((at.size, look_kernel.FEATURES))
    found = np.zeros(at.size if waits else 0, np.int64)
    look_kernel.look_features(
        start.situation.initial_state(), start.situation.initial_state(), start.clock, at, rows, found
    )
    return rows, found


BEFORE = 23
"""Hours before a look that are also inputs of ``transformer``."""


def hours(start: Start, at: Ints) -> Floats:
    """Features in the hours up to each minute, the minute last [minutes, BEFORE + 1, FEATURES].

    Hours before the start repeat its first minute.
    """
    minutes = np.maximum(at[:, None] - 60 * np.arange(BEFORE, -1, -1), 0)
    each, place = np.unique(minutes, return_inverse=True)
    return look(start, each, waits=False)[0][place.reshape(minutes.shape)]


def hourly(start: Start) -> Ints:
    """Minutes of hourly looks while P runs, by its limit."""
    return np.arange(start.p_end - start.situation.pair.limit_min + 1, start.p_end + 1, 60)


@dataclass(frozen=True)
class Lessons:
    """Training data of policies: hourly looks at starts of the past.

    Attributes:
        rows: features of each look [looks, FEATURES].
        forecasts: forecasts of the wait at each look [looks, 1 + len(SHOWN)]; empty: not wanted.
        waits_h: S's wait, hours [looks].
        left_h: P's remaining hours [looks].
        start: number of each look's start, ascending [looks].
        load: mean wait in hours times jobs in the queue, by start.
        lead_h: least lead of a look without interruption, by start.
        end_h: S's wait if submitted at P's end, hours, by start.
        before: features of the `BEFORE` hours before the first look, if wanted [starts, BEFORE, FEATURES].
        cpu_s: CPU seconds of the simulations, without forecasts.
        forecasts_s: CPU seconds of the forecasts.
    """

    rows: Floats
    forecasts: Floats
    waits_h: Floats
    left_h: Floats
    start: Ints
    load: Floats
    lead_h: Floats
    end_h: Floats
    before: Floats
    cpu_s: float
    forecasts_s: float


def lessons(
    starts: Iterable[Start], forecasts: bool, progress: Callable[[int], None] = lambda _: None, *, before: bool = False
) -> Lessons:
    """Look at past starts every hour, and simulate S's wait."""
    begin = time.process_time()
    rows, waits, lefts, leads, loads, ends, earlier, drawn = [], [], [], [], [], [], [], []
    apart = 0.0
    for done, start in enumerate(starts):
        progress(done)
        at = hourly(start)
        seen, wait = look(start, np.append(at, start.p_end), waits=True)
        ends.append(wait[-1] / 60)
        seen, wait = seen[:-1], wait[:-1]
        if before:
            earlier.append(hours(start, at[:1])[0, :-1])
        rows.append(seen)
        waits.append(wait / 60)
        left = start.p_end - at
        lefts.append(left / 60)
        leads.append(float(left[wait <= left].min(initial=start.situation.pair.limit_min)) / 60)
        loads.append(_load(start.known))
        if forecasts:
            since = time.process_time()
            drawn.append(start.forecasts(at))
            apart += time.process_time() - since
    return Lessons(
        rows=np.concatenate(rows),
        forecasts=np.concatenate(drawn) if drawn else np.zeros((0, 0)),
        waits_h=np.concatenate(waits),
        left_h=np.concatenate(lefts),
        start=np.repeat(np.arange(len(waits)), [len(each) for each in waits]),
        load=np.array(loads),
        lead_h=np.array(leads),
        end_h=np.array(ends),
        before=np.array(earlier) if earlier else np.zeros((0, 0, 0)),
        cpu_s=time.process_time() - begin - apart,
        forecasts_s=apart,
    )


def _load(at: StartedPair) -> float:
    return at.avg_wait_min / 60 * at.queued


@dataclass(frozen=True)
class Rule:
    """When S is submitted.

    Attributes:
        minute: gives the minute for a start; of P's end it knows only the limit.
        wait_h: target quantile of S's wait in hours, from a start, minutes, and their features; None: none.
        quantile: that quantile.
    """

    minute: Callable[[Start], int]
    wait_h: Callable[[Start, Ints, Floats], Floats] | None = None
    quantile: float | None = None


def trained(name: str, learnt: Lessons | None, cost: float) -> Rule:
    """The rule of that name.

    Args:
        name: one of `NAMES`.
        learnt: training data, for names in `LEARN`.
        cost: cost of an hour of interruption, in hours of overlap.
    """
    if name in _SIMPLE:
        return Rule(_SIMPLE[name])
    if name == "best":
        return Rule(lambda start: _best(start, cost))
    if learnt is None:
        raise ValueError(name)
    share = cost / (1 + cost)
    if name == "quantile":
        slope, offset = quantile_line(learnt.load, learnt.lead_h, LEAD_QUANTILE)
        return Rule(lambda start: _before(start, 60 * (offset + slope * _load(start.known))))
    if name == "plan":
        ratio = planned_ratio(learnt, share)
        return Rule(
            lambda start: _first(start, lambda rows: ratio * rows[:, look_kernel.PLANNED]),
            lambda _start, _at, rows: ratio * rows[:, look_kernel.PLANNED],
            share,
        )
    if name == "newsvendor":
        return sharp(newsvendor(learnt, share), share)
    lead = _regression(learnt, name)
    return Rule(lambda start: _first(start, lead))


def sharp(wait_h: Callable[[Floats, Floats], Floats], share: float) -> Rule:
    """The rule that uses a quantile of the wait, from features and forecasts."""

    def at_looks(start: Start, at: Ints, rows: Floats) -> Floats:
        return wait_h(rows, start.forecasts(at))

    return Rule(
        lambda start: searched(start, lambda s, at, rows: due(s, at, at_looks(s, at, rows))), at_looks, share
    )  # fmt: skip


def _before(start: Start, lead_min: float) -> int:
    most = min(start.situation.pair.limit_min, start.p_end - start.situation.p_submit_min - 1)
    return start.p_end - int(np.clip(lead_min, 0, most))


_SIMPLE: dict[str, Callable[[Start], int]] = {
    "reactive": lambda start: start.p_end,
    "avg": lambda start: max(start.p_end - start.known.avg_wait_min, start.situation.p_submit_min + 1),
    "asap": lambda start: start.situation.p_submit_min // LOOK_MIN * LOOK_MIN + LOOK_MIN,
    "dependency": lambda start: start.p_end,
}


def _best(start: Start, cost: float) -> int:
    """The cheapest look in hindsight, or P's end."""
    if start.hindsight is None:
        at = np.append(start.looks()[0], start.forced)
        at = np.unique(at[at <= start.forced])
        e = start.situation.initial_state()
        r = np.array([start.situation.outcome(e, minute).interruption_s for minute in at.tolist()])
        start.hindsight = at, r
    at, r = start.hindsight
    return int(at[np.argmin(cost * np.maximum(r, 0) + np.maximum(-r, 0))])


def due(start: Start, at: Ints, lead_h: Floats) -> int | None:
    """The first minute at which P's remaining time is at most the last look's lead, if any."""
    wanted = start.p_end - np.floor(60 * np.maximum(lead_h, 0)).astype(np.int64)
    if start.grid:
        first = np.flatnonzero(wanted <= at)
        return int(at[first[0]]) if first.size else None
    first = np.flatnonzero(wanted < at + LOOK_MIN)
    return int(min(max(at[first[0]], wanted[first[0]]), start.p_end)) if first.size else None


def _first(start: Start, lead_h: Callable[[Floats], Floats]) -> int:
    """The minute that is due by all looks."""
    at, rows = start.looks()
    found = due(start, at, lead_h(rows))
    return start.p_end if found is None else found


AT_ONCE = 12
"""Looks forecast together; the first one that is due ends the search."""


def searched(start: Start, chosen: Callable[[Start, Ints, Floats], int | None]) -> int:
    """The first minute chosen, checking some looks at a time, with leads of at most the planned wait.

    Args:
        start: the start.
        chosen: takes minutes and features of looks, returns the minute, if any.
    """
    at, rows = start.looks()
    near = np.flatnonzero(start.p_end - at < 60 * rows[:, look_kernel.PLANNED] + LOOK_MIN)
    for k in range(0, near.size, AT_ONCE):
        some = near[k : k + AT_ONCE]
        found = chosen(start, at[some], rows[some])
        if found is not None:
            return found
    return start.p_end


def wait_at(quantiles_h: Floats, shares: Floats) -> Floats:
    """Interpolate between `QUANTILES`; from no wait below the first, the last one above the last."""
    return np.asarray(np.interp(shares, [0.0, *QUANTILES], [0.0, *quantiles_h]), np.float64)


def quantile_line(x: Floats, y: Floats, q: float) -> tuple[float, float]:
    """Slope and offset of the line below which a share `q` of the points lies, by linear programming."""
    from scipy.optimize import linprog

    n = x.size
    cost = np.concatenate([np.zeros(2), np.full(n, q), np.full(n, 1 - q)])
    equal = np.column_stack([x, np.ones(n), np.eye(n), -np.eye(n)])
    found = linprog(cost, A_eq=equal, b_eq=y, bounds=[(None, None)] * 2 + [(0, None)] * (2 * n), method="highs")
    return float(found.x[0]), float(found.x[1])


def planned_ratio(learnt: Lessons, share: float) -> float:
    """That quantile of the wait by the planned wait, of the looks with a planned wait."""
    planned = learnt.rows[:, look_kernel.PLANNED]
    some = planned > 0
    return float(np.quantile(learnt.waits_h[some] / planned[some], share)) if some.any() else 1.0


def inputs(rows: Floats, forecasts: Floats) -> Floats:
    """Inputs of ``newsvendor``'s trees: the queue, free nodes, and forecasts, also as shares of the plan.

    No clock: with a few months of training data, trees learn the months. No accounting of the last day: ``gpuctl chain
    advise`` has only squeue.
    """
    planned = np.maximum(rows[:, [look_kernel.PLANNED]], 0.01)
    return np.column_stack([rows[:, look_kernel.PRESENT], forecasts, forecasts / planned])


def enough(learnt: Lessons) -> bool:
    """Whether enough looks have a planned wait to grow trees."""
    return int((learnt.rows[:, look_kernel.PLANNED] > 0).sum()) >= 2 * LEAST_IN_LEAF


def grown(learnt: Lessons, share: float) -> list[lightgbm.Booster]:
    """Small boosted trees for a quantile of wait / planned wait, `BAGS` times."""
    import lightgbm

    planned = learnt.rows[:, look_kernel.PLANNED]
    some = planned > 0
    options = {
        "objective": "quantile", "alpha": share, "num_leaves": 7, "learning_rate": 0.06,
        "min_data_in_leaf": LEAST_IN_LEAF, "bagging_fraction": 0.7, "bagging_freq": 1, "num_threads": 1,
        "deterministic": True, "force_row_wise": True, "verbosity": -1,
    }  # fmt: skip
    seen, share_of_plan = inputs(learnt.rows[some], learnt.forecasts[some]), learnt.waits_h[some] / planned[some]
    data = lightgbm.Dataset(seen, share_of_plan, feature_name=list(INPUTS), free_raw_data=False)
    return [lightgbm.train({**options, "seed": bag + 1}, data, ROUNDS) for bag in range(BAGS)]


INPUTS = (
    *(look_kernel.NAMES[k] for k in look_kernel.PRESENT),
    *(f"forecast_{of}{unit}" for unit in ("_h", "_by_plan") for of in ("mean", *SHOWN)),
)
"""Names of the columns of `inputs`."""


def newsvendor(learnt: Lessons, share: float) -> Callable[[Floats, Floats], Floats]:
    """A quantile of the wait in hours, by trees; the planned wait if there is too little training data."""
    if not enough(learnt):
        return lambda rows, _: rows[:, look_kernel.PLANNED]
    models = grown(learnt, share)
    return lambda rows, forecasts: wait_by(
        rows, forecasts, lambda seen: [np.asarray(model.predict(seen, num_threads=1), np.float64) for model in models]
    )


def wait_by(rows: Floats, forecasts: Floats, models: Callable[[Floats], list[Floats]]) -> Floats:
    """The mean output of the models x planned wait, at most the planned wait."""
    planned = rows[:, look_kernel.PLANNED]
    mean = np.asarray(np.mean(models(inputs(rows, forecasts)), axis=0), np.float64)
    return np.clip(mean * planned, 0, planned)


def _regression(learnt: Lessons, name: str) -> Callable[[Floats], Floats]:
    """The expected wait by 100 trees plus `EARLY_H`: S is submitted once the expected overlap is at most `EARLY_H`."""
    import lightgbm

    options = {
        "objective": "regression", "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 1,
        "verbosity": -1, **TREES[name],
    }  # fmt: skip
    model = lightgbm.train(options, lightgbm.Dataset(learnt.rows, learnt.waits_h), 100)
    return lambda rows: np.asarray(model.predict(rows, num_threads=1), np.float64) + EARLY_H
