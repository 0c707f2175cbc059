"""The jobs of a trace store for other tools: SWF, Philly, Gavel, Shockwave, Tiresias, Pollux, Batsim, CSV.

Each writer keeps what its format can represent. A job without a required field (a submission, a run time, a size of at
least one) is left out and counted; fractional sizes are rounded up and counted.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import literal, note
from gpuctl.core.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

UNITS = {"gpu": "gpus", "core": "cpus", "node": "nodes"}
"""Unit of a job's size, and its column."""
STEP_S = 300
"""Step of the load of services, in seconds."""
HEADROOM = 1.02
_PEAK = 0.99
_DONE = {State.COMPLETED: 1, State.KILLED: 5, State.UNKNOWN: -1, State.PENDING: -1, State.RUNNING: -1}
_PHILLY = {State.COMPLETED: "Pass", State.KILLED: "Killed"}
_OPEN = frozenset({State.PENDING, State.RUNNING, State.SUSPENDED})
_MODEL = "ResNet-18 (batch size 32)"

_APPLICATIONS = {
    "cifar10": (1, 256, 4096),
    "deepspeech2": (10, 40, 640),
    "yolov3": (100, 16, 512),
    "imagenet": (math.inf, 160, 12_800),
    "bert": (0, 24, 384),
    "ncf": (0, 256, 32_768),
}
"""Applications of Pollux's simulator: upper bounds in GPU-hours for jobs of unknown application (OSDI'21, section 5.1,
the classes small to extra large), the batch size per GPU of Sia's workloads, and the largest one of an application."""

_JOBS = """
    SELECT job, "user", queue, partition, account, name, gpus, cpus, nodes, mem_mb, time_limit_s, state, qos,
           CASE WHEN gpu_type_request IS DISTINCT FROM 'any' THEN gpu_type END AS gpu_type,
           epoch(submit_ts) AS submit_s, epoch(start_ts) AS start_s, epoch(deadline_ts) AS deadline_s, wait_s,
           CASE WHEN state = 'killed' AND start_ts IS NULL AND run_sum_s IS NULL
                THEN epoch(end_ts) - epoch(submit_ts) END AS gave_up_s,
           coalesce(run_sum_s, run_span_s, run_last_s) AS run_s,
           strftime(timezone($zone, submit_ts), '%Y-%m-%d %H:%M:%S') AS submitted
    FROM numbered_jobs WHERE cluster = $cluster ORDER BY submit_ts, number
"""
_ATTEMPTS = """
    SELECT job, attempt, strftime(timezone($zone, start_ts), '%Y-%m-%d %H:%M:%S') AS start_time,
           strftime(timezone($zone, end_ts), '%Y-%m-%d %H:%M:%S') AS end_time
    FROM attempts WHERE cluster = $cluster ORDER BY job, attempt
"""
_PLACES = """
    SELECT job, attempt, machine, sum(gpus) AS gpus, flatten(list(gpu_indices)) AS indices
    FROM placements WHERE cluster = $cluster GROUP BY ALL ORDER BY job, attempt, machine
"""
_FOLLOWS = """
    SELECT job, after_job, max(think_s) OVER (PARTITION BY job) AS think_s
    FROM job_dependencies WHERE cluster = $cluster ORDER BY job, after_job
"""
_LOAD = """
    SELECT floor(epoch(ts) / $step)::BIGINT AS bin, sum(requests) AS requests,
           sum(coalesce(prompt_tokens, 0) + coalesce(output_tokens, 0)) AS tokens
    FROM service_load WHERE cluster = $cluster GROUP BY bin ORDER BY bin
"""


@dataclass(frozen=True)
class Trace:
    """Jobs of one cluster.

    Attributes:
        name: of the cluster.
        jobs: one row per job, in order of submission; ``size`` is what `unit` counts.
        unit: a key of `UNITS`.
        follows: dependencies: the preceding job, ``after_job``, and the seconds after its end, ``think_s``.
        capacity: units that the nodes have; None unknown.
        zone: of the source's stamps.
        dated: whether times have dates.
    """

    name: str
    jobs: pl.DataFrame
    follows: pl.DataFrame
    unit: str
    capacity: int | None
    zone: str
    dated: bool


@dataclass(frozen=True)
class WrittenJobs:
    """The result of writing: rows, and notes for the user."""

    rows: int
    notes: tuple[Note, ...]


