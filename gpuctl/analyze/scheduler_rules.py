"""Infers a scheduler's unstated rules: those that leave the least unexplained.

The rules are a quota for each queue, a share of busy GPUs up to which a queue may exceed it, the racks, and how long a
gang waits before it accepts nodes that are less close. A log contradicts a setting of them in two ways: by starts that
it forbids (a gang took its queue over the quota without the right to borrow; a gang was spread across racks too soon),
and by waits that it leaves unexplained (a placement that the gang would have accepted was free, and its queue was
within quota). A forbidden start counts as much as a mean wait, so that both are seconds, and the setting with the
fewest of them is used. Settings that leave about as few are equivalent: the range of the causes covers all of them.

All effects of a setting are sums over (queue, GPUs in use + requested, GPUs held by the queue + requested), so waits
are counted once per layout of racks; every quota and rule of borrowing is then looked up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze import delays, interval_sweeps, occupancy
from gpuctl.analyze.delay_bounds import Limits
from gpuctl.core import causes

if TYPE_CHECKING:
    from gpuctl.analyze.occupancy import Bools, Floats, Holdings, Ints, Nodes
    from gpuctl.analyze.racks import Layout

A_PASS_S = 120.0
"""Seconds at either end of a wait that may be a scheduler's way from pass to pass, or a retry being set up."""
AS_GOOD = 0.0005
"""A setting is as good as the best one if it leaves at most this share of all waiting more unexplained …"""
AS_NOISY = 0.5
"""… and this share of what the best one leaves, which is how far the log is from following such rules at all."""
BLUR = 4.0
"""Where rules of another kind hold, the causes were off by up to three times what the best setting leaves unexplained
(limits on users, queues in strict order: tests/integration/test_rules.py); four times, to be sure."""
OTHER_RULES = 0.05
"""Where the causes may be off by a larger share than this, rules of another kind hold: any wait may be for them."""
MOST_THRESHOLDS = 512
MOST_WANTED = 512
CAUSES = len(causes.CAUSES)


@dataclass(frozen=True)
class GivenRules:
    """Rules that are given, not inferred.

    Attributes:
        limits: the most GPUs that each queue may hold; NaN: to be inferred.
        borrow_below: see `delays.Cluster`; None: to be inferred.
    """

    limits: Floats
    borrow_below: float | None


@dataclass(frozen=True)
class LayoutFit:
    """What one layout leaves unexplained, by the rule of borrowing; arrays over `busy`.

    Attributes:
        layout: the layout of racks.
        busy: GPUs in use up to which a queue may exceed its quota.
        waits: seconds of waiting left unexplained.
        starts: forbidden starts, by quotas and placements.
        lost: seconds, sum of both.
        quotas: (busy, 3, queues): the smallest quota about as good as the best, the best, and the largest; inf if
            unbounded.
        causes: (busy, 3, causes): seconds of delay with these quotas.
        broken: (busy, queues): starts over the quota in use.
    """

    layout: Layout
    busy: Ints
    waits: Floats
    starts: Floats
    lost: Floats
    quotas: Floats
    causes: Floats
    broken: Floats


@dataclass(frozen=True)
class Rules:
    """The setting in use, and the range of the causes.

    Attributes:
        layout: racks and relaxation.
        borrow_below: share of busy GPUs up to which a queue may exceed its quota.
        limits: GPUs by queue; inf if a queue has none.
        lost: share of the waiting that it leaves unexplained, forbidden starts counted as mean waits.
        low: seconds by cause, the minimum over all equivalent settings.
        high: the maximum.
        considered: every layout with its unexplained rest, the best one first.
        best: the least seconds left unexplained by any setting.
        good: unexplained seconds up to which a setting is equivalent.
        total: total GPUs.
        waited: total seconds of waiting.
        may_be: possible quotas and borrowing for a single wait.
        racks: the layouts of the equivalent settings.
        blur: share of the waiting by which the causes may be off because of additional rules.
        broken: by queue, starts over the quota in use.
        guessed: whether any quota or the rule of borrowing is inferred.
    """

    layout: Layout
    borrow_below: float
    limits: Floats
    lost: float
    low: Floats
    high: Floats
    considered: tuple[LayoutFit, ...] = field(repr=False)
    best: float
    good: float
    total: float
    waited: float
    may_be: Limits
    racks: tuple[Nodes, ...]
    blur: float
    broken: Floats
    guessed: bool

    @property
    def explain(self) -> bool:
        """Return whether rules of this kind explain the log, so that they can be applied to a single wait."""
        return self.blur < OTHER_RULES


@dataclass(frozen=True)
class _Bins:
    """Thresholds, ascending, and the most GPUs that are counted; larger numbers count as these."""

    edges: Ints
    most: int

    def of(self, gpus: Floats) -> Ints:
        """Return the bin of each number of GPUs: the number of smaller thresholds."""
        return np.searchsorted(self.edges, np.minimum(gpus.astype(np.int64), self.most), side="left")


