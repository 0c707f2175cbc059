"""Lucid (ASPLOS 2023): the least predicted GPU-time first, packed on GPUs of jobs that leave enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.notes import note
from gpuctl.replay.contract.compiled_policy import CompiledPolicy
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.tenants import shapes
from gpuctl.replay.engine.placement_kernel import hide
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.models.speed import PACK_SPEED
from gpuctl.replay.models.traits import in_line, traits
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.lucid import lucid_kernel

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Workload

UNKNOWN_S = 1000.0
"""What a prediction below 0 counts as."""
TINY, MEDIUM = 0.95, 0.85
"""Mean speeds of pairs from which on a class has score 0, and 1."""
LIGHT, MIDDLING = 0.25, 0.58
"""Utilizations below which a job has score 0, and 1: these agree with 53 of the authors' 66 measured labels."""


class Lucid(CompiledPolicy):
    """Each waiting job, in order of predicted GPU-time, goes beside a running job, or on free GPUs."""

    name = "lucid"
    title = "the least predicted GPU-time first, packed with jobs that leave enough room; profilers preempt"
    source = (
        "Hu et al., Lucid, ASPLOS 2023, by its authors' simulator (S-Lab-System-Group/Lucid; S-Lab License, none of it "
        "is used): orders, packing rules, profilers; without the errors of that code, scores from pair speeds or "
        "utilization where the input has none: ours"
    )
    oracle = True
    predicts = True
    preempts = True
    run: ClassVar[Loop | None] = lucid_kernel.run
    reasons = lucid_kernel.LUCID_REASONS
    parameters = (
        Parameter("share", True, "pack jobs; otherwise the first that does not fit blocks all others"),
        Parameter("budget", 2.0, "most that the scores of two jobs on the same GPUs may sum to", most=4.0),
        Parameter("ratio", 2.0, "most that a guest's priority may be, for its host's"),
        Parameter("most_gpus", 8.0, "larger gangs are never packed"),
        Parameter("profilers", 0.0, "nodes, the last ones, on which jobs run first to be measured", most=1e6),
        Parameter("profile_s", 200.0, "seconds that a job may run there", least=1.0),
        Parameter("factor", 4.0, "GPUs of the largest gang that goes there, for each profiler"),
    )

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """See `CompiledPolicy.memory`."""
        size = workload.size
        given = self.params
        profilers = min(int(given["profilers"]), len(cluster.nodes) - 1)
        p = records(1, lucid_kernel.LUCID)
        p.share, p.budget, p.ratio = given["share"], given["budget"], given["ratio"]
        p.most, p.factor, p.seconds = given["most_gpus"], given["factor"], given["profile_s"]
        p.profilers = profilers
        predicted = np.where(workload.run_time < 0, UNKNOWN_S, workload.run_time)
        priority = predicted * workload.gpus
        place = in_line(workload)
        how = placements(workload, "consolidate", settings.placement)
        shape = shapes(state, how)
        memory = lucid_kernel.Lucid(
            p=p,
            how=how,
            shape=shape,
            priority=priority,
            rank=_ranked(place, workload.submit, priority),
            early=_ranked(place, workload.submit, workload.gpus),
            score=scores(workload, settings),
            mem=traits(workload).mem,
            line=size,
            seen=size,
            bad=np.full(int(shape.max(initial=0)) + 1, -1),
            partner=np.full(size, -1),
            started=size,
            hosts=size,
            stage=size,
            queue=size + 1,
        )
        if profilers:
            # what is stopped there has lost all its work
            state.jobs.epoch = np.inf
            for node in range(len(cluster.nodes) - profilers, len(cluster.nodes)):
                getattr(hide, "py_func", hide)(state, node, int(cluster.gpus[node]))
        return (memory,)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        memory = self.memory(workload, cluster, settings, state)
        notes = _derived(workload)
        if self.params["share"] and settings.rates.pairs is None:
            notes += (
                note(
                    "two jobs on the same GPUs run at {speed} of their speed each: assumed, not from a table "
                    "(--pair-speeds)",
                    speed=PACK_SPEED,
                ),
            )
        if self.params["share"] and settings.rates.pairs_assumed:
            notes += (
                note(
                    "derived, not from --pair-speeds: the speed of {n:,} pair{n||s} of classes that the table lacks, "
                    "{speed} of that alone",
                    n=settings.rates.pairs_assumed,
                    speed=PACK_SPEED,
                ),
            )
        return CompiledProgram(lucid_kernel.run, memory, self.reasons, notes)


def _ranked(place: Any, *keys: Any) -> Any:
    """The place of each job by the last key, then the ones before it."""
    rank = np.empty(place.size, np.int64)
    rank[np.lexsort((place, *keys))] = np.arange(place.size)
    return rank


def scores(workload: Workload, settings: Settings) -> Floats:
    """How much each job slows down another one on its GPUs, 0 to 2: given, from pair speeds, or from `util`."""
    util = traits(workload).util
    derived = np.where(util < LIGHT, 0.0, np.where(util < MIDDLING, 1.0, 2.0))
    means, row = settings.rates.pairs_mean, settings.rates.row
    if means is not None and row is not None:
        mean = means[row]
        of_class = np.where(mean >= TINY, 0.0, np.where(mean >= MEDIUM, 1.0, 2.0))
        derived = np.where(np.isnan(mean), derived, of_class)
    given = workload.traits.get("sharescore", np.full(workload.size, np.nan))
    return np.where(np.isnan(given), derived, given)


def _derived(workload: Workload) -> tuple[Note, ...]:
    """A note on what of the jobs is assumed."""
    parts = {name: workload.traits.get(name, np.full(workload.size, np.nan)) for name in ("sharescore", "mem")}
    score, mem = (int(np.isnan(values).sum()) for values in parts.values())
    if not score + mem:
        return ()
    return (
        note(
            "derived, not from the input: sharescore of {score:,} and mem of {mem:,} of {all:,} job{all||s}",
            score=score,
            mem=mem,
            all=workload.size,
        ),
    )
