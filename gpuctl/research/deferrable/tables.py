"""Deferrable jobs under policies, as a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis
from gpuctl.research.deferrable.slots import WAIT_COST, score
from gpuctl.research.row_tables import Row, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.research.deferrable.cases import Case
    from gpuctl.research.deferrable.policies import Ran

TABLES = ("deferrable", "deferrable_load", "deferrable_jobs")
SHORT_FILES = {"deferrable": "summary", "deferrable_jobs": "jobs", "deferrable_load": "load"}
"""File names of these tables in --csv and --parquet; other programs read them."""

POINTS = 400
"""Most points per curve; with more slots, neighbours are merged."""


class PolicyRow(
    Row, name="deferrable", section="deferrable", title="Deferrable jobs", first_columns=10,
    question="How much deferrable work fits into the leftover capacity, and how long does it wait?",
):  # fmt: skip
    """Outcome of all jobs under a policy."""

    policy: str = column("-", "The policy, as it was named.")
    jobs: int = column("jobs", "Deferrable jobs.")
    done: int = column("jobs", "Jobs that ran to their end.")
    mean_wait_h: float | None = column(
        "h", "Mean time from the opening of the window to the start of the run that counted, of done jobs."
    )
    p95_wait_h: float | None = column("h", "95th percentile of that time.")
    useful_gpu_h: float = column("GPU-h", "GPU-hours of done jobs.")
    lost_gpu_h: float = column("GPU-h", "GPU-hours of evicted runs; an evicted run loses all its work.")
    evictions: int = column("evictions", "Runs ended because on-demand jobs needed the GPUs.")
    utilization_pct: float | None = column("%", "Useful GPU-hours / GPU-hours that on-demand jobs leave.")
    score: float | None = column(
        "-",
        "(Worth of done jobs - lost GPU-slots) / GPU-slots of all jobs. A job is worth its GPU-slots, minus "
        f"{WAIT_COST:.0%} of them for a start at the end of its window, in proportion before.",
    )
    missed: int = column("jobs", "Jobs whose window closed before their first start.")
    failed: int = column("jobs", "Jobs that were evicted and did not restart before their window closed.")
    useful_gpu_slots: int = column("GPU-slots", "GPUs x slots of done jobs.")
    lost_gpu_slots: int = column("GPU-slots", "GPUs x slots of evicted runs.")
    mean_wait_slots: float | None = column("slots", "mean_wait_h in slots.")
    bound_score: float | None = column("-", "Upper bound of the score, from optimum.")
    oracle: int = column("-", "1: the policy knows the leftover capacity of later slots, unlike any real scheduler.")


class LoadRow(
    Row, name="deferrable_load", section="deferrable", title="Leftover capacity and its use", detail=True,
    question="When is capacity left over, and how much of it is used?",
):  # fmt: skip
    """Some slots under a policy."""

    policy: str = column("-", "The policy, as it was named.")
    hours: float = column("h", "Begin of the slot, since second 0; for merged slots, of the first.")
    leftover_gpus: float = column("GPUs", "GPUs that on-demand jobs leave; for merged slots, the mean.")
    used_gpus: float = column("GPUs", "GPUs of counted runs; for merged slots, the mean.")


class JobRow(
    Row, name="deferrable_jobs", section="deferrable", title="Deferrable jobs, one by one", detail=True,
    question="When does each job run under each policy?",
):  # fmt: skip
    """A job under a policy."""

    policy: str = column("-", "The policy, as it was named.")
    job: str = column("-", "The job's name.")
    start: int | None = column("slot", "Slot in which the counted run started; empty: none.")
    end: int | None = column("slot", "First slot after the counted run.")
    evictions: int = column("evictions", "Evicted runs of the job.")
    state: str = column(
        "-", "done; missed: its window closed before it had started; failed: the same after an eviction."
    )


def result(case: Case, ran: Sequence[Ran], evict: str, name: str, command: str) -> Analysis:
    """Assemble the outcomes of policies as a result.

    Args:
        case: capacity and jobs.
        ran: outcome of each policy.
        evict: which run on-demand load evicts.
        name: name of the case.
        command: as the user gave it.
    """
    population = note(
        "{jobs:,} deferrable job{jobs||s}, {slots:,} slot{slots||s} of {minutes} min.",
        jobs=len(case.ids), slots=case.horizon, minutes=literal(number(case.slot_s / 60)),
    )  # fmt: skip
    tables = (
        PolicyRow.table([_row(case, one) for one in ran], population),
        LoadRow.table(_load(case, ran), population),
        JobRow.table(_jobs(case, ran), population),
    )
    return Analysis(
        cluster=note("{name}", name=NamedValue("cluster", name)),
        tables=tables,
        sections=(("deferrable", "Deferrable jobs"),),
        sources=(),
        settings={
            "slots": note("{n:,} of {minutes} min", n=case.horizon, minutes=literal(number(case.slot_s / 60))),
            "GPUs": note("{n:,}", n=case.total),
            "slots of a day": note("{n:,}", n=case.season),
            "evicted first": literal(
                "the latest start" if evict == "newest" else "the run that loses the fewest GPU-hours"
            ),
        },
        command=command,
        warnings=_warnings(case),
    )


def _warnings(case: Case) -> tuple[Any, ...]:
    about = case.about
    found = []
    share = about.get("share_pct")
    if about.get("marked_by") == "hash" and isinstance(share, int):
        found.append(
            note(
                "which jobs are deferrable is assumed: {share} % of those of at most 24 h, by a hash of their names; "
                "each may be put off by three times its run time, at most 24 h",
                share=share,
            )
        )
    for key, why in (
        ("left_out_too_late", "end after the trace's last submission"),
        ("left_out_too_large", "need more GPUs than there are"),
    ):
        count = about.get(key)
        if isinstance(count, int) and count > 0:
            found.append(
                note(
                    "{count:,} deferrable job{count||s} {count|is|are} left out: they {why}",
                    count=count,
                    why=literal(why),
                )
            )
    return tuple(found)


def waits(case: Case, one: Ran) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Slots from the opening of the window to the start, for done jobs."""
    start = one.outcome.start
    return (start - case.earliest)[start >= 0]


