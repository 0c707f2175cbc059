"""Plans: how many GPUs a goal for waits needs."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypedDict

from gpuctl.library.arguments import PathOrText, check_names, mapping, path_of
from gpuctl.library.traces import Trace, input_paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from gpuctl.library.result import Result


class PlanOptions(TypedDict, total=False):
    """Further choices; each as the option of the same name of ``gpuctl plan``.

    Attributes:
        calibrated: rules found by ``gpuctl calibrate``.
        node_size: GPUs of an added node.
        node_type: GPU type of added nodes.
        prices: CSV of prices of GPU-hours.
        quotas: CSV of GPUs per queue.
        racks: CSV of racks of the trace's own nodes.
        slurm_conf: Slurm's configuration.
        yarn_conf: YARN's configuration.
        trace_cluster: the cluster of a store with several.
        timezone: zone of log times that name none.
        log_format: format of files given by name.
        window: only jobs submitted in ``"A..B"``.
        resources: ``"gpu"``, or with cpu and mem.
        limits_from: time limits for policies that plan ahead.
    """

    calibrated: PathOrText
    node_size: int
    node_type: str
    prices: PathOrText
    quotas: PathOrText
    racks: PathOrText
    slurm_conf: Sequence[PathOrText]
    yarn_conf: Sequence[PathOrText]
    trace_cluster: str
    timezone: str
    log_format: str
    window: str
    resources: str
    limits_from: str


def plan(
    jobs: object,
    cluster: PathOrText | None = None,
    *,
    goal: str = "p95-wait=1h",
    queue: str | None = None,
    by_queue: bool = False,
    horizon: str | None = None,
    policy: str | None = None,
    params: Mapping[str, str | float | int] | None = None,
    remove_nodes: str | int | None = None,
    draws: int = 40,
    seed: int = 0,
    processes: int | None = None,
    **options: Unpack[PlanOptions],
) -> Result:
    """Find how many GPUs keep waits within a goal, now and with the demand forecast from the trace's own weeks.

    Args:
        jobs: a data frame of jobs, a CSV of jobs, a `Trace`, a trace store, or logs.
        cluster: present nodes, as for `replay`. Default: those of the trace.
        goal: ``"p95-wait=1h"`` (any percentile), ``"mean-wait=30min"`` or ``"wait-over-1h=5%"``.
        queue: only the jobs of this queue must meet it.
        by_queue: also one answer for each queue.
        horizon: ``"13w"``, ``"3mo"``, ``"1q"`` or ``"1y"``, at most half of the history. Default: 13 weeks, or less.
        policy: policy to replay. Default: of a few, the one that comes nearest to the recorded starts.
        params: its parameters, by name.
        remove_nodes: also weigh the removal of nodes: their number, names, or ``"rack:NAME"``.
        draws: futures to draw for each time.
        seed: the same one gives the same plan.
        processes: futures to replay at a time.
        options: further choices.

    Returns:
        ``plan`` has a row per time and queue, ``plan_curve`` one per time, queue and size of the cluster,
        ``plan_demand`` the weeks and their forecast.

    Raises:
        UsageError: an option makes no sense, or the history is too short for the horizon.
        InputError: jobs or nodes cannot be replayed.

    Example:
        >>> import gpuctl
        >>> result = gpuctl.plan("sample_data/jobs.csv", "4x8", goal="p95-wait=1h", policy="fifo-skip", draws=10)
        >>> result.table("plan")["time"].to_list()
        ['now']
    """
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.library.result import Result
    from gpuctl.reports.screens.plan import screen
    from gpuctl.services import plans
    from gpuctl.services.options import Inputs, Planning, Policies, Rules, record_of

    check_names(options, PlanOptions.__annotations__)
    values: dict[str, Any] = {
        "cluster": None if cluster is None else path_of(cluster, "cluster"), "policy": policy,
        "param": [f"{key}={value}" for key, value in mapping("params", params).items()] or None,
        "goal": goal, "goal_queue": queue, "by_queue": by_queue, "horizon": horizon, "remove_nodes": remove_nodes,
        "draws": draws, "seed": seed, "jobs": processes, **options,
    }  # fmt: skip
    planning = record_of(Planning, values)
    with ExitStack() as stack:
        paths = input_paths(jobs, stack)
        if isinstance(jobs, Trace):
            values.setdefault("trace_cluster", jobs.cluster)
        rules = {key: value for key, value in values.items() if key != "seed"}
        found, _ = plans.plan(
            paths, planning, record_of(Policies, values), record_of(Inputs, values), record_of(Rules, rules),
            frontend=NOTEBOOK, command="gpuctl.plan",
        )  # fmt: skip
        return Result(found, screen)
