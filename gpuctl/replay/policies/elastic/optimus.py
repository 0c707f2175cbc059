"""Optimus: in rounds, each next GPU goes to the job whose remaining time it cuts most."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.replay.contract.compiled_policy import CompiledPolicy
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.models.traits import in_line, traits
from gpuctl.replay.policies.elastic import common, optimus_kernel

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Workload


class Optimus(CompiledPolicy):
    """Every `interval` seconds all GPUs are redistributed by marginal gain, and jobs whose number changes move."""

    name = "optimus"
    title = "in rounds, each next GPU to the job whose remaining time it cuts most; jobs grow and shrink"
    source = (
        "Peng et al., Optimus, EuroSys 2018, by its authors' code: rounds of 600 s, one task each, then the largest "
        "gain; GPUs without parameter servers as in Pollux' copy; estimates with a set error in place of fitted loss "
        "curves, 62 s per restart and up to twice the gang: ours. The paper's full text was not read"
    )
    oracle = True
    preempts = True
    traits = True
    sets: ClassVar[dict[str, tuple[str, ...]]] = {"overhead": ("restart",)}
    run: ClassVar[Loop | None] = optimus_kernel.run
    reasons = optimus_kernel.OPTIMUS_REASONS
    parameters = (
        Parameter("interval", 600.0, "seconds from one round to the next; the authors' code", least=1.0),
        Parameter(
            "restart", 62.0, "seconds that a job on new GPUs holds them without progress; overridden by --overhead"
        ),
        Parameter("most", 2.0, "a job may have this multiple of its gang; 0: its w_max", above=1.0, most=1000.0),
        Parameter(
            "error",
            0.0,
            "largest initial error of estimates of the work left, as a share; it shrinks as a job makes progress",
            most=1.0,
        ),
    )

    def assumes(self) -> dict[str, str]:
        """See `Policy.assumes`."""
        return {"rates": "traits", "overhead": f"resume:{self.params['restart']!r}"}

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """See `CompiledPolicy.memory`.

        Raises:
            UsageError: a placement is set.
        """
        common.begin(self.name, state, settings)
        self.every = self.params["interval"]
        times = self.params["most"]
        least = np.ones(workload.size, np.int64) if workload.min_gpus is None else workload.min_gpus
        most = np.floor(times * workload.gpus).astype(np.int64) if times else traits(workload).w_max
        if workload.max_gpus is not None:
            most = np.minimum(most, workload.max_gpus)
        common.bounds(state, least, most)
        memory = optimus_kernel.Rounds(
            n=3,
            error=self.params["error"] * _wrong(workload),
            least=least,
            most=most,
            place=in_line(workload),
            level=common.levels(cluster),
            line=workload.size,
            count=workload.size,
            left=workload.size,
            gain=workload.size,
            heap=workload.size,
        )
        return (memory,)


def _wrong(workload: Workload) -> Floats:
    """From -1 to 1 for each job, by its name."""
    numbers = (zlib.crc32(f"{name}:q".encode()) % 2001 - 1000 for name in workload.ids)
    return np.fromiter(numbers, np.float64, workload.size) / 1000.0