@dataclass(frozen=True)
class _State:
    """The cluster over its change points, independent of the racks."""

    times: Floats
    used: Floats
    held: tuple[Floats, ...]
    requested: Floats
    wanted: Floats


def find(waits: delays.Waits, holdings: Holdings, layouts: list[Layout], known: GivenRules) -> Rules:
    """Infer the rules that explain the waits and starts of a log best.

    Args:
        waits: all of one pool of nodes.
        holdings: every attempt that held GPUs.
        layouts: the layouts of racks, at least one.
        known: rules that are given.
    """
    total = float(layouts[0].nodes.gpus.sum())
    waited = float((waits.start - waits.queued).sum())
    each = max(1.0, waited / max(1, waits.start.size))
    state = _state(holdings, layouts[0].nodes, known.limits.size)
    thresholds = _thresholds(total, known.borrow_below)
    found = _try(waits, holdings, state, layouts, known, thresholds, each)
    found.sort(key=lambda one: float(one.lost.min()))
    guessed = known.borrow_below is None or bool(np.isnan(known.limits).any())
    return _choose(found, known, total, waited, guessed=guessed)


def _thresholds(total: float, borrow_below: float | None) -> Ints:
    if borrow_below is not None:
        return np.array([int(borrow_below * total + 1e-9)])
    return np.unique(np.linspace(0, int(total), min(MOST_THRESHOLDS, int(total)) + 1).round().astype(np.int64))


def _state(holdings: Holdings, nodes: Nodes, queues: int) -> _State:
    first = float(holdings.start.min(initial=np.inf))
    times = np.unique(np.concatenate([occupancy.change_points(holdings, first), nodes.start, nodes.end]))
    free, _ = occupancy.free_and_open(times, nodes, [])
    used = np.maximum(nodes.gpus.sum() - free, occupancy.in_use(times, holdings))
    k = np.searchsorted(times, holdings.start)
    # the order of simultaneous starts is unknown: each counts as if alone
    requested = (used - occupancy.started(times, holdings))[k] + holdings.gpus
    wanted = np.zeros(k.size)
    held = []
    for queue in range(queues):
        mine = holdings.queue == queue
        held.append(occupancy.in_use(times, holdings, queue))
        before = held[queue] - occupancy.started(times, holdings, queue)
        wanted[mine] = before[k[mine]] + holdings.gpus[mine]
    return _State(times, used, tuple(held), np.ceil(requested), np.ceil(wanted))


@dataclass(frozen=True)
class _Guess:
    """A layout over the cluster's change points: where a gang of each size fits, the widest rack."""

    layout: Layout
    placeable: dict[int, Bools]
    widest: Floats

    @classmethod
    def make(cls, layout: Layout, times: Floats, sizes: list[int]) -> _Guess:
        _, fits = occupancy.free_and_open(times, layout.nodes, sizes)
        accepts_more = np.isfinite(layout.relax[0]) and layout.relax[0] < layout.relax[1]
        widest = occupancy.widest_rack(times, layout.nodes) if accepts_more else np.zeros(times.size)
        return cls(layout, fits, widest)


def _try(  # noqa: PLR0917
    waits: delays.Waits,
    holdings: Holdings,
    state: _State,
    layouts: list[Layout],
    known: GivenRules,
    busy: Ints,
    each: float,
) -> list[LayoutFit]:
    """Return what each layout leaves unexplained, for every rule of borrowing in `busy` and its best quotas."""
    total, slack = float(layouts[0].nodes.gpus.sum()), AS_GOOD * float((waits.start - waits.queued).sum())
    sizes = [int(size) for size in np.unique(waits.gpus[waits.gpus > 0])]
    guesses = [_Guess.make(layout, state.times, sizes) for layout in layouts]
    requested = _Bins(busy, int(total + max(sizes, default=0)) + 1)
    queues = known.limits.size
    fits: list[list[_Fit]] = [[] for _ in layouts]
    quotas = np.zeros((len(layouts), busy.size, 3, queues))
    for queue in range(queues):
        # waits queued before anything was held are left out
        mine = np.flatnonzero(
            (waits.queue == queue)
            & (waits.gpus > 0)
            & (waits.start > waits.queued)
            & (waits.queued >= state.times.min(initial=np.inf))
        )
        limit = known.limits[queue]
        most = int(state.held[queue].max(initial=0) + waits.gpus[mine].max(initial=1)) + 1
        if np.isnan(limit):
            edges = np.unique(np.linspace(0, most, min(MOST_WANTED, most + 1)).round().astype(np.int64))
        else:
            edges = np.array([min(limit, most)]).astype(np.int64)
        wanted = _Bins(edges, most)
        bins = (busy.size + 1, edges.size + 1)
        parts = [
            _WaitingTime.make(waits, mine[waits.gpus[mine] == size], queue, state, requested, wanted) for size in sizes
        ]
        began = holdings.queue == queue
        at = [each_.of(gpus[began]) for gpus, each_ in ((state.requested, requested), (state.wanted, wanted))]
        starts = np.bincount(at[0] * bins[1] + at[1], minlength=bins[0] * bins[1]).astype(np.float64).reshape(bins)
        for number, guess in enumerate(guesses):
            counts = np.zeros((4, bins[0] * bins[1]))
            for part in parts:
                part.add(counts, guess, state, total)
            fits[number].append(_fit(counts.reshape(4, *bins), starts, edges, each, slack))
            quotas[number, :, :, queue] = fits[number][-1].quotas if np.isnan(limit) else limit
    return [_found(*one, busy, each) for one in zip(layouts, fits, quotas, strict=True)]


