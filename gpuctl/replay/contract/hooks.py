"""The hooks that a policy written in Python defines, and their calls at an instant, in order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from gpuctl.core.errors import InputError
from gpuctl.replay.engine.state import (
    E_FINISHED,
    E_JOB_TIMER,
    E_LEASE,
    E_NODE_DOWN,
    E_NODE_UP,
    E_QUEUED,
    E_RECLAIM,
    E_ROUND,
    E_TIMER,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.contract.view import View

HOOKS = {
    "on_finish": E_FINISHED,
    "on_requeue": E_QUEUED,
    "on_node_down": E_NODE_DOWN,
    "on_node_up": E_NODE_UP,
    "on_submit": E_QUEUED,
    "on_lease_end": E_LEASE,
    "on_reclaim": E_RECLAIM,
    "on_wake": E_JOB_TIMER,
    "on_timer": E_TIMER,
    "on_round": E_ROUND,
}
"""The event of each hook; see docs/how-to/write-a-policy.md."""


class Listener:
    """The hooks that a policy may define; only defined ones are called.

    Attributes:
        name: of the policy.
        always: call `decide` also while no job waits.
        every: seconds from one round to the next; rounds are at its whole multiples, while jobs wait or run. 0: none.
    """

    name: ClassVar[str]
    always: ClassVar[bool] = False
    every: float = 0.0

    def decide(self, view: View) -> None:
        """Decide: called last at each instant at which jobs wait, and at each round."""

    def on_submit(self, view: View, job: int) -> None:
        """A job has come into the queue for the first time."""

    def on_requeue(self, view: View, job: int) -> None:
        """A job is in the queue again: it failed, lost a node or its lease, or its suspension has ended."""

    def on_finish(self, view: View, job: int) -> None:
        """A job has ended for good; its GPUs are free."""

    def on_node_down(self, view: View, node: int) -> None:
        """A node has gone down; the jobs that were on it have been queued."""

    def on_node_up(self, view: View, node: int) -> None:
        """A node has come back up."""

    def on_lease_end(self, view: View, job: int) -> None:
        """A lease expires now; unless `View.lease` renews it at this instant, the job loses its GPUs."""

    def on_reclaim(self, view: View, node: int) -> None:
        """A lent node is reclaimed."""

    def on_wake(self, view: View, job: int) -> None:
        """The timer of a job rings, see `View.wake`."""

    def on_timer(self, view: View, number: int) -> None:
        """A timer rings, see `View.timer`."""

    def on_round(self, view: View, number: int) -> None:
        """A round: `number` times `every` seconds have passed."""


class Hooks:
    """The hooks of one policy.

    Attributes:
        ask: when the engine calls `decide` alone: 0 never, 1 if jobs wait, 2 at every instant.
        kinds: a bit per kind of event that some hook handles; 0: none.
        path: the file that a hook is in, for messages.

    Raises:
        InputError: the policy has neither hooks nor `decide`, or its rounds are no number of seconds.
    """

    def __init__(self, policy: Listener) -> None:
        own = {name for name in (*HOOKS, "decide") if getattr(type(policy), name) is not getattr(Listener, name)}
        every: object = policy.every
        self.every = float(every) if isinstance(every, (int, float)) else math.nan
        if not 0 <= self.every < math.inf:
            raise InputError(f"{policy.name}: every = {policy.every!r}", hint="expected seconds, above 0; 0: no rounds")
        if not own:
            raise InputError(
                f"{policy.name} has neither decide() nor a hook",
                hint="define decide(self, view), or some of " + ", ".join(sorted(HOOKS)),
            )
        if "on_round" in own and not self.every:
            raise InputError(f"{policy.name} has on_round(), but every = 0", hint="set every to the seconds of a round")
        self.path = getattr(type(policy), sorted(own)[0]).__code__.co_filename
        self.decide = policy.decide if "decide" in own else None
        self.ask = 0 if self.decide is None else 2 if policy.always else 1
        self._always = policy.always
        self._call: dict[int, Callable[[View, int], None]] = {
            kind: getattr(policy, name) for name, kind in HOOKS.items() if name in own and kind != E_QUEUED
        }
        self._submit = policy.on_submit if "on_submit" in own else None
        self._requeue = policy.on_requeue if "on_requeue" in own else None
        self.kinds = sum(1 << kind for kind in self._call)
        if self._submit or self._requeue or self.decide is None:
            # the view's queue is updated whenever a job is queued
            self.kinds |= 1 << E_QUEUED
        if self.every:
            self.kinds |= 1 << E_ROUND

    def dispatch(self, view: View) -> None:
        """Call the hooks for what has happened at this instant, in that order, then `decide`."""
        state, call = view._state, self._call
        view.__dict__["round"] = None
        calls: list[tuple[Callable[[View, int], None], int]] = []
        # collect all events before the first call: actions of a hook are not events of this instant
        for kind, who in view._happened():
            hook = call.get(kind)
            if kind == E_QUEUED:
                hook = self._requeue if state.jobs.attempts[who] else self._submit
            elif kind == E_ROUND:
                if not who or state.g.waiting[0] + state.g.running[0] == 0:
                    continue
                who = view.__dict__["round"] = round(view.now / self.every)  # noqa: PLW2901 - its number
            if hook is not None:
                calls.append((hook, who))
        for hook, who in calls:
            hook(view, who)
        if self.decide is not None and (self._always or view.waiting or view.round is not None):
            self.decide(view)
