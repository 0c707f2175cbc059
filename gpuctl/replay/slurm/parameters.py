"""``SchedulerParameters`` of slurm.conf: what the main and the backfill pass go by.

Defaults are those of slurm.conf(5) of 22.05; some differ from release to release (``bf_max_job_test`` was 100 before
20.11), so give the file's own where it matters.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from gpuctl.replay.slurm.units import whole


@dataclass(frozen=True)
class Parameters:
    """Numbers are in the unit that slurm.conf(5) gives them, which their names end in where it is a time.

    Attributes:
        bf_interval_s: seconds between backfill passes.
        bf_window_min: how far ahead the backfill pass plans, minutes.
        bf_resolution_s: what its times are rounded to, seconds.
        bf_max_job_test: jobs it looks at.
        bf_max_job_user: of one user; 0 here and below: no limit.
        bf_max_job_part: of one partition.
        bf_max_job_user_part: of one user in one partition.
        bf_max_job_assoc: of one association.
        bf_max_job_start: jobs that it starts.
        bf_min_age_reserve_s: a job waits this long before anything is reserved for it.
        bf_min_prio_reserve: a job below this priority has nothing reserved.
        bf_continue: a pass goes on after it has let others have the locks.
        bf_busy_nodes: prefer nodes that are in use.
        bf_one_resv_per_job: one reservation for a job in several partitions.
        default_queue_depth: jobs that the main pass looks at when something happens.
        partition_job_depth: of one partition; 0: no limit.
        sched_interval_s: seconds between main passes over all jobs.
        sched_max_job_start: jobs that a main pass starts; 0: no limit.
        assoc_limit_stop: a job that a limit holds up stops those behind it in its partition.
        unmodelled: parameters that are set and not among these.
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
    sched_max_job_start: int = 0
    assoc_limit_stop: bool = False
    unmodelled: tuple[str, ...] = ()


_UNITS = ("_s", "_min")
_FIELDS = {
    next((one.name.removesuffix(unit) for unit in _UNITS if one.name.endswith(unit)), one.name): one
    for one in fields(Parameters)
    if one.name != "unmodelled"
}


def read_parameters(text: str) -> Parameters:
    """Read ``SchedulerParameters``; what is not in `Parameters` is listed in ``unmodelled``, with its value.

    Raises:
        InputError: a number is none.
    """
    found: dict[str, int | bool] = {}
    unmodelled = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        one = _FIELDS.get(name.lower())
        if one is None:
            unmodelled.append(f"{item} is not modelled")
        elif isinstance(one.default, bool):
            found[one.name] = True
        else:
            found[one.name] = whole(name, value)
    return Parameters(**found, unmodelled=tuple(unmodelled))  # type: ignore[arg-type]
