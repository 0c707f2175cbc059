"""Tables that only some replays have: deadlines, finish-time fairness (rho), and changes by elastic policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import NamedValue, note
from gpuctl.replay.models.traits import LATE_S, deadline_notes, deadlines
from gpuctl.replay.results import metrics, timelines
from gpuctl.replay.results.columns import documented
from gpuctl.replay.results.settings import calendar, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.core.results import ResultTable
    from gpuctl.replay.models.records import Outcome, Workload
    from gpuctl.replay.results.settings import Replays

    Floats = NDArray[np.float64]


GO_BY_THEM = ("edf", "elasticflow")
"""Policies that assume deadlines where the input has none."""


def has_deadlines(outcomes: Sequence[Outcome], workload: Workload) -> bool:
    """Whether there is something to count."""
    return workload.deadline is not None or any(outcome.kind in GO_BY_THEM for outcome in outcomes)


def deadline_table(replays: Replays) -> ResultTable:
    """Return how many deadlines each policy meets, one row a policy."""
    by = deadlines(replays.workload)
    some = np.isfinite(by)
    rows = []
    for outcome in replays.outcomes:
        jobs = outcome.jobs.with_columns(late=pl.col("end_s") - pl.Series(by)).filter(pl.Series(some))
        late = jobs["late"].filter(jobs["late"] > LATE_S)
        met = int((jobs["late"] <= LATE_S).sum())
        rejected = int((jobs["state"] == "rejected").sum())
        rows.append(
            {
                "policy": outcome.policy,
                "deadlines": jobs.height,
                "deadlines_met": met,
                "met_pct": 100 * met / jobs.height if jobs.height else None,
                "deadlines_missed": jobs.height - met,
                "ended_late": late.len(),
                "declined": rejected,
                "late_mean_s": late.mean(),
                "late_p95_s": late.quantile(0.95, interpolation="linear"),
            }
        )
    return documented(
        "replay_deadlines",
        pl.DataFrame(rows, schema_overrides={"late_mean_s": pl.Float64, "late_p95_s": pl.Float64}),
        note(
            "{size:,} job{size||s} with a deadline of {name}, all counted.",
            size=int(some.sum()),
            name=NamedValue("cluster", replays.workload.name),
        ),
        section="replay",
        title="Deadlines",
        question="How many deadlines does each policy meet?",
        notes=deadline_notes(replays.workload),
    )


POINTS = 150
"""Most points per curve."""

_TIMES = note(
    "rho: completion time by run time alone; rho_count and rho_demand also divide that by the contention: replay_jobs "
    "defines them."
)


def fairness(replays: Replays) -> ResultTable:
    """Return rho and Jain's index under each policy, by definition."""
    rows = []
    for outcome in replays.outcomes:
        skip = metrics.warmup_jobs(replays.workload, replays.warmup)
        for name, every in metrics.rhos(outcome, replays.workload, replays.cluster).items():
            rho = every[skip:][np.isfinite(every[skip:])]
            mean, p50, p95, most = (
                (float(rho.mean()), *np.quantile(rho, (0.5, 0.95)).tolist(), float(rho.max()))
                if rho.size
                else [None] * 4
            )
            rows.append(
                {"policy": outcome.policy, "definition": name, "jobs": rho.size, "rho_mean": mean, "rho_p50": p50,
                 "rho_p95": p95, "rho_max": most, "jain": metrics.jain(1 / rho) if rho.size else None}
            )  # fmt: skip
    frame = pl.DataFrame(rows, schema_overrides=dict.fromkeys(
        ("rho_mean", "rho_p50", "rho_p95", "rho_max", "jain"), pl.Float64
    ))  # fmt: skip
    return documented(
        "replay_fairness", frame, replays.jobs, section="replay", title="Fairness", notes=(_TIMES,),
        question="How evenly are jobs treated, by policy?",
        charts=(
            'bars on=page name=chart-replay-jain x=policy y=jain where=definition:rho '
            'title="Jain\'s index of 1/rho by policy: 1 if all jobs fare equally"',
        ),
    )  # fmt: skip


def distribution(replays: Replays) -> ResultTable:
    """Return points of the distribution of rho under each policy, each exact."""
    frames = []
    for outcome in replays.outcomes:
        skip = metrics.warmup_jobs(replays.workload, replays.warmup)
        every = metrics.rhos(outcome, replays.workload, replays.cluster)["rho"][skip:]
        rho = np.sort(every[np.isfinite(every)])
        rank = np.unique(np.linspace(1, rho.size, min(rho.size, POINTS)).round().astype(np.int64))
        # the share of equal values is that of the last of them
        rank = np.unique(np.searchsorted(rho, rho[rank - 1], side="right")) if rho.size else rank
        frames.append(
            pl.DataFrame(
                {
                    "policy": [outcome.policy] * rank.size,
                    "rho": rho[rank - 1],
                    "cdf_pct": 100 * rank / max(rho.size, 1),
                },
                schema={"policy": pl.String, "rho": pl.Float64, "cdf_pct": pl.Float64},
            )
        )
    return documented(
        "replay_rho_cdf", pl.concat(frames), replays.jobs, section="replay", title="Distribution of rho", detail=True,
        question="How is rho, completion time by run time, distributed over the jobs?", notes=(_TIMES,),
        charts=(
            'cdf on=page name=chart-replay-rho x=rho y=cdf_pct series=policy scale=ratio '
            'title="Finish-time fairness (rho) by policy" x_title="rho: completion time by run time (logarithmic)" '
            'y_title="% of finished jobs with at most this rho"',
        ),
    )  # fmt: skip


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
