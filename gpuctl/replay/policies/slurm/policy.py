"""Slurm: multifactor priority, main pass and backfill pass, with a site's own configuration if given."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gpuctl.replay.contract.planning import LIMITS_FROM, UNLIMITED
from gpuctl.replay.contract.policy import Parameter, Policy, patience_of
from gpuctl.replay.policies.slurm import slurm_kernel
from gpuctl.replay.policies.slurm.program import slurm_program
from gpuctl.replay.policies.slurm.setup import REQUEUE_DELAY_S, setup_of

if TYPE_CHECKING:
    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

_CONF = "; empty: as configured, "


def _over(name: str, text: str, default: str, choices: tuple[str, ...] = ()) -> Parameter:
    """A parameter that overrides the configuration if set."""
    return Parameter(name, "", text + _CONF + default, choices)


class SlurmPolicy(Policy):
    """Jobs by multifactor priority; a main pass in order, then a backfill pass."""

    name = "slurm"
    title = "Slurm: multifactor priority with fair-share, main and backfill pass, partitions, limits and preemption"
    source = (
        "SchedMD's pages Multifactor Priority Plugin, Scheduling Configuration Guide, Preemption, Resource Limits; "
        "slurm.conf(5) of 22.05; priorities as sprio prints them; starts as recorded of slurmctld 22.05.8"
    )
    plans = True
    preempts = True
    resources = True
    reads = "slurm"
    run: ClassVar[Loop | None] = slurm_kernel.run
    parameters = (
        Parameter(
            "conf",
            "",
            "slurm.conf and what sacctmgr printed: files or directories, separated by :; empty: the queues are "
            "partitions of equal rank",
        ),
        _over("weight_age", "PriorityWeightAge", "1000 without a configuration"),
        _over("weight_fairshare", "PriorityWeightFairshare", "10000 without one"),
        _over("weight_job_size", "PriorityWeightJobSize", "1000 without one"),
        _over("weight_partition", "PriorityWeightPartition", "1000 without one"),
        _over("weight_qos", "PriorityWeightQOS", "0 without one"),
        _over("half_life_d", "PriorityDecayHalfLife in days, 0: no decay", "7"),
        _over("max_age_d", "PriorityMaxAge in days", "7"),
        _over("calc_period", "PriorityCalcPeriod in seconds", "300"),
        _over("fair_share", "Fair Tree, the classic formula, or none", "tree", ("tree", "classic", "none")),
        Parameter(
            "shares",
            "user",
            "equal shares if no associations are given: of users, or of accounts (queues if jobs have "
            "no account) and of users in them",
            ("user", "account"),
        ),
        _over("backfill", "whether there are backfill passes", "true", ("true", "false")),
        _over("bf_interval", "seconds between backfill passes", "30"),
        _over("bf_window", "how far ahead backfill plans, minutes", "1440"),
        _over("bf_resolution", "resolution of its times, seconds", "60"),
        _over("bf_max_job_test", "jobs that a pass tests", "500"),
        _over("bf_max_job_user", "of one user; 0: all", "0"),
        _over("bf_max_job_part", "of one partition; 0: all", "0"),
        _over("bf_max_job_start", "jobs that a pass starts; 0: any number", "0"),
        _over("bf_min_age_reserve", "seconds that a job waits before it gets a reservation", "0"),
        _over("bf_job_part_count_reserve", "jobs of a partition that have reservations; 0: all", "0"),
        _over("default_queue_depth", "jobs that a main pass after an event visits", "100"),
        _over("sched_interval", "seconds between main passes over all jobs", "60"),
        _over("batch_sched_delay", "least seconds between main passes", "3"),
        _over(
            "preempt",
            "which jobs a job may preempt: by PriorityTier of partitions or by QOS",
            "none",
            ("none", "partition", "qos"),
        ),
        _over("preempt_mode", "action on preempted jobs", "requeue", ("requeue", "cancel", "suspend")),
        _over("exempt", "PreemptExemptTime in seconds", "0"),
        Parameter("tiers", "", "PriorityTier of partitions, NAME:N,NAME:N; others are as configured, 1 without"),
        Parameter(
            "requeue_delay", REQUEUE_DELAY_S, "seconds until a preempted job is eligible again (cred_expire plus one)"
        ),
        Parameter(
            "ends",
            "groups",
            "planned ends of running jobs are tried in groups of 30, 60, 120 ... s, as select/cons_tres does, or each",
            ("groups", "each"),
        ),
        LIMITS_FROM,
        UNLIMITED,
        patience_of("Slurm"),
    )

    def requeues(self) -> tuple[str, ...]:
        """See `Policy.requeues`; slurmctld counts a requeued job as submitted now."""
        return "head", "tail"

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`.

        Raises:
            UsageError: a parameter is invalid, or the configuration is missing.
            InputError: the configuration cannot be read.
        """
        state.g.patience = int(self.params["patience"])
        return slurm_program(setup_of(self.params, workload), workload, cluster, settings, state)
