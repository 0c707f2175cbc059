"""Generated jobs of stages: random numbers are CRC-32 sums of text, the same on every machine."""

from __future__ import annotations

import math

from gpuctl.research.dag.jobs import Job, Stage
from gpuctl.research.learn.repeated_runs import u


def generate(seed: int, jobs: int, executors: int, load: float) -> list[Job]:
    """Generate jobs of 2 to 8 stages with log-normal sizes and random arrivals.

    Args:
        seed: the same one gives the same jobs.
        jobs: number of jobs.
        executors: executors that the load refers to.
        load: work that arrives per second / work that the executors do per second.
    """
    shapes = [_stages(seed, i) for i in range(jobs)]
    work = sum(stage.tasks * stage.task_ms for stages in shapes for stage in stages) / jobs
    made, t = [], 0.0
    for i, stages in enumerate(shapes):
        t -= math.log(u(seed, i, "gap")) * work / executors / load
        made.append(Job(f"g{i}", math.floor(t), stages))
    return made


def _stages(seed: int, i: int) -> tuple[Stage, ...]:
    normal = math.sqrt(-2 * math.log(u(seed, i, "s1"))) * math.cos(2 * math.pi * u(seed, i, "s2"))
    size = math.exp(0.9 * normal)
    found = []
    for v in range(2 + math.floor(7 * u(seed, i, "k"))):
        place = f"{i}.{v}"
        tasks = min(max(round(8 * size * math.exp(2.4 * (u(seed, place, "n") - 0.5))), 1), 60)
        task_ms = 100 * max(2, round(30 * math.exp(2 * (u(seed, place, "d") - 0.5))))
        parents = tuple(p for p in range(v) if u(seed, f"{place}.{p}", "p") < 1.3 / max(1, v))
        found.append(Stage(tasks, task_ms, parents))
    return tuple(found)
