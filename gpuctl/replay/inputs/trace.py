"""Jobs and nodes to replay, from a trace store.

Times use the clock on which the source counts durations (``clusters.clock``): without time zones, differences of its
wall clock, so that waits and run times are as in ``gpuctl analyze``. An hour in which that clock changes is then
missing or doubled.
"""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import listed, literal, note
from gpuctl.core.states import State
from gpuctl.core.storable_text import agreeing
from gpuctl.core.suggestions import check_queues
from gpuctl.replay.inputs.check import SHOWN, unplaceable
from gpuctl.replay.inputs.clusters import ONE_RACK, merged
from gpuctl.replay.inputs.job_csv import MOST_GPUS, NO_QUEUE
from gpuctl.replay.inputs.trace_rows import (
    EPOCH,
    Rows,
    codes,
    dependencies,
    holdings,
    of_containers,
    of_resized,
    peak,
    read_rows,
    starts,
    why_failed,
    without_interruptions,
)
from gpuctl.replay.inputs.transforms import take
from gpuctl.replay.models.records import Cluster, Workload
from gpuctl.replay.models.resources import GPUS_ONLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Ints
    from gpuctl.store.database import Store

Work = Literal["sum", "last", "span"]
WORKS: tuple[Work, ...] = ("sum", "last", "span")

UNKNOWN_RACK = "(unknown rack of {})"

_UNFINISHED = (State.PENDING, State.RUNNING, State.SUSPENDED)
_FAILED = (State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAIL)


def read_trace(
    store: Store,
    cluster_name: str | None = None,
    work: Work = "sum",
    *,
    quotas: Mapping[str, float] | None = None,
    racks: Mapping[str, str] | None = None,
    own_cluster: bool = True,
    resources: tuple[str, ...] = GPUS_ONLY,
    failures: pl.DataFrame | None = None,
    failing: bool = False,
    interrupted: pl.DataFrame | None = None,
) -> tuple[Workload, Cluster]:
    """Read the replayable jobs of one cluster of a store, and the cluster's own nodes.

    A job's segments are, by `work`:

    * ``sum``: all its attempts in order of time, each as long as it held its GPUs (if attempts overlap, until the next
      one started). Each attempt except the last ends in a failure after which the job queues again, unless it was
      preempted; the last one fails if its state is a failure.
    * ``last``: its last attempt alone.
    * ``span``: one, from its first start to its last end, waits between attempts included.

    If a job's GPUs changed while it ran, a segment's length on all of them preserves the GPU-hours held.

    A job without attempts but with a known total is one segment without a start. An attempt that still ran when the log
    was taken runs as long as it had by then. Attempts of unknown length or of 0 s are left out. A job is left out if
    the log lacks its start, submission or length, or if its GPUs are not a whole number of at least 1.

    GPUs of a node are the larger of its label and the highest index seen in use + 1; if the log has neither, the most
    that jobs held there at once. Racks are those given, else the log's, in which a node without a rack is one of its
    own; if nothing is known, all nodes are in one rack. Quotas are those given, else those configured; if there are
    neither and no queue has nodes of its own, the most GPUs that each queue held at once (``inferred``, a lower bound).
    Queues may use their configured nodes; Slurm partitions without a loaded configuration, those that their jobs ran
    on. A node is down while the log records it as unavailable.

    Args:
        store: an open store.
        cluster_name: which cluster of it; may be None if it has only one.
        work: what a job's run time is.
        quotas: GPUs by queue, as the user gave them.
        racks: rack by node, as the user gave them.
        own_cluster: leave out jobs whose gang is larger than all nodes of the trace that it may use. Pass False to keep
            them for replays on other nodes.
        resources: what counts, see `gpuctl.replay.models.resources`; if not GPUs alone, jobs and nodes without GPUs are
            included.
        failures: why attempts failed, as `gpuctl.replay.inputs.trace_rows` takes it; None: not known.
        failing: nodes will fail in the replay: an attempt that infrastructure ended goes on in the next one.
        interrupted: such attempts, beside those with the state node_fail: ``job`` (its name), ``attempt``.

    Returns:
        jobs, and nodes (none if the log names none). Second 0 is the earliest submission, rounded down to a whole
        second; ``origin`` has the zone of the source's clock, so ``origin + timedelta(seconds=t)`` is that clock's
            reading. The jobs' pieces are numbers of these nodes. ``notes`` list what was left out or assumed.

    Raises:
        UsageError: the store has no such cluster, or several and none is named.
        InputError: no job of it can be replayed; the message gives reasons with counts.
    """
    trace, uneven = of_containers(read_rows(store, cluster_name, NO_QUEUE))
    trace, resized = of_resized(trace)
    cpu_too = resources != GPUS_ONLY
    trace, spared = without_interruptions(trace, interrupted) if failing else (trace, [])
    rows, segments, notes = _jobs(trace, work, cpu_jobs=cpu_too)
    machines, machine_notes = _machines(trace, cpu_nodes=cpu_too)
    origin_c = math.floor(rows["submit_c"][0])
    workload, more = _workload(trace, rows, segments, machines, origin_c)
    why = None if failures is None else why_failed(rows, segments, failures)
    workload = dataclasses.replace(workload, notes=(*notes, *uneven, *resized, *spared, *more), failures=why)
    cluster = _cluster(trace, machines, machine_notes, workload, (quotas or {}, racks or {}))
    if own_cluster and cluster.total_gpus:
        large = unplaceable(workload, cluster, resources)
        if large.size:
            text = note(
                "left out {size:,} job{size||s} larger than all nodes of the trace that they may use",
                size=large.size,
            )
            workload = take(workload, np.setdiff1d(np.arange(workload.size), large), text)
            if not workload.size:
                raise InputError(f"{trace.name}: every job is larger than the nodes that the log names")
    return workload, cluster


