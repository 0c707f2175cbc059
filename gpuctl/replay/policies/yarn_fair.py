"""Hadoop YARN's FairScheduler, with its heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gpuctl.replay.parties import WEIGHTED, WEIGHTS
from gpuctl.replay.policy import Parameter, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.replay.build import Settings
    from gpuctl.replay.model import Cluster, Workload
    from gpuctl.replay.policy import Program
    from gpuctl.replay.state import State


class YarnFair(Policy):
    """At each server's heartbeat the queue, and in it the application, furthest below its share gets a container."""

    name = "yarn-fair"
    title = "Hadoop YARN's FairScheduler: at each server's heartbeat the queue furthest below its fair share is next"
    source = (
        "Apache Hadoop 3.5.0, FairScheduler.md and the classes of that scheduler; held against recordings of it. "
        "A job is one container: a gang that is given whole, and where no server holds it, on several at once: ours"
    )
    preempts = True
    resources = True
    reads: ClassVar[str] = "yarn"
    parameters = (
        Parameter("conf", "", "fair-scheduler.xml, yarn-site.xml, or a directory with them; several with ':' between"),
        Parameter(
            "policy",
            "",
            "schedulingPolicy of all queues: drf, fair (by memory alone where memory counts, else by GPUs) or fifo "
            "(within queues). Without: as in the file; without a file drf where several resources count, else fair",
            ("", "drf", "fair", "fifo"),
        ),
        WEIGHTED,
        WEIGHTS,
        Parameter("min_shares", "none", "quota: queues have their quotas as minResources", ("none", "quota")),
        Parameter("max_apps", 0.0, "maxRunningApps of each queue; 0: any number"),
        Parameter("preemption", False, "preempt for starved applications (yarn.scheduler.fair.preemption)"),
        Parameter("min_timeout", -1.0, "minSharePreemptionTimeout, seconds; -1: never", least=-1.0),
        Parameter("fair_timeout", -1.0, "fairSharePreemptionTimeout, seconds; -1: never", least=-1.0),
        Parameter("threshold", 0.5, "fairSharePreemptionThreshold: share of its fair share that it is entitled to"),
        Parameter("wait", 15.0, "seconds between the choice of a victim and its end (waitTimeBeforeKill)"),
        Parameter(
            "check",
            10.0,
            "seconds after that until an application counts as starved again (waitTimeBeforeNextStarvationCheck)",
        ),
        Parameter("utilization", 0.8, "no preemption while less is used (preemption.cluster-utilization-threshold)"),
        Parameter("multiple", False, "several containers a heartbeat (assignmultiple)"),
        Parameter("dynamic", True, "with multiple: up to half of what is free there (dynamic.max.assign)"),
        Parameter("most", -1.0, "with multiple, without dynamic: at most so many (max.assign); -1: any", least=-1.0),
        Parameter("sized", False, "weigh applications by what they ask for (sizebasedweight)"),
        Parameter("heartbeat", 1.0, "seconds between two heartbeats of a server", least=0.001),
        Parameter("update", 0.5, "seconds between two updates of shares (update-interval-ms)", least=0.001),
        Parameter("reservable", 0.05, "share of the servers that an application may reserve (reservable-nodes)"),
        Parameter(
            "prefer",
            "none",
            "servers that jobs want, for the two thresholds below: those on which they ran in the trace",
            ("none", "recorded"),
        ),
        Parameter("node_locality", -1.0, "locality.threshold.node; -1: off", least=-1.0),
        Parameter("rack_locality", -1.0, "locality.threshold.rack; -1: off", least=-1.0),
        Parameter(
            "masters",
            "none",
            "first: the first job of each application is its master, which asks for the others, and maxAMShare holds",
            ("none", "first"),
        ),
        Parameter("master_beat", 1.0, "seconds between two heartbeats of a master: when it asks, and when it is gone"),
        Parameter("master_preemption", True, "masters may be preempted (am.preemption)"),
    )

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        super().__init__(params)
        self.given = frozenset(params or ())

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: parameters that make no sense together, or a configuration that is not there.
            InputError: a configuration file is not what it should be.
        """
        from gpuctl.replay.yarn.fair import fair_program

        return fair_program(self, workload, cluster, settings, state)
