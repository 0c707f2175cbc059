"""Allocations of jobs on nodes over time, in a window with few enough of them to be visible.

The window lies around the busiest moment under the baseline, and is as long as possible with at most `BARS` allocations
of each policy; it is the same for all. Which GPUs of a node a job held is unknown: a replay only counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import NamedValue, literal, note, together
from gpuctl.core.numbers import lasting
from gpuctl.replay.results import timelines
from gpuctl.replay.results.columns import documented
from gpuctl.replay.results.settings import calendar, nodes_note, span
from gpuctl.replay.results.timelines import of_pieces, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.core.results import ResultTable
    from gpuctl.replay.models.records import Cluster, Outcome
    from gpuctl.replay.results.settings import Replays

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Window = tuple[float, float]

NODES = 12
"""Most nodes shown, the first ones; a third of them are loaned ones, if there are any …"""

BARS = 120
"""… and allocations of a policy …"""

ALL_BARS = 480
"""… and of all policies together."""

_MINUTE = 60.0
_PARTS = ("node", "lent", "loan", "down", "job")
_SCHEMA = {
    "node": pl.String, "what": pl.String, "job": pl.String, "user": pl.String, "queue": pl.String,
    "gpus": pl.Int64, "counted_gpus": pl.Float64, "beside": pl.String, "t_s": pl.Float64, "t_end_s": pl.Float64,
    "attempt": pl.Int64, "end": pl.String,
}  # fmt: skip


def gantt(replays: Replays) -> ResultTable:
    """Return the allocations of the window, and their nodes.

    Raises:
        UsageError: the requested window lies outside the replay.
    """
    nodes, there = _nodes(replays)
    # before any other data with as many rows as attempts exist
    middle = _busiest_moment(replays) if replays.window is None else 0.0
    held = [_held(o, replays.cluster, nodes) for o in replays.outcomes]
    most = max(1, min(BARS, ALL_BARS // len(held)))
    stays = [each.stays for each in held]
    window = _around(middle, replays, stays, most) if replays.window is None else _overlapping(replays, replays.window)
    frames: list[pl.DataFrame] = []
    cut: list[Note] = []
    place = pl.col("node").replace_strict(nodes, range(len(nodes)), return_dtype=pl.Int64)
    for outcome, every in zip(replays.outcomes, held, strict=True):
        inside = every.stays.filter((pl.col("t_end_s") > window[0]) & (pl.col("t_s") < window[1]))
        jobs = every.job_rows(_longest(inside, window, most))
        policy = NamedValue("policy", outcome.policy)
        if jobs.height < inside.height:
            cut.append(note("{policy} {of:,} of {all:,}", policy=policy, of=jobs.height, all=inside.height))
        rows = pl.concat([_of_nodes(outcome, replays.cluster, nodes, window), _of_jobs(outcome, jobs)])
        rows = rows.sort(place, pl.col("what").cast(pl.Enum(_PARTS)), "t_s", maintain_order=True)
        frames.append(rows.insert_column(0, pl.Series("policy", [outcome.policy] * rows.height, dtype=pl.String)))
    population = note(
        "Allocations in {length} from second {begin:,.0f} on, on {shown:,} of {nodes:,} node{nodes||s} of "
        "{cluster}.",
        length=literal(lasting(window[1] - window[0])), begin=window[0], shown=len(nodes), nodes=there,
        cluster=nodes_note(replays.cluster),
    )  # fmt: skip
    return documented(
        "replay_gantt", pl.concat(frames).with_columns(calendar(replays.workload)), population,
        section="replay_over_time", title="Which job was on which node", detail=True,
        question="Which job held GPUs of which node, from when to when?",
        notes=_notes(replays, cut, most, (len(nodes), there)),
    )  # fmt: skip


def _notes(replays: Replays, cut: list[Note], most: int, nodes: tuple[int, int]) -> tuple[Note, ...]:
    found = []
    if nodes[0] < nodes[1]:
        found.append(note("Shown: {shown:,} of {there:,} node{there||s}.", shown=nodes[0], there=nodes[1]))
    if replays.window is None:
        found.append(
            note(
                "The window lies around the moment at which running and waiting jobs request most GPUs under {policy}, "
                "and is as long as possible with at most {most:,} allocation{most||s} of each policy. Another one: "
                "--gantt "
                "FROM..TO.",
                policy=NamedValue("policy", replays.baseline.policy), most=most,
            )
        )  # fmt: skip
    if cut:
        found.append(note("Shown: the allocations with most GPU-time in the window: {cut}.", cut=together(", ", cut)))
    return tuple(found)


def _nodes(replays: Replays) -> tuple[list[str], int]:
    """The nodes shown, and the number of nodes under any policy."""
    every = list(dict.fromkeys(name for o in replays.outcomes for name in o.used(replays.cluster).nodes))
    own = set(replays.cluster.nodes)
    came = {name for o in replays.outcomes for name, _, _ in _loans(o)}
    others = sorted((name for name in every if name not in own), key=lambda name: name not in came)
    some = min(len(others), max(NODES // 3, NODES - len(own)))
    return list(replays.cluster.nodes)[: NODES - some] + sorted(others[:some], key=every.index), len(every)


def _loans(outcome: Outcome) -> list[tuple[str, float, float]]:
    """Node, seconds from which and until which, of each loan; the end of the replay if it did not end."""
    since: dict[int, float] = {}
    found = []
    for t, node, lent in outcome.log.loans():
        if lent:
            since.setdefault(node, t)
        elif node in since:
            found.append((outcome.log.nodes[node], since.pop(node), t))
    return found + [(outcome.log.nodes[node], t, outcome.end_s) for node, t in since.items()]


@dataclass(frozen=True)
class _Allocations:
    """All allocations on some nodes; consecutive attempts on as many GPUs of a node are one.

    Attributes:
        stays: ``row`` (of the first attempt) and ``last`` (of the last one), ``node`` (its number), ``gpus``,
            ``t_s``, ``t_end_s``, and its entries of `gpu_s`: ``first`` and their number, ``pieces``.
        gpu_s: GPU-seconds charged to each attempt there.
        nodes: all names.
    """

    stays: pl.DataFrame
    gpu_s: Floats
    nodes: Sequence[str]

    def job_rows(self, stays: pl.DataFrame) -> pl.DataFrame:
        """Some of the allocations, with names of nodes, and the GPU-seconds charged to each."""
        sums = [
            float(self.gpu_s[first : first + pieces].sum()) for first, pieces in stays["first", "pieces"].iter_rows()
        ]
        names = pl.Series("node", self.nodes, dtype=pl.String).gather(stays["node"])
        return stays.with_columns(names, pl.col("gpus").cast(pl.Int64), pl.Series("gpu_s", sums, pl.Float64))


def _held(outcome: Outcome, given: Cluster, nodes: Sequence[str]) -> _Allocations:
    cluster = outcome.used(given)
    held = timelines.attempts(outcome)
    row, node, gpus = timelines.pieces_of(outcome, cluster, held)
    number = {name: k for k, name in enumerate(cluster.nodes)}
    wanted = np.zeros(len(cluster.nodes), dtype=bool)
    wanted[[number[name] for name in nodes if name in number]] = True
    piece = np.flatnonzero(wanted[node] & (held.end > held.start)[row])
    # columns one by one: for millions of attempts, a frame and its sorted copy would dominate memory
    piece = piece[np.lexsort((row[piece], held.start[row[piece]], node[piece], held.job[row[piece]]))]
    row, node, gpus = row[piece], node[piece], gpus[piece]
    shared = outcome.attempts["shared"].to_numpy()
    this, before = row[1:], row[:-1]
    other = np.ones(row.size, dtype=bool)
    other[1:] = held.job[this] != held.job[before]
    other[1:] |= (node[1:] != node[:-1]) | (gpus[1:] != gpus[:-1])
    other[1:] |= held.start[this] != held.end[before]
    other[1:] |= shared[this] | shared[before]
    first = np.flatnonzero(other)
    after = np.append(first, row.size)[1:]
    begins, ends = row[first], row[after - 1]
    stays = pl.DataFrame(
        {
            "row": begins, "last": ends, "node": node[first].astype(np.int32), "gpus": gpus[first].astype(np.int32),
            "t_s": held.start[begins], "t_end_s": held.end[ends],
            "first": first.astype(np.uint32), "pieces": (after - first).astype(np.uint32),
        }
    ).sort("t_s", "row")  # fmt: skip
    seconds = gpus * (held.end[row] - held.start[row]) if outcome.turns is None else _counted(outcome)[piece]
    return _Allocations(stays, seconds, cluster.nodes)


def _overlapping(replays: Replays, window: Window) -> Window:
    begin, end = span(replays)
    if not (window[0] < window[1] and window[0] < end and window[1] > begin):
        raise UsageError(
            f"--gantt: nothing was replayed between the seconds {window[0]:,.0f} and {window[1]:,.0f}",
            hint=f"the replay lasts from {begin:,.0f} to {end:,.0f}",
        )
    return max(begin, window[0]), min(end, window[1])


def _busiest_moment(replays: Replays) -> float:
    """The second from which running and waiting jobs request most GPUs under the baseline."""
    exact = timelines.exact_levels(replays.baseline, replays.cluster)
    return float(exact.times[(exact["gpus_waiting"] + exact["gpus_busy"]).argmax()])


def _around(middle: float, replays: Replays, held: Sequence[pl.DataFrame], most: int) -> Window:
    """The longest window around a second in which no policy has more allocations than can be shown."""
    begin, end = span(replays)
    end = max(end, begin + 1.0)
    ends = [(np.sort(f["t_s"].to_numpy()), np.sort(f["t_end_s"].to_numpy())) for f in held]

    def around(half: float) -> Window:
        low, high = max(begin, middle - half), min(end, middle + half)
        if high - low > 20 * _MINUTE:
            low, high = max(low, np.ceil(low / _MINUTE) * _MINUTE), min(high, np.floor(high / _MINUTE) * _MINUTE)
        return float(low), float(high)

    def few(half: float) -> bool:
        low, high = around(half)
        return all(np.searchsorted(a, high) - np.searchsorted(b, low, side="right") <= most for a, b in ends)

    least, wide = min(_MINUTE, end - begin), end - begin
    if few(wide):
        return around(wide)
    while wide - least > 1:
        half = (least + wide) / 2
        least, wide = (half, wide) if few(half) else (least, half)
    return around(least)


def _longest(inside: pl.DataFrame, window: Window, most: int) -> pl.DataFrame:
    if inside.height <= most:
        return inside
    seconds = pl.min_horizontal("t_end_s", pl.lit(window[1])) - pl.max_horizontal("t_s", pl.lit(window[0]))
    best = inside.select((pl.col("gpus") * seconds).arg_sort(descending=True)).to_series().head(most)
    return inside[best.sort()]


def _of_nodes(outcome: Outcome, given: Cluster, nodes: Sequence[str], window: Window) -> pl.DataFrame:
    """Rows of nodes, and of their loans and down times."""
    cluster = outcome.used(given)
    gpus = dict(zip(cluster.nodes, cluster.gpus.tolist(), strict=True))
    loans = _loans(outcome)
    own = set(given.nodes)
    number, down, up = timelines.down_times(given, *window)
    rows = [("node" if name in own else "lent", name, *window) for name in nodes if name in gpus]
    rows += [("loan", *loan) for loan in loans if loan[1] < window[1] and loan[2] > window[0]]
    rows += [("down", given.nodes[k], a, b) for k, a, b in zip(number, down.tolist(), up.tolist(), strict=True)]
    shown = [row for row in rows if row[1] in nodes]
    return pl.DataFrame(
        [
            {"what": what, "node": name, "t_s": a, "t_end_s": b, "gpus": gpus[name] if what in _PARTS[:2] else None}
            for what, name, a, b in shown
        ],
        schema=_SCHEMA,
    )  # fmt: skip


def _of_jobs(outcome: Outcome, jobs: pl.DataFrame) -> pl.DataFrame:
    rows = outcome.attempts.select("job", "attempt", "shared", "group", "end")
    names = outcome.jobs.select(pl.col("job", "user", "queue").cast(pl.String))
    own = rows[jobs["row"]]
    who = names[own["job"]]
    host = names["job"].gather(rows["job"].gather(own["group"]))
    return pl.DataFrame(
        {
            "node": jobs["node"], "what": pl.Series(["job"] * jobs.height, dtype=pl.String), "job": who["job"],
            "user": who["user"], "queue": who["queue"], "gpus": jobs["gpus"],
            "counted_gpus": (jobs["gpu_s"] / (jobs["t_end_s"] - jobs["t_s"])).round(6),
            "beside": pl.select(pl.when(own["shared"]).then(host)).to_series(), "t_s": jobs["t_s"],
            "t_end_s": jobs["t_end_s"], "attempt": own["attempt"].cast(pl.Int64),
            "end": rows["end"].gather(jobs["last"]).cast(pl.String),
        },
        schema=_SCHEMA,
    )  # fmt: skip


def _counted(outcome: Outcome) -> Floats:
    """GPU-seconds charged to the attempt of each piece, on its node, if jobs took turns."""
    found = spans(outcome)
    number, piece, part = of_pieces(outcome, found)
    seconds = part * (found.end - found.start)[number]
    return np.asarray(np.bincount(piece, weights=seconds, minlength=outcome.pieces.height), np.float64)