def read(store: Store, cluster: str | None, unit: str | None) -> Trace:
    """Read the jobs of a cluster.

    Args:
        store: an open store.
        cluster: which cluster; may be None if there is only one.
        unit: unit of sizes; None: GPUs, or CPUs or nodes if no job has any.

    Raises:
        UsageError: there is no such cluster, or several and none is named; no such unit.
    """
    name = store.cluster(cluster)
    if unit is not None and unit not in UNITS:
        raise UsageError(f"--swf-unit {unit!r}: expected one of {', '.join(UNITS)}")
    about = store.frame("SELECT timezone, epoch FROM clusters WHERE cluster = $c", {"c": name}).row(0, named=True)
    jobs = store.frame(_JOBS, {"cluster": name, "zone": about["timezone"]})
    unit = unit or next((u for u, c in UNITS.items() if (jobs[c].fill_null(0) > 0).any()), "gpu")
    stock = "SELECT sum(gpus) AS gpu, sum(cpus) AS core, count(*) AS node FROM machines WHERE cluster = $c"
    capacity = store.frame(stock, {"c": name})[unit].item()
    jobs = jobs.with_columns(size=pl.col(UNITS[unit]).cast(pl.Float64))
    follows = store.frame(_FOLLOWS, {"cluster": name})
    return Trace(
        name, jobs, follows, unit, int(capacity) if capacity else None, about["timezone"], about["epoch"] is None
    )


def _whole(trace: Trace, *, timed: bool = True) -> tuple[pl.DataFrame, list[Note]]:
    """Return the jobs with a submission, a size and, if `timed`, a run time; and notes on the others."""
    jobs = trace.jobs
    notes: list[Note] = []
    needs = {"no submission": pl.col("submit_s").is_null(), "no size": pl.col("size").is_null() | (pl.col("size") <= 0)}
    if timed:
        needs["no run time"] = pl.col("run_s").is_null() | (pl.col("run_s") <= 0)
    for why, lacks in needs.items():
        complete = jobs.filter(~lacks)
        notes += _left_out(jobs.height - complete.height, why)
        jobs = complete
    parts = jobs.filter(pl.col("size") != pl.col("size").ceil()).height
    if parts:
        notes.append(
            note(
                "{jobs:,} size{jobs||s} {jobs|is not a whole number and is|are not whole numbers and are} rounded up",
                jobs=parts,
            )
        )
    if trace.unit != "gpu":
        notes.append(note("sizes are {unit}s: no job has GPUs, or this unit was requested", unit=literal(trace.unit)))
    return jobs.with_columns(pl.col("size").ceil().cast(pl.Int64)), notes


def _left_out(jobs: int, why: str) -> list[Note]:
    return [note("{jobs:,} job{jobs||s} {jobs|is|are} left out: {why}", jobs=jobs, why=literal(why))] if jobs else []


def _numbers(column: pl.Series) -> tuple[pl.Series, dict[str, int]]:
    """Return numbers for names: the names if all are whole numbers, else 1, 2, 3 …; -1 for none."""
    plain = column.cast(pl.Int64, strict=False)
    names = column.drop_nulls().unique().sort()
    if plain.null_count() == column.null_count() and not (plain < 0).any():
        return plain.fill_null(-1), {}
    table = {name: k for k, name in enumerate(names, 1)}
    return column.replace_strict(table, default=-1, return_dtype=pl.Int64).fill_null(-1), table


def _seconds(values: pl.Expr | pl.Series) -> pl.Expr:
    """Return seconds as text: whole if possible, else with up to six decimals; -1 for none."""
    value = (values if isinstance(values, pl.Expr) else pl.lit(values)).fill_null(-1.0).round(6)
    whole = value == value.floor()
    return pl.when(whole).then(value.cast(pl.Int64).cast(pl.String)).otherwise(value.cast(pl.String))


def _follow(trace: Trace, jobs: pl.DataFrame) -> tuple[pl.DataFrame, list[Note]]:
    """Return dependencies among some jobs, in the order of the file; and notes on the rest."""
    edges = trace.follows.join(jobs.select("job"), on="job", how="semi")
    inside = edges.join(jobs.select(after_job="job"), on="after_job", how="semi", maintain_order="left")
    lost = edges.height - inside.height
    text = note("{n:,} {n|dependency|dependencies} on jobs that are left out {n|is|are} dropped", n=lost)
    return inside, [text] if lost else []


