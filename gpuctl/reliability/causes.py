"""Why each attempt ended, and whose doing it was.

Precedence: what the scheduler's state tells, then a log that only a user can cause, then the earliest node event or Xid
near the end, then a log's reason that names hardware or software, then what ended other jobs at the same time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuctl.reliability import xids
from gpuctl.reliability.intervals import first_within, keys, on_rows

HARD, SOFT, INFRA = "infrastructure_hardware", "infrastructure_software", "infrastructure"
INFRASTRUCTURE = (HARD, SOFT, INFRA)
USER, LIMIT, PREEMPTED, UNKNOWN, CANCEL, DONE = (
    "user_program", "time_limit", "preempted", "unknown", "user_cancel", "completed",
)  # fmt: skip
RUNNING = "running"
HARD_REASONS = {
    "gpu_ecc_error": "memory",
    "gpu_hardware_error": "GPU",
    "nvlink_error": "NVLink",
    "node_failure": "node",
}
SOFT_REASONS = {
    "storage_error": "file system of a node",
    "launch_failed": "launcher",
    "driver": "driver",
    "registry": "image registry",
}
"""Reasons of a log that name infrastructure, and its component; driver and registry: see `reason_of_line`."""
_DRIVER = re.compile(r"driver|nvml|nvidia-smi", re.IGNORECASE)
_REGISTRY = re.compile(
    r"toomanyrequests|rate limit|i/o timeout|tls handshake|connection re(?:fused|set)|no such host|\b50[0-4]\b",
    re.IGNORECASE,
)
SYMPTOMS = frozenset({
    "collective_timeout", "nccl_error", "peer_failed", "cuda_failure", "cuda_init_failed", "network_error", "mpi_error",
    "mpi_runtime_failure", "process_killed", "container_image_error", "disk_full", "traceback", "job_preempted",
    "cancelled", "time_limit", "resource_limit",
})  # fmt: skip
"""Reasons of a log that tell nothing of who caused it."""
LIMIT_S = 60.0
"""A requeued attempt that ended within so many seconds of its limit, or past it, met it."""
TOGETHER_S, TOGETHER_JOBS, TOGETHER_USERS = 120.0, 3, 2
FULL_S, FULL_USERS = 3600.0, 3
"""A disk that is full for so many users within so many seconds is none that one of them filled."""
APPLICATION_S = (60.0, 5.0)
"""An application's Xid counts from so long before an attempt's end until so long after it."""


COUNTERS = {"ecc_dbe": "memory", "lost": "GPU"}
"""Faults in telemetry that count like XIDs of class hardware, and their component: double-bit errors (XID 48), a GPU
whose samples end while those of the node's other GPUs go on (XID 79). Counters of what hardware corrects are none."""


def reason_of_line(reason: str, line: str) -> str:
    """What a log's reason tells of infrastructure, given the line that it stands on.

    A missing GPU is the driver's doing where the line names the driver; an image that cannot be had is the registry's
    where that did not answer.
    """
    if reason == "cuda_init_failed" and _DRIVER.search(line):
        return "driver"
    if reason == "container_image_error" and _REGISTRY.search(line):
        return "registry"
    return reason


@dataclass(frozen=True)
class Evidence:
    """What tells of causes; times in seconds since the begin of the window.

    Attributes:
        attempts: one row an attempt, in the order of `row`: see ``queries/base/reliability_attempts.sql``; ``reason``
            and ``user_reason`` (whether a user can cause it) of its log.
        places: ``row``, ``node``, ``gpus``.
        outages: as `gpuctl.reliability.outages.find` returns them.
        xids: as `gpuctl.reliability.xids.events` returns them.
        counters: faults that telemetry shows: ``node``, ``ts_s``, ``signal`` (a key of `COUNTERS`).
        window: seconds before and after an attempt's end in which an event or Xid counts.
    """

    attempts: pl.DataFrame
    places: pl.DataFrame
    outages: pl.DataFrame
    xids: pl.DataFrame
    counters: pl.DataFrame
    window: tuple[float, float] = (900.0, 300.0)


