"""Rows of one cluster that a replay reads from a trace store, with times as seconds on the source's clock.

Jobs whose size changed while they ran (containers of YARN that came and went, Slurm's RESIZING) become jobs of a fixed
size that hold as many GPU-hours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import note, together
from gpuctl.core.states import State
from gpuctl.joblogs.retry_prospects import may_pass, where_it_shows
from gpuctl.joblogs.table import NO_SIGNATURE
from gpuctl.replay.inputs.check import circular
from gpuctl.replay.models.records import SHOWS, Failures
from gpuctl.store.sources import LAST_SAMPLES, SOURCE_ENDS

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Ints
    from gpuctl.store.database import Store


EPOCH = datetime(1970, 1, 1)
"""Second 0 of a clock without a time zone."""

_JOBS = """
    SELECT number AS job, job AS name, queue, "user", state, gpus, time_limit_s, source, cpus, mem_mb,
           CASE WHEN gpu_type_request IS DISTINCT FROM 'any' THEN gpu_type END AS gpu_type, account, qos, nodes,
           run_sum_s, run_last_s, run_span_s,
           epoch(timezone($zone, submit_ts)) AS submit_c, epoch(timezone($zone, eligible_ts)) AS eligible_c,
           epoch(timezone($zone, start_ts)) AS start_c, epoch(timezone($zone, end_ts)) AS end_c,
           epoch(timezone($zone, deadline_ts)) AS deadline_c
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


_UNEVEN = 0.05


def of_containers(trace: Rows) -> tuple[Rows, list[Note]]:
    """Give each of these jobs a fixed size, and note how many there are.

    A job has the GPUs of its gang, or the mean held by its containers together, rounded up, if larger: so no job is
    replayed for longer than it ran. Its run time is its GPU-seconds over that size.
    """
    c = pl.col
    rows = trace.attempts.filter(c("held_gpu_s").is_not_null()).join(trace.jobs.select("job", gang="gpus"), on="job")
    until = pl.coalesce("released_c", "shown_c", pl.lit(trace.log_end))
    rows = rows.with_columns(span=until - c("start_c")).filter(c("span") > 0)
    # a few percent are members that came slightly earlier than the last one, or left slightly later
    uneven = rows.filter((c("held_gpu_s") - c("gang") * c("span")).abs() > _UNEVEN * c("held_gpu_s"))
    if uneven.is_empty():
        return trace, []
    means = uneven.group_by("job").agg(mean=(c("held_gpu_s") / c("span")).max())
    jobs = trace.jobs.join(means, on="job", how="left", maintain_order="left")
    grown = (c("mean") > c("gpus") * (1 + _UNEVEN)).fill_null(value=False)
    count = jobs.filter(grown).height
    jobs = jobs.with_columns(gpus=pl.when(grown).then((c("mean") - 1e-6).ceil()).otherwise("gpus")).drop("mean")
    more = note("; {count:,} of them {count|has|have} the mean of what {count|it|they} held", count=count)
    text = note(
        "containers of {changed:,} job{changed||s} came and went: {changed|it is|each is} replayed on all of its GPUs "
        "at once, for as long as makes up the GPU-hours that it held from its start on{more}",
        changed=means.height,
        more=more if count else note(""),
    )
    return replace(trace, jobs=jobs), [text]


