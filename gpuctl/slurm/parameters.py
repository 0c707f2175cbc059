"""``SchedulerParameters`` of slurm.conf: settings of the main and the backfill pass.

Defaults are those of slurm.conf(5) of 22.05; some differ from release to release (``bf_max_job_test`` was 100 before
20.11), so set them explicitly if it matters.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from gpuctl.core.errors import InputError
from gpuctl.slurm.units import whole


@dataclass(frozen=True)
class Parameters:
    """Numbers are in slurm.conf(5)'s units, which their names end in for times.

    Attributes:
        bf_interval_s: seconds between backfill passes; -1: there are none.
        bf_window_min: how far ahead the backfill pass plans, minutes.
        bf_resolution_s: resolution of its times, seconds.
        bf_max_job_test: jobs that it considers.
        bf_max_job_user: of one user; 0 here and below: no limit.
        bf_max_job_part: of one partition.
        bf_max_job_user_part: of one user in one partition.
        bf_max_job_assoc: of one association.
        bf_max_job_start: jobs that it starts.
        bf_min_age_reserve_s: wait of a job before it gets a reservation, seconds.
        bf_min_prio_reserve: jobs below this priority get no reservation.
        bf_continue: a pass continues after it has released the locks.
        bf_busy_nodes: prefer nodes in use.
        bf_one_resv_per_job: one reservation for a job in several partitions.
        default_queue_depth: jobs that an event-driven main pass considers.
        partition_job_depth: of one partition; 0: no limit.
        sched_interval_s: seconds between main passes over all jobs; -1: there are none.
        sched_min_interval_us: least microseconds between main passes.
        batch_sched_delay_s: seconds by which a main pass for a submitted batch job may be delayed.
        defer: submission alone starts no job; the next pass does.
        sched_max_job_start: jobs that a main pass starts; 0: no limit.
        assoc_limit_stop: a job held by a limit blocks those behind it in its partition.
        bf_job_part_count_reserve: number of jobs of each partition that get a reservation; 0: all.
        bf_node_space_size: most records of a pass's plan; 0: as many as ``bf_max_job_test``.
        preempt_youngest_first: preempt the job that started last first.
        preempt_strict_order: never preempt a job if one of lower priority suffices.
        preempt_reorder_count: number of reorderings of the jobs to preempt, in order to preempt fewer.
        unmodelled: other parameters that are set.
    """

    bf_interval_s: int = 30
    bf_window_min: int = 1440
    bf_resolution_s: int = 60
    bf_max_job_test: int = 500
    bf_max_job_user: int = 0
    bf_max_job_part: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_start: int = 0
    bf_min_age_reserve_s: int = 0
    bf_min_prio_reserve: int = 0
    bf_continue: bool = False
    bf_busy_nodes: bool = False
    bf_one_resv_per_job: bool = False
    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_interval_s: int = 60
    sched_min_interval_us: int = 2
    batch_sched_delay_s: int = 3
    defer: bool = False
    sched_max_job_start: int = 0
    assoc_limit_stop: bool = False
    bf_job_part_count_reserve: int = 0
    bf_node_space_size: int = 0
    preempt_youngest_first: bool = False
    preempt_strict_order: bool = False
    preempt_reorder_count: int = 1
    unmodelled: tuple[str, ...] = ()


_UNITS = ("_us", "_s", "_min")
_FIELDS = {
    next((one.name.removesuffix(unit) for unit in _UNITS if one.name.endswith(unit)), one.name): one
    for one in fields(Parameters)
    if one.name != "unmodelled"
}
_PREEMPT = {"youngest_first", "strict_order", "reorder_count"}
"""What ``PreemptParameters`` of newer versions calls the parameters with ``preempt_`` before their names."""
_AT_LEAST_1 = frozenset({"bf_window", "bf_resolution", "bf_max_job_test"})
_MAY_BE_OFF = frozenset({"bf_interval", "sched_interval"})
_OWN_TIME = frozenset(
    {
        *("bf_yield_interval", "bf_yield_sleep", "bf_max_time", "max_sched_time", "max_rpc_cnt"),
        *("build_queue_timeout", "bf_yield_rpc_cnt"),
    }
)
_READ_ONLY = frozenset({"bf_busy_nodes", "defer", "preempt_strict_order"})
"""Parameters that are read, but that no pass goes by."""
_NO_MATTER = frozenset(
    {
        *("enable_user_top", "salloc_wait_nodes", "sbatch_wait_nodes", "no_env_cache", "requeue_setup_env_fail"),
        *("nohold_on_prolog_fail", "max_script_size", "disable_job_shrink", "max_array_tasks", "step_retry_count"),
        *("step_retry_time", "bb_array_stage_cnt", "disable_hetjob_steps", "enable_hetjob_steps", "whole_hetjob"),
        *("no_backup_scheduling", "correspond_after_task_cnt", "ignore_prefer_validation", "enable_job_state_cache"),
    }
)
"""Parameters of commands, job steps and prologs: no job starts sooner or later for them."""


def read_parameters(text: str, preempt: str = "") -> Parameters:
    """Parse ``SchedulerParameters``; unknown parameters are listed in ``unmodelled``, with their values.

    Args:
        text: its value.
        preempt: the value of ``PreemptParameters``, to which some parameters moved.

    Raises:
        InputError: a number is invalid or too small.
    """
    found: dict[str, int | bool] = {}
    unmodelled = []
    for item in filter(None, (part.strip() for part in _items(text, preempt))):
        name, _, value = item.partition("=")
        one = _FIELDS.get(name.lower())
        if name.lower() in _NO_MATTER:
            continue
        if name.lower() in _OWN_TIME:
            unmodelled.append(f"{item} is not modelled: passes take no time here")
        elif one is None:
            unmodelled.append(f"{item} is not modelled")
        elif name.lower() in _READ_ONLY:
            found[one.name] = True
            unmodelled.append(f"{item} is not modelled")
        elif isinstance(one.default, bool):
            found[one.name] = True
        elif value.strip() == "-1" and name.lower() in _MAY_BE_OFF:
            found[one.name] = -1
        else:
            found[one.name] = whole(name, value)
            if name.lower() in _AT_LEAST_1 | _MAY_BE_OFF and not found[one.name]:
                raise InputError(f"{name}={value}: expected a whole number, at least 1")
    return Parameters(**found, unmodelled=tuple(unmodelled))  # type: ignore[arg-type]


def _items(text: str, preempt: str) -> list[str]:
    """Return the parameters of both settings, under the names of the older one."""
    moved = [item.strip() for item in preempt.split(",")]
    named = [f"preempt_{item}" if item.partition("=")[0].lower() in _PREEMPT else item for item in moved]
    return [*text.split(","), *named]


RESET_PERIODS = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