def _jobs(trace: Rows, work: Work, *, cpu_jobs: bool) -> tuple[pl.DataFrame, pl.DataFrame, list[Note]]:
    """The jobs to replay, numbered in order of submission, their segments, and what was left out."""
    if work not in WORKS:
        raise UsageError(f"no run time {work!r}", hint=f"known: {', '.join(WORKS)}")
    segments, odd = _segments(trace, work)
    summed = segments.group_by("job").agg(first_c=pl.col("start_c").min(), cut=pl.col("cut").any())
    tried = trace.attempts.group_by("job").agg(
        pl.len().alias("tries"), started=pl.col("start_c").is_not_null().any(), zero=(pl.col("run_s") == 0).any()
    )
    rows = trace.jobs.join(summed, on="job", how="left").join(tried, on="job", how="left")
    gpus, total = pl.col("gpus"), pl.col(f"run_{work}_s")
    # some logs record how long a job ran but not when
    timed, undated = pl.col("cut").is_not_null(), pl.col("tries").is_null() | ~pl.col("started")
    alone = (pl.col("cut").is_null() & undated & (total > 0)).fill_null(value=False)
    reasons = (
        (pl.col("submit_c").is_null(), "have no submission time"),
        (gpus.is_null() & ~timed & pl.col("tries").is_null(), "have no start in the log"),
        (gpus.is_null(), "have an unknown number of GPUs"),
        ((gpus == 0) & (not cpu_jobs), "ask for no GPUs"),
        (((gpus < 1) & (gpus != 0)) | (gpus != gpus.floor()) | ~gpus.is_finite(), "ask for a fraction of a GPU"),
        (gpus > MOST_GPUS, "ask for more GPUs than can be"),
        (timed | alone, None),
        (pl.col("zero").fill_null(value=False) | (pl.col("tries").is_null() & (total == 0)), "ran for 0 s"),
        (pl.col("started").fill_null(value=False), "have an unknown start or end"),
        (pl.col("tries").is_null() & pl.col("run_sum_s").is_not_null(), f"have no run time by --work {work}"),
        (pl.lit(value=True), "have no start in the log"),
    )
    reason = pl.coalesce(*(pl.when(when).then(pl.lit(why or "")) for when, why in reasons))
    rows = rows.with_columns(reason=reason, alone=alone, total=total)
    left = (
        rows.filter(pl.col("reason") != "")["reason"]
        .value_counts(sort=True)
        .sort("count", "reason", descending=[True, False])
    )
    why = ", ".join(f"{count:,} {agreeing(count, text)}" for text, count in left.iter_rows())
    rows = rows.filter(pl.col("reason") == "")
    if not rows.height:
        raise InputError(
            f"{trace.name}: none of its {trace.jobs.height:,} jobs can be replayed: {why or 'there are none'}",
            hint="jobs that use CPUs alone: --resources gpu,cpu and --cluster FILE.toml, nodes with their cpus"
            if left.height and left["reason"][0] == "ask for no GPUs"
            else "load a log with submissions, starts, ends and GPUs of jobs, or choose another --work",
        )
    # of jobs submitted at one instant the earlier file's come first, then by name, 9 before 10
    rows = rows.sort("submit_c", "source", pl.col("name").str.len_chars(), "name").with_row_index("number")
    rest = trace.jobs.height - rows.height
    left_out = note("; left out: {why}", why=literal(why)) if rest else note("")
    notes = [
        note(
            "{jobs:,} of {all:,} job{all||s} {jobs|is|are} replayed{left_out}",
            jobs=rows.height,
            all=trace.jobs.height,
            left_out=left_out,
        )
    ]
    cut, totals = rows["cut"].fill_null(value=False).sum(), rows["alone"].sum()
    if cut:
        notes.append(
            note(
                "{cut:,} job{cut||s} still ran at the end of the log: {cut|its|their} run time is taken up to then",
                cut=cut,
            )
        )
    if totals:
        notes.append(
            note(
                "{totals:,} job{totals||s} {totals|has|have} a run time and no start in the log: each is replayed as "
                "one run of that time",
                totals=totals,
            )
        )
    early = (rows["first_c"] < rows["submit_c"]).sum()
    if early:
        notes.append(
            note(
                "{early:,} job{early||s} started before {early|its|their} submission according to the log", early=early
            )
        )
    return rows, segments.join(rows.select("job", "number"), on="job"), [*notes, *odd]


