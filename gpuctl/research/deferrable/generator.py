"""Generated cases: on-demand load with daily and weekly cycles, and deferrable jobs; one seed gives one case."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpuctl.research.deferrable.cases import DAY_S, SEASON, Case
from gpuctl.research.learn.repeated_runs import u

ON_DEMAND_GPUS = (1, 1, 2, 4, 8, 8, 16)
JOB_GPUS = (1, 2, 4, 4, 8, 8, 16, 32)


@dataclass(frozen=True)
class CaseSettings:
    """Settings of a generated case.

    Attributes:
        seed: random seed.
        load: GPU-slots of deferrable jobs / GPU-slots that on-demand jobs leave.
        days: length in days.
        gpus: of the cluster.
        on_demand: share of the GPUs that on-demand jobs hold on average.
    """

    seed: int
    load: float = 0.8
    days: int = 14
    gpus: int = 256
    on_demand: float = 0.6


def generate(made: CaseSettings) -> Case:
    """Make a case."""
    held = np.minimum(made.gpus, np.rint(_on_demand(made))).astype(np.int64)
    leftover = made.gpus - held
    rows = _jobs(made, made.load * int(leftover.sum()), leftover.size)
    earliest, latest, gpus, slots = np.array([row[1:] for row in rows], np.int64).reshape(-1, 4).T.copy()
    about = {"generated": {"seed": made.seed, "load": made.load, "days": made.days, "on_demand": made.on_demand}}
    return Case(
        leftover, tuple(f"d{row[0]}" for row in rows), earliest, latest, gpus, slots, made.gpus, SEASON,
        DAY_S / SEASON, held, about,
    )  # fmt: skip


def _on_demand(made: CaseSettings) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Demand of on-demand jobs, GPUs by slot."""
    slots = made.days * SEASON
    use = np.zeros(slots)
    for h in range(-SEASON, slots):
        rate = 10 * (1 + 0.6 * math.sin(2 * math.pi * ((h % SEASON) / SEASON - 0.3)))
        rate *= 0.6 if h // SEASON % 7 >= 5 else 1
        at, i = 0.0, 0
        while True:
            name = f"{h}.{i}"
            at -= math.log(u(made.seed, name, "gap")) / rate
            if at >= 1:
                break
            gpus = ON_DEMAND_GPUS[int(len(ON_DEMAND_GPUS) * u(made.seed, name, "g"))]
            length = max(1, round(math.exp(1.6 + _normal(made.seed, name, "n1", "n2"))))
            use[max(h, 0) : max(h + length, 0)] += gpus
            i += 1
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = use * (made.on_demand * made.gpus * slots / use.sum())
    return found


def _normal(seed: int, number: int | str, a: str, b: str) -> float:
    return math.sqrt(-2 * math.log(u(seed, number, a))) * math.cos(2 * math.pi * u(seed, number, b))


def _jobs(made: CaseSettings, volume: float, slots: int) -> list[tuple[int, int, int, int, int]]:
    """Number, earliest, latest, GPUs and slots of each job."""
    found, drawn, i = [], 0, 0
    while drawn < volume:
        length = min(max(round(math.exp(1.8 + 0.9 * _normal(made.seed, i, "k1", "k2"))), 1), SEASON)
        gpus = JOB_GPUS[int(len(JOB_GPUS) * u(made.seed, i, "jg"))]
        earliest = int(slots * u(made.seed, i, "e"))
        latest = min(earliest + int(3 * length * u(made.seed, i, "w")) + 2, slots - length)
        drawn += gpus * length
        if latest >= earliest:
            found.append((i, earliest, latest, gpus, length))
        i += 1
    return found
