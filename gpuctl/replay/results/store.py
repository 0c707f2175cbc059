"""Writes outcomes as a trace store, so that all analyses of traces work on replays.

Each policy is its own cluster, ``WORKLOAD@POLICY``. Its clock is UTC: seconds of the replay are counted from the
workload's origin, or from 1970 if the workload has no calendar. An attempt of the store is one allocation of a gang;
one that the policy ended is ``preempted``. A shared GPU counts in equal parts for its jobs: their attempts and
placements have fractions of GPUs, means over the attempt's time, whose GPU-seconds are exact.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import StoreError, UsageError
from gpuctl.core.states import State
from gpuctl.replay.results.timelines import shared_gpus
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster, Ints, Outcome, Workload

FORMAT = "replay"
"""``sources.format`` and ``clusters.source_format`` of what a replay wrote."""

WRITER_VERSION = 1

NO_CALENDAR = datetime(1970, 1, 1, tzinfo=UTC)
"""Second 0 of workloads without a calendar."""

_ENDS = {
    "running": State.RUNNING,
    "failed": State.FAILED,
    "preempted": State.PREEMPTED,
    "machine_down": State.NODE_FAIL,
    "migrated": State.PREEMPTED,
    "resized": State.PREEMPTED,
    "lease": State.PREEMPTED,
    "reclaimed": State.PREEMPTED,
    "time_limit": State.TIMEOUT,
}
"""How an attempt ended; a finished one has the state of its job."""

_JOB_STATES = {
    "cut": State.TIMEOUT,
    "running": State.RUNNING,
    "waiting": State.PENDING,
    "held": State.PENDING,
    "unplaceable": State.PENDING,
    "rejected": State.KILLED,
}
_LIVE = {State.PENDING, State.RUNNING, State.SUSPENDED, ""}
"""States of jobs in a trace that do not record how a job ended."""


def write_decisions(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the decision log of each outcome to ``<policy>.jsonl`` in a folder, which is created if missing.

    Raises:
        UsageError: it cannot be written; existing files are kept.
    """
    for outcome in outcomes:
        name = re.sub(r"[^\w.-]", "_", outcome.policy)
        draft = folder / f".{name}.{os.getpid()}.tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.writelines(outcome.log.json_lines())
            draft.replace(folder / f"{name}.jsonl")
        except OSError as error:
            why = error.strerror or error
            raise UsageError(f"--decisions {folder}: cannot be written: {why}", hint="name another place") from error
        finally:
            draft.unlink(missing_ok=True)