def _segments(trace: Rows, work: Work) -> tuple[pl.DataFrame, list[Note]]:
    """The known runs of all jobs: job, attempt, start_c, seconds, fails, cut (still running), held (GPUs)."""
    c = pl.col
    cut = c("released_c").is_null() & c("state").is_in(_UNFINISHED) & c("start_c").is_not_null()
    until = pl.when(cut).then(c("shown_c").fill_null(trace.log_end)).otherwise("released_c")
    # the source's own difference unless cut short: it is also right in the hour of a clock change
    length = pl.when(c("whole") & c("run_s").is_not_null()).then("run_s").otherwise(until - c("start_c"))
    # preserve GPU-seconds on the whole gang, if containers came and went one by one, or the size changed
    length = pl.when(c("held_gpu_s").is_not_null()).then(c("held_gpu_s") / c("job_gpus")).otherwise(length)
    rows = trace.attempts.join(trace.jobs.select("job", job_gpus="gpus"), on="job", how="left")
    rows = rows.with_columns(cut=cut, until=until, seconds=length).sort("job", "start_c", "attempt")
    rows = rows.with_columns(last=c("attempt") == c("attempt").max().over("job"), held=c("gpus"))
    failed, notes = c("state").is_in(_FAILED), []
    usable = c("start_c").is_not_null() & (c("seconds") > 0).fill_null(value=False)
    if work == "sum":
        found = rows.filter(usable)
        lost = rows.filter(~usable & (usable.any().over("job"))).height
        unended = found.filter(c("endless") & ~c("cut")).height
        if lost:
            notes.append(
                note(
                    "{lost:,} attempt{lost||s} of jobs with others {lost|has|have} no known length above 0 s and "
                    "{lost|is|are} left out",
                    lost=lost,
                )
            )
        if unended:
            notes.append(
                note(
                    "{unended:,} attempt{unended||s} {unended|has|have} no end in the log: "
                    "{unended|it lasts|they last} until the next known time of {unended|its|their} job",
                    unended=unended,
                )
            )
        final = c("job").ne_missing(c("job").shift(-1))
        fails = pl.when(final).then(failed).otherwise(c("state") != State.PREEMPTED)
    elif work == "last":
        found, fails = rows.filter(usable & c("last")), failed
    else:
        end = {name: c(name).filter(c("last")).last() for name in ("state", "cut", "until")}
        found = (
            rows.filter(c("start_c").is_not_null() | c("last"))
            .group_by("job", maintain_order=True)
            .agg(
                c("attempt", "held").sort_by("start_c", nulls_last=True).first(),
                c("start_c").min(),
                spared=(c("until") - c("start_c") - c("seconds")).filter(c("held_gpu_s").is_not_null()).sum(),
                **end,
            )
            .with_columns(seconds=c("until") - c("start_c") - c("spared"))
            .filter(usable)
        )
        fails = failed
    return found.with_columns(fails=fails).select("job", "attempt", "start_c", "seconds", "fails", "cut", "held"), notes


