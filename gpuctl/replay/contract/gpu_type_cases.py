"""Random cases with GPU types, pairs of jobs or elastic jobs, derived from plain ones, for conformance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.models.speed import PairTable, SpeedTable, rates

if TYPE_CHECKING:
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Workload

FACTORS = (0.125, 0.5, 1.0, 1.0, 2.0, 3.0)
"""Speeds to draw from; no type is the fastest for all classes."""


def with_types(seed: int, case: tuple[Workload, Cluster, Settings]) -> tuple[Workload, Cluster, Settings]:
    """The same case on nodes of up to three GPU types, one of them unknown, with classes of jobs and their speeds.

    Args:
        seed: the same seed gives the same case, on any machine.
        case: workload, cluster and settings.
    """
    workload, cluster, settings = case
    draw = np.random.Generator(np.random.PCG64([seed, 1]))
    types, classes = ("old", "new"), ("lm", "vision", "other")
    speeds = {}
    for name in (*classes[:-1], ""):
        for kind in (*types, ""):
            fast = float(draw.choice(FACTORS))
            near = fast * float(draw.choice([0.25, 1.0]))
            speeds[name, kind] = fast, near, near * float(draw.choice([0.5, 1.0]))
    workload = replace(
        workload, gpu_types=types, job_classes=classes, job_class=draw.integers(-1, len(classes), workload.size)
    )
    cluster = replace(cluster, gpu_type=draw.integers(-1, len(types), len(cluster.nodes)))
    return workload, cluster, replace(settings, rates=rates(SpeedTable("random", "", speeds), workload, cluster))


def with_pairs(seed: int, case: tuple[Workload, Cluster, Settings]) -> tuple[Workload, Cluster, Settings]:
    """The same case with classes of jobs, speeds of pairs of them, and other turns.

    Args:
        seed: the same seed gives the same case, on any machine.
        case: workload, cluster and settings.
    """
    workload, cluster, settings = case
    draw = np.random.Generator(np.random.PCG64([seed, 3]))
    classes = ("lm", "vision")
    speeds = {(a, b): float(draw.choice([0.0, 0.25, 0.5, 0.875, 1.0])) for a in (*classes, "") for b in (*classes, "")}
    workload = replace(workload, job_classes=classes, job_class=draw.integers(-1, len(classes), workload.size))
    found = rates("recorded", workload, cluster, PairTable("random", "", speeds))
    turn, switch = float(draw.choice([1.0, 10.0])), float(draw.choice([0.0, 0.5]))
    return workload, cluster, replace(settings, rates=found, slice_s=turn, switch_s=switch)


def with_bounds(seed: int, case: tuple[Workload, Cluster, Settings]) -> tuple[Workload, Cluster, Settings]:
    """The same case with jobs that run on fewer and on more GPUs than their gang, some by a speed curve of their own.

    Args:
        seed: the same seed gives the same case, on any machine.
        case: workload, cluster and settings.
    """
    workload, cluster, settings = case
    draw = np.random.Generator(np.random.PCG64([seed, 2]))
    n = workload.size
    least = np.minimum(np.maximum(workload.gpus // draw.integers(1, 5, n), 1), workload.gpus)
    # one curve is flat on more GPUs, one falls on many
    curves = (np.array([1.0, 1.9, 2.7, 3.4]), np.array([2.0]), np.array([1.0, 1.8, 2.0, 1.5]))
    curve = draw.integers(-1, len(curves), n)
    most = workload.gpus * draw.integers(1, 4, n)
    return replace(workload, min_gpus=least, max_gpus=most, curve=curve, curves=curves), cluster, settings
