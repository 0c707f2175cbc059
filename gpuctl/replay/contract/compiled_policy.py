"""The parts of a compiled policy in its own file; see docs/how-to/write-a-policy.md.

Everything such a policy calls is exported here, so that its file imports nothing else of the simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gpuctl.compiled.bundles import Bundle, flags, floats, ints, records, rows, words
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.contract.arrivals import looked_at
from gpuctl.replay.contract.policy import Policy
from gpuctl.replay.contract.tenants import shapes
from gpuctl.replay.engine.instant_kernel import grant, job_timer, migrate, named_timer, reject, resize
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loan_kernel import lend
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, free_for
from gpuctl.replay.engine.preemption_kernel import must_go_on, preempt
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.resource_kernel import find_for
from gpuctl.replay.engine.state import FINISHED, RUNNING, SUSPENDING, WAITING
from gpuctl.replay.order.order import placements

if TYPE_CHECKING:
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

__all__ = [
    "FINISHED", "FIRST_REASON", "RUNNING", "SUSPENDING", "WAITING", "Bundle", "CompiledPolicy", "choose", "compiled",
    "find_for", "flags", "floats", "free_for", "grant", "inner", "ints", "job_timer", "launch", "lend", "loop",
    "migrate", "must_go_on", "named_timer", "placements", "preempt", "records", "reject", "resize", "rows", "shapes",
    "words",
]  # fmt: skip

FIRST_REASON = len(REASONS)
"""The number of a policy's own first reason."""


class CompiledPolicy(Policy):
    """A policy whose decisions are compiled: it defines its memory and the function that runs it.

    Attributes:
        run: a compiled function, ``run(s, *memory, until, steps)``, that returns what `loop` does.
        reasons: the reasons of its decisions; the first has the number `FIRST_REASON`.
        every: seconds from one round to the next, for `on_round`; 0: no rounds.
        tallies: its counters, by name in results: fields of the single row ``p`` of the first bundle.
    """

    reasons: ClassVar[tuple[str, ...]] = ()
    every: float = 0.0
    tallies: ClassVar[dict[str, str]] = {}

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        """Make its memory, as bundles, for a new simulation; the arrays of `workload` are read-only."""
        raise NotImplementedError

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        memory = self.memory(looked_at(workload), cluster, settings, state)
        state.g.span = self.every
        if self.run is None:
            raise NotImplementedError
        return CompiledProgram(self.run, memory, self.reasons, tallies=self.tallies)