def _workload(
    trace: Rows, rows: pl.DataFrame, segments: pl.DataFrame, machines: pl.DataFrame, origin_c: int
) -> tuple[Workload, list[Note]]:
    """Build arrays of jobs, segments and placements."""
    c = pl.col
    totals = rows.filter("alone").select(
        "job", "number", attempt=pl.lit(None, pl.Int32), start_c=pl.lit(None, pl.Float64), seconds=c("total"),
        fails=c("state").is_in(_FAILED), cut=pl.lit(value=False), held=c("gpus"),
    )  # fmt: skip
    segments = pl.concat([segments, totals.select(segments.columns)], how="vertical_relaxed")
    segments = segments.join(rows.select("number", "gpus"), on="number").sort("number", "start_c", maintain_order=True)
    segments = segments.with_row_index("segment")
    pieces, notes = _pieces(trace, segments, machines)
    depends, think, dropped = dependencies(trace, rows)
    notes += dropped
    queue, queues = codes(rows["queue"], rows["queue"])
    user, users = codes(rows["user"], rows["user"])
    (account, accounts), (qos, qos_names) = (codes(rows[name], rows[name]) for name in ("account", "qos"))
    requested, known = rows["gpu_type"], machines["gpu_type"]
    if machines.height and not known.null_count():
        strange = requested.is_not_null() & ~requested.is_in(known.unique().implode())
        if strange.any():
            names = listed("value", requested.filter(strange).unique().sort().head(SHOWN))
            notes.append(
                note(
                    "{strange:,} job{strange||s} {strange|names|name} GPU types that no node has ({names}): "
                    "{strange|it|they} may use any type",
                    strange=strange.sum(),
                    names=names,
                )
            )
            requested = requested.set(strange, None)
    gpu_type, gpu_types = codes(requested, pl.concat([requested, known]))
    submit = rows["submit_c"].to_numpy() - origin_c
    # some logs record a hold only after the job's end
    first = np.fmax(rows["first_c"].fill_null(math.inf).to_numpy() - origin_c, submit)
    eligible = np.clip(rows["eligible_c"].fill_null(-math.inf).to_numpy() - origin_c, submit, first)
    limit = rows["time_limit_s"].cast(pl.Float64)
    cpus, memory = (rows[name].cast(pl.Float64).fill_null(math.nan).to_numpy() for name in ("cpus", "mem_mb"))
    origin = EPOCH + timedelta(seconds=origin_c)
    workload = Workload(
        name=trace.name,
        ids=tuple(rows["name"].to_list()),
        submit=submit,
        eligible=eligible,
        gpus=rows["gpus"].to_numpy().astype(np.int64),
        queue=queue,
        user=user,
        time_limit=np.where((limit > 0).fill_null(value=False), limit.fill_null(0), np.nan),
        gpu_type=gpu_type,
        app=np.arange(rows.height, dtype=np.int64),
        depends=depends,
        segment_start=starts(segments["number"], rows.height),
        segment_s=segments["seconds"].to_numpy().astype(np.float64),
        segment_fails=segments["fails"].to_numpy().astype(np.bool_),
        recorded_start=segments["start_c"].fill_null(math.nan).to_numpy() - origin_c,
        piece_start=starts(pieces["segment"], segments.height),
        piece_node=pieces["node"].to_numpy().astype(np.int64),
        piece_gpus=pieces["gpus"].to_numpy().astype(np.int64),
        state=tuple(rows.select(pl.when("cut").then(pl.lit(State.RUNNING.value)).otherwise("state")).to_series()),
        queues=queues,
        users=users,
        gpu_types=gpu_types,
        origin=origin.replace(tzinfo=UTC if trace.zone == "UTC" else ZoneInfo(trace.zone)),
        cpus=cpus,
        mem_mb=memory,
        account=account if accounts else None,
        accounts=accounts,
        qos=qos if qos_names else None,
        qos_names=qos_names,
        think=think,
        deadline=None if (due := rows["deadline_c"]).is_null().all() else due.fill_null(math.nan).to_numpy() - origin_c,
        min_nodes=None if (nodes := rows["nodes"]).is_null().all() else nodes.fill_null(0).to_numpy().astype(np.int64),
    )
    return workload, notes


