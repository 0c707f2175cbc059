"""What the simulator asks of a policy; `gpuctl.replay.contract.policy` has the class that policies are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class Program(Protocol):
    """A policy at work on one simulation.

    A program may have ``notes``, a tuple of lines for whoever reads the result: what of a site's configuration is not
    modelled, say.
    """

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants; returns STEPPED, ENDED or GROW (see ``gpuctl.replay.engine.state``)."""

    def copy(self) -> Program:
        """The same, with a memory of its own: for a fork of the simulation."""


class Scheduler(Protocol):
    """A policy as the simulator knows it; `gpuctl.replay.contract.policy.Policy` says what each part is."""

    name: ClassVar[str]
    oracle: bool
    predicts: ClassVar[bool]
    resources: ClassVar[bool]
    params: dict[str, Any]

    def shown_params(self) -> dict[str, Any]:
        """Its parameters as results show them."""

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """What runs it on a new simulation."""
