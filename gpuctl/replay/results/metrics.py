"""Figures of a policy on a workload: one row per policy, and the same by queue and by gang size.

Definitions are in `gpuctl.replay.results.columns`. Percentiles interpolate linearly between the two nearest values
(numpy's and Polars' ``linear``). Times of jobs are over jobs that ended, figures of their whole work (slowdown, t10,
rho) over those that finished it, figures of the cluster over the whole replay; each row counts excluded jobs by reason.

Sums and means have the same last digit on every machine. Polars sums in as many parts as there are processors, and the
order affects the last digit; so a figure is first the list of its values, in the order of the rows, which one thread
then adds up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.replay.models.traits import LATE_S, deadlines
from gpuctl.replay.results.timelines import ENDED, NEVER_QUEUED, down_times, idle_despite_wait, left_at, spans, window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Cluster, Outcome, Workload

    Floats = NDArray[np.float64]


def listed(values: pl.Expr) -> pl.Expr:
    """The known values of each group, for `mean_of` or `sum_of`."""
    return values.drop_nulls().implode()


def mean_of(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Replace lists of values by their means; null for an empty one."""
    return _added(rows, names, lambda values: float(values.mean()) if values.size else None)


def sum_of(rows: pl.DataFrame, names: Sequence[str], *, per: float = 1.0) -> pl.DataFrame:
    """Replace lists of values by their sums, divided by `per`."""
    return _added(rows, names, lambda values: float(values.sum()) / per)


def total(values: pl.Series) -> float:
    """The sum of a column without nulls."""
    return float(np.ascontiguousarray(values.to_numpy()).sum())


def _added(rows: pl.DataFrame, names: Sequence[str], what: Callable[[Floats], float | None]) -> pl.DataFrame:
    return rows.with_columns(
        pl.Series(name, [what(np.ascontiguousarray(values.to_numpy())) for values in rows[name]], pl.Float64)
        for name in names
    )


SIZES = ("0", "1", "2-4", "5-8", ">8")
"""Classes of gang sizes in GPUs, as in analyses of a trace; 0 only if CPUs or memory count."""

QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))

SHORTEST_WORK_S = 10.0
"""Least divisor of a slowdown, so that jobs of a second do not dominate."""

ROUNDING = 1e-6
"""Tolerance of sums of floats, in percent."""

STATES = ("finished", "cut", "running", "waiting", "held", "unplaceable", "rejected")


def size_class() -> pl.Expr:
    """Return the class of `SIZES` of the column ``gpus``, as ``size_bucket``."""
    gpus = pl.col("gpus")
    return (
        pl.when(gpus <= 0).then(pl.lit(SIZES[0])).when(gpus <= 1).then(pl.lit(SIZES[1]))
        .when(gpus <= 4).then(pl.lit(SIZES[2])).when(gpus <= 8).then(pl.lit(SIZES[3]))
        .otherwise(pl.lit(SIZES[4])).alias("size_bucket")
    )  # fmt: skip


def counted_jobs(outcome: Outcome, workload: Workload, *, warmup: float = 0.0) -> pl.DataFrame:
    """Return the jobs of the figures, with values derived from their times.

    Args:
        outcome: of the replay.
        workload: what was replayed.
        warmup: share of the jobs, in order of submission, that only fill the cluster and are excluded, since they met
            an empty one. 0 excludes none; 0.1 is usual for a trace. All policies exclude the same jobs.

    Returns:
        The rows of ``outcome.jobs``, and ``row`` (job number), ``size_bucket``, ``delay_s`` (first start - submit),
        ``slowdown`` (JCT / max(work, 10 s); null for a job that was cut).

    Raises:
        ValueError: the share is not at least 0 and less than 1.
    """
    if not 0 <= warmup < 1:
        raise ValueError(f"warm-up is a share of the jobs, at least 0 and less than 1, not {warmup}")
    work = pl.max_horizontal(pl.col("work_s"), pl.lit(SHORTEST_WORK_S))
    return (
        outcome.jobs.with_row_index("row")
        .slice(warmup_jobs(workload, warmup))
        .with_columns(
            size_class(),
            (pl.col("start_s") - pl.col("submit_s")).alias("delay_s"),
            pl.when(pl.col("state") != "cut").then(pl.col("jct_s") / work).alias("slowdown"),
        )
    )


def warmup_jobs(workload: Workload, warmup: float) -> int:
    """Return the number of jobs excluded by a share of warm-up, rounded down."""
    return int(warmup * workload.size)