def classify(given: Evidence) -> pl.DataFrame:
    """Find the cause of every attempt.

    Returns:
        In the order of the attempts: ``cause``, ``component``, ``evidence``, ``anchor`` (node to which the evidence
        points, null for none), ``anchor_s`` (its time).
    """
    a = given.attempts
    state = pl.col("state")
    requeued = pl.col("source_state").str.starts_with("REQUEUED").fill_null(False)
    elapsed = pl.col("end_s") - pl.col("start_s")
    met_limit = requeued & (elapsed >= pl.col("time_limit_s") - LIMIT_S).fill_null(False)
    by_state = (
        pl.when(~pl.col("over")).then(pl.lit(RUNNING))
        .when(state == "completed").then(pl.lit(DONE))
        .when(state == "preempted").then(pl.lit(PREEMPTED))
        .when((state == "timeout") | met_limit).then(pl.lit(LIMIT))
        .when(state == "node_fail").then(pl.lit(INFRA))
        .when((state == "killed") & ~requeued).then(pl.lit(CANCEL))
        .otherwise(pl.lit(UNKNOWN))
    )  # fmt: skip
    by_root = (pl.col("source_state") == "CANCELLED by 0").fill_null(False)
    states = a.select(cause=by_state, by_root=by_root)
    looked = a.select(_ASKED).hstack(states).filter(pl.col("cause").is_in([UNKNOWN, INFRA]) | pl.col("by_root"))
    found = _by_evidence(given, looked)
    known = on_rows(a.height, looked["row"], found.with_columns(asked=True))
    return known.select(
        cause=pl.coalesce("cause", states["cause"]),
        component="component",
        evidence=pl.when("asked").then("evidence").otherwise(pl.lit("state")),
        anchor="anchor",
        anchor_s="anchor_s",
    )


_ASKED = ("row", "job", "user", "name", "gpus", "state", "reason", "user_reason", "has_log", "start_s", "end_s")


def _by_evidence(given: Evidence, looked: pl.DataFrame) -> pl.DataFrame:
    """Find the cause of attempts whose state does not tell it, or tells no more than that a node was lost.

    Returns:
        In their order the columns of `classify`.
    """
    state, reason = pl.col("state"), pl.col("reason")
    a = looked.join(_near(given, looked), on="row", how="left", maintain_order="left")
    open_ = pl.col("cause") == UNKNOWN
    has_near = pl.col("near").is_not_null()
    near_cause = pl.when(pl.col("near_kind") == "software").then(pl.lit(SOFT)).otherwise(pl.lit(HARD))
    oom = state == "out_of_memory"
    user_log = open_ & pl.col("user_reason")
    chosen = (
        pl.when(pl.col("by_root") & has_near).then(near_cause)
        .when(pl.col("cause") == INFRA)
        .then(pl.when(pl.col("near_kind").is_not_null()).then(near_cause).otherwise(pl.lit(INFRA)))
        .when(user_log).then(pl.lit(USER))
        .when(open_ & has_near).then(near_cause)
        .when(open_ & reason.is_in(list(HARD_REASONS))).then(pl.lit(HARD))
        .when(open_ & reason.is_in(list(SOFT_REASONS))).then(pl.lit(SOFT))
        .when(open_ & oom).then(pl.lit(USER))
        .otherwise("cause")
    )  # fmt: skip
    evidence = (
        pl.when(user_log).then(pl.lit("log"))
        .when((open_ | pl.col("by_root")) & has_near).then("near")
        .when((pl.col("cause") == INFRA) & pl.col("near_kind").is_not_null()).then("near")
        .when(open_ & reason.is_in([*HARD_REASONS, *SOFT_REASONS])).then(pl.lit("log"))
        .when(open_ & ~oom).then(pl.lit(None, pl.String))
        .otherwise(pl.lit("state"))
    )  # fmt: skip
    # in two steps: the second reads the columns of the first several times
    a = a.with_columns(cause=chosen, evidence=evidence)
    infra = pl.col("cause").is_in(INFRASTRUCTURE)
    by_log = infra & (pl.col("evidence") == "log")
    component = (
        pl.when(by_log).then(reason.replace(HARD_REASONS | SOFT_REASONS))
        .when(pl.col("cause") == USER).then(reason)
        .when(infra).then(pl.coalesce("near_component", pl.when(state == "node_fail").then(pl.lit("node"))))
    )  # fmt: skip
    a = a.with_columns(
        component=component,
        anchor=pl.when(infra & ~by_log).then("near_node"),
        anchor_s=pl.when(infra & ~by_log).then("near_s"),
    )
    a = _full_disks(_together(a))
    a = _by_application(given, a)
    a = _repeats(a, given.places)
    return a.select("cause", "component", "evidence", "anchor", "anchor_s")