def _found(layout: Layout, fits: list[_Fit], quotas: Floats, busy: Ints, each: float) -> LayoutFit:
    unexplained, forbidden = np.zeros(busy.size), np.full(busy.size, float(layout.forbidden))
    causes = np.zeros((busy.size, 3, CAUSES))
    broken = np.stack([one.starts for one in fits], axis=1) if fits else np.zeros((busy.size, 0))
    for one in fits:
        unexplained += one.waits
        forbidden += one.starts
        causes += one.causes
    return LayoutFit(layout, busy, unexplained, forbidden, unexplained + each * forbidden, quotas, causes, broken)


@dataclass(frozen=True)
class _WaitingTime:
    """The waits of one queue and gang size, summed on the intervals on which any of them is in progress.

    Attributes:
        demand: GPUs of each gang.
        k: the intervals.
        cell: bin of the GPUs in use and held by the queue, with this gang.
        seconds: waited.
        trimmed: of these, without the scheduler's delay between passes.
        queued: of each wait longer than such delays, seconds.
        start: likewise.
    """

    demand: int
    k: Ints
    cell: Ints
    seconds: Floats
    trimmed: Floats
    queued: Floats
    start: Floats

    @classmethod
    def make(  # noqa: PLR0917
        cls, waits: delays.Waits, some: Ints, queue: int, state: _State, requested: _Bins, wanted: _Bins
    ) -> _WaitingTime:
        demand = int(waits.gpus[some[0]]) if some.size else 0
        queued, start = waits.queued[some], waits.start[some]
        seconds = interval_sweeps.covered(state.times, queued, start)
        k = np.flatnonzero(seconds)
        a = requested.of(state.used[k] + demand)
        h = wanted.of(state.held[queue][k] + demand)
        long = start - A_PASS_S > queued + A_PASS_S
        queued, start = queued[long], start[long]
        trimmed = interval_sweeps.covered(state.times, queued + A_PASS_S, start - A_PASS_S)
        return cls(demand, k, a * (wanted.edges.size + 1) + h, seconds[k], trimmed[k], queued, start)

    def add(self, counts: Floats, guess: _Guess, state: _State, total: float) -> None:
        """Add the seconds to `counts` (4, cells).

        These are: with too few GPUs free; with enough, but not on the fewest nodes of one rack; with those free, too;
        and, trimmed, with a placement free that the gang would accept after such a wait.
        """
        if not self.k.size:
            return
        enough = total - state.used[self.k] >= self.demand
        best = enough & guess.placeable[self.demand][self.k]
        for kind, where in enumerate((~enough, enough & ~best, best)):
            counts[kind] += np.bincount(self.cell[where], weights=self.seconds[where], minlength=counts.shape[1])
        accepted = np.where(best, self.trimmed, 0.0)
        rack, anywhere = guess.layout.relax
        wide = guess.widest[self.k] >= self.demand
        for after, where in ((rack, enough & ~best & wide), (anywhere, enough & ~best & ~wide)):
            if where.any():
                accepted[where] = self._after(after, state.times)[self.k[where]]
        counts[3] += np.bincount(self.cell, weights=accepted, minlength=counts.shape[1])

    def _after(self, relaxed: float, times: Floats) -> Floats:
        """Return the seconds of each interval, trimmed, of waits that had lasted this long."""
        some = self.start - A_PASS_S > self.queued + relaxed
        queued, end = self.queued[some], self.start[some] - A_PASS_S
        begin = queued + A_PASS_S
        if relaxed > 0:
            k = np.searchsorted(times, queued + relaxed, side="left")
            begin = np.maximum(begin, times[np.minimum(k, times.size - 1)])
        later = end > begin
        return interval_sweeps.covered(times, begin[later], end[later])


