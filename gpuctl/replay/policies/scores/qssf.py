"""QSSF (Helios, SC 2021): the smallest predicted GPU-time first, without preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.policies.scores import score_kernel
from gpuctl.replay.policies.scores.common import score_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Qssf(Policy):
    """The waiting job with the least predicted run time times GPUs starts first; the first that does not fit blocks."""

    name = "qssf"
    title = "quasi-shortest service first: the least predicted GPU-time first, without preemption"
    source = (
        "Hu et al., Helios, SC 2021, by its authors' code (S-Lab-System-Group/HeliosArtifact, MIT); the means of "
        "estimate=rolling go without the similarity of job names and without LightGBM: ours"
    )
    oracle = True
    predicts = True
    resources = True
    run: ClassVar[Loop | None] = score_kernel.run
    parameters = (
        Parameter(
            "estimate",
            "given",
            "source of run times: given (predicted_time or --run-times, else true ones), or rolling: the mean of "
            "jobs that have ended, of the same user and gang, else of the user, else of all",
            ("given", "rolling"),
        ),
    )

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        super().__init__(params)
        self.oracle = self.params["estimate"] == "given"

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        rolling = not self.oracle
        rank = np.zeros(workload.size) if rolling else workload.run_time * workload.gpus
        return score_program(
            workload, cluster, settings, state, score_kernel.QSSF,
            rank=rank, placement="consolidate", by_queue=True, rolling=rolling,
        )  # fmt: skip