def of_resized(trace: Rows) -> tuple[Rows, list[Note]]:
    """Join attempts separated by a change of size into one run, and count the jobs concerned.

    Such a run has the job's largest size and lasts for its GPU-seconds over that size: it holds its GPU-hours, and
    never runs for longer than it did. Its placement is that of its first attempt with that size. Its holdings by node
    and queue over time remain in ``containers``.
    """
    c = pl.col
    if not trace.attempts["resized"].any():
        return trace, []
    # an attempt that a resize ended belongs to the one after it
    rows = trace.attempts.sort("job", "attempt")
    tries = rows.with_columns(
        run=c("resized").shift(1).over("job").fill_null(value=False).not_().cast(pl.Int32).cum_sum().over("job")
    )
    parted = tries.filter(c("resized").any().over("job", "run"))
    until = pl.max_horizontal(pl.coalesce("released_c", "shown_c", pl.lit(trace.log_end)), "start_c")
    parted = parted.with_columns(gpu_s=c("gpus") * (until - c("start_c")), until_c=until)
    largest = c("attempt").filter(c("gpus") == c("gpus").max()).first()
    ends = ("state", "endless", "end_c", "released_c", "shown_c")
    merged = parted.group_by("job", "run", maintain_order=True).agg(
        c("start_c", "held_from_c").first(),
        *(c(name).last() for name in ends),
        attempt=c("attempt").last(),
        gpus=c("gpus").max(),
        held_gpu_s=pl.when(c("gpu_s").null_count() == 0).then(c("gpu_s").sum()),
        placed=largest,
        resized=pl.lit(value=False),
        whole=pl.lit(value=False),
    )
    pieces = _pieces(trace, parted, merged)
    moved = merged.select("job", "attempt", "placed")
    unresized = trace.placements.join(parted.select("job", "attempt"), on=["job", "attempt"], how="anti")
    placed = trace.placements.join(moved.rename({"attempt": "to", "placed": "attempt"}), on=["job", "attempt"])
    placed = placed.with_columns(attempt="to").select(unresized.columns)
    others = trace.attempts.join(parted.select("job", "attempt"), on=["job", "attempt"], how="anti")
    changed = merged["job"].n_unique()
    text = note(
        "the size of {changed:,} job{changed||s} changed while {changed|it|they} ran: {changed|it is|each is} replayed "
        "at its largest size, for as long as makes up the GPU-hours that it held; a replay resizes no recorded job",
        changed=changed,
    )
    attempts = pl.concat([others, merged.select(set(others.columns) & set(merged.columns))], how="diagonal_relaxed")
    return replace(
        trace,
        attempts=attempts.select(trace.attempts.columns),
        containers=pl.concat([trace.containers, pieces.select(trace.containers.columns)], how="vertical_relaxed"),
        placements=pl.concat([unresized, placed]),
    ), [text]


def _pieces(trace: Rows, parted: pl.DataFrame, merged: pl.DataFrame) -> pl.DataFrame:
    """Holdings of each attempt over time: a row per node, or one without a node if none is known."""
    c = pl.col
    runs = parted.select("job", "run", "attempt", "start_c", "until_c", total="gpus")
    on = trace.placements.select("job", "attempt", "machine", part="gpus")
    rows = runs.join(on, on=["job", "attempt"], how="left", maintain_order="left")
    known = (c("part").null_count() == 0) & (c("part").sum() == c("total").first())
    rows = rows.with_columns(known=known.over("job", "attempt"))
    whole = rows.filter(~c("known")).unique(["job", "attempt"], maintain_order=True)
    whole = whole.with_columns(gpus="total", machine=pl.lit(None, pl.String))
    rows = pl.concat([rows.filter("known").with_columns(gpus="part"), whole], how="diagonal_relaxed")
    return rows.drop("attempt").join(merged.select("job", "run", "attempt"), on=["job", "run"]).filter(c("gpus") > 0)


def dependencies(trace: Rows, rows: pl.DataFrame) -> tuple[Ints, Floats | None, list[Note]]:
    """Choose the dependencies that a replay uses: those between its jobs, except circles.

    Recorded times may contradict them, as in workload models whose waits are all 0: the definition of SWF counts.

    Args:
        trace: with the dependencies that the log records.
        rows: the jobs to replay: ``job``, ``number``, ``start_c``, ``end_c``.

    Returns:
        pairs of numbers (the later job, the one it waits for), shape (k, 2); seconds from the last end until each job
        may enter the queue, shape (jobs,), None if there are no pairs; notes on dropped and contradicted ones.
    """
    none = np.zeros((0, 2), np.int64)
    if not trace.follows.height:
        return none, None, []
    jobs = rows.select("job", number=pl.col("number").cast(pl.Int64), start_c="start_c", end_c="end_c")
    stated = trace.follows.join(jobs.select("job", "number", "start_c"), on="job")
    pairs = stated.join(jobs.select("job", "end_c", other="number"), left_on="before", right_on="job", how="left")
    there = pairs.filter(pl.col("other").is_not_null())
    contradicted = (pl.col("start_c") < pl.col("end_c")).fill_null(value=False)
    edges = there.unique(["number", "other"], maintain_order=True).sort("number", "other")
    depends = edges.select("number", "other").to_numpy().astype(np.int64).reshape(-1, 2)
    circle = circular(depends, rows.height)
    acyclic = ~np.isin(depends[:, 0], circle)
    outside, looped = pairs.height - there.height, int((~acyclic).sum())
    notes = []
    if outside:
        notes.append(note("{n:,} {n|dependency|dependencies} on jobs outside the replay {n|is|are} dropped", n=outside))
    if looped:
        notes.append(note("{n:,} {n|dependency|dependencies} in a circle {n|is|are} dropped", n=looped))
    if against := there.filter(contradicted).height:
        notes.append(
            note(
                "{n:,} {n|dependency is|dependencies are} contradicted by the recorded times: the replay keeps the "
                "{n|dependency|dependencies}",
                n=against,
            )
        )
    if not acyclic.any():
        return none, None, notes
    think = np.zeros(rows.height)
    np.maximum.at(think, depends[acyclic, 0], edges["think_s"].to_numpy()[acyclic])
    return depends[acyclic], think, notes