def _pieces(trace: Rows, segments: pl.DataFrame, machines: pl.DataFrame) -> tuple[pl.DataFrame, list[Note]]:
    """The placement of each segment if it is fully known and matches the gang: segment, node, gpus."""
    c = pl.col
    nodes = machines.select("machine").with_row_index("node")
    runs = segments.filter(c("attempt").is_not_null()).select("job", "attempt", "segment", "held", gang="gpus")
    found = trace.placements.join(runs, on=["job", "attempt"]).join(nodes, on="machine", how="left")
    found = found.filter(c("gpus").is_null() | (c("gpus") != 0))
    whole = (c("gpus").floor() == c("gpus")) & c("node").is_not_null()
    fits = whole.fill_null(value=False).all().over("segment") & (c("gpus").sum().over("segment") == c("gang"))
    found = found.with_columns(fits=fits)
    fitting, notes = found.filter("fits"), []
    other, total = runs.filter(c("held") != c("gang")).height, runs.height
    lost, guessed = (frame["segment"].n_unique() for frame in (found.filter(~c("fits")), fitting.filter("estimated")))
    if other:
        notes.append(
            note(
                "{other:,} of {total:,} attempt{total||s} held another number of GPUs than their job requests: the "
                "job's "
                "number is used",
                other=other,
                total=total,
            )
        )
    if lost:
        notes.append(
            note(
                "the placement of {lost:,} of {total:,} attempt{total||s} is not used: unknown, shared or of "
                "another size",
                lost=lost,
                total=total,
            )
        )
    if guessed:
        notes.append(
            note(
                "the placement of {guessed:,} of {total:,} attempt{total||s} is an even split over their nodes",
                guessed=guessed,
                total=total,
            )
        )
    return fitting.sort("segment", "node"), notes


