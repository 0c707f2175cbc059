"""Offline bounds that know all arrivals: a genetic search for fixed priorities, and exhaustive search of tiny cases."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.research.accel import state as s
from gpuctl.research.accel.metrics import lateness
from gpuctl.research.accel.simulate import Outcome, Policy, Rules, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.requests import Requests

    Floats = NDArray[np.float64]

INDIVIDUALS, GENERATIONS = 32, 40
KEPT, CHANGED, CHANGE = 2, 0.1, 0.2
"""Best ones that go on as they are; share of the priorities that change in a child, and by which deviation."""
MOST_LAYERS, MOST_STATES = 12, 200_000
"""Of a tiny case."""


def genetic(
    machine: Machine, requests: Requests, rules: Rules, progress: Callable[[str, int, int], None] = lambda *_: None
) -> Outcome:
    """Return the best of many fixed orders of requests, each with earliest finish; it knows all arrivals.

    Half of each generation is bred by gpuctl's choice: parents by tournaments of two, each priority from one parent,
    some mutated. Fitness is the number of requests in time, then the least mean lateness. The search begins with the
    orders by arrival, deadline, latest start and size. The same requests give the same outcome.
    """
    whole = machine.whole_us()[requests.model]
    draw = np.random.Generator(np.random.PCG64(1))
    orders = (requests.arrival, requests.deadline, requests.deadline - whole, whole)
    ranked = [np.argsort(np.argsort(each, kind="stable"), kind="stable") / len(requests) for each in orders]
    some = [*ranked, *(_changed(ranked[k % len(ranked)], draw) for k in range(INDIVIDUALS - len(ranked)))]

    def tried(priority: Floats) -> tuple[tuple[int, float], Floats, Outcome]:
        keys = np.rint(1e6 * priority).astype(np.int64)
        outcome = simulate(machine, requests, Policy("genetic", s.FIXED, s.EFT, keys=keys), rules)
        return (int(outcome.met.sum()), -lateness(outcome, requests, machine)), priority, outcome

    found = [tried(each) for each in some]
    for generation in range(GENERATIONS):
        progress("genetic", generation, GENERATIONS)
        found.sort(key=lambda each: each[0], reverse=True)
        found = found[:INDIVIDUALS]
        children: list[Floats] = []
        while len(children) < INDIVIDUALS - KEPT:
            one, other = (found[min(draw.integers(0, INDIVIDUALS, 2))][1] for _ in range(2))
            children.append(_changed(np.where(draw.random(one.size) < 0.5, one, other), draw))
        found = [*found[:KEPT], *map(tried, children)]
    best = max(found, key=lambda each: each[0])[2]
    return replace(best, policy=replace(best.policy, keys=None))


def _changed(priority: Floats, draw: np.random.Generator) -> Floats:
    change = draw.standard_normal(priority.size) * CHANGE * (draw.random(priority.size) < CHANGED)
    found: Floats = priority + change
    return found


def exhaustive(machine: Machine, requests: Requests, rules: Rules) -> Outcome:
    """Return the best schedule that decides at arrivals and at ends of layers, and may idle a sub-accelerator.

    The best has the most requests in time, then the least sum of ends. In Python, with its own sharing of bandwidth.

    Raises:
        UsageError: the case is not tiny, or has a period.
    """
    if rules.period_us:
        raise UsageError("exhaustive decides at every instant", hint="leave --period out, or this policy")
    layers = int(machine.count[requests.model].sum())
    search = _Search(machine, requests)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 1000 + 50 * (layers + len(requests))))
    try:
        if layers > MOST_LAYERS:
            raise UsageError(
                f"exhaustive: {layers:,} layers, expected at most {MOST_LAYERS}", hint="genetic takes many"
            )  # fmt: skip
        found = search.best(0.0, tuple((-1, 0) for _ in range(len(requests))), ())
    finally:
        sys.setrecursionlimit(before)
    if found is None:
        raise UsageError("exhaustive: no schedule finishes all requests")
    return _outcome_of(machine, requests, found[1])


Running = tuple[tuple[int, int, float, float], ...]
"""Sub-accelerator, request, computing time left and start of layers that run."""
Schedule = tuple[tuple[int, int, int, float, float], ...]
"""Request, layer, sub-accelerator, start and end."""


class _Search:
    """Exhaustive search with memoised states."""

    def __init__(self, machine: Machine, requests: Requests) -> None:
        self.machine, self.requests = machine, requests
        self.accels = range(len(machine.system.kinds))
        self.known: dict[Any, tuple[tuple[int, float], Schedule] | None] = {}

    def best(
        self, now: float, at: tuple[tuple[int, int], ...], running: Running
    ) -> tuple[tuple[int, float], Schedule] | None:
        """Return the best continuation: requests in time, minus the sum of ends, and the layers that end from now on.

        Args:
            now: after ends and arrivals.
            at: of each request: -1 not arrived, 0 waiting, 1 running, 2 finished; and its next layer.
            running: layers.
        """
        arrived = tuple((0 if state == -1 and self.requests.arrival[r] <= now + s.EPS else state, layer)
                        for r, (state, layer) in enumerate(at))  # fmt: skip
        key = (round(now, 6), arrived, tuple((a, r, round(left, 6)) for a, r, left, _ in running))
        if key not in self.known:
            if len(self.known) >= MOST_STATES:
                raise UsageError(f"exhaustive: more than {MOST_STATES:,} states", hint="a smaller case")
            found = None
            for each in self._choices(arrived, running, now):
                then = self._after(now, *each)
                if then is not None and (found is None or then[0] > found[0]):
                    found = then
            self.known[key] = found
        return self.known[key]

    def _choices(
        self, at: tuple[tuple[int, int], ...], running: Running, now: float
    ) -> list[tuple[tuple[tuple[int, int], ...], Running]]:
        """Return all ways to start waiting requests on idle sub-accelerators, including none."""
        found = [(at, running)]
        busy = {each[0] for each in running}
        for accel in self.accels:
            if accel in busy:
                continue
            for there, then in tuple(found):
                for r, (state, layer) in enumerate(there):
                    if state == 0:
                        left = float(self.machine.compute[self._flat(r, layer), accel])
                        started = tuple((1, layer) if k == r else each for k, each in enumerate(there))
                        found.append((started, tuple(sorted((*then, (accel, r, left, now))))))
        return found

    def _flat(self, r: int, layer: int) -> int:
        return int(self.machine.first[self.requests.model[r]]) + layer

    def _after(
        self, now: float, at: tuple[tuple[int, int], ...], running: Running
    ) -> tuple[tuple[int, float], Schedule] | None:
        """Return the best continuation if nothing more starts until the next end or arrival."""
        to_come = [a - now for (state, _), a in zip(at, self.requests.arrival.tolist(), strict=True) if state == -1]
        if not running and not to_come:
            return ((0, 0.0), ()) if all(state == 2 for state, _ in at) else None
        layers = [(self._flat(r, at[r][1]), a) for a, r, _, _ in running]
        demands = [float(self.machine.dram[each] / self.machine.compute[each]) for each in layers]
        speeds = fair_speeds(demands, self.machine.system.bandwidth)
        step = min([*(left / v for (_, _, left, _), v in zip(running, speeds, strict=True)), *to_come])
        then, states = now + step, list(at)
        rest, ended, met, ends = [], [], 0, 0.0
        for (accel, r, left, started), speed in zip(running, speeds, strict=True):
            if left - step * speed > s.EPS:
                rest.append((accel, r, left - step * speed, started))
                continue
            layer = at[r][1]
            ended.append((r, layer, accel, started, then))
            last = layer + 1 == self.machine.count[self.requests.model[r]]
            states[r] = (2 if last else 0, layer + 1)
            if last:
                met += int(then <= self.requests.deadline[r] + s.EPS)
                ends += then
        further = self.best(then, tuple(states), tuple(rest))
        if further is None:
            return None
        return (further[0][0] + met, further[0][1] - ends), (*ended, *further[1])


def fair_speeds(demands: list[float], bandwidth: float) -> list[float]:
    """Return the speeds of layers with these demands in bytes per microsecond: max-min fair shares of the bandwidth."""
    speeds = [1.0] * len(demands)
    wanting = sorted((k for k, b in enumerate(demands) if b > 0), key=lambda k: (demands[k], k))
    left = bandwidth
    for place, k in enumerate(wanting):
        got = min(demands[k], left / (len(wanting) - place))
        speeds[k] = got / demands[k]
        left -= got
    return speeds


def _outcome_of(machine: Machine, requests: Requests, schedule: Schedule) -> Outcome:
    start, end = np.full(len(requests), np.nan), np.full(len(requests), np.nan)
    energy = 0.0
    for r, layer, accel, started, ended in schedule:
        flat = int(machine.first[requests.model[r]]) + layer
        energy += float(machine.energy[flat, accel])
        start[r] = started if layer == 0 else start[r]
        end[r] = ended if layer + 1 == machine.count[requests.model[r]] else end[r]
    whole = np.array([each[:3] for each in schedule], np.int64).reshape(-1, 3).T
    times = np.array([each[3:] for each in schedule], np.float64).reshape(-1, 2).T
    return Outcome(
        Policy("exhaustive", s.FIXED, s.EFT), start, end, end <= requests.deadline + s.EPS, energy,
        float(times[1].max(initial=0.0)), 0, 0, 0, (whole[0], whole[1], whole[2], times[0], times[1]),
    )  # fmt: skip