def swf(trace: Trace, file: BinaryIO) -> WrittenJobs:
    """Write SWF 2.2; a job without a start has no wait, except those that gave up. Names are in the header.

    Of several dependencies SWF can represent one: the last to end, if known.
    """
    jobs, notes = _whole(trace, timed=False)
    first = jobs["submit_s"].min() if jobs.height else 0.0
    start = int(first) if trace.dated and isinstance(first, float) else 0
    jobs_by_number, renamed = _numbers(jobs["job"])
    users, user_names = _numbers(jobs["user"])
    groups, _ = _numbers(jobs["account"])
    apps, _ = _numbers(jobs["name"])
    queues, queue_names = _numbers(jobs["queue"])
    partitions, partition_names = _numbers(jobs["partition"])
    follows, dropped = _follow(trace, jobs)
    ends = jobs.select(after_job="job", number=jobs_by_number, end_s=pl.col("start_s") + pl.col("run_s"))
    last = follows.join(ends, on="after_job").sort("end_s", "number", nulls_last=False).unique("job", keep="last")
    if last.height < follows.height:
        dropped.append(
            note(
                "{n:,} {n|dependency|dependencies} {n|is|are} dropped: a job of SWF follows one other at most",
                n=follows.height - last.height,
            )
        )
    before = jobs.select("job").join(last, on="job", how="left", maintain_order="left")
    notes += dropped
    states = {state.value: number for state, number in _DONE.items()}
    cell, memory = pl.lit("-1"), (pl.col("mem_mb") * 1024 / pl.col("size")).round().cast(pl.Int64)
    rows = jobs.select(
        jobs_by_number.cast(pl.String).alias("job"), _seconds(pl.col("submit_s") - start).alias("submit"),
        _seconds(pl.coalesce("wait_s", "gave_up_s")).alias("wait"), _seconds(pl.col("run_s")).alias("run"),
        pl.col("size").cast(pl.String).alias("procs"), cell.alias("cpu"), cell.alias("memory"),
        pl.col("size").cast(pl.String).alias("asked"), _seconds(pl.col("time_limit_s").cast(pl.Float64)).alias("limit"),
        memory.fill_null(-1).cast(pl.String).alias("asked_memory"),
        pl.col("state").replace_strict(states, default=0, return_dtype=pl.Int64).cast(pl.String).alias("status"),
        users.cast(pl.String).alias("user"), groups.cast(pl.String).alias("group"), apps.cast(pl.String).alias("app"),
        queues.cast(pl.String).alias("queue"), partitions.cast(pl.String).alias("partition"),
        before["number"].fill_null(-1).cast(pl.String).alias("preceding"),
        _seconds(before["think_s"]).alias("think"),
    )  # fmt: skip
    header = [("Version", "2.2"), ("Computer", trace.name), ("Conversion", "gpuctl convert"), ("MaxJobs", jobs.height),
            ("MaxRecords", jobs.height)]  # fmt: skip
    header += [("UnixStartTime", start), ("TimeZoneString", trace.zone)] if trace.dated else []
    header += [("MaxProcs", trace.capacity)] if trace.capacity else []
    header += [("Note", f"processors are {trace.unit}s")]
    for key, names in (("Queue", queue_names), ("Partition", partition_names)):
        header += [(key, f"{number} {_line(name)}") for name, number in names.items()]
    head = "".join(f"; {key}: {_line(str(value))}\n" for key, value in header)
    file.write(head.encode())
    rows.write_csv(file, include_header=False, separator=" ")
    if renamed or user_names:
        notes.append(
            literal("SWF has numbers for names: jobs, users or groups are numbered in the order of their names")
        )
    return WrittenJobs(jobs.height, tuple(notes))


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _csv(frame: pl.DataFrame, file: BinaryIO, notes: list[Note]) -> WrittenJobs:
    frame.write_csv(file)
    return WrittenJobs(frame.height, tuple(notes))


