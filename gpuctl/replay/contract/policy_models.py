"""Models that a policy would use alone, if a comparison has one set of speeds and costs for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import note
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpuctl.core.notes import Note
    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.models.records import Cluster, Workload


def standalone_models(
    policy: Policy, given: Collection[str], models: Collection[str], workload: Workload, cluster: Cluster
) -> tuple[Note, ...]:
    """Notes on a policy's own models that a comparison with other policies overrides.

    Args:
        policy: one of the comparison.
        given: its parameters that the user has set.
        models: ``overhead`` and ``rates``, those that no option sets.
        workload: the jobs.
        cluster: the nodes.
    """
    own, here = policy.assumes(), policy.shared(given)
    notes = []
    if own and "overhead" in models:
        text, common = (overhead(each["overhead"], workload, cluster).text for each in (own, here))
        if text != common:
            notes.append(note("charged here as all policies of the comparison; its own cost, alone: {text}", text=text))
    if own and "rates" in models and own["rates"] != here["rates"]:
        text = rates(own["rates"], workload, cluster).text
        notes.append(note("speeds are those of all policies of the comparison; its own, alone: {text}", text=text))
    return tuple(notes)
