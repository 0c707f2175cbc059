"""Hadoop YARN's CapacityScheduler: a tree of queues with guarantees, heartbeats, and a preemption monitor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import UsageError
from gpuctl.replay.listprogram import placements
from gpuctl.replay.policy import Parameter, Policy
from gpuctl.replay.state import ABORT, MODES
from gpuctl.replay.yarn import capacity_run_kernel
from gpuctl.replay.yarn.capacity_apps_kernel import CAPACITY_REASONS
from gpuctl.replay.yarn.capacity_build import build_tree, from_quotas, too_large
from gpuctl.replay.yarn.capacity_conf import UNLIMITED, read_site
from gpuctl.replay.yarn.capacity_tree_kernel import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.replay.build import Settings
    from gpuctl.replay.model import Cluster, Workload
    from gpuctl.replay.policy import Program
    from gpuctl.replay.state import State
    from gpuctl.replay.yarn.capacity_conf import LeafOrParent
    from gpuctl.replay.yarn.capacity_tree_kernel import Tree

ORDERS = ("fifo", "fair", "fair-sized")


class CapacityProgram:
    """Runs the capacity scheduler on one simulation.

    Args:
        tree: its queues, applications and nodes.
        notes: what of a site's configuration is not modelled.
    """

    reasons = CAPACITY_REASONS

    def __init__(self, tree: Tree, notes: tuple[str, ...]) -> None:
        self.tree = tree
        self.notes = notes

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants."""
        return int(capacity_run_kernel.run(state, self.tree, until, steps))

    def copy(self) -> CapacityProgram:
        """The same with a memory of its own."""
        return CapacityProgram(self.tree.copy(), self.notes)