def jobs_csv(trace: Trace, file: BinaryIO) -> WrittenJobs:
    """Write the CSV that ``gpuctl replay`` reads; seconds since 1970, or since the trace's own start."""
    jobs, notes = _whole(trace)
    more = {
        "vc": "queue", "user": "user", "account": "account", "gpu_type": "gpu_type", "qos": "qos",
        "requested_time": "time_limit_s", "deadline": "deadline_s",
    }  # fmt: skip
    there = [pl.col(c).alias(n) for n, c in more.items() if jobs[c].null_count() < jobs.height]
    limit_s = pl.col("time_limit_s").cast(pl.Float64)
    frame = jobs.with_columns(time_limit_s=pl.when(limit_s > 0).then(limit_s)).select(
        pl.col("job").alias("job_id"), pl.col("submit_s").alias("submit_time"), pl.col("run_s").alias("duration"),
        pl.col("size").alias("num_gpus"), *there,
    )  # fmt: skip
    follows, dropped = _follow(trace, jobs)
    if follows.height:
        joined = follows.group_by("job").agg(
            depends_on=pl.col("after_job").str.join(";"), think_time=pl.col("think_s").first()
        )
        frame = frame.join(joined, left_on="job_id", right_on="job", how="left", maintain_order="left")
    return _csv(frame, file, [*notes, *dropped])


def philly_csv(trace: Trace, file: BinaryIO) -> WrittenJobs:
    """Write the job table that simulators derive from the Philly trace."""
    jobs, notes = _whole(trace)
    frame = jobs.select(
        pl.col("submitted").alias("timestamp"), pl.col("run_s").alias("duration"), pl.col("size").alias("num_gpus"),
        (pl.col("run_s") * pl.col("size")).alias("gpu_time"), pl.col("queue").alias("cluster"),
    )  # fmt: skip
    return _csv(frame, file, [*notes, *_undated(trace)])


def _undated(trace: Trace) -> list[Note]:
    return [] if trace.dated else [literal("the trace has no dates: its start is written as 1970-01-01")]


def tiresias(trace: Trace, file: BinaryIO) -> WrittenJobs:
    """Write Tiresias's ``*_job.csv``; seconds since the first submission, one iteration per second, whole numbers."""
    jobs, notes = _whole(trace)
    since = (pl.col("submit_s") - pl.col("submit_s").min()).round().cast(pl.Int64)
    run = pl.col("run_s").round().cast(pl.Int64).clip(1)
    frame = jobs.select(
        pl.int_range(pl.len()).alias("job_id"), pl.col("size").alias("num_gpu"), since.alias("submit_time"),
        run.alias("iterations"), pl.col("name").fill_null("unknown").alias("model_name"), run.alias("duration"),
    )  # fmt: skip
    gap = pl.col("submit_time").shift(-1) - pl.col("submit_time")
    made = literal("jobs are numbered; an iteration is a second")
    return _csv(frame.with_columns(interval=gap.fill_null(0)), file, [*notes, made])


def gavel(trace: Trace, file: BinaryIO, *, timed: bool = False) -> WrittenJobs:
    """Write Gavel's ten cells per job, or Shockwave's twelve if `timed`: a step is a second of work."""
    jobs, notes = _whole(trace)
    first = jobs["submit_s"].min() if jobs.height else 0.0
    lines = []
    for name, size, run, submit in jobs.select("name", "size", "run_s", "submit_s").iter_rows():
        model = name if name and "(batch size " in name and "\t" not in name else _MODEL
        cells = [model, "python3 main.py --batch_size 32", "image_classification/cifar10", "--num_steps", "0",
                 str(max(1, round(run))), str(size)]  # fmt: skip
        arrival = f"{submit - first:.6f}"
        cells += (
            ["static", "1", "-1.000000", str(max(1, round(run))), arrival] if timed else ["1", "-1.000000", arrival]
        )
        lines.append("\t".join(cells) + "\n")
    file.write("".join(lines).encode())
    made = note("a step is a second of work; jobs of no known model are {model}", model=literal(_MODEL))
    return WrittenJobs(jobs.height, (*notes, made))


def shockwave(trace: Trace, file: BinaryIO) -> WrittenJobs:
    """Write Shockwave's twelve cells per job."""
    return gavel(trace, file, timed=True)


