"""A learned policy against rules, on streams that it has not seen: paired, with intervals, load by load."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.research.accel import policies
from gpuctl.research.accel.metrics import by_group, figures
from gpuctl.research.accel.requests import stream
from gpuctl.research.accel.simulate import simulate
from gpuctl.research.learn.repeated_runs import student_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.simulate import Policy

    Floats = NDArray[np.float64]

RULES = policies.SIMPLE
FEWEST = 2
"""Streams that an interval needs."""


@dataclass(frozen=True)
class Evaluation:
    """What a policy is evaluated on.

    Attributes:
        loads: of the streams.
        streams: at each load.
        requests: of a stream.
        models: numbers of the models of the requests.
        first_seed: of the streams; the others of a load have the next ones.
    """

    loads: tuple[float, ...]
    streams: int
    requests: int
    models: tuple[int, ...]
    first_seed: int


def loads_of(text: str) -> tuple[float, ...]:
    """Loads of a list with commas.

    Raises:
        UsageError: one is no number, or out of bounds.
    """
    found = []
    for word in filter(None, (each.strip() for each in text.split(","))):
        try:
            found.append(float(word))
        except ValueError:
            found.append(0.0)
        if not 0.001 <= found[-1] <= 1000:
            raise UsageError(f"--loads: {word[:30]!r} is no load", hint="numbers from 0.001 to 1000: .6,.8,1,1.2")
    if not found:
        raise UsageError("--loads names none", hint=".6,.8,1,1.2")
    return tuple(dict.fromkeys(found))


def check_unseen(about: dict[str, Any], asked: Evaluation) -> None:
    """See that a model has not learnt from what it is to be scored on.

    Raises:
        UsageError: it has.
    """
    last = asked.first_seed + asked.streams - 1
    for name in ("training_seeds", "held_seeds"):
        span = about.get(name)
        if isinstance(span, list) and len(span) == 2 and span[0] <= last and asked.first_seed <= span[1]:
            raise UsageError(
                f"--seed {asked.first_seed}: the model learnt from streams with the seeds {span[0]} to {span[1]}",
                hint="another --seed",
            )


@dataclass(frozen=True)
class Scores:
    """What came of policies at loads.

    Attributes:
        loads: one row a load and policy, in the columns of `gpuctl.research.accel.evaluate_tables.LOADS`.
        gains: one row a load: the model against the best rule there.
        groups: one row a load, policy, and model or quality of service.
    """

    loads: list[dict[str, Any]]
    gains: list[dict[str, Any]]
    groups: list[dict[str, Any]]


def run(
    machine: Machine, policy: Policy, asked: Evaluation, tell: Callable[[str, int, int], None] = lambda *_: None
) -> Scores:
    """Score a policy and rules on the same streams; the same call gives the same figures, but for ``decision_us``."""
    every = [*(policies.rule(name) for name in RULES), policy]
    loads: list[dict[str, Any]] = []
    gains: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for done, load in enumerate(asked.loads):
        tell(f"load {load:g}", done, len(asked.loads))
        seeds = range(asked.first_seed, asked.first_seed + asked.streams)
        streams = [stream(machine, asked.models, asked.requests, load, seed) for seed in seeds]
        sla: dict[str, Floats] = {}
        for each in every:
            begin = time.process_time()
            outcomes = [simulate(machine, requests, each) for requests in streams]
            took = time.process_time() - begin
            rows = [figures(o, r, machine) for o, r in zip(outcomes, streams, strict=True)]
            sla[each.name] = np.array([row["sla"] for row in rows])
            loads.append({"load": load, **_means(rows), **interval(sla[each.name], "sla"),
                          "decision_us": 1e6 * took / max(sum(row["decisions"] for row in rows), 1)})  # fmt: skip
            groups += _groups(load, [by_group(o, r, machine) for o, r in zip(outcomes, streams, strict=True)])
        gains.append({"load": load, **gain_of(sla, policy.name)})
    return Scores(loads, gains, groups)


def _means(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"policy": rows[0]["policy"], "streams": len(rows)}
    for name in ("sla", "jain", "worst_tenant", "p99_us", "energy_mj", "overhead_pct"):
        known = [row[name] for row in rows if row[name] is not None]
        found[name] = float(np.mean(known)) if known else None
    return found


def _groups(load: float, each: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    sums: dict[tuple[str, str], list[int]] = {}
    for row in (row for rows in each for row in rows if row["by"] != "tenant"):
        total = sums.setdefault((row["by"], row["name"]), [0, 0])
        total[0] += row["requests"]
        total[1] += row["met"]
    return [
        {"load": load, "policy": each[0][0]["policy"], "by": by, "name": name, "requests": n, "sla": met / n}
        for (by, name), (n, met) in sorted(sums.items())
    ]


def interval(values: Floats, name: str) -> dict[str, float | None]:
    """The 95 % interval of a mean, by Student's t; empty where there are too few values."""
    if values.size < FEWEST:
        return {f"{name}_low": None, f"{name}_high": None}
    _, low, high = student_interval(values)
    return {f"{name}_low": low, f"{name}_high": high}


def gain_of(sla: dict[str, Floats], model: str) -> dict[str, Any]:
    """A model against the rule with the best mean there, paired by stream."""
    best = max((name for name in sla if name != model), key=lambda name: float(sla[name].mean()))
    off = sla[model] - sla[best]
    ends = interval(off, "gain")
    low, high = ends["gain_low"], ends["gain_high"]
    verdict = "not shown" if low is None or high is None or low <= 0 <= high else "more" if low > 0 else "fewer"
    return {
        "policy": model, "streams": off.size, "sla": float(sla[model].mean()), "rule": best,
        "rule_sla": float(sla[best].mean()), "gain": float(off.mean()), **ends, "result": verdict,
    }  # fmt: skip