class YarnCapacity(Policy):
    """The queue furthest below its guarantee gets what is free on the server whose heartbeat it is."""

    name = "yarn-capacity"
    title = "YARN's CapacityScheduler: guarantees of a tree of queues, lent to others while they are not used"
    source = (
        "Apache Hadoop 3.5.0, CapacityScheduler with DominantResourceCalculator, without asynchronous scheduling, held "
        "against recordings of it (tests/fixtures/yarnsched); a job is a container; gangs over several servers: ours"
    )
    preempts = True
    resources = True
    reads = "yarn"
    parameters = (
        Parameter("conf", "", "capacity-scheduler.xml and yarn-site.xml, or a directory with them; else by quotas"),
        Parameter("guarantees", "", "without conf: weights of queues, NAME:W,NAME:W; others go by quotas, or equal"),
        Parameter("maximum-capacity", 0.0, "without conf: the most of a queue, times its guarantee; 0: all"),
        Parameter("user-limit-factor", -1.0, "a user's most, times the queue's guarantee; -1: no such limit", least=-1),
        Parameter("minimum-user-limit-percent", 100.0, "of the queue that each user gets at least, if all ask"),
        Parameter("maximum-applications", 0.0, "applications of a queue beyond which others are refused; 0: none"),
        Parameter("max-parallel-apps", 0.0, "applications of a queue beyond which others are held back; 0: none"),
        Parameter("maximum-am-resource-percent", 0.1, "part of a queue that masters may have; 1 is all"),
        Parameter("masters", "", "how names of jobs end that are masters, as _000001 of YARN's containers; none"),
        Parameter("am-mb", 0.0, "MB that other masters count for in the limit above, without having them"),
        Parameter("am-vcores", 0.0, "the same for vcores"),
        Parameter("am-heartbeat", 0.0, "seconds between heartbeats of a master; 0: it asks and ends at once"),
        Parameter("ordering-policy", "fifo", "of the applications of a queue", ORDERS),
        Parameter("priorities", "", "priorities of the applications of users, USER:P,USER:P; others have 0"),
        Parameter(
            "heartbeat", 1.0, "seconds between heartbeats of a node; node i of n has its own at i/n", least=0.001
        ),
        Parameter("phase", 0.0, "seconds by which all heartbeats are later"),
        Parameter("offswitch", 1.0, "containers without a wanted node that a heartbeat gives", least=1),
        Parameter("batch", 100.0, "containers of any kind that a heartbeat gives; -1: any number", least=-1),
        Parameter("multiple", True, "a heartbeat may give more than one container"),
        Parameter("locality", "none", "recorded: jobs want the servers that they ran on", ("none", "recorded")),
        Parameter("node-locality-delay", 40.0, "opportunities missed before a server of the rack will do", least=-1),
        Parameter("rack-locality-additional-delay", -1.0, "further ones before any will do; -1: by the asks", least=-1),
        Parameter("rack-locality-full-reset", True, "the count begins anew after a container in the rack, too"),
        Parameter("continue-look", True, "a reservation is given up where another node has room"),
        Parameter("minimum-mb", 1024.0, "MB of the smallest container; less where asks are no multiples of it"),
        Parameter("minimum-vcores", 1.0, "vcores of the smallest container"),
        Parameter("maximum-mb", 0.0, "MB of the largest container, for reservations; 0: of the largest server"),
        Parameter("maximum-vcores", 0.0, "the same for vcores"),
        Parameter("maximum-gpus", 0.0, "the same for GPUs"),
        Parameter("preemption", False, "the preemption monitor is on"),
        Parameter("monitoring_interval", 3.0, "seconds between rounds of the monitor", least=0.001),
        Parameter("max_wait_before_kill", 15.0, "seconds between mark and kill"),
        Parameter("total_preemption_per_round", 0.1, "part of the cluster that a round may take"),
        Parameter("max_ignored_over_capacity", 0.1, "part beyond its guarantee that a queue is left"),
        Parameter("natural_termination_factor", 0.2, "part of what is to be taken that a round takes"),
    )

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        super().__init__(params)
        self.given = frozenset(params or ())

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: parameters that make no sense together.
            InputError: a configuration that is none, or jobs of queues that it does not have.
        """
        params: dict[str, Any] = dict(self.params)
        notes: list[str] = []
        if params["conf"]:
            for name in ("guarantees", "maximum-capacity"):
                if name in self.given:
                    raise UsageError(f"yarn-capacity: {name} is for replays without conf", hint="change the file")
            site = read_site(params["conf"])
            params |= {name: value for name, value in site.values.items() if name not in self.given}
            queues = self._changed(site.queues, params, self.given)
            notes += site.notes
        else:
            everything = frozenset(p.name for p in self.parameters)
            queues = self._changed(from_quotas(params, workload, cluster), params, everything)
        how = placements(workload, "any", settings.placement)
        tree = build_tree(queues, params, workload, cluster, state, how)
        tree.p.mode = ABORT if settings.mode is None else MODES[settings.mode]
        notes += _never(tree)
        return CapacityProgram(tree, tuple(notes))

    @staticmethod
    def _changed(
        queues: Sequence[LeafOrParent], params: Mapping[str, Any], given: frozenset[str]
    ) -> tuple[LeafOrParent, ...]:
        """The queues with what parameters say of all leaves."""
        change: dict[str, Any] = {}
        for name, attribute in (
            ("user-limit-factor", "factor"),
            ("minimum-user-limit-percent", "percent"),
            ("maximum-am-resource-percent", "am"),
        ):
            if name in given:
                change[attribute] = params[name]
        for name, attribute in (("maximum-applications", "most_apps"), ("max-parallel-apps", "most_running")):
            if name in given:
                change[attribute] = int(params[name]) or UNLIMITED
        if "ordering-policy" in given:
            change["order"] = ORDERS.index(params["ordering-policy"])
        return tuple(queue if queue.children else replace(queue, **change) for queue in queues)


def _never(tree: Tree) -> list[str]:
    """Mark the jobs that are larger than the maximum of a queue above them: Hadoop would let them wait for ever."""
    over = too_large(tree)
    tree.jobs.never[over] = 1
    return [f"{int(over.sum()):,} jobs are larger than the maximum of their queue: turned away"] if over.any() else []