def _row(case: Case, one: Ran) -> PolicyRow:
    found, hours = one.outcome, case.slot_s / 3600
    done = found.start >= 0
    useful, waited = int(case.work[done].sum()), waits(case, one)
    left = int(case.leftover.sum())
    mean = float(waited.mean()) if waited.size else None
    states = found.state
    return PolicyRow(
        policy=one.policy.label,
        jobs=len(case.ids),
        done=int(done.sum()),
        mean_wait_h=None if mean is None else mean * hours,
        p95_wait_h=float(np.quantile(waited, 0.95)) * hours if waited.size else None,
        useful_gpu_h=useful * hours,
        lost_gpu_h=found.lost * hours,
        evictions=int(found.evictions.sum()),
        utilization_pct=100 * useful / left if left else None,
        score=score(case, found) if len(case.ids) else None,
        missed=states.count("missed"),
        failed=states.count("failed"),
        useful_gpu_slots=useful,
        lost_gpu_slots=found.lost,
        mean_wait_slots=mean,
        bound_score=one.bound,
        oracle=int(one.policy.oracle),
    )


def _jobs(case: Case, ran: Sequence[Ran]) -> pl.DataFrame:
    frames = []
    for one in ran:
        start = pl.Series("start", one.outcome.start)
        frame = pl.DataFrame(
            {
                "policy": pl.Series([one.policy.label] * len(case.ids), dtype=pl.String),
                "job": pl.Series(case.ids, dtype=pl.String),
                "start": start,
                "end": start + pl.Series(case.slots),
                "evictions": one.outcome.evictions,
                "state": pl.Series(one.outcome.state, dtype=pl.String),
            }
        )
        ran_at = pl.col("start") >= 0
        frames.append(frame.with_columns(pl.when(ran_at).then(name).alias(name) for name in ("end", "start")))
    return pl.concat(frames)


def _load(case: Case, ran: Sequence[Ran]) -> pl.DataFrame:
    step = -(-case.horizon // POINTS)
    begins = np.arange(0, case.horizon, step)
    size = np.diff(np.append(begins, case.horizon))

    def means(values: np.ndarray[Any, Any]) -> Any:
        return np.add.reduceat(values, begins) / size

    frames = []
    for one in ran:
        change = np.zeros(case.horizon + 1, np.int64)
        done = one.outcome.start >= 0
        start = one.outcome.start[done]
        np.add.at(change, start, case.gpus[done])
        np.add.at(change, start + case.slots[done], -case.gpus[done])
        frames.append(
            pl.DataFrame(
                {
                    "policy": pl.Series([one.policy.label] * begins.size, dtype=pl.String),
                    "hours": begins * case.slot_s / 3600,
                    "leftover_gpus": means(case.leftover),
                    "used_gpus": means(np.cumsum(change)[:-1]),
                }
            )
        )
    return pl.concat(frames)
