"""WFP3, UNICEP and F1 to F4: scores of HPC schedulers, by the wait, the requested run time and the gang."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.planning import LIMITS_FROM, UNLIMITED, planned
from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.policies.scores import score_kernel
from gpuctl.replay.policies.scores.common import score_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Workload

SKIP = Parameter("skip", False, "pass over jobs that do not fit; otherwise the first of them blocks all others")
BACKFILL = Parameter(
    "backfill",
    "none",
    "easy: behind the first that does not fit, in order of submission, jobs start that are planned to end before it "
    "can; RLScheduler's form, without EASY's second rule",
    ("none", "easy"),
)
ORIGIN = Parameter(
    "origin",
    "first",
    "from when seconds of submission count: the first submission, or second 0 of the file",
    ("first", "file"),
)
SC17 = "Carastan-Santos and de Camargo, SC 2017, as in RLScheduler (SC 2020, DIR-LAB/deep-batch-scheduler)"
TANG = "Tang et al., as in RLScheduler (SC 2020, DIR-LAB/deep-batch-scheduler), whose own figures have a wait below 0"
LEAST_S = 0.1
"""Seconds since the first submission that are counted at least."""


class _Scored(Policy):
    plans = True
    resources = True
    run: ClassVar[Loop | None] = score_kernel.run
    parameters: ClassVar[tuple[Parameter, ...]] = (SKIP, BACKFILL, LIMITS_FROM, UNLIMITED)
    rule: ClassVar[int] = score_kernel.FIXED

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        requested = planned(workload, settings, self.params["unlimited"])
        return score_program(
            workload, cluster, settings, state, self.rule,
            rank=self.rank(workload, requested), requested=requested,
            skip=self.params["skip"], easy=self.params["backfill"] == "easy",
        )  # fmt: skip

    def rank(self, workload: Workload, requested: Floats) -> Floats:
        """What the compiled pass goes by beside waits, shape (jobs,)."""
        raise NotImplementedError


class Wfp3(_Scored):
    """The largest (wait / requested run time)^3 x GPUs first."""

    name = "wfp3"
    title = "(wait / requested run time) cubed times GPUs, the largest first, without preemption"
    source = TANG
    rule = score_kernel.WFP3

    def rank(self, workload: Workload, requested: Floats) -> Floats:
        """Nothing beside waits."""
        return np.zeros(workload.size)


class Unicep(_Scored):
    """The largest wait / (log2(GPUs) x requested run time) first; jobs of one GPU before all others."""

    name = "unicep"
    title = "wait by log2(GPUs) times the requested run time, the largest first, without preemption"
    source = f"{TANG}; jobs of one GPU, whose logarithm is 0, by wait / requested run time before all others: ours"
    rule = score_kernel.UNICEP

    def rank(self, workload: Workload, requested: Floats) -> Floats:
        """What a wait is divided by, shape (jobs,)."""
        return _each(lambda n, r: math.log2(n) * r if n > 1 else 1.0, workload.gpus, requested)


class _Formula(_Scored):
    parameters = (*_Scored.parameters, ORIGIN)
    weight: ClassVar[float]

    def rank(self, workload: Workload, requested: Floats) -> Floats:
        """The score of each job, shape (jobs,); jobs without GPUs count as 0 of them."""
        first = workload.submit.min(initial=np.inf) if self.params["origin"] == "first" else 0.0
        since = np.maximum(workload.submit - first, LEAST_S)
        size = _each(self.size, workload.gpus, requested)
        return np.asarray(size + _each(lambda _n, s: self.weight * math.log10(s), workload.gpus, since))

    @staticmethod
    def size(gpus: int, requested: float) -> float:
        """The part of the score that a job's size has."""
        raise NotImplementedError


class F1(_Formula):
    """The least log10(r) n + 870 log10(s) first."""

    name = "f1"
    title = "log10(requested run time) x GPUs + 870 log10(submission), the least first"
    source = SC17
    weight = 870.0

    @staticmethod
    def size(gpus: int, requested: float) -> float:
        """See `_Formula.size`."""
        return math.log10(requested) * gpus


class F2(_Formula):
    """The least sqrt(r) n + 25,600 log10(s) first."""

    name = "f2"
    title = "sqrt(requested run time) x GPUs + 25,600 log10(submission), the least first"
    source = SC17
    weight = 25_600.0

    @staticmethod
    def size(gpus: int, requested: float) -> float:
        """See `_Formula.size`."""
        return math.sqrt(requested) * gpus


class F3(_Formula):
    """The least r n + 6,860,000 log10(s) first."""

    name = "f3"
    title = "requested run time x GPUs + 6,860,000 log10(submission), the least first"
    source = SC17
    weight = 6_860_000.0

    @staticmethod
    def size(gpus: int, requested: float) -> float:
        """See `_Formula.size`."""
        return requested * gpus


class F4(_Formula):
    """The least r sqrt(n) + 530,000 log10(s) first."""

    name = "f4"
    title = "requested run time x sqrt(GPUs) + 530,000 log10(submission), the least first"
    source = SC17
    weight = 530_000.0

    @staticmethod
    def size(gpus: int, requested: float) -> float:
        """See `_Formula.size`."""
        return requested * math.sqrt(gpus)


def _each(of: Callable[[int, float], float], gpus: object, seconds: Floats) -> Floats:
    """A function of GPUs and seconds of each job, in the doubles of Python's own mathematics."""
    pairs = zip(np.asarray(gpus).tolist(), seconds.tolist(), strict=True)
    return np.fromiter((of(*pair) for pair in pairs), np.float64, seconds.size)