def summary(outcome: Outcome, workload: Workload, cluster: Cluster, *, warmup: float = 0.0) -> dict[str, Any]:
    """Return all figures of one policy, by column name.

    Args:
        outcome: of the replay.
        workload: what was replayed.
        cluster: what it was replayed on.
        warmup: see `counted_jobs`; does not affect the figures of the cluster.
    """
    jobs = counted_jobs(outcome, workload, warmup=warmup)
    return {
        "policy": outcome.policy,
        "oracle": outcome.oracle,
        "jobs_warmup": outcome.jobs.height - jobs.height,
        **figures(jobs).row(0, named=True),
        **use(outcome, cluster),
        "goodput_loaded_pct": goodput_loaded(outcome, cluster),
        **fairness(outcome, workload, cluster, warmup=warmup),
        **met(jobs, workload),
        "instants": outcome.instants,
    }


def met(jobs: pl.DataFrame, workload: Workload) -> dict[str, int | None]:
    """Return how many deadlines of the input some jobs meet; None if it states none: assumed ones do not count.

    Args:
        jobs: from `counted_jobs`.
        workload: what was replayed.
    """
    names = ("deadlines", "deadlines_met", "deadlines_missed", "deadlines_declined")
    if workload.deadline is None:
        return dict.fromkeys(names)
    by = deadlines(workload)[jobs["row"].to_numpy()]
    due = jobs.filter(pl.Series(np.isfinite(by))).with_columns(by=by[np.isfinite(by)])
    in_time = int((due["end_s"] <= due["by"] + LATE_S).sum())
    declined = int((due["state"] == "rejected").sum())
    return dict(zip(names, (due.height, in_time, due.height - in_time, declined), strict=True))


def by_group(outcome: Outcome, workload: Workload, key: str, *, warmup: float = 0.0) -> pl.DataFrame:
    """Return the figures of jobs for each value of ``queue``, ``user`` or ``size_bucket``, one row per value.

    Sizes come smallest first, others by name; values without a counted job have no row.
    """
    jobs = counted_jobs(outcome, workload, warmup=warmup)
    rows = figures(jobs, key)
    order = pl.col(key).cast(pl.Enum(SIZES)) if key == "size_bucket" else pl.col(key)
    return rows.sort(order, nulls_last=True).insert_column(0, pl.lit(outcome.policy).alias("policy"))


def use(outcome: Outcome, cluster: Cluster) -> dict[str, float | None]:
    """Return the use of the cluster's GPU-hours over `gpuctl.replay.results.timelines.window`, all jobs counted.

    available = useful + overhead + lost + idle; a GPU counts once, however many jobs are on it.
    """
    cluster = outcome.used(cluster)
    begin, end = window(outcome)
    busy = _busy(outcome, begin, end)
    available = _available(cluster, begin, end)
    overhead, lost = (total(outcome.jobs[c]) for c in ("overhead_gpu_s", "lost_gpu_s"))
    useful = busy - overhead - lost
    finished = outcome.jobs.filter(pl.col("state") == "finished")
    last = outcome.jobs.filter(pl.col("state").is_in(ENDED))["end_s"].max()
    return {
        "makespan_s": float(last) - begin if isinstance(last, int | float) else None,
        "measured_s": end - begin,
        "utilization_pct": share_pct(busy, available),
        "goodput_pct": share_pct(useful, available) if share_pct(busy, available) is not None else None,
        "available_gpu_h": available / 3600,
        "useful_gpu_h": useful / 3600,
        "overhead_gpu_h": overhead / 3600,
        "lost_gpu_h": lost / 3600,
        "idle_gpu_h": max(0.0, available - busy) / 3600,
        "work_finished_gpu_h": total(finished["work_s"] * finished["gpus"]) / 3600,
        "idle_despite_wait_s": idle_despite_wait(outcome, cluster),
    }


def share_pct(part: float, whole: float) -> float | None:
    """Return a share in percent; None if there is no whole, or if it would be above 100 %.

    More GPU-hours than the nodes had are a contradiction (`overfull`).
    """
    if whole <= 0:
        return None
    share = 100 * part / whole
    return min(share, 100.0) if share <= 100 + ROUNDING else None


def overfull(figures: dict[str, float | None]) -> bool:
    """Whether the figures of `use` are withheld because jobs held more GPU-hours than nodes that were up had."""
    return figures["utilization_pct"] is None and bool(figures["available_gpu_h"])


def _busy(outcome: Outcome, begin: float, end: float) -> float:
    """GPU-seconds charged to any job within a window."""
    held = spans(outcome)
    seconds = held.end.clip(begin, end)
    seconds -= held.start.clip(begin, end)
    return float((held.gpus * seconds).sum())