@dataclass(frozen=True)
class _Fit:
    """As `LayoutFit`, for one queue: waits (busy), starts (busy), quotas (busy, 3), causes (busy, 3, causes)."""

    waits: Floats
    starts: Floats
    quotas: Floats
    causes: Floats


def _beyond(counts: Floats, axis: int) -> Floats:
    """Return, by threshold along `axis`, the sum of the bins beyond it."""
    sums = np.flip(np.cumsum(np.flip(counts, axis), axis), axis)
    return np.delete(sums, 0, axis)


def _fit(counts: Floats, starts: Floats, edges: Ints, each: float, slack: float) -> _Fit:
    """Return the quotas of one queue that leave the least unexplained, under every rule of borrowing."""
    strict = _beyond(counts, 1)  # (4, busy, wanted bins): waits that may not borrow
    loose = counts[3].sum() - strict[3].sum(1)
    over = _beyond(strict, 2)
    unexplained = strict[3].sum(1, keepdims=True) - over[3]
    forbidden = _beyond(_beyond(starts, 0), 1)
    lost = unexplained + each * forbidden
    busy = np.arange(lost.shape[0])
    best = lost.argmin(1)
    least = lost[busy, best][:, None]
    good = lost <= least * (1 + AS_NOISY) + slack
    chosen = np.stack([good.argmax(1), best, good.shape[1] - 1 - good[:, ::-1].argmax(1)], axis=1)
    quotas = edges[chosen].astype(np.float64)
    quotas[:, 2][chosen[:, 2] == edges.size - 1] = np.inf
    quotas[:, 1][chosen[:, 1] == edges.size - 1] = np.inf
    beyond = np.stack([over[kind][busy[:, None], chosen] for kind in range(3)], axis=2)
    within = counts[:3].sum((1, 2)) - beyond
    causes = np.concatenate([beyond.sum(2, keepdims=True), within], axis=2)[:, :, [0, 1, 2, 3]]
    return _Fit(loose + unexplained[busy, best], forbidden[busy, best], quotas, causes)


def _may_be(near: list[tuple[LayoutFit, int]], known: GivenRules, *, explain: bool) -> Limits:
    """Return the quotas and the rule of borrowing that may apply to a single wait.

    If rules of this kind do not explain the log, any gang may have been over an unstated limit, and only certain facts
    show that one was.
    """
    queues = known.limits.size
    if not explain:
        busiest = np.inf if known.borrow_below is None else float(near[0][0].busy[0])
        most = np.where(np.isnan(known.limits), np.inf, known.limits)
        return Limits(np.zeros(1), (np.full(1, -1.0),) * queues, most, busiest)
    requested = np.unique([0, *(int(one.busy[k]) + 1 for one, k in near)])
    least = np.full((queues, requested.size), np.inf)
    for one, k in near:
        after = np.searchsorted(requested, int(one.busy[k]) + 1)
        least[:, after] = np.minimum(least[:, after], one.quotas[k, 0])
    least = np.minimum.accumulate(least, axis=1)
    most = np.max([one.quotas[k, 2] for one, k in near], axis=0)
    return Limits(requested.astype(np.float64), tuple(least), most, float(max(one.busy[k] for one, k in near)))


def _choose(found: list[LayoutFit], known: GivenRules, total: float, waited: float, *, guessed: bool) -> Rules:
    """Return the range over all equivalent settings, and the one nearest to its middle."""
    blur = BLUR if guessed else 0.0
    best = min(float(one.lost.min()) for one in found)
    good = best * (1 + AS_NOISY) + AS_GOOD * waited
    near = [(one, int(k)) for one in found for k in np.flatnonzero(one.lost <= good)]
    causes = np.array([one.causes[k] for one, k in near])  # (settings, 3, causes)
    low, high = causes.min((0, 1)), causes.max((0, 1))
    off = np.abs(causes - (low + high) / 2).max(2)
    setting, which = np.unravel_index(off.argmin(), off.shape)
    one, k = near[int(setting)]
    share = min(1.0, (int(one.busy[k]) + 0.5) / total) if one.busy[k] else 0.0
    limits = one.quotas[k, which]
    off_by = blur * best / waited if waited else 0.0
    explain = off_by < OTHER_RULES
    racks = {id(each.layout): each.layout.nodes for each in (found if not explain else [pair[0] for pair in near])}
    return Rules(
        layout=one.layout,
        borrow_below=share,
        limits=limits,
        lost=float(one.lost[k]) / waited if waited else 0.0,
        low=np.maximum(low - blur * best, 0.0),
        high=np.minimum(high + blur * best, waited),
        considered=tuple(found),
        best=best,
        good=good,
        total=total,
        waited=waited,
        may_be=_may_be(near, known, explain=explain),
        racks=tuple(racks.values()),
        blur=off_by,
        broken=one.broken[k],
        guessed=guessed,
    )
