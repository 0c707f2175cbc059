"""What the simulator asks of a policy, and how compiled ones run; `gpuctl.replay.contract.policy` has their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Program(Protocol):
    """A policy at work on one simulation.

    A program may have ``notes``, a tuple of lines for whoever reads the result: what of a site's configuration is not
    modelled, say; and ``counts``, how often it did what only policies of its kind do, by name.
    """

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants; returns STEPPED, ENDED or GROW (see ``gpuctl.replay.engine.state``)."""

    def copy(self) -> Program:
        """The same, with a memory of its own: for a fork of the simulation."""


class CompiledProgram:
    """Runs a compiled policy on one simulation.

    Args:
        run: the compiled function that goes on for so many instants: ``run(state, *memory, until, steps)``.
        memory: all that it keeps, bundles.
        reasons: what its decisions may say, after the engine's own.
        notes: lines for whoever reads the result.
        tallies: what it counts, by name: fields of the one row ``p`` of the first bundle.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        memory: tuple[Any, ...],
        reasons: tuple[str, ...] = (),
        notes: tuple[Note, ...] = (),
        tallies: Mapping[str, str] | None = None,
    ) -> None:
        self.run = run
        self.memory = memory
        self.reasons = reasons
        self.notes = notes
        self.tallies = tallies or {}

    @property
    def counts(self) -> dict[str, int]:
        """What it has counted so far."""
        return {name: int(self.memory[0].p[0][field]) for name, field in self.tallies.items()}

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants."""
        return int(self.run(state, *self.memory, until, steps))

    def copy(self) -> Self:
        """The same with a memory of its own."""
        # what occurs twice is one bundle in the copy, too
        twins = {id(bundle): bundle.copy() for bundle in self.memory}
        memory = tuple(twins[id(bundle)] for bundle in self.memory)
        return type(self)(self.run, memory, self.reasons, self.notes, self.tallies)


class Scheduler(Protocol):
    """A policy as the simulator knows it; `gpuctl.replay.contract.policy.Policy` says what each part is."""

    name: ClassVar[str]
    oracle: bool
    predicts: ClassVar[bool]
    resources: ClassVar[bool]
    traits: ClassVar[bool]
    params: dict[str, Any]

    def shown_params(self) -> dict[str, Any]:
        """Its parameters as results show them."""

    def extended(self, cluster: Cluster) -> Cluster:
        """The nodes that it schedules on."""

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """What runs it on a new simulation."""