def goodput_loaded(outcome: Outcome, cluster: Cluster) -> float | None:
    """Return the work done up to the last submission, as a share of the GPU-hours available until then, in percent.

    It does not depend on the last job's end. Work counts at reference speed, whatever its actual speed. None if all
    jobs were submitted at one instant, or if faster GPUs did more work than these nodes could at reference speed.
    """
    begin, end = (outcome.jobs["submit_s"].min(), outcome.jobs["submit_s"].max())
    if outcome.loaded_gpu_s is None or not isinstance(begin, float) or not isinstance(end, float):
        return None
    available = _available(cluster, begin, end)
    return share_pct(outcome.loaded_gpu_s, available)


def _available(cluster: Cluster, begin: float, end: float) -> float:
    """GPU-seconds of nodes that were up."""
    node, down, up = down_times(cluster, begin, end)
    return cluster.total_gpus * (end - begin) - float((np.asarray(cluster.gpus)[node] * (up - down)).sum())


def fairness(
    outcome: Outcome, workload: Workload, cluster: Cluster, *, warmup: float = 0.0
) -> dict[str, float | int | None]:
    """Return finish-time fairness over apps that finished: rho, and Jain's index over 1 / rho.

    rho = T_shared / T_alone (Themis, NSDI'20, the form with average contention): T_shared is from an app's first
    submission to its last end; T_alone = N x W / min(GPUs of the cluster, GPUs that its jobs can use together), with W
    its GPU-seconds of work on the recorded placement and N the mean number of apps in the system over its own life
    under this same policy. By default a job is an app, and T_alone = N x work. Contention is that of the replay itself,
    so a policy with a backlog has a larger N: compare rho between policies with care.

    Apps of the warm-up, with an unfinished job, or without work have no rho.
    """
    apps, app = np.unique(np.asarray(workload.app), return_inverse=True)
    jobs = outcome.jobs
    _, horizon = window(outcome)
    queued = ~jobs["state"].is_in(list(NEVER_QUEUED)).to_numpy()
    finished = (jobs["state"] == "finished").to_numpy()
    submit = jobs["submit_s"].to_numpy().astype(np.float64)
    leave = left_at(jobs, horizon)
    gpus = jobs["gpus"].to_numpy().astype(np.float64)
    first, last = np.full(len(apps), np.inf), np.full(len(apps), -np.inf)
    np.minimum.at(first, app[queued], submit[queued])
    np.maximum.at(last, app[queued], leave[queued])
    work = np.bincount(app, weights=gpus * jobs["work_s"].to_numpy().astype(np.float64), minlength=len(apps))
    together = np.minimum(np.bincount(app, weights=gpus, minlength=len(apps)), cluster.total_gpus)
    complete = np.bincount(app[~finished], minlength=len(apps)) == 0
    late = np.ones(len(apps), dtype=bool)
    late[app[: warmup_jobs(workload, warmup)]] = False
    alive = np.isfinite(first)
    chosen = alive & complete & late & (work > 0) & (last > first)
    if not chosen.any():
        return dict.fromkeys(("rho_apps",), 0) | dict.fromkeys(("rho_mean", "rho_p95", "rho_max", "jain"), None)
    lives = _over_life(first[alive], last[alive], np.ones(int(alive.sum())), lambda level: level)
    contention = lives[chosen[alive]]
    rho = (last[chosen] - first[chosen]) / (contention * work[chosen] / together[chosen])
    return {
        "rho_apps": int(chosen.sum()),
        "rho_mean": float(rho.mean()),
        "rho_p95": float(np.quantile(rho, 0.95)),
        "rho_max": float(rho.max()),
        "jain": jain(1 / rho),
    }


