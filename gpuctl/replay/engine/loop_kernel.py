"""The loop of every compiled policy: advance to the next instant, then call its hooks, as for Python policies."""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import end_leases, next_instant
from gpuctl.replay.engine.rounds_kernel import round_number, rounds
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
    GROW,
    STEPPED,
)


@inner
def loop(  # type: ignore[no-untyped-def]
    s, memory, until, steps, decide=None, on_finish=None, on_requeue=None, on_node_down=None, on_node_up=None,
    on_submit=None, on_lease_end=None, on_reclaim=None, on_wake=None, on_timer=None, on_round=None,
):  # fmt: skip
    """Advance by a number of instants, or to the end.

    Hooks have the meaning and order of a policy written in Python (docs/how-to/write-a-policy.md). Omitted ones are not
    compiled.

    Args:
        s: the simulation.
        memory: what the policy remembers, a tuple of bundles.
        until: the last instant.
        steps: most instants.
        decide: called last at every instant, as ``decide(s, *memory)``. It returns true if it must be called again at
            this instant, after arrays have grown.
        on_finish: called as ``on_finish(s, job, *memory)``; those that follow take a job, node, timer or round:
        on_requeue: see there.
        on_node_down: see there.
        on_node_up: see there.
        on_submit: see there.
        on_lease_end: see there; leases end only for policies that have it.
        on_reclaim: see there.
        on_wake: see there.
        on_timer: see there.
        on_round: every ``span`` seconds of the simulation.

    Returns:
        As `step` does.
    """
    for _ in range(steps):
        status = next_instant(s, until)
        if status != STEPPED:
            return status
        if s.g[0].decision_phase == 1:
            if on_round is not None:
                rounds(s)
            if on_submit is not None or on_requeue is not None:
                _mark_first_submissions(s)
            _dispatch(
                s, memory, on_finish, on_requeue, on_node_down, on_node_up, on_submit, on_lease_end, on_reclaim,
                on_wake, on_timer, on_round,
            )  # fmt: skip
            s.g[0].decision_phase = 2
        if decide is not None:  # noqa: SIM102 - of what is not given nothing is compiled
            if decide(s, *memory):
                return GROW
        if on_lease_end is not None:
            end_leases(s)
        s.g[0].decision_phase = 0
    return STEPPED


@inner
def _mark_first_submissions(s):  # type: ignore[no-untyped-def]
    # before any hook is called, as hooks may start jobs
    for k in range(s.g[0].events):
        if s.events[k].kind == E_QUEUED:
            j = s.events[k].who
            s.fresh[j] = s.jobs[j].attempts == 0


@inner
def _dispatch(  # type: ignore[no-untyped-def]
    s, memory, on_finish, on_requeue, on_node_down, on_node_up, on_submit, on_lease_end, on_reclaim, on_wake,
    on_timer, on_round,
):  # fmt: skip
    # actions of hooks are not events of this instant
    for k in range(s.g[0].events):
        kind, who = s.events[k].kind, s.events[k].who
        if kind == E_QUEUED:
            if on_submit is not None:  # noqa: SIM102
                if s.fresh[who] == 1:
                    on_submit(s, who, *memory)
            if on_requeue is not None:  # noqa: SIM102
                if s.fresh[who] == 0:
                    on_requeue(s, who, *memory)
        elif kind == E_FINISHED:
            if on_finish is not None:
                on_finish(s, who, *memory)
        elif kind == E_JOB_TIMER:
            if on_wake is not None:
                on_wake(s, who, *memory)
        elif kind == E_TIMER:
            if on_timer is not None:
                on_timer(s, who, *memory)
        elif kind == E_NODE_DOWN:
            if on_node_down is not None:
                on_node_down(s, who, *memory)
        elif kind == E_NODE_UP:
            if on_node_up is not None:
                on_node_up(s, who, *memory)
        elif kind == E_LEASE:
            if on_lease_end is not None:
                on_lease_end(s, who, *memory)
        elif kind == E_RECLAIM:
            if on_reclaim is not None:
                on_reclaim(s, who, *memory)
        elif kind == E_ROUND:  # noqa: SIM102
            if on_round is not None:  # noqa: SIM102
                if who == 1 and s.g[0].waiting + s.g[0].running > 0:
                    on_round(s, round_number(s.g[0].now, s.g[0].span), *memory)
