"""Compare a learned policy with rules on unseen streams: paired, with intervals, per load."""

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
from gpuctl.research.row_tables import Row, column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.metrics import GroupRow, PolicyRow
    from gpuctl.research.accel.simulate import Policy

    Floats = NDArray[np.float64]

RULES = policies.SIMPLE
FEWEST = 2
"""Streams that an interval needs."""


@dataclass(frozen=True)
class Evaluation:
    """Settings of an evaluation.

    Attributes:
        loads: of the streams.
        streams: at each load.
        requests: requests per stream.
        models: numbers of the models of the requests.
        first_seed: seed of the first stream of a load; the others have the following ones.
    """

    loads: tuple[float, ...]
    streams: int
    requests: int
    models: tuple[int, ...]
    first_seed: int


def loads_of(text: str) -> tuple[float, ...]:
    """Return the loads of a comma-separated list.

    Raises:
        UsageError: one is not a number, or out of bounds.
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


def check_unseen(about: dict[str, Any], evaluation: Evaluation) -> None:
    """Check that a model was not trained on the streams that score it.

    Raises:
        UsageError: it was.
    """
    last = evaluation.first_seed + evaluation.streams - 1
    for name in ("training_seeds", "held_seeds"):
        span = about.get(name)
        if isinstance(span, list) and len(span) == 2 and span[0] <= last and evaluation.first_seed <= span[1]:
            raise UsageError(
                f"--seed {evaluation.first_seed}: the model learnt from streams with the seeds {span[0]} to {span[1]}",
                hint="another --seed",
            )


class GainRow(
    Row, name="accel_gains", section="accel", title="What learning gains",
    question="Does the model keep more deadlines than the best rule?",
):  # fmt: skip
    """The model compared with the best rule at a load."""

    load: float = column("-", "Load of the streams: 1 is what the system could just serve if it were perfectly used.")
    policy: str = column("-", "The model.")
    streams: int = column("streams", "Streams of requests, none of which the model has learnt from.")
    sla: float = column("-", "Mean over the streams of the share of deadlines that the model keeps.")
    rule: str = column("-", "The rule that keeps most deadlines on these streams: the best one, not the weakest.")
    rule_sla: float = column("-", "Its mean share.")
    gain: float = column("-", "Mean of sla - rule_sla, paired by stream.")
    gain_low: float | None = column("-", "Lower end of its 95 % interval, by Student's t; empty: one stream.")
    gain_high: float | None = column("-", "Upper end of it.")
    result: str = column("-", "more or fewer deadlines than the rule; not shown: the interval has 0 in it.")
    train_generations: int | None = column(
        "-", "Generations, or rounds, that the model was trained for; empty: not known."
    )
    train_episodes: int | None = column("streams", "Streams that were simulated for it; empty: not known.")


class LoadRow(
    Row, name="accel_loads", section="accel", title="Policies by load",
    question="How many deadlines does each policy keep, and at which cost?",
):  # fmt: skip
    """A policy at a load: means over the streams."""

    load: float = column("-", "As in the table accel_gains.")
    policy: str = column("-", "A rule, or the model.")
    streams: int = column("streams", "Streams of requests, the same for all policies.")
    sla: float = column("-", "Mean over the streams of the share of deadlines that are kept.")
    sla_low: float | None = column(
        "-", "Lower end of the 95 % interval of that mean, by Student's t; empty: one stream."
    )
    sla_high: float | None = column("-", "Upper end of it.")
    jain: float | None = column("-", "Mean of Jain's index of the tenants' shares.")
    worst_tenant: float | None = column("-", "Mean of the least of the tenants' shares.")
    p99_us: float | None = column("us", "Mean of the 99th percentile of latency.")
    energy_mj: float | None = column("mJ", "Mean of the dynamic energy of a stream.")
    overhead_pct: float | None = column(
        "%", "Energy of a net's own answers over that of the layers, as in the table accel; mean."
    )
    decision_us: float = column(
        "us",
        "CPU time of the simulations over their decisions, the simulator's own included; measured, so that it is "
        "another one in each run.",
    )


class LoadGroupRow(
    Row, name="accel_by_group", section="accel", title="Deadlines by model and quality of service", detail=True,
    question="Who pays for it?",
):  # fmt: skip
    """The requests of a model or a quality of service at a load, under a policy."""

    load: float = column("-", "As in the table accel_gains.")
    policy: str = column("-", "A rule, or the model.")
    by: str = column("-", "model, or qos (quality of service).")
    name: str = column("-", "Which one.")
    requests: int = column("requests", "Requests of it in all streams.")
    sla: float = column("-", "Share of them that were finished by their deadline.")


@dataclass(frozen=True)
class Scores:
    """Scores of policies at loads."""

    loads: list[LoadRow]
    gains: list[GainRow]
    groups: list[LoadGroupRow]


def run(
    machine: Machine,
    policy: Policy,
    evaluation: Evaluation,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Scores:
    """Score a policy and rules on the same streams; the same arguments give the same figures except ``decision_us``."""
    every = [*(policies.rule(name) for name in RULES), policy]
    scores = Scores([], [], [])
    for done, load in enumerate(evaluation.loads):
        progress(f"load {load:g}", done, len(evaluation.loads))
        seeds = range(evaluation.first_seed, evaluation.first_seed + evaluation.streams)
        streams = [stream(machine, evaluation.models, evaluation.requests, load, seed) for seed in seeds]
        sla: dict[str, Floats] = {}
        for each in every:
            begin = time.process_time()
            outcomes = [simulate(machine, requests, each) for requests in streams]
            took = time.process_time() - begin
            rows = [figures(o, r, machine) for o, r in zip(outcomes, streams, strict=True)]
            sla[each.name] = np.array([row.sla for row in rows])
            low, high = interval(sla[each.name])
            scores.loads.append(LoadRow(
                load=load, policy=each.name, streams=len(rows), sla_low=low, sla_high=high, **_means(rows),
                decision_us=1e6 * took / max(sum(row.decisions for row in rows), 1),
            ))  # fmt: skip
            groups = [row for o, r in zip(outcomes, streams, strict=True) for row in by_group(o, r, machine)]
            scores.groups.extend(_groups(load, groups))
        scores.gains.append(gain_of(load, sla, policy.name))
    return scores


def _means(rows: Sequence[PolicyRow]) -> dict[str, Any]:
    found = {}
    for name in ("sla", "jain", "worst_tenant", "p99_us", "energy_mj", "overhead_pct"):
        known = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        found[name] = float(np.mean(known)) if known else None
    return found


def _groups(load: float, rows: Sequence[GroupRow]) -> list[LoadGroupRow]:
    sums: dict[tuple[str, str], list[int]] = {}
    for row in (row for row in rows if row.by != "tenant"):
        total = sums.setdefault((row.by, row.name), [0, 0])
        total[0] += row.requests
        total[1] += row.met
    return [LoadGroupRow(load, rows[0].policy, by, name, n, met / n) for (by, name), (n, met) in sorted(sums.items())]


def interval(values: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval of a mean, by Student's t; None if there are too few values."""
    return student_interval(values)[1:] if values.size >= FEWEST else (None, None)


def gain_of(load: float, sla: dict[str, Floats], model: str) -> GainRow:
    """Compare a model with the rule of the best mean, paired by stream; its training is left empty."""
    best = max((name for name in sla if name != model), key=lambda name: float(sla[name].mean()))
    off = sla[model] - sla[best]
    low, high = interval(off)
    verdict = "not shown" if low is None or high is None or low <= 0 <= high else "more" if low > 0 else "fewer"
    return GainRow(
        load=load, policy=model, streams=off.size, sla=float(sla[model].mean()), rule=best,
        rule_sla=float(sla[best].mean()), gain=float(off.mean()), gain_low=low, gain_high=high, result=verdict,
        train_generations=None, train_episodes=None,
    )  # fmt: skip
