"""What the policies that score waiting jobs share: the memory of their compiled pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.contract.planning import most_running
from gpuctl.replay.contract.tenants import shapes
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.engine.running_jobs_kernel import nobody
from gpuctl.replay.models.traits import in_line
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.scores import score_kernel

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Floats, Workload


def score_program(
    workload: Workload, cluster: Cluster, settings: Settings, state: State, rule: int, *,
    rank: Floats, requested: Floats | None = None, placement: str = "any", by_queue: bool = False, **flags: bool,
) -> Program:  # fmt: skip
    """Make the program of a rule of `score_kernel`.

    Args:
        workload: the jobs.
        cluster: the nodes.
        settings: what holds for all policies.
        state: the simulation.
        rule: ``FIXED``, ``WFP3``, ``UNICEP`` or ``QSSF``.
        rank: as the rule has it, shape (jobs,).
        requested: seconds of run time that each job asks for, shape (jobs,); None: the rule does without.
        placement: where gangs go.
        by_queue: queues that have nodes of their own do not block each other.
        flags: ``skip``, ``easy``, ``rolling``, see `score_kernel.SCORES`.
    """
    size = workload.size
    how = placements(workload, placement, settings.placement)
    shape = shapes(state, how)
    apart = by_queue and any(nodes is not None for nodes in cluster.queue_nodes)
    party = state.jobs.queue.astype(np.int64) if apart else np.zeros(size, np.int64)
    user = np.where(workload.user < 0, len(workload.users), workload.user)
    pairs = np.unique(np.stack([user, workload.gpus]), axis=1, return_inverse=True)[1].reshape(-1)
    first = int(user.max(initial=0)) + 2
    plan = np.full(size, np.inf) if requested is None else requested
    p = records(1, score_kernel.SCORES)
    p.rule = rule
    for name, value in flags.items():
        p[name] = value
    scores = score_kernel.Scores(
        p=p,
        rank=np.array(rank, np.float64),
        requested=plan,
        gpus=workload.gpus,
        place=in_line(workload),
        how=how,
        shape=shape,
        party=party,
        since=size,
        line=size,
        bad=int(shape.max(initial=0)) + 1,
        blocked=int(party.max(initial=0)) + 1,
        waited=int(party.max(initial=0)) + 1,
        user=(user + 1).astype(np.int64),
        user_gang=(pairs + first).astype(np.int64),
        ended=records(first + int(pairs.max(initial=0)) + 1, score_kernel.SUM),
    )
    running: Any = nobody(plan, state.nodes.size, most_running(workload, cluster))
    return CompiledProgram(score_kernel.run, (scores, running), score_kernel.SCORE_REASONS)