def _machines(trace: Rows, *, cpu_nodes: bool = False) -> tuple[pl.DataFrame, list[Note]]:
    """The nodes with GPUs, or also those with CPUs only, by name, and notes on what was inferred."""
    c = pl.col
    listed = trace.machines
    held = holdings(trace).join(trace.containers, on=["job", "attempt"], how="anti")
    held = held.join(
        trace.placements.select("job", "attempt", "machine", c("gpus").alias("part")), on=["job", "attempt"]
    )
    parts = trace.containers.filter(c("machine").is_not_null()).with_columns(part="gpus")
    held = pl.concat([held, parts.select(held.columns)]) if parts.height else held
    unsized = held.join(listed.filter(c("gpus").is_not_null()), on="machine", how="anti")
    # shares of GPUs are sums of fractions
    most = peak(unsized, "machine", "part").select("machine", most=(c("most") - 1e-6).ceil().cast(pl.Int64))
    rows = listed.join(most, on="machine", how="full", coalesce=True).with_columns(size=pl.coalesce("gpus", "most"))
    fitting = (c("size").fill_null(0) >= 1) | ((c("cpus").fill_null(0) > 0) & cpu_nodes)
    inferred, empty = (
        rows.filter(c("gpus").is_null() & c("size").is_not_null()),
        rows.filter(~fitting),
    )
    notes = []
    if inferred.height:
        notes.append(
            note(
                "the GPUs of {height:,} node{height||s} are inferred: the most that jobs held there at once, or more",
                height=inferred.height,
            )
        )
    if empty.height:
        notes.append(note("{height:,} node{height||s} without GPUs {height|is|are} left out", height=empty.height))
    if not rows.height:
        notes.append(note("the log names no nodes"))
    found = rows.filter(fitting).select("machine", "rack", "gpu_type", "cpus", "mem_mb", gpus=c("size").fill_null(0))
    return found.sort("machine"), notes


def _cluster(
    trace: Rows,
    machines: pl.DataFrame,
    machine_notes: list[Note],
    workload: Workload,
    given: tuple[Mapping[str, float], Mapping[str, str]],
) -> Cluster:
    """The trace's nodes, with the user's quotas and racks, if any."""
    if workload.origin is None:
        raise UsageError(
            f"{workload.name}: these jobs have no calendar times, so they cannot be those of the trace {trace.name}"
        )
    notes = list(machine_notes)
    names = machines["machine"]
    nodes = pl.DataFrame({"machine": names}).with_row_index("node")
    origin_c = (workload.origin.replace(tzinfo=None) - EPOCH).total_seconds()
    types = {name: k for k, name in enumerate(workload.gpu_types)}
    own, own_nodes = _queue_nodes(trace, nodes, workload, notes)
    quota, source = _quotas(trace, workload, given[0], infer=not own, notes=notes)
    rack, rack_names = _racks(machines, given[1], notes)
    return Cluster(
        name=trace.name,
        nodes=tuple(names.to_list()),
        gpus=machines["gpus"].to_numpy().astype(np.int64),
        rack=rack,
        gpu_type=np.array([types.get(name, -1) for name in machines["gpu_type"].to_list()], np.int64),
        racks=rack_names,
        pool=False,
        quota=quota,
        quota_source=source,
        queue_nodes=own_nodes,
        down=_down(trace, nodes, origin_c, notes),
        notes=tuple(notes),
        cpus=machines["cpus"].cast(pl.Float64).fill_null(math.nan).to_numpy(),
        mem_mb=machines["mem_mb"].cast(pl.Float64).fill_null(math.nan).to_numpy(),
        listed=trace.machines.height > 0,
    )


def _racks(machines: pl.DataFrame, given: Mapping[str, str], notes: list[Note]) -> tuple[Ints, tuple[str, ...]]:
    names = machines["machine"].to_list()
    rack_of = [given.get(name) for name in names] if given else machines["rack"].to_list()
    unknown = sum(rack is None for rack in rack_of)
    if unknown == len(names):
        if names:
            notes.append(note("racks are unknown: all nodes are assumed to share one"))
        return np.zeros(len(names), np.int64), (ONE_RACK,)
    if unknown:
        notes.append(
            note(
                "the racks of {unknown:,} of {names:,} node{names||s} are unknown: each counts as a separate rack",
                unknown=unknown,
                names=len(names),
            )
        )
    rack_of = [UNKNOWN_RACK.format(name) if rack is None else rack for name, rack in zip(names, rack_of, strict=True)]
    return codes(pl.Series(rack_of), pl.Series(rack_of))


