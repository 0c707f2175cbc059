"""Hadoop YARN's FairScheduler, with its heartbeats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from gpuctl.replay.contract.policy import Parameter, Policy, patience_of
from gpuctl.replay.contract.tenants import WEIGHTED, WEIGHTS
from gpuctl.replay.policies.yarn import fair_kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload


_FILE = " of the file, if one is given"


def _of(name: str) -> str:
    """Help text of a parameter that yarn-site.xml may set."""
    return f". Else yarn.scheduler.fair.{name} of yarn-site.xml"


class YarnFair(Policy):
    """At each node's heartbeat the queue, and in it the application, furthest below its share gets a container."""

    name = "yarn-fair"
    title = "Hadoop YARN's FairScheduler: at each node's heartbeat the queue furthest below its fair share is next"
    source = (
        "Apache Hadoop 3.5.0, FairScheduler.md and the classes of that scheduler; checked against recordings of it. "
        "A job is one container: a gang is allocated as a whole and, if no node holds it, on several at once: ours"
    )
    preempts = True
    resources = True
    reads: ClassVar[str] = "yarn"
    run: ClassVar[Loop | None] = fair_kernel.run
    parameters = (
        Parameter("conf", "", "fair-scheduler.xml, yarn-site.xml, or a directory with them; several with ':' between"),
        Parameter(
            "scheduling_policy",
            "",
            "of all queues: drf, fair (by memory alone if memory counts, else by GPUs) or fifo (within leaves, "
            f"under fair). Else schedulingPolicy{_FILE}, or drf if several resources count, or fair",
            ("", "drf", "fair", "fifo"),
        ),
        replace(WEIGHTED, text=f"{WEIGHTED.text}; else weight{_FILE}"),
        replace(WEIGHTS, text="weights of queues, NAME:W,NAME:W; others by weighted, or weight" + _FILE),
        Parameter(
            "min_shares",
            "none",
            f"quota: queues have their quotas as minResources; none: they have none. Else minResources{_FILE}",
            ("none", "quota"),
        ),
        Parameter("max_running_apps", 0.0, f"maxRunningApps of each leaf, 0: any number. Else{_FILE}"),
        Parameter(
            "min_share_preemption_timeout",
            -1.0,
            "seconds below its minimum after which a queue is starved, -1: never. Else "
            f"minSharePreemptionTimeout{_FILE}",
            least=-1.0,
        ),
        Parameter(
            "fair_share_preemption_timeout",
            -1.0,
            "seconds below the threshold after which an application is starved, -1: never. Else "
            f"fairSharePreemptionTimeout{_FILE}",
            least=-1.0,
        ),
        Parameter(
            "fair_share_preemption_threshold",
            0.5,
            f"share of its fair share that an application is entitled to. Else fairSharePreemptionThreshold{_FILE}",
        ),
        Parameter("preemption", False, f"preempt for starved applications{_of('preemption')}"),
        Parameter(
            "wait_before_kill", 15.0, f"seconds between the choice of a victim and its end{_of('waitTimeBeforeKill')}"
        ),
        Parameter(
            "wait_before_next_starvation_check",
            10.0,
            "seconds after that until an application counts as starved again"
            f"{_of('waitTimeBeforeNextStarvationCheck')}",
        ),
        Parameter(
            "cluster_utilization_threshold",
            0.8,
            f"no preemption up to this use of memory or CPUs{_of('preemption.cluster-utilization-threshold')}",
        ),
        Parameter("assign_multiple", False, f"several containers a heartbeat{_of('assignmultiple')}"),
        Parameter(
            "dynamic_max_assign",
            True,
            f"with assign_multiple: up to half of what is free there{_of('dynamic.max.assign')}",
        ),
        Parameter(
            "max_assign",
            -1.0,
            f"with assign_multiple, without dynamic_max_assign: at most this many, -1: any{_of('max.assign')}",
            least=-1.0,
        ),
        Parameter("size_based_weight", False, f"weigh applications by their requests{_of('sizebasedweight')}"),
        Parameter(
            "heartbeat",
            1.0,
            "seconds between two heartbeats of a node; node i of n has its own at i/n. Else "
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms of yarn-site.xml",
            least=0.001,
        ),
        Parameter(
            "update_interval", 0.5, f"seconds between two updates of shares{_of('update-interval-ms')}", least=0.001
        ),
        Parameter(
            "reservable_nodes", 0.05, f"share of the nodes that an application may reserve{_of('reservable-nodes')}"
        ),
        Parameter(
            "locality",
            "none",
            "recorded: jobs prefer the nodes that they ran on in the trace, for the two thresholds below",
            ("none", "recorded"),
        ),
        Parameter(
            "locality_threshold_node",
            -1.0,
            "missed heartbeats, as a share of the nodes, before a node of the rack is accepted; -1: any is"
            f"{_of('locality.threshold.node')}",
            least=-1.0,
        ),
        Parameter(
            "locality_threshold_rack",
            -1.0,
            f"further ones, before any node is accepted; -1: any is{_of('locality.threshold.rack')}",
            least=-1.0,
        ),
        Parameter(
            "masters",
            "none",
            "first: the first job of each application is its master, which requests the others, and maxAMShare applies",
            ("none", "first"),
        ),
        Parameter(
            "max_am_share",
            -1.0,
            f"with masters: share of its fair share that a leaf may spend on them, -1: all. Else maxAMShare{_FILE}",
            least=-1.0,
        ),
        Parameter("am_heartbeat", 1.0, "seconds between two heartbeats of a master; 0: it requests and ends at once"),
        Parameter("am_preemption", True, f"masters may be preempted{_of('am.preemption')}"),
        patience_of("Hadoop"),
    )

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        super().__init__(params)
        self.given = frozenset(params or ())

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: inconsistent parameters, or a missing configuration.
            InputError: a configuration file is not what it should be.
        """
        from gpuctl.replay.policies.yarn.fair_build import fair_program

        return fair_program(self, workload, cluster, settings, state)
