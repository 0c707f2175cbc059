"""The inference cluster next to a training cluster: its nodes, and how many of them are idle over time."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import MOST_TOML, read_whole
from gpuctl.core.notes import note
from gpuctl.replay.models.records import Inference

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Cluster, Floats, Ints

DAY_S, WEEK_S, STEP_S = 86400, 7 * 86400, 300
MOST_NODES = 100_000
HEADROOM = 1.02
"""Nodes that inference keeps, relative to those its load takes: 2 % more, recalled from the paper, not checked."""

_PART = re.compile(r"(\d{1,6})x(\d{1,6})", re.ASCII)
_COLUMNS = ["time_s", "nodes_free"]


def diurnal(gpus: Ints) -> Inference:
    """Nodes with a daily load curve: the default, assumed.

    Of I nodes ``min(I, ceil(1.02 I u))`` are needed, u = .65 + .25 cos(2 pi (h - 14) / 24) at hour h of the day, 90 %
    of that on days 6 and 7; second 0 is a Monday's first.
    """
    count = len(gpus)
    t = np.arange(0, WEEK_S, STEP_S)
    use = 0.65 + 0.25 * np.cos(2 * np.pi * (t / 3600 % 24 - 14) / 24)
    use = np.where(t // 86400 % 7 >= 5, 0.9 * use, use)
    free = count - np.minimum(count, np.ceil(count * use * HEADROOM)).astype(np.int64)
    curve = note("the load of inference is an assumed daily curve; give yours with --inference-load")
    return dataclasses.replace(steps(gpus, free, float(WEEK_S)), notes=(curve,))


def steps(gpus: Ints, free: Ints, period_s: float) -> Inference:
    """Nodes with the given number idle in each five minutes of a period."""
    changes = np.flatnonzero(np.append(True, np.diff(free) != 0))
    return Inference(gpus, (changes * STEP_S).astype(np.float64), free[changes], period_s)


def aligned(inference: Inference, origin: datetime | None) -> Inference:
    """Align a periodic load with the weekday and hour of second 0, if that has a date.

    Args:
        inference: its period, days or weeks, begins at 0:00, weeks on a Monday; otherwise it is returned unchanged.
        origin: the date of second 0; None: not known, the load begins with its period.
    """
    period = inference.period_s
    if origin is None or math.isinf(period):
        return inference
    midnight = origin.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    days = origin.weekday() if period % WEEK_S == 0 else 0
    since = (days * DAY_S + (origin.replace(tzinfo=None) - midnight).total_seconds()) % period
    now = int(np.searchsorted(inference.time_s, since, side="right")) - 1
    # the value at second 0 began before it, and recurs at the end of the period
    order = np.append(np.roll(np.arange(inference.time_s.size), -now), now)
    time_s = np.append(0.0, (inference.time_s[order[1:]] - since) % period)
    if inference.time_s[now] == since:
        order, time_s = order[:-1], time_s[:-1]
    return dataclasses.replace(inference, time_s=time_s, free=inference.free[order])


def parse_inference(text: str, load: Path | None) -> Inference:
    """Read ``--inference`` and ``--inference-load``.

    Args:
        text: ``9x8``: nodes x GPUs of each; several with ``+``.
        load: a CSV ``time_s,nodes_free``, or None: `diurnal`.

    Raises:
        UsageError: the text is not of this form.
        InputError: the CSV is not of this form; the message names the line, the value found and the value expected.
    """
    parts = [_PART.fullmatch(part.strip()) for part in text.strip().lower().split("+")]
    sizes = [(int(part[1]), int(part[2])) for part in parts if part]
    count = sum(number for number, _ in sizes)
    if len(sizes) != len(parts) or not 0 < count <= MOST_NODES or any(min(size) < 1 for size in sizes):
        raise UsageError(
            f"--inference {text[:200]}: expected 1 to {MOST_NODES:,} nodes of at least 1 GPU each",
            hint="9x8 (nodes x GPUs of each), or 4x8+2x4",
        )
    gpus = np.repeat([g for _, g in sizes], [number for number, _ in sizes]).astype(np.int64)
    return diurnal(gpus) if load is None else _read_load(load, gpus)


def _read_load(path: Path, gpus: Ints) -> Inference:
    raw = read_whole(path, most=MOST_TOML, hint="a CSV with the columns time_s,nodes_free")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", path=str(path), hint="expected time_s,nodes_free") from error
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    if header not in (_COLUMNS, ["time_s", "servers_free"]):  # the latter until version 0.2
        found = ",".join(header)[:100]
        raise InputError(f"its first line is {found!r}", path=str(path), line=1, hint=f"expected {','.join(_COLUMNS)}")
    times: list[float] = []
    free: list[int] = []
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        try:
            t, nodes = float(row[0]), int(row[1])
            good = len(row) == 2 and math.isfinite(t) and nodes >= 0 and (not times or t > times[-1])
        except (ValueError, IndexError):
            good = False
        if not good:
            raise InputError(
                f"{','.join(row)[:100]!r}",
                path=str(path),
                line=number,
                hint="expected a second, later than in the line before, and a whole number of nodes",
            )
        times.append(t)
        free.append(min(nodes, len(gpus)))
    if not times:
        raise InputError("has no lines", path=str(path), hint="expected lines such as 0,4")
    return Inference(gpus, np.array(times), np.array(free, np.int64))


def with_loans(cluster: Cluster, gpus: Ints) -> Cluster:
    """The nodes of a cluster, followed by nodes that exist only while on loan.

    Args:
        cluster: one that has no such nodes yet.
        gpus: of each of the latter, in training equivalents.

    Raises:
        UsageError: a pool, which has no nodes.
    """
    if cluster.pool:
        raise UsageError("--inference: nodes cannot be lent to a pool", hint="give nodes, as --cluster 64x8")
    count = len(gpus)
    stem = "inference"
    while any(name.startswith(stem) for name in (*cluster.nodes, *cluster.racks)):
        stem += "-"
    width = len(str(count))

    def longer(known: Floats | None) -> Floats | None:
        return None if known is None else np.append(known, np.full(count, np.nan))

    return dataclasses.replace(
        cluster,
        nodes=(*cluster.nodes, *(f"{stem}{k + 1:0{width}}" for k in range(count))),
        gpus=np.append(cluster.gpus, gpus),
        rack=np.append(cluster.rack, np.full(count, len(cluster.racks))),
        gpu_type=np.append(cluster.gpu_type, np.full(count, -1)),
        racks=(*cluster.racks, stem),
        cpus=longer(cluster.cpus),
        mem_mb=longer(cluster.mem_mb),
        on_loan=count,
    )


def as_lent(cluster: Cluster, loans: list[tuple[float, int, bool]]) -> Cluster:
    """The same nodes; lendable ones are down except while on loan.

    Args:
        cluster: made by `with_loans`.
        loans: second, number of the node, and whether it was lent then or returned; in order of time.
    """
    first = len(cluster.nodes) - cluster.on_loan
    since = dict.fromkeys(range(first, len(cluster.nodes)), -math.inf)
    down: list[tuple[float, float, float]] = []
    for t, node, lent in loans:
        if lent:
            down.append((node, since.pop(node), t))
        else:
            since[node] = t
    down += [(node, t, math.inf) for node, t in since.items()]
    known = np.zeros((0, 3)) if cluster.down is None else np.asarray(cluster.down).reshape(-1, 3)
    return dataclasses.replace(cluster, down=np.concatenate([known, np.array(down).reshape(-1, 3)]))


def late(inference: Inference, loans: list[tuple[float, int, bool]], until: float) -> tuple[int, float]:
    """Late returns: how often a node that inference needed was still on loan, and for how long in total.

    Args:
        inference: the nodes and their load.
        loans: as in `as_lent`.
        until: the end, seconds.

    Returns:
        nodes and node-seconds.
    """
    if until <= 0:
        return 0, 0.0
    times, free = _unrolled(inference, until)
    events = sorted(
        [(t, 0, n) for t, n in zip(times, free, strict=True)] + [(t, 1, 1 if on else -1) for t, _, on in loans]
    )
    goal, lent, before, nodes, seconds = 0, 0, 0.0, 0, 0.0
    at = 0
    while at < len(events):
        t = events[at][0]
        over = max(lent - goal, 0)
        seconds += over * (min(t, until) - before)
        before = min(t, until)
        while at < len(events) and events[at][0] == t:
            _, kind, value = events[at]
            goal, lent = (value, lent) if kind == 0 else (goal, lent + value)
            at += 1
        nodes += max(max(lent - goal, 0) - over, 0)
    return nodes, seconds + max(lent - goal, 0) * (until - before)


def loan_counts(cluster: Cluster, loans: list[tuple[float, int, bool]], until: float) -> dict[str, float]:
    """Number of loans of a replay, and late returns; empty without an inference cluster."""
    if cluster.inference is None:
        return {}
    nodes, seconds = late(cluster.inference, loans, until)
    return {"nodes_lent": sum(lent for _, _, lent in loans), "nodes_late": nodes, "late_node_s": seconds}


def loan_notes(cluster: Cluster, loans: list[tuple[float, int, bool]], until: float) -> tuple[Note, ...]:
    """Notes on the loans of a replay: their number, and late returns."""
    inference, counts = cluster.inference, loan_counts(cluster, loans, until)
    if inference is None:
        return ()
    came = counts["nodes_lent"]
    text = note(
        "inference lent nodes {came:,} time{came||s} and got them back {back:,} time{back||s}, {nodes:,} "
        "time{nodes||s} too late: it missed "
        "{seconds:,.0f} node-seconds in all",
        came=came, back=len(loans) - came, nodes=counts["nodes_late"], seconds=counts["late_node_s"],
    )  # fmt: skip
    return (text, *inference.notes)


def _unrolled(inference: Inference, until: float) -> tuple[list[float], list[int]]:
    """The load up to a second, with periods repeated."""
    times, free, base = [], [], 0.0
    while base <= until:
        for t, n in zip(inference.time_s.tolist(), inference.free.tolist(), strict=True):
            if base + t <= until:
                times.append(base + t)
                free.append(n)
        base += inference.period_s
    return times, free
