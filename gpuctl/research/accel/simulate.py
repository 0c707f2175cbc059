"""Simulates requests on a system under a policy; outcome of each request, and of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.jit import interpreted, is_compiled
from gpuctl.research.accel import state as s
from gpuctl.research.accel.requests import Requests
from gpuctl.research.accel.state import State
from gpuctl.research.accel.world_kernel import run
from gpuctl.research.learn.repeated_runs import u

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.research.accel.costs import Machine

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FEW_LAYERS = 2000
"""So many are simulated sooner than the loop is compiled."""


@dataclass(frozen=True)
class Policy:
    """A way to decide.

    Attributes:
        name: as the user wrote it.
        order: order of requests: a constant of `gpuctl.research.accel.state`.
        place: placement: a constant of `gpuctl.research.accel.state`.
        behind: whether requests that can no longer be in time go last.
        weights: weights of a net, in the kernel's layout.
        hidden: units of the LSTM.
        macs: multiplications of a decision per candidate; 0: no net.
        macs_once: multiplications of a decision independent of candidates.
        keys: keys of the order FIXED, ascending [requests].
    """

    name: str
    order: int
    place: int
    behind: bool = False
    weights: Floats | None = None
    hidden: int = 0
    macs: int = 0
    macs_once: int = 0
    keys: Ints | None = None


@dataclass(frozen=True)
class Rules:
    """Rules of all policies in a comparison.

    Attributes:
        period_us: decisions are made at its multiples only; 0: whenever something can start.
        drop: drop requests that can no longer be in time.
    """

    period_us: float = 0.0
    drop: bool = False


@dataclass(frozen=True)
class Outcome:
    """Outcome of the requests.

    Attributes:
        policy: the policy.
        start: microseconds; NaN: no layer of it started [requests].
        end: microseconds; NaN: not finished [requests].
        met: finished in time [requests].
        energy_uj: dynamic energy of all layers that started.
        makespan_us: end of the last layer.
        dropped: number of dropped requests.
        decisions: number of decisions.
        candidates: eligible requests, summed over decisions.
        log: request, number of the layer, sub-accelerator, start and end of layers, by their end.
        cpu_s: CPU seconds, if measured.
    """

    policy: Policy
    start: Floats
    end: Floats
    met: NDArray[np.bool_]
    energy_uj: float
    makespan_us: float
    dropped: int
    decisions: int
    candidates: int
    log: tuple[Ints, Ints, Ints, Floats, Floats]
    cpu_s: float = 0.0


def state_of(machine: Machine, requests: Requests, policy: Policy, rules: Rules = Rules()) -> State:
    """Return the initial state."""
    n, accels = len(requests), len(machine.system.kinds)
    first = machine.first[requests.model]
    layers = machine.count[requests.model]
    total = int(layers.sum())
    c, f = np.zeros(s.COUNTERS, np.int64), np.zeros(s.NUMBERS)
    c[s.ORDER], c[s.PLACE], c[s.BEHIND], c[s.DROP] = policy.order, policy.place, policy.behind, rules.drop
    c[s.HIDDEN] = policy.hidden
    f[s.BANDWIDTH], f[s.PERIOD] = machine.system.bandwidth, rules.period_us
    keys, keys_at = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if policy.order == s.RANDOM:
        keys_at = np.cumsum(layers) - layers
        keys = random_keys(requests, layers)
    elif policy.order == s.FIXED and policy.keys is not None:
        keys = policy.keys
    seen = s.OF_REQUEST + 3 * accels
    return State(
        compute=machine.compute, demand=machine.dram / machine.compute, alone=machine.alone, energy=machine.energy,
        best=machine.best, rest=machine.rest,
        log_rest=np.log(machine.rest / s.WORK_US), traits=machine.traits, first=first,
        last=first + layers - 1, arrival=requests.arrival,
        deadline=requests.deadline, arrivals=np.argsort(requests.arrival, kind="stable"), state=n, at=first.copy(),
        start=np.full(n, np.nan), end=np.full(n, np.nan), late=n, ready=n, place=n, on=np.full(accels, s.NOBODY),
        left=accels, speed=accels, started=accels, wants=accels, by=accels, free=accels, taken=accels, plan_request=n,
        plan_accel=n, plan_layer=n, key=n, heap=n, keys=keys, keys_at=keys_at,
        weights=np.zeros(0) if policy.weights is None else policy.weights, hidden=max(16, 10 * policy.hidden),
        features=(n if policy.order == s.NET_B else 0, s.OF_REQUEST), rows=s.SEEN_REQUESTS, place_seen=n,
        seen=(s.SEEN_REQUESTS, seen), seen_accels=(accels, s.OF_ACCEL), seen_all=s.OF_ALL,
        action=(s.SEEN_REQUESTS, 1 + accels), log_request=total, log_layer=total, log_accel=total, log_start=total,
        log_end=total, c=c, f=f,
    )  # fmt: skip


def random_keys(requests: Requests, layers: Ints) -> Ints:
    """Return the keys of RANDOM: by request, and within it by layer."""
    return np.array(
        [
            round(1e6 * u(0, f"{name}:{k}", "order"))
            for name, count in zip(requests.names, layers.tolist(), strict=True)
            for k in range(count)
        ],
        np.int64,
    )


def is_ready(machine: Machine, requests: Sequence[Requests]) -> bool:
    """Return whether these need no compiler: the loop is compiled, or there are few requests."""
    return sum(int(machine.count[each.model].sum()) for each in requests) <= FEW_LAYERS or is_compiled(run)


def warm_up(machine: Machine, requests: Requests, policy: Policy) -> None:
    """Compile or load the loop if these requests will need it, so that no measured time includes that."""
    if requests.arrival.size and (int(machine.count[requests.model].sum()) > FEW_LAYERS or is_compiled(run)):
        first = Requests(
            requests.names[:1], requests.tenants[:1], requests.qos[:1], requests.model[:1], requests.arrival[:1],
            requests.deadline[:1],
        )  # fmt: skip
        run(state_of(machine, first, replace(policy, keys=None, order=s.FCFS)))


def simulate(machine: Machine, requests: Requests, policy: Policy, rules: Rules = Rules()) -> Outcome:
    """Simulate requests under a policy to the end."""
    z = state_of(machine, requests, policy, rules)
    with interpreted(z.log_end.size <= FEW_LAYERS and not is_compiled(run)):
        run(z)
    return outcome_of(z, policy)


def outcome_of(z: State, policy: Policy) -> Outcome:
    """Return the outcome of requests after the loop has ended."""
    done = int(z.c[s.LOGGED])
    log = z.log_request[:done], z.log_layer[:done], z.log_accel[:done], z.log_start[:done], z.log_end[:done]
    met = z.end <= z.deadline + s.EPS  # false for NaN
    return Outcome(
        policy, z.start, z.end, met, float(z.f[s.ENERGY]), float(z.log_end[:done].max(initial=0.0)),
        int(z.c[s.DROPS]), int(z.c[s.DECISIONS]), int(z.c[s.CANDIDATES]), log,
    )  # fmt: skip
