"""Changes by elastic policies over time: loans, moves, packs, and the GPUs of the jobs that change most.

Empty tables are omitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import note
from gpuctl.replay.results import timelines
from gpuctl.replay.results.result_tables import documented
from gpuctl.replay.results.settings import calendar, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.core.results import ResultTable
    from gpuctl.replay.models.records import Outcome
    from gpuctl.replay.results.settings import Replays

    Floats = NDArray[np.float64]

BINS = 150
"""Most periods."""

LINES = 8
"""Number of jobs followed, over all policies together."""

_ENDS = {"resized": "resized", "migrated": "migrated", "reclaimed": "reclaimed"}


def changed(outcomes: Sequence[Outcome]) -> bool:
    """Whether any policy moved, packed or resized jobs, or borrowed nodes."""
    return any(times.size for outcome in outcomes for times in _events(outcome).values())


def resized(outcomes: Sequence[Outcome]) -> bool:
    """Whether some job held different numbers of GPUs, one after the other."""
    return any(_most_changed(outcome, 1) for outcome in outcomes)


def changes(replays: Replays) -> ResultTable:
    """Return the number of changes by each policy in equal periods."""
    begin, end = span(replays)
    edges = timelines.bin_edges(begin, end, BINS)
    frames: list[pl.DataFrame] = []
    there: set[str] = set()
    for outcome in replays.outcomes:
        found = _events(outcome)
        there |= {name for name, times in found.items() if times.size}
        counted = {name: np.histogram(times, edges)[0].astype(np.int64) for name, times in found.items()}
        frames.append(
            pl.DataFrame({"t_s": edges[:-1], "t_end_s": edges[1:], **counted}).insert_column(
                0, pl.Series("policy", [outcome.policy] * (len(edges) - 1))
            )
        )
    drawn = [name for name in _events(replays.baseline) if name in there]
    return documented(
        "replay_changes", pl.concat(frames).with_columns(calendar(replays.workload)),
        note("All {jobs:,} job{jobs||s}, {periods:,} equal period{periods||s}, the same for all policies.",
             jobs=replays.workload.size,
             periods=len(edges) - 1),
        section="replay_over_time", title="Loans, moves and packs over time", detail=True,
        question="When did policies move, pack and resize jobs, and borrow nodes?",
        charts=(
            f"lines on=page name=chart-replay-changes x=t_s y={','.join(drawn)} series=policy calendar=ts counts=yes "
            'title="Loans, moves, packs and changes of size in each period, by policy"',
        ),
    )  # fmt: skip


def _events(outcome: Outcome) -> dict[str, Floats]:
    """Seconds at which each kind of change happened."""
    ends = outcome.attempts["end"].cast(pl.String)
    times = outcome.attempts["end_s"]
    found = {name: times.filter(ends == end).drop_nulls().to_numpy() for name, end in _ENDS.items()}
    log = outcome.log
    found["packed"] = log.lines["t"][log.lines["what"] == log.words.index("share")].copy()
    loans = log.loans()
    found["loans"] = np.array([t for t, _, lent in loans if lent])
    found["returns"] = np.array([t for t, _, lent in loans if not lent])
    return found


def _most_changed(outcome: Outcome, most: int) -> list[int]:
    """Numbers of the jobs that changed their number of GPUs most often."""
    rows = outcome.attempts.select("job", "attempt", "gpus").sort("job", "attempt")
    c = pl.col
    other = (c("job") == c("job").shift(1)) & (c("gpus") != c("gpus").shift(1))
    rows = rows.with_columns(other.fill_null(value=False).alias("other"))
    found = rows.group_by("job").agg(c("other").sum().alias("len"))
    return found.filter(c("len") > 0).sort(["len", "job"], descending=[True, False]).head(most)["job"].to_list()


def gpus_of_jobs(replays: Replays) -> ResultTable:
    """Return the GPUs over time of the jobs that change most often, as means over equal periods."""
    each = max(1, LINES // len(replays.outcomes))
    followed = [(o, job) for o in replays.outcomes for job in _most_changed(o, each)]
    held = {o.policy: timelines.attempts(o) for o, _ in followed}
    of = {(o.policy, job): np.flatnonzero(held[o.policy].job == job) for o, job in followed}
    begin = min(float(held[policy].start[rows].min()) for (policy, _), rows in of.items())
    end = max(float(held[policy].end[rows].max()) for (policy, _), rows in of.items())
    edges = timelines.bin_edges(begin, end, BINS)
    frames = []
    for outcome, job in followed:
        mine, rows = held[outcome.policy], of[outcome.policy, job]
        # GPU-seconds up to each edge
        area = sum(
            float(g) * (np.clip(edges, a, b) - a)
            for a, b, g in zip(mine.start[rows], mine.end[rows], mine.gpus[rows], strict=True)
        )
        name = str(outcome.jobs["job"][job])
        frames.append(
            pl.DataFrame(
                {"policy": outcome.policy, "job": name, "t_s": edges[:-1], "t_end_s": edges[1:],
                 "gpus": np.diff(area) / np.diff(edges)}
            )
        )  # fmt: skip
    line = pl.col("policy") + ": " + pl.col("job") if len(replays.outcomes) > 1 else pl.col("job")
    return documented(
        "replay_gpus", pl.concat(frames).with_columns(calendar(replays.workload), line.alias("line")),
        note("The jobs whose number of GPUs changes most often, up to {each} of each policy.", each=each),
        section="replay_over_time", title="GPUs of jobs that grow and shrink", detail=True,
        question="How many GPUs did the jobs that change most hold over time?",
        charts=(
            "lines on=page name=chart-replay-gpus x=t_s y=gpus series=line calendar=ts "
            'title="GPUs over time of the jobs that change most"',
        ),
    )  # fmt: skip
