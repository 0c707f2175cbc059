"""Rows of one cluster that a replay reads from a trace store, with times as seconds on the source's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.store.sources import LAST_SAMPLES, SOURCE_ENDS

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Ints
    from gpuctl.store.database import Store

EPOCH = datetime(1970, 1, 1)
"""Second 0 of a clock without a time zone."""

_JOBS = """
    SELECT number AS job, job AS name, queue, "user", state, gpus, time_limit_s, source, cpus, mem_mb,
           CASE WHEN gpu_type_request IS DISTINCT FROM 'any' THEN gpu_type END AS gpu_type, account, qos, nodes,
           run_sum_s, run_last_s, run_span_s,
           epoch(timezone($zone, submit_ts)) AS submit_c, epoch(timezone($zone, eligible_ts)) AS eligible_c,
           epoch(timezone($zone, start_ts)) AS start_c, epoch(timezone($zone, end_ts)) AS end_c
    FROM numbered_jobs WHERE cluster = $cluster
"""
_ATTEMPTS = """
    SELECT j.number AS job, a.attempt, a.state, a.gpus, a.run_s, a.end_ts IS NULL AS endless,
           coalesce(list_contains(a.quirks, 'resized'), false) AS resized,
           a.released_ts = a.end_ts AS whole, epoch(timezone($zone, a.start_ts)) AS start_c,
           epoch(timezone($zone, a.end_ts)) AS end_c, epoch(timezone($zone, a.released_ts)) AS released_c,
           epoch(timezone($zone, least(a.allocated_ts, a.start_ts))) AS held_from_c,
           epoch(timezone($zone, greatest(e.end_ts, s.seen_ts))) AS shown_c
    FROM attempts AS a JOIN numbered_jobs AS j USING (cluster, job)
    LEFT JOIN source_ends AS e ON e.source = a.source LEFT JOIN last_samples AS s ON s.job = a.job
    WHERE cluster = $cluster
"""
_SHOWN = f"WITH source_ends AS ({SOURCE_ENDS}), last_samples AS ({LAST_SAMPLES})"
_PLACEMENTS = """
    SELECT j.number AS job, p.attempt, p.machine, sum(p.gpus) AS gpus,
           bool_or(coalesce(p.estimated, false)) AS estimated
    FROM placements AS p JOIN numbered_jobs AS j USING (cluster, job) WHERE cluster = $cluster GROUP BY ALL
"""
_CONTAINERS = """
    SELECT j.number AS job, c.attempt, c.machine, c.gpus, epoch(timezone($zone, c.allocated_ts)) AS start_c,
           epoch(timezone($zone, c.end_ts)) AS until_c
    FROM containers AS c JOIN numbered_jobs AS j USING (cluster, job) JOIN attempts AS a USING (cluster, job, attempt)
    WHERE cluster = $cluster AND c.gpus > 0 AND c.allocated_ts IS NOT NULL
          AND c.source_state IS DISTINCT FROM 'RESERVED' AND a.start_ts IS NOT NULL AND a.gpus > 0
          AND NOT list_has_any(a.quirks, ['gpus_partial', 'gpus_estimated'])
          AND c.job IN (SELECT job FROM yarn_built WHERE cluster = $cluster)
"""
"""For YARN, where an attempt's GPUs come and go with its containers."""
_FOLLOWS = """
    SELECT j.number AS job, b.number AS before, d.think_s
    FROM job_dependencies AS d JOIN numbered_jobs AS j USING (cluster, job)
    LEFT JOIN numbered_jobs AS b ON b.cluster = d.cluster AND b.job = d.after_job
    WHERE cluster = $cluster
"""
_MACHINES = "SELECT machine, rack, gpu_type, gpus, cpus, mem_mb FROM machines WHERE cluster = $cluster"
_EVENTS = """
    SELECT machine, state, epoch(timezone($zone, from_ts)) AS from_c, epoch(timezone($zone, to_ts)) AS to_c
    FROM machine_events WHERE cluster = $cluster
"""


@dataclass(frozen=True)
class Rows:
    """Rows of one cluster; ``*_c`` are seconds since `EPOCH` on the clock of its source's durations.

    Attributes:
        name: of the cluster.
        zone: IANA zone of that clock.
        slurm: whether the source is Slurm.
        jobs: one per job; ``job`` is a number that only joins these rows, ``name`` its name.
        attempts: one per attempt; ``endless``: no end is logged, ``whole``: it held its GPUs to its end; ``resized``: a
            resize of the running job ended it; ``shown_c``: the latest time at which its source or a queue listing
            shows it; ``held_gpu_s``: GPU-seconds of its containers from its start on, null if no source records
            containers. GPUs held while a gang gathered count as part of its wait.
        containers: holdings of such attempts, one row per container; its node may be null.
        follows: which job follows which (null: one that the log lacks), and the delay in seconds after its end.
        placements: one per attempt and node.
        machines: as listed, without nodes that only placements name.
        queues: with their configured quotas, null if there is none.
        queue_machines: nodes that queues are confined to, as configured.
        events: times at which nodes were unavailable.
        log_end: latest time of a job or attempt.
    """

    name: str
    zone: str
    slurm: bool
    jobs: pl.DataFrame
    attempts: pl.DataFrame
    containers: pl.DataFrame
    follows: pl.DataFrame
    placements: pl.DataFrame
    machines: pl.DataFrame
    queues: pl.DataFrame
    queue_machines: pl.DataFrame
    events: pl.DataFrame
    log_end: float


