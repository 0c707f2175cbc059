"""Levels over time of a replay: jobs that run and wait, GPUs that are busy, and how full each node was.

Everything is computed from the attempts of an `Outcome` by sorting and running sums, without stepping through time.

Of jobs that take turns on crowded nodes, GPUs and speed count by spans; if none do, an attempt counts with all GPUs
from when it owns them. A guest on shared GPUs is on the first GPUs of its host's pieces, so that of two jobs on a
node's shared GPUs the one with fewer has all of its own in common with the other. A GPU counts once: in equal parts for
the jobs on it (GPU-seconds of jobs), and fully for its owner (`busy` levels, queues).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Cluster, Outcome

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """Spans without a change, several per attempt.

    Attributes:
        row: of the attempts.
        start: seconds.
        end: seconds.
        gpus: counted ones.
        pace: share of its job's speed.
    """

    row: Ints
    start: Floats
    end: Floats
    gpus: Floats | Ints
    pace: Floats

    @property
    def gpu_seconds(self) -> Floats:
        """GPU-seconds of each span."""
        return self.gpus * (self.end - self.start)


def spans(outcome: Outcome) -> Spans:
    """Return the spans of all attempts; attempts without an end are counted to the end of the replay."""
    frame = outcome.attempts
    end = frame["end_s"].fill_null(outcome.end_s).to_numpy()
    own, gpus = frame["own_s"].fill_null(frame["end_s"]).fill_null(outcome.end_s).to_numpy(), frame["gpus"].to_numpy()
    if outcome.turns is None:
        return Spans(np.arange(frame.height), own, end, gpus, np.broadcast_to(1.0, frame.height))
    turns = outcome.turns
    row = np.concatenate([np.arange(frame.height), turns["row"].to_numpy()])
    order = np.argsort(row, kind="stable")
    row = row[order]
    start = np.concatenate([own, turns["t_s"].to_numpy()])[order]
    counted = np.concatenate([gpus, turns["counted"].to_numpy()])[order]
    pace = np.concatenate([np.ones(frame.height), turns["pace"].to_numpy()])[order]
    last = np.append(row[1:] != row[:-1], True)[: row.size]
    until = np.where(last, end[row], np.append(start[1:], 0.0)[: row.size])
    there = until > start
    return Spans(row[there], start[there], until[there], counted[there], pace[there])


def paced_seconds(outcome: Outcome) -> Floats:
    """Return the seconds of each attempt, weighted by its share of speed."""
    found = spans(outcome)
    own = outcome.attempts["own_s"].is_null().to_numpy()
    start, end = outcome.attempts["start_s"].to_numpy(), outcome.attempts["end_s"].fill_null(outcome.end_s).to_numpy()
    if outcome.turns is None:
        return np.asarray(end - start)
    seconds = np.bincount(found.row, weights=found.pace * (found.end - found.start), minlength=own.size)
    return np.where(own, end - start, seconds)


def of_pieces(outcome: Outcome, found: Spans) -> tuple[Ints, Ints, Floats]:
    """Return the span, the piece and the counted GPUs for each span and each place of its attempt."""
    owner = outcome.pieces["row"].to_numpy()
    first = np.searchsorted(owner, found.row, side="left")
    count = np.searchsorted(owner, found.row, side="right") - first
    span = np.repeat(np.arange(found.row.size), count)
    piece = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
    gpus = outcome.attempts["gpus"].to_numpy()[found.row[span]]
    part = np.asarray(found.gpus)[span] / np.maximum(gpus, 1)
    return span, piece, part * outcome.pieces["gpus"].to_numpy()[piece]


BINS = 500
"""Most points per curve over time."""

HEAT_BINS = 100
"""Most periods of the heat map …"""

HEAT_ROWS = 64
BATCH = 100_000
"""… and rows: with more nodes, neighbours share a row."""

NEVER_QUEUED = ("unplaceable", "rejected", "held")
"""States at the end of jobs that never stood in the queue; neither waiting nor contention counts them."""

ENDED = ("finished", "cut")
"""States at the end of jobs that have left the cluster; of those cut at their time limit some work was never done."""

LEVELS = ("running_jobs", "waiting_jobs", "gpus_waiting", "gpus_busy", "gpus_available")


@dataclass(frozen=True)
class Attempts:
    """The attempts of an outcome as arrays, those without an end end with the replay.

    Attributes:
        job: job numbers, shape (attempts,).
        start: seconds.
        end: seconds.
        own: seconds from which it owns its GPUs; its end if it never did.
        gpus: GPUs that it is on.
    """

    job: Ints
    start: Floats
    end: Floats
    own: Floats
    gpus: Ints


def attempts(outcome: Outcome) -> Attempts:
    """Return the attempts of an outcome as arrays."""
    frame = outcome.attempts
    end = frame["end_s"].fill_null(outcome.end_s)
    return Attempts(
        job=frame["job"].to_numpy(),
        start=frame["start_s"].to_numpy(),
        end=end.to_numpy(),
        own=frame["own_s"].fill_null(end).to_numpy(),
        gpus=frame["gpus"].to_numpy(),
    )


def window(outcome: Outcome) -> tuple[float, float]:
    """Return the seconds between which a replay is measured.

    From the first submission to the moment at which no job ran or waited any more: the last end of an attempt, or the
    end of the replay if a job was left running, waiting or held. Later events of the cluster alone (a node that comes
    up again) are not measured.
    """
    begin = _least(outcome.jobs["submit_s"])
    left = bool(outcome.jobs["state"].is_in(["running", "waiting", "held"]).any())
    last = outcome.attempts["end_s"].fill_null(outcome.end_s).max()
    end = last if isinstance(last, float) and not left else outcome.end_s
    return begin, max(begin, end)


def down_times(cluster: Cluster, begin: float, end: float) -> tuple[Ints, Floats, Floats]:
    """Return when nodes were down within a window, overlapping times of one node merged.

    Returns:
        Node numbers, seconds from which and seconds until which, by node and time.
    """
    rows = np.empty((0, 3)) if cluster.down is None else np.asarray(cluster.down, dtype=np.float64).reshape(-1, 3)
    first, last = np.clip(rows[:, 1], begin, end), np.clip(rows[:, 2], begin, end)
    rows = np.stack((rows[:, 0], first, last), axis=1)[last > first]
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    # Each node gets its own stretch of one axis, so that one running maximum serves all.
    shift = rows[:, 0] * (end - begin + 1.0)
    reach = np.maximum.accumulate(rows[:, 2] + shift) if len(rows) else shift
    opens = np.ones(len(rows), dtype=bool)
    opens[1:] = rows[1:, 1] + shift[1:] > reach[:-1]
    at = np.flatnonzero(opens)
    until = np.maximum.reduceat(rows[:, 2], at) if len(rows) else rows[:, 2]
    return rows[at, 0].astype(np.int64), rows[at, 1], until


@dataclass(frozen=True)
class Levels:
    """The exact levels over time. Each is computed on request: for millions of attempts it takes tens of MB.

    Attributes:
        times: seconds at which one of them changes; a level holds from one to the next, the last ends the window.
        made: functions that compute each of `LEVELS`, shape (times,).
    """

    times: Floats
    made: Mapping[str, Callable[[], Any]]

    def __getitem__(self, name: str) -> Any:
        """One of `LEVELS` at all times: whole numbers, except parts of GPUs."""
        return self.made[name]()


def exact_levels(outcome: Outcome, cluster: Cluster, *, until: float | None = None) -> Levels:
    """Return the exact levels over time.

    A job waits from the instant at which it may start (submission, or the end of a hold, begin time or dependency) to
    its end, while it holds no GPUs; jobs that were rejected, could never be placed or were held to the end do not
    count. Jobs that share a GPU all run; the GPU counts once.

    Args:
        outcome: of the replay.
        cluster: for the GPUs that are up.
        until: the last instant, in seconds; None for the end of `window`, after which no job runs or waits.
    """
    cluster = outcome.used(cluster)
    begin, own_end = window(outcome)
    end = max(own_end, until if until is not None else own_end)
    held = attempts(outcome)
    inside, arrive, leave, gang = _in_system(outcome, held, own_end)
    # attempts of jobs that were never queued do not count
    mine = inside[held.job]
    own = np.where(inside, outcome.jobs["gpus"].to_numpy(), 0).astype(np.int32)[held.job]
    node, down, up = down_times(cluster, begin, end)
    size = np.asarray(cluster.gpus, dtype=np.int64)[node]
    changes = [held.start, held.end, arrive, leave, down, up]
    changes += [] if np.array_equal(held.own, held.start) else [held.own]
    changes += [] if outcome.turns is None else [spans(outcome).start]
    times = np.array([begin, end])
    for change in changes:
        # each separately first: attempts share instants of begin and end
        times = _distinct(np.concatenate([times, _distinct(change.clip(begin, end))]))

    def busy() -> Any:
        found = spans(outcome)
        return _steps(times, (1, found.start, found.end, found.gpus))

    made: dict[str, Callable[[], Any]] = {
        "running_jobs": lambda: _steps(times, (1, held.start, held.end, None)),
        "waiting_jobs": lambda: _steps(times, (1, arrive, leave, None), (-1, held.start, held.end, mine)),
        "gpus_waiting": lambda: _steps(times, (1, arrive, leave, gang), (-1, held.start, held.end, own)),
        "gpus_busy": busy,
        "gpus_available": lambda: cluster.total_gpus + _steps(times, (-1, down, up, size)),
    }
    return Levels(times, made)


def levels(outcome: Outcome, cluster: Cluster, *, until: float | None = None) -> pl.DataFrame:
    """Return `exact_levels` as a table: ``t_s`` and all of `LEVELS`, one row per time."""
    exact = exact_levels(outcome, cluster, until=until)
    return pl.DataFrame({"t_s": exact.times, **{name: exact[name] for name in LEVELS}})


def binned(exact: Levels, edges: Floats) -> pl.DataFrame:
    """Return the mean over time of each level in each bin: sums of mean x width are the integrals of the levels.

    Args:
        exact: the levels; 0 before the first instant and after the last.
        edges: rising seconds, shape (bins + 1,).

    Returns:
        ``t_s`` and ``t_end_s`` of each bin, and the means.
    """
    width, length = np.diff(edges), np.diff(exact.times)
    columns: dict[str, Floats] = {"t_s": edges[:-1], "t_end_s": edges[1:]}
    area = np.zeros(exact.times.size)
    for name in LEVELS:
        np.multiply(exact[name][:-1], length, out=area[1:])
        np.cumsum(area[1:], out=area[1:])
        columns[name] = np.diff(np.interp(edges, exact.times, area)) / width
    return pl.DataFrame(columns)


def bin_edges(begin: float, end: float, bins: int) -> Floats:
    """Return the edges of equal bins, shape (bins + 1,); a window without length gets one bin of a second."""
    if end <= begin:
        return np.array([begin, begin + 1.0])
    return np.linspace(begin, end, bins + 1)


def idle_despite_wait(outcome: Outcome, cluster: Cluster) -> float:
    """Return the seconds in which a waiting job requested no more GPUs than were up and free.

    It counts GPUs only. The cause of the wait may be their places (fragmentation), a quota, a type, a limit or the
    policy's order; an `Outcome` does not record which.
    """
    begin, end = window(outcome)
    held = attempts(outcome)
    exact = exact_levels(outcome, cluster)
    times, free = exact.times, exact["gpus_available"] - exact["gpus_busy"]
    inside, arrive, leave, gang = _in_system(outcome, held, end)
    own = np.where(inside, outcome.jobs["gpus"].to_numpy(), -1).astype(np.int32)[held.job]
    idle = np.zeros(len(times), dtype=bool)
    for size in np.unique(gang):
        waiting = _steps(times, (1, arrive, leave, gang == size), (-1, held.start, held.end, own == size))
        idle |= (waiting > 0) & (free >= size)
    return float(np.diff(times)[idle[:-1]].sum()) if end > begin else 0.0


def occupancy(
    outcome: Outcome, cluster: Cluster, edges: Floats, *, rows: int = HEAT_ROWS
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return how full each node was in each period.

    Args:
        outcome: of the replay.
        cluster: its nodes; if there are more than ``rows``, neighbours are grouped evenly (sizes differ by at most
            one). Nodes that only this policy had follow, in up to a quarter as many separate rows, so that rows of one
            name are the same under every policy.
        edges: rising seconds of equal bins, shape (bins + 1,).
        rows: most rows.

    Returns:
        One row per (row, bin), bins within rows: ``row`` (0-based), ``bin`` (0-based), ``busy_pct`` (GPUs held, mean
            over
        the bin, of all GPUs of these nodes, whether up or down), ``down_pct`` (GPUs of nodes that were down); and
        the names of the rows.
    """
    common, cluster = len(cluster.nodes), outcome.used(cluster)
    own = len(cluster.nodes) - common
    shared, more = min(rows, common), min(max(rows // 4, 1), own)
    lines, bins = shared + more, len(edges) - 1
    line = np.append(
        np.arange(common) * shared // max(common, 1), shared + np.arange(own) * more // max(own, 1)
    ).astype(np.int64)
    gpus = np.asarray(cluster.gpus, dtype=np.float64)
    capacity = np.bincount(line, weights=gpus, minlength=lines) * float(edges[1] - edges[0])
    held = attempts(outcome)
    if outcome.turns is None:
        piece, node, got = pieces_of(outcome, cluster, held)
        busy = _areas((line, node), ((held.own, piece), (held.end, piece)), got, edges, lines)
    else:
        found = spans(outcome)
        span, piece, counted = of_pieces(outcome, found)
        node = outcome.pieces["node"].to_numpy()[piece]
        busy = _areas((line, node), ((found.start, span), (found.end, span)), counted, edges, lines)
    down_node, down, up = down_times(cluster, float(edges[0]), float(edges[-1]))
    every = np.arange(down.size)
    lost = _areas((line, down_node), ((down, every), (up, every)), gpus[down_node], edges, lines)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [np.where(capacity[:, None] > 0, 100 * a / capacity[:, None], 0.0).ravel() for a in (busy, lost)]
    frame = pl.DataFrame(
        {
            "row": np.repeat(np.arange(lines), bins),
            "bin": np.tile(np.arange(bins), lines),
            # sums of floats may miss zero slightly
            "busy_pct": np.maximum(shares[0], 0.0),
            "down_pct": np.maximum(shares[1], 0.0),
        }
    )
    return frame, _row_names(cluster.nodes, line, lines)


def pieces_of(outcome: Outcome, cluster: Cluster, held: Attempts) -> tuple[Ints, Ints, Ints]:
    """Return the places of all attempts: the attempt's row, the node's number, and GPUs there."""
    pieces = outcome.pieces
    if pieces.height == 0 and len(cluster.nodes) == 1:
        # A pool has one place, which holds everything.
        return np.arange(held.job.size), np.zeros(held.job.size, dtype=np.int64), held.gpus
    row, node, gpus = (pieces[name].to_numpy() for name in ("row", "node", "gpus"))
    return row, node, gpus


def _row_names(nodes: tuple[str, ...], line: Ints, lines: int) -> tuple[str, ...]:
    first = np.searchsorted(line, np.arange(lines), side="left")
    last = np.searchsorted(line, np.arange(lines), side="right") - 1
    return tuple(
        nodes[a] if a == b else f"{nodes[a]} to {nodes[b]}" for a, b in zip(first.tolist(), last.tolist(), strict=True)
    )


def _in_system(outcome: Outcome, held: Attempts, end: float) -> tuple[NDArray[np.bool_], Floats, Floats, Ints]:
    """Jobs that were queued at some time, with arrival, departure and gang."""
    jobs = outcome.jobs
    inside = ~jobs["state"].is_in(list(NEVER_QUEUED)).to_numpy()
    arrive = jobs["eligible_s"].fill_nan(None).fill_null(jobs["submit_s"]).to_numpy().astype(np.float64)
    # A recorded start may lie before the recorded end of a hold.
    first = np.full(jobs.height, np.inf)
    np.minimum.at(first, held.job, held.start)
    leave = left_at(jobs, end)
    arrive = np.minimum(np.minimum(arrive, first), leave)
    gang = jobs["gpus"].to_numpy().astype(np.int64)
    return inside, arrive[inside], leave[inside], gang[inside]


def left_at(jobs: pl.DataFrame, end: float) -> Floats:
    """Return the second at which each job left the cluster; `end` for those that did not."""
    ended = jobs["state"].is_in(ENDED).to_numpy()
    return np.where(ended, jobs["end_s"].fill_null(end).to_numpy(), end).astype(np.float64)


def _distinct(values: Floats) -> Floats:
    """The distinct values in order; sorts its argument in place, so that millions are not copied."""
    values.sort()
    new = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def _steps(times: Floats, *intervals: tuple[int, Floats, Floats, NDArray[Any] | None]) -> Any:
    """Sum of the weights of the active intervals at each change point; exact: whole numbers.

    Parts of GPUs are fractions: their sums are rounded to billionths.

    Args:
        times: the change points, in order.
        intervals: several at a time: their sign, begins, ends, and weights (none: 1) or which of them count.
    """
    last = len(times) - 1
    parts = any(weight is not None and weight.dtype.kind == "f" for *_, weight in intervals)
    change = np.zeros(len(times), dtype=np.float64 if parts else np.int64)
    for sign, start, end, weight in intervals:
        for begin in range(0, len(start), BATCH):
            part = slice(begin, begin + BATCH)
            first, after = start[part], end[part]
            some: Any = sign
            if weight is not None and weight.dtype.kind == "b":
                first, after = first[weight[part]], after[weight[part]]
            elif weight is not None:
                some = sign * weight[part]
            np.add.at(change, np.minimum(np.searchsorted(times, first), last), some)
            np.subtract.at(change, np.minimum(np.searchsorted(times, after), last), some)
    np.cumsum(change, out=change)
    return change.round(9) if parts else change


def _areas(
    line: tuple[Ints, Ints], ends: Sequence[tuple[Floats, Ints]], weight: Floats | Ints, edges: Floats, lines: int
) -> Floats:
    """Integral of weighted intervals over each (line, bin), linear in intervals plus cells; shape (lines, bins).

    They are processed in batches, to limit the number of full-length arrays.

    Args:
        line: lines of nodes, and the node of each interval.
        ends: distinct begins, and the index of each interval's begin; the same for ends.
        weight: of each interval.
        edges: rising seconds of equal bins.
        lines: number of lines.
    """
    bins, width = len(edges) - 1, float(edges[1] - edges[0])
    own, later = np.zeros(lines * bins), np.zeros(lines * bins)
    for (instants, of), sign in zip(ends, (1.0, -1.0), strict=True):
        for begin in range(0, of.size, BATCH):
            part = slice(begin, begin + BATCH)
            at = instants[of[part]].clip(edges[0], edges[-1])
            bin_ = np.minimum(((at - edges[0]) / width).astype(np.int64), bins - 1)
            cell = line[0][line[1][part]] * bins + bin_
            # A step counts for the rest of its bin, and fully in all later ones.
            np.add.at(own, cell, sign * weight[part] * (edges[0] + (bin_ + 1) * width - at))
            np.add.at(later, cell, sign * weight[part])
    full = np.cumsum(later.reshape(lines, bins), axis=1) * width
    full[:, 1:], full[:, 0] = full[:, :-1].copy(), 0.0
    return np.asarray(own.reshape(lines, bins) + full)


def _least(series: pl.Series) -> float:
    least = series.min()
    return float(least) if isinstance(least, int | float) else 0.0


def portions(outcome: Outcome) -> Floats:
    """Return the GPU-seconds of each piece: on a GPU with k jobs, one k-th of the time.

    Args:
        outcome: of the replay; attempts without an end are counted to the end of the replay.

    Returns:
        One number per row of ``outcome.pieces``; the sum over the pieces on a GPU is the time for which it was busy.
    """
    owner = outcome.pieces["row"].to_numpy()
    if outcome.turns is not None:
        found = spans(outcome)
        span, piece, gpus = of_pieces(outcome, found)
        seconds = (found.end - found.start)[span]
        return np.bincount(piece, weights=gpus * seconds, minlength=owner.size).astype(np.float64)
    start = outcome.attempts["start_s"].to_numpy()[owner]
    end = outcome.attempts["end_s"].fill_null(outcome.end_s).to_numpy()[owner]
    gpus = outcome.pieces["gpus"].to_numpy()
    counted = gpus * (end - start)
    group = outcome.attempts["group"].to_numpy()[owner]
    together = np.isin(group, group[outcome.attempts["shared"].to_numpy()[owner]])
    at = np.flatnonzero(together)
    if not at.size:
        return np.asarray(counted)
    keys = pl.DataFrame({"at": at, "group": group[at], "node": outcome.pieces["node"].to_numpy()[at]})
    for rows in keys.group_by("group", "node").agg("at")["at"].to_list():
        piece = np.array(rows)
        counted[piece] = _in_parts(start[piece], end[piece], gpus[piece])
    return np.asarray(counted)


def shared_gpus(outcome: Outcome) -> tuple[Floats, Floats]:
    """Return the GPUs of each attempt and of each piece, as means over its time: fractions if GPUs were shared."""
    owner = outcome.pieces["row"].to_numpy()
    length = (outcome.attempts["end_s"].fill_null(outcome.end_s) - outcome.attempts["start_s"]).to_numpy()
    gpus = outcome.attempts["gpus"].to_numpy().astype(np.float64)
    pieces = outcome.pieces["gpus"].to_numpy().astype(np.float64)
    group = outcome.attempts["group"].to_numpy()
    shared = np.isin(group, group[outcome.attempts["shared"].to_numpy()])
    if outcome.turns is not None:
        shared = np.isin(np.arange(gpus.size), outcome.turns["row"].to_numpy())
    shared &= length > 0
    if shared.any():
        mine = shared[owner]
        pieces[mine] = portions(outcome)[mine] / length[owner][mine]
        gpus[shared] = np.bincount(owner, weights=pieces, minlength=gpus.size)[shared]
    return gpus, pieces


def _in_parts(start: Floats, end: Floats, gpus: Floats) -> Floats:
    """GPU-seconds of each of some jobs on the first `gpus` GPUs of one place."""
    counted = np.zeros(start.size)
    times = np.unique(np.concatenate([start, end]))
    by_size = np.argsort(gpus, kind="stable")
    for begin, until in pairwise(times.tolist()):
        there = by_size[(start[by_size] <= begin) & (end[by_size] >= until)]
        more = np.diff(gpus[there], prepend=0)
        counted[there] += np.cumsum(more / np.arange(there.size, 0, -1)) * (until - begin)
    return counted