def pollux(trace: Trace, file: BinaryIO) -> WrittenJobs:
    """Write the workload that the simulators of Pollux and Sia read; seconds since the first submission.

    They compute run times from models of six applications. A job with another name gets the class of its GPU-hours in
    Pollux's paper, so that its run time has a similar order, not the same value.
    """
    jobs, notes = _whole(trace)
    first = jobs["submit_s"].min() if jobs.height else 0.0
    made, guessed = [], 0
    for index, (name, size, run, submit) in enumerate(jobs.select("name", "size", "run_s", "submit_s").iter_rows()):
        known = name in _APPLICATIONS
        guessed += not known
        application = name if known else _application(size * run / 3600)
        _, batch, most = _APPLICATIONS[application]
        made.append((f"{application}-{index}", submit - first, application, size, min(batch * size, most)))
    if guessed:
        notes.append(note("the applications of {jobs:,} job{jobs||s} are chosen by their GPU-hours", jobs=guessed))
    columns = {"name": pl.String, "time": pl.Float64, "application": pl.String, "num_replicas": pl.Int64,
               "batch_size": pl.Int64}  # fmt: skip
    lost_times = literal("run times are lost: the simulators compute them from models of the applications")
    return _csv(pl.DataFrame(made, columns, orient="row"), file, [*notes, lost_times])


def _application(gpu_hours: float) -> str:
    return next(name for name, (below, _, _) in _APPLICATIONS.items() if gpu_hours < below)


def batsim(trace: Trace, file: BinaryIO) -> WrittenJobs:
    """Write a workload of Batsim: one delay profile per run time; seconds since the first submission."""
    jobs, notes = _whole(trace)
    first = jobs["submit_s"].min() if jobs.height else 0.0
    made: list[dict[str, Any]] = []
    profiles: dict[str, dict[str, Any]] = {}
    for name, size, run, submit, limit in jobs.select("job", "size", "run_s", "submit_s", "time_limit_s").iter_rows():
        profile = f"delay_{run:.6f}".rstrip("0").rstrip(".")
        profiles[profile] = {"type": "DelayProfile", "delay": run}
        job = {"id": name, "subtime": round(submit - first, 6), "res": size, "profile": profile}
        made.append(job | ({"walltime": limit} if limit and limit > 0 else {}))
    most = max((job["res"] for job in made), default=1)
    about = {"nb_res": max(trace.capacity or 0, most), "jobs": made, "profiles": profiles}
    file.write(json.dumps(about, indent=1).encode() + b"\n")
    if trace.capacity is None:
        notes.append(literal("no nodes are known: nb_res is the size of the largest job"))
    return WrittenJobs(len(made), tuple(notes))


def philly(trace: Trace, file: BinaryIO, store: Store) -> WrittenJobs:
    """Write Philly's ``cluster_job_log``: attempts and the GPUs of each on nodes; times on the trace's own clock.

    Jobs that have not ended, or without a recorded end or attempt, are left out: the format cannot represent them. A
    job without a recorded node is written on a node ``untold``: the format has sizes nowhere else.
    """
    jobs, notes = _whole(trace, timed=False)
    here: Mapping[str, object] = {"cluster": trace.name}
    tries: dict[str, list[dict[str, Any]]] = {}
    for row in store.frame(_ATTEMPTS, {**here, "zone": trace.zone}).iter_rows(named=True):
        tries.setdefault(row["job"], []).append(row)
    places: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in store.frame(_PLACES, dict(here)).iter_rows(named=True):
        if row["gpus"] > 0:
            places.setdefault((row["job"], row["attempt"]), []).append(_place(row))
    endless = {"not ended": _OPEN, "outcome unknown": {State.UNKNOWN}}
    for why, states in endless.items():
        lacks = jobs["state"].is_in([state.value for state in states])
        notes += _left_out(int(lacks.sum()), why)
        jobs = jobs.filter(~lacks)
    lacks = ~jobs["job"].is_in(list(tries))
    notes += _left_out(int(lacks.sum()), "no attempt")
    jobs = jobs.filter(~lacks)
    written, unplaced = [], 0
    for row in jobs.iter_rows(named=True):
        attempts = []
        for one in tries[row["job"]]:
            detail = places.get((row["job"], one["attempt"]))
            unplaced += detail is None
            detail = detail or [{"ip": "untold", "gpus": [f"gpu{k}" for k in range(row["size"])]}]
            attempts.append({"start_time": one["start_time"], "end_time": one["end_time"], "detail": detail})
        status = _PHILLY.get(State(row["state"]), "Failed")
        written.append({
            "status": status, "vc": row["queue"] or "", "jobid": row["job"], "attempts": attempts,
            "submitted_time": row["submitted"], "user": row["user"] or "",
        })  # fmt: skip
    file.write(b"[" + b",\n".join(json.dumps(one).encode() for one in written) + b"]\n")
    if unplaced:
        notes.append(
            note("{n:,} attempt{n||s} {n|is|are} on a machine `unplaced`: the trace does not say where", n=unplaced)
        )
    return WrittenJobs(len(written), (*notes, *_undated(trace)))