def rhos(outcome: Outcome, workload: Workload, cluster: Cluster) -> dict[str, Floats]:
    """Return three finish-time fairnesses of each job, as columns: JCT / T, NaN for unfinished jobs.

    ``rho``: T is the job's work. ``rho_count``: its work on its own part of the cluster, work x GPUs / min(GPUs of the
    cluster, GPUs), times the mean number of unfinished jobs over its life (Themis' paper). ``rho_demand``: its work
    times the mean over its life of max(1, GPUs that unfinished jobs request / GPUs) (its authors' simulator).
    """
    jobs = outcome.jobs
    ratios = {name: np.full(jobs.height, np.nan) for name in ("rho", "rho_count", "rho_demand")}
    inside = ~jobs["state"].is_in(list(NEVER_QUEUED)).to_numpy()
    if not inside.any():
        return ratios
    _, horizon = window(outcome)
    finished = (jobs["state"] == "finished").to_numpy() & (jobs["work_s"] > 0).to_numpy()
    submit = jobs["submit_s"].to_numpy().astype(np.float64)
    leave = left_at(jobs, horizon)
    work, gpus = (jobs[name].to_numpy().astype(np.float64) for name in ("work_s", "gpus"))
    total = max(cluster.total_gpus, 1)
    lives = submit[inside], np.maximum(leave, submit)[inside]
    count = _over_life(*lives, np.ones(int(inside.sum())), lambda level: level)
    demand = _over_life(*lives, gpus[inside], lambda level: np.maximum(1.0, level / total))
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = (leave - submit) / work
        ratios["rho"][finished] = rho[finished]
        ratios["rho_count"][inside] = (rho * np.minimum(gpus, total) / gpus)[inside] / count
        ratios["rho_demand"][inside] = rho[inside] / demand
    for values in ratios.values():
        values[~finished | (leave <= submit)] = np.nan
    return ratios


def _over_life(first: Floats, last: Floats, weight: Floats, of: Callable[[Floats], Floats]) -> Floats:
    """Mean over each of the intervals (first, last) of a function of the sum of weights of active intervals."""
    at = np.concatenate([first, last])
    order = np.argsort(at, kind="stable")
    at = at[order]
    level = np.cumsum(np.concatenate([weight, -weight])[order])
    area = np.concatenate([[0.0], np.cumsum(of(level[:-1]) * np.diff(at))])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((np.interp(last, at, area) - np.interp(first, at, area)) / (last - first))


def jain(shares: Floats) -> float | None:
    """Return Jain's index (sum x)^2 / (n sum x^2): 1 if all are equal, 1 / n if one has all; None for none."""
    squares = float(np.square(shares).sum())
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares > 0 else None


MEANS = ("jct_mean_s", "wait_mean_s", "delay_mean_s", "slowdown_mean", "bounded_slowdown_mean", "t10_mean_s")
SUMS = ("jobs_held_gpu_h", "jobs_overhead_gpu_h", "jobs_lost_gpu_h")


def figures(jobs: pl.DataFrame, key: str | None = None) -> pl.DataFrame:
    """Return the figures of jobs from `counted_jobs`: one row for all, or one per value of a column."""
    rows = jobs.select(_figures()) if key is None else jobs.group_by(key).agg(_figures())
    return sum_of(mean_of(rows, MEANS), SUMS, per=3600)


def _figures() -> Sequence[pl.Expr]:
    finished, ended = pl.col("state") == "finished", pl.col("state").is_in(ENDED)
    counts = [pl.len().cast(pl.Int64).alias("jobs")]
    counts += [(pl.col("state") == state).sum().cast(pl.Int64).alias(f"jobs_{state}") for state in STATES]
    spread = [
        figure
        for name in ("jct", "wait", "delay")
        for figure in (
            listed(pl.col(f"{name}_s").filter(ended)).alias(f"{name}_mean_s"),
            *(
                pl.col(f"{name}_s").filter(ended).quantile(q, interpolation="linear").alias(f"{name}_{label}_s")
                for label, q in QUANTILES
            ),
        )
    ]
    slow = pl.col("slowdown").filter(finished)
    bounded = pl.max_horizontal(pl.col("slowdown"), pl.lit(1.0)).filter(finished)
    slowdowns = [
        listed(slow).alias("slowdown_mean"),
        slow.quantile(0.5, interpolation="linear").alias("slowdown_p50"),
        slow.quantile(0.95, interpolation="linear").alias("slowdown_p95"),
        listed(bounded).alias("bounded_slowdown_mean"),
        bounded.quantile(0.95, interpolation="linear").alias("bounded_slowdown_p95"),
    ]
    return [
        *counts,
        *spread,
        *slowdowns,
        listed(pl.col("t10_s").filter(finished)).alias("t10_mean_s"),
        pl.col("preemptions").sum().cast(pl.Int64).alias("preemptions"),
        (pl.col("preemptions") > 0).sum().cast(pl.Int64).alias("jobs_preempted"),
        listed(pl.col("gpu_s")).alias("jobs_held_gpu_h"),
        listed(pl.col("overhead_gpu_s")).alias("jobs_overhead_gpu_h"),
        listed(pl.col("lost_gpu_s")).alias("jobs_lost_gpu_h"),
    ]