def read_rows(store: Store, cluster_name: str | None, no_queue: str) -> Rows:
    """Read the rows of one cluster that a replay needs.

    Args:
        store: an open store.
        cluster_name: which cluster; may be None if there is only one.
        no_queue: name of the queue for jobs without one.

    Raises:
        UsageError: the store has no such cluster, or several and none is named.
    """
    name = store.cluster(cluster_name, "--trace-cluster")
    about = store.frame("SELECT * FROM clusters WHERE cluster = $cluster", {"cluster": name}).row(0, named=True)
    zone = about["timezone"] if about["clock"] == "wall" else "UTC"
    here = {"cluster": name}
    timed = {**here, "zone": zone}
    jobs, attempts = store.frame(_JOBS, timed), store.frame(_SHOWN + _ATTEMPTS, timed)
    latest = [jobs[c].max() for c in ("submit_c", "start_c", "end_c")] + [
        attempts[c].max() for c in ("start_c", "end_c")
    ]
    log_end = max((float(t) for t in latest if isinstance(t, int | float)), default=0.0)
    containers = _open_ended(store.frame(_CONTAINERS, timed), attempts, log_end)
    held = containers.join(attempts.select("job", "attempt", begun="start_c"), on=["job", "attempt"])
    seconds = pl.col("until_c") - pl.max_horizontal("start_c", "begun")
    held = held.group_by("job", "attempt").agg(held_gpu_s=(pl.col("gpus") * seconds.clip(0)).sum())
    attempts = attempts.join(held, on=["job", "attempt"], how="left", maintain_order="left")
    return Rows(
        name=name,
        zone=zone,
        slurm=about["source_format"].startswith("slurm"),
        jobs=jobs.with_columns(pl.col("queue").fill_null(no_queue)),
        attempts=attempts,
        containers=containers,
        follows=store.frame(_FOLLOWS, here),
        placements=store.frame(_PLACEMENTS, here),
        machines=store.frame(_MACHINES, here),
        queues=store.frame("SELECT queue, quota_gpus FROM queues WHERE cluster = $cluster", here),
        queue_machines=store.frame("SELECT DISTINCT queue, machine FROM queue_machines WHERE cluster = $cluster", here),
        events=store.frame(_EVENTS, timed),
        log_end=log_end,
    )


def _open_ended(containers: pl.DataFrame, attempts: pl.DataFrame, log_end: float) -> pl.DataFrame:
    """Fill in the end of each container: its attempt's end if its own is unknown."""
    if containers.is_empty():
        return containers
    over = pl.coalesce("released_c", "shown_c", pl.lit(log_end))
    ends = attempts.select("job", "attempt", over=over)
    rows = containers.join(ends, on=["job", "attempt"], how="left", maintain_order="left")
    return rows.with_columns(until_c=pl.max_horizontal(pl.coalesce("until_c", "over"), "start_c")).drop("over")


def holdings(trace: Rows) -> pl.DataFrame:
    """When each attempt with a known start held GPUs, allocation to release: job, attempt, gpus, start_c, until_c.

    Attempts whose containers came and went have one row per container.
    """
    until = pl.max_horizontal(pl.coalesce("released_c", "shown_c", pl.lit(trace.log_end)), "start_c")
    whole = pl.col("start_c").is_not_null() & pl.col("gpus").is_not_null() & pl.col("held_gpu_s").is_null()
    rows = trace.attempts.filter(whole).select("job", "attempt", "gpus", start_c="held_from_c", until_c=until)
    return pl.concat([rows, trace.containers.select(rows.columns)]) if trace.containers.height else rows


def peak(held: pl.DataFrame, key: str, gpus: str) -> pl.DataFrame:
    """The most GPUs held at once by each value of `key`: key, most."""
    some = held.filter(pl.col("until_c") > pl.col("start_c"))
    code, names = codes(some[key], some[key])
    start, end, change = (some[name].to_numpy() for name in ("start_c", "until_c", gpus))
    # stable sorts: by key, then time, and at one instant ends before starts
    at, change, code = np.concatenate([end, start]), np.concatenate([-change, change]), np.concatenate([code, code])
    order = np.argsort(at, kind="stable")
    order = order[np.argsort(code[order].astype(np.int32), kind="stable")]
    level = np.cumsum(change[order])
    first = np.searchsorted(code[order], np.arange(len(names)))
    before = np.concatenate([[0.0], level])[first]
    most = np.maximum.reduceat(level, first) - before if names else np.zeros(0)
    return pl.DataFrame({key: names, "most": most}, schema={key: pl.String, "most": pl.Float64})


def starts(owner: pl.Series, count: int) -> Ints:
    """First element of each owner, given the sorted owners of all elements; shape (count + 1,)."""
    return np.searchsorted(owner.to_numpy(), np.arange(count + 1)).astype(np.int64)


def codes(values: pl.Series, among: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Numbers for names, -1 for none, in the order of the names of `among`."""
    names = among.drop_nulls().unique().sort()
    table = pl.DataFrame({"name": names}, schema={"name": pl.String}).with_row_index("code")
    found = pl.DataFrame({"name": values}, schema={"name": pl.String}).join(
        table, on="name", how="left", maintain_order="left"
    )
    return found["code"].cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int64), tuple(names.to_list())
