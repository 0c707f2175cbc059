"""Gandiva: no job queues while nodes can be oversubscribed; jobs take turns, and are packed, moved and grown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.compiled_policy import CompiledPolicy
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.tenants import shapes
from gpuctl.replay.models.traits import in_line, traits
from gpuctl.replay.policies.elastic import common, gandiva_kernel
from gpuctl.replay.policies.elastic.crowding_kernel import BAN, GANDIVA, GANDIVA_REASONS, HOST, MEMBER, Crowding

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

MOST_BANS = 1 << 23
"""Most pairs banned at a time; their memory is allocated at the start."""


class Gandiva(CompiledPolicy):
    """Jobs start at once on nodes that suit their size, taking turns if these are full; checks improve on that."""

    name = "gandiva"
    title = "jobs crowd on nodes in time slices rather than wait; pairs on trial, migration, growth into idle GPUs"
    source = (
        "Xiao et al., Gandiva, OSDI 2018: the order in which nodes are tried, slices of a minute, packing on trial "
        "under overload, migration off nearly empty nodes; slices as shares of speed, what packing costs, how high "
        "nodes are crowded and all other constants: ours. The paper's full text was not read"
    )
    preempts = True
    traits = True
    sets: ClassVar[dict[str, tuple[str, ...]]] = {"overhead": ("migrate",)}
    run: ClassVar[Loop | None] = gandiva_kernel.run
    reasons = GANDIVA_REASONS
    tallies: ClassVar[dict[str, str]] = {"packs": "packs", "packs_undone": "bans"}
    parameters = (
        Parameter("slice", 60.0, "seconds of a turn on a crowded node; the paper's", least=0.001),
        Parameter("switch", 1.0, "seconds of the switch between two turns, in which no job makes progress"),
        Parameter("check_s", 60.0, "seconds from one check (packing, gathering, growth) to the next", least=1.0),
        Parameter(
            "height", 3.0, "jobs may request this multiple of a node's GPUs; those that wait for a turn take memory",
            most=100.0,
        ),
        Parameter("migrate", 5.0, "seconds without progress of a job that moves; overridden by --overhead"),
        Parameter("blacklist", 600.0, "seconds for which an unprofitable pair is not tried again"),
        Parameter("fragment", 0.75, "a node with this share of its GPUs free is nearly empty; the paper's", most=1.0),
        Parameter("over", True, "crowd nodes; otherwise jobs queue"),
        Parameter("mix", True, "also crowd nodes with jobs of other sizes, rather than queue"),
        Parameter("pack", True, "pack two jobs on the same GPUs of a crowded node"),
        Parameter("move", True, "move jobs"),
        Parameter("grow", True, "give idle GPUs to jobs that accept them"),
    )  # fmt: skip

    def assumes(self) -> dict[str, str]:
        """See `Policy.assumes`."""
        return {"rates": "traits", "overhead": f"resume:{self.params['migrate']!r}"}

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """See `CompiledPolicy.memory`.

        Raises:
            UsageError: a placement is set, or the possible blacklisted pairs exceed memory.
        """
        common.begin(self.name, state, settings)
        _refuse_gangs(workload, cluster)
        given = self.params
        self.every = given["check_s"]
        height = max(given["height"], 2.0)
        state.g.crowded = math.ceil(height)
        known = traits(workload)
        biggest = int(cluster.gpus.max(initial=0))
        most = np.where(known.grow & (workload.gpus <= biggest) & given["grow"], biggest, workload.gpus)
        if workload.max_gpus is not None:
            most = np.minimum(most, workload.max_gpus)
        common.bounds(state, workload.gpus, most)
        p = records(1, GANDIVA)
        p.turns = given["slice"] / (given["slice"] + given["switch"])
        p.changed = 1
        for name in ("height", "fragment", "blacklist", "over", "mix", "pack", "move", "grow"):
            p[name] = given[name]
        members = records(workload.size, MEMBER)
        members.place, members.most = in_line(workload), most
        members.util, members.mem, members.grows = known.util, known.mem, known.grow
        members.partner = members.ban = members.before = members.after = -1
        members.tried = np.inf
        # bound on a gang's pieces, counting pairs twice, over all classes of nodes
        crowd = math.ceil(height * biggest) + 1
        shape = shapes(state, np.zeros(workload.size, np.int64))
        count = int(shape.max(initial=0)) + 1
        memory = Crowding(
            p=p,
            hosts=records(len(cluster.nodes), HOST),
            members=members,
            here=(len(cluster.nodes), min(crowd, workload.size + 1)),
            shape=shape,
            first=np.full(count, -1),
            last=np.full(count, -1),
            bad=np.full(count, -1),
            line=max(len(cluster.nodes), crowd),
            bans=records(self._bans(workload, crowd * len(cluster.nodes)), BAN),
        )
        return (memory,)

    def _bans(self, workload: Workload, running: int) -> int:
        """Most pairs that can be blacklisted at a time."""
        n = min(workload.size, running)
        checks = int(self.params["blacklist"] // self.params["check_s"]) + 2
        found = min(checks * (n // 2), workload.size * (workload.size - 1) // 2) + 1
        if found > MOST_BANS:
            raise UsageError(
                f"gandiva: {found:,} pairs may be blacklisted at a time, more than {MOST_BANS:,}",
                hint="a shorter blacklist, or a longer check_s",
            )
        return found


def _refuse_gangs(workload: Workload, cluster: Cluster) -> None:
    """Check that each gang fits into the empty cluster: in pieces of the largest node's size, and a rest.

    Raises:
        UsageError: one would queue forever.
    """
    sizes = cluster.gpus
    biggest = int(sizes.max(initial=1))
    whole, rest = np.divmod(workload.gpus, biggest)
    roomy = np.array([(sizes >= r).sum() for r in range(biggest + 1)])
    never = ((sizes == biggest).sum() < whole) | ((rest > 0) & (roomy[rest] < whole + 1))
    if never.any():
        job = int(np.argmax(never))
        raise UsageError(
            f"gandiva: job {workload.ids[job]} asks for {workload.gpus[job]} GPUs, in pieces of {biggest} and a rest, "
            f"each on a node of its own: this cluster has no such nodes ({int(never.sum()):,} such jobs)",
            hint="leave such jobs out (--gpus ..N), or give more nodes of the largest size",
        )