def _near(given: Evidence, looked: pl.DataFrame) -> pl.DataFrame:
    """The earliest unplanned node event, hardware Xid or fault in telemetry near each end, on one of its nodes."""
    before, after = given.window
    met = looked.select("row", "start_s", "end_s").join(given.places.select("row", "node"), on="row")
    node, end = met["node"].to_numpy(), met["end_s"].to_numpy()
    start, until = np.maximum(end - before, 0.0), end + after
    events = given.outages.filter(~pl.col("planned")).sort("node", "from_s")
    hard = given.xids.filter(pl.col("class") == "hardware")
    counters = given.counters.filter(pl.col("signal").is_in(list(COUNTERS))).sort("node", "ts_s")
    found, while_run = [], np.maximum(start, met["start_s"].to_numpy())
    for kind, rows, at, first in (
        ("event", events, "from_s", start),
        ("xid", hard, "ts_s", while_run),
        ("counter", counters, "ts_s", while_run),
    ):
        place = first_within(keys(rows["node"].to_numpy(), rows[at].to_numpy()), node, first, until)
        hit = np.flatnonzero(place >= 0)
        of = rows[place[hit]]
        if kind == "event":
            what = of.select(near_kind="kind", near_component="component")
        elif kind == "xid":
            what = of.select(near_kind=pl.lit("hardware"), near_component=xids.component(pl.col("xid")))
        else:
            component = pl.col("signal").replace_strict(COUNTERS, return_dtype=pl.String)
            what = of.select(near_kind=pl.lit("hardware"), near_component=component)
        found.append(
            met[hit].select("row", near_node="node").with_columns(near_s=of[at], near=pl.lit(kind)).hstack(what)
        )
    return pl.concat(found, how="vertical_relaxed").sort("row", "near_s", "near_node").unique("row", keep="first")


def _together(a: pl.DataFrame) -> pl.DataFrame:
    """Find outages of a file system: jobs of several users that fail together, one at least with a storage reason."""
    storage = a.filter((pl.col("cause") == SOFT) & (pl.col("evidence") == "log")).sort("end_s")
    if storage.is_empty():
        return a
    gap = (pl.col("end_s") - pl.col("end_s").shift()).fill_null(float("inf")) > TOGETHER_S
    spans = (
        storage.with_columns(group=gap.cum_sum())
        .group_by("group", maintain_order=True)
        .agg(first=pl.col("end_s").min(), last=pl.col("end_s").max())
        .with_columns(
            low=pl.min_horizontal(pl.col("last") - TOGETHER_S, "first"),
            high=pl.max_horizontal(pl.col("first") + TOGETHER_S, "last"),
        )
    )
    may = a.filter(
        ((pl.col("cause") == UNKNOWN) & (pl.col("state") != "out_of_memory"))
        | ((pl.col("cause") == SOFT) & (pl.col("evidence") == "log"))
    )
    met = may.sort("end_s").join_asof(spans.sort("low"), left_on="end_s", right_on="low")
    met = met.filter(pl.col("end_s") <= pl.col("high"))
    sizes = met.group_by("group").agg(
        jobs=pl.col("job").n_unique(), users=pl.col("user").n_unique(), start=pl.col("end_s").min()
    )
    sizes = sizes.filter((pl.col("jobs") >= TOGETHER_JOBS) & (pl.col("users") >= TOGETHER_USERS))
    members = met.join(sizes, on="group").select("row", shared="start")
    a = a.join(members, on="row", how="left", maintain_order="left")
    member, bare = pl.col("shared").is_not_null(), pl.col("cause") == UNKNOWN
    return a.with_columns(
        cause=pl.when(member).then(pl.lit(SOFT)).otherwise("cause"),
        evidence=pl.when(member & bare).then(pl.lit("co_occurrence")).otherwise("evidence"),
        component=pl.when(member).then(pl.lit("file system")).otherwise("component"),
        anchor_s=pl.when(member).then("shared").otherwise("anchor_s"),
    )


