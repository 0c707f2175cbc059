"""Policies written in Python: one that ranks jobs, one that handles events and decides."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.core.notes import untrusted
from gpuctl.core.plugins import own_fault
from gpuctl.replay.contract import view_kernel as vk
from gpuctl.replay.contract.arrived import OfArrived
from gpuctl.replay.contract.hooks import Hooks, Listener
from gpuctl.replay.contract.policy import Policy, faults_of
from gpuctl.replay.contract.view import View
from gpuctl.replay.engine.placements import placement_number
from gpuctl.replay.engine.state import STEPPED

if TYPE_CHECKING:
    from gpuctl.replay.contract.arrivals import Arrivals
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


class RankPolicy(Policy):
    """A policy that gives every job one number when it is submitted: waiting jobs start in ascending order.

    It is as fast as the built-in policies, as the compiled engine needs only these numbers.

    Attributes:
        strict: the first job that does not fit blocks all others; otherwise it is skipped.
        placement: ``any`` | ``consolidate`` | ``spread`` | ``fill``.
    """

    resources: ClassVar[bool] = True
    strict: ClassVar[bool] = False
    placement: ClassVar[str] = "any"

    def begin(self) -> None:
        """Set up the policy's memory; called once, before the first job."""

    def rank(self, jobs: Arrivals) -> Any:
        """Rank the jobs submitted at one instant; lower numbers start first, ties go by row.

        Called once for each instant at which jobs are submitted, in order of time. The policy may remember earlier
        calls in its attributes; later jobs are unknown.
        """
        raise NotImplementedError

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        import numpy as np

        from gpuctl.replay.contract.arrivals import arrivals
        from gpuctl.replay.order.order import BackfillRule, FixedRank, NonPreemptive, list_program, placements

        del cluster
        rank = np.zeros(workload.size)
        with faults_of(type(self).begin, f"{self.name} failed in begin()"):
            self.begin()
        for rows, jobs in arrivals(workload, self.name, oracle=self.oracle):
            with faults_of(type(self).rank, f"{self.name} failed in rank()"):
                numbers = np.asarray(self.rank(jobs), np.float64)
            if numbers.shape != rows.shape:
                raise InputError(
                    f"{self.name}: rank() gave an array of shape {numbers.shape} for {rows.size} jobs",
                    hint="it is called at each instant at which jobs are submitted, with those jobs: expected one "
                    "number for each, in the order of jobs.ids",
                )
            rank[rows] = numbers
        if np.isnan(rank).any():
            raise InputError(
                f"{self.name}: rank() gave NaN for {np.isnan(rank).sum()} of {rank.size} jobs", hint="expected numbers"
            )
        placement_number(self.placement, self.name)
        how = placements(workload, self.placement, settings.placement)
        past_head = BackfillRule.NOBODY if self.strict else BackfillRule.ANY_THAT_FITS
        return list_program(NonPreemptive(FixedRank(rank), past_head, how), workload, state)


class PythonPolicy(Listener, Policy):
    """A policy written in Python: it defines `decide`, or hooks that handle events, or both.

    Only what a class defines is called. At one instant the hooks come in the order in which it happened (ends and
    requeues, nodes, submissions, leases, timers, the round), then `decide`; see docs/how-to/write-a-policy.md.

    Attributes:
        placement: default placement of `View.start`.
    """

    placement: ClassVar[str] = "any"

    def begin(self, view: View) -> None:
        """Set up the policy's memory; called once, before the first instant."""

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        view = View(self, workload, cluster, state)
        view._own = placement_number(settings.placement or self.placement, self.name)
        view._know_types(workload, cluster, settings.rates)
        view._know_jobs(workload)
        view._made = True
        with faults_of(type(self).begin, f"{self.name} failed in begin()"):
            self.begin(view)
        state.g.span = Hooks(self).every
        return PythonProgram(self, view)


class PythonProgram:
    """Runs a policy written in Python on one simulation."""

    def __init__(self, policy: PythonPolicy, view: View) -> None:
        self._policy = policy
        self._view = view

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that it has given, after the engine's own."""
        return tuple(map(untrusted, self._view.reasons))

    def advance(self, state: State, until: float, steps: int) -> int:
        """Advance by a number of instants at which the policy decides."""
        view, policy = self._view, self._policy
        if view._state is not state:
            view._bind(state)
        hooks = Hooks(policy)
        address, when, kinds = state.address, hooks.ask, hooks.kinds
        ask, decided, begin = vk.next_decision, vk.decided, view._begin
        act = hooks.dispatch if kinds or hooks.decide is None else hooks.decide
        for _ in range(steps):
            status, now, fresh, free, jobs, changes = ask(address, until, 1000, when, kinds)
            if status != STEPPED:
                return int(status)
            if fresh >= 0:
                begin(now, fresh, free, jobs, changes)
                try:
                    act(view)
                except (GpuctlError, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    raise own_fault(error, hooks.path, f"{policy.name} failed at second {now:g}") from error
                view._do(decided)
        return STEPPED

    def copy(self) -> Any:
        """Return a copy with its own memory."""
        view = self._view
        twin = copy.copy(view)
        for name in ("reasons", "_codes", "waiting"):
            twin.__dict__[name] = copy.deepcopy(getattr(view, name))
        same: dict[int, Any] = {id(view): twin, id(view.waiting): twin.waiting}
        for name in ("gpus", "least", "most", "submit", "limit", "queue", "user", "job_class"):
            known = getattr(view, name)
            same[id(known)] = twins = OfArrived(twin)
            dict.update(twins, known)
            twin.__dict__[name] = twins
        # references of the policy to the view become references to the twin's view
        policy = copy.deepcopy(self._policy, same)
        twin._policy = policy
        return PythonProgram(policy, twin)