def _place(row: Mapping[str, Any]) -> dict[str, Any]:
    count = -int(-row["gpus"] // 1)
    indices = row["indices"] if row["indices"] and len(row["indices"]) == count else range(count)
    return {"ip": row["machine"], "gpus": [f"gpu{k}" for k in indices]}


def inference_load(store: Store, cluster: str | None, nodes: int, file: BinaryIO) -> WrittenJobs:
    """Write the CSV of ``--inference-load``: nodes left free by the load of services, over time.

    Load is tokens in and out (requests, if no tokens are recorded) per 5 minutes; its 99th percentile takes all nodes.

    Raises:
        InputError: the store has no load of services.
    """
    name = store.cluster(cluster)
    rows = store.frame(_LOAD, {"cluster": name, "step": STEP_S})
    if rows.is_empty():
        raise InputError(f"cluster {name} has no requests to services", hint="see gpuctl formats: service_load")
    load = rows["tokens" if rows["tokens"].sum() else "requests"].cast(pl.Float64)
    first, last = int(rows["bin"][0]), int(rows["bin"][-1])
    whole = pl.DataFrame({"bin": range(first, last + 1)}).join(
        rows.select("bin", load.alias("load")), on="bin", how="left"
    ).fill_null(0.0)  # fmt: skip
    peak = whole["load"].quantile(_PEAK, "linear") or whole["load"].max()
    needed = (whole["load"] / float(peak) * nodes * HEADROOM).ceil().clip(0, nodes).cast(pl.Int64)  # type: ignore[arg-type]
    free = pl.DataFrame({"time_s": (whole["bin"].cast(pl.Int64) - first) * STEP_S, "nodes_free": nodes - needed})
    free = free.filter((free["nodes_free"] != free["nodes_free"].shift(1)).fill_null(value=True))
    told = note(
        "the busiest hundredth of 5-minute spans takes all {nodes:,} node{nodes||s}, with 2 % kept for "
        "headroom; the trace "
        "lasts {hours:.1f} h",
        nodes=nodes,
        hours=(last + 1 - first) * STEP_S / 3600,
    )
    return _csv(free, file, [told])


WRITERS: Mapping[str, Callable[[Trace, BinaryIO], WrittenJobs]] = {
    "swf": swf,
    "gavel": gavel,
    "shockwave": shockwave,
    "batsim": batsim,
    "tiresias": tiresias,
    "pollux": pollux,
    "sia": pollux,
    "philly-csv": philly_csv,
    "jobs-csv": jobs_csv,
}
FORMATS = (*WRITERS, "philly", "inference-load")


def convert(
    store: Store, cluster: str | None, to: str, file: BinaryIO, *, unit: str | None = None, nodes: int | None = None
) -> WrittenJobs:
    """Write the jobs of a cluster, or the load of its services.

    Args:
        store: an open store.
        cluster: which cluster; may be None if there is only one.
        to: one of `FORMATS`.
        file: takes the text.
        unit: unit of sizes, see `read`.
        nodes: of the inference cluster, for ``inference-load``.

    Raises:
        UsageError: no such format, cluster or unit; nodes are missing, or not applicable.
        InputError: nothing can be written.
    """
    if to == "inference-load":
        if not nodes:
            raise UsageError("--to inference-load needs the nodes of the inference cluster", hint="--nodes 9")
        return inference_load(store, cluster, nodes, file)
    if to not in FORMATS:
        raise UsageError(f"--to {to[:40]!r}: no such format", hint=f"formats are {', '.join(FORMATS)}")
    if nodes is not None:
        raise UsageError("--nodes is for --to inference-load", hint="leave it out")
    trace = read(store, cluster, unit)
    done = philly(trace, file, store) if to == "philly" else WRITERS[to](trace, file)
    if not done.rows:
        raise InputError(
            "; ".join([f"no job of cluster {trace.name} can be written as {to}", *map(str, done.notes)]),
            hint="nothing was written: choose another format with --to, or a trace that states what is missing",
        )
    return done
