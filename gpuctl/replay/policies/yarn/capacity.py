"""Hadoop YARN's CapacityScheduler: a tree of queues with guarantees, heartbeats, and a preemption monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import literal, note, untrusted
from gpuctl.replay.contract.policy import Parameter, Policy, patience_of
from gpuctl.replay.engine.state import ABORT, MODES
from gpuctl.replay.order.order import placements
from gpuctl.replay.policies.yarn import capacity_run_kernel
from gpuctl.replay.policies.yarn.capacity_apps_kernel import CAPACITY_REASONS
from gpuctl.replay.policies.yarn.capacity_build import ORDERS, build_tree, changed, from_quotas, known, too_large
from gpuctl.replay.policies.yarn.capacity_conf import MOST_COUNT, named_numbers, read_site

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.compiled.jit import Loop
    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload
    from gpuctl.replay.policies.yarn.capacity_conf import LeafOrParent
    from gpuctl.replay.policies.yarn.capacity_tree_kernel import Tree

NO_MASTERS = note(
    "maximum-am-resource-percent bounds nothing: masters are not among the jobs; --param am_mb=MB gives them a size"
)


def _choices(tree: Tree) -> Note:
    """How often the guarantees of queues decided; if never, other guarantees give the same order."""
    choices, decided = int(tree.p.choices[0]), int(tree.p.by_share[0])
    if not choices:
        return note(
            "guarantees of queues decided nothing: at no heartbeat did jobs of several queues below one parent wait"
        )
    return note(
        "guarantees decided which queue went first in {decided:,} of {choices:,} case{choices||s} in which jobs of "
        "several queues waited: the least use over guarantee goes first, and if no queue holds anything, the larger "
        "guarantee; in the others the one queue that held nothing went first, whatever its guarantee",
        decided=decided,
        choices=choices,
    )


class CapacityProgram:
    """Runs the capacity scheduler on one simulation.

    Args:
        tree: its queues, applications and nodes.
        notes: settings of a site that are not modelled.
        shows_choices: whether to report how often guarantees decided, as the user chose them.
    """

    reasons = CAPACITY_REASONS

    def __init__(self, tree: Tree, notes: tuple[Note, ...], *, shows_choices: bool) -> None:
        self.tree = tree
        self._notes = notes
        self.shows_choices = shows_choices

    @property
    def notes(self) -> tuple[Note, ...]:
        """Settings of a site that are not modelled, and how often guarantees decided which queue goes first."""
        return (*self._notes, _choices(self.tree)) if self.shows_choices else self._notes

    def advance(self, state: State, until: float, steps: int) -> int:
        """Advance by a number of instants."""
        return int(capacity_run_kernel.run(state, self.tree, until, steps))

    def copy(self) -> CapacityProgram:
        """Return a copy with its own memory."""
        return CapacityProgram(self.tree.copy(), self._notes, shows_choices=self.shows_choices)


class YarnCapacity(Policy):
    """At a node's heartbeat, the queue furthest below its guarantee gets the node's free resources."""

    name = "yarn-capacity"
    title = "YARN's CapacityScheduler: guarantees of a tree of queues, lent to others while unused"
    source = (
        "Apache Hadoop 3.5.0, CapacityScheduler with DominantResourceCalculator, without asynchronous scheduling, held "
        "against recordings of it (tests/fixtures/yarnsched); a job is a container; gangs over several nodes: ours"
    )
    preempts = True
    resources = True
    reads = "yarn"
    run: ClassVar[Loop | None] = capacity_run_kernel.run
    parameters = (
        Parameter("conf", "", "capacity-scheduler.xml and yarn-site.xml, or a directory with them; else by quotas"),
        Parameter(
            "guarantees", "",
            "NAME:W,NAME:W: guarantees of queues; with conf in the file's unit (percent or weights), the others of "
            "the same parent share the rest; without it weights, the others use quotas or have 1",
        ),
        Parameter("maximums", "", "NAME:P,NAME:P: maximum of queues in percent of their parent's; also by conf"),
        Parameter("maximum_capacity", 0.0, "maximum of each leaf, times its guarantee; 0: its parent's; also by conf"),
        Parameter(
            "user_limit_factor", -1.0, "a user's maximum, times the queue's guarantee; -1: none; also by conf",
            least=-1,
        ),
        Parameter(
            "minimum_user_limit_percent", 100.0, "least share of the queue per user, if all request; also by conf"
        ),
        Parameter(
            "maximum_applications", 0.0,
            "applications of a queue beyond which others are refused; 0: no limit; also by conf",
        ),
        Parameter(
            "max_parallel_apps", 0.0,
            "applications of a queue beyond which others are held back; 0: no limit; also by conf",
        ),
        Parameter("maximum_am_resource_percent", 0.1, "share of a queue that masters may have, 1 is all; also by conf"),
        Parameter("masters", "", "suffix of names of master jobs, as _000001 of YARN's containers"),
        Parameter("am_mb", 0.0, "MB that other masters count in the limit above, without holding them"),
        Parameter("am_vcores", 0.0, "the same for vcores"),
        Parameter("am_heartbeat", 0.0, "seconds between heartbeats of a master; 0: it requests and ends at once"),
        Parameter("ordering_policy", "fifo", "of the applications of a queue; also by conf", ORDERS),
        Parameter("priorities", "", "USER:P,USER:P: priorities of the applications of users; others have 0"),
        Parameter(
            "heartbeat", 1.0,
            "seconds between heartbeats of a node; node i of n has its own at i/n of it; also by conf", least=0.001,
        ),
        Parameter("phase", 0.0, "delay of all heartbeats in seconds"),
        Parameter("offswitch", 1.0, "most containers off their preferred nodes per heartbeat; also by conf", least=1),
        Parameter("batch", 100.0, "most containers per heartbeat, -1: any number; also by conf", least=-1),
        Parameter("multiple", True, "a heartbeat may assign more than one container; also by conf"),
        Parameter("locality", "none", "recorded: jobs prefer the nodes that they ran on", ("none", "recorded")),
        Parameter(
            "node_locality_delay", 40.0,
            "missed opportunities before a node of the rack is accepted; also by conf", least=-1,
        ),
        Parameter(
            "rack_locality_additional_delay", -1.0,
            "further ones before any node is accepted, -1: by the requests; also by conf", least=-1,
        ),
        Parameter(
            "rack_locality_full_reset", True, "the count also restarts after a container in the rack; also by conf"
        ),
        Parameter("continue_look", True, "a reservation is dropped if another node has room; also by conf"),
        Parameter("minimum_mb", 1024.0, "MB of the smallest container, or the divisor of all requests; also by conf"),
        Parameter("minimum_vcores", 1.0, "the same for vcores; also by conf"),
        Parameter("maximum_mb", 0.0, "MB of the largest container, for reservations; 0: of a node; also by conf"),
        Parameter("maximum_vcores", 0.0, "the same for vcores; also by conf"),
        Parameter("maximum_gpus", 0.0, "the same for GPUs; also by conf"),
        Parameter("preemption", False, "the preemption monitor is on; also by conf"),
        Parameter("monitoring_interval", 3.0, "seconds between rounds of the monitor; also by conf", least=0.001),
        Parameter("max_wait_before_kill", 15.0, "seconds between mark and kill; also by conf"),
        Parameter("total_preemption_per_round", 0.1, "share of the cluster that a round may take; also by conf"),
        Parameter("max_ignored_over_capacity", 0.1, "share beyond its guarantee that a queue keeps; also by conf"),
        Parameter("natural_termination_factor", 0.2, "share of the remaining amount that a round takes; also by conf"),
        patience_of("Hadoop"),
    )  # fmt: skip

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        super().__init__(params)
        self.given = frozenset(params or ())
        if self.params["conf"]:
            # parameters not given follow the files: their defaults are not shown
            self.params = {name: value for name, value in self.params.items() if name in self.given}

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: inconsistent parameters.
            InputError: an invalid configuration, or jobs of unknown queues.
        """
        params: dict[str, Any] = {p.name: p.default for p in self.parameters} | self.params
        notes: tuple[Note, ...] = ()
        large = next((name for name, v in params.items() if isinstance(v, float) and v > MOST_COUNT), None)
        if large is not None:
            raise UsageError(f"yarn-capacity: {large}={params[large]:g}: expected a number up to {MOST_COUNT:g}")
        if params["minimum_user_limit_percent"] > 100:
            raise UsageError("yarn-capacity: minimum_user_limit_percent: expected a number from 0 to 100")
        if "maximums" in self.given and "maximum_capacity" in self.given:
            raise UsageError("yarn-capacity: both maximums and maximum_capacity are given", hint="give one of them")
        if params["conf"]:
            site = read_site(
                params["conf"],
                named_numbers("guarantees", params["guarantees"], 0.0),
                named_numbers("maximums", params["maximums"], 0.0, 100.0),
            )
            # given parameters override the files
            params |= {name: value for name, value in site.values.items() if name not in self.given}
            queues, notes = changed(site.queues, params, self.given), tuple(map(untrusted, site.notes))
            if not (params["masters"] or params["am_mb"] or params["am_vcores"]):
                notes += (NO_MASTERS,)
        else:
            everything = {p.name for p in self.parameters} - {"maximum_capacity"}
            queues = changed(from_quotas(params, workload, cluster), params, everything | self.given)
        how = placements(workload, "any", settings.placement)
        tree = build_tree(queues, params, workload, cluster, state, how)
        state.g.patience = int(params["patience"])
        tree.p.mode = ABORT if settings.mode is None else MODES[settings.mode]
        unknown = tuple(
            note("{what} of some nodes is unknown: shares and limits of queues ignore it", what=literal(name))
            for name, counts in zip(("mem", "cpu"), known(state), strict=True)
            if name in settings.resources and not counts
        )
        chosen = bool(params["conf"] or params["guarantees"])
        return CapacityProgram(tree, (*notes, *_turned_away(queues, tree), *unknown), shows_choices=chosen)


def _turned_away(queues: Sequence[LeafOrParent], tree: Tree) -> list[Note]:
    """Mark the jobs larger than the maximum of a queue above them; returns notes on jobs that Hadoop would not run."""
    over = too_large(tree)
    tree.jobs.never[over] = 1
    stopped = np.array([not queue.runs for queue in queues])[tree.apps.queue[tree.jobs.app]]
    reasons = (
        (over, note("are larger than the maximum of their queue")),
        (stopped, note("are in queues that are STOPPED")),
    )
    return [
        note("{count:,} job{count||s} {what}: turned away", count=int(jobs.sum()), what=what)
        for jobs, what in reasons
        if jobs.any()
    ]
