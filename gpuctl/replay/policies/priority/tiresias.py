"""Tiresias (NSDI 2019): two-dimensional least attained service, or Gittins index, in discrete queues."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.policy import PATIENCE, Parameter, Policy
from gpuctl.replay.engine.placements import placement_number
from gpuctl.replay.engine.state import CONSOLIDATE, FILL, INSTANT_S
from gpuctl.replay.models.speed import SENSITIVE_PCT
from gpuctl.replay.order.order import Gittins, Inside, Levels, Preemptive, Rounds, list_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Workload

SKEWED, BALANCED = 0.7, 0.1
"""Approximate share of a model's bytes in its largest tensor: of VGG and AlexNet, and of ResNet and Inception, from the
table of tensors in the repository of Tiresias' authors.
"""

INSIDE = {"first-start": Inside.FIRST_START, "submit": Inside.SUBMISSION, "list": Inside.LIST}

LEARN_FROM = 0.3
"""Default share of first jobs, by submission, whose services define the Gittins index."""


class Tiresias(Policy):
    """Jobs fall from queue to queue as they attain service; a queue goes before all lower ones."""

    name = "tiresias"
    title = "discretized least attained service over GPUs and time (2D-LAS) or Gittins index, with preemption"
    source = "Gu et al., NSDI 2019; defaults as quoted by VODA's source: 2 queues, 3,600 GPU-s, PROMOTEKNOB 8"
    preempts = True
    parameters = (
        Parameter("limits", (3600.0,), "service at which a job leaves each queue except the last, GPU-s (or s)"),
        Parameter("service", "gpu-time", "attained service: GPU-seconds or seconds", ("gpu-time", "time")),
        Parameter(
            "order",
            "first-start",
            "within a queue: by first start (the paper), by submission (Lucid), as a list whose running jobs stay "
            "ahead "
            "(the authors' simulator), or by Gittins index",
            ("first-start", "submit", "list", "gittins"),
        ),
        Parameter("promote", 8.0, "PROMOTEKNOB: a preempted job goes to the first queue after waiting this "
                  "multiple of its run time; 0: never"),
        Parameter("packlimit", 0.3, "skew of a model above which a gang waits for the fewest nodes; if the "
                  "trace has no model names, 40 % of the jobs (by a hash of their names) count as skewed"),
        Parameter("round", 0.0, "seconds of a round: decisions only at whole multiples; 0: at every event",
                  above=0.001),
        Parameter("tick", 0.0, "demotions at multiples of this many seconds; 0: at once", above=0.001),
        Parameter("learn", LEARN_FROM, "gittins: share of the jobs, from the first on, whose true run times, known "
                  "to the policy, make the index",
                  least=0.01, most=1.0),
        PATIENCE,
    )  # fmt: skip

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        super().__init__(params)
        # the index uses the run times of unfinished jobs
        self.oracle = self.params["order"] == "gittins"

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: no queue limits.
        """
        del cluster
        if not self.params["limits"]:
            raise UsageError("tiresias: limits must name at least one", hint="--param tiresias.limits=3600")
        gittins = self.params["order"] == "gittins"
        levels = Levels(
            limits=self.params["limits"],
            service=self.params["service"],
            inside=Gittins(self._samples(workload)) if gittins else INSIDE[self.params["order"]],
            promote=self.params["promote"],
            tick=self.params["tick"],
        )
        order = Preemptive(
            levels,
            self._placements(workload, settings.placement),
            Rounds(self.params["round"]) if self.params["round"] else None,
            patience=int(self.params["patience"]),
        )
        # the attainment of a queue's service is rounded, which decides no preemption
        state.g.grain = INSTANT_S
        return list_program(order, workload, state)

    def _placements(self, workload: Workload, override: str | None) -> NDArray[np.int64]:
        n = workload.size
        if override:
            return np.full(n, placement_number(override), np.int64)
        skewed = np.fromiter((zlib.crc32(i.encode()) % 100 < SENSITIVE_PCT for i in workload.ids), bool, n)
        skew = np.where(skewed, SKEWED, BALANCED)
        return np.where(skew > self.params["packlimit"], CONSOLIDATE, FILL).astype(np.int64)

    def _samples(self, workload: Workload) -> Floats:
        n = max(int(workload.size * self.params["learn"]), min(workload.size, 1))
        first = np.argsort(workload.submit, kind="stable")[:n]
        total = np.add.reduceat(workload.segment_s, workload.segment_start[:-1])[first]
        return total * workload.gpus[first] if self.params["service"] == "gpu-time" else total
