"""When a chain on a real Slurm submits the next job: by dependency with age, by a model, or a fixed time ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.research.chain.advice import advise
from gpuctl.research.chain.runner import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.research.chain.chain_file import ChainSpec
    from gpuctl.research.chain.model import Model
    from gpuctl.research.chain.queue_now import QueuedJob
    from gpuctl.research.chain.slurm_calls import Slurm

ACCRUE = "ACCRUE_ALWAYS"


def submission_rule(
    spec: ChainSpec, model: Model | None, slurm: Slurm
) -> Callable[[Sequence[QueuedJob], QueuedJob, float], Decision]:
    """The rule of a chain: decides whether to submit the successor of a running job now.

    With ``ACCRUE_ALWAYS``, submit at once, depending on the job's end. Otherwise use the model; without a model or
    forecast, submit `ChainSpec.lead_s` before the end by the limit.
    """
    flags: list[frozenset[str]] = []

    def ages() -> bool:
        if not flags:
            flags.append(slurm.priority_flags())
        return ACCRUE in flags[0]

    def decide(queue: Sequence[QueuedJob], p: QueuedJob, now: float) -> Decision:
        if ages():
            return Decision(True, True, f"PriorityFlags={ACCRUE}: it ages while it depends on job {p.job}")
        why = "no model"
        if model is not None:
            try:
                found = advise(model, queue, p.job, int(now), cost=spec.outage_cost, size=spec.nodes)
            except InputError as error:
                why = error.message
            else:
                return Decision(
                    found.now, False, f"{found.left_h:.2f} h are left of job {p.job}, to submit at {found.lead_h:.2f} h"
                )
        if p.limit_s is None or p.start_s is None:
            return Decision(False, False, f"{why}; job {p.job} has no limit: only its end counts")
        left = p.start_s + p.limit_s - now
        return Decision(
            spec.lead_s > 0 and left <= spec.lead_s, False,
            f"{why}; {left / 60:.0f} min are left of job {p.job}, to submit at {spec.lead_s / 60:.0f} min",
        )  # fmt: skip

    return decide
