"""The simulator's interface to policies, and programs of compiled ones (class: `gpuctl.replay.contract.policy`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Program(Protocol):
    """A policy running on one simulation.

    A program may have ``notes``, a tuple of lines for readers of the result, such as settings that are not modelled;
    and ``counts``, its policy-specific counters, by name.
    """

    def advance(self, state: State, until: float, steps: int) -> int:
        """Advance by a number of instants; returns STEPPED, ENDED or GROW (see ``gpuctl.replay.engine.state``)."""

    def copy(self) -> Program:
        """Return a copy with its own memory, for a fork of the simulation."""


class CompiledProgram:
    """Runs a compiled policy on one simulation.

    Args:
        run: the compiled function that advances by a number of instants: ``run(state, *memory, until, steps)``.
        memory: its memory, as bundles.
        reasons: of its decisions, after the engine's own.
        notes: lines for readers of the result.
        tallies: its counters, by name: fields of the single row ``p`` of the first bundle.
        slow_as_python: even a small replay takes too long as Python.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        memory: tuple[Any, ...],
        reasons: tuple[str, ...] = (),
        notes: tuple[Note, ...] = (),
        tallies: Mapping[str, str] | None = None,
        *,
        slow_as_python: bool = False,
    ) -> None:
        self.run = run
        self.memory = memory
        self.reasons = reasons
        self.notes = notes
        self.tallies = tallies or {}
        self.slow_as_python = slow_as_python

    @property
    def counts(self) -> dict[str, int]:
        """The counters so far."""
        return {name: int(self.memory[0].p[0][field]) for name, field in self.tallies.items()}

    def advance(self, state: State, until: float, steps: int) -> int:
        """Advance by a number of instants."""
        return int(self.run(state, *self.memory, until, steps))

    def copy(self) -> Self:
        """Return a copy with its own memory."""
        # a bundle that occurs twice is also one bundle in the copy
        twins = {id(bundle): bundle.copy() for bundle in self.memory}
        memory = tuple(twins[id(bundle)] for bundle in self.memory)
        return type(self)(self.run, memory, self.reasons, self.notes, self.tallies, slow_as_python=self.slow_as_python)


class Scheduler(Protocol):
    """A policy as the simulator knows it; `gpuctl.replay.contract.policy.Policy` documents each part."""

    name: ClassVar[str]
    oracle: bool
    predicts: ClassVar[bool]
    resources: ClassVar[bool]
    traits: ClassVar[bool]
    own_models: ClassVar[Mapping[str, Note]]
    params: dict[str, Any]

    def shown_params(self) -> dict[str, Any]:
        """Its parameters as results show them."""

    def requeues(self) -> tuple[str, ...]:
        """How a job whose node failed may queue again, if a replay sets that."""

    def extended(self, cluster: Cluster) -> Cluster:
        """The nodes that it schedules on."""

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """Make the program that runs it on a new simulation."""