def write_store(path: Path, outcomes: Sequence[Outcome], workload: Workload, cluster: Cluster) -> tuple[str, ...]:
    """Write outcomes into their own trace store, atomically.

    Args:
        path: the file. One that an earlier replay wrote is replaced.
        outcomes: of one workload on one cluster.
        workload: what was replayed.
        cluster: what it was replayed on.

    Returns:
        The names of the clusters in the store, one per outcome.

    Raises:
        StoreError: there is a file not only from replays; it is kept.
    """
    refuse(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    names = _names(outcomes, workload)
    try:
        with Store(draft, write=True) as store:
            for number, (name, outcome) in enumerate(zip(names, outcomes, strict=True), 1):
                _write(store, _Part(name, number, outcome, workload, outcome.used(cluster)))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
        draft.with_name(draft.name + ".wal").unlink(missing_ok=True)
    return names


def refuse(path: Path) -> None:
    """Check that a replay may be written to a file: it does not exist, or contains only replays.

    Raises:
        StoreError: something else is in it, or another process has it open.
    """
    if not path.exists():
        return
    try:
        with Store(path) as store:
            formats = store.frame("SELECT DISTINCT format FROM sources ORDER BY format")["format"].to_list()
    except StoreError as error:
        raise StoreError(f"{error.message}; it is not replaced", hint=f"name another file: {path} exists") from error
    if formats != [FORMAT]:
        what = f"holds what was read from logs ({', '.join(formats)})" if formats else "is a trace store without rows"
        raise StoreError(
            f"{path}: {what}; only a store that a replay wrote is replaced", hint="name another file with --store"
        )


def _names(outcomes: Sequence[Outcome], workload: Workload) -> tuple[str, ...]:
    names: list[str] = []
    for outcome in outcomes:
        name = f"{workload.name}@{outcome.policy}"
        copies = sum(n == name or n.startswith(f"{name}#") for n in names)
        names.append(f"{name}#{copies + 1}" if copies else name)
    return tuple(names)


@dataclass(frozen=True)
class _Part:
    """One outcome on its way into the store."""

    name: str
    source: int
    outcome: Outcome
    workload: Workload
    cluster: Cluster

    def ts(self, second: str) -> pl.Expr:
        """The instant of a column's second."""
        origin = (self.workload.origin or NO_CALENDAR).astimezone(UTC)
        return pl.lit(origin, pl.Datetime("us", "UTC")) + pl.duration(microseconds=(pl.col(second) * 1e6).round())

    def common(self) -> tuple[pl.Expr, pl.Expr]:
        """The columns that every row has."""
        return pl.lit(self.name).alias("cluster"), pl.lit(self.source).alias("source")


def _write(store: Store, part: _Part) -> None:
    jobs, attempts = _jobs(part), _attempts(part)
    origin = part.workload.origin
    zone = "UTC" if origin is None else str(origin.tzinfo or "UTC")
    times = [jobs["submit_ts"], jobs["start_ts"], jobs["end_ts"], attempts["end_ts"]]
    known = pl.concat([column.rename("ts") for column in times]).drop_nulls()
    about = {"cluster": part.name, "source_format": FORMAT, "timezone": zone, "clock": "utc"}
    span = {"first_ts": known.min(), "last_ts": known.max()}
    _insert(store, "clusters", pl.DataFrame({**about, **span}))
    _insert(store, "machines", _machines(part))
    _insert(store, "queues", _queues(part))
    _insert(store, "queue_machines", _queue_machines(part))
    _insert(store, "machine_events", _machine_events(part))
    _insert(store, "job_rows", jobs)
    _insert(store, "attempt_rows", attempts)
    _insert(store, "placements", _placements(part))
    digest, length = hashlib.sha256(), 0
    for lines in part.outcome.log.json_lines():
        digest.update(lines)
        length += len(lines)
    store.execute(
        "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, now(), 0)",
        [
            part.source,
            part.name,
            f"{part.outcome.policy}.jsonl",
            FORMAT,
            digest.hexdigest(),
            length,
            jobs.height,
            jobs.height,
            WRITER_VERSION,
        ],
    )


def _insert(store: Store, table: str, rows: pl.DataFrame) -> None:
    store.view("replay_rows", rows)
    # table is a literal of this module
    store.execute(f"INSERT INTO {table} BY NAME SELECT * FROM replay_rows")  # noqa: S608
    store.drop_view("replay_rows")


def _final(part: _Part) -> list[str]:
    """The state of each job; of finished ones that of the trace, if it records how they ended."""
    w = part.workload
    fails = w.segment_fails[np.maximum(w.segment_start[1:] - 1, 0)]
    states = []
    for job, word in enumerate(part.outcome.jobs["state"].to_list()):
        if word != "finished":
            states.append(_JOB_STATES[word])
        elif w.state[job] not in _LIVE:
            states.append(State(w.state[job]))
        else:
            states.append(State.FAILED if fails[job] else State.COMPLETED)
    return [state.value for state in states]


def _jobs(part: _Part) -> pl.DataFrame:
    c, w = pl.col, part.workload
    attempts = part.outcome.attempts.with_columns(seconds=c("end_s").fill_null(part.outcome.end_s) - c("start_s"))
    runs = attempts.group_by("job").agg(
        tries=pl.len(),
        run_sum_s=c("seconds").sort_by("attempt").sum(),
        run_last_s=c("seconds").sort_by("attempt").last(),
    )
    kinds = np.array([*w.gpu_types, None], object)
    rows = part.outcome.jobs.with_row_index("number").with_columns(
        c("number").cast(pl.Int32), c("nodes").replace(0, None), source_state=c("state"),
        state=pl.Series(_final(part), dtype=pl.String),
        gpu_type=pl.Series(kinds[w.gpu_type].tolist(), dtype=pl.String),
        time_limit_s=pl.Series(w.time_limit).fill_nan(None).round().cast(pl.Int64),
        account=_named(w.account, w.accounts, w.size), qos=_named(w.qos, w.qos_names, w.size),
    )  # fmt: skip
    return rows.join(runs, left_on="number", right_on="job", how="left", maintain_order="left").select(
        *part.common(), "job", "queue", "state", "source_state", "gpu_type", "time_limit_s", "account", "qos",
        "run_sum_s", "run_last_s", user=pl.when(c("user") != "").then("user"), gpus=c("gpus").cast(pl.Float64),
        nodes=c("nodes").cast(pl.Int32), attempts=c("tries").fill_null(0).cast(pl.Int32),
        submit_ts=part.ts("submit_s"), eligible_ts=part.ts("eligible_s"), start_ts=part.ts("start_s"),
        end_ts=part.ts("end_s"), wait_s=c("start_s") - c("submit_s"), run_span_s=c("end_s") - c("start_s"),
        quirks=pl.lit([], pl.List(pl.String)),
    )  # fmt: skip


def _named(numbers: Ints | None, names: tuple[str, ...], size: int) -> pl.Series:
    """Names for numbers, null for -1 or if there are no numbers."""
    if numbers is None:
        return pl.Series([None] * size, dtype=pl.String)
    return pl.Series(np.array([*names, None], object)[numbers].tolist(), dtype=pl.String)


def _attempts(part: _Part) -> pl.DataFrame:
    c = pl.col
    jobs = part.outcome.jobs.select("submit_s", "eligible_s", id="job", final=pl.Series(_final(part), dtype=pl.String))
    jobs = jobs.with_row_index("job").with_columns(c("job").cast(pl.Int32))
    nodes = part.outcome.pieces.group_by("row").agg(servers=c("node").n_unique().cast(pl.Int32))
    rows = (
        part.outcome.attempts.with_row_index("row")
        .with_columns(c("row").cast(pl.Int32), c("end").cast(pl.String), gpus=pl.Series(shared_gpus(part.outcome)[0]))
        .join(jobs, on="job", maintain_order="left")
        .join(nodes, on="row", how="left", maintain_order="left")
        .sort("job", "attempt")
    )
    first = c("attempt") == 0
    # a later attempt is queued when the previous one released its GPUs
    rows = rows.with_columns(queued_s=pl.when(first).then("submit_s").otherwise(c("end_s").shift(1)))
    return rows.select(
        *part.common(), "servers", job="id", attempt=c("attempt").cast(pl.Int32), gpus=c("gpus").cast(pl.Float64),
        state=pl.when(c("end") == "finished").then("final").otherwise(c("end").replace(_ENDS)), source_state="end",
        queued_ts=part.ts("queued_s"), start_ts=part.ts("start_s"), end_ts=part.ts("end_s"),
        released_ts=part.ts("end_s"), wait_s=c("start_s") - c("queued_s"), run_s=c("end_s") - c("start_s"),
        eligible_ts=pl.when(first & (c("eligible_s") > c("submit_s"))).then(part.ts("eligible_s")),
        quirks=pl.lit([], pl.List(pl.String)),
    )  # fmt: skip


def _placements(part: _Part) -> pl.DataFrame:
    c = pl.col
    ids = part.outcome.jobs.select(id="job").with_row_index("job").with_columns(c("job").cast(pl.Int32))
    rows = part.outcome.attempts.select("job", "attempt").with_row_index("row").with_columns(c("row").cast(pl.Int32))
    pieces = part.outcome.pieces.with_columns(gpus=pl.Series(shared_gpus(part.outcome)[1]))
    pieces = pieces.join(rows, on="row", maintain_order="left").join(ids, on="job", maintain_order="left")
    machine = pl.Series(part.cluster.nodes, dtype=pl.String).gather(pieces["node"])
    return pieces.with_columns(machine.alias("machine")).select(
        *part.common(), "machine", job="id", attempt=c("attempt").cast(pl.Int32), gpus=c("gpus").cast(pl.Float64)
    )


def _machines(part: _Part) -> pl.DataFrame:
    cluster = part.cluster
    kinds = np.array([*(cluster.gpu_types or part.workload.gpu_types), None], object)
    return pl.DataFrame(
        {
            "machine": pl.Series(cluster.nodes, dtype=pl.String),
            "rack": pl.Series([cluster.racks[rack] for rack in cluster.rack.tolist()], dtype=pl.String),
            "gpus_labelled": pl.Series(cluster.gpus).cast(pl.Int32),
            "gpu_type": pl.Series(kinds[cluster.gpu_type].tolist(), dtype=pl.String),
        }
    ).with_columns(part.common()[0])


def _queues(part: _Part) -> pl.DataFrame:
    # inf means that a queue is unbounded; without a number the analyses would infer one
    quota = part.cluster.quota
    source = "configured" if part.cluster.quota_source == "none" else part.cluster.quota_source
    bound = part.outcome.kind == "philly" or part.outcome.params.get("borrow") is False
    return pl.DataFrame(
        {
            "queue": pl.Series(part.workload.queues, dtype=pl.String),
            "quota_gpus": quota,
            "limit_gpus": quota if bound else np.full(len(quota), np.inf),
        }
    ).with_columns(part.common()[0], pl.lit(source).alias("quota_source"))


def _queue_machines(part: _Part) -> pl.DataFrame:
    names = np.array(part.cluster.nodes, object)
    pairs = [
        (queue, machine)
        for queue, own in zip(part.workload.queues, part.cluster.queue_nodes, strict=False)
        if own is not None
        for machine in names[own].tolist()
    ]
    rows = pl.DataFrame(pairs, schema={"queue": pl.String, "machine": pl.String}, orient="row")
    return rows.with_columns(part.common()[0])


def _machine_events(part: _Part) -> pl.DataFrame:
    down = np.zeros((0, 3)) if part.cluster.down is None else part.cluster.down
    rows = pl.DataFrame(
        {
            "machine": pl.Series([part.cluster.nodes[k] for k in down[:, 0].astype(int).tolist()], dtype=pl.String),
            "from_s": down[:, 1],
            "to_s": np.where(np.isinf(down[:, 2]), np.nan, down[:, 2]),
        }
    ).with_columns(pl.col("to_s").fill_nan(None))
    return rows.select(
        *part.common(), "machine", from_ts=part.ts("from_s"), to_ts=part.ts("to_s"), state=pl.lit("down")
    )