def _full_disks(a: pl.DataFrame) -> pl.DataFrame:
    """Whose doing a full disk was: the user's, unless several users met it within an hour."""
    met = a.filter((pl.col("reason") == "disk_full") & (pl.col("cause") == UNKNOWN)).sort("end_s")
    if met.is_empty():
        return a
    gap = (pl.col("end_s") - pl.col("end_s").shift()).fill_null(float("inf")) > FULL_S
    met = met.with_columns(group=gap.cum_sum()).select(
        "row",
        many=pl.col("user").n_unique().over("group") >= FULL_USERS,
        full_s=pl.col("end_s").min().over("group"),
    )
    a = a.join(met, on="row", how="left", maintain_order="left")
    some, many = pl.col("many").is_not_null(), pl.col("many").fill_null(False)
    return a.with_columns(
        cause=pl.when(many).then(pl.lit(SOFT)).when(some).then(pl.lit(USER)).otherwise("cause"),
        evidence=pl.when(some).then(pl.lit("log")).otherwise("evidence"),
        component=pl.when(many).then(pl.lit("file system")).when(some).then(pl.lit("disk_full")).otherwise("component"),
        anchor_s=pl.when(many).then("full_s").otherwise("anchor_s"),
    )


def _by_application(given: Evidence, a: pl.DataFrame) -> pl.DataFrame:
    """Take an application's Xid at the end of an attempt without a log for a sign of the program."""
    own = given.xids.filter(pl.col("class") == "application")
    open_ = a.filter((pl.col("cause") == UNKNOWN) & ~pl.col("has_log"))
    if own.is_empty() or open_.is_empty():
        return a
    met = open_.select("row", "end_s").join(given.places.select("row", "node"), on="row")
    end = met["end_s"].to_numpy()
    place = first_within(
        keys(own["node"].to_numpy(), own["ts_s"].to_numpy()),
        met["node"].to_numpy(), np.maximum(end - APPLICATION_S[0], 0), end + APPLICATION_S[1],
    )  # fmt: skip
    rows = met.filter(pl.Series(place >= 0))["row"].unique()
    hit = pl.col("row").is_in(rows.implode())
    return a.with_columns(
        cause=pl.when(hit).then(pl.lit(USER)).otherwise("cause"),
        evidence=pl.when(hit).then(pl.lit("xid")).otherwise("evidence"),
        component=pl.when(hit).then(pl.lit("application XID")).otherwise("component"),
    )


REPEAT_S, REPEATS, ALIKE, SHORT_S = 86_400.0, 2, 1.2, 600.0
NEAREST = 100
"""Of crashes of one program, each is compared with so many before it and after it: a sweep may have thousands a day."""
_PAIRS = 2_000_000