def without_interruptions(trace: Rows, interrupted: pl.DataFrame | None) -> tuple[Rows, list[Note]]:
    """The trace as if infrastructure had ended no attempt: such an attempt counts as preempted, and its work goes on.

    Otherwise these failures would count twice: as recorded, and among those of the replay.
    """
    lost = trace.attempts.filter(pl.col("state") == State.NODE_FAIL).select("job", "attempt")
    nodes = lost.height
    if interrupted is not None:
        named = interrupted.rename({"job": "name"}).join(trace.jobs.select("job", "name"), on="name")
        named = named.select(pl.col(name).cast(trace.attempts.schema[name]) for name in ("job", "attempt"))
        lost = pl.concat([lost, named]).unique(maintain_order=True)
    hit = trace.attempts.select("job", "attempt").join(
        lost.with_columns(hit=pl.lit(value=True)), on=["job", "attempt"], how="left", maintain_order="left"
    )["hit"]
    spared = pl.when(hit.fill_null(value=False)).then(pl.lit(State.PREEMPTED.value))
    kind = trace.attempts.schema["state"]
    others = lost.height - nodes
    causes = [
        note("{nodes:,} lost {nodes|its node|their nodes}", nodes=nodes),
        *([note("{others:,} {others|is|are} explained by node events, XIDs or logs", others=others)] if others else []),
    ]
    text = note(
        "{count:,} attempt{count||s} that infrastructure ended ({causes}): {count|its work goes|their work goes} on "
        "after {count|it|them}, as nodes fail in the replay itself",
        count=lost.height,
        causes=together(", ", causes),
    )
    state = spared.otherwise(pl.col("state").cast(pl.String)).cast(kind).alias("state")
    notes = [text] if lost.height else []
    return replace(trace, attempts=trace.attempts.with_columns(state)), notes


def why_failed(rows: pl.DataFrame, segments: pl.DataFrame, failed_attempts: pl.DataFrame) -> Failures:
    """Return the reason of each failed segment.

    Args:
        rows: jobs of a trace: ``number``, ``name``.
        segments: of these jobs: ``number``, ``start_c``, ``attempt``.
        failed_attempts: one row per failed attempt: ``job`` (name), ``attempt``, ``reason`` (null or `NO_SIGNATURE`:
            not known), ``category``, ``confidence``.
    """
    own = segments.join(rows.select("number", "name"), on="number").sort("number", "start_c", maintain_order=True)
    columns = {"attempt": pl.Int32, "reason": pl.String, "category": pl.String, "confidence": pl.Float64}
    known = failed_attempts.select(
        pl.col("job").alias("name"), *(pl.col(name).cast(kind) for name, kind in columns.items())
    )
    known = known.filter(pl.col("reason") != NO_SIGNATURE).unique(["name", "attempt"], keep="first")
    found = own.with_columns(pl.col("attempt").cast(pl.Int32)).join(
        known, on=["name", "attempt"], how="left", maintain_order="left"
    )
    code, reasons = codes(found["reason"], found["reason"])
    category, categories = codes(found["category"], found["category"])
    pairs = list(found.select("reason", "category").iter_rows())
    return Failures(
        reason=code,
        category=category,
        confidence=found["confidence"].fill_null(0.0).to_numpy().astype(np.float64),
        shows=np.array([SHOWS.index(where_it_shows(*pair)) for pair in pairs], np.int64),
        may_pass=np.array([may_pass(*pair) for pair in pairs], np.bool_),
        reasons=reasons,
        categories=categories,
    )