def _quotas(
    trace: Rows, workload: Workload, given: Mapping[str, float], *, infer: bool, notes: list[Note]
) -> tuple[Floats, str]:
    """GPUs of each queue's quota, and their origin."""
    known = {**dict(trace.queues.drop_nulls("quota_gpus").iter_rows()), **given}
    quota = np.array([known.get(queue, math.inf) for queue in workload.queues], np.float64)
    check_queues(given, workload.queues)
    strangers = sorted(set(given) - set(workload.queues))
    if strangers:
        notes.append(
            note("quotas of queues that no job is in: {strangers}", strangers=listed("queue", strangers, SHOWN))
        )
    if np.isfinite(quota).any():
        without = int(np.isinf(quota).sum())
        if without:
            notes.append(
                note(
                    "{without:,} of {size:,} queue{size||s} {without|has|have} no quota",
                    without=without,
                    size=quota.size,
                )
            )
        return quota, "configured"
    undated = pl.col("start_c").is_null() & pl.col("run_s").is_not_null()
    if not infer or not trace.attempts.height or trace.attempts.select(undated.any()).item():
        # if starts are unknown, so are concurrent holdings of queues
        return quota, "none"
    held = holdings(trace).join(trace.jobs.select("job", "queue"), on="job")
    most = dict(peak(held, "queue", "gpus").filter(pl.col("most") > 0).iter_rows())
    quota = np.array([most.get(queue, math.inf) for queue in workload.queues], np.float64)
    notes.append(
        note(
            "the quotas of {value:,} queue{value||s} are inferred: the most GPUs that each held at once; give them "
            "with "
            "--quotas",
            value=np.isfinite(quota).sum(),
        )
    )
    return quota, "inferred"


def _queue_nodes(
    trace: Rows, nodes: pl.DataFrame, workload: Workload, notes: list[Note]
) -> tuple[bool, tuple[Ints | None, ...]]:
    """The nodes of each queue that has its own, and whether any has."""
    pairs = trace.queue_machines
    if not pairs.height and trace.slurm:
        ran = trace.placements.join(trace.jobs.select("job", "queue"), on="job")
        pairs = ran.filter(pl.col("queue") != NO_QUEUE).select("queue", "machine").unique()
        if pairs.height:
            notes.append(
                note(
                    "the nodes of {value:,} queue{value||s} are inferred: those that their jobs ran on",
                    value=pairs["queue"].n_unique(),
                )
            )
    lists = pairs.join(nodes, on="machine").group_by("queue").agg(pl.col("node").sort())
    found = {queue: np.array(members, np.int64) for queue, members in lists.iter_rows()}
    return bool(found), tuple(found.get(queue) for queue in workload.queues)


def _down(trace: Rows, nodes: pl.DataFrame, origin_c: float, notes: list[Note]) -> Floats | None:
    events = trace.events.join(nodes, on="machine")
    down = np.stack(
        [
            events["node"].to_numpy().astype(np.float64),
            events["from_c"].to_numpy() - origin_c,
            events["to_c"].fill_null(math.inf).to_numpy() - origin_c,
        ],
        axis=1,
    )
    # outages that ended before the first submission affect no job
    down = merged(down[down[:, 2] > 0])
    if not len(down):
        return None
    states = listed("text", events["state"].unique().sort().head(SHOWN))
    ever = int(np.isinf(down[:, 2]).sum())
    more = note("; {ever:,} of them to the end of the log, assumed permanent", ever=ever) if ever else note("")
    notes.append(
        note(
            "nodes go down {down:,} time{down||s} according to the log ({states}){more}",
            down=len(down),
            states=states,
            more=more,
        )
    )
    return down