def _repeats(a: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Take a crash that repeats on other nodes for the program's: same user, name and size, alike run times."""
    by = ["user", "name", "gpus"]
    failed = a.filter(pl.col("cause").is_in([UNKNOWN, USER]) & pl.col("name").is_not_null())
    groups = failed.filter(pl.col("cause") == UNKNOWN).select(by).unique(maintain_order=True).with_row_index("group")
    failed = failed.select("row", *by, "cause", "end_s", run=pl.col("end_s") - pl.col("start_s"))
    failed = failed.join(groups, on=by, nulls_equal=True).drop(by)
    failed = failed.filter(pl.len().over("group") > REPEATS).sort("group", "end_s", "row")
    if failed.is_empty():
        return a
    group, end, row = (failed[name].to_numpy() for name in ("group", "end_s", "row"))
    key = keys(group, end)
    first = np.maximum(np.searchsorted(key, keys(group, np.maximum(end - REPEAT_S, 0))), np.arange(len(key)) - NEAREST)
    last = np.minimum(np.searchsorted(key, keys(group, end + REPEAT_S), "right"), np.arange(len(key)) + NEAREST + 1)
    nodes = _Nodes(places, row)
    asked = np.flatnonzero(((failed["cause"] == UNKNOWN).to_numpy()) & (last - first > REPEATS))
    cuts = np.searchsorted(
        np.cumsum((last - first)[asked]), np.arange(_PAIRS, int((last - first)[asked].sum()), _PAIRS)
    )
    found = [
        part[_repeated(part, first[part], last[part], failed["run"].to_numpy(), nodes)]
        for part in np.split(asked, cuts)
    ]
    hit = pl.col("row").is_in(pl.Series(row[np.concatenate(found)]).implode())
    return a.with_columns(
        cause=pl.when(hit).then(pl.lit(USER)).otherwise("cause"),
        evidence=pl.when(hit).then(pl.lit("repeats")).otherwise("evidence"),
        component=pl.when(hit).then(pl.lit("program")).otherwise("component"),
    )


class _Nodes:
    """The nodes of some attempts, by their place in a list of rows."""

    def __init__(self, places: pl.DataFrame, row: np.ndarray) -> None:
        rows = pl.DataFrame({"row": row}).with_row_index("at")
        met = places.select("row", "node").join(rows.with_columns(pl.col("row").cast(places["row"].dtype)), on="row")
        at, node = met["at"].to_numpy(), met["node"].to_numpy()
        self._width = np.bincount(at, minlength=len(row))
        self._only = np.full(len(row), -1, np.int64)
        self._only[at] = node
        several = met.filter(pl.Series(self._width[at] > 1))
        self._sets = {k: frozenset(of) for k, of in several.group_by("at").agg("node").iter_rows()}

    def apart(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """Whether the attempts of each pair have no node in common."""
        apart: np.ndarray = (self._only[one] != self._only[two]) | (self._width[one] == 0) | (self._width[two] == 0)
        wide = np.flatnonzero((self._width[one] > 1) | (self._width[two] > 1))
        for k in wide.tolist():
            mine, its = (self._sets.get(at, frozenset((int(self._only[at]),))) for at in (int(one[k]), int(two[k])))
            apart[k] = mine.isdisjoint(its)
        return apart


def _repeated(asked: np.ndarray, first: np.ndarray, last: np.ndarray, run: np.ndarray, nodes: _Nodes) -> np.ndarray:
    """Whether each of some crashes repeats among those from `first` to before `last` in a list of them.

    Args:
        asked: places in the list.
        first: of each.
        last: of each.
        run: seconds, of the whole list.
        nodes: of the whole list.
    """
    size = last - first
    of = np.repeat(np.arange(len(asked)), size)
    one = asked[of]
    two = np.arange(len(of)) - np.repeat(np.cumsum(size) - size, size) + first[of]
    some = (one != two) & nodes.apart(one, two)
    of, two = of[some], two[some]
    order = np.lexsort((run[two], of))
    of, length = of[order], run[two[order]]
    own = run[asked]
    short = np.bincount(of, weights=length < SHORT_S, minlength=len(asked)) >= REPEATS
    # of all pairs of others, those next to each other in length are most alike
    low, high, whose = length[: -REPEATS + 1], length[REPEATS - 1 :], of[: -REPEATS + 1]
    fits = (of[REPEATS - 1 :] == whose) & (np.maximum(own[whose], high) <= ALIKE * np.minimum(own[whose], low))
    alike = np.bincount(whose[fits], minlength=len(asked)) > 0
    found: np.ndarray = ((own < SHORT_S) & short) | alike
    return found
