"""Figures of simulated requests: deadlines met, fairness, speed and energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.research.row_tables import Row, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.requests import Requests
    from gpuctl.research.accel.simulate import Outcome, Policy

    Floats = NDArray[np.float64]

MAC_PJ, BYTE_PJ = 0.4, 2.0
"""Picojoules of a multiplication of a net, and of reading one of its weights (8 bits); assumed."""


class PolicyRow(
    Row, name="accel", section="accel", title="Policies for accelerators", first_columns=9,
    question="Which policy keeps most deadlines, how fairly, and with how much energy?",
):  # fmt: skip
    """Outcome of all requests under a policy."""

    policy: str = column("-", "Order and place of requests, or a learned policy.")
    requests: int = column("requests", "All requests of the file.")
    met: int = column("requests", "Those that were finished by their deadline.")
    sla: float = column("-", "met / requests: what is not finished, or was dropped, is missed.")
    jain: float | None = column(
        "-", "Jain's index of the tenants' sla, 1 / tenants to 1 (all alike); empty: nothing was met."
    )
    worst_tenant: float = column("-", "sla of the tenant that has the least.")
    mean_latency_us: float | None = column("us", "Mean of end - arrival over finished requests.")
    p50_us: float | None = column("us", "Median of it: of n sorted values the one at min(n - 1, floor(0.5 n)).")
    p99_us: float | None = column("us", "99th percentile of it, at min(n - 1, floor(0.99 n)).")
    energy_mj: float = column("mJ", "Dynamic energy of all layers that were started, by the table of costs.")
    static_mj: float | None = column(
        "mJ", "Static power of all sub-accelerators x makespan; empty: of some the power is unknown."
    )
    makespan_us: float = column("us", "End of the last layer, from time 0.")
    dropped: int = column("requests", "Requests that were given up as too late (--drop).")
    decisions: int = column("decisions", "Decisions that were made.")
    candidates: int = column("requests", "Requests that could be chosen, summed over decisions.")
    overhead_uj: float = column(
        "uJ",
        f"Energy of a net's own answers: {MAC_PJ} pJ a multiplication for each candidate, {BYTE_PJ:g} pJ for each "
        "weight at each decision (assumed); 0 for rules.",
    )
    overhead_pct: float | None = column("%", "overhead_uj over energy_mj.")


class GroupRow(
    Row, name="accel_groups", section="accel", title="Deadlines by model, quality of service and tenant",
    question="Whose deadlines are kept?",
):  # fmt: skip
    """The requests of a model, a quality of service or a tenant under a policy."""

    policy: str = column("-", "As in the table accel.")
    by: str = column("-", "model, qos (quality of service) or tenant.")
    name: str = column("-", "Which one; empty: the file says none.")
    requests: int = column("requests", "Requests of it.")
    met: int = column("requests", "Those that were finished by their deadline.")
    sla: float = column("-", "met / requests.")
    mean_latency_us: float | None = column("us", "Mean of end - arrival over finished ones.")
    p99_us: float | None = column("us", "99th percentile of it.")


def percentile(values: Floats, p: float) -> float | None:
    """Return the value at place ``min(n - 1, floor(p n))`` of the sorted values; None if there are none."""
    if not values.size:
        return None
    return float(np.sort(values)[min(values.size - 1, int(p * values.size))])


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index of fairness, (sum x)^2 / (k sum x^2); None if all are 0."""
    x = np.array(shares)
    return float(x.sum() ** 2 / (x.size * (x**2).sum())) if x.any() else None


def overhead_uj(policy: Policy, decisions: int, candidates: int) -> float:
    """Return the energy of a net's own inference, by `MAC_PJ` and `BYTE_PJ`; 0 for rules.

    Each decision reads all weights once, and multiplies per candidate.
    """
    if policy.weights is None:
        return 0.0
    macs = candidates * policy.macs + decisions * policy.macs_once
    return 1e-6 * (macs * MAC_PJ + decisions * policy.weights.size * BYTE_PJ)


def lateness(outcome: Outcome, requests: Requests, machine: Machine) -> float:
    """Return the mean of time after the deadline / the model's least time, from 0 to 4; 4 for unfinished requests."""
    late = (outcome.end - requests.deadline) / machine.whole_us()[requests.model]
    return float(np.clip(np.where(np.isnan(late), 4.0, late), 0, 4).mean())


def figures(outcome: Outcome, requests: Requests, machine: Machine) -> PolicyRow:
    """Return the figures of all requests."""
    done = ~np.isnan(outcome.end)
    latency = outcome.end[done] - requests.arrival[done]
    shares = [row.sla for row in by_group(outcome, requests, machine) if row.by == "tenant"]
    spent = overhead_uj(outcome.policy, outcome.decisions, outcome.candidates)
    static = machine.static_mw
    return PolicyRow(
        policy=outcome.policy.name,
        requests=len(requests),
        met=int(outcome.met.sum()),
        sla=float(outcome.met.mean()),
        jain=jain(shares),
        worst_tenant=min(shares),
        mean_latency_us=float(latency.mean()) if latency.size else None,
        p50_us=percentile(latency, 0.5),
        p99_us=percentile(latency, 0.99),
        energy_mj=outcome.energy_uj / 1000,
        static_mj=None if static is None else static * outcome.makespan_us / 1e6,
        makespan_us=outcome.makespan_us,
        dropped=outcome.dropped,
        decisions=outcome.decisions,
        candidates=outcome.candidates,
        overhead_uj=spent,
        overhead_pct=100 * spent / outcome.energy_uj if outcome.energy_uj else None,
    )


def by_group(outcome: Outcome, requests: Requests, machine: Machine) -> list[GroupRow]:
    """Return the figures of the requests of each model, quality of service and tenant."""
    rows = []
    models = [machine.models[k] for k in requests.model.tolist()]
    for by, values in (("model", models), ("qos", requests.qos), ("tenant", requests.tenants)):
        for name in dict.fromkeys(values) if by != "tenant" else sorted(set(values)):
            some = np.array([value == name for value in values])
            done = some & ~np.isnan(outcome.end)
            latency = outcome.end[done] - requests.arrival[done]
            rows.append(GroupRow(
                policy=outcome.policy.name, by=by, name=name, requests=int(some.sum()),
                met=int(outcome.met[some].sum()), sla=float(outcome.met[some].mean()),
                mean_latency_us=float(latency.mean()) if latency.size else None, p99_us=percentile(latency, 0.99),
            ))  # fmt: skip
    return rows
